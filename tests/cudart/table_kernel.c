/* Kernels: what is known about them, occupancy, launches of all kinds, libraries, registration. */
#include "table.h"

#include <string.h>

static const struct table_dim3 one = {1, 1, 1};
static const struct table_dim3 warp = {32, 1, 1};

static void
show_function(const struct table_function_info *info)
{
    table_show(
        "shared %zu, constant %zu, local %zu, threads %d, ptx %d, cache %d, dynamic %d, carve %d",
        info->shared, info->constant, info->local, info->max_threads, info->ptx, info->cache_mode,
        info->max_dynamic, info->preferred);
}

static void
attributes_of_functions(void)
{
    struct table_function_info info;
    int here;

    memset(&info, 0x77, sizeof info);
    TRY("add", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_add));
    show_function(&info);
    if (table_edition() >= 12) {
        table_show("cluster must be set %d, %d x %d x %d, policy %d, non-portable %d",
                   info.cluster_must_be_set, info.cluster_width, info.cluster_height,
                   info.cluster_depth, info.cluster_policy, info.non_portable);
    }
    TRY("bounded", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_bounded));
    show_function(&info);
    TRY("shared", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_shared));
    show_function(&info);
    TRY("no place", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (NULL, &table_add));
    TRY("no function", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, NULL));
    TRY("not a function", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, table_stranger(&here)));
    TRY("a variable", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, table_stranger(table_dev)));
    TRY("missing from the image", cudaFuncGetAttributes,
        (struct table_function_info *, const void *), (&info, &table_missing));
    TRY("dynamic", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 8, 60000));
    TRY("carve-out", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 9, 50));
    TRY("add, changed", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_add));
    show_function(&info);
    TRY("too much dynamic", cudaFuncSetAttribute, (const void *, int, int),
        (&table_add, 8, 1 << 30));
    TRY("negative dynamic", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 8, -1));
    TRY("bad carve-out", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 9, 101));
    TRY("read only", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 0, 1));
    TRY("bad attribute", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 77, 0));
    TRY("no function", cudaFuncSetAttribute, (const void *, int, int), (NULL, 8, 0));
    TRY("not a function", cudaFuncSetAttribute, (const void *, int, int),
        (table_stranger(&here), 8, 0));
    TRY("L1", cudaFuncSetCacheConfig, (const void *, int), (&table_add, 2));
    TRY("bad", cudaFuncSetCacheConfig, (const void *, int), (&table_add, 9));
    TRY("no function", cudaFuncSetCacheConfig, (const void *, int), (NULL, 2));
    TRY("four bytes", cudaFuncSetSharedMemConfig, (const void *, int), (&table_add, 1));
    TRY("bad", cudaFuncSetSharedMemConfig, (const void *, int), (&table_add, 9));
    TRY("no function", cudaFuncSetSharedMemConfig, (const void *, int), (NULL, 1));
}

static void
names_of_functions(void)
{
    const char *name = NULL;
    size_t offset = 77, size = 77;
    void *function = NULL, *kernel = NULL;
    int here;

    TRY("add", cudaFuncGetName, (const char **, const void *), (&name, &table_add));
    table_show("%s", name ? name : "NULL");
    TRY("no place", cudaFuncGetName, (const char **, const void *), (NULL, &table_add));
    TRY("no function", cudaFuncGetName, (const char **, const void *), (&name, NULL));
    TRY("second", cudaFuncGetParamInfo, (const void *, size_t, size_t *, size_t *),
        (&table_add, 1, &offset, &size));
    table_show("%zu bytes at %zu", size, offset);
    TRY("third", cudaFuncGetParamInfo, (const void *, size_t, size_t *, size_t *),
        (&table_add, 2, &offset, &size));
    TRY("no size", cudaFuncGetParamInfo, (const void *, size_t, size_t *, size_t *),
        (&table_add, 1, &offset, NULL));
    TRY("no places", cudaFuncGetParamInfo, (const void *, size_t, size_t *, size_t *),
        (&table_add, 1, NULL, NULL));
    TRY("add", cudaGetFuncBySymbol, (void **, const void *), (&function, &table_add));
    TRY("not a function", cudaGetFuncBySymbol, (void **, const void *),
        (&function, table_stranger(&here)));
    TRY("no function", cudaGetFuncBySymbol, (void **, const void *), (&function, NULL));
    TRY("add", cudaGetKernel, (void **, const void *), (&kernel, &table_add));
    TRY("no place", cudaGetKernel, (void **, const void *), (NULL, &table_add));
    TRY("not a function", cudaGetKernel, (void **, const void *), (&kernel, table_stranger(&here)));
    TRY("no function", cudaGetKernel, (void **, const void *), (&kernel, NULL));
    TRY("missing from the image", cudaGetKernel, (void **, const void *),
        (&kernel, &table_missing));
}

