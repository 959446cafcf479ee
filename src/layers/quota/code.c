/* Code and its global variables (layers/quota/quota.h).
 *
 * Nothing tells how much memory an image takes: it may be compressed, compiled, or have variables
 * that are in no file. So it is measured: what the device has less of after the call, without what
 * this process was charged for meanwhile. Other processes that allocate in that moment are measured
 * too; where that would refuse the call, the module is unloaded again to see what it really had.
 *
 * What is loaded later, at the first use of a function, is not measured.
 */
#include "base/log.h"
#include "layers/quota/quota.h"

static bool
free_memory(struct hed_layer *self, uint64_t *out)
{
    size_t free = 0;
    size_t total = 0;
    const int mode = quota_relax(self);
    const CUresult r = hed_call(self->next, cuMemGetInfo_v2, .free = &free, .total = &total);

    quota_relaxed(self, mode);
    *out = free;
    return r == CUDA_SUCCESS;
}

/* The device to measure; NULL: there is none, as without a context. */
static struct quota_device *
begin_measuring(struct hed_layer *self)
{
    struct quota_device *d = quota_current(self);
    uint64_t free;

    if (!d || !free_memory(self, &free))
        return NULL;
    hed_lock_brief(&d->code_lock);
    if (d->loads++ == 0) {
        d->free_mark = free;
        d->own_mark = atomic_load_explicit(&d->own, memory_order_relaxed);
    }
    hed_unlock_brief(&d->code_lock);
    return d;
}

/* What this call took: since the last look, as several may be under way. */
static uint64_t
end_measuring(struct hed_layer *self, struct quota_device *d)
{
    uint64_t free = 0;
    int64_t took = 0;
    const bool known = free_memory(self, &free);

    hed_lock_brief(&d->code_lock);

    const uint64_t own = atomic_load_explicit(&d->own, memory_order_relaxed);

    if (known) {
        took = (int64_t)(d->free_mark - free) - (int64_t)(own - d->own_mark);
        d->free_mark = free;
        d->own_mark = own;
    }
    d->loads--;
    hed_unlock_brief(&d->code_lock);
    return took > 0 ? (uint64_t)took : 0;
}

/* A library is in each context by itself. */
static uint64_t
library_key(uint64_t library, CUcontext context)
{
    return library ^ (uint64_t)(uintptr_t)context * 0x9e3779b97f4a7c15u;
}

static void
charge_code(struct hed_layer *self, enum quota_kind kind, uint64_t key, struct quota_device *d,
            uint64_t bytes)
{
    struct quota_charge r = {
        .key = key, .bytes = bytes, .device = d, .context = quota_context(self), .kind = kind};

    if (kind == QUOTA_LIBRARY) {
        r.thing = (void *)(uintptr_t)key;
        r.key = library_key(key, r.context);
    }
    if (quota_put(self->state, &r) != 0)
        quota_give(d, bytes); /* better than never: this is an estimate anyway */
}

static void
unload_code(struct hed_layer *self, enum quota_kind kind, uint64_t key)
{
    if (kind == QUOTA_MODULE)
        (void)hed_call(self->next, cuModuleUnload, .hmod = (CUmodule)key);
    else
        (void)hed_call(self->next, cuLibraryUnload, .library = (CUlibrary)key);
}

/* After a load that does not fit by what was measured: was that really the load's? The module is
 * not loaded any more then; the caller loads it again if *took says less. */
static bool
weigh_again(struct hed_layer *self, enum quota_kind kind, uint64_t key, uint64_t *took)
{
    uint64_t before = 0;
    uint64_t after = 0;
    bool known = free_memory(self, &before);

    unload_code(self, kind, key);
    known = free_memory(self, &after) && known;

    const uint64_t had = after > before ? after - before : 0;
    const bool ours = !known || had >= *took / 2;

    *took = had;
    return ours;
}

CUresult
quota_do_code_load(struct hed_layer *self, const struct quota_call *c)
{
    const enum quota_kind kind = hed_cuda_info[c->id].new_kind;
    struct quota_device *d = c->out.at ? begin_measuring(self) : NULL;
    CUresult r = quota_next(self, c);
    uint64_t took = d ? quota_without_heap(self, end_measuring(self, d)) : 0;

    if (r != CUDA_SUCCESS || took == 0)
        return r;
    if (!quota_claim(self, d, took)) {
        if (weigh_again(self, kind, hed_place_get(c->out), &took) || !quota_claim(self, d, took)) {
            hed_info(QUOTA, "%s: code of %llu bytes does not fit", hed_cuda_info[c->id].name,
                     (unsigned long long)took);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        r = quota_next(self, c);
        if (r != CUDA_SUCCESS) {
            quota_give(d, took);
            return r;
        }
    }
    charge_code(self, kind, hed_place_get(c->out), d, took);
    return r;
}

CUresult
quota_do_library_unload(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charges all;

    quota_take_library(self->state, (CUlibrary)c->key, &all);

    const CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS)
        quota_drop_all(self, &all);
    else
        quota_put_all(self->state, &all);
    return r;
}

/* A library comes into a context when something of it is asked for there. Measured once in each:
 * asking is something that programs do often. What does not fit cannot be undone, because the
 * library is the program's to unload: it is charged, and the program does not get what it asked for
 * until there is room. */
static CUresult
library_used(struct hed_layer *self, struct quota_device *d, uint64_t key, uint64_t took)
{
    const bool fits = took == 0 || quota_claim(self, d, took);

    if (!fits) {
        quota_force(d, took);
        hed_info(QUOTA, "a library's %llu bytes do not fit; they are there until it is unloaded",
                 (unsigned long long)took);
    }
    charge_code(self, QUOTA_LIBRARY, key, d, took);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
quota_do_library_use(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charge old;

    if (quota_peek(self->state, QUOTA_LIBRARY, library_key(c->key, quota_context(self)), &old))
        return old.bytes && quota_is_over(old.device) ? CUDA_ERROR_OUT_OF_MEMORY
                                                      : quota_next(self, c);

    struct quota_device *d = begin_measuring(self);
    const CUresult r = quota_next(self, c);
    const uint64_t took = d ? quota_without_heap(self, end_measuring(self, d)) : 0;

    return d && r == CUDA_SUCCESS ? library_used(self, d, c->key, took) : r;
}
