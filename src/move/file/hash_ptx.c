/* The hash of a chunk as a kernel. See hash.h. This text is written by hand, after what nvcc makes
 * of the same function in CUDA C (-arch=compute_75): one block of 128 threads per piece, and thread
 * t has lanes 2 t and 2 t + 1 in registers, so that it reads 16 bytes at a time. It uses nothing
 * newer than PTX 6.0, so every driver and the CPU GPU take it.
 */
#include "move/file/hash.h"

/* Mixes the state of a lane. */
#define HALF(a, b)                                                                   \
    "mov.b64 {%lo, %hi}, %" b "; mad.wide.u32 %" a ", %lo, %hi, %" a "; mov.b64 %" b \
    ", {%hi, %lo};\n"
#define MIX(a, b) HALF(a, b) HALF(b, a) HALF(a, b)

/* Puts two words into the state of a lane. */
#define TAKE(a, b, x, y) \
    "xor.b64 %" a ", %" a ", %" x "; xor.b64 %" b ", %" b ", %" y ";\n" MIX(a, b)

/* v = scatter(4 t + n), where %n is 4 t. */
#define SCATTER(v, n)                                         \
    "add.u64 %" v ", %n, " n ";\n"                            \
    "mul.lo.u64 %" v ", %" v ", 0x9e3779b97f4a7c15;\n"        \
    "shr.u64 %x0, %" v ", 30; xor.b64 %" v ", %" v ", %x0;\n" \
    "mul.lo.u64 %" v ", %" v ", 0xbf58476d1ce4e5b9;\n"        \
    "shr.u64 %x0, %" v ", 27; xor.b64 %" v ", %" v ", %x0;\n" \
    "mul.lo.u64 %" v ", %" v ", 0x94d049bb133111eb;\n"        \
    "shr.u64 %x0, %" v ", 31; xor.b64 %" v ", %" v ", %x0;\n"

/* v = the word at byte %at + offset, as far as it lies below the size; %p is the piece. */
#define LOAD_TAIL(v, offset, label)                                        \
    "mov.u64 %" v ", 0; add.u64 %i, %at, " offset "; add.u64 %e, %i, 8;\n" \
    "min.u64 %e, %e, %size; mov.u32 %shift, 0;\n" label ":\n"              \
    "setp.ge.u64 %done, %i, %e;\n"                                         \
    "@%done bra " label "_END;\n"                                          \
    "add.u64 %from, %p, %i; ld.global.u8 %byte, [%from];\n"                \
    "shl.b64 %byte, %byte, %shift; or.b64 %" v ", %" v ", %byte;\n"        \
    "add.u32 %shift, %shift, 8; add.u64 %i, %i, 1;\n"                      \
    "bra " label ";\n" label "_END:\n"

/* Loads stripe number k of a round of four; takes one. */
#define LOAD(k, low, high)                                        \
    "ld.global.v2.u64 {%x" k "0, %x" k "1}, [%from + " low "];\n" \
    "ld.global.v2.u64 {%y" k "0, %y" k "1}, [%from + " high "];\n"
#define TAKE_BOTH(k) TAKE("a0", "b0", "x" k "0", "y" k "0") TAKE("a1", "b1", "x" k "1", "y" k "1")

