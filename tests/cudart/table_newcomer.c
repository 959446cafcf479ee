/* Threads that have no context yet: each call is the first one of a thread of its own. Shows what
 * the call answers there, and whether the thread has a context after it. */
#include "table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES 4096

static const struct table_dim3 one = {1, 1, 1};
static const struct table_channel floats = {32, 0, 0, 0, 2};

static struct {
    int (*current)(void **);
    char *device, *gone[4]; /* memory; the other pieces are there to be freed */
    char *host, *old_host, page[3 * BYTES];
    char *managed;
    void *array, *old_array, *mipmap, *old_mipmap;
    void *stream, *old_stream, *event, *old_event, *other_event;
    void *graph, *old_graph, *branching, *node, *copy, *kernel, *exec, *old_exec, *object;
    void *pool, *old_pool;
    unsigned long long texture;
    char values[BYTES];
    void *out; /* where calls put handles */
    size_t size;
    int number;
} use;

/* ---- threads --------------------------------------------------------------------------------- */

/* A list of calls: makes the one with this number. */
typedef bool calls_of(int number);

struct newcomer {
    calls_of *list;
    int number;
    bool made;
};

static __thread int line;

static bool
show_newcomer(int result)
{
    void *current = NULL;

    if (result == TABLE_ABSENT)
        return true;
    use.current(&current);
    table_show("a context: %s", current ? "yes" : "no");
    return true;
}

/* Counts the calls of a list in `line`. */
#define NEW(label, name, types, args)                            \
    do {                                                         \
        if (line++ == number)                                    \
            return show_newcomer(TRY(label, name, types, args)); \
    } while (0)

static void *
come(void *arg)
{
    struct newcomer *n = arg;

    line = 0;
    n->made = n->list(n->number);
    return NULL;
}

static void
newcomers(calls_of *list)
{
    struct newcomer n = {.list = list, .made = true};
    pthread_t thread;

    QUIET(cudaDeviceSynchronize, (void), ()); /* streams and events are asked what is done */
    for (; n.made; n.number++) {
        if (pthread_create(&thread, NULL, come, &n) != 0) {
            printf("there is no thread\n");
            exit(2);
        }
        pthread_join(thread, NULL);
    }
}

/* ---- the calls ------------------------------------------------------------------------------- */

static bool
device_calls(int number)
{
    char properties[2048], name[32];
    int priority[2];

    NEW("plain", cudaGetDevice, (int *), (&use.number));
    NEW("plain", cudaGetDeviceCount, (int *), (&use.number));
    NEW("plain", cudaGetDeviceFlags, (unsigned *), ((unsigned *)&use.number));
    NEW("plain", cudaGetDeviceProperties, (void *, int), (properties, 0));
    NEW("plain", cudaDeviceGetAttribute, (int *, int, int), (&use.number, 10, 0));
    NEW("plain", cudaDeviceGetPCIBusId, (char *, int, int), (name, sizeof name, 0));
    NEW("plain", cudaDeviceCanAccessPeer, (int *, int, int), (&use.number, 0, 1));
    NEW("plain", cudaRuntimeGetVersion, (int *), (&use.number));
    NEW("plain", cudaDriverGetVersion, (int *), (&use.number));
    NEW("the first", cudaSetDevice, (int), (0));
    NEW("plain", cudaSetDeviceFlags, (unsigned), (0));
    NEW("stack", cudaDeviceGetLimit, (size_t *, int), (&use.size, 0));
    NEW("stack", cudaDeviceSetLimit, (int, size_t), (0, 4096));
    NEW("plain", cudaDeviceGetCacheConfig, (int *), (&use.number));
    NEW("plain", cudaDeviceSetCacheConfig, (int), (0));
    NEW("plain", cudaDeviceGetStreamPriorityRange, (int *, int *), (priority, priority + 1));
    NEW("plain", cudaDeviceSynchronize, (void), ());
    NEW("plain", cudaDeviceGetDefaultMemPool, (void **, int), (&use.out, 0));
    NEW("plain", cudaDeviceGetMemPool, (void **, int), (&use.out, 0));
    NEW("plain", cudaDeviceGraphMemTrim, (int), (0));
    NEW("plain", cudaCtxResetPersistingL2Cache, (void), ());
    NEW("plain", cudaProfilerStart, (void), ());
    NEW("plain", cudaProfilerStop, (void), ());
    NEW("relaxed", cudaThreadExchangeStreamCaptureMode, (int *), (&(int){2}));
    NEW("plain", cudaGetLastError, (void), ());
    return false;
}

