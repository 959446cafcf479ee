/* What does the runtime API cost over the driver calls beneath it? The driver's call itself, the
 * same through heddle's libcudart and, if HED_NVIDIA_CUDART names one, through NVIDIA's, on the
 * same libcuda in the same process. On the null backend (the default) the driver's calls cost
 * little, but NVIDIA's runtime does not start there; HEDDLE_GPU=cpu has both.
 *
 * Prints `name value unit` lines. Rows with `+` are what a runtime adds to the driver's calls; `x`
 * rows are ours by NVIDIA's. Batches of the three alternate, and the best of each is kept, because
 * these machines are noisy.
 */
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "cudart/fatbin.h"
#include "gen/cudart_abi.h"
#include "library.h"

#define BATCHES 200
#define CALLS 2000
#define RUNTIMES 2

/* A kernel, as compilers register one: PTX in a fat binary, with a stub of the host. */
static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .entry empty(.param .u64 p) { ret; }\n";

static void
stub(void)
{
}

struct runtime {
    const char *name;
    void *library;
    cudaError_t (*launch)(const void *, dim3, dim3, void **, size_t, cudaStream_t);
    cudaError_t (*alloc)(void **, size_t);
    cudaError_t (*release)(void *);
    cudaError_t (*device)(int *);
    cudaError_t (*copy)(void *, const void *, size_t, int, cudaStream_t);
    cudaError_t (*record)(cudaEvent_t, cudaStream_t);
    cudaError_t (*last)(void);
    cudaError_t (*new_event)(cudaEvent_t *);
    unsigned (*push)(dim3, dim3, size_t, cudaStream_t);
    cudaError_t (*pop)(dim3 *, dim3 *, size_t *, void *);
};

static void *
runtime_symbol(const struct runtime *r, const char *name)
{
    void *p = dlsym(r->library, name);

    if (!p) {
        fprintf(stderr, "%s: no %s\n", r->name, name);
        exit(1);
    }
    return p;
}

/* ---- many kernels ---------------------------------------------------------------------------- */

#define MANY 5000

static char many_stubs[MANY];
static char many_names[MANY][8];

/* An image with thousands of kernels, as libraries have them. */
static const char *
make_many(void)
{
    const size_t room = MANY * 64 + 128;
    char *text = calloc(1, room);
    size_t at = 0;

    if (!text)
        exit(1);
    at += (size_t)snprintf(text, room, ".version 7.0\n.target sm_52\n.address_size 64\n");
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(many_names[i], sizeof many_names[i], "k%d", i);
        at += (size_t)snprintf(text + at, room - at, ".visible .entry %s() { ret; }\n",
                               many_names[i]);
    }
    return text;
}

/* A driver keeps what it compiled, so that only the first to load an image would pay for that. */
static void
compile_many(const char *text)
{
    CUlibrary once;
    CUkernel kernel;
    int bytes;

    MUST(CU(cuLibraryLoadData)(&once, image_wrap(text), NULL, NULL, 0, NULL, NULL, 0));
    MUST(CU(cuLibraryGetKernel)(&kernel, once, "k0"));
    MUST(CU(cuKernelGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel, 0));
    MUST(CU(cuLibraryUnload)(once));
}

/* What does it cost to ask about kernels, one after the other, of which few are ever launched? The
 * first question loads the image. */
static void
measure_many(const struct runtime *r, const char *text)
{
    struct {
        size_t sizes[3];
        int numbers[40];
    } answer;
    cudaError_t (*ask)(void *, const void *);
    void **(*add_binary)(const void *);
    void (*add_function)(void **, const void *, const char *, const char *, int, void *, void *,
                         void *, void *, int *);
    uint64_t start = hed_now_ns(), took[4];
    void **handle;

    *(void **)&ask = runtime_symbol(r, "cudaFuncGetAttributes");
    *(void **)&add_binary = runtime_symbol(r, "__cudaRegisterFatBinary");
    *(void **)&add_function = runtime_symbol(r, "__cudaRegisterFunction");
    handle = add_binary(image_wrap(text));
    for (int i = 0; i < MANY; i++)
        add_function(handle, &many_stubs[i], many_names[i], many_names[i], -1, NULL, NULL, NULL,
                     NULL, NULL);
    took[0] = hed_now_ns() - start;
    for (int round = 1; round < 4; round++) {
        const int first = round == 1 ? 0 : 1, end = round == 1 ? 1 : MANY;

        start = hed_now_ns();
        for (int i = first; i < end; i++)
            if (ask(&answer, &many_stubs[i]) != cudaSuccess) {
                fprintf(stderr, "%s: cudaFuncGetAttributes failed\n", r->name);
                exit(1);
            }
        took[round] = hed_now_ns() - start;
    }
    printf("%d kernels: %-8s registered in %.0f us; cudaFuncGetAttributes: the first %.0f us, each "
           "%.2f us, again %.2f us\n",
           MANY, r->name, (double)took[0] / 1e3, (double)took[1] / 1e3,
           (double)took[2] / 1e3 / (MANY - 1), (double)took[3] / 1e3 / (MANY - 1));
}

