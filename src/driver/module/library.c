/* Libraries. See library.h. */
#include "driver/module/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "driver/memory/memory.h"
#include "driver/module/image.h"
#include "kernel/fatbin.h"

#define BUCKETS_MAX (1u << 16)

/* ---- life ------------------------------------------------------------------------------------ */

static void
library_destroy(struct hed_object *o)
{
    struct hed_library *l = (struct hed_library *)o;

    for (uint32_t i = 0; l->kernels && i <= l->bucket_mask; i++) {
        while (l->kernels[i]) {
            struct hed_kernel *k = l->kernels[i];

            l->kernels[i] = k->next;
            free(k->name);
            free(k->settings);
            free(k);
        }
    }
    while (l->managed) {
        struct hed_managed *v = l->managed;

        l->managed = v->next;
        (void)hed_memory_give(l->driver, HED_MEMORY_MANAGED, v->at);
        free(v);
    }
    hed_library_forget_unlisted(l);
    for (int i = 0; i < HED_PROFILE_DEVICES_MAX; i++)
        hed_program_unref(l->programs[i]);
    free(l->kernels);
    free(l->copy);
    if (l->file.data)
        hed_fatbin_unmap(l->file);
    (void)pthread_cond_destroy(&l->changed);
    hed_lock_fini(&l->lock);
    free(l);
}

CUresult
hed_library_create(struct hed_driver *d, const struct hed_image *image, void *copy,
                   struct hed_bytes file, struct hed_library **out)
{
    struct hed_library *l = calloc(1, sizeof *l);

