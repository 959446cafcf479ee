/* Modules whose code is elsewhere (driver/far.h): variables by name, settings that are told.
 *
 * A variable's address is the far side's own. It is in the index of memory as long as the module,
 * so that copies and questions about pointers know it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/stats.h"
#include "driver/far.h"
#include "driver/memory/memory.h"
#include "driver/memory/memory_index.h"
#include "driver/module/image.h"
#include "driver/module/library.h"
#include "driver/module/module.h"

struct hed_far_variable {
    struct hed_far_variable *next;
    uint64_t at, size;
    char name[];
};

static const struct hed_far *
far_of(const struct hed_module *m)
{
    return m->driver->machine->far;
}

static struct hed_far_variable *
find(struct hed_far_variable *v, const char *name)
{
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

static struct hed_far_variable *
make(const char *name, uint64_t at, uint64_t size)
{
    const size_t n = strlen(name) + 1;
    struct hed_far_variable *v = malloc(sizeof *v + n);

    if (v) {
        *v = (struct hed_far_variable){.at = at, .size = size};
        memcpy(v->name, name, n);
    }
    return v;
}

static CUresult
keep(struct hed_module *m, const char *name, uint64_t at, uint64_t size)
{
    struct hed_far_variable *v = make(name, at, size);
    struct hed_allocation a = {
        .at = at, .size = size ? size : 1, .taken = size, .kind = HED_MEMORY_MODULE};

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_memory_mark(&a, m->ctx);
    hed_lock(&m->lock);
    if (m->unloaded || find(m->found, name)) {
        hed_unlock(&m->lock); /* another thread was faster */
        free(v);
        return CUDA_SUCCESS;
    }
    v->next = m->found;
    m->found = v;
    hed_unlock(&m->lock);
    return hed_memory_add(m->driver, &a);
}

CUresult
hed_module_far_variable(struct hed_module *m, const char *name, CUdeviceptr *at, size_t *bytes)
{
    uint64_t where = 0, size = 0;
    CUresult r = CUDA_SUCCESS;

    hed_lock(&m->lock);

    const struct hed_far_variable *v = find(m->found, name);

    if (v) {
        where = v->at;
        size = v->size;
    }
    hed_unlock(&m->lock);
    if (!v) {
        r = far_of(m)->variable(m->driver->machine_state, m->ctx, m->code, false, name, &where,
                                &size);
        if (r == CUDA_SUCCESS)
            r = keep(m, name, where, size);
    }
    if (r == CUDA_SUCCESS && at)
        *at = where;
    if (r == CUDA_SUCCESS && bytes)
        *bytes = size;
    return r;
}

void
hed_module_far_forget(struct hed_module *m)
{
    hed_lock(&m->lock);

    struct hed_far_variable *v = m->found;

    m->found = NULL;
    hed_unlock(&m->lock);
    while (v) {
        struct hed_far_variable *gone = v;
        struct hed_allocation a;

        /* The context may have died first, and taken them along. */
        if (hed_memory_find(m->driver, v->at, &a) && a.at == v->at && a.ctx == m->ctx &&
            a.kind == HED_MEMORY_MODULE)
            (void)hed_memory_give(m->driver, HED_MEMORY_MODULE, v->at);
        v = v->next;
        free(gone);
    }
}

/* ---- managed variables ----------------------------------------------------------------------- */

static CUresult
keep_managed(struct hed_library *l, const char *name, uint64_t at, uint64_t size)
{
    struct hed_far_variable *v = make(name, at, size);
    struct hed_allocation a = {
        .at = at, .size = size ? size : 1, .taken = size, .kind = HED_MEMORY_MODULE};

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_memory_mark(&a, &l->owner);
    hed_lock(&l->lock);
    if (find(l->found, name)) {
        hed_unlock(&l->lock); /* another thread was faster */
        free(v);
        return CUDA_SUCCESS;
    }
    v->next = l->found;
    l->found = v;
    hed_unlock(&l->lock);
    return hed_memory_add(l->driver, &a);
}

/* Kernels use it and copies reach it, there. That the program cannot read it is counted and named:
 * the address is reserved, so that whoever tries is stopped. */
CUresult
hed_library_far_managed(struct hed_library *l, struct hed_code *code, const char *name,
                        uint64_t *at, uint64_t *size)
{
    const struct hed_driver *d = l->driver;
    CUresult r;

    hed_lock(&l->lock);

    const struct hed_far_variable *v = find(l->found, name);

    if (v) {
        *at = v->at;
        *size = v->size;
    }
    hed_unlock(&l->lock);
    if (v)
        return CUDA_SUCCESS;
    r = d->machine->far->variable(d->machine_state, NULL, code, true, name, at, size);
    if (r != CUDA_SUCCESS)
        return r;
    hed_warn(DRIVER,
             "the managed variable %s is on a remote GPU: kernels and copies reach it, the "
             "program itself does not",
             name);
    hed_stats_unsupported(HED_API_CUDA, HED_cuLibraryGetManaged,
                          "a remote GPU (only kernels and copies reach the variable)");
    return keep_managed(l, name, *at, *size);
}

void
hed_library_far_forget(struct hed_library *l)
{
    while (l->found) {
        struct hed_far_variable *v = l->found;

        l->found = v->next;
        (void)hed_memory_give(l->driver, HED_MEMORY_MODULE, v->at);
        free(v);
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

/* The far side's word counts: it knows its device. */
CUresult
hed_function_far_set(struct hed_function *f, CUfunction_attribute a, int value)
{
    const struct hed_far *far = far_of(f->module);

    return far ? far->function_set(f->module->driver->machine_state, f, a, value) : CUDA_SUCCESS;
}

CUresult
hed_function_far_call(struct hed_function *f, enum hed_cuda_call id, void *args)
{
    return far_of(f->module)->call(f->module->driver->machine_state, f->module->ctx, id, args);
}

/* The kernel's function in a context, if it has been made; a reference. */
static struct hed_function *
made_function(struct hed_kernel *k, struct hed_module *m)
{
    const uint32_t i =
        m->program == k->program ? k->index : hed_program_kernel(m->program, k->name);
    struct hed_function *f = NULL;

    hed_lock(&m->lock);
    if (i != HED_PROGRAM_NONE && !m->unloaded)
        f = m->functions[i];
    if (f)
        hed_object_ref(&f->object);
    hed_unlock(&m->lock);
    return f;
}

/* The module at a position of the list, if it is on the device; a reference. False: the end. */
static bool
module_at(struct hed_library *l, unsigned position, const struct hed_device *dev,
          struct hed_module **out)
{
    hed_lock(&l->lock);

    struct hed_library_in_context *at = l->contexts;

    while (at && position-- > 0)
        at = at->next;
    *out = at && at->ctx->device == dev ? at->module : NULL;
    if (*out)
        hed_object_ref(&(*out)->object);
    hed_unlock(&l->lock);
    return at != NULL;
}

CUresult
hed_kernel_far_set(struct hed_kernel *k, struct hed_device *dev, CUfunction_attribute a, int value)
{
    struct hed_module *m;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; r == CUDA_SUCCESS && module_at(k->library, i, dev, &m); i++) {
        struct hed_function *f = m ? made_function(k, m) : NULL;

        if (f) {
            r = hed_function_far_set(f, a, value);
            hed_object_put(&f->object);
        }
        if (m)
            hed_object_put(&m->object);
    }
    return r;
}
