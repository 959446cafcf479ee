/* Does CUDA still work while other programs use the GPU? Each run tests one row.
 *
 *     share_matrix ROW      one of the rows below; without ROW they are listed
 *
 * A row checks what it can, and prints results that are the same in every run. The status is 0, or
 * 1 if something is wrong, or 77 after `refused CALL` if this GPU does not support it. The program
 * needs only a libcuda: NVIDIA's, or heddle's on any backend that runs kernels. */
#include "share_matrix.h"

#include <pthread.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define STEP                                                                         \
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"          \
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %q, %r5, %r0;\n@%q ret;\n"          \
    "mul.wide.u32 %d1, %r5, 4;\nadd.u64 %d0, %d0, %d1;\nld.global.u32 %r6, [%d0];\n" \
    "mad.lo.u32 %r6, %r6, 3, %r1;\nadd.u32 %r6, %r6, %r5;\n"                         \
    "st.global.u32 [%d0], %r6;\nret;\n}\n"
#define BEGIN(name)                                                              \
    ".visible .entry " name "(.param .u64 p, .param .u32 n, .param .u32 a)\n{\n" \
    ".reg .pred %q;\n.reg .b32 %r<10>;\n.reg .b64 %d<4>;\n"                      \
    "ld.param.u64 %d0, [p];\nld.param.u32 %r0, [n];\nld.param.u32 %r1, [a];\n"

/* `late` works first, and adds a value from that which is always 0, so that no compiler can leave
 * the work out. */
static const char ptx[] = HEAD BEGIN("step") STEP BEGIN(
    "late") "mov.u32 %r7, 0;\nmov.u32 %r8, %tid.x;\n"
            "again:\nmad.lo.u32 %r8, %r8, 1664525, 1013904223;\nadd.u32 %r7, %r7, 1;\n"
            "setp.lt.u32 %q, %r7, 20000;\n@%q bra again;\n"
            "shr.u32 %r8, %r8, 16;\nshr.u32 %r8, %r8, 16;\nadd.u32 %r1, %r1, %r8;\n" STEP
            ".visible .entry meet(.param .u64 p, .param .u64 count)\n{\n"
            ".reg .pred %q;\n.reg .b32 %r<6>;\n.reg .b64 %d<4>;\n"
            "ld.param.u64 %d0, [p];\nld.param.u64 %d1, [count];\n"
            "mov.u32 %r0, %nctaid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, 1;\n"
            "atom.global.add.u32 %r3, [%d1], %r2;\n"
            "wait:\nld.volatile.global.u32 %r3, [%d1];\nsetp.lt.u32 %q, %r3, %r0;\n@%q bra wait;\n"
            "mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d0, %d0, %d2;\n"
            "st.global.u32 [%d0], %r3;\nret;\n}\n";

static struct share_gpu gpu;

static void
set_up_device(void)
{
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&gpu.context, 0));
    OK(CU(cuCtxSetCurrent)(gpu.context));
    OK(CU(cuModuleLoadData)(&gpu.module, ptx));
    OK(CU(cuModuleGetFunction)(&gpu.step, gpu.module, "step"));
    OK(CU(cuModuleGetFunction)(&gpu.late, gpu.module, "late"));
    OK(CU(cuModuleGetFunction)(&gpu.meet, gpu.module, "meet"));
}

struct share_gpu *
share_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, set_up_device);
    OK(CU(cuCtxSetCurrent)(gpu.context));
    return &gpu;
}

CUresult
share_step(CUfunction f, CUdeviceptr p, unsigned n, unsigned a, CUstream s)
{
    void *params[] = {&p, &n, &a};

    return CU(cuLaunchKernel)(f, (n + 127) / 128, 1, 1, 128, 1, 1, 0, s, params, NULL);
}

CUdeviceptr
share_memory(unsigned words)
{
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, words * sizeof(unsigned)));
    OK(CU(cuMemsetD32_v2)(p, 0, words));
    /* A fill of device memory may not be complete when it returns, and other streams do not
     * wait. */
    OK(CU(cuCtxSynchronize)());
    return p;
}

void
share_check_host(const char *what, const unsigned *p, unsigned n, unsigned first, unsigned steps)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned v = 0;

        for (unsigned k = 0; k < steps; k++)
            v = v * 3 + first + k + i;
        CHECK(p[i] == v, "%s: word %u is %u, not %u", what, i, p[i], v);
        sum = sum * 31 + v;
    }
    printf("%s: %u\n", what, sum);
}

void
share_check(const char *what, CUdeviceptr p, unsigned n, unsigned first, unsigned steps)
{
    unsigned *host = malloc(n * sizeof *host);

    CHECK(host, "no memory");
    OK(CU(cuMemcpyDtoH_v2)(host, p, n * sizeof *host));
    share_check_host(what, host, n, first, steps);
    free(host);
}

static const struct row {
    const char *name;
    void (*run)(void);
} rows[] = {
    {"legacy", share_legacy},
    {"ptds", share_ptds},
    {"streams", share_streams},
    {"events", share_events},
    {"callbacks", share_callbacks},
    {"threads", share_threads},
    {"steady", share_steady},
    {"children", share_children},
    {"graphs", share_graphs},
    {"capture", share_capture},
    {"cooperative", share_cooperative},
    {"clusters", share_clusters},
    {"attributes", share_attributes},
    {"failing", share_failing},
    {"pools", share_pools},
    {"managed", share_managed},
    {"boxes", share_boxes},
    {"reuse", share_reuse},
};

int
main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (argc < 2) {
            puts(rows[i].name);
        } else if (strcmp(argv[1], rows[i].name) == 0) {
            rows[i].run();
            puts("done");
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
