/* Branches, calls, returns, ends. See inside.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define PLACES_FEW 4 /* compared one by one */

/* What a transfer depends on: the guard and a predicate. */
struct condition {
    bool never;
    const char *pred; /* a predicate register, perhaps with ! before it; NULL if it always holds */
};

/* "@%p0 " without the @ and the blank. */
const char *
hed_lift_guard(struct lift *l)
{
    return l->guarded ? hed_lift_text(l, "%.*s", (int)strlen(l->guard) - 2, l->guard + 1) : NULL;
}

const char *
hed_lift_inverse(struct lift *l, const char *pred)
{
    return pred[0] == '!' ? pred + 1 : hed_lift_text(l, "!%s", pred);
}

/* Its number is one of a predicate that is used nowhere else. */
const char *
hed_lift_label(struct lift *l)
{
    return hed_lift_text(l, "heddle_C%u", l->temps[2]++);
}

static struct condition
combine_guard(struct lift *l, const char *p)
{
    const char *x;

    if (!l->guarded)
        return (struct condition){.pred = p};
    if (!p)
        return (struct condition){.pred = hed_lift_guard(l)};
    x = hed_lift_temp(l, 'x');
    if (l->inst->guard_not) {
        hed_lift_calc(l, "not.pred %s, %%p%u", x, l->inst->guard);
        hed_lift_calc(l, "and.pred %s, %s, %s", x, x, p);
    } else {
        hed_lift_calc(l, "and.pred %s, %%p%u, %s", x, l->inst->guard, p);
    }
    return (struct condition){.pred = x};
}

/* BRA.DIV and BRA.CONV: are the lanes of a mask those that run here and whose guard holds? All that
 * run here take the branch or none does, whatever their own guards are: compilers guard it by "my
 * mask is that of the first lane" (R2UR), so that a warp with several masks is divergent. */
static const char *
converged(struct lift *l)
{
    const bool no_mask = hed_lift_arch(l) == LIFT_TURING; /* all lanes are meant */
    const uint32_t ur = no_mask ? HED_SASS_URZ : (uint32_t)hed_sass_bits(l->inst, 24, 6);
    const bool inverted = no_mask || hed_sass_bits(l->inst, 30, 1);
    const char *all = hed_lift_temp(l, 't'), *t = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "activemask.b32 %s", all);
    if (l->guarded) {
        const char *those = hed_lift_temp(l, 't');

        hed_lift_calc(l, "vote.sync.ballot.b32 %s, %s, %s", those, hed_lift_guard(l), all);
        all = those;
    }
    if (ur == HED_SASS_URZ)
        hed_lift_calc(l, "setp.eq.u32 %s, %s, %s", x, all, inverted ? "0xffffffff" : "0");
    else {
        hed_lift_calc(l, inverted ? "not.b32 %s, %%u%u" : "mov.b32 %s, %%u%u", t, ur);
        hed_lift_calc(l, "setp.eq.u32 %s, %s, %s", x, all, t);
    }
    if (hed_sass_bits(l->inst, 32, 2) == 2) {
        const char *n = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "not.pred %s, %s", n, x);
        return n;
    }
    return x;
}

/* BRA.ANY: does the guard of any lane that runs here hold? */
static const char *
taken_by_any(struct lift *l)
{
    const char *all = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "activemask.b32 %s", all);
    hed_lift_calc(l, "vote.sync.any.pred %s, %s, %s", x, hed_lift_guard(l), all);
    return x;
}

static struct condition
condition_of(struct lift *l, bool is_branch)
{
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant);

    if (!p && !constant)
        return (struct condition){.never = true};
    if (is_branch && hed_sass_bits(l->inst, 33, 1)) {
        if (p)
            hed_lift_refuse(l, "a branch with two conditions");
        return (struct condition){.pred = converged(l)};
    }
    if (is_branch && hed_lift_has(l, "ANY") && l->guarded) {
        if (p)
            hed_lift_refuse(l, "a branch with two conditions");
        return (struct condition){.pred = taken_by_any(l)};
    }
    if (is_branch && hed_lift_has_uniform_condition(l->inst)) {
        const char *u = hed_lift_pred(l, 24, &constant), *x;

        if (!u && !constant)
            return (struct condition){.never = true};
        if (u && p) {
            x = hed_lift_temp(l, 'x');
            hed_lift_calc(l, "and.pred %s, %s, %s", x, u, p);
            p = x;
        } else if (u) {
            p = u;
        }
    }
    return combine_guard(l, p);
}