static bool
memory_calls(int number)
{
    struct table_pitched pitched;
    struct table_pointer pointer;

    NEW("plain", cudaMalloc, (void **, size_t), (&use.out, BYTES));
    NEW("no bytes", cudaMalloc, (void **, size_t), (&use.out, 0));
    NEW("no place", cudaMalloc, (void **, size_t), (NULL, BYTES));
    NEW("plain", cudaFree, (void *), (use.gone[0]));
    NEW("nothing", cudaFree, (void *), (NULL));
    NEW("plain", cudaMallocPitch, (void **, size_t *, size_t, size_t),
        (&use.out, &use.size, 64, 2));
    NEW("plain", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (&pitched, (struct table_extent){64, 2, 2}));
    NEW("plain", cudaMallocManaged, (void **, size_t, unsigned), (&use.out, BYTES, 1));
    NEW("plain", cudaMallocHost, (void **, size_t), (&use.out, BYTES));
    NEW("plain", cudaHostAlloc, (void **, size_t, unsigned), (&use.out, BYTES, 0));
    NEW("plain", cudaFreeHost, (void *), (use.old_host));
    NEW("nothing", cudaFreeHost, (void *), (NULL));
    NEW("plain", cudaHostRegister, (void *, size_t, unsigned), (use.page, BYTES, 0));
    NEW("plain", cudaHostUnregister, (void *), (use.page));
    NEW("plain", cudaHostGetDevicePointer, (void **, void *, unsigned), (&use.out, use.host, 0));
    NEW("plain", cudaHostGetFlags, (unsigned *, void *), ((unsigned *)&use.number, use.host));
    NEW("plain", cudaMallocAsync, (void **, size_t, void *), (&use.out, BYTES, NULL));
    NEW("in a stream", cudaMallocAsync, (void **, size_t, void *), (&use.out, BYTES, use.stream));
    NEW("plain", cudaFreeAsync, (void *, void *), (use.gone[1], NULL));
    NEW("in a stream", cudaFreeAsync, (void *, void *), (use.gone[2], use.stream));
    NEW("plain", cudaMallocFromPoolAsync, (void **, size_t, void *, void *),
        (&use.out, BYTES, use.pool, use.stream));
    NEW("plain", cudaMemPoolTrimTo, (void *, size_t), (use.pool, 0));
    NEW("plain", cudaMemPoolGetAttribute, (void *, int, void *), (use.pool, 4, &use.values));
    NEW("plain", cudaMemPoolDestroy, (void *), (use.old_pool));
    NEW("plain", cudaMemGetInfo, (size_t *, size_t *), (&use.size, &use.size));
    NEW("device", cudaPointerGetAttributes, (void *, const void *), (&pointer, use.device));
    NEW("not known", cudaPointerGetAttributes, (void *, const void *), (&pointer, use.values));
    NEW("to the device", cudaMemPrefetchAsync,
        (const void *, size_t, struct table_location, unsigned, void *),
        (use.managed, BYTES, (struct table_location){1, 0}, 0, NULL));
    return false;
}

