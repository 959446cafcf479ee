/* Beginnings and ends: a runtime that is used before main() and after it, by several threads at
 * once, in a forked child, by plug-ins that come and go, and beside other runtimes.
 *
 *     HEDDLE_LOG=warn cudart_lives order|threads|exit|fork|missing|unusable
 *     cudart_lives plugins PLUGIN
 *     cudart_lives runtimes LIBRARY...
 *
 * Prints what went wrong and ends with 1; 0 if nothing did. */
#include "image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/cudart_abi.h"

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaVDPAUSetVDPAUDevice(void); /* nothing reads its arguments */

#define THREADS 8
#define ROUNDS 40

/* Adds one to a number. */
static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry count(.param .u64 p)\n"
                          "{\n"
                          ".reg .b64 %p; .reg .b32 %a;\n"
                          "ld.param.u64 %p, [p];\n"
                          "atom.global.add.u32 %a, [%p], 1;\n"
                          "ret;\n"
                          "}\n";

static char stub; /* its address is what the program knows the kernel by */
static void **handle;
static void *early; /* memory that was there before main() */
static _Atomic int failures;

static void
expect(bool holds, const char *what)
{
    if (holds)
        return;
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "failed: %s\n", what);
}

static cudaError_t
launch_count(void *p)
{
    const dim3 one = {1, 1, 1};
    void *args[] = {&p};

    return cudaLaunchKernel(&stub, one, one, args, 0, NULL);
}

static unsigned
read_count(void *p)
{
    unsigned n = ~0u;

    expect(cudaMemcpy(&n, p, sizeof n, cudaMemcpyDeviceToHost) == cudaSuccess, "read");
    return n;
}

static void *
make_count(void)
{
    const unsigned zero = 0;
    void *p = NULL;

    expect(cudaMalloc(&p, sizeof zero) == cudaSuccess, "cudaMalloc");
    expect(cudaMemcpy(p, &zero, sizeof zero, cudaMemcpyHostToDevice) == cudaSuccess, "clear");
    return p;
}

/* ---- before main() and after it -------------------------------------------------------------- */

static bool is_ordered;

/* Before the program's own code is registered. */
__attribute__((constructor(101))) static void
use_before_registration(void)
{
    int count = 0;

    expect(cudaGetDeviceCount(&count) == cudaSuccess && count > 0, "count before registration");
    expect(cudaMalloc(&early, 64) == cudaSuccess, "cudaMalloc before registration");
}

static void
unregister(void)
{
    __cudaUnregisterFatBinary(handle);
    handle = NULL;
}

__attribute__((constructor(201))) static void
register_code(void)
{
    handle = __cudaRegisterFatBinary(image_wrap(ptx));
    image_kernel(handle, &stub, "count");
    __cudaRegisterFatBinaryEnd(handle);
    (void)atexit(unregister);
}

__attribute__((constructor(301))) static void
launch_before_main(void)
{
    const unsigned zero = 0;

    expect(cudaMemcpy(early, &zero, sizeof zero, cudaMemcpyHostToDevice) == cudaSuccess, "clear");
    expect(launch_count(early) == cudaSuccess, "launch before main");
}

/* After the code was unregistered: nothing here may crash, whatever it answers. */
__attribute__((destructor(101))) static void
use_after_the_end(void)
{
    unsigned n;

    if (!is_ordered)
        return;
    (void)cudaMemcpy(&n, early, sizeof n, cudaMemcpyDeviceToHost);
    expect(launch_count(early) != cudaSuccess, "launch after the code was unregistered");
    (void)cudaFree(early);
    (void)cudaDeviceSynchronize();
    if (atomic_load(&failures))
        _exit(1);
}

static void
check_order(void)
{
    is_ordered = true;
    expect(launch_count(early) == cudaSuccess, "launch in main");
    expect(read_count(early) == 2, "count of launches");
}

/* ---- threads --------------------------------------------------------------------------------- */

static pthread_barrier_t together;

/* All threads use the kernel for the first time at once. */
static void *
launch_often(void *p)
{
    (void)pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++)
        expect(launch_count(p) == cudaSuccess, "launch in a thread");
    /* The last error is a thread's own. */
    expect(cudaMalloc(NULL, 1) == cudaErrorInvalidValue, "cudaMalloc of nothing");
    expect(cudaGetLastError() == cudaErrorInvalidValue, "a thread's last error");
    return NULL;
}

static void
check_threads(void)
{
    pthread_t threads[THREADS];
    void *p = make_count();

    unregister();
    register_code();
    expect(pthread_barrier_init(&together, NULL, THREADS) == 0, "barrier");
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, launch_often, p) == 0, "thread");
    for (int i = 0; i < THREADS; i++)
        expect(pthread_join(threads[i], NULL) == 0, "join");
    expect(read_count(p) == THREADS * ROUNDS, "launches of all threads");
    expect(cudaGetLastError() == cudaSuccess, "main's last error");
    expect(cudaFree(p) == cudaSuccess, "cudaFree");
}

static _Atomic bool has_launched;

static void *
launch_for_ever(void *p)
{
    for (;;) {
        (void)launch_count(p);
        atomic_store(&has_launched, true);
    }
    return NULL;
}

/* main() returns while threads launch. */
static void
check_exit(void)
{
    void *p = make_count();
    pthread_t thread;

    for (int i = 0; i < 4; i++)
        expect(pthread_create(&thread, NULL, launch_for_ever, p) == 0, "thread");
    while (!atomic_load(&has_launched))
        (void)sched_yield();
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void
check_fork(void)
{
    void *p = make_count();
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
        int count = 0, version = 0;
        void *q;

        /* CUDA is not there in a forked child; it says so. What was asked at first is known. */
        _exit(cudaMalloc(&q, 64) == cudaSuccess || launch_count(p) == cudaSuccess ||
              cudaGetDeviceCount(&count) != cudaSuccess || count < 1 ||
              cudaDriverGetVersion(&version) != cudaSuccess || version < 12000);
    }
    expect(waitpid(child, &status, 0) == child && status == 0, "the child is told");
    expect(launch_count(p) == cudaSuccess && read_count(p) == 1, "the parent goes on");
}

