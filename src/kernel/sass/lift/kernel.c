/* Writes a kernel: declarations, then blocks in the order of the flow. See inside.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernel/sass/lift/inside.h"

#define STATEMENTS_MAX ((size_t)1 << 20) /* bytes of text of an instruction */
#define STACK_ALIGN 16u
#define STACK_MAX (1u << 24)
#define WORK_MAX (UINT64_C(1) << 28) /* instructions looked at until nothing changes any more */
#define SPARE_STACK 16384u           /* bytes for calls whose depth the cubin does not say */

/* Offsets into a constant bank are printed with a sign, but the bank has 64 KB: large parameters
 * go beyond half of it. */
static void
unsign_constants(struct hed_sass_inst *inst)
{
    for (unsigned i = 0; i < inst->operand_count; i++) {
        struct hed_sass_operand *o = &inst->operands[i];

        if (o->kind == HED_SASS_CONST || o->kind == HED_SASS_CONST_GAP ||
            (o->kind == HED_SASS_CONST_REG && o->reg == HED_SASS_RZ) ||
            (o->kind == HED_SASS_CONST_UREG && o->ureg == HED_SASS_URZ))
            o->value &= LIFT_BANK_BYTES - 1;
    }
}

unsigned
hed_lift_arch(const struct lift *l)
{
    return l->program->cubin.arch.number;
}

bool
hed_lift_decode(struct lift *l, uint32_t i, struct hed_sass_inst *out)
{
    const uint8_t *p = hed_bytes_at(l->code.bytes, (uint64_t)i * HED_SASS_BYTES, HED_SASS_BYTES);

    if (p && hed_sass_decode(hed_lift_arch(l), p, out) == 0) {
        unsign_constants(out);
        return true;
    }
    if (!l->err) {
        l->err = p ? HED_ENOTSUP : HED_EFORMAT;
        hed_why_set(l->why,
                    "machine code: unknown instruction %016" PRIx64 "%016" PRIx64 " at 0x%x",
                    p ? hed_load_u64(p + 8) : 0, p ? hed_load_u64(p) : 0, i * HED_SASS_BYTES);
    }
    return false;
}

/* ---- one instruction ------------------------------------------------------------------------- */

static bool
never_runs(const struct hed_sass_inst *inst)
{
    return inst->guard == HED_SASS_PT && inst->guard_not;
}

/* Has it a field with a value that means nothing? No compiler writes it, and nobody knows what a
 * GPU would do. */
static bool
has_reserved_value(const struct hed_sass_inst *inst)
{
    for (unsigned i = 0; i < inst->modifier_count; i++)
        if (!inst->modifiers[i].word)
            return true;
    for (unsigned i = 0; i < inst->operand_count; i++)
        if (!inst->operands[i].choice.word)
            return true;
    return false;
}

/* A guard that the instruction itself may change is copied. */
static void
begin_guard(struct lift *l)
{
    const struct hed_sass_inst *inst = l->inst;
    const char *p;
    bool changes = strcmp(inst->name, "R2P") == 0; /* has a mask of predicates */

    l->guard[0] = '\0';
    l->guarded = inst->guard != HED_SASS_PT;
    if (!l->guarded)
        return;
    l->pred_uses[l->index] |= (uint16_t)(1u << lift_pred_bit(inst->guard, inst->uniform));
    for (unsigned i = 0; i < inst->operand_count; i++) {
        const struct hed_sass_operand *o = &inst->operands[i];

        changes |= (o->kind == HED_SASS_PRED || o->kind == HED_SASS_UPRED) && o->reg == inst->guard;
    }
    p = hed_lift_text(l, inst->uniform ? "%%v%u" : "%%p%u", inst->guard);
    if (changes) {
        const char *x = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "mov.pred %s, %s", x, p);
        p = x;
    }
    (void)snprintf(l->guard, sizeof l->guard, "@%s%s ", inst->guard_not ? "!" : "", p);
}