static bool
copy_calls(int number)
{
    void *d = use.device, *h = use.values;

    NEW("to the device", cudaMemcpy, (void *, const void *, size_t, int), (d, h, 64, TO_DEVICE));
    NEW("to the host", cudaMemcpy, (void *, const void *, size_t, int), (h, d, 64, TO_HOST));
    NEW("on the device", cudaMemcpy, (void *, const void *, size_t, int),
        (d, use.device + 64, 64, ON_DEVICE));
    NEW("on the host", cudaMemcpy, (void *, const void *, size_t, int),
        (h, use.values + 64, 64, TO_HOST_FROM_HOST));
    NEW("any", cudaMemcpy, (void *, const void *, size_t, int), (d, h, 64, DEFAULT_KIND));
    NEW("nothing", cudaMemcpy, (void *, const void *, size_t, int), (d, h, 0, TO_DEVICE));
    NEW("bad kind", cudaMemcpy, (void *, const void *, size_t, int), (d, h, 64, BAD_KIND));
    NEW("to the device", cudaMemcpyAsync, (void *, const void *, size_t, int, void *),
        (d, h, 64, TO_DEVICE, NULL));
    NEW("in a stream", cudaMemcpyAsync, (void *, const void *, size_t, int, void *),
        (d, h, 64, TO_DEVICE, use.stream));
    NEW("to the device", cudaMemcpy2D, (void *, size_t, const void *, size_t, size_t, size_t, int),
        (d, 64, h, 64, 32, 2, TO_DEVICE));
    NEW("in a stream", cudaMemcpy2DAsync,
        (void *, size_t, const void *, size_t, size_t, size_t, int, void *),
        (d, 64, h, 64, 32, 2, TO_DEVICE, use.stream));
    NEW("plain", cudaMemcpy2DToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
        (use.array, 0, 0, h, 64, 32, 2, TO_DEVICE));
    NEW("plain", cudaMemcpy3D, (const struct table_copy3d *),
        (&(struct table_copy3d){.src = {h, 64, 64, 2},
                                .dst = {d, 64, 64, 2},
                                .extent = {32, 2, 1},
                                .kind = TO_DEVICE}));
    NEW("plain", cudaMemcpyPeer, (void *, int, const void *, int, size_t),
        (d, 0, use.device + 64, 0, 64));
    NEW("plain", cudaMemset, (void *, int, size_t), (d, 1, 64));
    NEW("in a stream", cudaMemsetAsync, (void *, int, size_t, void *), (d, 1, 64, use.stream));
    NEW("plain", cudaMemset2D, (void *, size_t, int, size_t, size_t), (d, 64, 1, 32, 2));
    NEW("plain", cudaMemcpyToSymbol, (const void *, const void *, size_t, size_t, int),
        (table_dev, h, 4, 0, TO_DEVICE));
    NEW("plain", cudaMemcpyFromSymbol, (void *, const void *, size_t, size_t, int),
        (h, table_dev, 4, 0, TO_HOST));
    NEW("plain", cudaGetSymbolAddress, (void **, const void *), (&use.out, table_dev));
    NEW("plain", cudaGetSymbolSize, (size_t *, const void *), (&use.size, table_dev));
    return false;
}

static void
do_nothing(void *unused)
{
    (void)unused;
}

static void
do_nothing_then(void *stream, int status, void *unused)
{
    (void)stream, (void)status, (void)unused;
}

