/* Tests of the mask shape: kernels run compiled and in the baseline tier, with
 * blocks of several widths, and must leave the same memory. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptx/exec/harness.h"

#define WORDS 4096
#define THREADS_MAX 128

/* %r1: the thread's number in the grid; %rd1: in; %rd2: out; %rd3: its word in out; %r2: n. */
#define HEAD                                                                      \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                             \
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"       \
    ".reg .pred %p<20>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .f32 %f<20>;\n" \
    ".shared .align 16 .b8 sh[4096];\n"                                           \
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r2, [n];\n" \
    "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;\n"      \
    "mov.u32 %r13, %tid.y; mov.u32 %r14, %ntid.y; mul.lo.u32 %r15, %r11, %r14;\n" \
    "mad.lo.u32 %r16, %r13, %r11, %r12; mad.lo.u32 %r1, %r10, %r15, %r16;\n"      \
    "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd2, %rd4; add.u64 %rd5, %rd1, %rd4;\n"

struct kernel {
    const char *name;
    bool meets; /* threads wait for each other */
    const char *body;
};

static const struct kernel kernels[] = {
    {"copies a row", false, "ld.global.u32 %r3, [%rd5]; st.global.u32 [%rd3], %r3; ret; }\n"},
    {"leaves early", false,
     "setp.ge.u32 %p1, %r1, %r2; @%p1 bra END;\n"
     "ld.global.u32 %r3, [%rd5+4]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd3], %r3;\n"
     "END: ret; }\n"},
    {"floats of which some are NaN", false,
     "and.b32 %r3, %r1, 7; setp.eq.u32 %p1, %r3, 5; setp.ge.u32 %p2, %r1, 64;\n"
     "and.pred %p1, %p1, %p2; ld.global.u32 %r4, [%rd5]; selp.b32 %r5, 0xffc12345, %r4, %p1;\n"
     "mov.b32 %f1, %r5; add.f32 %f2, %f1, %f1; st.global.f32 [%rd3], %f2;\n"
     "setp.ge.u32 %p3, %r1, %r2; @%p3 bra END; ld.global.f32 %f3, [%rd5];\n"
     "ld.global.f32 %f4, [%rd5+4]; fma.rn.f32 %f5, %f3, %f4, %f2; st.global.f32 [%rd3], %f5;\n"
     "END: ret; }\n"},
    {"signaling NaNs times 1 and plus 0", false,
     "ld.global.u32 %r3, [%rd5]; and.b32 %r4, %r3, 3; setp.eq.u32 %p1, %r4, 1;\n"
     "selp.b32 %r5, 0x7f812345, %r3, %p1; st.global.u32 [%rd3], %r5; ld.global.f32 %f1, [%rd3];\n"
     "and.b32 %r6, %r3, 12; setp.eq.u32 %p2, %r6, 0; mul.f32 %f2, %f1, 0f3f800000;\n"
     "@!%p2 bra A; st.global.f32 [%rd3], %f2; A: add.f32 %f3, %f1, 0f80000000;\n"
     "setp.eq.u32 %p3, %r6, 4; @!%p3 bra B; st.global.f32 [%rd3], %f3;\n"
     "B: mov.f32 %f4, 0f80000000; mov.f32 %f5, 0f3f800000; fma.rn.f32 %f6, %f1, %f5, %f4;\n"
     "setp.eq.u32 %p4, %r6, 8; @!%p4 bra C; st.global.f32 [%rd3], %f6; C: ret; }\n"},
    {"an index below zero that only idle lanes have", false,
     "setp.eq.u32 %p1, %r1, 0; @%p1 bra END;\n"
     "add.u32 %r3, %r1, -1; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd7, %rd1, %rd6;\n"
     "ld.global.u32 %r4, [%rd7]; st.global.u32 [%rd3], %r4; END: ret; }\n"},
    {"an index that wraps around in the middle of a warp", false,
     "add.u32 %r3, %r1, -17; cvt.u64.u32 %rd6, %r3; cvt.s64.s32 %rd7, %r3;\n"
     "shr.u64 %rd8, %rd6, 28; cvt.u32.u64 %r4, %rd8; add.u64 %rd9, %rd6, %rd7;\n"
     "cvt.u32.u64 %r5, %rd9; xor.b32 %r6, %r4, %r5; shr.s64 %rd10, %rd7, 40;\n"
     "cvt.u32.u64 %r7, %rd10; xor.b32 %r6, %r6, %r7;\n"
     "sub.u32 %r8, 5, %r1; cvt.u64.u32 %rd11, %r8; shr.u64 %rd12, %rd11, 30;\n"
     "cvt.u32.u64 %r9, %rd12; add.u32 %r6, %r6, %r9; st.global.u32 [%rd3], %r6; ret; }\n"},
    {"lanes part and meet", false,
     "and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0; @%p1 bra A;\n"
     "setp.eq.u32 %p2, %r3, 1; @%p2 bra B;\n"
     "mul.lo.u32 %r4, %r1, 7; bra J; A: mov.u32 %r4, 100; bra J; B: add.u32 %r4, %r1, 1000;\n"
     "J: st.global.u32 [%rd3], %r4; ret; }\n"},
    {"one side keeps what the other overwrites", false,
     "mov.u32 %r3, 5; and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; @!%p1 bra E;\n"
     "setp.gt.u32 %p2, %r2, 3; @!%p2 bra U; mov.u32 %r3, 7; U: add.u32 %r5, %r3, 1; bra J;\n"
     "E: add.u32 %r5, %r3, 100; J: st.global.u32 [%rd3], %r5; ret; }\n"},
    {"lanes leave a loop one by one", false,
     "and.b32 %r3, %r1, 15; mov.u32 %r4, 0; mov.u32 %r5, 1;\n"
     "L: add.u32 %r4, %r4, 1; add.u32 %r5, %r5, %r4; setp.lt.u32 %p1, %r4, %r3; @%p1 bra L;\n"
     "mad.lo.u32 %r6, %r4, 1000, %r5; st.global.u32 [%rd3], %r6; ret; }\n"},
    {"a loop is left from its middle", false,
     "and.b32 %r3, %r1, 7; mov.u32 %r4, 0; mov.u32 %r5, 0;\n"
     "L: setp.eq.u32 %p1, %r4, %r3; @%p1 bra X; add.u32 %r5, %r5, 3; add.u32 %r4, %r4, 1;\n"
     "setp.lt.u32 %p2, %r4, 5; @%p2 bra L; mov.u32 %r5, 77; X: add.u32 %r6, %r5, %r4;\n"
     "st.global.u32 [%rd3], %r6; ret; }\n"},
    {"a loop in a loop, both left one by one", false,
     "and.b32 %r3, %r1, 3; mov.u32 %r4, 0; mov.u32 %r7, 0;\n"
     "O: mov.u32 %r5, 0; I: add.u32 %r7, %r7, %r5; add.u32 %r5, %r5, 1;\n"
     "setp.le.u32 %p1, %r5, %r4; @%p1 bra I; add.u32 %r4, %r4, 1;\n"
     "setp.le.u32 %p2, %r4, %r3; @%p2 bra O; mad.lo.u32 %r8, %r5, 100, %r7;\n"
     "st.global.u32 [%rd3], %r8; ret; }\n"},
    {"a grid-stride loop", false,
     "mov.u32 %r3, %nctaid.x; mul.lo.u32 %r4, %r3, %r15; mov.u32 %r5, %r1; mov.u32 %r6, 0;\n"
     "setp.ge.u32 %p1, %r5, %r2; @%p1 bra X;\n"
     "L: mul.wide.u32 %rd6, %r5, 4; add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r7, [%rd7];\n"
     "add.u32 %r6, %r6, %r7; add.u32 %r5, %r5, %r4; setp.lt.u32 %p2, %r5, %r2; @%p2 bra L;\n"
     "X: st.global.u32 [%rd3], %r6; ret; }\n"},
    {"two latches", false,
     "and.b32 %r3, %r1, 7; mov.u32 %r4, 0; mov.u32 %r5, 0;\n"
     "L: add.u32 %r4, %r4, 1; and.b32 %r6, %r4, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra E;\n"
     "add.u32 %r5, %r5, %r1; setp.lt.u32 %p2, %r4, %r3; @%p2 bra L; bra X;\n"
     "E: add.u32 %r5, %r5, 100; setp.lt.u32 %p3, %r4, 6; @%p3 bra L;\n"
     "X: st.global.u32 [%rd3], %r5; ret; }\n"},
    {"guards keep what was there", false,
     "mov.u32 %r3, 9; and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; @%p1 mov.u32 %r3, %r1;\n"
     "setp.gt.u32 %p2, %r2, 5; @%p2 add.u32 %r3, %r3, 1; @%p1 ld.global.u32 %r5, [%rd5];\n"
     "@%p1 add.u32 %r3, %r3, %r5; @!%p2 st.global.u32 [%rd3], %r2;\n"
     "@%p2 st.global.u32 [%rd3], %r3; ret; }\n"},
    {"guarded moves of what is there, and of what is not", false,
     "and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; mov.u32 %r3, %r2; @%p1 mov.u32 %r3, %r2;\n"
     "mov.u32 %r5, %r2; @%p1 mov.u32 %r5, %r3; mov.u32 %r6, %r2; add.u32 %r2, %r2, 1;\n"
     "@!%p1 mov.u32 %r6, %r2; @%p1 mov.u32 %r6, %r6; mad.lo.u32 %r7, %r5, 1000, %r6;\n"
     "mad.lo.u32 %r7, %r7, 10, %r3; st.global.u32 [%rd3], %r7; ret; }\n"},
    {"a guarded load of two registers that held different things", false,
     "mov.u32 %r3, %r2; mov.u32 %r4, %r12; setp.gt.u32 %p1, %r2, 50;\n"
     "@%p1 ld.global.v2.u32 {%r3, %r4}, [%rd1+8]; shl.b32 %r5, %r3, 8; add.u32 %r5, %r5, %r4;\n"
     "mov.u32 %r6, %r2; mov.u32 %r7, %r13; mul.wide.u32 %rd6, %r13, 8; add.u64 %rd7, %rd1, %rd6;\n"
     "@%p1 ld.global.v2.u32 {%r6, %r7}, [%rd7]; add.u32 %r5, %r5, %r6; xor.b32 %r5, %r5, %r7;\n"
     "st.global.u32 [%rd3], %r5; ret; }\n"},
    {"the upper word of a number whose low bits are alike", false,
     "mul.wide.u32 %rd6, %r16, 8; add.u64 %rd7, %rd1, %rd6; ld.global.u64 %rd8, [%rd7];\n"
     "and.b64 %rd9, %rd8, -256; mov.b64 {%r3, %r4}, %rd9; and.b32 %r5, %r4, 255;\n"
     "st.global.u32 [%rd3], %r5; ret; }\n"},
    {"a guard that holds for no lane, and bits that are alike", false,
     "ld.global.u32 %r3, [%rd5]; and.b32 %r4, %r3, 255; setp.gt.u32 %p1, %r2, 1000000;\n"
     "mov.u32 %r5, 7; @%p1 and.b32 %r5, %r4, 256; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"a loop in which bits would be alike if lanes had not parted", false,
     "shr.u32 %r9, %r2, 31; mul.wide.u32 %rd6, %r9, 4; add.u64 %rd20, %rd1, %rd6;\n"
     "ld.global.u32 %r3, [%rd5]; shr.u32 %r3, %r3, 1; and.b32 %r4, %r3, 1;\n"
     "setp.ne.u32 %p1, %r4, 0; @%p1 bra A;\n"
     "add.u64 %rd10, %rd1, %rd4; and.b32 %r5, %r3, 255; bra J;\n"
     "A: add.u64 %rd10, %rd20, %rd4; and.b32 %r5, %r3, 255; or.b32 %r5, %r5, 256;\n"
     "J: mov.u32 %r8, 0; mov.u32 %r11, 0; L: ld.global.u32 %r10, [%rd10]; and.b32 %r6, %r5, 256;\n"
     "add.u32 %r8, %r8, %r6; xor.b32 %r8, %r8, %r10; add.u64 %rd10, %rd10, 4;\n"
     "add.u32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, 3; @%p2 bra L;\n"
     "st.global.u32 [%rd3], %r8; ret; }\n"},
    {"one of three ways has small numbers", false,
     "mov.u32 %r3, %laneid; setp.gt.u32 %p1, %r2, 1000000; setp.lt.u32 %p2, %r2, 1000000;\n"
     "@%p1 bra A; @%p2 bra B; bra C; C: mov.u32 %r5, 0; bra J; A: mov.u32 %r5, %r3; bra J;\n"
     "B: add.u32 %r5, %r3, %r2; bra J; J: and.b32 %r6, %r5, 32; st.global.u32 [%rd3], %r6;\n"
     "ret; }\n"},
    {"small numbers divided by 0", false,
     "and.b32 %r3, %r2, 7; shr.u32 %r4, %r2, 31; div.u32 %r5, %r3, %r4; rem.u32 %r6, %r3, %r4;\n"
     "shr.u32 %r7, %r5, 8; xor.b32 %r5, %r12, %r7; shr.u32 %r8, %r6, 9; xor.b32 %r6, %r12, %r8;\n"
     "mad.lo.u32 %r9, %r5, 31, %r6; st.global.u32 [%rd3], %r9; ret; }\n"},
    {"a byte gets a sign", false,
     "and.b32 %r3, %r2, 255; or.b32 %r3, %r3, 128; cvt.s8.s32 %r4, %r3; shr.u32 %r5, %r4, 8;\n"
     "xor.b32 %r6, %r12, %r5; st.global.u32 [%rd3], %r6; ret; }\n"},
    {"lanes part, and meet in another round where the loop ends", false,
     "mov.u32 %r20, %r16; mov.u32 %r21, 0;\n"
     "H: add.u32 %r21, %r21, 1; and.b32 %r23, %r16, %r21; and.b32 %r23, %r23, 1;\n"
     "setp.eq.u32 %p1, %r23, 1; mov.u32 %r24, 5; @%p1 bra L;\n"
     "mov.u32 %r24, 9; setp.gt.u32 %p2, %r21, %r2; @%p2 bra X;\n"
     "L: add.u32 %r20, %r20, %r24; bra H; X: add.u32 %r20, %r20, %r21;\n"
     "st.global.u32 [%rd3], %r20; ret; }\n"},
    {"lanes leave a loop for the end of the one around it", false,
     "mov.u32 %r20, %r16; mov.u32 %r21, 0;\n"
     "H: add.u32 %r21, %r21, 1; mov.u32 %r22, 0;\n"
     "I: add.u32 %r22, %r22, 1; add.u32 %r23, %r16, %r22; add.u32 %r23, %r23, %r21;\n"
     "and.b32 %r23, %r23, 3; setp.eq.u32 %p1, %r23, 0; mov.u32 %r24, %r22; @%p1 bra L;\n"
     "setp.lt.u32 %p2, %r22, 3; @%p2 bra I;\n"
     "mov.u32 %r24, 77; setp.gt.u32 %p3, %r21, 20; @%p3 bra X;\n"
     "L: mad.lo.u32 %r20, %r20, 3, %r24; bra H;\n"
     "X: add.u32 %r20, %r20, %r21; add.u32 %r20, %r20, %r24; st.global.u32 [%rd3], %r20; ret; }\n"},
    {"lanes leave a loop in different rounds by two ways", false,
     "mov.u32 %r20, %r16; mov.u32 %r21, 0;\n"
     "H: add.u32 %r21, %r21, 1; add.u32 %r23, %r16, %r21; and.b32 %r23, %r23, 1;\n"
     "setp.eq.u32 %p1, %r23, 1; @%p1 bra L;\n"
     "setp.gt.u32 %p2, %r21, 11; @%p2 bra X; setp.gt.u32 %p3, %r21, 10; @%p3 bra Y;\n"
     "L: add.u32 %r20, %r20, 5; bra H; X: add.u32 %r20, %r20, 1000; bra Z;\n"
     "Y: mul.lo.u32 %r20, %r20, 7; Z: add.u32 %r20, %r20, %r21; st.global.u32 [%rd3], %r20;\n"
     "ret; }\n"},
    {"two loops that begin at one place", false,
     "and.b32 %r3, %r1, 3; mov.u32 %r4, 0; mov.u32 %r7, 0;\n"
     "O: add.u32 %r4, %r4, 1; and.b32 %r5, %r4, %r3; setp.ne.u32 %p1, %r5, 0; @%p1 bra O;\n"
     "mad.lo.u32 %r7, %r7, 3, %r4; setp.lt.u32 %p2, %r4, 20; @%p2 bra O;\n"
     "st.global.u32 [%rd3], %r7; ret; }\n"},
    {"two loops that begin at one place, the outer one for all lanes alike", false,
     "and.b32 %r3, %r1, 7; mov.u32 %r4, 0; mov.u32 %r7, 0;\n"
     "O: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r3; @%p1 bra O; mad.lo.u32 %r7, %r4, 3, %r7;\n"
     "st.global.u32 [%rd3], %r7; ld.global.u32 %r6, [%rd1+4]; setp.eq.u32 %p2, %r6, %r2;\n"
     "@%p2 bra O; ld.global.u32 %r8, [%rd1+8]; setp.eq.u32 %p3, %r8, %r2; @%p3 bra O;\n"
     "add.u32 %r7, %r7, %r6; st.global.u32 [%rd3], %r7; ret; }\n"},
    {"scattered vectors of four and of two words", false,
     "xor.b32 %r3, %r16, 5; shl.b32 %r4, %r3, 4; cvt.u64.u32 %rd6, %r4; add.u64 %rd7, %rd1, %rd6;\n"
     "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd7]; xor.b32 %r20, %r16, 3;\n"
     "shl.b32 %r21, %r20, 4;\n"
     "mov.u32 %r22, sh; add.u32 %r22, %r22, %r21; st.shared.v4.u32 [%r22], {%r8, %r5, %r6, %r7};\n"
     "ld.shared.v2.u32 {%r23, %r24}, [%r22+8]; ld.shared.v4.u32 {%r25, %r26, %r27, %r28}, [%r22];\n"
     "st.shared.v2.u32 [%r22+8], {%r28, %r23}; ld.shared.v4.u32 {%r29, %r30, %r31, %r32}, [%r22];\n"
     "mad.lo.u32 %r33, %r24, 3, %r25; mad.lo.u32 %r33, %r33, 5, %r26;\n"
     "mad.lo.u32 %r33, %r33, 7, %r27;\n"
     "mad.lo.u32 %r33, %r33, 3, %r31; mad.lo.u32 %r33, %r33, 5, %r32; add.u32 %r34, %r29, %r30;\n"
     "mul.wide.u32 %rd8, %r1, 4; xor.b64 %rd8, %rd8, 4; shl.b64 %rd8, %rd8, 2;\n"
     "add.u64 %rd9, %rd2, %rd8; st.global.v4.u32 [%rd9], {%r33, %r34, %r5, %r8};\n"
     "ld.global.v2.u32 {%r35, %r36}, [%rd9+8]; st.global.v2.u32 [%rd9+8], {%r36, %r35}; ret; }\n"},
    {"lanes take a lock and give it back in a loop", false,
     "mov.u32 %r5, 0;\n"
     "O: atom.global.cas.b32 %r3, [%rd2+16380], 0xcccccccc, %r1;\n"
     "setp.ne.u32 %p2, %r3, 0xcccccccc; @%p2 bra O; ld.volatile.global.u32 %r4, [%rd2+16376];\n"
     "add.u32 %r4, %r4, 1; st.volatile.global.u32 [%rd2+16376], %r4;\n"
     "atom.global.exch.b32 %r6, [%rd2+16380], 0xcccccccc; add.u32 %r5, %r5, 1;\n"
     "setp.lt.u32 %p1, %r5, 3; @%p1 bra O; ret; }\n"},
    {"one lane takes a lock for its warp", false,
     "and.b32 %r4, %r16, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra J;\n"
     "L: atom.global.cas.b32 %r3, [%rd2+16380], 0xcccccccc, %r1;\n"
     "setp.ne.u32 %p2, %r3, 0xcccccccc; @%p2 bra L; J: bar.warp.sync 0xffffffff;\n"
     "st.global.u32 [%rd3], %r1; bar.warp.sync 0xffffffff; @%p1 bra E;\n"
     "atom.global.exch.b32 %r6, [%rd2+16380], 0xcccccccc; E: ret; }\n"},
    {"a guarded return", false,
     "and.b32 %r4, %r1, 3; setp.eq.u32 %p1, %r4, 2; st.global.u32 [%rd3], %r4; @%p1 ret;\n"
     "st.global.u32 [%rd3], %r1; ret; }\n"},
    {"one address, and one per row", false,
     "mul.wide.u32 %rd6, %r13, 4; add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r3, [%rd7];\n"
     "ld.global.u32 %r4, [%rd1+8]; add.u32 %r5, %r3, %r4; add.u32 %r5, %r5, %r12;\n"
     "st.global.u32 [%rd3], %r5; ret; }\n"},
    {"one per row, for rows that run", false,
     "setp.ge.u32 %p1, %r13, 3; @%p1 bra END;\n"
     "mul.lo.u32 %r3, %r13, 40; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd7, %rd1, %rd6;\n"
     "ld.global.u32 %r4, [%rd7]; add.u32 %r4, %r4, %r12; st.global.u32 [%rd3], %r4;\n"
     "END: ret; }\n"},
    {"vectors of two and four", false,
     "mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd1, %rd6; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, "
     "[%rd7]; mul.wide.u32 %rd8, %r1, 8; add.u64 %rd9, %rd2, %rd8; add.u32 %r3, %r3, %r5;\n"
     "add.u32 %r4, %r4, %r6; st.global.v2.u32 [%rd9], {%r3, %r4}; ret; }\n"},
    {"a warp's number, and a lane's", false,
     "shr.u32 %r3, %r12, 5; and.b32 %r4, %r12, 31; mad.lo.u32 %r5, %r3, 1000, %r4;\n"
     "and.b32 %r6, %r12, -32; add.u32 %r5, %r5, %r6; shl.b32 %r7, %r12, 3; and.b32 %r8, %r7, 255;\n"
     "add.u32 %r5, %r5, %r8; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"bytes and words that step", false,
     "cvt.u64.u32 %rd6, %r1; add.u64 %rd7, %rd1, %rd6; ld.global.u8 %r3, [%rd7];\n"
     "mul.wide.u32 %rd8, %r1, 12; add.u64 %rd9, %rd1, %rd8; ld.global.u32 %r4, [%rd9];\n"
     "add.u32 %r5, %r3, %r4; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"one lane, and each warp's number", false,
     "setp.eq.u32 %p1, %r12, 37; setp.ne.s32 %p2, %r1, 40; mov.u32 %r3, 0; @%p1 mov.u32 %r3, 7;\n"
     "mul.lo.u32 %r4, %r12, 12; setp.eq.u32 %p3, %r4, 60; add.u32 %r5, %r1, -9;\n"
     "setp.eq.s32 %p4, %r5, -2; setp.eq.b32 %p5, %r4, 61; @%p2 add.u32 %r3, %r3, 10;\n"
     "@!%p3 bra A; add.u32 %r3, %r3, 100; A: @!%p4 bra B; add.u32 %r3, %r3, 1000;\n"
     "B: @!%p5 bra C; add.u32 %r3, %r3, 10000; C: shr.s32 %r6, %r12, 31; shr.u32 %r7, %r6, 27;\n"
     "add.s32 %r8, %r12, %r7; shr.s32 %r9, %r8, 5; mul.wide.s32 %rd6, %r9, 4;\n"
     "add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r20, [%rd7]; add.u32 %r3, %r3, %r20;\n"
     "st.global.u32 [%rd3], %r3; ret; }\n"},
    {"NaNs that are moved", false,
     "ld.global.u32 %r3, [%rd5]; or.b32 %r4, %r3, 0x7f800000; mov.b32 %f1, %r4; mov.b32 %r5, %f1;\n"
     "add.f32 %f2, %f1, 0f3f800000; mov.b32 %r6, %f2; mov.b32 %f3, %r6; mul.f32 %f4, %f3, %f2;\n"
     "mov.b32 %r7, %f4; mov.u32 %r8, %r7; setp.gt.u32 %p1, %r3, 99; @%p1 bra X; mov.b32 %r8, %r6;\n"
     "X: add.u32 %r9, %r5, %r8; xor.b32 %r9, %r9, %r6; st.global.u32 [%rd3], %r9; ret; }\n"},
    {"what lanes find out together", false,
     "ld.global.u32 %r3, [%rd5]; setp.gt.u32 %p1, %r3, 100; mov.u32 %r20, -1; mov.u32 %r21, 31;\n"
     "vote.sync.ballot.b32 %r4, %p1, %r20; vote.sync.any.pred %p2, %p1, -1; mov.u32 %r5, 5;\n"
     "@%p2 bra A; mov.u32 %r5, 6; A: vote.sync.all.pred %p3, %p1, -1; @%p3 add.u32 %r5, %r5, 16;\n"
     "mov.u32 %r22, 0; shfl.sync.idx.b32 %r6|%p4, %r3, %r22, %r21, %r20; and.b32 %r23, %r6, 3;\n"
     "L: add.u32 %r5, %r5, %r6; add.u32 %r23, %r23, -1; setp.ge.s32 %p5, %r23, 0; @%p5 bra L;\n"
     "redux.sync.add.s32 %r7, %r3, %r20; activemask.b32 %r8; setp.lt.u32 %p6, %r3, 60;\n"
     "@%p6 bra B; activemask.b32 %r9; popc.b32 %r9, %r9; add.u32 %r5, %r5, %r9;\n"
     "vote.sync.ballot.b32 %r24, %p4, %r9; B: add.u32 %r5, %r5, %r4; add.u32 %r5, %r5, %r7;\n"
     "xor.b32 %r5, %r5, %r8; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"all lanes wait for other warps", false,
     "mov.u32 %r4, 0; L: ld.volatile.global.u32 %r3, [%rd1+16]; add.u32 %r4, %r4, 1;\n"
     "add.u32 %r5, %r3, %r1; setp.gt.u32 %p1, %r5, 100000; setp.lt.u32 %p2, %r4, 500;\n"
     "or.pred %p3, %p1, %p2; vote.sync.any.pred %p4, %p3, -1; @%p4 bra L;\n"
     "M: ld.volatile.global.u32 %r3, [%rd1+16]; add.u32 %r4, %r4, 1; setp.gt.u32 %p1, %r3, 9999;\n"
     "setp.lt.u32 %p2, %r4, 700; or.pred %p3, %p1, %p2; @%p3 bra M;\n"
     "st.global.u32 [%rd3], %r4; ret; }\n"},
    {"an update that is tried again", false,
     "and.b32 %r3, %r1, 3; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd7, %rd2, %rd6;\n"
     "ld.global.u32 %r4, [%rd7]; L: mov.u32 %r5, %r4; mad.lo.u32 %r6, %r5, 3, 1;\n"
     "atom.global.cas.b32 %r7, [%rd7], %r5, %r6; setp.ne.s32 %p1, %r5, %r7; mov.u32 %r4, %r7;\n"
     "@%p1 bra L; ret; }\n"},
    {"shared memory below the first lane", true,
     "shl.b32 %r3, %r16, 2; mov.u32 %r4, sh; add.u32 %r5, %r4, %r3; st.shared.u32 [%r5], %r1;\n"
     "bar.sync 0; setp.eq.u32 %p1, %r16, 0; mov.u32 %r7, 55; @%p1 bra X;\n"
     "ld.shared.u32 %r7, [%r5+-4]; X: st.global.u32 [%rd3], %r7; ret; }\n"},
    {"a tree in shared memory", true,
     "shl.b32 %r3, %r16, 2; mov.u32 %r4, sh; add.u32 %r5, %r4, %r3; ld.global.u32 %r6, [%rd5];\n"
     "st.shared.u32 [%r5], %r6; mov.u32 %r7, 64; bar.sync 0;\n"
     "L: setp.ge.u32 %p1, %r16, %r7; @%p1 bra S; add.u32 %r8, %r16, %r7;\n"
     "setp.ge.u32 %p3, %r8, %r15; @%p3 bra S; shl.b32 %r9, %r8, 2; add.u32 %r20, %r4, %r9;\n"
     "ld.shared.u32 %r21, [%r20]; ld.shared.u32 %r22, [%r5]; add.u32 %r23, %r21, %r22;\n"
     "st.shared.u32 [%r5], %r23; S: bar.sync 0; shr.u32 %r7, %r7, 1;\n"
     "setp.ne.u32 %p2, %r7, 0; @%p2 bra L; ld.shared.u32 %r24, [sh]; add.u32 %r24, %r24, %r16;\n"
     "st.global.u32 [%rd3], %r24; ret; }\n"},
    {"values live across a barrier", true,
     "ld.global.u32 %r3, [%rd5]; ld.global.u32 %r4, [%rd1+12]; setp.gt.u32 %p1, %r3, 50;\n"
     "setp.gt.u32 %p2, %r4, 5; cvt.u64.u32 %rd6, %r3; bar.sync 0; mov.u32 %r5, 1;\n"
     "@%p1 add.u32 %r5, %r5, 10; @%p2 add.u32 %r5, %r5, 100; bar.sync 0; cvt.u32.u64 %r6, %rd6;\n"
     "add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r4; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"the kernel ends with its last loop", true,
     "setp.ge.u32 %p3, %r12, 5; @%p3 bra M; add.u32 %r9, %r9, 1; M: bar.sync 0;\n"
     "and.b32 %r3, %r1, 3; mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; st.global.u32 [%rd3], %r4;\n"
     "setp.le.u32 %p1, %r4, %r3; @%p1 bra L; ret; }\n"},
    {"a count of predicates at barriers", true,
     "ld.global.u32 %r3, [%rd5]; setp.gt.u32 %p1, %r3, 50; setp.gt.u32 %p2, %r3, 300;\n"
     "mov.u32 %r4, 0; mov.u32 %r5, 0; L: bar.red.popc.u32 %r6, 0, %p1; add.u32 %r4, %r4, %r6;\n"
     "add.u32 %r5, %r5, 1; setp.ge.u32 %p3, %r5, 3; bar.red.and.pred %p4, 0, %p3;\n"
     "@!%p4 bra L; bar.red.or.pred %p5, 0, %p1; bar.red.or.pred %p6, 0, %p2;\n"
     "bar.red.and.pred %p7, 0, !%p2; @%p5 add.u32 %r4, %r4, 1000; @%p6 add.u32 %r4, %r4, 5000;\n"
     "@%p7 add.u32 %r4, %r4, 20000; st.global.u32 [%rd3], %r4; ret; }\n"},
    {"a count at barriers to which some warps do not come", true,
     "setp.ge.u32 %p1, %r16, 32; @%p1 bra END; bar.red.popc.u32 %r3, 0, !%p1;\n"
     "bar.red.and.pred %p2, 0, !%p1; selp.u32 %r4, 100, 0, %p2; add.u32 %r3, %r3, %r4;\n"
     "st.global.u32 [%rd3], %r3; END: ret; }\n"},
    {"lanes gone before a barrier", true,
     "and.b32 %r3, %r16, 1; setp.eq.u32 %p1, %r3, 1; @%p1 ret; bar.sync 0;\n"
     "st.global.u32 [%rd3], %r1; ret; }\n"},
    {"lanes gone in a loop around a barrier", true,
     "and.b32 %r3, %r16, 3; mov.u32 %r4, 0; L: bar.sync 0; st.global.u32 [%rd3], %r4;\n"
     "setp.eq.u32 %p1, %r3, %r4; @%p1 exit; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3;\n"
     "@%p2 bra L; st.global.u32 [%rd3], %r4; ret; }\n"},
    {"warps that end before others wait", true,
     "setp.ge.u32 %p1, %r16, 32; @%p1 bra END; bar.sync 0; st.global.u32 [%rd3], %r1;\n"
     "END: ret; }\n"},
};

