/* Kernels, functions and variables on the worker. See code.h.
 *
 * The worker chooses the addresses of variables. They are reserved here for good before the program
 * gets them, so that no memory of this process comes to lie there.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/reserve.h"
#include "driver/driver.h"
#include "remote/client/code.h"
#include "remote/client/memory.h"

#define LOST CUDA_ERROR_DEVICE_UNAVAILABLE

/* ---- kernels and functions ------------------------------------------------------------------- */

static struct hed_kernel_body *
begin_kernel(struct hed_remote_library *c, const struct hed_device *dev, uint32_t index,
             uint64_t context, struct hed_remote_channel **channel)
{
    struct hed_kernel_body *b =
        hed_remote_begin(c->remote, HED_MSG_KERNEL, sizeof *b, context, 0, 0, channel);

    if (b) {
        b->code = c->number;
        b->index = hed_remote_kernel_there(c, index);
        b->device = hed_remote_ordinal(c->remote, dev);
    }
    return b;
}

/* A kernel's description has arrived. Another thread may have been faster. */
static int
learn_kernel(struct hed_remote_library *c, uint32_t index, const struct hed_buf *description)
{
    const struct hed_wire_kernel *w = hed_remote_description(description->data, description->size);
    struct hed_code_kernel k = c->kernels[index];
    int err = w && w->described ? 0 : HED_EFORMAT;

    if (err)
        return err;
    hed_lock(&c->remote->code->lock);
    if (!atomic_load_explicit(&c->described[index], memory_order_relaxed)) {
        k = (struct hed_code_kernel){.name = c->kernels[index].name};
        err = hed_remote_read_record(&c->arena, w, &k);
        if (!err) {
            c->kernels[index] = k;
            /* Release: pairs with the acquire in hed_remote_describe(). */
            atomic_store_explicit(&c->described[index], true, memory_order_release);
        }
    }
    hed_unlock(&c->remote->code->lock);
    return err;
}

CUresult
hed_remote_describe(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel)
{
    struct hed_remote_library *c = hed_remote_library(code);
    struct hed_remote_channel *channel;
    struct hed_kernel_body *b;
    struct hed_buf description;

    /* Acquire: pairs with the release in learn_kernel(). */
    if (atomic_load_explicit(&c->described[kernel], memory_order_acquire))
        return CUDA_SUCCESS;
    b = begin_kernel(c, dev, kernel, hed_remote_current(c->remote), &channel);
    if (!b)
        return LOST;
    b->head.flags = HED_MSG_WANTS_ANSWER;
    if (hed_remote_end(channel, &b->head, sizeof *b) != 0)
        return LOST;

    const struct hed_answer *a = hed_remote_answer(channel);

    if (!a)
        return LOST;

    const CUresult r = (CUresult)a->result;
    const uint64_t bulk = a->head.bulk;

    hed_buf_init(&description, HED_BULK_CHUNK);

    int err =
        bulk <= HED_BULK_CHUNK ? hed_remote_take_bulk(channel, &description, bulk) : HED_EFORMAT;

    if (!err && r == CUDA_SUCCESS)
        err = learn_kernel(c, kernel, &description);
    hed_buf_fini(&description);
    if (err == HED_ENOMEM)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (err) {
        hed_remote_lose(hed_remote_of(m), "the worker sent an invalid description of a kernel");
        return LOST;
    }
    return r;
}

/* Settings as calls set them; the last one is the preference of caches. */
static const struct {
    CUfunction_attribute attribute;
    int unset;
} settings[HED_REMOTE_SETTINGS] = {
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 0},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 0},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 0},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 0},
    {CU_FUNC_ATTRIBUTE_MAX, CU_FUNC_CACHE_PREFER_NONE},
};

