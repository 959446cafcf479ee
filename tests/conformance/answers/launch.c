/* Launches: shapes and parameters that are refused, and what kernels receive and return. */
#include "answers.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char plain[] =
    HEAD ".visible .entry none() { ret; }\n"
         ".visible .entry two(.param .u64 a, .param .u32 b) { ret; }\n"
         ".visible .entry fixed()\n{\n"
         "    .shared .align 4 .b8 s[4096];\n"
         "    .reg .u32 %r<2>;\n"
         "    mov.u32 %r1, 1;\n"
         "    st.shared.u32 [s], %r1;\n"
         "    ret;\n}\n"
         ".visible .entry max128() .maxntid 128, 1, 1 { ret; }\n"
         ".visible .entry exactly64() .reqntid 64, 1, 1 { ret; }\n"
         /* out[linear thread] = packed special registers */
         ".visible .entry where(.param .u64 out)\n{\n"
         "    .reg .b32 %r<20>;\n    .reg .b64 %d<4>;\n"
         "    ld.param.u64 %d1, [out];\n"
         "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %tid.y;\n    mov.u32 %r3, %tid.z;\n"
         "    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %ntid.y;\n    mov.u32 %r6, %ntid.z;\n"
         "    mov.u32 %r7, %ctaid.x;\n    mov.u32 %r8, %ctaid.y;\n    mov.u32 %r9, %ctaid.z;\n"
         "    mov.u32 %r10, %nctaid.x;\n    mov.u32 %r11, %nctaid.y;\n"
         "    mad.lo.u32 %r12, %r3, %r5, %r2;\n    mad.lo.u32 %r12, %r12, %r4, %r1;\n"
         "    mad.lo.u32 %r13, %r9, %r11, %r8;\n    mad.lo.u32 %r13, %r13, %r10, %r7;\n"
         "    mul.lo.u32 %r14, %r4, %r5;\n    mul.lo.u32 %r14, %r14, %r6;\n"
         "    mad.lo.u32 %r15, %r13, %r14, %r12;\n"
         "    mul.wide.u32 %d2, %r15, 4;\n    add.u64 %d3, %d1, %d2;\n"
         "    shl.b32 %r16, %r1, 8;\n    or.b32 %r16, %r16, %r2;\n    shl.b32 %r16, %r16, 8;\n"
         "    or.b32 %r16, %r16, %r7;\n    shl.b32 %r16, %r16, 8;\n    or.b32 %r16, %r16, %r9;\n"
         "    st.global.u32 [%d3], %r16;\n    ret;\n}\n"
         /* out[0] = dynamic shared bytes, out[1] = total, and the last word is usable */
         ".extern .shared .align 16 .b8 dyn[];\n"
         ".visible .entry shared(.param .u64 out)\n{\n"
         "    .reg .b32 %r<6>;\n    .reg .b64 %d<4>;\n"
         "    ld.param.u64 %d1, [out];\n"
         "    mov.u32 %r1, %dynamic_smem_size;\n"
         "    mov.u32 %r2, dyn;\n    add.u32 %r3, %r2, %r1;\n"
         "    st.shared.u32 [%r3+-4], %r1;\n    ld.shared.u32 %r4, [%r3+-4];\n"
         "    st.global.u32 [%d1], %r4;\n    ret;\n}\n"
         /* out[0..3] = the parameters, of all sizes */
         ".visible .entry params(.param .u64 out, .param .u8 a, .param .u16 b, .param .u32 c,\n"
         "    .param .u64 d, .param .align 16 .b8 e[24])\n{\n"
         "    .reg .b16 %h<4>;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<8>;\n"
         "    ld.param.u64 %d1, [out];\n    ld.param.u8 %h1, [a];\n    ld.param.u16 %h2, [b];\n"
         "    ld.param.u32 %r1, [c];\n    ld.param.u64 %d2, [d];\n    ld.param.u64 %d3, [e+16];\n"
         "    cvt.u64.u16 %d4, %h1;\n    cvt.u64.u16 %d5, %h2;\n    cvt.u64.u32 %d6, %r1;\n"
         "    st.global.u64 [%d1], %d4;\n    st.global.u64 [%d1+8], %d5;\n"
         "    st.global.u64 [%d1+16], %d6;\n    st.global.u64 [%d1+24], %d2;\n"
         "    st.global.u64 [%d1+32], %d3;\n    ret;\n}\n";

/* LAUNCH(f, (grid), (block), shared, parameters, extra) */
#define LAUNCH(f, grid, block, shared, parameters, extra)                                      \
    printf("launch %s: %s\n", #f " " #grid " " #block " " #shared,                             \
           ask_result(launch(f, (unsigned[]){UNPACK grid}, (unsigned[]){UNPACK block}, shared, \
                             parameters, extra)))
#define UNPACK(...) __VA_ARGS__

static CUresult
launch(CUfunction f, const unsigned *g, const unsigned *b, unsigned shared, void **parameters,
       void **extra)
{
    return CU(cuLaunchKernel)(f, g[0], g[1], g[2], b[0], b[1], b[2], shared, NULL, parameters,
                              extra);
}

