/* Contexts: which calls make one, contexts of the program's own, resets, threads and the end of
 * a process. The driver is called beside the runtime, as programs do that use both. */
#include "table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct table_dim3 one = {1, 1, 1};
static const struct table_dim3 warp = {32, 1, 1};

/* ---- the driver ------------------------------------------------------------------------------ */

static struct {
    int (*init)(unsigned);
    int (*create)(void **, unsigned, int);
    int (*destroy)(void *);
    int (*set)(void *);
    int (*get)(void **);
    int (*retain)(void **, int);
    int (*release)(int);
    int (*reset)(int);
    int (*state)(int, unsigned *, int *);
    int (*alloc)(unsigned long long *, size_t);
} driver;

static void
load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        printf("there is no libcuda.so.1\n");
        exit(2);
    }
    driver.init = dlsym(library, "cuInit");
    driver.create = dlsym(library, "cuCtxCreate_v2");
    driver.destroy = dlsym(library, "cuCtxDestroy_v2");
    driver.set = dlsym(library, "cuCtxSetCurrent");
    driver.get = dlsym(library, "cuCtxGetCurrent");
    driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    driver.release = dlsym(library, "cuDevicePrimaryCtxRelease_v2");
    driver.reset = dlsym(library, "cuDevicePrimaryCtxReset_v2");
    driver.state = dlsym(library, "cuDevicePrimaryCtxGetState");
    driver.alloc = dlsym(library, "cuMemAlloc_v2");
}

/* Which devices have a primary context, and what is current: nothing, something, or `own`. */
static void
show_contexts(void *own)
{
    void *current = NULL;
    unsigned flags;
    int active[2] = {0, 0};
    int device = 77;

    driver.get(&current);
    for (int i = 0; i < 2; i++)
        driver.state(i, &flags, &active[i]);
    if (table_find("cudaGetDevice"))
        ((int (*)(int *))table_function())(&device);
    /* Until CUDA 11, cudaSetDevice() makes a context current that the driver calls inactive. */
    if (table_edition() < 12 && current != own)
        current = NULL;
    table_show("device %d, primary contexts %d %d, current %s", device, active[0], active[1],
               !current         ? "none"
               : current == own ? "own"
                                : "another");
}