static void
write_branch(struct lift *l, const char *pred, uint32_t node)
{
    if (pred)
        hed_lift_calc(l, "@%s bra heddle_L%u", pred, l->flow.nodes[node].order);
    else
        hed_lift_calc(l, "bra heddle_L%u", l->flow.nodes[node].order);
}

/* The number that stands for a place. */
static uint32_t
number_of_place(const struct lift *l, uint32_t place, bool by_address)
{
    return by_address ? hed_lift_place_number(&l->code, place) : place * HED_SASS_BYTES;
}

/* Compares a register with the numbers of places, and branches to the one that it is. */
static void
branch_to_equal(struct lift *l, const char *value, const uint32_t *places, uint32_t count,
                bool by_address, uint32_t bias)
{
    const struct lift_node *n = l->node;

    for (uint32_t i = 0; i < count && i < n->next_count; i++) {
        const char *x = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "setp.eq.u32 %s, %s, 0x%x", x, value,
                      number_of_place(l, places[i], by_address) - bias);
        write_branch(l, x, n->next[i]);
        l->text_used = 0; /* nothing of an earlier comparison is needed; value is a copy */
    }
}

/* What a return compares its register with. */
struct returns {
    const struct lift *lift;
    bool by_address;
    uint32_t bias;
};

static uint32_t
number_of_return(const struct returns *r, uint32_t node)
{
    const struct lift *l = r->lift;

    return number_of_place(l, l->flow.nodes[node].first, r->by_address) - r->bias;
}

static int
compare_returns(const void *a, const void *b, void *returns)
{
    const uint32_t x = number_of_return(returns, *(const uint32_t *)a);
    const uint32_t y = number_of_return(returns, *(const uint32_t *)b);

    return (x > y) - (x < y);
}

/* The same for the return of a subroutine that has one copy: its places are those of the nodes that
 * follow, sorted by their numbers, and may be many. So they are halved until few are left. */
static void
return_to_equal(struct lift *l, const char *value, uint32_t first, uint32_t end,
                const struct returns *r)
{
    const uint32_t *next = l->node->next;

    while (end - first > PLACES_FEW) {
        const uint32_t middle = first + (end - first) / 2;
        const char *x = hed_lift_temp(l, 'x');
        char label[16];

        (void)snprintf(label, sizeof label, "%s", x + 2); /* its number occurs once */
        hed_lift_calc(l, "setp.ge.u32 %s, %s, 0x%x", x, value, number_of_return(r, next[middle]));
        hed_lift_calc(l, "@%s bra heddle_R%s", x, label);
        return_to_equal(l, value, first, middle, r);
        hed_buf_addf(&l->statements, "heddle_R%s:\n", label);
        first = middle;
    }
    for (uint32_t i = first; i < end; i++) {
        const char *x = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "setp.eq.u32 %s, %s, 0x%x", x, value, number_of_return(r, next[i]));
        write_branch(l, x, next[i]);
        l->text_used = 0; /* as above */
    }
    hed_lift_calc(l, "trap");
}

/* Goes to the node that follows, where a condition does not hold. */
static void
skip_unless(struct lift *l, const struct condition *c)
{
    const struct lift_node *n = l->node;

    if (c->pred) /* the node that follows is the last one */
        write_branch(l, hed_lift_inverse(l, c->pred), n->next[n->next_count - 1]);
}

static void
branch_by_value(struct lift *l, const struct condition *c, const char *value,
                const uint32_t *places, uint32_t count, bool by_address, uint32_t bias)
{
    skip_unless(l, c);
    branch_to_equal(l, value, places, count, by_address, bias);
    hed_lift_calc(l, "trap");
}

static void
lift_table(struct lift *l, const struct condition *c)
{
    const struct hed_sass_operand *at = hed_lift_operand(l, 0), *by = hed_lift_operand(l, 1);
    uint32_t count, *targets = hed_lift_table(l, l->index, &count);
    const uint32_t bias = (l->index + 1) * HED_SASS_BYTES + (uint32_t)by->value;
    char value[16];

    (void)snprintf(value, sizeof value, "%s", hed_lift_word(l, at));
    branch_by_value(l, c, value, targets, count, false, bias);
    free(targets);
}

