/* Turns images into code: describes what is in them, fills variables, compiles kernels on demand.
 *
 *   kernel: NONE --the first thread that asks--> BUSY --> READY | FAILED
 *   Other threads wait for code->done.
 */
#include "backends/cpu/code.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "base/buf.h"
#include "base/demangle.h"
#include "base/err.h"
#include "base/log.h"
#include "driver/driver.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"

/* The reason in kernel->refused, in one line. */
static void
explain_refusal(const struct hed_ptx_refusal *r, struct hed_why *why)
{
    char name[HED_DEMANGLED_MAX];

    hed_why_set(why, "%.160s: '%.160s' (function %.160s, line %u)", r->why, r->text,
                hed_demangle(r->func->name, name, sizeof name), r->line);
}

static CUresult
result_of_error(int err)
{
    switch (err) {
    case 0:
        return CUDA_SUCCESS;
    case HED_ENOMEM:
    case HED_ELIMIT:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case HED_ENOTFOUND:
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    case HED_ENOTSUP:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_PTX;
    }
}

struct hed_cpu_source
hed_code_source_of(const struct hed_cpu_code *code, const struct hed_cpu_kernel *k)
{
    return (struct hed_cpu_source){
        .text = code->sass ? &hed_code_lifted(code, k)->text : &code->source,
        .entry = k->func->name,
        .image = &code->text,
    };
}

/* A kernel of the baseline tier. */
static int
decode_kernel(struct hed_cpu_kernel *k, struct hed_why *why)
{
    const int err = hed_interp_create(k->module, k->func, &k->program, why);

    if (!err && k->code->sass && k->func->calls_indirectly)
        hed_interp_set_finder(k->program, hed_code_find_function, k);
    if (!err)
        k->loaded = (struct hed_ptx_loaded){.entry = hed_interp_entry,
                                            .info = *hed_interp_info(k->program)};
    return err;
}

/* Compiled code that is in the cache is used at once; machine code need not be lifted then. */
static bool
find_compiled_kernel(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k)
{
    if ((c->baseline && !c->tiered) || hed_tier_trial() ||
        hed_cpu_find_compiled(c, k->name, &code->text, k->rows, &k->compiled) != 0)
        return false;
    k->tier = HED_TIER_COMPILED;
    return true;
}

static int
make_kernel(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k,
            struct hed_why *why)
{
    int err = HED_ENOTSUP;

    if (k->func->refused) {
        explain_refusal(k->func->refused, why);
    } else if (c->baseline) {
        err = decode_kernel(k, why);
        if (!err && c->tiered && hed_tier_trial())
            (void)hed_tier_compile(c, k, HED_CPU_OTHERS_WAITED);
    } else {
        const struct hed_cpu_source from = hed_code_source_of(code, k);

        err = hed_cpu_compile(c, &from, k->name, k->rows, HED_CPU_OTHERS_WAITED, &k->compiled, why);
        k->tier = err ? HED_TIER_STAYS : HED_TIER_COMPILED;
        /* The baseline tier runs what the compiler refuses. */
        if (err == HED_ENOTSUP) {
            hed_info(CPU, "%s: kernel %s runs in the baseline tier", why->text, k->name);
            err = decode_kernel(k, why);
        }
    }
    return err;
}

/* What this thread does for a kernel, besides the compiler. */
static CUresult
lift_and_make_kernel(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k,
                     struct hed_why *why)
{
    int err = k->func ? 0 : hed_code_lift(c, code, k, why);

    if (err)
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NO_BINARY_FOR_GPU;
    err = make_kernel(c, code, k, why);
    return result_of_error(err);
}

/* Called without a lock, since it may take long. */
static CUresult
compile_kernel(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k,
               struct hed_why *why)
{
    uint32_t shown = code->shown;
    struct hed_watched watched;

    k->code = code;
    if (find_compiled_kernel(c, code, k)) {
        shown = code->sass ? hed_board_add_lifted(c->board, NULL, 0) : shown;
    } else {
        hed_watch_compilation(c->watch, &watched, k->name);

        const CUresult r = lift_and_make_kernel(c, code, k, why);

        hed_watch_end(c->watch, &watched);
        if (r != CUDA_SUCCESS)
            return r;
        shown = code->sass ? hed_code_lifted(code, k)->shown : shown;
    }
    k->shown = hed_board_add_kernel(c->board, shown, k->rows, k->name);
    hed_show_tier(k);
    return CUDA_SUCCESS;
}

/* Which code a launch needs. Where it does not say how blocks look: what the kernel itself asks
 * for, or the usual. Only the compiler's warps depend on it. */
static enum hed_rows
rows_of_launch(const struct hed_cpu *c, const struct hed_code_kernel *k, const uint32_t *block)
{
    if (c->baseline && !c->tiered)
        return HED_ROWS_ANY;
    if (block)
        return hed_rows_of(block);
    return k->required[0] ? hed_rows_of(k->required) : HED_ROWS_32;
}