static int
launch(const char *label)
{
    char *values = NULL;
    int n = 0;
    void *args[] = {&values, &n};

    QUIET(cudaMalloc, (char **, size_t), (&values, 256));
    return TRY(label, cudaLaunchKernel,
               (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
               (&table_add, one, warp, args, 0, NULL));
}

/* ---- which calls make a context -------------------------------------------------------------- */

void
table_firsts(void)
{
    int device = 0, value = 0;
    void *event = NULL;
    size_t bytes = 0;
    char properties[2048];

    load_driver();
    table_register();
    TRY("plain", cudaGetDevice, (int *), (&device));
    show_contexts(NULL);
    TRY("plain", cudaGetDeviceProperties, (void *, int), (properties, 0));
    show_contexts(NULL);
    TRY("plain", cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 0));
    show_contexts(NULL);
    TRY("plain", cudaDeviceCanAccessPeer, (int *, int, int), (&value, 0, 1));
    show_contexts(NULL);
    TRY("none", cudaFree, (void *), (NULL));
    show_contexts(NULL);
    TRY("plain", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    TRY("again", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    TRY("the other", cudaSetDevice, (int), (1));
    show_contexts(NULL);
    TRY("stack", cudaDeviceGetLimit, (size_t *, int), (&bytes, 0));
    show_contexts(NULL);
    TRY("after the other", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    TRY("plain", cudaEventCreate, (void **), (&event));
    show_contexts(NULL);
    TRY("first", cudaSetDevice, (int), (0));
    show_contexts(NULL);
    launch("first");
    show_contexts(NULL);
}

/* ---- contexts of the program's own ----------------------------------------------------------- */

static void
own_context(void)
{
    void *own = NULL, *p = NULL, *stream = NULL, *old = NULL;
    unsigned flags = 0;

    driver.init(0);
    driver.create(&own, 4, 1);
    TRY("in a context of its own", cudaMalloc, (void **, size_t), (&p, 64));
    show_contexts(own);
    TRY("in a context of its own", cudaGetDeviceFlags, (unsigned *), (&flags));
    table_show("flags %u", flags);
    launch("in a context of its own");
    TRY("in a context of its own", cudaStreamCreate, (void **), (&stream));
    TRY("in a context of its own", cudaDeviceSynchronize, (void), ());
    show_contexts(own);
    TRY("away", cudaSetDevice, (int), (0));
    show_contexts(own);
    TRY("of another context", cudaStreamSynchronize, (void *), (stream));
    TRY("of another context", cudaFree, (void *), (p));
    TRY("to its device", cudaSetDevice, (int), (1));
    show_contexts(own);
    driver.set(own);
    TRY("again", cudaStreamSynchronize, (void *), (stream));
    TRY("over a context of its own", cudaSetDeviceFlags, (unsigned), (2));
    show_contexts(own);
    TRY("over a context of its own", cudaDeviceEnablePeerAccess, (int, unsigned), (0, 0));
    TRY("over a context of its own", cudaDeviceDisablePeerAccess, (int), (0));
    TRY("over a context of its own, itself", cudaDeviceEnablePeerAccess, (int, unsigned), (1, 0));
    TRY("over a context of its own, none", cudaDeviceEnablePeerAccess, (int, unsigned), (7, 0));
    TRY("over a context of its own, none", cudaDeviceDisablePeerAccess, (int), (7));
    show_contexts(own);
    TRY("over a context of its own", cudaDeviceReset, (void), ());
    show_contexts(own);
    TRY("after a reset over it", cudaMalloc, (void **, size_t), (&p, 64));
    show_contexts(own);
    TRY("again", cudaSetDevice, (int), (1));
    TRY("in it", cudaMalloc, (void **, size_t), (&old, 64));
    driver.set(own);
    driver.destroy(own);
    show_contexts(own);
    TRY("after its end", cudaMalloc, (void **, size_t), (&p, 64));
    show_contexts(own);
    TRY("after its end", cudaFree, (void *), (p));
    driver.set(NULL);
    TRY("without one", cudaFree, (void *), (old));
    show_contexts(own);
}

/* ---- resets ---------------------------------------------------------------------------------- */

static void *
reset_elsewhere(void *unused)
{
    TRY("in another thread", cudaSetDevice, (int), (0));
    TRY("in another thread", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    return unused;
}

static void
resets(void)
{
    void *p = NULL, *stream = NULL, *event = NULL;
    int value = 5;
    pthread_t thread;

    QUIET(cudaSetDevice, (int), (0));
    QUIET(cudaMalloc, (void **, size_t), (&p, 64));
    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaEventCreate, (void **), (&event));
    TRY("before", cudaMemcpyToSymbol, (const void *, const void *, size_t, size_t, int),
        (table_dev, &value, sizeof value, 0, TO_DEVICE));
    TRY("with all", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    TRY("of before", cudaFree, (void *), (p));
    TRY_SOFT("of before", cudaStreamSynchronize, (void *), (stream));
    TRY_SOFT("of before", cudaEventSynchronize, (void *), (event));
    TRY_SOFT("of before", cudaStreamDestroy, (void *), (stream));
    launch("after a reset");
    TRY("after a reset", cudaMemcpyFromSymbol, (void *, const void *, size_t, size_t, int),
        (&value, table_dev, sizeof value, 0, TO_HOST));
    table_show("value %d", value);
    TRY("after a reset", cudaDeviceSynchronize, (void), ());
    QUIET(cudaMalloc, (void **, size_t), (&p, 64));
    pthread_create(&thread, NULL, reset_elsewhere, NULL);
    pthread_join(thread, NULL);
    TRY("after a reset elsewhere", cudaGetDevice, (int *), (&value));
    show_contexts(NULL);
    TRY("after a reset elsewhere", cudaMalloc, (void **, size_t), (&p, 64));
    show_contexts(NULL);
    launch("after a reset elsewhere");
    TRY("after a reset elsewhere", cudaDeviceSynchronize, (void), ());
    driver.reset(0);
    TRY("after a reset by the driver", cudaMalloc, (void **, size_t), (&p, 64));
    launch("after a reset by the driver");
    show_contexts(NULL);
}

/* A thread that has no context has nothing to reset. */
static void *
reset_first(void *unused)
{
    TRY("first in a thread", cudaDeviceReset, (void), ());
    show_contexts(NULL);
    return unused;
}

/* What programs do that go on with the driver. */
static void
driver_after_reset(void)
{
    pthread_t thread;
    unsigned long long p = 0;
    void *memory = NULL;

    QUIET(cudaSetDevice, (int), (0));
    QUIET(cudaMalloc, (void **, size_t), (&memory, 64));
    pthread_create(&thread, NULL, reset_first, NULL);
    pthread_join(thread, NULL);
    TRY("after a reset by nobody", cudaMemset, (void *, int, size_t), (memory, 0, 64));
    TRY("before the driver", cudaDeviceReset, (void), ());
    TRY("before the driver", cudaFree, (void *), (NULL));
    table_show("cuMemAlloc: %d", driver.alloc(&p, 64));
    TRY("before the driver, again", cudaDeviceReset, (void), ());
    TRY("before the driver, again", cudaGraphCreate, (void **, unsigned), (&memory, 0));
    table_show("cuMemAlloc: %d", driver.alloc(&p, 64));
}

void
table_contexts(void)
{
    load_driver();
    table_register();
    own_context();
    resets();
    driver_after_reset();
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
in_thread(void *pointer)
{
    int device = 77;

    TRY("in a new thread", cudaPeekAtLastError, (void), ());
    TRY("in a new thread", cudaGetDevice, (int *), (&device));
    show_contexts(NULL);
    TRY("of the other device", cudaFree, (void *), (pointer));
    show_contexts(NULL);
    TRY("in a new thread", cudaSetDevice, (int), (7));
    return NULL;
}

static void *
two_resets(void *barrier)
{
    long failures = 0;

    for (int i = 0; i < 50; i++) {
        void *p;

        pthread_barrier_wait(barrier);
        failures += QUIET(cudaDeviceReset, (void), ()) != 0;
        pthread_barrier_wait(barrier);
        failures += QUIET(cudaMalloc, (void **, size_t), (&p, 64)) != 0;
        failures += QUIET(cudaFree, (void *), (p)) != 0;
    }
    return (void *)failures;
}

void
table_threads(void)
{
    void *p = NULL, *failures = NULL;
    pthread_t threads[2];
    pthread_barrier_t barrier;
    long all = 0;

    load_driver();
    table_register();
    TRY("in the first thread", cudaSetDevice, (int), (1));
    TRY("in the first thread", cudaMalloc, (void **, size_t), (&p, 64));
    table_keep(true);
    TRY("a failure in the first thread", cudaSetDevice, (int), (7));
    pthread_create(&threads[0], NULL, in_thread, p);
    pthread_join(threads[0], NULL);
    TRY("after the thread", cudaPeekAtLastError, (void), ());
    show_contexts(NULL);
    table_keep(false);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, two_resets, &barrier);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &failures);
        all += (long)failures;
    }
    TRY("by two threads", cudaDeviceReset, (void), ());
    table_show("%s", all ? "failures" : "no failure");
}

/* ---- no driver, no device -------------------------------------------------------------------- */

/* table.py sees to it that there is none. */
void
table_nothing(void)
{
    int value = 77;
    void *p = (void *)77;
    char properties[2048];

    table_register();
    TRY("first", cudaGetDeviceCount, (int *), (&value));
    table_show("%d", value);
    value = 77;
    TRY("plain", cudaDriverGetVersion, (int *), (&value));
    table_show("%d", value ? 1 : 0);
    TRY("plain", cudaRuntimeGetVersion, (int *), (&value));
    TRY("plain", cudaGetDevice, (int *), (&value));
    TRY("plain", cudaSetDevice, (int), (0));
    TRY("plain", cudaGetDeviceProperties, (void *, int), (properties, 0));
    TRY("plain", cudaDeviceGetAttribute, (int *, int, int), (&value, 10, 0));
    TRY("plain", cudaMalloc, (void **, size_t), (&p, 64));
    TRY("nothing", cudaMalloc, (void **, size_t), (&p, 0));
    TRY("no place", cudaMalloc, (void **, size_t), (NULL, 64));
    TRY("none", cudaFree, (void *), (NULL));
    TRY("plain", cudaDeviceSynchronize, (void), ());
    TRY("plain", cudaDeviceReset, (void), ());
    TRY("plain", cudaGetDeviceFlags, (unsigned *), ((unsigned *)&value));
    TRY("plain", cudaSetDeviceFlags, (unsigned), (0));
    TRY("nothing", cudaMemcpy, (void *, const void *, size_t, int), (p, p, 0, TO_HOST));
    TRY("plain", cudaStreamCreate, (void **), (&p));
    TRY("plain", cudaStreamSynchronize, (void *), (NULL));
    TRY("no function", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (NULL, one, warp, NULL, 0, NULL));
    TRY("plain", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, one, warp, NULL, 0, NULL));
    TRY("plain", cudaGetSymbolAddress, (void **, const void *), (&p, table_dev));
    TRY("plain", cudaProfilerStart, (void), ());
    TRY("plain", cudaMallocHost, (void **, size_t), (&p, 64));
    TRY("plain", cudaPeekAtLastError, (void), ());
}

/* ---- the end of the process ------------------------------------------------------------------ */

static bool ending;
static void *ended; /* memory of before the end */

/* Runs after what the runtime does at the end, since it was registered before. */
static void
after_the_end(void)
{
    int value = 77;

    if (!ending)
        return;
    TRY("at the end", cudaGetDevice, (int *), (&value));
    TRY("at the end", cudaFree, (void *), (ended));
    TRY("at the end", cudaDeviceSynchronize, (void), ());
    TRY("at the end", cudaPeekAtLastError, (void), ());
    TRY("at the end", cudaGetDeviceCount, (int *), (&value));
    launch("at the end");
    TRY("at the end", cudaDeviceReset, (void), ());
    table_unregister();
    puts("end");
}

__attribute__((constructor)) static void
register_end(void)
{
    atexit(after_the_end);
}

void
table_ends(void)
{
    table_register();
    TRY("before the end", cudaMalloc, (void **, size_t), (&ended, 64));
    launch("before the end");
    if (table_edition() < 11) /* NVIDIA's crashes in whatever is called after its end */
        return;
    ending = true;
    exit(0);
}
