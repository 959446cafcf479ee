/* What instructions do to the flow, and where branches and calls through registers can go: .nv.info
 * lists targets, symbols name functions. See inside.h.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "kernel/sass/lift/inside.h"

#define CALL_REL 0x944
#define CALL_REL_BY_REG 0x344
#define CALL_ABS_BY_REG 0x343
#define OPCODE_MASK 0xfffu
#define LEPC 0x34eu
#define LEPC_OF 0x94eu        /* since sm_90, of another place */
#define LEPC_DISTANCE 64u     /* instructions before a call */
#define TRANSFER_MASK 0x1e0u  /* of an opcode */
#define TRANSFERS 0x140u      /* branches, calls, returns */
#define INDIRECT_TARGETS 0x34 /* in .nv.info */
#define TABLE_HEAD 12         /* bytes before the targets */
#define WALK_MAX (1u << 22)   /* instructions looked at in order to tell calls from jumps */

/* ---- what an instruction does to the flow ---------------------------------------------------- */

static enum lift_transfer
call_of(const struct lift *l, const struct hed_sass_inst *inst)
{
    switch (inst->opcode) {
    case CALL_REL:
        return LIFT_CALLS;
    case CALL_REL_BY_REG:
        return LIFT_CALLS_BY_VALUE;
    case CALL_ABS_BY_REG: /* system functions, unless the cubin has others */
        return l->code.taken_count ? LIFT_CALLS_BY_ADDRESS : LIFT_GOES_ON;
    default:
        return LIFT_GOES_ON;
    }
}

enum lift_transfer
hed_lift_transfer_of(const struct lift *l, const struct hed_sass_inst *inst)
{
    if (strcmp(inst->name, "BRA") == 0)
        return LIFT_BRANCHES;
    if (strcmp(inst->name, "BRX") == 0 || strcmp(inst->name, "BRXU") == 0)
        return LIFT_BRANCHES_BY_TABLE;
    if (strcmp(inst->name, "CALL") == 0)
        return call_of(l, inst);
    if (strcmp(inst->name, "RET") == 0)
        return LIFT_RETURNS;
    if (strcmp(inst->name, "EXIT") == 0)
        return LIFT_ENDS;
    return LIFT_GOES_ON;
}

bool
hed_lift_is_absolute(const struct hed_sass_inst *inst)
{
    for (unsigned i = 0; i < inst->modifier_count; i++)
        if (inst->modifiers[i].word && strcmp(inst->modifiers[i].word, "ABS") == 0)
            return true;
    return false;
}

bool
hed_lift_has_uniform_condition(const struct hed_sass_inst *inst)
{
    enum { BRA_U = 0x547 };

    return inst->opcode == BRA_U;
}

bool
hed_lift_is_conditional(const struct hed_sass_inst *inst)
{
    return inst->guard != HED_SASS_PT || inst->guard_not ||
           hed_sass_bits(inst, 87, 3) != HED_SASS_PT || hed_sass_bits(inst, 90, 1) ||
           hed_sass_bits(inst, 33, 1) || /* BRA.DIV, BRA.CONV */
           hed_lift_has_uniform_condition(inst);
}

uint32_t
hed_lift_target(const struct lift *l, const struct hed_sass_inst *inst, uint32_t index)
{
    uint64_t at;

    if (!hed_sass_target(inst, (uint64_t)index * HED_SASS_BYTES, &at) || at % HED_SASS_BYTES ||
        at / HED_SASS_BYTES >= l->flow.inst_count)
        return LIFT_NONE;
    return (uint32_t)(at / HED_SASS_BYTES);
}

/* ---- branches -------------------------------------------------------------------------------- */

struct table_reader {
    struct lift_flow *flow;
    uint32_t base; /* of the piece that the records are about */
};

/* One record can describe several branches: place, 0, count, targets, each of 32 bits. Only counts
 * them while there is no room. */