#define ACTIVE (int *, const void *, int, size_t)
#define ACTIVE_FLAGS (int *, const void *, int, size_t, unsigned)

static void
occupancy_of_functions(void)
{
    struct table_launch launch = {.grid = one, .block = warp};
    size_t bytes = 77;
    int blocks = 77, here;

    TRY("128", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, &table_add, 128, 0));
    table_show("%d", blocks);
    TRY("with shared memory", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, &table_add, 128, 40000));
    table_show("%d", blocks);
    TRY("no place", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (NULL, &table_add, 128, 0));
    TRY("no threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, &table_add, 0, 0));
    TRY("too many threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, &table_add, 4096, 0));
    table_show("%d", blocks);
    TRY("no function", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, NULL, 128, 0));
    TRY("not a function", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&blocks, table_stranger(&here), 128, 0));
    TRY("plain", cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, ACTIVE_FLAGS,
        (&blocks, &table_add, 128, 0, 0));
    TRY("caching override", cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, ACTIVE_FLAGS,
        (&blocks, &table_add, 128, 0, 1));
    TRY("bad flags", cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, ACTIVE_FLAGS,
        (&blocks, &table_add, 128, 0, 77));
    TRY("plain", cudaOccupancyAvailableDynamicSMemPerBlock, (size_t *, const void *, int, int),
        (&bytes, &table_bounded, 2, 64));
    table_show("%zu", bytes);
    TRY("no blocks", cudaOccupancyAvailableDynamicSMemPerBlock, (size_t *, const void *, int, int),
        (&bytes, &table_bounded, 0, 64));
    TRY_SOFT("no place", cudaOccupancyAvailableDynamicSMemPerBlock,
             (size_t *, const void *, int, int), (NULL, &table_bounded, 2, 64));
    TRY("plain", cudaOccupancyMaxPotentialClusterSize,
        (int *, const void *, const struct table_launch *), (&blocks, &table_add, &launch));
    TRY("no function", cudaOccupancyMaxPotentialClusterSize,
        (int *, const void *, const struct table_launch *), (&blocks, NULL, &launch));
    TRY("no function", cudaOccupancyMaxActiveClusters,
        (int *, const void *, const struct table_launch *), (&blocks, NULL, &launch));
}

void
table_functions(void)
{
    table_register();
    attributes_of_functions();
    names_of_functions();
    occupancy_of_functions();
}

#define LAUNCH (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *)

/* What the runtime gives for a stub, instead of the stub. */
static void
launches_of_handles(void)
{
    void *kernel = NULL, *function = NULL;

    if (QUIET(cudaGetFuncBySymbol, (void **, const void *), (&function, &table_shared)) == 0)
        TRY("a function", cudaLaunchKernel, LAUNCH, (function, one, warp, NULL, 0, NULL));
    if (QUIET(cudaGetKernel, (void **, const void *), (&kernel, &table_shared)) == 0)
        TRY("a kernel", cudaLaunchKernel, LAUNCH, (kernel, one, warp, NULL, 0, NULL));
}

