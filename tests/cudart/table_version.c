/* Several copies in one call, calls that have more than one version, calls whose default stream is
 * the thread's own, and what comes from outside of CUDA. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#define THREAD_STREAM ((void *)2)

static const struct table_dim3 single = {1, 1, 1};
static const struct table_location first_device = {1, 0};

static struct {
    char *host, *device, *managed;
    void *stream, *event;
} use;

static void
make_memory(void)
{
    use.host = calloc(1, 65536);
    QUIET(cudaMalloc, (void **, size_t), ((void **)&use.device, 65536));
    QUIET(cudaMallocManaged, (void **, size_t, unsigned), ((void **)&use.managed, 65536, 1));
    QUIET(cudaStreamCreate, (void **), (&use.stream));
    QUIET(cudaEventCreate, (void **), (&use.event));
}

struct batch_attributes {
    int order;
    struct table_location source, destination;
    unsigned flags;
};

#define BATCH_OLD                                                                               \
    (void **, void **, size_t *, size_t, struct batch_attributes *, size_t *, size_t, size_t *, \
     void *)
#define BATCH_NEW \
    (void **, void **, size_t *, size_t, struct batch_attributes *, size_t *, size_t, void *)

static void
copies_in_one(void)
{
    void *to[] = {use.device, use.device + 64}, *from[] = {use.host, use.host + 64};
    size_t sizes[] = {64, 64}, index[] = {0}, failed = 77;
    struct batch_attributes how = {.order = 1};

    if (table_edition() < 13) {
        TRY("two", cudaMemcpyBatchAsync, BATCH_OLD,
            (to, from, sizes, 2, &how, index, 1, &failed, use.stream));
        TRY("default stream", cudaMemcpyBatchAsync, BATCH_OLD,
            (to, from, sizes, 2, &how, index, 1, &failed, NULL));
        TRY("none", cudaMemcpyBatchAsync, BATCH_OLD,
            (to, from, sizes, 0, &how, index, 1, &failed, use.stream));
        TRY("no attributes", cudaMemcpyBatchAsync, BATCH_OLD,
            (to, from, sizes, 2, NULL, index, 1, &failed, use.stream));
        how.order = 0;
        TRY("no order", cudaMemcpyBatchAsync, BATCH_OLD,
            (to, from, sizes, 2, &how, index, 1, &failed, use.stream));
    } else {
        TRY("two", cudaMemcpyBatchAsync, BATCH_NEW,
            (to, from, sizes, 2, &how, index, 1, use.stream));
        TRY("default stream", cudaMemcpyBatchAsync, BATCH_NEW,
            (to, from, sizes, 2, &how, index, 1, NULL));
        TRY("none", cudaMemcpyBatchAsync, BATCH_NEW,
            (to, from, sizes, 0, &how, index, 1, use.stream));
        TRY("no attributes", cudaMemcpyBatchAsync, BATCH_NEW,
            (to, from, sizes, 2, NULL, index, 1, use.stream));
        how.order = 0;
        TRY("no order", cudaMemcpyBatchAsync, BATCH_NEW,
            (to, from, sizes, 2, &how, index, 1, use.stream));
    }
}

struct batch_operand {
    int type;
    union {
        struct {
            void *ptr;
            size_t row, layer;
            struct table_location hint;
        } pointer;
        struct {
            void *array;
            struct table_position offset;
        } array;
    } u;
};

struct batch_box {
    struct batch_operand source, destination;
    struct table_extent extent;
    int order;
    unsigned flags;
};

static void
boxes_in_one(void)
{
    struct batch_box box = {
        .source = {.type = 1, .u.pointer = {.ptr = use.host, .hint = {2, 0}}},
        .destination = {.type = 1, .u.pointer = {.ptr = use.device, .hint = {1, 0}}},
        .extent = {16, 2, 1},
        .order = 1,
    };
    size_t failed = 77;

    if (table_edition() < 13) {
        TRY("one", cudaMemcpy3DBatchAsync,
            (size_t, struct batch_box *, size_t *, unsigned long long, void *),
            (1, &box, &failed, 0, use.stream));
        box.source.type = 9;
        TRY("bad operand", cudaMemcpy3DBatchAsync,
            (size_t, struct batch_box *, size_t *, unsigned long long, void *),
            (1, &box, &failed, 0, use.stream));
    } else {
        TRY("one", cudaMemcpy3DBatchAsync, (size_t, struct batch_box *, unsigned long long, void *),
            (1, &box, 0, use.stream));
        TRY("bad flags", cudaMemcpy3DBatchAsync,
            (size_t, struct batch_box *, unsigned long long, void *), (1, &box, 9, use.stream));
        box.source.type = 9;
        TRY("bad operand", cudaMemcpy3DBatchAsync,
            (size_t, struct batch_box *, unsigned long long, void *), (1, &box, 0, use.stream));
    }
}

#define PLACES                                                                   \
    (void **, size_t *, size_t, const struct table_location *, size_t *, size_t, \
     unsigned long long, void *)

void
table_batches(void)
{
    void *ranges[1];
    size_t sizes[] = {65536}, index[] = {0};

    make_memory();
    copies_in_one();
    boxes_in_one();
    ranges[0] = use.managed;
    TRY("one", cudaMemPrefetchBatchAsync, PLACES,
        (ranges, sizes, 1, &first_device, index, 1, 0, use.stream));
    TRY("none", cudaMemPrefetchBatchAsync, PLACES,
        (ranges, sizes, 0, &first_device, index, 1, 0, use.stream));
    TRY("one", cudaMemDiscardBatchAsync, (void **, size_t *, size_t, unsigned long long, void *),
        (ranges, sizes, 1, 0, use.stream));
    TRY("one", cudaMemDiscardAndPrefetchBatchAsync, PLACES,
        (ranges, sizes, 1, &first_device, index, 1, 0, use.stream));
    ranges[0] = use.device;
    TRY("not managed", cudaMemPrefetchBatchAsync, PLACES,
        (ranges, sizes, 1, &first_device, index, 1, 0, use.stream));
    TRY("not managed", cudaMemDiscardBatchAsync,
        (void **, size_t *, size_t, unsigned long long, void *), (ranges, sizes, 1, 0, use.stream));
    TRY("after batches", cudaDeviceSynchronize, (void), ());
}

/* Names with a number at their end, of CUDA 11 and 12. */
static void
numbered_calls(void)
{
    void *graph = NULL, *a = NULL, *b = NULL, *from[2] = {NULL}, *to[2] = {NULL};
    size_t count = 2;

    TRY("plain", cudaMemPrefetchAsync_v2,
        (const void *, size_t, struct table_location, unsigned, void *),
        (use.managed, 65536, first_device, 0, use.stream));
    TRY("plain", cudaMemAdvise_v2, (const void *, size_t, int, struct table_location),
        (use.managed, 65536, 1, first_device));
    QUIET(cudaGraphCreate, (void **, unsigned), (&graph, 0));
    QUIET(cudaGraphAddEmptyNode, (void **, void *, const void *, size_t), (&a, graph, NULL, 0));
    QUIET(cudaGraphAddEmptyNode, (void **, void *, const void *, size_t), (&b, graph, NULL, 0));
    TRY("plain", cudaGraphAddDependencies_v2, (void *, void **, void **, const void *, size_t),
        (graph, &a, &b, NULL, 1));
    TRY("plain", cudaGraphGetEdges_v2, (void *, void **, void **, void *, size_t *),
        (graph, from, to, NULL, &count));
    table_show("%zu", count);
    TRY("plain", cudaGraphNodeGetDependencies_v2, (void *, void **, void *, size_t *),
        (b, from, NULL, &count));
    TRY("plain", cudaGraphNodeGetDependentNodes_v2, (void *, void **, void *, size_t *),
        (a, from, NULL, &count));
    TRY("plain", cudaGraphRemoveDependencies_v2, (void *, void **, void **, const void *, size_t),
        (graph, &a, &b, NULL, 1));
    TRY("no description", cudaGraphAddNode_v2,
        (void **, void *, const void *, const void *, size_t, void *),
        (&a, graph, NULL, NULL, 0, NULL));
    TRY("not capturing", cudaStreamUpdateCaptureDependencies_v2,
        (void *, void **, const void *, size_t, unsigned), (use.stream, NULL, NULL, 0, 1));
    TRY("none", cudaLaunchCooperativeKernelMultiDevice, (void *, unsigned, unsigned), (NULL, 0, 0));
    TRY("plain", cudaSetDoubleForDevice, (double *), (&(double){1}));
    TRY("plain", cudaSetDoubleForHost, (double *), (&(double){1}));
}

