/* The machine of fake.h. */
#include "unit/driver/fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "core/registry.h"
#include "harness/unit.h"

/* ---- a session without layers: the core wants to be told ------------------------------------- */

const struct hed_layer_type *const hed_layer_types[] = {NULL};
const struct hed_layer_type *const hed_backend_types[] = {NULL};

int
hed_layer_find_plugin(const char *entry, const struct hed_layer_type **out, struct hed_why *why)
{
    return hed_layer_find(entry, out, why);
}

int
hed_layer_find(const char *name, const struct hed_layer_type **out, struct hed_why *why)
{
    (void)name;
    (void)out;
    hed_why_set(why, "a test of the soft driver has no session");
    return HED_ENOTFOUND;
}

int
hed_backend_find(const struct hed_config *c, const struct hed_layer_type **out, struct hed_why *why)
{
    (void)c;
    (void)out;
    hed_why_set(why, "a test of the soft driver has no session");
    return HED_ENOTFOUND;
}

void
hed_backend_ask_host(struct hed_config *c)
{
    (void)c;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct fake_physical {
    struct hed_physical_memory pub; /* must come first */
    int fd;
};

static void
count(_Atomic unsigned *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Decrements a counter of failures; false if it is 0. */
static bool
must_fail(_Atomic unsigned *counter)
{
    unsigned n = atomic_load_explicit(counter, memory_order_relaxed);

    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(counter, &n, n - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void *
pointer(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static int
fake_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base)
{
    struct fake *f = m;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = mmap(pointer(want), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);

    if (p == MAP_FAILED) {
        p = mmap(NULL, size + HED_MACHINE_PAGE, PROT_NONE, flags, -1, 0);
        if (p == MAP_FAILED)
            return HED_ENOMEM;
    }
    f->base = (uint64_t)(uintptr_t)p;
    f->size = size;
    if (f->base % HED_MACHINE_PAGE) {
        f->base += HED_MACHINE_PAGE - f->base % HED_MACHINE_PAGE;
        (void)munmap(p, f->base - (uint64_t)(uintptr_t)p);
    }
    *base = f->base;
    return 0;
}

static bool
inside(const struct fake *f, uint64_t at, uint64_t size)
{
    return at % HED_MACHINE_PAGE == 0 && size % HED_MACHINE_PAGE == 0 && size > 0 &&
           at >= f->base && size <= f->size && at - f->base <= f->size - size;
}

static int
fake_map(void *m, uint64_t at, uint64_t size)
{
    struct fake *f = m;

    if (!inside(f, at, size))
        fail_msg("map of %#llx, %llu bytes", (unsigned long long)at, (unsigned long long)size);
    if (must_fail(&f->fail_map))
        return HED_ENOMEM;
    if (mmap(pointer(at), size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return HED_ENOMEM;
    count(&f->maps);
    atomic_fetch_add_explicit(&f->mapped, size, memory_order_relaxed);
    return 0;
}

static void
fake_unmap(void *m, uint64_t at, uint64_t size)
{
    struct fake *f = m;

    if (!inside(f, at, size))
        fail_msg("unmap of %#llx, %llu bytes", (unsigned long long)at, (unsigned long long)size);
    (void)mmap(pointer(at), size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    count(&f->unmaps);
    atomic_fetch_sub_explicit(&f->mapped, size, memory_order_relaxed);
}

static int
fake_physical_create(void *m, int device, uint64_t size, struct hed_physical_memory **out)
{
    struct fake *f = m;

    if (must_fail(&f->fail_map))
        return HED_ENOMEM;

    struct fake_physical *p = malloc(sizeof *p);

    if (!p)
        return HED_ENOMEM;
    p->fd = memfd_create("fake", MFD_CLOEXEC);
    if (p->fd < 0 || ftruncate(p->fd, (off_t)size) != 0) {
        if (p->fd >= 0)
            (void)close(p->fd);
        free(p);
        return HED_ENOMEM;
    }
    count(&f->physicals);
    p->pub.size = size;
    *out = &p->pub;
    return 0;
}

static void
fake_physical_free(void *m, struct hed_physical_memory *p)
{
    struct fake *f = m;

    (void)close(((struct fake_physical *)p)->fd);
    free(p);
    atomic_fetch_sub_explicit(&f->physicals, 1, memory_order_relaxed);
}

static int
fake_physical_map(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                  uint64_t size)
{
    struct fake *f = m;

    if (!inside(f, at, size))
        fail_msg("map of %#llx, %llu bytes", (unsigned long long)at, (unsigned long long)size);
    if (mmap(pointer(at), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             ((struct fake_physical *)p)->fd, (off_t)offset) == MAP_FAILED)
        return HED_ENOMEM;
    /* unmap frees it, like other memory. */
    count(&f->maps);
    atomic_fetch_add_explicit(&f->mapped, size, memory_order_relaxed);
    return 0;
}

static int
fake_protect(void *m, uint64_t at, uint64_t size, bool readable, bool writable)
{
    const int protection = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);

    (void)m;
    return mprotect(pointer(at), size, protection) == 0 ? 0 : hed_err_from_errno(errno);
}

static void
fake_copy(void *m, uint64_t to, uint64_t from, size_t size)
{
    (void)m;
    memmove(pointer(to), pointer(from), size);
}

static void
fake_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t n)
{
    unsigned char *at = pointer(to);

    (void)m;
    for (size_t i = 0; i < n; i++)
        memcpy(at + i * width, &value, width); /* the machine is little-endian */
}

/* ---- code ------------------------------------------------------------------------------------ */

static const struct hed_code_param copy_params[] = {{0, 8}, {8, 8}, {16, 4}};

static const struct hed_code_kernel kernels[FAKE_KERNELS] = {
    [FAKE_COPY] = {.name = "fake_copy",
                   .params = copy_params,
                   .param_count = 3,
                   .param_bytes = 20,
                   .registers = 32,
                   .max_threads = 1024,
                   .ptx_version = FAKE_ARCH,
                   .binary_version = FAKE_ARCH,
                   .has_code = true},
    [FAKE_NONE] = {.name = "fake_none",
                   .registers = 16,
                   .shared = 128,
                   .max_threads = 256,
                   .ptx_version = FAKE_ARCH,
                   .binary_version = FAKE_ARCH,
                   .has_code = true},
};

static const unsigned char global_init[4] = {1, 2, 3, 4};

static const struct hed_code_var vars[FAKE_VARS] = {
    [FAKE_GLOBAL] = {.name = "fake_global",
                     .size = 64,
                     .align = 8,
                     .visible = true,
                     .init = global_init,
                     .init_size = sizeof global_init},
    [FAKE_CONSTANT] =
        {.name = "fake_constant", .size = 16, .align = 16, .constant = true, .visible = true},
};

static int
fake_open(void *m, const struct hed_code_source *source, struct hed_code **out, struct hed_buf *log,
          struct hed_why *why)
{
    struct fake *f = m;

    (void)log;
    if (!source->data || must_fail(&f->fail_open)) {
        hed_why_set(why, "the fake machine was told to fail");
        return HED_EFORMAT;
    }

    struct hed_code *c = malloc(sizeof *c);

    if (!c)
        return HED_ENOMEM;
    *c = (struct hed_code){kernels, FAKE_KERNELS, vars, FAKE_VARS};
    count(&f->opens);
    *out = c;
    return 0;
}

static void
fake_close(void *m, struct hed_code *code)
{
    struct fake *f = m;

    free(code);
    count(&f->closes);
}

static void
fake_fill_vars(void *m, struct hed_code *code, const uint64_t *addresses, const uint64_t *where)
{
    (void)m;
    (void)addresses;
    for (uint32_t i = 0; i < code->var_count; i++) {
        if (!where[i])
            continue;
        memset(pointer(where[i]), 0, code->vars[i].size);
        if (code->vars[i].init_size)
            memcpy(pointer(where[i]), code->vars[i].init, code->vars[i].init_size);
    }
}

static CUresult
fake_prepare(void *m, struct hed_code *code, uint32_t kernel, const uint32_t *block,
             struct hed_why *why)
{
    struct fake *f = m;

    (void)code;
    count(&f->prepares);
    (void)why;
    return kernel < FAKE_KERNELS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult
fake_launch(void *m, const struct hed_launch *l, struct hed_why *why)
{
    struct fake *f = m;

    (void)why;
    count(&f->launches);
    if (f->launch)
        return f->launch(f, l);
    if (l->kernel == FAKE_COPY) {
        uint64_t to;
        uint64_t from;
        uint32_t bytes;

        assert_int_equal(l->param_bytes, 20);
        memcpy(&to, l->params, 8);
        memcpy(&from, l->params + 8, 8);
        memcpy(&bytes, l->params + 16, 4);
        memmove(pointer(to), pointer(from), bytes);
    }
    return CUDA_SUCCESS;
}

const struct hed_executor fake_executor = {
    .memory = {.reserve = fake_reserve,
               .map = fake_map,
               .unmap = fake_unmap,
               .physical_create = fake_physical_create,
               .physical_free = fake_physical_free,
               .physical_map = fake_physical_map,
               .protect = fake_protect,
               .copy = fake_copy,
               .fill = fake_fill},
    .clusters = true,
    .open = fake_open,
    .close = fake_close,
    .fill_vars = fake_fill_vars,
    .prepare = fake_prepare,
    .launch = fake_launch,
};

/* ---- the driver on it ------------------------------------------------------------------------ */

static const int attributes[][2] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 8},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, FAKE_ARCH / 10},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, FAKE_ARCH % 10},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

void
fake_profile(struct hed_profile_device *out, int index)
{
    struct hed_profile *p = &out->profile;

    memset(out, 0, sizeof *out);
    (void)hed_str_copy(p->name, sizeof p->name, "Fake GPU");
    (void)hed_str_copy(p->short_name, sizeof p->short_name, "fake");
    p->major = FAKE_ARCH / 10;
    p->minor = FAKE_ARCH % 10;
    p->memory = FAKE_MEMORY;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        const int id = attributes[i][0];

        p->attributes[id] = attributes[i][1];
        p->has_attribute[id / 64] |= 1ull << (id % 64);
    }
    (void)hed_str_copy(p->brand, sizeof p->brand, "nvidia");
    (void)hed_str_copy(p->architecture, sizeof p->architecture, "hopper");
    for (int i = 0; i < 16; i++)
        out->uuid[i] = (uint8_t)(0xf0 + i);
    out->uuid[15] = (uint8_t)index;
    out->pci_bus = 1 + index;
    out->index = (uint32_t)index;
}

static struct fake *
create_driver(const struct hed_profile_device *devices, size_t n, const struct hed_machine *machine,
              void *data)
{
    static struct hed_layer_type type = {
        .name = "fake",
        .cuda_any = hed_driver_unsupported,
        .nvml_any = hed_driver_nvml_unsupported,
        .soft = true,
    };
    struct fake *f = calloc(1, sizeof *f);
    struct hed_why why = {""};

    assert_non_null(f);
    type.cuda = hed_driver_calls();
    type.nvml = hed_driver_nvml_calls();
    hed_layer_place(&f->room, &type, NULL);
    f->layer = &f->room.layer;
    hed_near_init(&f->near, &fake_executor);
    f->data = data;
    if (hed_driver_create(machine ? machine : &f->near.machine, f, devices, n, &f->driver, &why))
        fail_msg("no driver: %s", why.text);
    f->layer->state = f->driver;
    return f;
}

struct fake *
fake_create_with(const struct hed_profile_device *devices, size_t n)
{
    return create_driver(devices, n, NULL, NULL);
}

struct fake *
fake_create_on(int devices, const struct hed_machine *machine, void *data)
{
    struct hed_profile_device profiles[HED_PROFILE_DEVICES_MAX];

    assert_in_range(devices, 0, HED_PROFILE_DEVICES_MAX);
    for (int i = 0; i < devices; i++)
        fake_profile(&profiles[i], i);
    return create_driver(profiles, (size_t)devices, machine, data);
}

struct fake *
fake_create(int devices)
{
    return fake_create_on(devices, NULL, NULL);
}

void
fake_free(struct fake *f)
{
    hed_driver_free(f->driver);
    hed_near_fini(&f->near);
    (void)munmap(pointer(f->base), f->size);
    free(f);
}

CUcontext
fake_use_primary(struct fake *f, int device)
{
    CUcontext c = NULL;

    assert_int_equal(fake_call(f, cuInit, 0), CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRetain, &c, device), CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuCtxSetCurrent, c), CUDA_SUCCESS);
    return c;
}