static void
launches_of_functions(void *stream, void **args)
{
    int here;

    TRY("plain", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, stream));
    TRY("default stream", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, NULL));
    TRY("per thread", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, (void *)2));
    TRY("default stream", cudaLaunchKernel_ptsz, LAUNCH, (&table_add, one, warp, args, 0, NULL));
    TRY("no function", cudaLaunchKernel, LAUNCH, (NULL, one, warp, args, 0, stream));
    TRY("not a function", cudaLaunchKernel, LAUNCH,
        (table_stranger(&here), one, warp, args, 0, stream));
    TRY("a variable", cudaLaunchKernel, LAUNCH,
        (table_stranger(table_dev), one, warp, args, 0, stream));
    TRY("missing from the image", cudaLaunchKernel, LAUNCH,
        (&table_missing, one, warp, args, 0, stream));
    TRY("no blocks", cudaLaunchKernel, LAUNCH,
        (&table_add, (struct table_dim3){0, 1, 1}, warp, args, 0, stream));
    TRY("no threads", cudaLaunchKernel, LAUNCH,
        (&table_add, one, (struct table_dim3){0, 1, 1}, args, 0, stream));
    TRY("too many threads", cudaLaunchKernel, LAUNCH,
        (&table_add, one, (struct table_dim3){2048, 1, 1}, args, 0, stream));
    TRY("too deep", cudaLaunchKernel, LAUNCH,
        (&table_add, one, (struct table_dim3){1, 1, 65}, args, 0, stream));
    TRY("too many blocks", cudaLaunchKernel, LAUNCH,
        (&table_add, (struct table_dim3){1, 70000, 1}, warp, args, 0, stream));
    TRY("over its bounds", cudaLaunchKernel, LAUNCH,
        (&table_bounded, one, (struct table_dim3){128, 1, 1}, args, 0, stream));
    TRY("too much shared memory", cudaLaunchKernel, LAUNCH,
        (&table_add, one, warp, args, 1 << 30, stream));
    TRY("a little too much shared memory", cudaLaunchKernel, LAUNCH,
        (&table_shared, one, warp, NULL, 20000, stream));
    TRY("no arguments", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, NULL, 0, stream));
    TRY("needs none", cudaLaunchKernel, LAUNCH, (&table_shared, one, warp, NULL, 0, stream));
    TRY("after failures", cudaDeviceSynchronize, (void), ());
    TRY("plain", cudaLaunchCooperativeKernel, LAUNCH, (&table_add, one, warp, args, 0, stream));
    TRY("too many blocks", cudaLaunchCooperativeKernel, LAUNCH,
        (&table_add, (struct table_dim3){100000, 1, 1}, warp, args, 0, stream));
    TRY("no function", cudaLaunchCooperativeKernel, LAUNCH, (NULL, one, warp, args, 0, stream));
}

static void
launches_with_attributes(void *stream, void **args)
{
    struct table_attribute attribute = {.id = 2, .value.integer = 1};
    struct table_launch launch = {.grid = one, .block = warp, .stream = stream};

    TRY("plain", cudaLaunchKernelExC, (const struct table_launch *, const void *, void **),
        (&launch, &table_add, args));
    TRY("no function", cudaLaunchKernelExC, (const struct table_launch *, const void *, void **),
        (&launch, NULL, args));
    launch.attributes = &attribute;
    launch.count = 1;
    TRY("cooperative", cudaLaunchKernelExC, (const struct table_launch *, const void *, void **),
        (&launch, &table_add, args));
    launch.attributes = NULL;
    TRY("attributes are missing", cudaLaunchKernelExC,
        (const struct table_launch *, const void *, void **), (&launch, &table_add, args));
    launch.attributes = &attribute;
    attribute.id = 99;
    TRY("bad attribute", cudaLaunchKernelExC, (const struct table_launch *, const void *, void **),
        (&launch, &table_add, args));
    attribute = (struct table_attribute){.id = 0};
    TRY("ignored attribute", cudaLaunchKernelExC,
        (const struct table_launch *, const void *, void **), (&launch, &table_add, args));
    launch.count = 0;
    launch.block.x = 0;
    TRY("no threads", cudaLaunchKernelExC, (const struct table_launch *, const void *, void **),
        (&launch, &table_add, args));
    TRY("default stream", cudaLaunchKernelExC_ptsz,
        (const struct table_launch *, const void *, void **),
        (&(struct table_launch){.grid = one, .block = warp}, &table_add, args));
}

/* What the code behind <<<...>>> does. */
static void
pushed_configurations(void *stream)
{
    struct table_dim3 grid = {7, 7, 7}, block = {7, 7, 7};
    size_t shared = 77;
    void *where = (void *)77;

    TRY("one", __cudaPushCallConfiguration, (struct table_dim3, struct table_dim3, size_t, void *),
        (one, warp, 16, stream));
    TRY("two", __cudaPushCallConfiguration, (struct table_dim3, struct table_dim3, size_t, void *),
        (warp, one, 32, NULL));
    TRY("second", __cudaPopCallConfiguration,
        (struct table_dim3 *, struct table_dim3 *, size_t *, void *),
        (&grid, &block, &shared, &where));
    table_show("grid %u, block %u, shared %zu, stream %d", grid.x, block.x, shared,
               where == stream);
    TRY("first", __cudaPopCallConfiguration,
        (struct table_dim3 *, struct table_dim3 *, size_t *, void *),
        (&grid, &block, &shared, &where));
    table_show("grid %u, block %u, shared %zu, stream %d", grid.x, block.x, shared,
               where == stream);
    TRY("none left", __cudaPopCallConfiguration,
        (struct table_dim3 *, struct table_dim3 *, size_t *, void *),
        (&grid, &block, &shared, &where));
}