    if (!l) {
        free(copy);
        if (file.data)
            hed_fatbin_unmap(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->object.destroy = library_destroy;
    l->driver = d;
    l->image = *image;
    l->copy = copy;
    l->file = file;
    l->owner.device = &d->devices[0];
    hed_lock_init(&l->lock, HED_RANK_LIBRARY);
    (void)pthread_cond_init(&l->changed, NULL);
    if (hed_handles_add(d->handles, HED_KIND_LIBRARY, &l->object) != 0) {
        library_destroy(&l->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = l;
    return CUDA_SUCCESS;
}

/* Waits until no other thread is `busy`, then makes this thread busy: it may open or load without
 * the lock, and others wait. False if the library is gone. */
static bool
get_busy_locked(struct hed_library *l)
{
    while (l->busy)
        (void)hed_lock_wait(&l->lock, &l->changed, UINT64_MAX);
    l->busy = !l->unloaded;
    return l->busy;
}

static void
end_busy_locked(struct hed_library *l)
{
    l->busy = false;
    (void)pthread_cond_broadcast(&l->changed);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Devices of the same compute capability share a program. */
static struct hed_program *
program_like_locked(struct hed_library *l, const struct hed_device *dev)
{
    const struct hed_profile *p = &dev->info.profile;

    for (int i = 0; i < l->driver->device_count; i++) {
        const struct hed_profile *other = &l->driver->devices[i].info.profile;

        if (l->programs[i] && other->major == p->major && other->minor == p->minor &&
            other->accepts_newer_ptx == p->accepts_newer_ptx)
            return l->programs[i];
    }
    return NULL;
}

/* Makes room for the names of the first program's kernels. */
static int
make_buckets_locked(struct hed_library *l, uint32_t kernels)
{
    uint32_t size = 8;

    if (l->kernels)
        return 0;
    while (size < kernels && size < BUCKETS_MAX)
        size *= 2;
    l->kernels = calloc(size, sizeof(struct hed_kernel *));
    l->bucket_mask = size - 1;
    return l->kernels ? 0 : HED_ENOMEM;
}

CUresult
hed_library_program(struct hed_library *l, struct hed_device *dev, struct hed_buf *log,
                    struct hed_program **out)
{
    struct hed_jit_how how = l->how; /* constant */
    CUresult r = CUDA_SUCCESS;

    hed_lock(&l->lock);

    struct hed_program *p = l->programs[dev->ordinal];

    if (!p && !get_busy_locked(l)) {
        hed_unlock(&l->lock);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!p) {
        p = program_like_locked(l, dev);
        if (p) {
            hed_program_ref(p);
        } else {
            hed_unlock(&l->lock);
            how.log = log;
            r = hed_program_open(dev, &l->image, &how, &p);
            hed_lock(&l->lock);
        }
        if (r == CUDA_SUCCESS && make_buckets_locked(l, p->code->kernel_count) != 0) {
            hed_program_unref(p);
            r = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r == CUDA_SUCCESS && l->programs[dev->ordinal])
            hed_program_unref(p); /* Another thread was faster while this one waited. */
        else if (r == CUDA_SUCCESS)
            l->programs[dev->ordinal] = p;
        p = l->programs[dev->ordinal];
        end_busy_locked(l);
    }
    hed_unlock(&l->lock);
    if (r == CUDA_SUCCESS)
        *out = p;
    return r;
}

/* ---- managed variables ----------------------------------------------------------------------- */

static struct hed_managed *
managed_by_name(struct hed_library *l, const char *name)
{
    struct hed_managed *v = l->managed;

    while (v && strcmp(v->var->name, name) != 0)
        v = v->next;
    return v;
}

/* Memory for a managed variable, with its initial value. Addresses in that value are filled in when
 * the library is first loaded, since there are none before. */
static CUresult
make_managed(struct hed_library *l, const struct hed_code_var *var, struct hed_managed **out)
{
    const struct hed_machine *m = l->driver->machine;
    struct hed_managed *v = calloc(1, sizeof *v);

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    v->var = var;

    const CUresult r =
        hed_memory_take_flags(&l->owner, HED_MEMORY_MANAGED, var->size ? var->size : 1, var->align,
                              CU_MEM_ATTACH_GLOBAL, &v->at);

    if (r != CUDA_SUCCESS) {
        free(v);
        return r;
    }
    m->memory.fill(l->driver->machine_state, v->at, 0, 1, var->size);
    if (var->init_size)
        m->memory.copy(l->driver->machine_state, v->at, (uint64_t)(uintptr_t)var->init,
                       var->init_size);
    hed_lock(&l->lock);
    v->next = l->managed;
    l->managed = v;
    hed_unlock(&l->lock);
    *out = v;
    return CUDA_SUCCESS;
}

/* Gives all managed variables of a program memory and writes their addresses, one per variable of
 * the program, to `addresses`. The caller is busy, so the list does not change meanwhile. */
static CUresult
have_managed(struct hed_library *l, struct hed_program *p, uint64_t *addresses)
{
    for (uint32_t i = 0; i < p->code->var_count; i++) {
        const struct hed_code_var *var = &p->code->vars[i];
        struct hed_managed *v;
        CUresult r = CUDA_SUCCESS;

        if (!var->managed)
            continue;
        v = managed_by_name(l, var->name);
        if (!v)
            r = make_managed(l, var, &v);
        if (r != CUDA_SUCCESS)
            return r;
        addresses[i] = v->at;
    }
    return CUDA_SUCCESS;
}

CUresult
hed_library_managed(struct hed_library *l, struct hed_device *dev, const char *name, uint64_t *at,
                    uint64_t *size)
{
    struct hed_program *p;
    CUresult r = hed_library_program(l, dev, NULL, &p);

    if (r != CUDA_SUCCESS)
        return r;

    const uint32_t i = hed_program_var(p, name);

    if (i == HED_PROGRAM_NONE)
        return hed_library_unlisted(l, p->code, name, at, size);
    if (!p->code->vars[i].managed)
        return CUDA_ERROR_NOT_FOUND;

    uint64_t *addresses = calloc(p->code->var_count, sizeof *addresses);

    if (!addresses)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&l->lock);

    const bool busy = get_busy_locked(l);

    hed_unlock(&l->lock);
    r = busy ? have_managed(l, p, addresses) : CUDA_ERROR_INVALID_HANDLE;
    if (busy) {
        hed_lock(&l->lock);
        end_busy_locked(l);
        hed_unlock(&l->lock);
    }
    if (r == CUDA_SUCCESS) {
        *at = addresses[i];
        *size = p->code->vars[i].size;
    }
    free(addresses);
    return r;
}

/* ---- modules --------------------------------------------------------------------------------- */

struct hed_module *
hed_library_module_in_locked(struct hed_library *l, const struct hed_context *c)
{
    for (struct hed_library_in_context *at = l->contexts; at; at = at->next)
        if (at->ctx == c)
            return at->module;
    return NULL;
}

/* Is this the variable's initial value, as it was before addresses were filled in? */
static bool
is_first_value(const struct hed_code_var *var, const unsigned char *value)
{
    if (var->init_size && memcmp(value, var->init, var->init_size) != 0)
        return false;
    for (uint64_t i = var->init_size; i < var->size; i++)
        if (value[i] != 0)
            return false;
    return true;
}

/* Fills in the addresses that a managed variable begins with, unless the program has written to it
 * before. No kernel has, since the library is being loaded for the first time. */
static CUresult
place_managed_addresses(const struct hed_module *m, uint32_t index, struct hed_managed *v)
{
    const struct hed_machine *machine = m->driver->machine;
    void *state = m->driver->machine_state;
    const uint64_t size = v->var->size;
    unsigned char *now = malloc(2 * size), *first = now ? now + size : NULL;
    uint64_t *where = calloc(m->code->var_count, sizeof *where);
    const CUresult r = now && where ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (r == CUDA_SUCCESS) {
        where[index] = (uint64_t)(uintptr_t)first;
        machine->fill_vars(state, m->program, m->variables, where);
        machine->memory.copy(state, (uint64_t)(uintptr_t)now, v->at, size);
        if (is_first_value(v->var, now) && memcmp(now, first, size) != 0)
            machine->memory.copy(state, v->at, (uint64_t)(uintptr_t)first, size);
        v->placed = true;
    }
    free(where);
    free(now);
    return r;
}

static CUresult
place_all_managed(struct hed_library *l, const struct hed_module *m)
{
    CUresult r = CUDA_SUCCESS;

    for (uint32_t i = 0; i < m->code->var_count && r == CUDA_SUCCESS; i++) {
        const struct hed_code_var *var = &m->code->vars[i];
        struct hed_managed *v = var->managed ? managed_by_name(l, var->name) : NULL;

        /* Without an initial value there are no addresses in it. */
        if (v && !v->placed && v->var->init_size && v->var->size == var->size)
            r = place_managed_addresses(m, i, v);
    }
    return r;
}

/* Loads the library into a context. The caller is busy and holds no lock. */
static CUresult
load_library_code(struct hed_library *l, struct hed_context *c, struct hed_program *p,
                  struct hed_module **out)
{
    uint64_t *addresses = calloc(p->code->var_count + (size_t)1, sizeof *addresses);
    CUresult r = addresses ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (r == CUDA_SUCCESS)
        r = have_managed(l, p, addresses);
    if (r == CUDA_SUCCESS)
        r = hed_module_create(c, p, l, addresses, out);
    if (r == CUDA_SUCCESS) {
        r = place_all_managed(l, *out);
        if (r != CUDA_SUCCESS) {
            hed_module_unload(*out);
            hed_object_put(&(*out)->object);
        }
    }
    free(addresses);
    return r;
}

/* Whether a program for one context is needed, because in the library's own one the variables are
 * as they were before a reset. */
static bool
needs_fresh_program(struct hed_library *l, const struct hed_context *c)
{
    hed_lock(&l->lock);

    const bool spent = c->primary && l->spent[c->device->ordinal];

    hed_unlock(&l->lock);
    return spent && l->driver->machine->keeps_variables;
}

static CUresult
load_and_keep(struct hed_library *l, struct hed_context *c, struct hed_program *p)
{
    struct hed_library_in_context *entry = calloc(1, sizeof *entry);
    struct hed_program *fresh = NULL;
    struct hed_module *m;
    CUresult r = entry ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (r == CUDA_SUCCESS && needs_fresh_program(l, c))
        r = hed_program_open(c->device, &l->image, &l->how, &fresh);
    if (r == CUDA_SUCCESS)
        r = load_library_code(l, c, fresh ? fresh : p, &m);
    hed_program_unref(fresh); /* the module has it */
    if (r != CUDA_SUCCESS) {
        free(entry);
        return r;
    }
    hed_lock(&l->lock);
    *entry = (struct hed_library_in_context){l->contexts, c, m};
    l->contexts = entry;
    hed_unlock(&l->lock);
    return CUDA_SUCCESS;
}

CUresult
hed_library_module(struct hed_library *l, struct hed_context *c, struct hed_module **out)
{
    struct hed_program *p;
    CUresult r = CUDA_SUCCESS;

    hed_lock(&l->lock);

    struct hed_module *m = hed_library_module_in_locked(l, c);

    if (m)
        hed_object_ref(&m->object);
    hed_unlock(&l->lock);
    if (!m) {
        r = hed_library_program(l, c->device, NULL, &p);
        if (r != CUDA_SUCCESS)
            return r;
        hed_lock(&l->lock);
        if (!get_busy_locked(l)) {
            hed_unlock(&l->lock);
            return CUDA_ERROR_INVALID_HANDLE;
        }
        /* Another thread may have loaded it while this one waited. */
        if (!hed_library_module_in_locked(l, c)) {
            hed_unlock(&l->lock);
            r = load_and_keep(l, c, p);
            hed_lock(&l->lock);
        }
        m = hed_library_module_in_locked(l, c);
        if (m)
            hed_object_ref(&m->object);
        else if (r == CUDA_SUCCESS)
            r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        end_busy_locked(l);
        hed_unlock(&l->lock);
    }
    if (m)
        *out = m;
    return m ? CUDA_SUCCESS : r;
}

void
hed_library_context_gone(struct hed_library *l, struct hed_context *c)
{
    struct hed_library_in_context *gone = NULL;

    hed_lock(&l->lock);
    for (struct hed_library_in_context **at = &l->contexts; *at; at = &(*at)->next) {
        if ((*at)->ctx == c) {
            gone = *at;
            *at = gone->next;
            break;
        }
    }
    if (gone && c->primary)
        l->spent[c->device->ordinal] = true;
    hed_unlock(&l->lock);
    if (gone)
        hed_object_put(&gone->module->object);
    free(gone);
}

/* ---- unloading ------------------------------------------------------------------------------- */

CUresult
hed_library_unload(struct hed_driver *d, CUlibrary handle)
{
    struct hed_library *l = (struct hed_library *)hed_handles_remove(d->handles, HED_KIND_LIBRARY,
                                                                     (uint64_t)(uintptr_t)handle);

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    hed_lock(&l->lock);
    while (l->busy)
        (void)hed_lock_wait(&l->lock, &l->changed, UINT64_MAX);
    l->unloaded = true;

    struct hed_library_in_context *contexts = l->contexts;

    l->contexts = NULL;
    hed_unlock(&l->lock);
    while (contexts) {
        struct hed_library_in_context *at = contexts;

        contexts = at->next;
        (void)hed_context_synchronize(at->module->ctx);
        hed_module_unload(at->module);
        hed_object_put(&at->module->object);
        free(at);
    }
    /* No more kernels are added by now. */
    for (uint32_t i = 0; l->kernels && i <= l->bucket_mask; i++)
        for (struct hed_kernel *k = l->kernels[i]; k; k = k->next)
            if (hed_handles_remove(d->handles, HED_KIND_KERNEL, k->object.handle))
                hed_object_put(&k->object);
    hed_object_put(&l->object);
    return CUDA_SUCCESS;
}