/* R1 is the stack pointer: as long as only constants are added to it, it is known. */
static int64_t
stack_after(const struct lift *l, int64_t before)
{
    const struct hed_sass_operand *to = hed_lift_operand(l, 0);
    uint32_t v;

    if (to->kind != HED_SASS_REG || to->reg != 1 || l->guarded)
        return INT64_MIN;
    for (unsigned i = 1; i <= 3; i++) {
        const struct hed_sass_operand *o = hed_lift_operand(l, i);

        if (o->kind == HED_SASS_CONST && o->bank == 0 && o->value == 0x28 &&
            (strcmp(l->inst->name, "MOV") == 0 || hed_lift_has(l, "MOV")))
            return l->local;
        if (o->kind == HED_SASS_CONST_REG && o->reg == HED_SASS_RZ && o->bank == 0 &&
            o->value == 0x28 && l->inst->modifiers[0].word[0] == '\0')
            return l->local;
    }
    if ((strcmp(l->inst->name, "IADD3") == 0 || strcmp(l->inst->name, "VIADD") == 0) &&
        !l->inst->operands[1].negate && before != INT64_MIN &&
        hed_lift_operand(l, 1)->kind == HED_SASS_REG && hed_lift_operand(l, 1)->reg == 1 &&
        hed_lift_number(hed_lift_operand(l, 2), &v) &&
        hed_lift_operand(l, 3)->kind == HED_SASS_REG && hed_lift_operand(l, 3)->reg == HED_SASS_RZ)
        return (int64_t)(uint32_t)((uint32_t)before + v);
    return INT64_MIN;
}

/* All that libraries have for sm_80 is printed as nvdisasm prints it: there, no bit is unknown. */
static bool
has_unknown_bits(const struct lift *l)
{
    return hed_lift_arch(l) != 80 && !hed_sass_is_understood(l->inst);
}

static void
lift_meaning(struct lift *l)
{
    lift_fn fn;

    if (l->first_pass && has_unknown_bits(l)) {
        hed_lift_refuse(l, "it has bits that are not known");
        return;
    }
    if (l->first_pass)
        hed_lift_note_halves(l);
    hed_lift_note_pair(l);
    if (hed_lift_half(l))
        return;
    fn = hed_lift_find(l->inst->name);
    if (fn)
        fn(l);
    else
        hed_lift_refuse(l, "no PTX for this instruction");
}

