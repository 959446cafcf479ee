/* Generic addresses of shared memory, and which space an address is in. See inside.h for the rules.
 *
 * Until sm_89, code adds an offset to the address of the shared window, a word of constant bank 0.
 * Since sm_90 it puts an offset and SR_SWINHI together, as the low and the high half of an address.
 * None of ours is made like that. So there SR_SWINHI is a number that no other address has as its
 * high half, and loads, stores and questions with a generic address look for it. Code that does not
 * read that register has no such addresses.
 *
 * The first KB of the window belongs to the system since sm_90. We have nothing there.
 */
#include <inttypes.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

#define RESERVED_BYTES 1024
#define SHARED_HIGH 0x01000000u /* as if addresses had more than 56 bits */

enum { SR_SWINHI = 47 };

int64_t
hed_lift_shared_begin(const struct lift *l)
{
    return hed_lift_arch(l) >= LIFT_HOPPER ? RESERVED_BYTES : 0;
}

bool
hed_lift_window_high(const struct lift *l, unsigned special, uint32_t *value)
{
    *value = SHARED_HIGH;
    return special == SR_SWINHI && hed_lift_arch(l) >= LIFT_HOPPER;
}

static bool
reads_window_high(const struct hed_sass_inst *inst)
{
    return (strcmp(inst->name, "S2R") == 0 || strcmp(inst->name, "S2UR") == 0 ||
            strcmp(inst->name, "CS2R") == 0) &&
           hed_sass_bits(inst, 72, 8) == SR_SWINHI;
}

void
hed_lift_find_window(struct lift *l)
{
    struct hed_sass_inst inst;

    l->shared_is_generic = false;
    if (hed_lift_arch(l) < LIFT_HOPPER)
        return;
    l->shared_is_generic = l->is_function || l->code.taken_left_out;
    for (uint32_t i = 0; i < l->flow.inst_count && !l->shared_is_generic; i++)
        l->shared_is_generic =
            hed_sass_decode(hed_lift_arch(l), l->code.bytes.data + (size_t)i * HED_SASS_BYTES,
                            &inst) == 0 &&
            reads_window_high(&inst);
}

/* The whole address that an operand means, in one register. */
static const char *
sum_of_address(struct lift *l, const struct hed_sass_operand *o)
{
    struct hed_sass_operand base = *o;
    const char *at, *q;

    base.value = 0;
    at = hed_lift_far(l, &base);
    if (!o->value)
        return at;
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "add.s64 %s, %s, %" PRId64, q, at, o->value);
    return q;
}

/* Is it an address of shared memory? low is its low half, a new register. */
static const char *
is_in_window(struct lift *l, const char *address, const char *low)
{
    const char *high = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, address);
    hed_lift_calc(l, "setp.eq.u32 %s, %s, 0x%x", x, high, SHARED_HIGH);
    return x;
}

const char *
hed_lift_generic_value(struct lift *l, const char *address)
{
    const char *low, *x, *offset, *begin, *shared, *sum, *q;

    if (!l->shared_is_generic)
        return address;
    low = hed_lift_temp(l, 't');
    x = is_in_window(l, address, low);
    offset = hed_lift_temp(l, 'q');
    begin = hed_lift_temp(l, 'q');
    shared = hed_lift_temp(l, 'q');
    sum = hed_lift_temp(l, 'q');
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mad.wide.u32 %s, %s, 1, %" PRId64, offset, low, -hed_lift_shared_begin(l));
    hed_lift_calc(l, "mov.u64 %s, %s", begin, hed_lift_shared_name(l));
    hed_lift_calc(l, "cvta.shared.u64 %s, %s", shared, begin);
    hed_lift_calc(l, "add.s64 %s, %s, %s", sum, shared, offset);
    hed_lift_calc(l, "selp.b64 %s, %s, %s, %s", q, sum, address, x);
    return q;
}

const char *
hed_lift_generic(struct lift *l, const struct hed_sass_operand *o)
{
    return l->shared_is_generic ? hed_lift_generic_value(l, sum_of_address(l, o))
                                : hed_lift_far(l, o);
}

/* QSPC */
void
hed_lift_query_space(struct lift *l)
{
    static const char *const spaces[] = {"global", "local", "shared", NULL};
    const char *space = spaces[hed_sass_bits(l->inst, 73, 2)], *address, *x, *p;
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);

    if (!space || d->kind != HED_SASS_REG || d->reg != HED_SASS_RZ) {
        hed_lift_refuse(l, "a question that is not known");
        return;
    }
    if (l->shared_is_generic)
        address = hed_lift_generic(l, hed_lift_operand(l, 1));
    else
        address = sum_of_address(l, hed_lift_operand(l, 1));
    x = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "isspacep.%s %s, %s", space, x, address);
    p = hed_lift_def_pred(l, 81);
    if (p)
        hed_lift_put(l, "mov.pred %s, %s", p, x);
}
