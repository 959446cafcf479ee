/* The kernels of the stress program, as PTX, and how they are launched. */
#include "stress.h"

#define HEAD(name, params) ".visible .entry " name "(" params ")\n{\n"
#define INDEX                  \
    "mov.u32 %r1, %ctaid.x;\n" \
    "mov.u32 %r2, %ntid.x;\n"  \
    "mov.u32 %r3, %tid.x;\n"   \
    "mad.lo.u32 %r4, %r1, %r2, %r3;\n"
#define REGISTERS ".reg .b32 %r<32>;\n.reg .b64 %d<16>;\n.reg .pred %p<8>;\n"

/* clang-format off */
const char stress_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"

    HEAD("fill", ".param .u64 p, .param .u32 n, .param .u32 first")
    REGISTERS INDEX
    "ld.param.u64 %d1, [p];\n"
    "ld.param.u32 %r5, [n];\n"
    "ld.param.u32 %r6, [first];\n"
    "setp.ge.u32 %p1, %r4, %r5;\n"
    "@%p1 bra DONE;\n"
    "mul.wide.u32 %d2, %r4, 4;\n"
    "add.u64 %d3, %d1, %d2;\n"
    "add.u32 %r7, %r6, %r4;\n"
    "st.global.u32 [%d3], %r7;\n"
    "DONE: ret;\n}\n"

    HEAD("mix", ".param .u64 p, .param .u32 n, .param .u32 times, .param .u32 plus")
    REGISTERS INDEX
    "ld.param.u64 %d1, [p];\n"
    "ld.param.u32 %r5, [n];\n"
    "ld.param.u32 %r6, [times];\n"
    "ld.param.u32 %r7, [plus];\n"
    "setp.ge.u32 %p1, %r4, %r5;\n"
    "@%p1 bra DONE;\n"
    "mul.wide.u32 %d2, %r4, 4;\n"
    "add.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r8, [%d3];\n"
    "mad.lo.u32 %r8, %r8, %r6, %r7;\n"
    "st.global.u32 [%d3], %r8;\n"
    "DONE: ret;\n}\n"

    /* Blocks of 128 threads: reverses the block's words twice, through shared memory. */
    HEAD("turn", ".param .u64 p")
    ".shared .align 4 .b8 room[512];\n"
    REGISTERS INDEX
    "ld.param.u64 %d1, [p];\n"
    "mul.wide.u32 %d2, %r4, 4;\n"
    "add.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r8, [%d3];\n"
    "mov.u32 %r9, room;\n"
    "shl.b32 %r10, %r3, 2;\n"
    "add.u32 %r11, %r9, %r10;\n"
    "st.shared.u32 [%r11], %r8;\n"
    "bar.sync 0;\n"
    "sub.u32 %r12, 508, %r10;\n"
    "add.u32 %r13, %r9, %r12;\n"
    "ld.shared.u32 %r14, [%r13];\n"
    "bar.sync 0;\n"
    "add.u32 %r14, %r14, 1;\n"
    "st.shared.u32 [%r11], %r14;\n"
    "bar.sync 0;\n"
    "ld.shared.u32 %r15, [%r13];\n"
    "st.global.u32 [%d3], %r15;\n"
    "ret;\n}\n"

    HEAD("count", ".param .u64 p, .param .u32 each")
    REGISTERS
    "ld.param.u64 %d1, [p];\n"
    "ld.param.u32 %r1, [each];\n"
    "atom.global.add.u32 %r2, [%d1], %r1;\n"
    "mov.u64 %d2, counter;\n"
    "red.global.add.u32 [%d2], 1;\n"
    "atom.global.max.u32 %r3, [%d1+4], %r2;\n"
    "ret;\n}\n"

    /* All blocks meet: each counts itself, and waits until all have done so. */
    HEAD("meet", ".param .u64 p, .param .u32 blocks")
    REGISTERS INDEX
    "ld.param.u64 %d1, [p];\n"
    "ld.param.u32 %r5, [blocks];\n"
    "setp.ne.u32 %p1, %r3, 0;\n"
    "@%p1 bra HERE;\n"
    "atom.global.add.u32 %r6, [%d1], 1;\n"
    "WAIT:\n"
    "ld.volatile.global.u32 %r7, [%d1];\n"
    "setp.lt.u32 %p2, %r7, %r5;\n"
    "@%p2 bra WAIT;\n"
    "HERE: bar.sync 0;\n"
    "ld.volatile.global.u32 %r8, [%d1];\n"
    "mul.wide.u32 %d2, %r4, 4;\n"
    "add.u64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3+4], %r8;\n"
    "ret;\n}\n"

    /* Adds up the words of a warp, and gives the sum to all lanes. */
    HEAD("sum", ".param .u64 p")
    REGISTERS INDEX
    "ld.param.u64 %d1, [p];\n"
    "mul.wide.u32 %d2, %r4, 4;\n"
    "add.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r5, [%d3];\n"
    "shfl.sync.bfly.b32 %r6, %r5, 16, 31, -1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r5, 4, 31, -1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r5, 2, 31, -1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "st.global.u32 [%d3], %r5;\n"
    "ret;\n}\n"

    HEAD("wrong", ".param .u64 p")
    REGISTERS
    "ld.param.u64 %d1, [p];\n"
    "st.global.u32 [%d1], 1;\n"
    "ret;\n}\n";
/* clang-format on */

CUfunction
stress_function(const struct worker *w, CUmodule m, const char *name)
{
    CUfunction f;

    MUST(w, cuModuleGetFunction(&f, m, name));
    return f;
}

void
stress_fill(const struct worker *w, CUmodule m, CUstream s, CUdeviceptr p, uint32_t n,
            uint32_t first)
{
    void *params[] = {&p, &n, &first};

    MUST(w, cuLaunchKernel(stress_function(w, m, "fill"), (n + 127) / 128, 1, 1, 128, 1, 1, 0, s,
                           params, NULL));
}

void
stress_mix(const struct worker *w, CUmodule m, CUstream s, CUdeviceptr p, uint32_t n,
           uint32_t times, uint32_t plus)
{
    void *params[] = {&p, &n, &times, &plus};

    MUST(w, cuLaunchKernel(stress_function(w, m, "mix"), (n + 63) / 64, 1, 1, 64, 1, 1, 0, s,
                           params, NULL));
}