static void
lift_inst(struct lift *l, uint32_t i)
{
    const int64_t stack = l->stack;
    struct hed_sass_inst inst;

    if (!hed_lift_decode(l, i, &inst))
        return;
    l->inst = &inst;
    l->index = i;
    l->text_used = 0;
    hed_buf_reset(&l->statements);
    if (has_reserved_value(&inst))
        hed_lift_refuse(l, "a value that is not known");
    if (!never_runs(&inst)) {
        begin_guard(l);
        if (!hed_lift_transfer(l))
            lift_meaning(l);
        if (l->in_group && i + 1 == l->node->end)
            hed_lift_refuse(l, "a group of lanes that goes on behind a branch");
        if (l->first_pass)
            hed_lift_note_carry(l);
        if (l->written[1] == i + 1)
            l->stack = stack_after(l, stack);
    }
    if (!l->err && l->statements.err)
        l->err = l->statements.err;
    if (!l->first_pass)
        hed_lift_tidy(&l->statements, l->out);
    l->inst = NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void
pass_on_stack(struct lift *l)
{
    for (uint32_t k = 0; k < l->node->next_count; k++) {
        struct lift_node *to = &l->flow.nodes[l->node->next[k]];

        if (to->stack == INT64_MAX)
            to->stack = l->stack;
        else if (to->stack != l->stack)
            l->stack_unknown = true;
    }
}

static void
lift_block(struct lift *l, uint32_t n)
{
    l->node = &l->flow.nodes[n];
    if (l->stack_unknown || l->node->stack == INT64_MAX)
        l->node->stack = INT64_MIN;
    l->in_group = l->met = false;
    hed_lift_begin_block(l);
    hed_buf_addf(l->out, "heddle_L%u:\n", l->node->order);
    for (uint32_t i = l->node->first; i < l->node->end && !l->err; i++)
        lift_inst(l, i);
    if (l->first_pass) {
        pass_on_stack(l);
        return;
    }
    if (l->node->falls) {
        const uint32_t to = l->flow.nodes[l->node->next[l->node->next_count - 1]].order;

        if (to != l->node->order + 1)
            hed_buf_addf(l->out, "\tbra heddle_L%u;\n", to);
    }
}

/* Does not write anything that is kept: learns what blocks do. */
static void
learn_blocks(struct lift *l, struct hed_buf *out)
{
    l->first_pass = true;
    l->out = out;
    l->flow.nodes[0].stack = INT64_MIN;
    for (uint32_t i = 0; i < l->flow.node_count && !l->err; i++)
        lift_block(l, l->flow.order[i]);
    hed_buf_reset(out);
    l->first_pass = false;
    memset(l->temps, 0, sizeof l->temps);
}

/* ---- between the passes ---------------------------------------------------------------------- */

static struct lift_pairs
pairs_after(const struct lift_node *n)
{
    struct lift_pairs p;

    for (unsigned i = 0; i < sizeof p.bits / sizeof p.bits[0]; i++)
        p.bits[i] = (n->in.bits[i] & ~n->kill.bits[i]) | n->gen.bits[i];
    return p;
}

/* Counts a walk over all blocks. In code of compilers a few are enough; there is code with so many
 * loops inside of each other that it would take hours. */
static bool
may_walk(struct lift *l, uint64_t *work)
{
    *work += l->flow.node_count + l->flow.inst_count;
    if (*work < WORK_MAX)
        return true;
    l->err = HED_ELIMIT;
    hed_why_set(l->why, "machine code: the kernel has too many loops");
    return false;
}

/* A wide register is valid at the beginning of a block if it is at the end of all blocks before
 * it. */
static void
find_valid_wides(struct lift *l)
{
    struct lift_flow *f = &l->flow;
    uint64_t work = 0;
    bool changed = true;

    for (uint32_t n = 0; n < f->node_count; n++)
        memset(&f->nodes[n].in, n == 0 ? 0 : 0xff, sizeof f->nodes[n].in);
    while (changed && may_walk(l, &work)) {
        changed = false;
        for (uint32_t i = 0; i < f->node_count; i++) {
            const struct lift_node *from = &f->nodes[f->order[i]];
            const struct lift_pairs out = pairs_after(from);

            for (uint32_t k = 0; k < from->next_count; k++) {
                struct lift_pairs *in = &f->nodes[from->next[k]].in;

                for (unsigned w = 0; w < sizeof in->bits / sizeof in->bits[0]; w++) {
                    changed |= (in->bits[w] & ~out.bits[w]) != 0;
                    in->bits[w] &= out.bits[w];
                }
            }
        }
    }
}

/* The predicates that are read from the beginning of a block on; notes on the way what is read
 * after each instruction. */
static uint16_t
preds_before(struct lift *l, const struct lift_node *n, uint16_t live)
{
    for (uint32_t i = n->end; i-- > n->first;) {
        l->pred_live[i] |= live;
        live = (uint16_t)((live & ~l->pred_defs[i]) | l->pred_uses[i]);
    }
    return live;
}

static void
find_live_preds(struct lift *l)
{
    struct lift_flow *f = &l->flow;
    uint64_t work = 0;
    bool changed = true;

    for (uint32_t i = 0; i < f->inst_count; i++)
        l->pred_uses[i] &= (uint16_t)~l->pred_skips[i];
    while (changed && may_walk(l, &work)) {
        changed = false;
        for (uint32_t i = f->node_count; i-- > 0;) {
            struct lift_node *n = &f->nodes[f->order[i]];
            uint16_t live = 0;

            for (uint32_t k = 0; k < n->next_count; k++)
                live |= f->nodes[n->next[k]].live;
            live = preds_before(l, n, live);
            changed |= live != n->live;
            n->live = live;
        }
    }
}

static void
write_kernel(struct lift *l, struct hed_buf *ptx, const struct hed_buf *body)
{
    if (!l->in_module)
        hed_lift_declare_module(l->program, l->use, ptx);
    hed_lift_declare_kernel(l, ptx);
    hed_buf_add(ptx, body->data, body->size);
    hed_buf_addf(ptx, "}\n");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool
alloc_tables(struct lift *l)
{
    const size_t n = l->flow.inst_count + (size_t)1;

    l->fused = calloc(n, sizeof *l->fused);
    l->pred_uses = calloc(n, sizeof *l->pred_uses);
    l->pred_defs = calloc(n, sizeof *l->pred_defs);
    l->pred_live = calloc(n, sizeof *l->pred_live);
    l->pred_skips = calloc(n, sizeof *l->pred_skips);
    return l->fused && l->pred_uses && l->pred_defs && l->pred_live && l->pred_skips;
}

static void
lift_kernel(struct lift *l, struct hed_buf *ptx)
{
    struct hed_buf body;

    hed_buf_init(&body, ptx->ceiling);
    learn_blocks(l, &body);
    hed_lift_judge_spills(l);
    if (!l->err) {
        find_valid_wides(l);
        find_live_preds(l);
    }
    for (uint32_t i = 0; i < l->flow.node_count && !l->err; i++)
        lift_block(l, l->flow.order[i]);
    if (l->exits_early)
        hed_buf_addf(&body, "heddle_LX:\n\texit;\n");
    if (!l->err && body.err)
        l->err = body.err;
    if (!l->err)
        write_kernel(l, ptx, &body);
    if (!l->err && ptx->err)
        l->err = ptx->err;
    hed_buf_fini(&body);
}

/* Linkers that cannot say how much recursion needs write all ones. */
static uint32_t
stack_size(const struct hed_cubin_kernel *k)
{
    const uint64_t stack = (k->stack == UINT32_MAX ? 0 : k->stack) + (uint64_t)k->local;

    return (uint32_t)hed_round_up(stack < STACK_MAX ? stack : STACK_MAX, STACK_ALIGN);
}

/* Whoever lifts it would make clusters of one block. */
static bool
is_for_clusters(const struct hed_cubin_kernel *k)
{
    return k->cluster[0] > 1 || k->cluster[1] > 1 || k->cluster[2] > 1;
}

static int
lift_into(const struct hed_sass_program *program, uint32_t kernel,
          const struct lift_place *function, enum hed_sass_for use, bool in_module,
          struct hed_buf *ptx, struct hed_why *why)
{
    struct lift *l = calloc(1, sizeof *l);
    int err;

    if (!l)
        return HED_ENOMEM;
    l->program = program;
    l->number = kernel;
    l->use = use;
    l->in_module = in_module;
    l->why = why;
    hed_buf_init(&l->statements, STATEMENTS_MAX);
    l->is_function = function != NULL;
    l->entry = function ? (uint32_t)(function->at / HED_SASS_BYTES) : 0;
    l->err = hed_lift_find_code(program, kernel, function, &l->code, why);
    if (!l->err && is_for_clusters(l->code.kernel)) {
        hed_why_set(why, "machine code: the kernel runs in clusters of blocks");
        l->err = HED_ENOTSUP;
    }
    if (!l->err) {
        l->local = stack_size(l->code.kernel);
        l->err = hed_lift_flow(l);
    }
    l->stack_unknown = l->flow.by_value; /* a return would bring it to all places behind calls */
    if (!l->err && (l->flow.recurses || l->flow.calls_by_value || l->code.piece_count > 1 ||
                    l->code.taken_left_out || l->is_function))
        l->local += SPARE_STACK;
    if (!l->err && !alloc_tables(l))
        l->err = HED_ENOMEM;
    hed_lift_find_meetings(l);
    if (!l->err)
        hed_lift_find_window(l);
    if (!l->err)
        lift_kernel(l, ptx);
    err = l->err;
    hed_buf_fini(&l->statements);
    hed_lift_flow_fini(&l->flow);
    hed_lift_code_fini(&l->code);
    free(l->fused);
    free(l->pred_uses);
    free(l->pred_defs);
    free(l->pred_live);
    free(l->pred_skips);
    free(l);
    return err;
}

int
hed_sass_lift(const struct hed_sass_program *program, uint32_t kernel, enum hed_sass_for use,
              struct hed_buf *ptx, struct hed_why *why)
{
    return lift_into(program, kernel, NULL, use, false, ptx, why);
}

int
hed_sass_lift_function(const struct hed_sass_program *program, uint32_t kernel, uint64_t address,
                       struct hed_buf *ptx, struct hed_why *why)
{
    const struct lift_module *m = program->inside;

    for (uint32_t i = 0; i < m->taken_count; i++)
        if (m->taken[i].at % HED_SASS_BYTES == 0 &&
            hed_lift_code_number(m, m->taken[i].section, m->taken[i].at) == address)
            return lift_into(program, kernel, &m->taken[i], HED_SASS_FOR_CPU, false, ptx, why);
    hed_why_set(why, "no function has the address 0x%" PRIx64, address);
    return HED_ENOTFOUND;
}

int
hed_sass_lift_module(const struct hed_sass_program *program, hed_sass_refused_fn refused, void *arg,
                     struct hed_buf *ptx, struct hed_why *why)
{
    uint32_t lifted = 0;

    hed_lift_declare_module(program, HED_SASS_FOR_GPU, ptx);
    for (uint32_t i = 0; i < program->cubin.kernel_count && !ptx->err; i++) {
        const size_t before = ptx->size;

        why->text[0] = '\0';

        const int err = lift_into(program, i, NULL, HED_SASS_FOR_GPU, true, ptx, why);

        if (err == HED_ENOMEM || ptx->err)
            return err;
        lifted += err == 0;
        if (err == 0)
            continue;
        ptx->size = before; /* a kernel can be refused after its first words */
        ptx->data[before] = 0;
        if (refused)
            refused(arg, i, why->text[0] ? why->text : hed_err_text(err));
    }
    if (!ptx->err && lifted == 0 && program->cubin.kernel_count)
        return HED_ENOTSUP;
    return ptx->err;
}