/* ---- calls that are not there ---------------------------------------------------------------- */

/* What the runtime and the driver log while `act` runs; true if all fits into the text. */
static bool
read_log(void (*act)(void), char *text, size_t size)
{
    const int log = dup(STDERR_FILENO);
    ssize_t n;
    int ends[2];

    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return false;
    act();
    (void)dup2(log, STDERR_FILENO);
    (void)close(ends[1]);
    n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0 && (size_t)n < size - 1;
}

static void
call_missing(void)
{
    for (int i = 0; i < 2; i++)
        if (cudaVDPAUSetVDPAUDevice() != cudaErrorNotSupported)
            atomic_fetch_add(&failures, 1);
}

/* They fail each time, and are named in the log the first time. */
static void
check_missing(void)
{
    char text[512];
    const char *first;

    expect(read_log(call_missing, text, sizeof text), "the log");
    first = strstr(text, "cudaVDPAUSetVDPAUDevice is not supported: ");
    expect(first != NULL, "the name of the call in the log");
    expect(first && !strstr(first + 1, "cudaVDPAUSetVDPAUDevice"), "only once");
    expect(cudaGetLastError() == cudaErrorNotSupported, "the last error");
}

static void
launch_unusable(void)
{
    for (int i = 0; i < ROUNDS; i++)
        if (launch_count(early) != cudaErrorNoKernelImageForDevice)
            atomic_fetch_add(&failures, 1);
}

/* Code for later devices only: each launch fails, and the log says why once. */
static void
check_unusable(void)
{
    char text[512];
    const char *first;

    unregister();
    handle = __cudaRegisterFatBinary(image_wrap_as(ptx, 9, 0, 9999));
    image_kernel(handle, &stub, "count");
    __cudaRegisterFatBinaryEnd(handle);
    expect(read_log(launch_unusable, text, sizeof text), "the log");
    first = strstr(text, "an image cannot be loaded");
    expect(first != NULL, "the reason in the log");
    expect(first && !strstr(first + 1, "an image cannot be loaded"), "only once");
    expect(cudaGetLastError() == cudaErrorNoKernelImageForDevice, "the last error");
}

/* ---- plug-ins and other runtimes ------------------------------------------------------------- */

/* The plug-in is lives_plugin.c: it registers when it is loaded, and takes it back at dlclose(). */
static void
check_plugins(const char *path)
{
    void *p = make_count();

    for (int i = 0; i < ROUNDS; i++) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*add)(void *) = NULL;

        if (!plugin) {
            expect(false, dlerror());
            return;
        }
        *(void **)&add = dlsym(plugin, "plugin_add");
        expect(add && add(p) == 0, "the plug-in's launch");
        expect(dlclose(plugin) == 0, "dlclose");
    }
    expect(read_count(p) == ROUNDS * 10, "what the plug-ins added");
    expect(launch_count(p) == cudaSuccess && read_count(p) == ROUNDS * 10 + 1, "our own kernel");
}

/* Another runtime of this process has its own symbols and last errors, and the same memory. */
static void
check_runtime(const char *path, void *p)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void **(*add_binary)(const void *);
    void (*add_function)(void **, const void *, const char *, const char *, int, void *, void *,
                         void *, void *, int *);
    cudaError_t (*launch)(const void *, dim3, dim3, void **, size_t, cudaStream_t);
    cudaError_t (*alloc)(void **, size_t);
    cudaError_t (*last)(void);
    const dim3 one = {1, 1, 1};
    void *args[] = {&p};
    const unsigned before = read_count(p);
    static char other;

    if (!library) {
        expect(false, dlerror());
        return;
    }
    *(void **)&add_binary = dlsym(library, "__cudaRegisterFatBinary");
    *(void **)&add_function = dlsym(library, "__cudaRegisterFunction");
    *(void **)&launch = dlsym(library, "cudaLaunchKernel");
    *(void **)&alloc = dlsym(library, "cudaMalloc");
    *(void **)&last = dlsym(library, "cudaGetLastError");
    add_function(add_binary(image_wrap(ptx)), &other, "count", "count", -1, NULL, NULL, NULL, NULL,
                 NULL);
    expect(launch(&other, one, one, args, 0, NULL) == cudaSuccess, path);
    expect(read_count(p) == before + 1, path);
    expect(alloc(NULL, 1) == cudaErrorInvalidValue, path);
    expect(cudaGetLastError() == cudaSuccess, "our last error, after one of another runtime");
    expect(last() == cudaErrorInvalidValue, "another runtime's last error");
    expect(launch_count(p) == cudaSuccess, "our launch, after one of another runtime");
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "order") == 0)
        check_order();
    else if (strcmp(what, "threads") == 0)
        check_threads();
    else if (strcmp(what, "exit") == 0)
        check_exit();
    else if (strcmp(what, "fork") == 0)
        check_fork();
    else if (strcmp(what, "missing") == 0)
        check_missing();
    else if (strcmp(what, "unusable") == 0)
        check_unusable();
    else if (strcmp(what, "plugins") == 0 && argc > 2)
        check_plugins(argv[2]);
    else if (strcmp(what, "runtimes") == 0)
        for (int i = 2; i < argc; i++)
            check_runtime(argv[i], early);
    else
        expect(false, "usage: see the first lines of lives.c");
    return atomic_load(&failures) != 0;
}
