/* Which opcodes have a meaning of their own to find out, what holds for all of them, and the words
 * of a refusal.
 */
#include "kernel/ptx/meaning/meaning.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/meaning/family.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/text/print.h"

#define TEXT_MAX 200

/* What is not here is done in all its forms, and says itself what it asks for. */
static hed_meaning_fn *const meanings[HED_PTX_OPS] = {
    [HED_PTX_OP_TEX] = hed_meaning_sample,
    [HED_PTX_OP_TLD4] = hed_meaning_sample,
    [HED_PTX_OP_TXQ] = hed_meaning_texture_query,
    [HED_PTX_OP_SUQ] = hed_meaning_texture_query,
    [HED_PTX_OP_SULD] = hed_meaning_surface,
    [HED_PTX_OP_SUST] = hed_meaning_surface,
    [HED_PTX_OP_SURED] = hed_meaning_surface,
    [HED_PTX_OP_MMA] = hed_meaning_mma,
    [HED_PTX_OP_WMMA_MMA] = hed_meaning_mma,
    [HED_PTX_OP_WMMA_LOAD] = hed_meaning_wmma_move,
    [HED_PTX_OP_WMMA_STORE] = hed_meaning_wmma_move,
    [HED_PTX_OP_LDMATRIX] = hed_meaning_matrix_move,
    [HED_PTX_OP_STMATRIX] = hed_meaning_matrix_move,
    [HED_PTX_OP_MOVMATRIX] = hed_meaning_movmatrix,
    [HED_PTX_OP_ATOM] = hed_meaning_atomic,
    [HED_PTX_OP_RED] = hed_meaning_atomic,
    [HED_PTX_OP_CP_ASYNC] = hed_meaning_copy,
    [HED_PTX_OP_CP_ASYNC_BULK] = hed_meaning_bulk_copy,
    [HED_PTX_OP_MBARRIER_ARRIVE] = hed_meaning_arrival,
    [HED_PTX_OP_MBARRIER_ARRIVE_DROP] = hed_meaning_arrival,
    [HED_PTX_OP_ALLOCA] = hed_meaning_alloca,
    [HED_PTX_OP_SHFL] = hed_meaning_shfl,
    [HED_PTX_OP_VOTE] = hed_meaning_vote,
    [HED_PTX_OP_REDUX] = hed_meaning_redux,
    [HED_PTX_OP_BARRIER_RED] = hed_meaning_barrier_red,
    [HED_PTX_OP_CVT] = hed_meaning_cvt,
    [HED_PTX_OP_CVT_PACK] = hed_meaning_cvt_pack,
    [HED_PTX_OP_SET] = hed_meaning_compare,
    [HED_PTX_OP_SETP] = hed_meaning_compare,
    [HED_PTX_OP_LOP3] = hed_meaning_lop3,
    [HED_PTX_OP_MOV] = hed_meaning_mov,
    [HED_PTX_OP_CALL] = hed_meaning_call,
};

static const char *const lowerings[HED_PTX_OPS] = {
    [HED_PTX_OP_NONE] = "refused",
#define OP(name, family, lowering, ...) [HED_PTX_OP_##name] = #lowering,
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
};

int
hed_meaning_refuse(struct hed_why *why, const char *fmt, ...)
{
    char reason[sizeof(why->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    hed_why_set(why, "%s", reason);
    return HED_ENOTSUP;
}

/* ---- all instructions ------------------------------------------------------------------------ */

/* Does a variable lie where code of this function comes to it? */
static bool
is_reachable(const struct hed_ptx_func *f, const struct hed_ptx_var *v)
{
    if (v->space == HED_PTX_SPACE_PARAM || v->space == HED_PTX_SPACE_LOCAL)
        return v->owner == f;
    return hed_ptx_var_counts(v) || hed_ptx_is_shared_space(v->space);
}

static int
check_variables(const struct hed_ptx_func *f, const struct hed_ptx_operand *o, uint32_t count,
                struct hed_why *why)
{
    int err = 0;

    for (; count-- && !err; o++) {
        switch (o->kind == HED_PTX_OPERAND_MEM ? o->base : o->kind) {
        case HED_PTX_OPERAND_VAR:
            if (!is_reachable(f, o->var))
                err = hed_meaning_refuse(
                    why, "variable %s lies in the space .%s, which is not supported", o->var->name,
                    hed_ptx_space_text(o->var->space));
            break;
        case HED_PTX_OPERAND_TUPLE:
        case HED_PTX_OPERAND_VEC:
        case HED_PTX_OPERAND_PAIR:
        case HED_PTX_OPERAND_LIST:
            err = check_variables(f, o->elems, o->count, why);
            break;
        default:
            break;
        }
    }
    return err;
}

int
hed_ptx_get_meaning(const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
                    struct hed_ptx_meaning *m, struct hed_why *why)
{
    hed_meaning_fn *const get = meanings[i->form->op];
    int err;

    if (i->is_refused)
        return hed_meaning_refuse(why, "%s", i->form->refused);
    if (strcmp(lowerings[i->form->op], "refused") == 0)
        return hed_meaning_refuse(why, "this instruction cannot be run");
    err = get ? get(i, m, why) : 0;
    if (!err && get == hed_meaning_call && m->callee.sig)
        err = hed_meaning_check_passed(f, i, why);
    return err ? err : check_variables(f, i->operands, i->noperands, why);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Where the next variable begins, if these lie one behind the other. */
static uint64_t
add_local(const struct hed_ptx_var *v, uint64_t at)
{
    for (; v && at <= HED_PTX_LOCAL_MAX; v = v->next) {
        if (v->space != HED_PTX_SPACE_LOCAL && v->space != HED_PTX_SPACE_PARAM)
            continue;
        at = hed_round_up(at, v->align ? v->align : 1);
        at += v->size <= HED_PTX_LOCAL_MAX ? v->size : HED_PTX_LOCAL_MAX + 1;
    }
    return at;
}

int
hed_ptx_check_local(const struct hed_ptx_func *f, struct hed_why *why)
{
    uint64_t bytes = add_local(f->vars, 0);

    if (!f->is_entry)
        bytes = add_local(f->sig.params, add_local(f->sig.rets, bytes));
    if (bytes > HED_PTX_LOCAL_MAX)
        return hed_meaning_refuse(why,
                                  "function %s: the variables of a thread take more than %u KiB",
                                  f->name, (unsigned)(HED_PTX_LOCAL_MAX >> 10));
    return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

void
hed_ptx_word_refusal(struct hed_why *why, const struct hed_ptx_func *f,
                     const struct hed_ptx_inst *i, const char *fmt, va_list args)
{
    char reason[256], name[HED_DEMANGLED_MAX];
    struct hed_buf text;

    vsnprintf(reason, sizeof(reason), fmt, args);
    if (!i) {
        hed_why_set(why, "%s", reason);
        return;
    }
    hed_buf_init(&text, TEXT_MAX * 8);
    hed_ptx_print_inst(i, &text);
    hed_why_set(why, "%s: '%.*s' (function %.200s, line %u)", reason, TEXT_MAX, hed_buf_cstr(&text),
                hed_demangle(f->name, name, sizeof name), i->stmt.line);
    hed_buf_fini(&text);
}