static void
shapes(void)
{
    CUfunction none;
    CUfunction fixed;
    CUfunction max128;
    CUfunction exactly64;

    ask_context();
    none = ask_kernel(plain, "none");
    fixed = ask_kernel(plain, "fixed");
    max128 = ask_kernel(plain, "max128");
    exactly64 = ask_kernel(plain, "exactly64");
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (0, 1, 1), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (0, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1025, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1025, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1, 65), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (64, 64, 1), 0, NULL, NULL);
    LAUNCH(none, (0x80000000u, 1, 1), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 65536, 1), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 65536), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 49152, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 49153, NULL, NULL);
    LAUNCH(fixed, (1, 1, 1), (1, 1, 1), 45056, NULL, NULL);
    LAUNCH(fixed, (1, 1, 1), (1, 1, 1), 45057, NULL, NULL);
    LAUNCH(max128, (1, 1, 1), (128, 1, 1), 0, NULL, NULL);
    LAUNCH(max128, (1, 1, 1), (129, 1, 1), 0, NULL, NULL);
    LAUNCH(max128, (1, 1, 1), (1, 128, 1), 0, NULL, NULL);
    LAUNCH(exactly64, (1, 1, 1), (64, 1, 1), 0, NULL, NULL);
    LAUNCH(exactly64, (1, 1, 1), (32, 1, 1), 0, NULL, NULL);
    LAUNCH(exactly64, (1, 1, 1), (8, 8, 1), 0, NULL, NULL);
    LAUNCH(NULL, (1, 1, 1), (1, 1, 1), 0, NULL, NULL);
    ASK(cuCtxSynchronize);
    ASK(cuFuncSetAttribute, none, 8, 232448);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 232448, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 232449, NULL, NULL);
    ASK(cuFuncSetAttribute, none, 8, 100);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 101, NULL, NULL);
    ASK(cuCtxSynchronize);
}

static void
parameters(void)
{
    CUfunction two;
    CUfunction none;
    unsigned long long a = 0;
    unsigned b = 0;
    void *list[] = {&a, &b};
    char buffer[64] = {0};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    void *half[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
    void *odd[] = {(void *)3, buffer, CU_LAUNCH_PARAM_END};

    ask_context();
    two = ask_kernel(plain, "two");
    none = ask_kernel(plain, "none");
    LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, list, NULL);
    LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, NULL, NULL);
    LAUNCH(none, (1, 1, 1), (1, 1, 1), 0, list, NULL);
    for (size = 0; size <= 32; size += 4) {
        printf("buffer of %zu: ", size);
        LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, NULL, extra);
    }
    size = 12;
    printf("both: ");
    LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, list, extra);
    printf("no size: ");
    LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, NULL, half);
    printf("unknown word: ");
    LAUNCH(two, (1, 1, 1), (1, 1, 1), 0, NULL, odd);
    ASK(cuCtxSynchronize);
}

static void
values(void)
{
    static unsigned out[4 * 3 * 2 * 24];
    unsigned long long got[5] = {0};
    CUdeviceptr d;
    CUfunction f;
    unsigned char a = 0xab;
    unsigned short b = 0xbcde;
    unsigned c = 0x12345678;
    unsigned long long e[3] = {1, 2, 0x0123456789abcdefull};
    unsigned long long q = 0xfedcba9876543210ull;
    void *one[] = {&d};
    void *six[] = {&d, &a, &b, &c, &q, e};
    unsigned h = 0;
    unsigned bytes = 0;

    ask_context();
    MUST(cuMemAlloc_v2, &d, sizeof out);
    f = ask_kernel(plain, "where");
    LAUNCH(f, (4, 3, 2), (4, 3, 2), 0, one, NULL);
    ASK(cuMemcpyDtoH_v2, out, d, sizeof out);
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
        h = h * 31 + out[i];
    SAY("sum of places", h);
    printf("last: %x\n", out[sizeof out / sizeof out[0] - 1]);
    f = ask_kernel(plain, "shared");
    LAUNCH(f, (1, 1, 1), (1, 1, 1), 1024, one, NULL);
    ASK(cuMemcpyDtoH_v2, &bytes, d, 4);
    SAY("dynamic shared memory", bytes);
    f = ask_kernel(plain, "params");
    LAUNCH(f, (1, 1, 1), (1, 1, 1), 0, six, NULL);
    ASK(cuMemcpyDtoH_v2, got, d, sizeof got);
    for (int i = 0; i < 5; i++)
        printf("parameter: %llx\n", got[i]);
}

static void
attributes(void)
{
    CUlaunchAttribute attribute = {0};
    CUlaunchConfig config = {.gridDimX = 132 * 16,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 128,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    CUfunction f;

    ask_context();
    f = ask_kernel(plain, "none");
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    ASK_AS("cooperative, all at once", cuLaunchKernelEx, &config, f, NULL, NULL);
    config.gridDimX++;
    ASK_AS("cooperative, one more", cuLaunchKernelEx, &config, f, NULL, NULL);
    ASK(cuLaunchCooperativeKernel, f, 132 * 16 + 1, 1, 1, 128, 1, 1, 0, NULL, NULL);
    ASK(cuLaunchCooperativeKernel, f, 132, 1, 1, 128, 1, 1, 0, NULL, NULL);
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = -1;
    ASK_AS("priority", cuLaunchKernelEx, &config, f, NULL, NULL);
    attribute.id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    ASK_AS("ignored", cuLaunchKernelEx, &config, f, NULL, NULL);
    config.attrs = NULL;
    ASK_AS("no list", cuLaunchKernelEx, &config, f, NULL, NULL);
    config.numAttrs = 0;
    ASK_AS("no attributes", cuLaunchKernelEx, &config, f, NULL, NULL);
    ASK(cuLaunchKernelEx, NULL, f, NULL, NULL);
    ASK(cuCtxSynchronize);
}

/* Another context's function, another context's stream, no context. */
static void
contexts(void)
{
    CUcontext c;
    CUstream s;
    CUfunction f;

    ask_context();
    f = ask_kernel(plain, "none");
    MUST(cuStreamCreate, &s, 0);
    MUST(cuCtxCreate_v2, &c, 0, 0);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
    MUST(cuCtxSetCurrent, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
}

ASK_MAIN({"shapes", shapes}, {"parameters", parameters}, {"values", values},
         {"attributes", attributes}, {"contexts", contexts})