/* False if it is not given. Two libraries of one name can both be open. */
static bool
open_runtime(struct runtime *r, const char *name, const char *setting)
{
    const char *path = getenv(setting);
    void **(*add_binary)(const void *);
    void (*add_function)(void **, const void *, const char *, const char *, int, void *, void *,
                         void *, void *, int *);
    void (*add_end)(void **);
    void **handle;

    if (!path)
        return false;
    *r = (struct runtime){.name = name, .library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!r->library) {
        fprintf(stderr, "%s: %s\n", setting, dlerror());
        exit(1);
    }
    *(void **)&r->launch = runtime_symbol(r, "cudaLaunchKernel");
    *(void **)&r->alloc = runtime_symbol(r, "cudaMalloc");
    *(void **)&r->release = runtime_symbol(r, "cudaFree");
    *(void **)&r->device = runtime_symbol(r, "cudaGetDevice");
    *(void **)&r->copy = runtime_symbol(r, "cudaMemcpyAsync");
    *(void **)&r->record = runtime_symbol(r, "cudaEventRecord");
    *(void **)&r->last = runtime_symbol(r, "cudaGetLastError");
    *(void **)&r->new_event = runtime_symbol(r, "cudaEventCreate");
    *(void **)&r->push = runtime_symbol(r, "__cudaPushCallConfiguration");
    *(void **)&r->pop = runtime_symbol(r, "__cudaPopCallConfiguration");
    *(void **)&add_binary = runtime_symbol(r, "__cudaRegisterFatBinary");
    *(void **)&add_function = runtime_symbol(r, "__cudaRegisterFunction");
    *(void **)&add_end = runtime_symbol(r, "__cudaRegisterFatBinaryEnd");
    handle = add_binary(image_wrap(ptx));
    add_function(handle, (const void *)stub, "empty", "empty", -1, NULL, NULL, NULL, NULL, NULL);
    add_end(handle);
    return true;
}

enum what { LAUNCH, CHEVRONS, ALLOC_FREE, GET_DEVICE, COPY_ASYNC, EVENT_RECORD, GET_LAST, WHATS };

static const char *const what_names[] = {
    "cudaLaunchKernel",     "push, pop, cudaLaunchKernel",
    "cudaMalloc, cudaFree", "cudaGetDevice",
    "cudaMemcpyAsync",      "cudaEventRecord",
    "cudaGetLastError",
};

static struct {
    CUfunction kernel;
    CUevent event;
    __typeof__(&cuLaunchKernel) launch;
    __typeof__(&cuMemAlloc_v2) alloc;
    __typeof__(&cuMemFree_v2) release;
    __typeof__(&cuCtxGetDevice) device;
    __typeof__(&cuMemcpyHtoDAsync_v2) copy;
    __typeof__(&cuEventRecord) record;
    __typeof__(&cuCtxSynchronize) wait;
} driver;

static char data[64];
static CUdeviceptr memory;
static void *parameter;
static void *parameters[] = {&parameter};