static int
setting_of_function(const struct hed_function *f, size_t i)
{
    const struct hed_settings *s = f->settings;
    const _Atomic int *const all[HED_REMOTE_SETTINGS] = {
        &s->max_dynamic_shared, &s->carveout,    &s->cluster[0],
        &s->cluster[1],         &s->cluster[2],  &s->nonportable_cluster,
        &s->cluster_policy,     &s->cache_config};

    /* Relaxed: see struct hed_settings. */
    return atomic_load_explicit(all[i], memory_order_relaxed);
}

static void
send_changed_settings(struct hed_remote *r, const struct hed_function *f,
                      struct hed_remote_told *told)
{
    const uint64_t context = f->module->ctx->object.handle;

    for (size_t i = 0; i < HED_REMOTE_SETTINGS; i++) {
        const int value = setting_of_function(f, i);

        if (value == told->settings[i])
            continue;
        told->settings[i] = value;
        if (settings[i].attribute == CU_FUNC_ATTRIBUTE_MAX)
            hed_remote_send(r, context, 0, 0, cuFuncSetCacheConfig, .hfunc = f->handle,
                            .config = (CUfunc_cache)value);
        else
            hed_remote_send(r, context, 0, 0, cuFuncSetAttribute, .hfunc = f->handle,
                            .attrib = settings[i].attribute, .value = value);
    }
}

/* Also sends the settings that the program made for a kernel before it became this function. */
void
hed_remote_function_tell(struct hed_remote *r, struct hed_function *f, uint32_t number,
                         uint32_t index, struct hed_remote_told *told)
{
    const struct hed_context *ctx = f->module->ctx;
    struct hed_remote_channel *channel;
    struct hed_kernel_body *b =
        hed_remote_begin(r, HED_MSG_KERNEL, sizeof *b, ctx->object.handle, 0, 0, &channel);

    for (size_t i = 0; i < HED_REMOTE_SETTINGS; i++)
        told->settings[i] = settings[i].unset;
    told->loaded = false;
    if (!b)
        return;
    b->code = number;
    b->index = index;
    b->device = hed_remote_ordinal(r, ctx->device);
    b->function = f->object.handle;
    if (hed_remote_end(channel, &b->head, sizeof *b) == 0)
        send_changed_settings(r, f, told);
}

/* A GPU loads code when it is first used, so what has been used is loaded here. */
void
hed_remote_function_retell(struct hed_remote *r, struct hed_function *f,
                           struct hed_remote_told *told)
{
    const struct hed_context *ctx = f->module->ctx;

    send_changed_settings(r, f, told);
    /* Relaxed: it only decides whether this is done now or with the first launch. */
    if (told->loaded || !r->devices[ctx->device->ordinal].real ||
        !atomic_load_explicit(&f->loaded, memory_order_relaxed))
        return;
    (void)hed_remote_ask_waiting(r, ctx->object.handle, 0, cuFuncLoad, .function = f->handle);
    told->loaded = true;
}

void
hed_remote_function_made(void *m, struct hed_function *f)
{
    struct hed_remote_library *c = hed_remote_library(f->module->code);
    struct hed_remote_told told;

    hed_remote_function_tell(hed_remote_of(m), f, c->number, hed_remote_kernel_there(c, f->kernel),
                             &told);
}

void
hed_remote_function_forget(struct hed_remote *r, uint64_t name)
{
    struct hed_remote_channel *channel;
    struct hed_kernel_body *b = hed_remote_begin(r, HED_MSG_KERNEL, sizeof *b, 0, 0, 0, &channel);

    if (!b)
        return;
    b->function = name;
    b->forget = 1;
    (void)hed_remote_end(channel, &b->head, sizeof *b);
}

void
hed_remote_function_gone(void *m, struct hed_function *f)
{
    hed_remote_function_forget(hed_remote_of(m), f->object.handle);
}

CUresult
hed_remote_function_set(void *m, struct hed_function *f, CUfunction_attribute attribute, int value)
{
    return hed_remote_ask(hed_remote_of(m), f->module->ctx->object.handle, 0, cuFuncSetAttribute,
                          .hfunc = f->handle, .attrib = attribute, .value = value);
}