static const struct {
    unsigned threads, width, blocks;
} launches[] = {{64, 0, 2},  {96, 32, 2}, {100, 0, 3}, {128, 16, 1}, {64, 8, 2},
                {60, 12, 1}, {7, 0, 2},   {48, 16, 1}, {1, 0, 3}};

static void
run_kernel(const struct kernel *k, enum exec_tier tier, unsigned l, uint32_t *in, uint32_t *out)
{
    struct {
        void *in, *out;
        uint32_t n;
    } params = {in, out, 83};
    const struct exec_launch launch = {.blocks = launches[l].blocks,
                                       .threads = launches[l].threads,
                                       .width = launches[l].width,
                                       .params = &params,
                                       .size = sizeof(params),
                                       .meets = k->meets && tier == EXEC_BASELINE};
    char text[8192];
    struct exec e;

    snprintf(text, sizeof(text), "%s%s", HEAD, k->body);
    memset(out, 0xcc, WORDS * sizeof(*out));
    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", k->name, e.why.text);
    if (tier == EXEC_COMPILED && e.why.text[0])
        fail_msg("%s has another shape: %s", k->name, e.why.text);
    if (strstr(k->name, "wait for other"))
        assert_true(e.yields > 0);
    if (tier == EXEC_COMPILED && k->meets)
        assert_true(e.info.flags & HED_PTX_CUT);
    exec_close(&e);
}

