/* A function's body becomes steps. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/pass/pass.h"

#define REGISTERS_MAX (UINT32_C(1) << 28) /* bytes of a frame's registers */
#define REFUSALS_MAX 4096                 /* of a program, with a text of their own */

static void (*const decoders[HED_PTX_OPS])(struct interp_decoder *) = {
    [HED_PTX_OP_NONE] = hed_interp_op_refused,
#define OP(name, family, lowering, ...) [HED_PTX_OP_##name] = hed_interp_op_##lowering,
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
};

void
hed_interp_refuse(struct interp_decoder *d, const char *fmt, ...)
{
    va_list args;

    if (d->err)
        return;
    d->err = HED_ENOTSUP;
    va_start(args, fmt);
    hed_ptx_word_refusal(d->why, d->func->ptx, d->inst, fmt, args);
    va_end(args);
}

void
hed_interp_op_nothing(struct interp_decoder *d)
{
    (void)d;
}

void
hed_interp_op_refused(struct interp_decoder *d)
{
    (void)d; /* hed_ptx_get_meaning() has refused it */
}

/* ---- building -------------------------------------------------------------------------------- */

struct interp_step *
hed_interp_emit(struct interp_decoder *d, interp_run run)
{
    /* After a failure, steps go nowhere. */
    static _Thread_local struct interp_step nowhere;
    struct interp_step *s = &nowhere;

    if (d->count == d->room && !d->err) {
        const uint32_t room = d->room ? 2 * d->room : 256;
        struct interp_step *more = realloc(d->steps, room * sizeof(*more));

        if (!more) {
            d->err = HED_ENOMEM;
        } else {
            d->steps = more;
            d->room = room;
        }
    }
    if (!d->err)
        s = &d->steps[d->count++];
    *s = (struct interp_step){.run = run, .line = d->inst ? d->inst->stmt.line : 0};
    return s;
}

struct interp_step *
hed_interp_emit3(struct interp_decoder *d, interp_run run, uint32_t to, uint32_t a, uint32_t b,
                 uint32_t c)
{
    struct interp_step *s = hed_interp_emit(d, run);

    s->d = to;
    s->a = a;
    s->b = b;
    s->c = c;
    return s;
}

void *
hed_interp_alloc(struct interp_decoder *d, size_t bytes)
{
    void *at = hed_arena_alloc(&d->program->arena, bytes, 16);

    if (!at)
        d->err = d->err ? d->err : HED_ENOMEM;
    else
        memset(at, 0, bytes);
    return at;
}

/* Temporary registers that all instructions of a function share, by width. Lanes may be parked at
 * an instruction that has some while others run on, so an element of one lane must never be where
 * another instruction keeps that of another lane: widths do not share memory. */
static const struct {
    uint8_t bytes; /* of an element; 0 for a predicate */
    uint8_t slots;
    uint16_t at; /* bytes from the first one */
} temporaries[INTERP_WIDTHS] = {
    {0, 16, 0}, {1, 4, 64}, {2, 4, 192}, {4, 12, 448}, {8, 12, 1984}, {16, 4, 5056},
};

#define TEMPORARY_BYTES (5056 + 4 * 16 * HED_PTX_LANES)

uint32_t
hed_interp_temp(struct interp_decoder *d, unsigned bytes)
{
    const unsigned width = bytes ? 1u + (unsigned)__builtin_ctz(bytes) : 0;
    const uint32_t size = bytes ? bytes * HED_PTX_LANES : 4;
    uint32_t at;

    if (d->taken[width] < temporaries[width].slots)
        return d->fixed + temporaries[width].at + size * d->taken[width]++;
    /* An instruction with many operands gets registers of its own. */
    at = d->most;
    d->most += hed_round_up(size, 32);
    if (d->most > REGISTERS_MAX) {
        hed_interp_refuse(d, "function %s has too many registers", d->func->ptx->name);
        d->most = at;
    }
    return at;
}