void
table_launches(void)
{
    void *stream = NULL, *memory = NULL;
    int values[32], count = 8;
    void *args[] = {&memory, &count};

    table_register();
    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaMalloc, (void **, size_t), (&memory, 4096));
    QUIET(cudaMemset, (void *, int, size_t), (memory, 0, 4096));
    for (int i = 0; i < 32; i++)
        values[i] = i;
    QUIET(cudaMemcpyToSymbol, (const void *, const void *, size_t, size_t, int),
          (table_dev, values, 64, 0, TO_DEVICE));
    launches_of_functions(stream, args);
    QUIET(cudaDeviceSynchronize, (void), ());
    QUIET(cudaMemcpy, (void *, const void *, size_t, int), (values, memory, 64, TO_HOST));
    table_show("values %d %d %d", values[1], values[7], values[8]);
    launches_with_attributes(stream, args);
    pushed_configurations(stream);
    launches_of_handles();
    QUIET(cudaSetDevice, (int), (1));
    TRY("a stream of the other device", cudaLaunchKernel, LAUNCH,
        (&table_shared, one, warp, NULL, 0, stream));
    TRY("on the other device", cudaLaunchKernel, LAUNCH, (&table_shared, one, warp, NULL, 0, NULL));
    TRY("on the other device", cudaDeviceSynchronize, (void), ());
}

#define LOAD (void **, const void *, void *, void **, unsigned, void *, void **, unsigned)

