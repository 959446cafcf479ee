/* Modules in contexts, and functions in modules. See module.h. */
#include "driver/module/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "core/refusal.h"
#include "driver/logs.h"
#include "driver/memory/memory.h"
#include "driver/module/image.h"
#include "driver/module/library.h"
#include "driver/module/old_launch.h"

#define VARIABLE_ALIGN 256 /* bytes; alignment that programs may expect of a variable */

/* ---- variables ------------------------------------------------------------------------------- */

/* Lays out variables one behind the other from `base` on: the managed ones, or the others. Returns
 * how many bytes they take. If `variables` is NULL it only counts. */
static uint64_t
lay_out(const struct hed_code *code, bool managed, uint64_t base, uint64_t *variables)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < code->var_count; i++) {
        const struct hed_code_var *v = &code->vars[i];
        const uint64_t align = v->align > VARIABLE_ALIGN ? v->align : VARIABLE_ALIGN;

        if (v->part_of || v->managed != managed)
            continue;
        at = hed_round_up(at, align);
        if (variables)
            variables[i] = base + at;
        at += v->size ? v->size : 1;
    }
    return at;
}

/* The addresses of variables that are parts of others. */
static void
place_parts(const struct hed_code *code, uint64_t *variables)
{
    for (uint32_t i = 0; i < code->var_count; i++) {
        const struct hed_code_var *v = &code->vars[i];

        if (v->part_of)
            variables[i] = variables[v->part_of - 1] + v->at;
    }
}

static uint64_t
largest_align(const struct hed_code *code)
{
    uint64_t align = VARIABLE_ALIGN;

    for (uint32_t i = 0; i < code->var_count; i++)
        align = code->vars[i].align > align ? code->vars[i].align : align;
    return align;
}

/* Takes memory for the module's variables, in one piece per kind. */
static CUresult
take_variable_memory(struct hed_module *m, const uint64_t *managed)
{
    const uint64_t plain = lay_out(m->code, false, 0, NULL);
    const uint64_t own = managed ? 0 : lay_out(m->code, true, 0, NULL);
    CUresult r = CUDA_SUCCESS;

    if (plain)
        r = hed_memory_take(m->ctx, HED_MEMORY_MODULE, plain, largest_align(m->code), &m->block);
    if (r == CUDA_SUCCESS && own)
        r = hed_memory_take_flags(m->ctx, HED_MEMORY_MANAGED, own, largest_align(m->code),
                                  CU_MEM_ATTACH_GLOBAL, &m->managed);
    if (r != CUDA_SUCCESS)
        return r;
    (void)lay_out(m->code, false, m->block, m->variables);
    if (!managed)
        (void)lay_out(m->code, true, m->managed, m->variables);
    for (uint32_t i = 0; managed && i < m->code->var_count; i++)
        if (m->code->vars[i].managed)
            m->variables[i] = managed[i];
    place_parts(m->code, m->variables);
    return CUDA_SUCCESS;
}

/* Gives the memory back if it still belongs to this module: the context may have been destroyed
 * first. */
static void
give_variable_memory(struct hed_module *m)
{
    const struct {
        uint64_t at;
        enum hed_memory_kind kind;
    } blocks[] = {{m->block, HED_MEMORY_MODULE}, {m->managed, HED_MEMORY_MANAGED}};

    for (int i = 0; i < 2; i++) {
        struct hed_allocation a;

        if (blocks[i].at && hed_memory_find(m->driver, blocks[i].at, &a) && a.at == blocks[i].at &&
            a.kind == blocks[i].kind && a.ctx == m->ctx)
            (void)hed_memory_give(m->driver, blocks[i].kind, blocks[i].at);
    }
    m->block = m->managed = 0;
}

