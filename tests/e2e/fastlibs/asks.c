/* Asks cuBLAS for products, and cuDNN for convolutions (asks_cudnn.c), in every way that heddle run
 * --fast-libs tells apart, and says who has answered: 0 is the CPU's BLAS, 97 is cuDNN, 98 and 99
 * are the versions of cuBLAS that played_cublas.c plays.
 *
 *     asks PLUGIN              asks for all of them
 *     asks PLUGIN end          ends while the BLAS computes
 *     asks PLUGIN wait         ends, and an exit handler waits for the result
 *     asks PLUGIN fork         makes a child that ends while the BLAS computes
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "gen/cuda_abi.h"
#include "harness/patience.h"
#include "played.h"

#define COUNT 4 /* numbers of a matrix of 2 by 2 */

static void *libcuda;

/* Calls a function of the driver, which must not fail. */
#define DRIVER(name, parameters, ...)                                            \
    do {                                                                         \
        CUresult(*f_) parameters = (CUresult(*) parameters)dlsym(libcuda, name); \
        const CUresult r_ = f_ ? f_(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND;         \
                                                                                 \
        if (r_ != CUDA_SUCCESS) {                                                \
            printf("%s: %d\n", name, (int)r_);                                   \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static float *
make_numbers(const float *from)
{
    CUdeviceptr at = 0;

    DRIVER("cuMemAlloc_v2", (CUdeviceptr *, size_t), &at, COUNT * sizeof *from);
    DRIVER("cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t), at, from, COUNT * sizeof *from);
    return (float *)(uintptr_t)at;
}

/* Says who has answered, and the first number of the result. */
void
played_say(const char *what, int status, const float *result)
{
    float out[COUNT];

    DRIVER("cuCtxSynchronize", (void));
    DRIVER("cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t), out, (CUdeviceptr)(uintptr_t)result,
           sizeof out);
    printf("%s: %d %g\n", what, status, (double)out[0]);
}

static void
set_value(struct played_descriptor *d, int attribute, int64_t value, size_t size)
{
    d->values[attribute] = value;
    d->sizes[attribute] = size;
}

static struct played_descriptor
make_layout(void)
{
    struct played_descriptor d = {{0}, {0}};

    set_value(&d, 0, 0, 4); /* floats */
    set_value(&d, 1, 0, 4); /* column by column */
    set_value(&d, 2, 2, 8);
    set_value(&d, 3, 2, 8);
    set_value(&d, 4, 2, 8);
    set_value(&d, 5, 1, 4);
    set_value(&d, 6, 0, 8);
    set_value(&d, 7, 0, 8);
    return d;
}

static struct played_descriptor
make_desc(const float *bias)
{
    struct played_descriptor d = {{0}, {0}};

    set_value(&d, 0, 68, 4); /* sums of floats */
    for (int i = 1; i < 6; i++)
        set_value(&d, i, 0, 4);
    set_value(&d, 6, 2, 4); /* the whole matrix */
    set_value(&d, 7, 6, 4); /* a bias, and nothing below 0 */
    set_value(&d, 8, (int64_t)(uintptr_t)bias, 8);
    set_value(&d, 10, 0, 8);
    for (int i = 17; i < 22; i++)
        set_value(&d, i, 0, 8);
    set_value(&d, 26, -1, 4);
    return d;
}

static void
ask_matmul(CUstream stream, const float *a, const float *b, float *c, const float *bias)
{
    const struct played_descriptor layout = make_layout();
    struct played_descriptor desc = make_desc(bias);
    const float one = 1, zero = 0;
    int handle = 0;

#define MATMUL                                                                                  \
    cublasLtMatmul(&handle, &desc, &one, a, &layout, b, &layout, &zero, c, &layout, c, &layout, \
                   NULL, NULL, 0, stream)
    played_say("matmul with a bias", MATMUL, c);
    for (int i = 29; i <= 30; i++) { /* counters that other kernels set, and that they wait for */
        set_value(&desc, i, 0, 8);
        played_say("matmul without counters", MATMUL, c);
        set_value(&desc, i, (int64_t)(uintptr_t)bias, 8);
        played_say("matmul with counters", MATMUL, c);
        set_value(&desc, i, 0, 0);
    }
    set_value(&desc, 7, 32 | 128, 4);
    played_say("matmul with more than the CPU has", MATMUL, c);
}

#define ASK(handle, m, beta, c) \
    cublasSgemm_v2(handle, 0, 0, m, 2, 2, &one, a, 2, b, 2, &(beta), c, 2)

static float *last_result;

static void
say_last(void)
{
    played_say("at the end", 0, last_result);
}

/* Ends with two products in the stream; the first is being computed. */
static int
end_early(const char *how, struct played_handle *h, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    bool (*computes)(void);
    int status = 0;

    last_result = c;
    if (strcmp(how, "wait") == 0)
        (void)atexit(say_last);
    if (ASK(h, 2, zero, c) != 0 || ASK(h, 2, one, c) != 0)
        return 4;
    computes = (bool (*)(void))dlsym(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD),
                                     "played_computes");
    WAIT_UNTIL(computes());
    if (strcmp(how, "fork") == 0) {
        const pid_t child = fork();

        if (child == 0) {
            alarm(PATIENCE_S / 8);
            exit(0);
        }
        (void)waitpid(child, &status, 0);
    }
    return status ? 5 : 0;
}

int
main(int argc, char **argv)
{
    const float ones[COUNT] = {1, 1, 1, 1}, twos[COUNT] = {2, 2, 2, 2};
    const float one = 1, zero = 0;
    struct played_handle h = {NULL, 0, 0};
    CUcontext context = NULL;
    CUgraph graph = NULL;
    CUstream stream = NULL;

    libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc < 2 || !libcuda)
        return 2;
    DRIVER("cuInit", (unsigned), 0);
    DRIVER("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice), &context, 0);
    DRIVER("cuCtxSetCurrent", (CUcontext), context);
    DRIVER("cuStreamCreate", (CUstream *, unsigned), &stream, 0);
    h.stream = stream;

    float *a = make_numbers(ones), *b = make_numbers(twos), *c = make_numbers(ones);

    if (argc == 3)
        return end_early(argv[2], &h, a, b, c);
    played_say("plain", ASK(&h, 2, zero, c), c);
    played_say("added", ASK(&h, 2, one, c), c);
    played_say("without a handle", ASK(NULL, 2, zero, c), c);
    played_say("of no rows", ASK(&h, 0, zero, c), c);
    played_say("behind the allocation", ASK(&h, 2, zero, c + 1), c);
    h.pointer_mode = 1;
    played_say("factors on the device", ASK(&h, 2, zero, c), c);
    h.pointer_mode = 0;
    h.math_mode = 2;
    played_say("with an order of sums", ASK(&h, 2, zero, c), c);
    h.math_mode = 0;
    played_say("times 0", cublasSgemm_v2(&h, 0, 0, 2, 2, 2, &zero, a, 2, b, 2, &zero, c, 2), c);
    DRIVER("cuStreamBeginCapture_v2", (CUstream, CUstreamCaptureMode), stream,
           CU_STREAM_CAPTURE_MODE_RELAXED);

    const int captured = ASK(&h, 2, zero, c);

    DRIVER("cuStreamEndCapture", (CUstream, CUgraph *), stream, &graph);
    played_say("captured", captured, c);
    ask_matmul(stream, a, b, c, make_numbers(ones));

    played_convolve(&h, make_numbers(ones), make_numbers(twos), make_numbers(ones));

    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*ask)(void *, const float *, const float *, float *) =
        plugin ? (int (*)(void *, const float *, const float *, float *))dlsym(plugin, "plugin_ask")
               : NULL;

    if (!ask)
        return 3;
    played_say("of a plug-in", ask(&h, a, b, c), c);
    h.pointer_mode = 1;
    played_say("of a plug-in, factors on the device", ask(&h, a, b, c), c);
    return 0;
}
