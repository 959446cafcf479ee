/* The device runtime: what kernels call to launch others, and to ask about the device. The calls
 * are those of CUDA 12 and later (dynamic parallelism 2), which have no way to wait for a child.
 * See children.h.
 *
 * Nothing that a kernel passes is trusted: addresses are masked in an address sandbox, buffers and
 * handles are looked up, and no lock is held while memory of the kernel is touched, because that
 * may fault.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/children.h"
#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/device_calls.h"
#include "base/number.h"
#include "driver/driver.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"
#include "kernel/sass.h"

/* The values that CUDA gives to streams which nobody creates. */
enum { STREAM_NULL, STREAM_LEGACY, STREAM_PER_THREAD, STREAM_TAIL_LAUNCH, STREAM_FIRE_AND_FORGET };

#define STREAM_NON_BLOCKING 1 /* the only streams and events that device code may create */
#define EVENT_DISABLE_TIMING 2
#define HANDLE_BASE UINT64_C(0x10000)
#define HANDLE_STEP 16
#define MEMCPY_KINDS 5
#define BUFFERS_LIMIT ((size_t)1 << 30) /* bytes */

struct device {
    struct hed_ptx_warp *warp;
    struct hed_parent *parent;
    struct hed_children *children;
};

/* ---- the calling thread ---------------------------------------------------------------------- */

/* Its number in the grid. */
static uint64_t
thread_number(const struct hed_ptx_warp *s)
{
    const struct hed_ptx_grid *g = s->grid;
    const uint32_t *c = s->block->ctaid;
    const uint32_t lane = s->lane % HED_PTX_LANES;
    const uint64_t block = c[0] + g->nctaid[0] * (c[1] + (uint64_t)g->nctaid[1] * c[2]);
    const uint64_t thread =
        s->tid[0][lane] + g->ntid[0] * (s->tid[1][lane] + (uint64_t)g->ntid[1] * s->tid[2][lane]);

    return block * HED_BLOCK_THREADS_MAX + thread;
}

static uint32_t
set_last_error(const struct device *d, uint32_t error)
{
    return hed_children_set_error(d->children, thread_number(d->warp), error);
}

/* Writes a result where the kernel wants it. */
static void
put_answer(const struct device *d, uint64_t to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)hed_ptx_in_sandbox(d->warp->grid, to), from, size);
}

static uint32_t
put_int(const struct device *d, uint64_t to, int value)
{
    put_answer(d, to, &value, sizeof value);
    return HED_DEVICE_SUCCESS;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The kernel whose address device code has: an index in code->pub.kernels; UINT32_MAX if it is no
 * kernel's. */
static uint32_t
kernel_of_ptx(const struct hed_cpu_code *code, uint64_t address)
{
    uint64_t n = address / HED_PTX_FUNC_STRIDE;
    const struct hed_ptx_func *f = code->module.funcs;

    if (n == 0 || address % HED_PTX_FUNC_STRIDE)
        return UINT32_MAX;
    while (f && --n)
        f = f->next;
    if (!f)
        return UINT32_MAX;
    f = hed_ptx_func_real(f);
    for (uint32_t i = 0; i < code->pub.kernel_count; i++)
        if (code->states[(size_t)i * HED_ROWS_COUNT].func == f)
            return i;
    return UINT32_MAX;
}

static const struct hed_code_kernel *
find_kernel(const struct device *d, uint64_t address, uint32_t *index)
{
    const struct hed_cpu_code *code = (const struct hed_cpu_code *)d->parent->launch->code;

    *index = code->sass ? hed_sass_kernel_at(code->sass, address) : kernel_of_ptx(code, address);
    return *index < code->pub.kernel_count ? &code->pub.kernels[*index] : NULL;
}

static uint32_t
get_function_attributes(const struct device *d, uint64_t to, uint64_t function)
{
    uint32_t index;
    const struct hed_code_kernel *k = find_kernel(d, function, &index);
    const struct hed_profile *p = d->parent->launch->profile;
    struct {
        uint64_t shared, constant, local;
        int32_t max_threads, registers, ptx_version, binary_version;
    } a; /* the beginning of struct cudaFuncAttributes, as far as NVIDIA's function writes it */

    if (!k)
        return HED_DEVICE_INVALID_FUNCTION;
    a.shared = k->shared;
    a.constant = k->constant;
    a.local = k->local;
    a.max_threads = k->max_threads
                        ? (int32_t)k->max_threads
                        : (int32_t)hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                                      HED_BLOCK_THREADS_MAX);
    a.registers = (int32_t)k->registers;
    a.ptx_version = (int32_t)k->ptx_version;
    a.binary_version = (int32_t)k->binary_version;
    put_answer(d, to, &a, sizeof a);
    return HED_DEVICE_SUCCESS;
}