CUresult
hed_module_variable(struct hed_module *m, const char *name, CUdeviceptr *at, size_t *bytes)
{
    const uint32_t i = hed_program_var(m->program, name);

    if (i == HED_PROGRAM_NONE || !m->variables[i] || m->code->vars[i].texture)
        return hed_module_unlisted(m, name, at, bytes);
    if (at)
        *at = m->variables[i];
    if (bytes)
        *bytes = m->code->vars[i].size;
    return CUDA_SUCCESS;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void
function_destroy(struct hed_object *o)
{
    struct hed_function *f = (struct hed_function *)o;
    struct hed_module *m = f->module;

    free(f->old);
    free(f);
    hed_object_put(&m->object);
}

static CUresult
function_create_locked(struct hed_module *m, uint32_t kernel, struct hed_settings *settings)
{
    struct hed_function *f = calloc(1, sizeof *f);

    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->object.destroy = function_destroy;
    f->module = m;
    f->kernel = kernel;
    hed_settings_init(&f->own);
    f->settings = settings ? settings : &f->own;
    if (hed_handles_add(m->driver->handles, HED_KIND_FUNCTION, &f->object) != 0) {
        free(f);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_object_ref(&m->object);
    f->handle = (CUfunction)(uintptr_t)f->object.handle;
    m->driver->machine->function_made(m->driver->machine_state, f);
    /* Release: pairs with the acquire in hed_kernel_function(), which takes no lock. */
    atomic_store_explicit(&m->functions[kernel], f, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult
hed_module_function(struct hed_module *m, uint32_t kernel, struct hed_settings *settings,
                    struct hed_function **out)
{
    CUresult r =
        m->driver->machine->describe(m->driver->machine_state, m->ctx->device, m->code, kernel);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&m->lock);
    if (m->unloaded)
        r = CUDA_ERROR_INVALID_HANDLE;
    else if (!m->functions[kernel])
        r = function_create_locked(m, kernel, settings);
    if (r == CUDA_SUCCESS) {
        *out = m->functions[kernel];
        /* The handle keeps the function alive, and the lock keeps the handle. */
        hed_object_ref(&(*out)->object);
    }
    hed_unlock(&m->lock);
    return r;
}

/* A function by its handle; NULL if there is none. */
static struct hed_function *
by_handle(struct hed_driver *d, CUfunction handle)
{
    return (struct hed_function *)hed_handles_get(d->handles, HED_KIND_FUNCTION,
                                                  (uint64_t)(uintptr_t)handle);
}

static CUresult
from_kernel(struct hed_context *c, CUfunction handle, struct hed_function **out)
{
    struct hed_kernel *k = hed_kernel_find(c->device->driver, (CUkernel)handle);

    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult r = hed_kernel_function(k, c, out);

    hed_object_put(&k->object);
    return r;
}

CUresult
hed_function_find(struct hed_context *c, CUfunction handle, struct hed_function **out)
{
    if (hed_handle_kind((uint64_t)(uintptr_t)handle) == HED_KIND_KERNEL)
        return from_kernel(c, handle, out);

    struct hed_function *f = by_handle(c->device->driver, handle);

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (f->module->ctx != c) {
        hed_object_put(&f->object);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = f;
    return CUDA_SUCCESS;
}

CUresult
hed_function_get(struct hed_layer *self, CUfunction handle, struct hed_function **out)
{
    struct hed_device *any;
    const CUresult r = hed_device_get(self, 0, &any);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_function *f = by_handle(hed_driver_of(self), handle);

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult sticky = hed_context_error(f->module->ctx);

    if (sticky != CUDA_SUCCESS) {
        hed_object_put(&f->object);
        return sticky;
    }
    *out = f;
    return CUDA_SUCCESS;
}

CUresult
hed_function_or_kernel(struct hed_layer *self, CUfunction handle, struct hed_function **out)
{
    struct hed_context *c;

    if (hed_handle_kind((uint64_t)(uintptr_t)handle) != HED_KIND_KERNEL)
        return hed_function_get(self, handle, out);

    const CUresult r = hed_current(self, &c);

    return r == CUDA_SUCCESS ? from_kernel(c, handle, out) : r;
}

/* Has the image PTX besides the machine code? */
static bool
image_has_ptx(const struct hed_function *f)
{
    return strstr(f->module->program->archs, "compute_") != NULL;
}

/* Advice for a kernel that cannot run here. */
static const char *
advice_for(const struct hed_function *f, CUresult r)
{
    switch (r) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        if (image_has_ptx(f) && hed_function_kernel(f)->has_code)
            return " Let its PTX run (HEDDLE_CPU_CODE=ptx, --gpu cpu), or run it on a GPU.";
        return " Build the program with PTX (nvcc -gencode arch=compute_80,code=compute_80), or "
               "run it on a GPU.";
    case CUDA_ERROR_NOT_SUPPORTED:
        if (hed_function_profile(f)->major >= HED_CLUSTERS_FROM)
            return " Choose an older device (--gpu cpu:a100), or run it on a GPU.";
        return " Run it on a GPU.";
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        return " Install heddle with its compiler, heddle-compiler and compiler-llvm.so.";
    default:
        return "";
    }
}

void
hed_function_refused(struct hed_function *f, CUresult r, const char *why)
{
    const char *archs = f->module->program->archs;
    char name[HED_DEMANGLED_MAX];
    char text[2 * HED_DEMANGLED_MAX];

    (void)snprintf(text, sizeof text, "%s%s%s%s: kernel %s cannot run here.%s", why,
                   archs[0] ? " (" : "", archs, archs[0] ? ")" : "",
                   hed_demangle(hed_function_kernel(f)->name, name, sizeof name), advice_for(f, r));
    /* Relaxed: it only says whether the line has been written. */
    if (atomic_exchange_explicit(&f->refusal_logged, true, memory_order_relaxed)) {
        hed_refused_again("%s", text);
        return;
    }
    hed_error(DRIVER, "%s", text);
    hed_logs_tell(CU_LOG_LEVEL_ERROR, text);
    hed_refused("%s", text);
}

/* Loads a function because of its first launch, or because the program asks for it. This is not
 * part of hed_function_prepare(), because every launch would pay for initialising `why`. */
static __attribute__((noinline)) CUresult
load_function(struct hed_function *f, const uint32_t *block)
{
    const struct hed_driver *d = f->module->driver;
    struct hed_why why = {"the GPU that runs the program refused it"};

    if (!hed_function_kernel(f)->has_code) {
        hed_function_refused(
            f, CUDA_ERROR_NO_BINARY_FOR_GPU,
            image_has_ptx(f) ? "the module has machine code for real GPUs, and PTX that cannot be "
                               "compiled here"
                             : "the module has machine code for real GPUs only, and no PTX");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }

    const CUresult r = d->machine->function_load(d->machine_state, f, block, &why);

    /* Relaxed: as below. */
    if (r == CUDA_SUCCESS)
        atomic_store_explicit(&f->loaded, true, memory_order_relaxed);
    else
        hed_function_refused(f, r, why.text);
    return r;
}

CUresult
hed_function_prepare(struct hed_function *f, const uint32_t *block)
{
    /* Relaxed: the machine orders its own data. */
    return atomic_load_explicit(&f->loaded, memory_order_relaxed) ? CUDA_SUCCESS
                                                                  : load_function(f, block);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void
module_destroy(struct hed_object *o)
{
    struct hed_module *m = (struct hed_module *)o;

    give_variable_memory(m);
    hed_module_forget_unlisted(m);
    hed_program_unref(m->program);
    if (m->library)
        hed_object_put(&m->library->object);
    hed_context_unref(m->ctx);
    hed_lock_fini(&m->lock);
    free(m->variables);
    free(m->functions);
    free(m->references);
    free(m);
}

/* Puts the module into its context's list, unless the context has been destroyed meanwhile. */
static CUresult
enter_context(struct hed_module *m)
{
    struct hed_context *c = m->ctx;

    hed_lock(&c->lock);

    /* Acquire: pairs with the thread that ends the context, which then empties the list. */
    const bool alive = atomic_load_explicit(&c->alive, memory_order_acquire);

    if (alive) {
        m->next = c->modules;
        c->modules = m;
    }
    hed_unlock(&c->lock);
    return alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static void
leave_context(struct hed_module *m)
{
    struct hed_context *c = m->ctx;

    hed_lock(&c->lock);
    for (struct hed_module **at = &c->modules; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    hed_unlock(&c->lock);
}

/* Managed variables of a library have their values already, which the program may have changed. */
static CUresult
fill_variables(struct hed_module *m, bool with_managed)
{
    const uint32_t count = m->code->var_count;
    uint64_t *where = calloc(count + (size_t)1, sizeof *where);

    if (!where)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        where[i] = m->code->vars[i].managed && !with_managed ? 0 : m->variables[i];
    m->driver->machine->fill_vars(m->driver->machine_state, m->program, m->variables, where);
    free(where);
    return CUDA_SUCCESS;
}

CUresult
hed_module_create(struct hed_context *c, struct hed_program *p, struct hed_library *library,
                  const uint64_t *managed, struct hed_module **out)
{
    struct hed_module *m = calloc(1, sizeof *m);

    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->object.destroy = module_destroy;
    m->driver = c->device->driver;
    m->ctx = c;
    hed_context_ref(c);
    m->program = p;
    hed_program_ref(p);
    m->code = p->code;
    m->library = library;
    if (library)
        hed_object_ref(&library->object);
    hed_lock_init(&m->lock, HED_RANK_LIBRARY);
    m->variables = calloc(p->code->var_count + (size_t)1, sizeof *m->variables);
    m->functions = calloc(p->code->kernel_count + (size_t)1, sizeof *m->functions);

    CUresult r = m->variables && m->functions ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (r == CUDA_SUCCESS)
        r = take_variable_memory(m, managed);
    if (r == CUDA_SUCCESS)
        r = fill_variables(m, managed == NULL);
    if (r == CUDA_SUCCESS && hed_handles_add(m->driver->handles, HED_KIND_MODULE, &m->object) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        module_destroy(&m->object);
        return r;
    }
    hed_object_ref(&m->object);
    r = enter_context(m);
    if (r != CUDA_SUCCESS) {
        hed_module_unload(m);
        hed_object_put(&m->object);
        return r;
    }
    *out = m;
    return CUDA_SUCCESS;
}

void
hed_module_unload(struct hed_module *m)
{
    struct hed_handles *t = m->driver->handles;
    struct hed_object *named = hed_handles_remove(t, HED_KIND_MODULE, m->object.handle);

    hed_lock(&m->lock);
    m->unloaded = true;
    hed_unlock(&m->lock);
    leave_context(m);
    /* No more functions are added by now. */
    for (uint32_t i = 0; i < m->code->kernel_count; i++) {
        struct hed_function *f = m->functions[i];

        if (f)
            m->driver->machine->function_gone(m->driver->machine_state, f);
        if (f && hed_handles_remove(t, HED_KIND_FUNCTION, f->object.handle))
            hed_object_put(&f->object);
        m->functions[i] = NULL;
    }
    hed_module_forget_references(m);
    if (named)
        hed_object_put(named);
}

struct hed_module *
hed_module_find(struct hed_driver *d, CUmodule handle)
{
    return (struct hed_module *)hed_handles_get(d->handles, HED_KIND_MODULE,
                                                (uint64_t)(uintptr_t)handle);
}

void
hed_module_context_gone(struct hed_context *c)
{
    for (;;) {
        hed_lock(&c->lock);

        struct hed_module *m = c->modules;

        /* While it is in the list it has its handle, and with it a reference. */
        if (m)
            hed_object_ref(&m->object);
        hed_unlock(&c->lock);
        if (!m)
            return;
        if (m->library)
            hed_library_context_gone(m->library, c);
        hed_module_unload(m);
        give_variable_memory(m);
        hed_module_forget_unlisted(m);
        hed_object_put(&m->object);
    }
}