/* One line of PTX per line. */
/* clang-format off */
const char hed_snap_hash_ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry hed_snap_hash(.param .u64 pieces, .param .u64 out, .param .u32 count)\n"
    ".maxntid 128, 1, 1\n"
    "{\n"
    ".reg .pred %done, %last;\n"
    ".reg .u32 %t, %c, %count, %blocks, %lo, %hi, %shift, %mine, %other, %k;\n"
    ".reg .u64 %pieces, %out, %p, %size, %left, %from, %n, %at, %i, %e, %byte;\n"
    ".reg .b64 %a0, %b0, %a1, %b1, %x0, %x1;\n"
    ".reg .b64 %x00, %x01, %y00, %y01, %x10, %x11, %y10, %y11;\n"
    ".reg .b64 %x20, %x21, %y20, %y21, %x30, %x31, %y30, %y31;\n"
    ".shared .align 16 .b8 states[4096];\n"
    "ld.param.u64 %pieces, [pieces]; cvta.to.global.u64 %pieces, %pieces;\n"
    "ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;\n"
    "ld.param.u32 %count, [count];\n"
    "mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %blocks, %nctaid.x;\n"
    "mov.u32 %mine, states; shl.b32 %k, %t, 4; add.u32 %mine, %mine, %k;\n"

    "NEXT:\n"
    "setp.ge.u32 %done, %c, %count;\n"
    "@%done bra END;\n"
    "mul.wide.u32 %from, %c, 16; add.u64 %from, %from, %pieces;\n"
    "ld.global.v2.u64 {%p, %size}, [%from]; cvta.to.global.u64 %p, %p;\n"
    "mul.wide.u32 %n, %t, 4;\n"
    SCATTER("a0", "1") SCATTER("b0", "2") SCATTER("a1", "3") SCATTER("b1", "4")

    /* Whole stripes, four at a time, then one at a time. */
    "mul.wide.u32 %from, %t, 16; add.u64 %from, %from, %p; shr.u64 %left, %size, 12;\n"
    "FOUR:\n"
    "setp.lt.u64 %done, %left, 4;\n"
    "@%done bra ONE;\n"
    LOAD("0", "0", "2048") LOAD("1", "4096", "6144")
    LOAD("2", "8192", "10240") LOAD("3", "12288", "14336")
    TAKE_BOTH("0") TAKE_BOTH("1") TAKE_BOTH("2") TAKE_BOTH("3")
    "add.u64 %from, %from, 16384; sub.u64 %left, %left, 4;\n"
    "bra FOUR;\n"
    "ONE:\n"
    "setp.eq.u64 %done, %left, 0;\n"
    "@%done bra TAIL;\n"
    LOAD("0", "0", "2048")
    TAKE_BOTH("0")
    "add.u64 %from, %from, 4096; sub.u64 %left, %left, 1;\n"
    "bra ONE;\n"

    "TAIL:\n"
    "and.b64 %at, %size, 4095; setp.eq.u64 %done, %at, 0;\n"
    "@%done bra JOIN;\n"
    "sub.u64 %at, %size, %at; mul.wide.u32 %i, %t, 16; add.u64 %at, %at, %i;\n"
    LOAD_TAIL("x00", "0", "T0") LOAD_TAIL("x01", "8", "T1")
    LOAD_TAIL("y00", "2048", "T2") LOAD_TAIL("y01", "2056", "T3")
    TAKE_BOTH("0")

    /* The states are joined in shared memory: 256, 128, ... 1. */
    "JOIN:\n"
    "add.u32 %other, %mine, %k;\n"
    "st.shared.v2.u64 [%other], {%a0, %b0}; st.shared.v2.u64 [%other + 16], {%a1, %b1};\n"
    "mov.u32 %shift, 128;\n"
    "HALVE:\n"
    "bar.sync 0;\n"
    "setp.ge.u32 %done, %t, %shift;\n"
    "@%done bra WAIT;\n"
    "ld.shared.v2.u64 {%a0, %b0}, [%mine]; shl.b32 %other, %shift, 4;\n"
    "add.u32 %other, %other, %mine; ld.shared.v2.u64 {%x0, %x1}, [%other];\n"
    MIX("a0", "b0")
    TAKE("a0", "b0", "x0", "x1")
    "st.shared.v2.u64 [%mine], {%a0, %b0};\n"
    "WAIT:\n"
    "shr.u32 %shift, %shift, 1; setp.ne.u32 %last, %shift, 0;\n"
    "@%last bra HALVE;\n"
    "setp.ne.u32 %done, %t, 0;\n"
    "@%done bra STEP;\n"
    "xor.b64 %a0, %a0, %size;\n"
    MIX("a0", "b0") MIX("a0", "b0") MIX("a0", "b0") MIX("a0", "b0")
    "mul.wide.u32 %i, %c, 16; add.u64 %i, %i, %out; st.global.v2.u64 [%i], {%a0, %b0};\n"
    "STEP:\n"
    "bar.sync 0;\n"
    "add.u32 %c, %c, %blocks;\n"
    "bra NEXT;\n"

    "END:\n"
    "ret;\n"
    "}\n";
/* clang-format on */