static uint32_t
get_occupancy(const struct device *d, uint64_t to, uint64_t function, uint32_t threads,
              uint64_t dynamic_shared)
{
    uint32_t index;
    const struct hed_code_kernel *k = find_kernel(d, function, &index);

    if (!k)
        return HED_DEVICE_INVALID_FUNCTION;
    if (threads == 0 || (int32_t)threads < 0)
        return HED_DEVICE_INVALID_VALUE;

    const struct hed_need need = {threads, k->registers, k->shared, dynamic_shared};

    return put_int(d, to, (int)hed_occupancy_blocks(d->parent->launch->profile, &need));
}

/* ---- streams and events ---------------------------------------------------------------------- */

/* The order in which children run makes these handles mean nothing (children.h, invariant 1); they
 * only have to be known. */
static uint32_t
create_handle(const struct device *d, uint64_t to, enum hed_device_handle kind)
{
    struct hed_children *k = d->children;
    uint64_t handle = 0;

    hed_lock(&k->lock);
    if (!k->handles)
        k->handles = calloc(HED_CHILDREN_GIVEN_MAX, 1);
    for (uint32_t i = 0; i < HED_CHILDREN_GIVEN_MAX && k->handles && !handle; i++) {
        const uint32_t n = k->handle_next++ % HED_CHILDREN_GIVEN_MAX;

        if (k->handles[n] == HED_HANDLE_FREE) {
            k->handles[n] = (uint8_t)kind;
            handle = HANDLE_BASE + HANDLE_STEP * (uint64_t)n;
        }
    }
    hed_unlock(&k->lock);
    if (!handle)
        return HED_DEVICE_NO_MEMORY;
    put_answer(d, to, &handle, sizeof handle);
    return HED_DEVICE_SUCCESS;
}

/* Is that such a handle? It is gone afterwards if `destroys`. */
static bool
check_handle(const struct device *d, uint64_t handle, enum hed_device_handle kind, bool destroys)
{
    struct hed_children *k = d->children;
    const uint64_t n = (handle - HANDLE_BASE) / HANDLE_STEP;
    bool is_known;

    if (handle < HANDLE_BASE || handle % HANDLE_STEP || n >= HED_CHILDREN_GIVEN_MAX)
        return false;
    hed_lock(&k->lock);
    is_known = k->handles && k->handles[n] == (uint8_t)kind;
    if (is_known && destroys)
        k->handles[n] = HED_HANDLE_FREE;
    hed_unlock(&k->lock);
    return is_known;
}

static bool
is_device_stream(const struct device *d, uint64_t stream)
{
    return stream <= STREAM_FIRE_AND_FORGET || check_handle(d, stream, HED_HANDLE_STREAM, false);
}

static uint32_t
use_event(const struct device *d, uint64_t event, uint64_t stream)
{
    return check_handle(d, event, HED_HANDLE_EVENT, false) && is_device_stream(d, stream) &&
                   stream != STREAM_TAIL_LAUNCH && stream != STREAM_FIRE_AND_FORGET
               ? HED_DEVICE_SUCCESS
               : HED_DEVICE_INVALID_HANDLE;
}

/* ---- launches -------------------------------------------------------------------------------- */

static unsigned
bucket_of_buffer(uint64_t address)
{
    return (unsigned)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 48) % HED_CHILDREN_BUCKETS;
}

static struct hed_heap *
buffers_of(const struct device *d)
{
    return &d->parent->cpu->buffers[d->parent->launch->device];
}

static bool
keep_given(const struct device *d, struct hed_child_grid *c)
{
    struct hed_children *k = d->children;
    struct hed_child_grid **bucket = &k->given[bucket_of_buffer((uintptr_t)c->buffer)];
    bool fits;

    hed_lock(&k->lock);
    fits = k->given_count < HED_CHILDREN_GIVEN_MAX;
    if (fits) {
        c->next = *bucket;
        *bucket = c;
        k->given_count++;
    }
    hed_unlock(&k->lock);
    return fits;
}

