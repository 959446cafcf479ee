/* Machine code: a cubin's variables and kernels, and its kernels as PTX when they are first needed.
 *
 *   hed_cpu_lifted: NONE --the first layout that needs it--> BUSY --> READY | FAILED
 *   Other threads wait for code->done.
 *
 * The PTX of every kernel declares all pieces of the module's memory, in the order of sass->vars;
 * so that is the order of pub.vars. The variables that programs know follow, as parts of them.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/refusal.h"
#include "driver/driver.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"
#include "kernel/sass.h"

#define TEXT_MAX ((size_t)256 << 20) /* bytes of PTX of a kernel */

/* ---- what is in it --------------------------------------------------------------------------- */

static const char *
copy_symbol_name(struct hed_cpu_code *code, struct hed_bytes name)
{
    char *copy = hed_arena_alloc(&code->arena, name.size + 1, 1);

    if (!copy)
        return NULL;
    if (name.size)
        memcpy(copy, name.data, name.size);
    copy[name.size] = 0;
    return copy;
}

static struct hed_code_var
piece_of_memory(const struct hed_sass_var *v)
{
    return (struct hed_code_var){
        .name = "",
        .size = v->size,
        .align = v->align,
        .constant = v->constant,
        .managed = v->managed,
        .init = v->init.data,
        .init_size = hed_min(v->init.size, v->size),
    };
}

/* A managed variable has a piece of its own; the others are parts of one. */
static int
describe_symbol(struct hed_cpu_code *code, const struct hed_sass_symbol *s,
                struct hed_code_var *vars, uint32_t *count)
{
    struct hed_code_var *whole = &vars[s->var];
    const char *name = copy_symbol_name(code, s->name);

    if (!name)
        return HED_ENOMEM;
    if (whole->managed) {
        whole->name = name;
        whole->visible = s->visible;
        return 0;
    }
    vars[(*count)++] = (struct hed_code_var){
        .name = name,
        .size = s->size,
        .align = 1,
        .constant = whole->constant,
        .visible = s->visible,
        .part_of = s->var + 1,
        .at = s->at,
    };
    return 0;
}

static int
describe_sass_vars(struct hed_cpu_code *code)
{
    const struct hed_sass_program *p = code->sass;
    const size_t most = (size_t)p->var_count + p->symbol_count;
    struct hed_code_var *vars = hed_arena_alloc(&code->arena, (most + 1) * sizeof *vars, 16);
    uint32_t count = p->var_count;

    if (!vars)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < p->var_count; i++)
        vars[i] = piece_of_memory(&p->vars[i]);
    for (uint32_t i = 0; i < p->symbol_count; i++)
        if (describe_symbol(code, &p->symbols[i], vars, &count) != 0)
            return HED_ENOMEM;
    code->pub.vars = vars;
    code->pub.var_count = count;
    return 0;
}

static uint64_t
constant_bytes(const struct hed_sass_program *p)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < p->var_count; i++)
        n += p->vars[i].constant && !p->vars[i].of_compiler ? p->vars[i].size : 0;
    return n;
}

static int
describe_sass_kernels(struct hed_cpu_code *code)
{
    const struct hed_cubin *cubin = &code->sass->cubin;
    struct hed_code_kernel *kernels =
        hed_arena_alloc(&code->arena, (cubin->kernel_count + (size_t)1) * sizeof *kernels, 16);
    const uint64_t constant = constant_bytes(code->sass);

    code->lifted = calloc(cubin->kernel_count + (size_t)1, sizeof *code->lifted);
    if (!kernels || !code->lifted)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < cubin->kernel_count; i++) {
        const int err =
            hed_cubin_describe_kernel(cubin, &cubin->kernels[i], &code->arena, &kernels[i]);

        if (err)
            return err;
        kernels[i].constant = (uint32_t)constant;
        kernels[i].has_code = true;
    }
    return hed_code_make_states(code, kernels, cubin->kernel_count);
}

int
hed_code_read_cubin(struct hed_cpu *c, struct hed_cpu_code *code,
                    const struct hed_code_source *source, struct hed_why *why)
{
    const struct hed_bytes bytes = {source->data, source->size};
    struct hed_hash hash;
    int err = hed_sass_open(bytes, &code->arena, &code->sass, why);

    if (err)
        return err == HED_ELIMIT ? HED_ENOMEM : err;
    /* What is made of it depends on this library too. */
    hed_hash_init(&hash);
    hed_hash_add(&hash, &c->own_identity, sizeof c->own_identity);
    hed_hash_add(&hash, source->data, source->size);
    hed_hash_end(&hash, code->text.hash);
    err = describe_sass_vars(code);
    if (!err)
        err = describe_sass_kernels(code);
    if (err)
        hed_why_set(why, "a cubin cannot be described: %s", hed_err_text(err));
    return err;
}