static bool
stream_calls(int number)
{
    float ms;

    NEW("plain", cudaStreamCreate, (void **), (&use.out));
    NEW("plain", cudaStreamCreateWithFlags, (void **, unsigned), (&use.out, 1));
    NEW("plain", cudaStreamCreateWithPriority, (void **, unsigned, int), (&use.out, 1, 0));
    NEW("plain", cudaStreamDestroy, (void *), (use.old_stream));
    NEW("default", cudaStreamQuery, (void *), (NULL));
    NEW("plain", cudaStreamQuery, (void *), (use.stream));
    NEW("default", cudaStreamSynchronize, (void *), (NULL));
    NEW("plain", cudaStreamSynchronize, (void *), (use.stream));
    NEW("default", cudaStreamWaitEvent, (void *, void *, unsigned), (NULL, use.event, 0));
    NEW("plain", cudaStreamWaitEvent, (void *, void *, unsigned), (use.stream, use.event, 0));
    NEW("plain", cudaStreamGetFlags, (void *, unsigned *), (use.stream, (unsigned *)&use.number));
    NEW("plain", cudaStreamGetDevice, (void *, int *), (use.stream, &use.number));
    NEW("plain", cudaStreamGetPriority, (void *, int *), (use.stream, &use.number));
    NEW("default", cudaStreamIsCapturing, (void *, int *), (NULL, &use.number));
    NEW("plain", cudaStreamIsCapturing, (void *, int *), (use.stream, &use.number));
    NEW("plain", cudaStreamBeginCapture, (void *, int), (use.stream, 2));
    NEW("plain", cudaStreamEndCapture, (void *, void **), (use.stream, &use.out));
    NEW("of another", cudaStreamCopyAttributes, (void *, void *), (use.stream, use.stream));
    NEW("window", cudaStreamGetAttribute, (void *, int, void *), (use.stream, 1, &use.values));
    NEW("window", cudaStreamSetAttribute, (void *, int, const void *),
        (use.stream, 1, &use.values));
    NEW("plain", cudaStreamAddCallback, (void *, void (*)(void *, int, void *), void *, unsigned),
        (use.stream, do_nothing_then, NULL, 0));
    NEW("plain", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (use.stream, do_nothing, NULL));
    NEW("plain", cudaEventCreate, (void **), (&use.out));
    NEW("plain", cudaEventCreateWithFlags, (void **, unsigned), (&use.out, 2));
    NEW("default", cudaEventRecord, (void *, void *), (use.other_event, NULL));
    NEW("plain", cudaEventRecord, (void *, void *), (use.event, use.stream));
    NEW("plain", cudaEventSynchronize, (void *), (use.event));
    NEW("plain", cudaEventQuery, (void *), (use.event));
    NEW("plain", cudaEventElapsedTime, (float *, void *, void *), (&ms, use.event, use.event));
    NEW("plain", cudaEventDestroy, (void *), (use.old_event));
    return false;
}

static bool
kernel_calls(int number)
{
    struct table_function_info info;
    int count = 1;
    void *args[] = {&use.device, &count};

    NEW("default", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, one, one, args, 0, NULL));
    NEW("plain", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, one, one, args, 0, use.stream));
    NEW("no threads", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, one, (struct table_dim3){0, 1, 1}, args, 0, NULL));
    NEW("plain", cudaLaunchCooperativeKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, one, one, args, 0, use.stream));
    NEW("plain", cudaFuncGetAttributes, (void *, const void *), (&info, &table_add));
    NEW("plain", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 8, 0));
    NEW("plain", cudaFuncSetCacheConfig, (const void *, int), (&table_add, 0));
    NEW("plain", cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *, const void *, int, size_t),
        (&use.number, &table_add, 32, 0));
    NEW("plain", cudaFuncGetName, (const char **, const void *),
        ((const char **)&use.out, &table_add));
    NEW("plain", cudaGetFuncBySymbol, (void **, const void *), (&use.out, &table_add));
    NEW("plain", cudaGetKernel, (void **, const void *), (&use.out, &table_add));
    return false;
}