static void
lift_call_by_value(struct lift *l, const struct condition *c)
{
    const struct hed_sass_operand *at = hed_lift_operand(l, 0), *by = hed_lift_operand(l, 1);
    const uint32_t bias = (l->index + 1) * HED_SASS_BYTES + (uint32_t)by->value;
    uint32_t count;
    const uint32_t *places = hed_lift_callees(l, l->index, false, &count);
    char value[16];

    (void)snprintf(value, sizeof value, "%s", hed_lift_word(l, at));
    branch_by_value(l, c, value, places, count, false, bias);
}

/* What is none of the functions of the cubin may be one of the system. */
static void
lift_call_by_address(struct lift *l, const struct condition *c)
{
    uint32_t count;
    const uint32_t *places = hed_lift_callees(l, l->index, true, &count);
    char value[16];

    (void)snprintf(value, sizeof value, "%s", hed_lift_word(l, hed_lift_operand(l, 0)));
    skip_unless(l, c);
    branch_to_equal(l, value, places, count, true, 0);
    hed_lift_call(l);
}

static void
lift_return(struct lift *l, const struct condition *c)
{
    const bool by_address = hed_lift_is_absolute(l->inst);
    const struct hed_sass_operand *by = hed_lift_operand(l, 1);
    const uint32_t *places;
    uint32_t count, bias;
    char value[16];

    if (!l->flow.by_value && l->is_function && l->node->context == 0) {
        skip_unless(l, c);
        hed_lift_leave_function(l);
        return;
    }
    if (!l->flow.by_value && !l->flow.shared) {
        write_branch(l, c->pred, l->node->next[0]);
        return;
    }
    /* An offset in the section counts from its beginning, whatever the instruction adds to its own
     * place. */
    bias = by_address ? (uint32_t)by->value : hed_lift_piece(&l->code, l->index)->base;
    (void)snprintf(value, sizeof value, "%s", hed_lift_word(l, hed_lift_operand(l, 0)));
    if (l->flow.shared) {
        struct returns r = {l, by_address, bias};

        skip_unless(l, c);
        count = l->node->next_count - l->node->falls;
        qsort_r(l->node->next, count, sizeof *l->node->next, compare_returns, &r);
        return_to_equal(l, value, 0, count, &r);
        return;
    }
    places = hed_lift_returns(l, l->index, by_address, &count);
    if (!l->is_function) {
        branch_by_value(l, c, value, places, count, by_address, bias);
        return;
    }
    skip_unless(l, c);
    branch_to_equal(l, value, places, count, by_address, bias);

    const char *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "setp.ne.u32 %s, %s, %%back", x, value);
    hed_lift_calc(l, "@%s trap", x);
    hed_lift_leave_function(l);
}

/* On our CPU a branch to the end, as compilers write it: code for warps is faster than with an exit
 * in the middle. A GPU's lanes might meet at that end, and others wait in vain for their exit. */
static void
write_exit(struct lift *l, const char *pred)
{
    if (pred && l->use == HED_SASS_FOR_CPU) {
        l->exits_early = true;
        hed_lift_calc(l, "@%s bra heddle_LX", pred);
    } else if (pred) {
        hed_lift_calc(l, "@%s exit", pred);
    } else {
        hed_lift_calc(l, "exit");
    }
}

bool
hed_lift_transfer(struct lift *l)
{
    const enum lift_transfer t = hed_lift_transfer_of(l, l->inst);
    struct condition c;

    if (t == LIFT_GOES_ON)
        return false;
    c = condition_of(l, t == LIFT_BRANCHES);
    if (c.never)
        return true;
    switch (t) {
    case LIFT_BRANCHES_BY_TABLE:
        lift_table(l, &c);
        break;
    case LIFT_CALLS_BY_VALUE:
        lift_call_by_value(l, &c);
        break;
    case LIFT_CALLS_BY_ADDRESS:
        lift_call_by_address(l, &c);
        break;
    case LIFT_RETURNS:
        lift_return(l, &c);
        break;
    case LIFT_ENDS:
        write_exit(l, c.pred);
        break;
    default:
        write_branch(l, c.pred, l->node->next[0]);
        break;
    }
    return true;
}