void
hed_code_fill_pointers(const struct hed_cpu_code *code, const uint64_t *addresses,
                       const uint64_t *where)
{
    const struct hed_sass_program *p = code->sass;

    for (uint32_t i = 0; i < p->pointer_count; i++) {
        const struct hed_sass_pointer *x = &p->pointers[i];
        const uint64_t to = x->to == HED_SASS_NUMBER ? 0 : addresses[x->to];
        const uint64_t value = to + (uint64_t)x->addend;

        if (where[x->var] && hed_range_fits(x->at, sizeof value, p->vars[x->var].size))
            memcpy((unsigned char *)(uintptr_t)where[x->var] + x->at, &value, sizeof value);
    }
}

/* ---- lifting --------------------------------------------------------------------------------- */

static const struct hed_ptx_func *
find_lifted(const struct hed_ptx_module *m, bool is_entry)
{
    const struct hed_ptx_func *f = m->funcs;

    while (f && !(f->is_entry == is_entry && f->has_body))
        f = f->next;
    return f;
}

/* Text of ours that cannot be read, or has other variables, is a mistake of the lifter: the kernel
 * is refused, and the program goes on. */
static int
read_lifted(const struct hed_cpu_code *code, const struct hed_buf *text, bool is_entry,
            struct hed_ptx_module *m, const struct hed_ptx_func **func, struct hed_why *why)
{
    const int err = hed_ptx_parse(m, (const char *)text->data, text->size);

    if (err) {
        const struct hed_ptx_error *e = m->errors;

        hed_why_set(why, "PTX made from machine code cannot be read: line %u: %.300s",
                    e ? e->line : 0, e ? e->text : hed_err_text(err));
        return err == HED_ENOMEM ? err : HED_ENOTSUP;
    }
    *func = find_lifted(m, is_entry);
    if (!*func || hed_ptx_var_count(m) != code->sass->var_count) {
        hed_why_set(
            why, "the PTX that heddle made from machine code lacks a kernel or a variable of it; "
                 "please report this");
        return HED_ENOTSUP;
    }
    return 0;
}

/* Called without a lock, since it may take long. */
static int
lift_and_read(struct hed_cpu *c, struct hed_cpu_code *code, uint32_t kernel)
{
    struct hed_cpu_lifted *l = &code->lifted[kernel];
    struct hed_buf text;
    int err;

    hed_buf_init(&text, TEXT_MAX);
    err = hed_sass_lift(code->sass, kernel, HED_SASS_FOR_CPU, &text, &l->why);
    if (!err) {
        hed_ptx_module_init(&l->module, HED_PTX_CEILING);
        l->is_read = true;
        err = read_lifted(code, &text, true, &l->module, &l->func, &l->why);
    }
    if (!err && hed_cpu_compiles(c))
        err = hed_cpu_text_init(&l->text, text.data, text.size);
    if (!err) {
        l->shown = hed_board_add_lifted(c->board, text.data, text.size);
        hed_debug(CPU, "kernel %s lifted: %u instructions of PTX", code->pub.kernels[kernel].name,
                  (unsigned)l->func->ninsts);
    }
    hed_buf_fini(&text);
    return err;
}

struct hed_cpu_lifted *
hed_code_lifted(const struct hed_cpu_code *code, const struct hed_cpu_kernel *k)
{
    return &code->lifted[(size_t)(k - code->states) / HED_ROWS_COUNT];
}

int
hed_code_lift(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k,
              struct hed_why *why)
{
    struct hed_cpu_lifted *l = hed_code_lifted(code, k);