static struct hed_child_grid *
take_given(const struct device *d, uint64_t address)
{
    struct hed_children *k = d->children;
    struct hed_child_grid **at = &k->given[bucket_of_buffer(address)], *c;

    hed_lock(&k->lock);
    while (*at && (uintptr_t)(*at)->buffer != address)
        at = &(*at)->next;
    c = *at;
    if (c) {
        *at = c->next;
        k->given_count--;
    }
    hed_unlock(&k->lock);
    return c;
}

/* What is wrong with the launch; 0 if nothing is. */
static uint32_t
check_child(const struct device *d, const struct hed_code_kernel *k, const uint32_t grid[3],
            const uint32_t block[3], uint32_t dynamic_shared)
{
    const struct hed_profile *p = d->parent->launch->profile;
    const uint64_t most =
        hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 48u << 10);

    if (!k)
        return HED_DEVICE_INVALID_FUNCTION;
    /* Each grid above is a launch that is not complete, as an H200 counts them. */
    if (d->parent->depth >= hed_children_limit(d->parent))
        return HED_DEVICE_TOO_MANY_PENDING;
    if (!hed_launch_shape_fits(k, p, grid, block) || (uint64_t)k->shared + dynamic_shared > most)
        return HED_DEVICE_INVALID_CONFIGURATION;
    return HED_DEVICE_SUCCESS;
}

static struct hed_child_grid *
create_child(size_t param_bytes)
{
    const size_t size = hed_round_up(sizeof(struct hed_child_grid) + param_bytes, HED_PARAMS_ALIGN);
    struct hed_child_grid *c = aligned_alloc(HED_PARAMS_ALIGN, size);

    return c ? memset(c, 0, size) : NULL;
}

/* The address of a buffer for the parameters of a launch; 0 if there can be none. */
static uint64_t
get_parameter_buffer(const struct device *d, const uint64_t *a)
{
    const uint32_t grid[3] = {(uint32_t)a[1], (uint32_t)a[2], (uint32_t)a[3]};
    const uint32_t block[3] = {(uint32_t)a[4], (uint32_t)a[5], (uint32_t)a[6]};
    uint32_t index;
    const struct hed_code_kernel *k = find_kernel(d, a[0], &index);
    const uint32_t error = check_child(d, k, grid, block, (uint32_t)a[7]);
    struct hed_child_grid *c;

    if (error) {
        (void)set_last_error(d, error);
        return 0;
    }
    c = create_child(k->param_bytes);
    if (c)
        c->buffer =
            hed_heap_take(buffers_of(d), k->param_bytes ? k->param_bytes : 1, BUFFERS_LIMIT);
    if (!c || !c->buffer) {
        free(c);
        (void)set_last_error(d, HED_DEVICE_NO_MEMORY);
        return 0;
    }
    c->kernel = index;
    c->dynamic_shared = (uint32_t)a[7];
    c->param_bytes = k->param_bytes;
    memcpy(c->grid, grid, sizeof grid);
    memcpy(c->block, block, sizeof block);

    const uint64_t address = (uintptr_t)c->buffer;

    if (keep_given(d, c))
        return address;
    (void)hed_heap_give(buffers_of(d), c->buffer);
    free(c);
    (void)set_last_error(d, HED_DEVICE_TOO_MANY_PENDING);
    return 0;
}

static uint32_t
launch_buffer(const struct device *d, uint64_t address, uint64_t stream)
{
    struct hed_child_grid *c = take_given(d, address);

    if (!c)
        return HED_DEVICE_INVALID_VALUE;
    memcpy(c->params, c->buffer, c->param_bytes);
    (void)hed_heap_give(buffers_of(d), c->buffer);
    c->buffer = NULL;
    if (!is_device_stream(d, stream)) {
        free(c);
        return HED_DEVICE_INVALID_HANDLE;
    }
    return hed_children_add(d->warp, d->parent, c, stream == STREAM_TAIL_LAUNCH);
}

/* Shared and local memory belong to threads that may be gone when a copy runs; NVIDIA's functions
 * refuse them, too. */
static bool
is_global(const struct device *d, uint64_t address)
{
    const struct hed_ptx_grid *g = d->warp->grid;
    const uint64_t at = hed_ptx_in_sandbox(g, address);

    return address != 0 && !(at >= g->shared_first && at < g->shared_last) &&
           !(at >= g->local_first && at < g->local_last);
}

/* CUDA 13.0's function does not look at the value of a fill: it writes 0. This one does what its
 * documentation says. */