static bool
array_calls(int number)
{
    struct table_resource resource = {0};
    struct table_texture texture = {.max_level = 1};
    struct table_channel channel;
    struct table_extent extent;

    resource.u.array = use.array;
    NEW("plain", cudaMallocArray, (void **, const struct table_channel *, size_t, size_t, unsigned),
        (&use.out, &floats, 16, 16, 0));
    NEW("plain", cudaMalloc3DArray,
        (void **, const struct table_channel *, struct table_extent, unsigned),
        (&use.out, &floats, (struct table_extent){16, 16, 2}, 0));
    NEW("plain", cudaMallocMipmappedArray,
        (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
        (&use.out, &floats, (struct table_extent){16, 16, 0}, 2, 0));
    NEW("plain", cudaGetMipmappedArrayLevel, (void **, void *, unsigned),
        (&use.out, use.mipmap, 0));
    NEW("plain", cudaArrayGetInfo, (void *, void *, unsigned *, void *),
        (&channel, &extent, (unsigned *)&use.number, use.array));
    NEW("plain", cudaGetChannelDesc, (void *, void *), (&channel, use.array));
    NEW("plain", cudaFreeArray, (void *), (use.old_array));
    NEW("nothing", cudaFreeArray, (void *), (NULL));
    NEW("plain", cudaFreeMipmappedArray, (void *), (use.old_mipmap));
    NEW("plain", cudaCreateTextureObject, (void *, const void *, const void *, const void *),
        (&use.texture, &resource, &texture, NULL));
    NEW("plain", cudaGetTextureObjectResourceDesc, (void *, unsigned long long),
        (&resource, use.texture));
    NEW("plain", cudaDestroyTextureObject, (unsigned long long), (use.texture));
    NEW("plain", cudaCreateSurfaceObject, (void *, const void *), (&use.texture, &resource));
    NEW("plain", cudaDestroySurfaceObject, (unsigned long long), (use.texture));
    return false;
}

static bool
graph_calls(int number)
{
    struct table_host_node host = {do_nothing, NULL};
    struct table_memset_node set = {use.device, 0, 1, 1, 64, 1};
    struct table_copy3d copy = {.src = {use.values, 64, 64, 1},
                                .dst = {use.device, 64, 64, 1},
                                .extent = {64, 1, 1},
                                .kind = TO_DEVICE};

    NEW("plain", cudaGraphCreate, (void **, unsigned), (&use.out, 0));
    NEW("plain", cudaGraphAddEmptyNode, (void **, void *, void *, size_t),
        (&use.out, use.graph, NULL, 0));
    NEW("plain", cudaGraphAddHostNode, (void **, void *, void *, size_t, const void *),
        (&use.out, use.graph, NULL, 0, &host));
    NEW("plain", cudaGraphAddMemsetNode, (void **, void *, void *, size_t, const void *),
        (&use.out, use.graph, NULL, 0, &set));
    NEW("plain", cudaGraphAddMemcpyNode, (void **, void *, void *, size_t, const void *),
        (&use.out, use.graph, NULL, 0, &copy));
    NEW("plain", cudaGraphNodeGetType, (void *, int *), (use.node, &use.number));
    NEW("plain", cudaGraphKernelNodeGetAttribute, (void *, int, void *),
        (use.kernel, 1, &use.values));
    NEW("plain", cudaGraphKernelNodeSetAttribute, (void *, int, const void *),
        (use.kernel, 1, &use.values));
    NEW("plain", cudaGraphNodeGetEnabled, (void *, void *, unsigned *),
        (use.exec, use.kernel, (unsigned *)&use.number));
    NEW("plain", cudaGraphNodeSetEnabled, (void *, void *, unsigned), (use.exec, use.kernel, 1));
    NEW("plain", cudaGraphConditionalHandleCreate, (void *, void *, unsigned, unsigned),
        (&use.texture, use.branching, 0, 0));
    NEW("plain", cudaGraphMemcpyNodeSetParams, (void *, const void *), (use.copy, &copy));
    NEW("plain", cudaGraphClone, (void **, void *), (&use.out, use.graph));
    NEW("plain", cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long),
        (&use.out, use.graph, 0));
    NEW("default", cudaGraphLaunch, (void *, void *), (use.exec, NULL));
    NEW("plain", cudaGraphLaunch, (void *, void *), (use.exec, use.stream));
    NEW("plain", cudaGraphUpload, (void *, void *), (use.exec, use.stream));
    NEW("plain", cudaGraphExecMemcpyNodeSetParams, (void *, void *, const void *),
        (use.exec, use.copy, &copy));
    NEW("plain", cudaGraphExecDestroy, (void *), (use.old_exec));
    NEW("plain", cudaGraphDestroy, (void *), (use.old_graph));
    NEW("plain", cudaUserObjectCreate, (void **, void *, void (*)(void *), unsigned, unsigned),
        (&use.object, NULL, do_nothing, 1, 1));
    NEW("plain", cudaUserObjectRelease, (void *, unsigned), (use.object, 1));
    return false;
}