static int
add_tables(void *arg, uint8_t attribute, struct hed_bytes v)
{
    const struct table_reader *r = arg;
    struct lift_flow *f = r->flow;
    uint64_t at = 0;

    while (attribute == INDIRECT_TARGETS && hed_bytes_has(v, at, TABLE_HEAD)) {
        const uint64_t count = hed_load_u32(v.data + at + 8);

        if (!hed_bytes_has(v, at + TABLE_HEAD, count * 4))
            return HED_EFORMAT;
        if (f->tables)
            f->tables[f->table_count] =
                (struct lift_table){.at = r->base + hed_load_u32(v.data + at),
                                    .base = r->base,
                                    .targets = hed_bytes_cut(v, at + TABLE_HEAD, count * 4)};
        f->table_count++;
        at += TABLE_HEAD + count * 4;
    }
    return 0;
}

static int
compare_tables(const void *a, const void *b)
{
    const struct lift_table *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Records that cannot be read are as good as none: the branches are refused. */
static void
add_tables_of_pieces(struct lift *l)
{
    struct lift_flow *f = &l->flow;

    f->table_count = 0;
    for (uint32_t i = 0; i < l->code.piece_count; i++) {
        struct table_reader r = {f, l->code.pieces[i].base};
        const uint32_t before = f->table_count;

        if (hed_cubin_info_each(l->code.pieces[i].info, add_tables, &r) != 0)
            f->table_count = before;
    }
}

int
hed_lift_read_tables(struct lift *l)
{
    struct lift_flow *f = &l->flow;

    add_tables_of_pieces(l);
    if (!f->table_count)
        return 0;
    f->tables = malloc(f->table_count * sizeof *f->tables);
    if (!f->tables)
        return HED_ENOMEM;
    add_tables_of_pieces(l);
    qsort(f->tables, f->table_count, sizeof *f->tables, compare_tables);
    return 0;
}

uint32_t *
hed_lift_table(const struct lift *l, uint32_t index, uint32_t *count)
{
    const struct lift_flow *f = &l->flow;
    const struct lift_table key = {.at = index * HED_SASS_BYTES};
    const struct lift_table *t =
        f->table_count ? bsearch(&key, f->tables, f->table_count, sizeof key, compare_tables)
                       : NULL;
    uint32_t *targets;

    *count = 0;
    if (!t || !t->targets.size)
        return NULL;
    targets = malloc(t->targets.size);
    for (size_t i = 0; targets && i < t->targets.size / 4; i++) {
        const uint64_t at = t->base + (uint64_t)hed_load_u32(t->targets.data + i * 4);
        const uint64_t to = at / HED_SASS_BYTES;

        if (at % HED_SASS_BYTES || to >= f->inst_count || f->listed[to])
            continue;
        f->listed[to] = 1;
        targets[(*count)++] = (uint32_t)to;
    }
    for (uint32_t i = 0; i < *count; i++)
        f->listed[targets[i]] = 0;
    return targets;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int
hed_lift_find_functions(struct lift *l)
{
    const struct lift_module *m = l->program->inside;
    const uint32_t symbols = hed_elf_file_symbols(&m->symbols);
    struct lift_flow *f = &l->flow;
    struct hed_elf_symbol s;

    f->functions = malloc(((size_t)symbols + 1) * sizeof *f->functions);
    if (!f->functions)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < symbols; i++) {
        if (!hed_elf_file_symbol(&m->symbols, &m->strings, i, &s))
            continue;

        const struct lift_piece *p = hed_lift_piece_of_section(&l->code, s.section);

        if (p && ELF64_ST_TYPE(s.info) == STT_FUNC && s.value && s.value % HED_SASS_BYTES == 0 &&
            s.value < p->size)
            f->functions[f->function_count++] = (p->base + (uint32_t)s.value) / HED_SASS_BYTES;
    }
    qsort(f->functions, f->function_count, sizeof *f->functions, hed_compare_u32);
    return 0;
}

/* ---- calls that are jumps -------------------------------------------------------------------- */

/* Compilers write a call where a branch would do: to a part of the kernel, or of a function, that
 * was moved away. It begins no function, and nothing that can follow returns, or at least not to
 * the place behind the call. */
struct walk {
    struct lift *l;
    uint32_t done, count; /* of flow->queue: instructions that were looked at, and all */
};

static bool
begins_function(const struct lift *l, uint32_t index)
{
    return hed_lift_piece(&l->code, index)->base == index * HED_SASS_BYTES ||
           (l->flow.function_count && bsearch(&index, l->flow.functions, l->flow.function_count,
                                              sizeof index, hed_compare_u32));
}

static void
walk_add(struct walk *w, uint32_t index)
{
    struct lift_flow *f = &w->l->flow;

    if (index >= f->inst_count || f->queued[index])
        return;
    f->queued[index] = 1;
    f->queue[w->count++] = index; /* each instruction once, so there is room */
}

static void
walk_table(struct walk *w, uint32_t index)
{
    uint32_t count, *targets = hed_lift_table(w->l, index, &count);

    for (uint32_t i = 0; i < count; i++)
        walk_add(w, targets[i]);
    free(targets);
}

/* Adds what can follow an instruction, in the same function, as if all calls of no function were
 * jumps: if no return is found that way, they are. True if it can be a return. */
static bool
walk_step(struct walk *w, uint32_t index)
{
    struct hed_sass_inst inst;
    enum lift_transfer t;
    bool is_step = false;
    uint32_t to;

    if (hed_sass_decode(hed_lift_arch(w->l), w->l->code.bytes.data + (size_t)index * HED_SASS_BYTES,
                        &inst) != 0)
        return true; /* who knows */
    t = hed_lift_transfer_of(w->l, &inst);
    switch (t) {
    case LIFT_RETURNS:
        return true;
    case LIFT_BRANCHES_BY_TABLE:
        walk_table(w, index);
        break;
    case LIFT_BRANCHES:
    case LIFT_CALLS:
        to = hed_lift_target(w->l, &inst, index);
        if (to == LIFT_NONE)
            return true;
        is_step = t == LIFT_CALLS && begins_function(w->l, to);
        if (!is_step)
            walk_add(w, to);
        break;
    case LIFT_ENDS:
        break;
    default:
        is_step = true;
        break;
    }
    if (is_step || hed_lift_is_conditional(&inst))
        walk_add(w, index + 1);
    return false;
}

/* Can a return follow an instruction, in the same function? */
static bool
reaches_return(struct lift *l, uint32_t to)
{
    struct lift_flow *f = &l->flow;
    struct walk w = {.l = l};
    bool returns = false;

    if (f->jumps[to])
        return f->jumps[to] == LIFT_NO_JUMP;
    walk_add(&w, to);
    while (w.done < w.count && !returns && f->walked < WALK_MAX) {
        returns = walk_step(&w, f->queue[w.done++]);
        f->walked++;
    }
    f->jumps[to] = returns || w.done < w.count ? LIFT_NO_JUMP : LIFT_JUMP;
    for (uint32_t i = 0; i < w.count; i++)
        f->queued[f->queue[i]] = 0;
    return f->jumps[to] == LIFT_NO_JUMP;
}

/* May a return go behind a call? Then some instruction has that place as a number, where branches
 * and calls have how far they go; or LEPC makes it, shortly before the call. */
static bool
is_returned_to(struct lift *l, uint32_t call)
{
    const uint32_t place = (call + 1) * HED_SASS_BYTES - hed_lift_piece(&l->code, call)->base;

    if (l->code.patch_count || l->flow.walked >= WALK_MAX)
        return true; /* who knows */
    for (uint32_t i = 0; i < l->flow.inst_count; i++, l->flow.walked++) {
        const uint64_t word = hed_load_u64(l->code.bytes.data + (size_t)i * HED_SASS_BYTES);

        if (word >> 32 == place && (word & TRANSFER_MASK) != TRANSFERS)
            return true;
        if (((word & OPCODE_MASK) == LEPC || (word & OPCODE_MASK) == LEPC_OF) && i < call &&
            call - i <= LEPC_DISTANCE)
            return true;
    }
    return false;
}

/* Compilers write NOINC; by hand it is written without, and only for calls. */
bool
hed_lift_is_jump(struct lift *l, const struct hed_sass_inst *inst, uint32_t index, uint32_t to)
{
    return !begins_function(l, to) &&
           (!reaches_return(l, to) ||
            (hed_lift_inst_has(inst, "NOINC") && !is_returned_to(l, index)));
}
