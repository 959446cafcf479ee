/* Barriers in shared memory: SYNCS and ARRIVES, since sm_90. See inside.h for the rules.
 *
 * A barrier is 64 bits whose lower half has the number of arrivals that are expected, negative, in
 * bits 1 to 20; the upper half has those that are missing, negative, in bits 11 to 30, and the
 * phase in bit 31. What PTX has in the same place is not known, but it knows the same operations:
 *
 *   SYNCS.EXCH URZ, [b], UR4               mbarrier.init, if UR4 and UR5 are such a new barrier
 *   SYNCS.ARRIVE.A1T0 Rd, [b], RZ          mbarrier.arrive of one; ART0: of a number in a register
 *   SYNCS.ARRIVE RZ, [b], R0               mbarrier.arrive.expect_tx
 *   SYNCS.ARRIVE.RED.A0TR, .A0TX           mbarrier.expect_tx, mbarrier.complete_tx
 *   SYNCS.PHASECHK P0, [b], R0             mbarrier.test_wait.parity, of bit 31
 *
 * What an arrival answers is looked at for its phase and the missing arrivals. The phase is the
 * highest bit there, too, on our CPU and since sm_90.
 */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

#define EXPECTED_AT 1
#define MISSING_AT 11
#define PHASE_AT 31
#define COUNT_BITS 20

/* The address as a register or a name with an offset. */
static const char *
syncs_address(struct lift *l, unsigned operand)
{
    return hed_lift_shared(l, hed_lift_operand(l, operand));
}

/* SYNCS.EXCH: sets up a barrier. A word that is none traps. */
static void
init_barrier(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0), *s = hed_lift_operand(l, 2);
    const char *at = syncs_address(l, 1), *low = hed_lift_nth(l, s, 0);
    const char *high = hed_lift_nth(l, s, 1), *minus = hed_lift_temp(l, 't');
    const char *count = hed_lift_temp(l, 't'), *wanted = hed_lift_temp(l, 't');
    const char *other = hed_lift_temp(l, 'x');

    if (d->reg != HED_SASS_URZ) {
        hed_lift_refuse(l, "the old value of a barrier");
        return;
    }
    hed_lift_calc(l, "bfe.u32 %s, %s, %u, %u", minus, low, EXPECTED_AT, COUNT_BITS);
    hed_lift_calc(l, "sub.u32 %s, %u, %s", count, 1u << COUNT_BITS, minus);
    hed_lift_calc(l, "shl.b32 %s, %s, %u", wanted, minus, MISSING_AT);
    hed_lift_calc(l, "setp.ne.u32 %s, %s, %s", other, wanted, high);
    if (l->guarded) {
        const char *both = hed_lift_temp(l, 'x'), *not = hed_lift_temp(l, 't');

        hed_lift_calc(l, "selp.b32 %s, 1, 0, %s", not, other);
        hed_lift_calc(l, "setp.ne.and.b32 %s, %s, 0, %.*s", both, not, (int)strlen(l->guard) - 2,
                      l->guard + 1);
        other = both;
    }
    hed_lift_calc(l, "@%s trap", other);
    hed_lift_put(l, "mbarrier.init.shared.b64 [%s], %s", at, count);
}

/* Writes what an arrival answers as machine code knows it. */
static void
put_state(struct lift *l, const struct hed_sass_operand *d, const char *state)
{
    const char *pending = hed_lift_temp(l, 't'), *minus = hed_lift_temp(l, 't');
    const char *missing = hed_lift_temp(l, 't'), *low = hed_lift_temp(l, 't');
    const char *high = hed_lift_temp(l, 't'), *phase = hed_lift_temp(l, 't');

    hed_lift_put(l, "mbarrier.pending_count.b64 %s, %s", pending, state);
    hed_lift_put(l, "mov.b64 {%s, %s}, %s", low, high, state);
    hed_lift_calc(l, "sub.u32 %s, %u, %s", minus, 1u << COUNT_BITS, pending);
    hed_lift_calc(l, "bfi.b32 %s, %s, 0, %u, %u", missing, minus, MISSING_AT, COUNT_BITS);
    hed_lift_calc(l, "and.b32 %s, %s, 0x%x", phase, high, 1u << PHASE_AT);
    hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, d, 0));
    hed_lift_put(l, "or.b32 %s, %s, %s", hed_lift_def_nth(l, d, 1), missing, phase);
}