/* The calls for programs that were compiled for a default stream per thread. */
static void
copies_of_threads(void)
{
    struct table_copy3d box = {.src = {use.host, 64, 64, 1},
                               .dst = {use.device, 64, 64, 1},
                               .extent = {64, 1, 1},
                               .kind = TO_DEVICE};

    TRY("plain", cudaMemcpy2D_ptds, (void *, size_t, const void *, size_t, size_t, size_t, int),
        (use.device, 64, use.host, 64, 64, 2, TO_DEVICE));
    TRY("plain", cudaMemcpy2DAsync_ptsz,
        (void *, size_t, const void *, size_t, size_t, size_t, int, void *),
        (use.device, 64, use.host, 64, 64, 2, TO_DEVICE, NULL));
    TRY("plain", cudaMemcpy3D_ptds, (const struct table_copy3d *), (&box));
    TRY("plain", cudaMemcpy3DAsync_ptsz, (const struct table_copy3d *, void *), (&box, NULL));
    TRY("default", cudaMemcpy_ptds, (void *, const void *, size_t, int),
        (use.device, use.host, 64, DEFAULT_KIND));
    TRY("plain", cudaMemset2D_ptds, (void *, size_t, int, size_t, size_t),
        (use.device, 64, 1, 64, 2));
    TRY("plain", cudaMemset2DAsync_ptsz, (void *, size_t, int, size_t, size_t, void *),
        (use.device, 64, 1, 64, 2, NULL));
    TRY("plain", cudaMemset3D_ptds, (struct table_pitched, int, struct table_extent),
        (box.dst, 1, box.extent));
    TRY("plain", cudaMemset3DAsync_ptsz, (struct table_pitched, int, struct table_extent, void *),
        (box.dst, 1, box.extent, NULL));
    TRY("plain", cudaMemcpyToSymbol_ptds, (const void *, const void *, size_t, size_t, int),
        (table_dev, use.host, 64, 0, TO_DEVICE));
    TRY("plain", cudaMemcpyFromSymbol_ptds, (void *, const void *, size_t, size_t, int),
        (use.host, table_dev, 64, 0, TO_HOST));
    TRY("plain", cudaMemcpyToSymbolAsync_ptsz,
        (const void *, const void *, size_t, size_t, int, void *),
        (table_dev, use.host, 64, 0, TO_DEVICE, NULL));
    TRY("no symbol", cudaMemcpyFromSymbolAsync_ptsz,
        (void *, const void *, size_t, size_t, int, void *),
        (use.host, NULL, 64, 0, TO_HOST, NULL));
    TRY("plain", cudaMallocAsync_ptsz, (void **, size_t, void *), (&(void *){NULL}, 64, NULL));
    TRY("NULL", cudaFreeAsync_ptsz, (void *, void *), (NULL, NULL));
}