    hed_lock(&code->lock);
    while (l->state == HED_CPU_BUSY)
        (void)hed_lock_wait(&code->lock, &code->done, UINT64_MAX);
    if (l->state == HED_CPU_NONE) {
        l->state = HED_CPU_BUSY;
        hed_unlock(&code->lock);
        l->err = lift_and_read(c, code, (uint32_t)(l - code->lifted));
        hed_lock(&code->lock);
        l->state = l->err ? HED_CPU_FAILED : HED_CPU_READY;
        pthread_cond_broadcast(&code->done);
    }
    hed_unlock(&code->lock);
    if (l->err) {
        hed_why_set(why, "%s", l->why.text);
        return l->err;
    }
    k->func = l->func;
    k->module = &l->module;
    return 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

struct function_job {
    const struct hed_cpu_kernel *kernel;
    struct hed_cpu_function *function;
    int err;
    struct hed_why why;
};

/* A thread of its own: a warp's stack is too small for it. */
static void *
lift_function(void *arg)
{
    struct function_job *j = arg;
    const struct hed_cpu_code *code = j->kernel->code;
    const uint32_t kernel = (uint32_t)(hed_code_lifted(code, j->kernel) - code->lifted);
    struct hed_cpu_function *f = j->function;
    const struct hed_ptx_func *func = NULL;
    struct hed_watched watched;
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    hed_watch_compilation(code->watch, &watched, j->kernel->name);
    j->err = hed_sass_lift_function(code->sass, kernel, f->address, &text, &j->why);
    if (!j->err)
        j->err = read_lifted(code, &text, false, &f->module, &func, &j->why);
    if (!j->err && func->refused) {
        hed_why_set(&j->why, "%.160s: '%.160s'", func->refused->why, func->refused->text);
        j->err = HED_ENOTSUP;
    }
    if (!j->err)
        j->err = hed_interp_create(&f->module, func, &f->program, &j->why);
    if (!j->err && func->calls_indirectly)
        hed_interp_set_finder(f->program, hed_code_find_function, (void *)(uintptr_t)j->kernel);
    hed_watch_end(code->watch, &watched);
    hed_buf_fini(&text);
    return NULL;
}

static struct hed_cpu_function *
make_function_program(const struct hed_cpu_kernel *k, uint64_t address)
{
    struct hed_cpu_function *f = calloc(1, sizeof *f);
    struct function_job j = {.kernel = k, .function = f};
    int err;

    if (!f)
        return NULL;
    f->address = address;
    hed_ptx_module_init(&f->module, HED_PTX_CEILING);
    err = hed_thread_wait(NULL, lift_function, &j);
    if (!err)
        err = j.err;
    if (err) {
        const char *why = j.why.text[0] ? j.why.text : hed_err_text(err);

        hed_error(CPU, "kernel %s calls a function that cannot run here: %s", k->name, why);
        hed_refused_in_kernel("kernel %s calls a function that cannot run here: %s", k->name, why);
    } else
        hed_debug(CPU, "kernel %s calls the function at 0x%llx", k->name,
                  (unsigned long long)address);
    return f;
}

static struct hed_cpu_function *
find_lifted_function(struct hed_cpu_lifted *l, uint64_t address)
{
    /* Acquire: pairs with the release in lift_function_once(). */
    struct hed_cpu_function *f = atomic_load_explicit(&l->functions, memory_order_acquire);

    while (f && f->address != address)
        f = f->next;
    return f;
}

static struct hed_cpu_function *
lift_function_once(const struct hed_cpu_kernel *k, struct hed_cpu_lifted *l, uint64_t address)
{
    struct hed_cpu_function *f;

    hed_lock(&k->code->lock);
    f = find_lifted_function(l, address); /* another thread may have been faster */
    if (!f) {
        f = make_function_program(k, address);
        if (f) {
            f->next = atomic_load_explicit(&l->functions, memory_order_relaxed);
            /* Release: pairs with the acquire in find_lifted_function(), for the function. */
            atomic_store_explicit(&l->functions, f, memory_order_release);
        }
    }
    hed_unlock(&k->code->lock);
    return f;
}

/* Every call of such a function comes here, from all threads: they do not wait for each other. */
const struct hed_interp *
hed_code_find_function(void *arg, uint64_t address)
{
    const struct hed_cpu_kernel *k = arg;
    struct hed_cpu_lifted *l = hed_code_lifted(k->code, k);
    const struct hed_cpu_function *f = find_lifted_function(l, address);

    if (!f)
        f = lift_function_once(k, l, address);
    return f ? f->program : NULL;
}

static void
free_functions(struct hed_cpu_function *f)
{
    while (f) {
        struct hed_cpu_function *next = f->next;

        hed_interp_free(f->program);
        hed_ptx_module_fini(&f->module);
        free(f);
        f = next;
    }
}

void
hed_code_free_lifted(struct hed_cpu_code *code)
{
    for (uint32_t i = 0; code->lifted && i < code->pub.kernel_count; i++) {
        if (code->lifted[i].is_read)
            hed_ptx_module_fini(&code->lifted[i].module);
        hed_cpu_text_fini(&code->lifted[i].text);
        free_functions(atomic_load_explicit(&code->lifted[i].functions, memory_order_relaxed));
    }
    free(code->lifted);
}
