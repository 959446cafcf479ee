/* Code and its global variables (share/quota/engine.h).
 *
 * Nothing says how much memory an image takes: it may be compressed, need compiling, or have
 * variables that are in no file. So it is measured: by how much the device's free memory drops
 * during the call, minus what this process was charged for meanwhile. Memory that other processes
 * allocate at the same moment is measured too. Where the call would be refused for that, the module
 * is unloaded again to see what it really had.
 *
 * Code that is loaded later, at the first use of a function, is not measured.
 */
#include "base/log.h"
#include "share/quota/engine.h"

static bool
free_memory(struct hed_layer *self, uint64_t *out)
{
    size_t free = 0;
    size_t total = 0;
    const int mode = hed_quota_relax(self);
    const CUresult r = hed_call(self->next, cuMemGetInfo_v2, .free = &free, .total = &total);

    hed_quota_relaxed(self, mode);
    *out = free;
    return r == CUDA_SUCCESS;
}

/* Returns the device to measure, or NULL if there is none, as without a context. */
static struct quota_device *
begin_measuring(struct hed_layer *self)
{
    struct quota_device *d = hed_quota_current(self);
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

/* What the call took. It is counted from the last look, because several loads may be under way. */
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

/* Each context has its own copy of a library. */
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
        .key = key, .bytes = bytes, .device = d, .context = hed_quota_context(self), .kind = kind};

    if (kind == QUOTA_LIBRARY) {
        r.thing = (void *)(uintptr_t)key;
        r.key = library_key(key, r.context);
    }
    if (hed_quota_put(self->state, &r) != 0)
        hed_quota_give(d, bytes); /* it could not be given back later, and is an estimate */
}

static void
unload_code(struct hed_layer *self, enum quota_kind kind, uint64_t key)
{
    if (kind == QUOTA_MODULE)
        (void)hed_call(self->next, cuModuleUnload, .hmod = (CUmodule)key);
    else
        (void)hed_call(self->next, cuLibraryUnload, .library = (CUlibrary)key);
}

/* After a load that does not fit: unloads the module to see whether it had really taken that much.
 * If not, *took says how much it had, and the caller loads it again. */
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

static CUresult
quota_do_code_load(struct hed_layer *self, const struct quota_call *c)
{
    const enum quota_kind kind = hed_cuda_info[c->id].new_kind;
    struct quota_device *d = c->out.at ? begin_measuring(self) : NULL;
    CUresult r = quota_next(self, c);
    uint64_t took = d ? hed_quota_without_heap(self, end_measuring(self, d)) : 0;

    if (r != CUDA_SUCCESS || took == 0)
        return r;
    if (!hed_quota_claim(self, d, took)) {
        if (weigh_again(self, kind, hed_place_get(c->out), &took) ||
            !hed_quota_claim(self, d, took)) {
            hed_info(QUOTA, "%s: code of %llu bytes does not fit", hed_cuda_info[c->id].name,
                     (unsigned long long)took);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        r = quota_next(self, c);
        if (r != CUDA_SUCCESS) {
            hed_quota_give(d, took);
            return r;
        }
    }
    charge_code(self, kind, hed_place_get(c->out), d, took);
    return r;
}

HED_CUDA_MEMORY_CODE_LOAD(QUOTA_CALL)

static CUresult
quota_do_library_unload(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charges all;

    hed_quota_take_library(self->state, (CUlibrary)c->key, &all);
    return hed_quota_end_all(self, c, &all);
}

HED_CUDA_MEMORY_LIBRARY_UNLOAD(QUOTA_CALL)

/* A library is loaded into a context when the program first asks for something of it there. That is
 * measured once per context, because programs ask often. A load that does not fit cannot be undone,
 * because only the program may unload the library. So it is charged, and the program does not get
 * what it asked for until there is room. */
static CUresult
library_used(struct hed_layer *self, struct quota_device *d, uint64_t key, uint64_t took)
{
    const bool fits = took == 0 || hed_quota_claim(self, d, took);

    if (!fits) {
        hed_quota_force(d, took);
        hed_info(QUOTA, "a library's %llu bytes do not fit; they are there until it is unloaded",
                 (unsigned long long)took);
    }
    charge_code(self, QUOTA_LIBRARY, key, d, took);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
quota_do_library_use(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charge old;

    if (hed_quota_peek(self->state, QUOTA_LIBRARY, library_key(c->key, hed_quota_context(self)),
                       &old))
        return old.bytes && hed_quota_is_over(old.device) ? CUDA_ERROR_OUT_OF_MEMORY
                                                          : quota_next(self, c);

    struct quota_device *d = begin_measuring(self);
    const CUresult r = quota_next(self, c);
    const uint64_t took = d ? hed_quota_without_heap(self, end_measuring(self, d)) : 0;

    return d && r == CUDA_SUCCESS ? library_used(self, d, c->key, took) : r;
}

HED_CUDA_MEMORY_LIBRARY_USE(QUOTA_CALL)