/* ---- the area -------------------------------------------------------------------------------- */

static void
make_pool(void **pool)
{
    struct table_pool_props props = {.alloc_type = 1, .location = {1, 0}};

    QUIET(cudaMemPoolCreate, (void **, const void *), (pool, &props));
}

static void
make_objects(void)
{
    struct table_copy3d copy = {.src = {use.values, 64, 64, 1},
                                .dst = {use.device, 64, 64, 1},
                                .extent = {64, 1, 1},
                                .kind = TO_DEVICE};
    struct table_kernel_node kernel = {&table_add, one, one, 0, NULL, NULL};
    int count = 1;
    void *args[] = {&use.device, &count};

    kernel.params = args;
    for (int i = 0; i < 2; i++) {
        void **array = i ? &use.old_array : &use.array;
        void **mipmap = i ? &use.old_mipmap : &use.mipmap;

        QUIET(cudaMallocArray, (void **, const struct table_channel *, size_t, size_t, unsigned),
              (array, &floats, 16, 16, 2));
        QUIET(cudaMallocMipmappedArray,
              (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
              (mipmap, &floats, (struct table_extent){16, 16, 0}, 2, 0));
        QUIET(cudaStreamCreateWithFlags, (void **, unsigned),
              (i ? &use.old_stream : &use.stream, 1));
        QUIET(cudaEventCreate, (void **), (i ? &use.old_event : &use.event));
        make_pool(i ? &use.old_pool : &use.pool);
        QUIET(cudaGraphCreate, (void **, unsigned), (i ? &use.old_graph : &use.graph, 0));
    }
    QUIET(cudaGraphCreate, (void **, unsigned), (&use.branching, 0));
    QUIET(cudaEventCreate, (void **), (&use.other_event));
    QUIET(cudaEventRecord, (void *, void *), (use.event, use.stream));
    QUIET(cudaGraphAddEmptyNode, (void **, void *, void *, size_t),
          (&use.node, use.graph, NULL, 0));
    QUIET(cudaGraphAddMemcpyNode, (void **, void *, void *, size_t, const void *),
          (&use.copy, use.graph, NULL, 0, &copy));
    QUIET(cudaGraphAddKernelNode, (void **, void *, void *, size_t, const void *),
          (&use.kernel, use.graph, NULL, 0, &kernel));
    for (int i = 0; i < 2; i++)
        QUIET(cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long),
              (i ? &use.old_exec : &use.exec, use.graph, 0));
}

void
table_newcomers(void)
{
    void *library;

    table_register();
    QUIET(cudaMalloc, (char **, size_t), (&use.device, BYTES));
    for (int i = 0; i < 4; i++)
        QUIET(cudaMalloc, (char **, size_t), (&use.gone[i], BYTES));
    QUIET(cudaMallocHost, (char **, size_t), (&use.host, BYTES));
    QUIET(cudaMallocHost, (char **, size_t), (&use.old_host, BYTES));
    QUIET(cudaMallocManaged, (char **, size_t, unsigned), (&use.managed, BYTES, 1));
    make_objects();
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("there is no libcuda.so.1\n");
        exit(2);
    }
    use.current = dlsym(library, "cuCtxGetCurrent");
    newcomers(device_calls);
    newcomers(memory_calls);
    newcomers(copy_calls);
    newcomers(stream_calls);
    newcomers(kernel_calls);
    newcomers(array_calls);
    newcomers(graph_calls);
}