static void
loading_libraries(void)
{
    void *library = (void *)77;
    int option = 99;
    void *value = NULL;

    TRY("nonsense", cudaLibraryLoadData, LOAD,
        (&library, "nonsense", NULL, NULL, 0, NULL, NULL, 0));
    table_show("untouched %d", library == (void *)77);
    TRY("empty", cudaLibraryLoadData, LOAD, (&library, "", NULL, NULL, 0, NULL, NULL, 0));
    TRY("no place", cudaLibraryLoadData, LOAD, (NULL, table_ptx, NULL, NULL, 0, NULL, NULL, 0));
    TRY("no code", cudaLibraryLoadData, LOAD, (&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    TRY("bad option", cudaLibraryLoadData, LOAD,
        (&library, table_ptx, &option, &value, 1, NULL, NULL, 0));
    TRY("options are missing", cudaLibraryLoadData, LOAD,
        (&library, table_ptx, NULL, NULL, 1, NULL, NULL, 0));
    TRY("a fat binary", cudaLibraryLoadData, LOAD,
        (&library, table_fatbin(), NULL, NULL, 0, NULL, NULL, 0));
    TRY("a fat binary", cudaLibraryUnload, (void *), (library));
    TRY("no such file", cudaLibraryLoadFromFile, LOAD,
        (&library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    TRY("no name", cudaLibraryLoadFromFile, LOAD, (&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    TRY("none", cudaLibraryUnload, (void *), (NULL));
}

static void
asking_libraries(void *library)
{
    void *kernel = NULL, *address = NULL, *kernels[4] = {NULL};
    size_t bytes = 77;
    unsigned count = 77;

    TRY("add", cudaLibraryGetKernel, (void **, void *, const char *), (&kernel, library, "add"));
    TRY("missing", cudaLibraryGetKernel, (void **, void *, const char *),
        (&kernel, library, "missing"));
    TRY("no name", cudaLibraryGetKernel, (void **, void *, const char *), (&kernel, library, NULL));
    TRY("no place", cudaLibraryGetKernel, (void **, void *, const char *), (NULL, library, "add"));
    TRY("no library", cudaLibraryGetKernel, (void **, void *, const char *),
        (&kernel, NULL, "add"));
    TRY("dev", cudaLibraryGetGlobal, (void **, size_t *, void *, const char *),
        (&address, &bytes, library, "dev"));
    table_show("%zu", bytes);
    TRY("missing", cudaLibraryGetGlobal, (void **, size_t *, void *, const char *),
        (&address, &bytes, library, "missing"));
    TRY("no places", cudaLibraryGetGlobal, (void **, size_t *, void *, const char *),
        (NULL, NULL, library, "dev"));
    TRY("managed", cudaLibraryGetManaged, (void **, size_t *, void *, const char *),
        (&address, &bytes, library, "managed"));
    table_show("%zu", bytes);
    TRY("not managed", cudaLibraryGetManaged, (void **, size_t *, void *, const char *),
        (&address, &bytes, library, "dev"));
    TRY("a kernel", cudaLibraryGetUnifiedFunction, (void **, void *, const char *),
        (&address, library, "add"));
    TRY("plain", cudaLibraryGetKernelCount, (unsigned *, void *), (&count, library));
    table_show("%u", count);
    TRY("no place", cudaLibraryGetKernelCount, (unsigned *, void *), (NULL, library));
    TRY("two", cudaLibraryEnumerateKernels, (void **, unsigned, void *), (kernels, 2, library));
    table_show("two %d", kernels[0] && kernels[1] && !kernels[2]);
    TRY("no place", cudaLibraryEnumerateKernels, (void **, unsigned, void *), (NULL, 2, library));
}

static void
kernels_of_libraries(void *library)
{
    struct table_function_info info = {0};
    void *kernel = NULL, *memory = NULL;
    const char *name = NULL;
    int count = 4;
    void *args[] = {&memory, &count};

    QUIET(cudaLibraryGetKernel, (void **, void *, const char *), (&kernel, library, "add"));
    QUIET(cudaMalloc, (void **, size_t), (&memory, 4096));
    if (!kernel)
        return;
    TRY("of a library", cudaLaunchKernel, LAUNCH, (kernel, one, warp, args, 0, NULL));
    TRY("of a library", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, kernel));
    TRY("of a library", cudaFuncGetName, (const char **, const void *), (&name, kernel));
    table_show("%s", name ? name : "NULL");
    TRY("of a library", cudaFuncSetAttribute, (const void *, int, int), (kernel, 8, 1024));
    TRY("dynamic", cudaKernelSetAttributeForDevice, (void *, int, int, int), (kernel, 8, 1024, 0));
    TRY("bad attribute", cudaKernelSetAttributeForDevice, (void *, int, int, int),
        (kernel, 77, 1024, 0));
    TRY("device 7", cudaKernelSetAttributeForDevice, (void *, int, int, int), (kernel, 8, 1024, 7));
    TRY("no kernel", cudaKernelSetAttributeForDevice, (void *, int, int, int), (NULL, 8, 1024, 0));
    TRY("of a library", cudaOccupancyMaxActiveBlocksPerMultiprocessor, ACTIVE,
        (&count, kernel, 128, 0));
    TRY("of a library", cudaDeviceSynchronize, (void), ());
}

void
table_libraries(void)
{
    void *library = NULL;

    loading_libraries();
    TRY("text", cudaLibraryLoadData, LOAD, (&library, table_ptx, NULL, NULL, 0, NULL, NULL, 0));
    if (!library)
        return;
    asking_libraries(library);
    kernels_of_libraries(library);
    TRY("plain", cudaLibraryUnload, (void *), (library));
}

/* Registered, used, forgotten, registered again. */
void
table_registration(void)
{
    int values[16], count = 4;
    void *memory = NULL, *args[] = {&memory, &count};
    struct table_function_info info;

    TRY("before registration", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, table_stranger(&table_add)));
    QUIET(cudaMalloc, (void **, size_t), (&memory, 4096));
    table_register();
    TRY("late", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_add));
    TRY("late", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, NULL));
    TRY("late", cudaGetSymbolAddress, (void **, const void *), (&args[0], table_dev));
    args[0] = &memory;
    TRY("late", cudaDeviceSynchronize, (void), ());
    TRY("late", cudaDeviceReset, (void), ());
    QUIET(cudaMalloc, (void **, size_t), (&memory, 4096));
    QUIET(cudaMemset, (void *, int, size_t), (memory, 0, 4096));
    TRY("after a reset", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, NULL));
    TRY("after a reset", cudaMemcpy, (void *, const void *, size_t, int),
        (values, memory, 64, TO_HOST));
    table_show("values %d %d", values[0], values[3]);
    table_unregister();
    TRY("forgotten", cudaGetSymbolSize, (size_t *, const void *), ((size_t *)values, table_dev));
    TRY("after all", cudaDeviceSynchronize, (void), ());
    table_register();
    TRY("registered again", cudaLaunchKernel, LAUNCH, (&table_add, one, warp, args, 0, NULL));
    TRY("registered again", cudaDeviceSynchronize, (void), ());
}