/* A label knows its own index: lanes that come to it compare that with where others wait. */
static void
emit_label(struct interp_decoder *d)
{
    const uint32_t at = d->count;

    hed_interp_emit(d, hed_interp_label)->e = at;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* How an instruction's nature makes it obey its guard. */
static interp_run
guard_step(const struct hed_ptx_inst *i)
{
    switch (hed_ptx_op_nature(i->form->op)) {
    case HED_PTX_MEETS:
        return hed_interp_guard_split;
    case HED_PTX_LEAVES:
        return NULL; /* by itself */
    default:
        return hed_interp_guard;
    }
}

static void
emit_guard(struct interp_decoder *d, interp_run guard)
{
    struct interp_step *s = hed_interp_emit(d, guard);

    s->a = d->regs[d->inst->guard->id];
    s->e = d->inst->guard_negated ? UINT32_MAX : 0;
}

static void
decode_inst(struct interp_decoder *d, const struct hed_ptx_inst *i)
{
    const interp_run guard = i->guard ? guard_step(i) : NULL;
    const uint32_t at = d->count;
    struct hed_ptx_meaning meaning;
    struct hed_why why;

    d->inst = i;
    d->meaning = &meaning;
    memset(d->taken, 0, sizeof(d->taken));
    d->npending = 0;
    if (hed_ptx_get_meaning(d->func->ptx, i, &meaning, &why) != 0) {
        hed_interp_refuse(d, "%s", why.text);
        return;
    }
    if (guard)
        emit_guard(d, guard);
    decoders[i->form->op](d);
    hed_interp_flush(d);
    if (guard == hed_interp_guard)
        hed_interp_emit(d, hed_interp_unguard);
    if (guard && !d->err)
        d->steps[at].imm = d->count; /* hed_interp_patch makes it a step */
    if (guard == hed_interp_guard_split)
        emit_label(d);
    hed_interp_note_made(d, i);
    d->inst = NULL;
}

static INTERP_STEP(refused_lanes)
{
    w->warp->lane = (uint32_t)__builtin_ctz(w->mask);
    w->warp->grid->host->refuse(w->warp, s->more, s->line);
    return NULL; /* it does not come so far */
}

/* What the step says. Texts are much longer than instructions, so a program has only so many. */
static const char *
refusal_text(struct interp_decoder *d, const char *why)
{
    const size_t size = strlen(why) + 1;
    char *text;

    if (d->refusals == REFUSALS_MAX)
        return "this instruction cannot be run";
    d->refusals++;
    text = hed_interp_alloc(d, size);
    if (text)
        memcpy(text, why, size);
    return text;
}

/* An instruction of a function that only pointers lead to. The kernel may never call it, so if the
 * instruction cannot be run, that is a failure where a lane comes to it. */
static void
decode_pointed_inst(struct interp_decoder *d, const struct hed_ptx_inst *i)
{
    struct hed_why why = {""}, *const outer = d->why;
    const uint32_t at = d->count;

    d->why = &why;
    decode_inst(d, i);
    d->why = outer;
    if (d->err != HED_ENOTSUP)
        return;
    d->err = 0;
    d->count = at; /* without the steps that it has already got */
    d->inst = i;

    const char *text = refusal_text(d, why.text);

    if (i->guard)
        emit_guard(d, hed_interp_guard);
    hed_interp_emit(d, refused_lanes)->more = text;
    if (i->guard)
        hed_interp_emit(d, hed_interp_unguard);
    if (i->guard && !d->err)
        d->steps[at].imm = d->count;
    d->inst = NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void
place_register(struct interp_decoder *d, const struct hed_ptx_reg *r)
{
    const uint32_t bytes = interp_bytes(r->type) ? interp_bytes(r->type) * HED_PTX_LANES : 4;
    const uint32_t count = r->vec ? r->vec : 1;

    /* Predicates are words and may lie anywhere; all others are aligned for vectors. */
    if (bytes != 4)
        d->fixed = hed_round_up(d->fixed, 32);
    d->regs[r->id] = d->fixed;
    d->fixed += bytes * count;
    if (d->fixed > REGISTERS_MAX)
        hed_interp_refuse(d, "function %s has too many registers", d->func->ptx->name);
}

/* Registers that may be read before they are written come first, and begin as 0, as in compiled
 * code. */
static void
place_registers(struct interp_decoder *d)
{
    const struct hed_ptx_func *f = d->func->ptx;
    uint8_t *uses = d->uses = hed_ptx_find_uses(f);

    d->regs = calloc((size_t)f->nregs + 1, sizeof(*d->regs));
    d->known = calloc((size_t)f->nregs + 1, sizeof(*d->known));
    d->made = calloc((size_t)f->nregs + 1, sizeof(*d->made));
    d->fixed = 4; /* the carry flag */
    if (!uses || !d->regs || !d->known || !d->made)
        d->err = HED_ENOMEM;
    for (const struct hed_ptx_reg *r = f->regs; r && !d->err; r = r->next) {
        if (uses[r->id] != HED_PTX_USE_ONCE)
            place_register(d, r);
    }
    d->func->zeroed = d->fixed;
    for (const struct hed_ptx_reg *r = f->regs; r && !d->err; r = r->next) {
        if (uses[r->id] == HED_PTX_USE_ONCE)
            place_register(d, r);
    }
    d->fixed = hed_round_up(d->fixed, 32);
    d->most = d->fixed + TEMPORARY_BYTES;
    if (!d->err)
        hed_interp_find_written(d);
}

static void
place_local(struct interp_decoder *d, const struct hed_ptx_var *v, uint64_t *at)
{
    const uint64_t align = v->align ? v->align : 1;

    *at = hed_round_up(*at, align);
    if (hed_interp_map_put(d->locals, (uintptr_t)v, (uint32_t)*at) != 0)
        d->err = HED_ENOMEM;
    *at += v->size;
}

/* Local variables, and the parameters and results of functions other than kernels. */
static void
place_locals(struct interp_decoder *d)
{
    const struct hed_ptx_func *f = d->func->ptx;
    const struct hed_ptx_var *unsized = NULL;
    struct hed_why why;
    uint64_t at = 0;

    if (hed_ptx_check_local(f, &why) != 0)
        hed_interp_refuse(d, "%s", why.text);
    for (const struct hed_ptx_var *v = f->vars; v && !d->err; v = v->next) {
        if (v->space == HED_PTX_SPACE_LOCAL || v->space == HED_PTX_SPACE_PARAM)
            place_local(d, v, &at);
    }
    for (const struct hed_ptx_var *v = f->is_entry ? NULL : f->sig.rets; v && !d->err; v = v->next)
        place_local(d, v, &at);
    for (const struct hed_ptx_var *v = f->is_entry ? NULL : f->sig.params; v && !d->err;
         v = v->next) {
        if (v->unsized)
            unsized = v;
        else
            place_local(d, v, &at);
    }
    at = hed_round_up(at, 64);
    /* An array of unknown size is the last; each call decides how large it is. */
    if (unsized && hed_interp_map_put(d->locals, (uintptr_t)unsized, (uint32_t)at) != 0)
        d->err = HED_ENOMEM;
    d->func->local = (uint32_t)at;
}

static void
find_labels(struct interp_decoder *d)
{
    const struct hed_ptx_func *f = d->func->ptx;
    bool any = false;

    d->labels = malloc(((size_t)f->nlabels + 1) * sizeof(*d->labels));
    d->waits = calloc((size_t)f->nlabels + 1, sizeof(*d->waits));
    if (!d->labels || !d->waits || hed_ptx_find_waits(d->unit, f, d->waits, &any) != 0) {
        d->err = HED_ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < f->nlabels; i++)
        d->labels[i] = INTERP_NONE;
    if (any)
        d->program->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
}

/* Moves the steps to the program's arena, where branches can point to them. */
static void
settle_steps(struct interp_decoder *d)
{
    struct interp_func *f = d->func;

    f->steps = hed_interp_alloc(d, ((size_t)d->count + 1) * sizeof(*f->steps));
    if (!f->steps)
        return;
    memcpy(f->steps, d->steps, d->count * sizeof(*f->steps));
    f->count = d->count;
    for (uint32_t i = 0; i < f->count; i++)
        hed_interp_patch(d, &f->steps[i]);
    f->registers = d->most;
}

static void
forget_function(struct interp_decoder *d)
{
    free(d->regs);
    free(d->uses);
    free(d->known);
    free(d->made);
    free(d->labels);
    free(d->waits);
    d->regs = d->known = d->made = d->labels = NULL;
    d->uses = NULL;
    d->waits = NULL;
}

void
hed_interp_decode(struct interp_decoder *d, struct interp_func *f, bool is_called)
{
    void (*const decode)(struct interp_decoder *, const struct hed_ptx_inst *) =
        is_called ? decode_inst : decode_pointed_inst;

    d->func = f;
    d->count = 0;
    d->block = 1; /* hed_interp_note_label() */
    d->inst = NULL;
    place_registers(d);
    if (!d->err)
        place_locals(d);
    if (!d->err)
        find_labels(d);
    if (!d->err && !f->ptx->is_entry) {
        hed_interp_values(d, f->ptx->sig.params, &f->params, &f->nparams);
        hed_interp_values(d, f->ptx->sig.rets, &f->rets, &f->nrets);
    }
    for (const struct hed_ptx_stmt *s = f->ptx->body; s && !d->err; s = s->next) {
        if (s->kind == HED_PTX_STMT_LABEL) {
            d->labels[s->label->id] = d->count;
            hed_interp_note_label(d);
            emit_label(d);
        } else if (s->kind == HED_PTX_STMT_INST) {
            decode(d, (const struct hed_ptx_inst *)s);
        }
    }
    if (!d->err) {
        hed_interp_emit(d, hed_interp_end);
        settle_steps(d);
    }
    forget_function(d);
}
