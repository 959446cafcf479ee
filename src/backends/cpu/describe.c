/* Describes the kernels and variables of an image for the driver. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/code.h"
#include "base/buf.h"
#include "base/number.h"
#include "driver/driver.h"
#include "kernel/ptx.h"

/* There are no registers here, but programs want to see a plausible number. With 64 registers per
 * thread, a block of 1024 threads still fits a register file of 65536. */
#define FILE_REGISTERS 65536
#define REGISTERS_LEAST 16
#define REGISTERS_MOST 255
#define BLOCK_THREADS 1024

static void *
alloc_description(struct hed_cpu_code *code, size_t count, size_t size)
{
    const size_t bytes =
        count * size; /* cannot overflow: the things counted are in memory already */
    void *p = hed_arena_alloc(&code->arena, bytes, 16);

    if (p && bytes)
        memset(p, 0, bytes);
    return p;
}

static uint32_t
thread_count(const uint32_t v[3])
{
    const uint64_t n = (uint64_t)(v[0] ? v[0] : 1) * (v[1] ? v[1] : 1);

    if (!v[0] || n > UINT32_MAX)
        return 0;
    return n * (v[2] ? v[2] : 1) > UINT32_MAX ? 0 : (uint32_t)(n * (v[2] ? v[2] : 1));
}

/* As few as a compiler gives a kernel, so that a block of its threads fits on a multiprocessor:
 * CUB does not launch kernels that do not. Warps come in fours, and registers in eights per thread
 * (driver/module/occupancy.c). */
static uint32_t
estimate_registers(const struct hed_ptx_func *f, uint32_t max_threads)
{
    const uint32_t threads =
        max_threads && max_threads < BLOCK_THREADS ? max_threads : BLOCK_THREADS;
    uint32_t most = FILE_REGISTERS / (uint32_t)hed_round_up(threads, 4 * 32) / 8 * 8;
    /* PTX has a register for nearly every value; most are short-lived. */
    uint32_t n = REGISTERS_LEAST + f->nregs / 8;

    if (most > REGISTERS_MOST)
        most = REGISTERS_MOST;
    if (f->directives.maxnreg && f->directives.maxnreg < most)
        most = f->directives.maxnreg;
    if (n > most)
        n = most;
    return n < REGISTERS_LEAST ? REGISTERS_LEAST : n;
}

static int
describe_params(struct hed_cpu_code *code, const struct hed_ptx_func *f, struct hed_code_kernel *k)
{
    struct hed_code_param *params = alloc_description(code, f->sig.nparams, sizeof *params);
    uint32_t n = 0;

    if (!params)
        return HED_ENOMEM;
    for (const struct hed_ptx_var *v = f->sig.params; v && n < f->sig.nparams; v = v->next, n++)
        params[n] = (struct hed_code_param){(uint32_t)v->offset, (uint32_t)v->size};
    k->params = params;
    k->param_count = n;
    k->param_bytes = (uint32_t)f->sig.params_size;
    return 0;
}

static int
describe_cpu_kernel(struct hed_cpu_code *code, const struct hed_ptx_func *f,
                    struct hed_code_kernel *k)
{
    const struct hed_ptx_directives *d = &f->directives;
    struct hed_ptx_unit unit;
    int err = hed_ptx_unit_init(&unit, &code->module, f);

    if (err)
        return err;
    k->name = f->name;
    k->shared = unit.shared_size;
    for (uint32_t i = 0; i < unit.nfuncs; i++) {
        for (const struct hed_ptx_var *v = unit.funcs[i]->vars; v; v = v->next)
            k->local += v->space == HED_PTX_SPACE_LOCAL ? (uint32_t)v->size : 0;
    }
    hed_ptx_unit_fini(&unit);
    /* .reqntid does not lower max_threads: for such a kernel NVIDIA's driver reports the device's
     * limit, and a launch is compared with `required`. */
    k->max_threads = thread_count(d->maxntid);
    k->registers =
        estimate_registers(f, thread_count(d->reqntid) ? thread_count(d->reqntid) : k->max_threads);
    for (int i = 0; i < 3; i++) {
        k->required[i] = d->reqntid[i] ? d->reqntid[i] : d->reqntid[0] ? 1 : 0;
        k->cluster[i] = d->reqnctapercluster[i]   ? d->reqnctapercluster[i]
                        : d->reqnctapercluster[0] ? 1
                                                  : 0;
    }
    k->must_have_cluster = d->explicitcluster;
    k->has_code = true;
    return describe_params(code, f, k);
}