static void
function_of_host(void *data)
{
    (void)data;
}

static void
streams_of_threads(void)
{
    unsigned long long id = 0, other = 0;
    unsigned flags = 77;
    int number = 77;
    void *graph = NULL, *args[] = {&use.device, &number};

    number = 0;
    TRY("plain", cudaStreamGetFlags_ptsz, (void *, unsigned *), (NULL, &flags));
    table_show("%u", flags);
    TRY("plain", cudaStreamGetPriority_ptsz, (void *, int *), (NULL, &number));
    TRY("plain", cudaStreamGetId_ptsz, (void *, unsigned long long *), (NULL, &id));
    QUIET(cudaStreamGetId, (void *, unsigned long long *), (THREAD_STREAM, &other));
    table_show("the thread's %d", id == other);
    TRY("plain", cudaStreamIsCapturing_ptsz, (void *, int *), (NULL, &number));
    TRY("plain", cudaStreamWaitEvent_ptsz, (void *, void *, unsigned), (NULL, use.event, 0));
    TRY("plain", cudaEventRecordWithFlags_ptsz, (void *, void *, unsigned), (use.event, NULL, 0));
    TRY("plain", cudaLaunchHostFunc_ptsz, (void *, void (*)(void *), void *),
        (NULL, function_of_host, NULL));
    number = 1;
    TRY("plain", cudaLaunchCooperativeKernel_ptsz,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, single, single, args, 0, NULL));
    TRY("default stream", cudaStreamBeginCapture_ptsz, (void *, int), (NULL, 2));
    TRY("default stream", cudaStreamEndCapture_ptsz, (void *, void **), (NULL, &graph));
    TRY("after threads", cudaDeviceSynchronize, (void), ());
}

