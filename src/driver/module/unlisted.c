/* Variables that code does not list: the machine finds them by name (machine->variable).
 *
 * The machine chooses the address of such a variable. It is in the index of memory as long as the
 * module lives, so that copies and pointer attributes can find it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/stats.h"
#include "driver/memory/memory.h"
#include "driver/memory/memory_index.h"
#include "driver/module/image.h"
#include "driver/module/library.h"
#include "driver/module/module.h"

struct hed_unlisted_variable {
    struct hed_unlisted_variable *next;
    uint64_t at, size;
    char name[];
};

static struct hed_unlisted_variable *
find_unlisted_variable(struct hed_unlisted_variable *v, const char *name)
{
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

static struct hed_unlisted_variable *
make_variable(const char *name, uint64_t at, uint64_t size)
{
    const size_t n = strlen(name) + 1;
    struct hed_unlisted_variable *v = malloc(sizeof *v + n);

    if (v) {
        *v = (struct hed_unlisted_variable){.at = at, .size = size};
        memcpy(v->name, name, n);
    }
    return v;
}

static CUresult
keep_in_module(struct hed_module *m, const char *name, uint64_t at, uint64_t size)
{
    struct hed_unlisted_variable *v = make_variable(name, at, size);
    struct hed_allocation a = {
        .at = at, .size = size ? size : 1, .taken = size, .kind = HED_MEMORY_MODULE};

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_memory_mark(&a, m->ctx);
    hed_lock(&m->lock);
    if (m->unloaded || find_unlisted_variable(m->found, name)) {
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
hed_module_unlisted(struct hed_module *m, const char *name, CUdeviceptr *at, size_t *bytes)
{
    uint64_t where = 0, size = 0;
    CUresult r = CUDA_SUCCESS;

    hed_lock(&m->lock);

    const struct hed_unlisted_variable *v = find_unlisted_variable(m->found, name);

    if (v) {
        where = v->at;
        size = v->size;
    }
    hed_unlock(&m->lock);
    if (!v) {
        r = m->driver->machine->variable(m->driver->machine_state, m->ctx, m->code, false, name,
                                         &where, &size);
        if (r == CUDA_SUCCESS)
            r = keep_in_module(m, name, where, size);
    }
    if (r == CUDA_SUCCESS && at)
        *at = where;
    if (r == CUDA_SUCCESS && bytes)
        *bytes = size;
    return r;
}

void
hed_module_forget_unlisted(struct hed_module *m)
{
    hed_lock(&m->lock);

    struct hed_unlisted_variable *v = m->found;

    m->found = NULL;
    hed_unlock(&m->lock);
    while (v) {
        struct hed_unlisted_variable *gone = v;
        struct hed_allocation a;

        /* The context may have been destroyed first, and its memory with it. */
        if (hed_memory_find(m->driver, v->at, &a) && a.at == v->at && a.ctx == m->ctx &&
            a.kind == HED_MEMORY_MODULE)
            (void)hed_memory_give(m->driver, HED_MEMORY_MODULE, v->at);
        v = v->next;
        free(gone);
    }
}

/* The program is held, so the lists do not change. */
static int
each_unlisted_variable(const struct hed_unlisted_variable *v, hed_unlisted_fn fn, void *arg)
{
    int err = 0;

    for (; v && !err; v = v->next)
        err = fn(arg, v->name, v->at, v->size);
    return err;
}

int
hed_module_each_unlisted(const struct hed_module *m, hed_unlisted_fn fn, void *arg)
{
    return each_unlisted_variable(m->found, fn, arg);
}

int
hed_library_each_unlisted(const struct hed_library *l, hed_unlisted_fn fn, void *arg)
{
    return each_unlisted_variable(l->found, fn, arg);
}

/* ---- managed variables ----------------------------------------------------------------------- */

static CUresult
keep_in_library(struct hed_library *l, const char *name, uint64_t at, uint64_t size)
{
    struct hed_unlisted_variable *v = make_variable(name, at, size);
    struct hed_allocation a = {
        .at = at, .size = size ? size : 1, .taken = size, .kind = HED_MEMORY_MODULE};

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_memory_mark(&a, &l->owner);
    hed_lock(&l->lock);
    if (find_unlisted_variable(l->found, name)) {
        hed_unlock(&l->lock); /* another thread was faster */
        free(v);
        return CUDA_SUCCESS;
    }
    v->next = l->found;
    l->found = v;
    hed_unlock(&l->lock);
    return hed_memory_add(l->driver, &a);
}

/* Kernels and copies use the variable at the machine. The program cannot read it, which is counted
 * and logged; the address is reserved here, so that a program that tries gets a fault. */
CUresult
hed_library_unlisted(struct hed_library *l, struct hed_code *code, const char *name, uint64_t *at,
                     uint64_t *size)
{
    const struct hed_driver *d = l->driver;
    CUresult r;

    hed_lock(&l->lock);

    const struct hed_unlisted_variable *v = find_unlisted_variable(l->found, name);

    if (v) {
        *at = v->at;
        *size = v->size;
    }
    hed_unlock(&l->lock);
    if (v)
        return CUDA_SUCCESS;
    r = d->machine->variable(d->machine_state, NULL, code, true, name, at, size);
    if (r != CUDA_SUCCESS)
        return r;
    hed_warn(DRIVER,
             "the managed variable %s is on a remote GPU: kernels and copies can reach it, "
             "but the program's host code cannot",
             name);
    hed_stats_unsupported(HED_API_CUDA, HED_cuLibraryGetManaged,
                          "a remote GPU (only kernels and copies reach the variable)");
    return keep_in_library(l, name, *at, *size);
}

void
hed_library_forget_unlisted(struct hed_library *l)
{
    while (l->found) {
        struct hed_unlisted_variable *v = l->found;

        l->found = v->next;
        (void)hed_memory_give(l->driver, HED_MEMORY_MODULE, v->at);
        free(v);
    }
}