/* The word between "mbarrier.arrive" and the address, and whether a number follows; NULL if it is
 * no arrival that PTX has. */
static const char *
kind_of_arrival(const struct lift *l, bool *number)
{
    const bool drop = hed_lift_has(l, "OPTOUT");

    *number = !hed_lift_has(l, "A1T0");
    if (hed_lift_has(l, "TMASK"))
        return NULL;
    if (hed_lift_has(l, "A1T0") || hed_lift_has(l, "ART0"))
        return drop ? "_drop" : "";
    if (hed_sass_bits(l->inst, 84, 3) == 0)
        return drop ? "_drop.expect_tx" : ".expect_tx";
    return NULL;
}

static void
arrive(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *at = syncs_address(l, 1), *n = hed_lift_word(l, hed_lift_operand(l, 2));
    const bool bytes = hed_lift_has(l, "A0TR") || hed_lift_has(l, "A0TX");
    const char *kind, *state;
    bool number;

    if (bytes && hed_lift_has(l, "RED") && !hed_lift_has(l, "OPTOUT")) {
        hed_lift_put(l, "mbarrier.%s_tx.relaxed.cta.shared.b64 [%s], %s",
                     hed_lift_has(l, "A0TR") ? "expect" : "complete", at, n);
        return;
    }
    kind = kind_of_arrival(l, &number);
    if (!kind) {
        hed_lift_refuse(l, "an arrival that is not known");
        return;
    }
    state = hed_lift_temp(l, 'q');
    hed_lift_put(l, "mbarrier.arrive%s.shared.b64 %s, [%s]%s%s", kind, state, at,
                 number ? ", " : "", number ? n : "");
    if (d->reg != HED_SASS_RZ)
        put_state(l, d, state);
}

/* SYNCS.PHASECHK: is another phase than that of a state over? */
static void
test_phase(struct lift *l)
{
    const char *at = syncs_address(l, 0), *state = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *parity = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x'), *p;

    hed_lift_calc(l, "shr.u32 %s, %s, %u", parity, state, PHASE_AT);
    hed_lift_put(l, "mbarrier.%s_wait.parity.shared.b64 %s, [%s], %s",
                 hed_lift_has(l, "TRYWAIT") ? "try" : "test", x, at, parity);
    p = hed_lift_def_pred(l, 81);
    if (p)
        hed_lift_put(l, "mov.pred %s, %s", p, x);
}

/* SYNCS */
void
hed_lift_shared_barrier(struct lift *l)
{
    if (hed_lift_has(l, "EXCH"))
        init_barrier(l);
    else if (hed_lift_has(l, "ARRIVE"))
        arrive(l);
    else if (hed_lift_has(l, "PHASECHK"))
        test_phase(l);
    else if (hed_lift_has(l, "IV"))
        hed_lift_put(l, "mbarrier.inval.shared.b64 [%s]", syncs_address(l, 0));
    else
        hed_lift_refuse(l, "no PTX for this instruction");
}

/* ARRIVES: the copies that the thread has begun arrive when they are done. */
void
hed_lift_copies_arrive(struct lift *l)
{
    if (hed_lift_has(l, "ARVCNT"))
        hed_lift_put(l, "cp.async.mbarrier.arrive.noinc.shared.b64 [%s]", syncs_address(l, 0));
    else
        hed_lift_refuse(l, "an arrival that is not known");
}