/* What compilers since CUDA 12 call for <<<...>>>. */
static void
calls_of_compilers(void)
{
    void *kernel = NULL;
    int count = 1, here;
    void *args[] = {&use.device, &count};

    table_keep(true);
    TRY("add", __cudaGetKernel, (void **, const void *), (&kernel, &table_add));
    TRY("not a function", __cudaGetKernel, (void **, const void *),
        (&(void *){NULL}, table_stranger(&here)));
    TRY("add", __cudaLaunchKernel,
        (void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (kernel, single, single, args, 0, NULL));
    TRY("no kernel", __cudaLaunchKernel,
        (void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (NULL, single, single, args, 0, NULL));
    TRY("no threads", __cudaLaunchKernel,
        (void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (kernel, single, (struct table_dim3){0, 1, 1}, args, 0, NULL));
    TRY("add", __cudaLaunchKernel_ptsz,
        (void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (kernel, single, single, args, 0, NULL));
    TRY("of compilers", cudaGetLastError, (void), ());
    table_keep(false);
    TRY("of compilers", cudaDeviceSynchronize, (void), ());
}

void
table_variants(void)
{
    table_register();
    make_memory();
    numbered_calls();
    copies_of_threads();
    streams_of_threads();
    calls_of_compilers();
}

struct share_handle {
    char bytes[64];
};

static void
logs_and_notices(void)
{
    unsigned capabilities[2] = {77, 77};
    int operations[2] = {0, 1};
    unsigned long long place = 0;
    char text[4096]; /* driver 580 writes up to 100 bytes more than it is told to */
    size_t size = sizeof text - 256;

    TRY("plain", cudaLogsCurrent, (unsigned long long *, unsigned), (&place, 0));
    TRY("no place", cudaLogsCurrent, (unsigned long long *, unsigned), (NULL, 0));
    TRY("plain", cudaLogsDumpToMemory, (unsigned long long *, char *, size_t *, unsigned),
        (NULL, text, &size, 0));
    TRY("no place", cudaLogsDumpToMemory, (unsigned long long *, char *, size_t *, unsigned),
        (NULL, NULL, &size, 0));
    TRY("no name", cudaLogsDumpToFile, (unsigned long long *, const char *, unsigned),
        (NULL, NULL, 0));
    TRY("no function", cudaLogsRegisterCallback, (void *, void *, void **),
        (NULL, NULL, &(void *){NULL}));
    TRY("none", cudaLogsUnregisterCallback, (void *), (NULL));
    TRY("no function", cudaDeviceRegisterAsyncNotification, (int, void *, void *, void **),
        (0, NULL, NULL, &(void *){NULL}));
    TRY("none", cudaDeviceUnregisterAsyncNotification, (int, void *), (0, NULL));
    TRY("two", cudaDeviceGetHostAtomicCapabilities, (unsigned *, const int *, unsigned, int),
        (capabilities, operations, 2, 0));
    TRY("device 7", cudaDeviceGetHostAtomicCapabilities, (unsigned *, const int *, unsigned, int),
        (capabilities, operations, 2, 7));
    TRY("no places", cudaDeviceGetHostAtomicCapabilities, (unsigned *, const int *, unsigned, int),
        (NULL, NULL, 0, 0));
    TRY("two", cudaDeviceGetP2PAtomicCapabilities, (unsigned *, const int *, unsigned, int, int),
        (capabilities, operations, 2, 0, 1));
    TRY("device 7", cudaDeviceGetP2PAtomicCapabilities,
        (unsigned *, const int *, unsigned, int, int), (capabilities, operations, 2, 0, 7));
}

/* Descriptions of external memory and semaphores: those of later editions only have more room. */
static void
external_objects(void)
{
    struct {
        int type, pad;
        uint64_t handle[2], size;
        unsigned flags, reserved[16];
    } memory = {.type = 1, .handle = {(uint32_t)-1}, .size = 4096, .flags = 1};
    struct {
        int type, pad;
        uint64_t handle[2];
        unsigned flags, reserved[16];
    } semaphore = {.type = 1, .handle = {(uint32_t)-1}};
    struct {
        uint64_t offset, size;
        unsigned flags, reserved[16];
    } buffer = {64, 128, 0, {0}};
    struct {
        uint64_t offset;
        struct table_channel channel;
        struct table_extent extent;
        unsigned flags, levels, reserved[16];
    } mipmap = {64, {32, 0, 0, 0, 2}, {16, 8, 0}, 2, 3, {0}};
    uint64_t signal[32] = {7, 8, 9}, wait[32] = {7, 8, 9, 10};
    void *object = NULL, *handles[1] = {NULL};

    TRY("a bad descriptor", cudaImportExternalMemory, (void **, const void *), (&object, &memory));
    TRY("a bad descriptor", cudaImportExternalSemaphore, (void **, const void *),
        (&object, &semaphore));
    TRY("no memory", cudaExternalMemoryGetMappedBuffer, (void **, void *, const void *),
        (&object, NULL, &buffer));
    TRY("no description", cudaExternalMemoryGetMappedBuffer, (void **, void *, const void *),
        (&object, NULL, NULL));
    TRY("no memory", cudaExternalMemoryGetMappedMipmappedArray, (void **, void *, const void *),
        (&object, NULL, &mipmap));
    TRY("no description", cudaExternalMemoryGetMappedMipmappedArray,
        (void **, void *, const void *), (&object, NULL, NULL));
    mipmap.channel.x = 7;
    TRY("7 bits", cudaExternalMemoryGetMappedMipmappedArray, (void **, void *, const void *),
        (&object, NULL, &mipmap));
    TRY_SOFT("no semaphore", cudaSignalExternalSemaphoresAsync, (void **, void *, unsigned, void *),
             (handles, signal, 1, NULL));
    TRY_SOFT("no parameters", cudaSignalExternalSemaphoresAsync,
             (void **, void *, unsigned, void *), (handles, NULL, 1, NULL));
    TRY("nothing", cudaSignalExternalSemaphoresAsync, (void **, void *, unsigned, void *),
        (handles, signal, 0, NULL));
    TRY_SOFT("no semaphores", cudaSignalExternalSemaphoresAsync,
             (void **, void *, unsigned, void *), (NULL, signal, 1, NULL));
    TRY_SOFT("no semaphore", cudaWaitExternalSemaphoresAsync, (void **, void *, unsigned, void *),
             (handles, wait, 1, NULL));
    TRY_SOFT("no parameters", cudaWaitExternalSemaphoresAsync, (void **, void *, unsigned, void *),
             (handles, NULL, 1, NULL));
    TRY_SOFT("no semaphore", cudaSignalExternalSemaphoresAsync_v2,
             (void **, void *, unsigned, void *), (handles, signal, 1, NULL));
}

static void
graphics(void)
{
    struct share_handle handle;
    unsigned count = 77;
    int devices[4];
    size_t size = 77;
    void *pointer = NULL;

    memset(&handle, 0, sizeof handle);
    TRY("nothing", cudaIpcOpenMemHandle, (void **, struct share_handle, unsigned),
        (&pointer, handle, 1));
    TRY("no flags", cudaIpcOpenMemHandle, (void **, struct share_handle, unsigned),
        (&pointer, handle, 0));
    TRY("no place", cudaIpcOpenMemHandle, (void **, struct share_handle, unsigned),
        (NULL, handle, 1));
    TRY("nothing", cudaIpcOpenEventHandle, (void **, struct share_handle), (&pointer, handle));
    TRY("nothing", cudaGraphicsResourceGetMappedPointer, (void **, size_t *, void *),
        (&pointer, &size, NULL));
    TRY("nothing", cudaGraphicsSubResourceGetMappedArray, (void **, void *, unsigned, unsigned),
        (&pointer, NULL, 0, 0));
    TRY("nothing", cudaGraphicsResourceGetMappedMipmappedArray, (void **, void *),
        (&pointer, NULL));
    TRY("nothing", cudaGraphicsResourceSetMapFlags, (void *, unsigned), (NULL, 0));
    TRY("none", cudaGraphicsUnmapResources, (int, void **, void *), (0, NULL, NULL));
    TRY("buffer 1", cudaGraphicsGLRegisterBuffer, (void **, unsigned, unsigned), (&pointer, 1, 0));
    TRY("image 1", cudaGraphicsGLRegisterImage, (void **, unsigned, unsigned, unsigned),
        (&pointer, 1, 0x0de1, 0));
    TRY("all", cudaGLGetDevices, (unsigned *, int *, unsigned, int), (&count, devices, 4, 1));
    external_objects();
    TRY("none", cudaSignalExternalSemaphoresAsync, (void **, void *, unsigned, void *),
        (NULL, NULL, 0, NULL));
    TRY("none", cudaWaitExternalSemaphoresAsync, (void **, void *, unsigned, void *),
        (NULL, NULL, 0, NULL));
    TRY("none", cudaSignalExternalSemaphoresAsync_v2, (void **, void *, unsigned, void *),
        (NULL, NULL, 0, NULL));
    TRY("none", cudaWaitExternalSemaphoresAsync_v2, (void **, void *, unsigned, void *),
        (NULL, NULL, 0, NULL));
    TRY("not a descriptor", cudaMemPoolImportFromShareableHandle, (void **, void *, int, unsigned),
        (&pointer, NULL, 1, 0));
}

void
table_outside(void)
{
    TRY("to begin with", cudaFree, (void *), (NULL));
    logs_and_notices();
    graphics();
}