static uint32_t
add_move(const struct device *d, const struct hed_move *m, uint64_t stream)
{
    struct hed_child_grid *c;

    if (!is_device_stream(d, stream))
        return HED_DEVICE_INVALID_HANDLE;
    if (m->width == 0 || m->height == 0)
        return HED_DEVICE_SUCCESS;
    if (!is_global(d, m->to) || (!m->is_fill && !is_global(d, m->from)))
        return HED_DEVICE_INVALID_VALUE;
    if (m->height > 1 && (m->width > m->to_pitch || (!m->is_fill && m->width > m->from_pitch)))
        return HED_DEVICE_INVALID_VALUE;
    c = create_child(sizeof *m);
    if (!c)
        return HED_DEVICE_NO_MEMORY;
    c->is_move = true;
    c->param_bytes = sizeof *m;
    memcpy(c->params, m, sizeof *m);
    /* NVIDIA's library copies and fills with kernels of its own. If one of these cannot be launched
     * it answers cudaErrorUnknown, whatever the reason is (CUDA 13.0). */
    return hed_children_add(d->warp, d->parent, c, stream == STREAM_TAIL_LAUNCH)
               ? HED_DEVICE_UNKNOWN
               : HED_DEVICE_SUCCESS;
}

static uint32_t
add_checked_copy(const struct device *d, const struct hed_move *m, uint64_t kind, uint64_t stream)
{
    return kind < MEMCPY_KINDS ? add_move(d, m, stream) : HED_DEVICE_INVALID_DIRECTION;
}

/* ---- questions ------------------------------------------------------------------------------- */

static uint32_t
get_device_attribute(const struct device *d, uint64_t to, uint32_t attribute, uint32_t device)
{
    const struct hed_launch *l = d->parent->launch;

    if (device != (uint32_t)l->device)
        return HED_DEVICE_INVALID_DEVICE;
    if (attribute == 0 || attribute >= HED_PROFILE_ATTRIBUTES || !l->profile)
        return HED_DEVICE_INVALID_VALUE;
    return put_int(d, to, l->profile->attributes[attribute]);
}

static uint32_t
get_limit(const struct device *d, uint64_t to, uint32_t limit)
{
    const struct hed_launch *l = d->parent->launch;
    uint64_t value;

    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        value = l->stack_limit;
        break;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        value = l->printf_limit;
        break;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        value = l->heap_limit;
        break;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        value = l->pending_limit;
        break;
    default:
        return HED_DEVICE_UNSUPPORTED_LIMIT;
    }
    put_answer(d, to, &value, sizeof value);
    return HED_DEVICE_SUCCESS;
}

static uint32_t
allocate(const struct device *d, uint64_t to, uint64_t size)
{
    const uint64_t p = hed_rt_malloc(d->warp, size);

    put_answer(d, to, &p, sizeof p);
    return p ? HED_DEVICE_SUCCESS : HED_DEVICE_NO_MEMORY;
}

static uint32_t
answer_question(const struct device *d, uint32_t which, const uint64_t *a)
{
    switch (which) {
    case HED_DEVICE_GET_DEVICE:
        return put_int(d, a[0], d->parent->launch->device);
    case HED_DEVICE_GET_DEVICE_COUNT:
        return put_int(d, a[0], d->parent->cpu->device_count);
    case HED_DEVICE_GET_ATTRIBUTE:
        return get_device_attribute(d, a[0], (uint32_t)a[1], (uint32_t)a[2]);
    case HED_DEVICE_GET_LIMIT:
        return get_limit(d, a[0], (uint32_t)a[1]);
    case HED_DEVICE_FUNC_GET_ATTRIBUTES:
        return get_function_attributes(d, a[0], a[1]);
    case HED_DEVICE_OCCUPANCY:
    case HED_DEVICE_OCCUPANCY_WITH_FLAGS:
        return get_occupancy(d, a[0], a[1], (uint32_t)a[2], a[3]);
    case HED_DEVICE_RUNTIME_GET_VERSION:
        return put_int(d, a[0], HED_DRIVER_VERSION);
    case HED_DEVICE_MALLOC:
        return allocate(d, a[0], a[1]);
    case HED_DEVICE_FREE:
        hed_rt_free(d->warp, a[0]);
        return HED_DEVICE_SUCCESS;
    default:
        return HED_DEVICE_NOT_SUPPORTED;
    }
}

/* ---- all calls ------------------------------------------------------------------------------- */