struct vars {
    struct hed_cpu_code *code;
    struct hed_code_var *vars;
    uint64_t constant; /* bytes */
};

static void
describe_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct vars *a = arg;
    struct hed_code_var *o = &a->vars[index];

    a->code->vars[index] = v;
    *o = (struct hed_code_var){
        .name = v->name,
        .size = hed_ptx_var_is_reference(v) ? sizeof(union hed_reference_room) : v->size,
        .align = hed_ptx_var_is_reference(v) ? _Alignof(union hed_reference_room) : v->align,
        .constant = v->space == HED_PTX_SPACE_CONST,
        .managed = v->managed,
        .visible = !v->owner,
        .init = v->init,
        .init_size = hed_min(v->init_size, v->size),
        .texture = hed_ptx_var_is_reference(v),
        .surface = v->type == HED_PTX_TYPE_SURFREF,
    };
    if (o->constant)
        a->constant += v->size;
}

static bool
is_kernel_with_body(const struct hed_ptx_func *f)
{
    return f->is_entry && f->has_body;
}

int
hed_code_make_states(struct hed_cpu_code *code, const struct hed_code_kernel *kernels,
                     uint32_t count)
{
    code->states = calloc((count + (size_t)1) * HED_ROWS_COUNT, sizeof *code->states);
    if (!code->states)
        return HED_ENOMEM;
    code->pub.kernels = kernels;
    code->pub.kernel_count = count;
    for (uint32_t i = 0; i < count * HED_ROWS_COUNT; i++) {
        code->states[i].name = kernels[i / HED_ROWS_COUNT].name;
        code->states[i].rows = (enum hed_rows)(i % HED_ROWS_COUNT);
    }
    return 0;
}

static int
describe_module(struct hed_cpu_code *code, uint32_t device)
{
    const struct hed_ptx_module *m = &code->module;
    const uint32_t nvars = hed_ptx_var_count(m);
    struct vars v = {.code = code, .vars = alloc_description(code, nvars, sizeof *v.vars)};
    uint32_t count = 0, n = 0;

    code->vars = alloc_description(code, nvars, sizeof *code->vars);
    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next)
        count += is_kernel_with_body(f);

    struct hed_code_kernel *kernels = alloc_description(code, count, sizeof *kernels);

    if (!v.vars || !code->vars || !kernels)
        return HED_ENOMEM;
    hed_ptx_each_var(m, describe_var, &v);
    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next) {
        if (!is_kernel_with_body(f))
            continue;

        const int err = describe_cpu_kernel(code, f, &kernels[n]);

        if (err)
            return err;
        kernels[n].constant = (uint32_t)v.constant;
        kernels[n].ptx_version = m->sm;
        kernels[n].binary_version = device;
        n++;
    }
    code->pub.vars = v.vars;
    code->pub.var_count = nvars;

    const int err = hed_code_make_states(code, kernels, n);

    n = 0;
    for (const struct hed_ptx_func *f = m->funcs; !err && f; f = f->next)
        for (unsigned rows = 0; is_kernel_with_body(f) && rows < HED_ROWS_COUNT; rows++, n++) {
            code->states[n].func = f;
            code->states[n].module = m;
        }
    return err;
}

int
hed_code_read_ptx(struct hed_cpu_code *code, const struct hed_code_source *source,
                  struct hed_buf *log, struct hed_why *why)
{
    hed_ptx_module_init(&code->module, HED_PTX_CEILING);

    int err = hed_ptx_parse(&code->module, source->data, source->size);

    if (err) {
        const struct hed_ptx_error *e = code->module.errors;

        if (log)
            hed_ptx_log(&code->module, log);
        if (e)
            hed_why_set(why, "PTX line %u, column %u: %.300s", e->line, e->column, e->text);
        else
            hed_why_set(why, "PTX cannot be read: %s", hed_err_text(err));
        return err == HED_ELIMIT ? HED_ENOMEM : err;
    }
    hed_hash_of(source->data, source->size, code->text.hash);
    hed_ptx_leave_out_device_runtime(&code->module);
    err = describe_module(code, source->device);
    if (err)
        hed_why_set(why, "a module cannot be described: %s", hed_err_text(err));
    return err;
}