CUresult
hed_remote_function_load(void *m, struct hed_function *f, const uint32_t *block,
                         struct hed_why *why)
{
    struct hed_remote *r = hed_remote_of(m);

    /* If there is machine code, or nothing runs, loading the library was enough. */
    if (r->devices[f->module->ctx->device->ordinal].real || r->backend == HED_BACKEND_NULL)
        return CUDA_SUCCESS;
    return hed_remote_ask_waiting(r, f->module->ctx->object.handle, 0, cuFuncLoad,
                                  .function = f->handle);
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Reserves the part of [at, end) that is not reserved yet; NOREPLACE tells whether it was free. */
static bool
reserve_variable_locked(struct hed_remote_code *c, uint64_t at, uint64_t end)
{
    for (const struct hed_remote_range *x = c->ranges; x; x = x->next) {
        if (at >= x->at && at < x->end)
            at = x->end < end ? x->end : end;
        if (end > x->at && end <= x->end)
            end = x->at > at ? x->at : at;
    }
    if (at == end)
        return true;

    struct hed_remote_range *new = malloc(sizeof *new);

    if (!new || !hed_reserve_addresses(at, end - at)) {
        free(new);
        return false;
    }
    *new = (struct hed_remote_range){c->ranges, at, end};
    c->ranges = new;
    return true;
}

/* Is it a part of the arena that the worker keeps for itself? This includes devices that the
 * program does not see. This process has nothing there. */
static bool
is_workers(const struct hed_remote *r, uint64_t at, uint64_t size)
{
    const uint64_t offset = (at - r->arena) % r->stride;

    return at >= r->arena && at < r->base + r->size && offset >= r->usable &&
           size <= r->stride - offset;
}

static bool
reserve_variable(struct hed_remote *r, uint64_t at, uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool good;

    if (size > UINT64_MAX - page || at > UINT64_MAX - page - size)
        return false;
    if (is_workers(r, at, size))
        return true;
    if (at + size > r->arena && at < r->base + r->size)
        return false;
    hed_lock(&r->code->lock);
    good = reserve_variable_locked(r->code, at / page * page, hed_round_up(at + size, page));
    hed_unlock(&r->code->lock);
    return good;
}

CUresult
hed_remote_variable_there(struct hed_remote *r, struct hed_context *ctx, struct hed_code *code,
                          bool managed, const char *name, uint64_t *at, uint64_t *size)
{
    const size_t n = strlen(name) + 1;
    struct hed_remote_channel *channel;
    struct hed_open_body *b;

    if (n > HED_CODE_NAME_MAX)
        return CUDA_ERROR_NOT_FOUND;
    b = hed_remote_begin_open(
        hed_remote_library(code), managed ? HED_OPEN_MANAGED : HED_OPEN_GLOBAL,
        ctx ? ctx->object.handle : hed_remote_current(r), (uint32_t)n, &channel);
    if (!b)
        return LOST;
    memcpy(b + 1, name, n);
    if (hed_remote_end(channel, &b->head, (uint32_t)(sizeof *b + n)) != 0)
        return LOST;

    const struct hed_variable_answer *a = (struct hed_variable_answer *)hed_remote_answer(channel);

    if (!a || a->head.result != CUDA_SUCCESS)
        return a ? (CUresult)a->head.result : LOST;
    if (a->head.head.size < sizeof *a) {
        hed_remote_lose(r, "the worker sent an invalid description of a variable");
        return LOST;
    }
    *at = a->at;
    *size = a->size;
    return CUDA_SUCCESS;
}

CUresult
hed_remote_variable(void *m, struct hed_context *ctx, struct hed_code *code, bool managed,
                    const char *name, uint64_t *at, uint64_t *size)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUresult result = hed_remote_variable_there(r, ctx, code, managed, name, at, size);

    if (result == CUDA_SUCCESS && !reserve_variable(r, *at, *size ? *size : 1)) {
        hed_error(REMOTE, "the address of %s is taken in this process", name);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}