static uint32_t
queue_call(const struct device *d, uint32_t which, const uint64_t *a)
{
    struct hed_move m = {.to = a[0], .height = 1};

    switch (which) {
    case HED_DEVICE_MEMCPY:
        m.from = a[1];
        m.width = a[2];
        return add_checked_copy(d, &m, a[3], a[4]);
    case HED_DEVICE_MEMCPY_2D:
        m = (struct hed_move){.to = a[0],
                              .to_pitch = a[1],
                              .from = a[2],
                              .from_pitch = a[3],
                              .width = a[4],
                              .height = a[5]};
        return add_checked_copy(d, &m, a[6], a[7]);
    case HED_DEVICE_MEMSET:
        m.is_fill = true;
        m.value = (uint32_t)a[1];
        m.width = a[2];
        return add_move(d, &m, a[3]);
    case HED_DEVICE_MEMSET_2D:
        m.is_fill = true;
        m.to_pitch = a[1];
        m.value = (uint32_t)a[2];
        m.width = a[3];
        m.height = a[4];
        return add_move(d, &m, a[5]);
    default:
        return launch_buffer(d, a[0], a[1]);
    }
}

static uint32_t
handle_call(const struct device *d, uint32_t which, const uint64_t *a)
{
    switch (which) {
    case HED_DEVICE_STREAM_CREATE:
        return a[1] == STREAM_NON_BLOCKING ? create_handle(d, a[0], HED_HANDLE_STREAM)
                                           : HED_DEVICE_INVALID_VALUE;
    case HED_DEVICE_STREAM_DESTROY:
        return check_handle(d, a[0], HED_HANDLE_STREAM, true) ? HED_DEVICE_SUCCESS
                                                              : HED_DEVICE_INVALID_HANDLE;
    case HED_DEVICE_EVENT_CREATE:
        return a[1] == EVENT_DISABLE_TIMING ? create_handle(d, a[0], HED_HANDLE_EVENT)
                                            : HED_DEVICE_INVALID_VALUE;
    case HED_DEVICE_EVENT_DESTROY:
        return check_handle(d, a[0], HED_HANDLE_EVENT, true) ? HED_DEVICE_SUCCESS
                                                             : HED_DEVICE_INVALID_HANDLE;
    case HED_DEVICE_EVENT_RECORD:
        return use_event(d, a[0], a[1]);
    default: /* a stream that waits for an event */
        return use_event(d, a[1], a[0]);
    }
}

static uint32_t
call_with_result(const struct device *d, uint32_t which, const uint64_t *a)
{
    uint32_t error;

    switch (which) {
    case HED_DEVICE_LAUNCH:
    case HED_DEVICE_MEMCPY:
    case HED_DEVICE_MEMCPY_2D:
    case HED_DEVICE_MEMSET:
    case HED_DEVICE_MEMSET_2D:
        error = queue_call(d, which, a);
        break;
    case HED_DEVICE_STREAM_CREATE:
    case HED_DEVICE_STREAM_DESTROY:
    case HED_DEVICE_STREAM_WAIT_EVENT:
    case HED_DEVICE_EVENT_CREATE:
    case HED_DEVICE_EVENT_RECORD:
    case HED_DEVICE_EVENT_DESTROY:
        error = handle_call(d, which, a);
        break;
    default:
        error = answer_question(d, which, a);
    }
    return error ? set_last_error(d, error) : error;
}

uint64_t
hed_cpu_device_call(void *parent, struct hed_ptx_warp *s, uint32_t which, const uint64_t *args)
{
    struct hed_parent *p = parent;
    const bool can = p->launch->device >= 0 && p->launch->device < HED_PROFILE_DEVICES_MAX;
    const struct device d = {.warp = s, .parent = p, .children = can ? hed_children_of(p) : NULL};

    if (!d.children)
        return which == HED_DEVICE_GET_PARAMETER_BUFFER ? 0 : HED_DEVICE_NO_MEMORY;
    switch (which) {
    case HED_DEVICE_GET_PARAMETER_BUFFER:
        return get_parameter_buffer(&d, args);
    case HED_DEVICE_GET_LAST_ERROR:
        return hed_children_error(d.children, thread_number(s), true);
    case HED_DEVICE_PEEK_LAST_ERROR:
        return hed_children_error(d.children, thread_number(s), false);
    case HED_DEVICE_SET_LAST_ERROR:
        return set_last_error(&d, (uint32_t)args[0]);
    default:
        return call_with_result(&d, which, args);
    }
}