static void
compare(const struct kernel *k, unsigned l, const uint32_t *a, const uint32_t *b, const char *with)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (a[i] != b[i])
            fail_msg("%s, %u threads of width %u: word %u is %u, %u %s", k->name,
                     launches[l].threads, launches[l].width, i, a[i], b[i], with);
}

static void
all_tiers_leave_the_same_memory(void **state)
{
    uint32_t *in = calloc(WORDS, 4), *warp = calloc(WORDS, 4), *other = calloc(WORDS, 4);

    (void)state;
    assert_true(in && warp && other);
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u >> 24;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        for (unsigned l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
            run_kernel(&kernels[i], EXEC_COMPILED, l, in, warp);
            if (kernels[i].meets)
                continue;
            run_kernel(&kernels[i], EXEC_BASELINE, l, in, other);
            compare(&kernels[i], l, warp, other, "in the baseline tier");
        }
    }
    free(in);
    free(warp);
    free(other);
}

/* What each thread gets that counts three times how many words are over 50. */
static uint32_t
want_count(const uint32_t *in, unsigned n)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < n; i++)
        count += in[i] > 50;
    return 3 * count + (count ? 1000 : 0) + 20000;
}

/* What thread `own` of a block of n threads leaves in word t of a kernel in which threads meet. */
static uint32_t
want_word(const struct kernel *k, const uint32_t *in, unsigned t, unsigned n)
{
    const unsigned own = t % n, first = t - own;
    uint32_t want = 0;

    if (strstr(k->name, "below"))
        return own == 0 ? 55 : t - 1;
    if (strstr(k->name, "live"))
        return 1 + (in[t] > 50 ? 10 : 0) + (in[3] > 5 ? 100 : 0) + in[t] + in[3];
    if (strstr(k->name, "last"))
        return (t & 3) + 1;
    if (strstr(k->name, "gone before"))
        return own & 1 ? 0xcccccccc : t;
    if (strstr(k->name, "gone in a loop"))
        return own & 3;
    if (strstr(k->name, "do not come"))
        return own < 32 ? 100 + (n < 32 ? n : 32) : 0xcccccccc;
    if (strstr(k->name, "predicates"))
        return want_count(in + first, n);
    if (strstr(k->name, "end"))
        return own < 32 ? t : 0xcccccccc;
    for (unsigned i = 0; i < n; i++)
        want += in[first + i];
    return want + (strstr(k->name, "tree") ? own : 0);
}