static bool
driver_batch(enum what what)
{
    CUresult e = CUDA_SUCCESS;
    CUdeviceptr p;
    CUdevice d;

    for (int i = 0; i < CALLS && e == CUDA_SUCCESS; i++)
        switch (what) {
        case LAUNCH:
        case CHEVRONS:
            e = driver.launch(driver.kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
            break;
        case ALLOC_FREE:
            e = driver.alloc(&p, 1024);
            e = e == CUDA_SUCCESS ? driver.release(p) : e;
            break;
        case GET_DEVICE:
            e = driver.device(&d);
            break;
        case COPY_ASYNC:
            e = driver.copy(memory, data, sizeof data, NULL);
            break;
        case EVENT_RECORD:
            e = driver.record(driver.event, NULL);
            break;
        default:
            break;
        }
    return e == CUDA_SUCCESS;
}

static bool
runtime_batch(const struct runtime *r, enum what what)
{
    const dim3 one = {1, 1, 1}, block = {32, 1, 1};
    cudaError_t e = cudaSuccess;
    dim3 g, b;
    size_t shared;
    cudaStream_t stream;
    void *p;
    int d;

    for (int i = 0; i < CALLS && e == cudaSuccess; i++)
        switch (what) {
        case LAUNCH:
            e = r->launch((const void *)stub, one, block, parameters, 0, NULL);
            break;
        case CHEVRONS:
            r->push(one, block, 0, NULL);
            r->pop(&g, &b, &shared, &stream);
            e = r->launch((const void *)stub, g, b, parameters, shared, stream);
            break;
        case ALLOC_FREE:
            e = r->alloc(&p, 1024);
            e = e == cudaSuccess ? r->release(p) : e;
            break;
        case GET_DEVICE:
            e = r->device(&d);
            break;
        case COPY_ASYNC:
            e = r->copy((void *)(uintptr_t)memory, data, sizeof data, cudaMemcpyHostToDevice, NULL);
            break;
        case EVENT_RECORD:
            e = r->record((cudaEvent_t)driver.event, NULL);
            break;
        case GET_LAST:
            e = r->last();
            break;
        default:
            break;
        }
    return e == cudaSuccess;
}

static void
keep_best(double *best, uint64_t start)
{
    const double ns = (double)(hed_now_ns() - start) / CALLS;

    *best = ns < *best ? ns : *best;
}

static void
measure(const struct runtime *all, size_t count, enum what what)
{
    double best[RUNTIMES] = {1e9, 1e9};
    double direct = 1e9;

    for (int b = 0; b < BATCHES; b++) {
        uint64_t start;

        MUST(driver.wait());
        start = hed_now_ns();
        if (!driver_batch(what)) {
            fprintf(stderr, "driver: %s failed\n", what_names[what]);
            exit(1);
        }
        keep_best(&direct, start);
        for (size_t i = 0; i < count; i++) {
            MUST(driver.wait());
            start = hed_now_ns();
            if (!runtime_batch(&all[i], what)) {
                fprintf(stderr, "%s: %s failed\n", all[i].name, what_names[what]);
                exit(1);
            }
            keep_best(&best[i], start);
        }
    }
    printf("%-28s driver   %6.1f ns\n", what_names[what], direct);
    for (size_t i = 0; i < count; i++)
        printf("%-28s %-8s %6.1f ns  + %.1f ns\n", what_names[what], all[i].name, best[i],
               best[i] - direct);
    if (count == 2)
        printf("%-28s ours     %6.2f x\n", what_names[what], best[0] / best[1]);
}

int
main(void)
{
    struct runtime all[RUNTIMES];
    size_t count = 0;
    CUlibrary module;

    setenv("HEDDLE_GPU", "null", 0);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    open_library();
    open_context();
    driver.launch = CU(cuLaunchKernel);
    driver.alloc = CU(cuMemAlloc_v2);
    driver.release = CU(cuMemFree_v2);
    driver.device = CU(cuCtxGetDevice);
    driver.copy = CU(cuMemcpyHtoDAsync_v2);
    driver.record = CU(cuEventRecord);
    driver.wait = CU(cuCtxSynchronize);
    MUST(CU(cuLibraryLoadData)(&module, image_wrap(ptx), NULL, NULL, 0, NULL, NULL, 0));
    MUST(CU(cuLibraryGetKernel)((CUkernel *)&driver.kernel, module, "empty"));
    MUST(CU(cuEventCreate)(&driver.event, 0));
    MUST(CU(cuMemAlloc_v2)(&memory, sizeof data));
    count += open_runtime(&all[count], "ours", "HED_CUDART");
    count += open_runtime(&all[count], "NVIDIA's", "HED_NVIDIA_CUDART");
    for (int w = 0; w < WHATS; w++)
        measure(all, count, (enum what)w);
    if (count == 2) { /* the null backend has no kernels to ask about */
        const char *many = make_many();

        compile_many(many);
        for (size_t i = 0; i < count; i++)
            measure_many(&all[i], many);
    }
    return 0;
}