struct hed_cpu_kernel *
hed_cpu_kernel_of(void *m, const struct hed_code *pub, uint32_t kernel, const uint32_t *block)
{
    struct hed_cpu_kernel *all =
        &((const struct hed_cpu_code *)pub)->states[(size_t)kernel * HED_ROWS_COUNT];

    return &all[rows_of_launch(m, &pub->kernels[kernel], block)];
}

CUresult
hed_cpu_prepare(void *m, struct hed_code *pub, uint32_t kernel, const uint32_t *block,
                struct hed_why *why)
{
    struct hed_cpu_code *code = (struct hed_cpu_code *)pub;

    if (kernel >= pub->kernel_count)
        return CUDA_ERROR_INVALID_VALUE;
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(m, pub, kernel, block);

    /* Acquire: pairs with the release below, which makes the loaded code visible. */
    if (atomic_load_explicit(&k->state, memory_order_acquire) == HED_CPU_READY)
        return CUDA_SUCCESS;
    hed_lock(&code->lock);
    while (k->state == HED_CPU_BUSY)
        (void)hed_lock_wait(&code->lock, &code->done, UINT64_MAX);
    if (k->state == HED_CPU_NONE) {
        k->state = HED_CPU_BUSY;
        hed_unlock(&code->lock);
        k->result = compile_kernel(m, code, k, &k->why);
        hed_lock(&code->lock);
        /* Release: pairs with the acquire above. */
        atomic_store_explicit(&k->state, k->result == CUDA_SUCCESS ? HED_CPU_READY : HED_CPU_FAILED,
                              memory_order_release);
        pthread_cond_broadcast(&code->done);
    }

    const CUresult r = k->result;

    hed_unlock(&code->lock);
    if (r != CUDA_SUCCESS)
        hed_why_set(why, "%s", k->why.text);
    return r;
}

/* ---- variables ------------------------------------------------------------------------------- */

void
hed_cpu_fill_vars(void *m, struct hed_code *pub, const uint64_t *addresses, const uint64_t *where)
{
    struct hed_cpu_code *code = (struct hed_cpu_code *)pub;

    for (uint32_t i = 0; i < pub->var_count; i++) {
        const struct hed_code_var *v = &pub->vars[i];
        unsigned char *at = (unsigned char *)(uintptr_t)where[i];

        if (!at || v->part_of)
            continue;
        if (v->texture) {
            ((union hed_reference_room *)at)->magic = HED_UNBOUND_MAGIC;
            continue;
        }
        if (v->init_size)
            memcpy(at, v->init, v->init_size);
        memset(at + v->init_size, 0, v->size - v->init_size);
        if (code->vars)
            hed_ptx_relocate_var(&code->module, code->vars[i], at, addresses, pub->var_count);
    }
    if (code->sass)
        hed_code_fill_pointers(code, addresses, where);
}

/* ---- open and close -------------------------------------------------------------------------- */

int
hed_cpu_open(void *m, const struct hed_code_source *source, struct hed_code **out,
             struct hed_buf *log, struct hed_why *why)
{
    struct hed_cpu_code *code = calloc(1, sizeof *code);
    struct hed_watched watched;

    if (!code) {
        hed_why_set(why, "not enough memory for a module");
        return HED_ENOMEM;
    }
    hed_lock_init(&code->lock, HED_RANK_CODE);
    pthread_cond_init(&code->done, NULL);
    hed_arena_init(&code->arena, HED_CPU_DESCRIPTION_MAX);
    code->watch = ((struct hed_cpu *)m)->watch;
    hed_watch_compilation(code->watch, &watched, "a module");

    int err = source->kind == HED_CODE_CUBIN ? hed_code_read_cubin(m, code, source, why)
                                             : hed_code_read_ptx(code, source, log, why);

    if (!err && source->kind == HED_CODE_PTX && hed_cpu_compiles(m))
        err = hed_cpu_text_init(&code->source, source->data, source->size);
    hed_watch_end(code->watch, &watched);
    if (err) {
        hed_cpu_close(m, &code->pub);
        return err;
    }
    /* Of machine code, kernels that run are shown. */
    if (source->kind == HED_CODE_PTX)
        code->shown =
            hed_board_add_module(((struct hed_cpu *)m)->board, source->data, source->size);
    *out = &code->pub;
    return 0;
}

void
hed_code_free(struct hed_cpu_code *code)
{
    for (size_t i = 0; code->states && i < (size_t)code->pub.kernel_count * HED_ROWS_COUNT; i++) {
        hed_ptx_unload(&code->states[i].compiled.loaded);
        hed_interp_free(code->states[i].program);
    }
    free(code->states);
    hed_code_free_lifted(code);
    hed_cpu_text_fini(&code->source);
    hed_ptx_module_fini(&code->module);
    hed_arena_fini(&code->arena);
    pthread_cond_destroy(&code->done);
    hed_lock_fini(&code->lock);
    free(code);
}

void
hed_cpu_close(void *m, struct hed_code *pub)
{
    struct hed_cpu_code *code = (struct hed_cpu_code *)pub;

    if (hed_tier_forget(m, code))
        hed_code_free(code);
}