static void
check_meeting(const struct kernel *k, enum exec_tier tier, unsigned l, uint32_t *in, uint32_t *out)
{
    const unsigned n = launches[l].threads;

    run_kernel(k, tier, l, in, out);
    for (unsigned t = 0; t < n * launches[l].blocks; t++)
        if (out[t] != want_word(k, in, t, n))
            fail_msg("%s, %u threads of width %u%s: word %u is %u, not %u", k->name, n,
                     launches[l].width, tier == EXEC_BASELINE ? ", baseline tier" : "", t, out[t],
                     want_word(k, in, t, n));
}

/* Where threads meet, the results are known. */
static void
barriers_cut_a_kernel(void **state)
{
    uint32_t *in = calloc(WORDS, 4), *out = calloc(WORDS, 4);

    (void)state;
    assert_true(in && out);
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u >> 24;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        for (unsigned l = 0; kernels[i].meets && l < sizeof(launches) / sizeof(launches[0]); l++) {
            check_meeting(&kernels[i], EXEC_COMPILED, l, in, out);
            check_meeting(&kernels[i], EXEC_BASELINE, l, in, out);
        }
    }
    free(in);
    free(out);
}

/* Where some lanes run, a row may be loaded whole, but never from a page that only the others could
 * mean. */
static void
idle_lanes_read_no_other_page(void **state)
{
    const struct kernel k = {
        "rows between two pages", false,
        "setp.lt.u32 %p1, %r1, 5; @%p1 bra END; setp.ge.u32 %p1, %r1, %r2; @%p1 bra END;\n"
        "ld.global.u32 %r3, [%rd5]; st.global.u32 [%rd3], %r3; END: ret; }\n"};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *out = calloc(WORDS, 4);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_non_null(out);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < 3 * page / 4; i++)
        ((uint32_t *)pages)[i] = (uint32_t)i;
    assert_int_equal(mprotect(pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(pages + 2 * page, page, PROT_NONE), 0);
    for (unsigned l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
        for (int way = 0; way < 2; way++) {
            /* The first word that is read begins the page, or the last one ends it: n is 83. */
            uint32_t *in =
                way ? (uint32_t *)(pages + page) - 5 : (uint32_t *)(pages + 2 * page) - 83;
            const unsigned threads = launches[l].threads * launches[l].blocks;

            run_kernel(&k, EXEC_COMPILED, l, in, out);
            for (unsigned i = 0; i < threads; i++)
                assert_int_equal(out[i], i >= 5 && i < 83 ? in[i] : 0xcccccccc);
        }
    }
    munmap(pages, 3 * page);
    free(out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_tiers_leave_the_same_memory),
    cmocka_unit_test(barriers_cut_a_kernel),
    cmocka_unit_test(idle_lanes_read_no_other_page),
};

HED_UNIT_MAIN(tests)
