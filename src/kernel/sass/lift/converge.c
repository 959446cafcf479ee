/* Where the lanes of a warp meet again, for a GPU. See inside.h.
 *
 *   BSSY B0, L      activemask.b32 %b0      the lanes that part here
 *   BSYNC B0        bar.warp.sync %b0       wait for each other here, without those that have ended
 *
 * Instructions that act on the lanes that run them together count on it, and PTX promises nothing
 * about lanes that parted. Code of old style counts on it, too, where lanes of a warp write to
 * shared memory, or to volatile memory, what others read next. A kernel without either needs none
 * of this. On our CPU the order of the blocks does the same.
 *
 * BREAK takes a lane out of a barrier that the others wait at, and their masks cannot know of it.
 * Such a barrier is left to the compiler, which sees the same branches as the one that wrote BREAK,
 * and so makes lanes meet at the same places.
 */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define ALL_BARRIERS 0xffffu

/* Do the lanes that run it together act together? */
static bool
acts_on_lanes(const struct hed_sass_inst *inst)
{
    static const char *const names[] = {"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR", "ELECT",
                                        "HMMA", "IMMA", "DMMA",  "BMMA",  "LDSM",  "STSM", "MOVM"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(inst->name, names[i]) == 0)
            return true;
    if (strcmp(inst->name, "ATOMS") == 0)
        return hed_lift_inst_has(inst, "POPC") &&
               hed_lift_inst_operand(inst, 0)->reg != HED_SASS_RZ;
    return strcmp(inst->name, "BRA") == 0 &&
           (hed_sass_bits(inst, 33, 1) || hed_lift_inst_has(inst, "ANY"));
}

/* Does it write to memory in which lanes may look for each other's values without a barrier? */
static bool
shows_to_lanes(const struct lift *l, const struct hed_sass_inst *inst)
{
    enum { STRONG_SYS = 10, TURING_STRONG_SYS = 11 };
    const uint64_t order = hed_sass_bits(inst, 77, 4);

    if (strcmp(inst->name, "STS") == 0)
        return true;
    return (strcmp(inst->name, "ST") == 0 || strcmp(inst->name, "STG") == 0) &&
           order == (hed_lift_arch(l) == LIFT_TURING ? TURING_STRONG_SYS : STRONG_SYS);
}

/* Is it a meeting that not all lanes of the barrier come to? Such a one can be left out unless
 * instructions act on lanes. */
static bool
is_partial_meeting(const struct hed_sass_inst *inst)
{
    return strcmp(inst->name, "BSYNC") == 0 && hed_sass_bits(inst, 87, 4) != HED_SASS_PT;
}

/* WARPSYNC is a meeting of its own: it waits wherever lanes are. */
bool
hed_lift_lanes_meet(const struct lift *l)
{
    struct hed_sass_inst inst;

    for (uint32_t i = 0; i < l->flow.inst_count; i++)
        if (hed_sass_decode(hed_lift_arch(l), l->code.bytes.data + (size_t)i * HED_SASS_BYTES,
                            &inst) == 0 &&
            (acts_on_lanes(&inst) || strcmp(inst.name, "BAR") == 0))
            return true;
    return false;
}

/* The number of the barrier among the operands; LIFT_NONE if there is none. */
static uint32_t
barrier_of(const struct hed_sass_inst *inst)
{
    for (unsigned i = 0; i < inst->operand_count; i++)
        if (inst->operands[i].kind == HED_SASS_BARRIER)
            return inst->operands[i].reg & 15;
    return LIFT_NONE;
}

void
hed_lift_find_meetings(struct lift *l)
{
    struct hed_sass_inst inst;
    uint32_t broken = 0, partial = 0;
    bool together = false, moved = false, shows = false;

    l->barriers = 0;
    if (l->use != HED_SASS_FOR_GPU)
        return;
    for (uint32_t i = 0; i < l->flow.inst_count; i++) {
        if (hed_sass_decode(hed_lift_arch(l), l->code.bytes.data + (size_t)i * HED_SASS_BYTES,
                            &inst) != 0)
            continue;
        together |= acts_on_lanes(&inst);
        shows |= shows_to_lanes(l, &inst);
        if (is_partial_meeting(&inst) && barrier_of(&inst) != LIFT_NONE)
            partial |= 1u << barrier_of(&inst);
        moved |= strcmp(inst.name, "BMOV") == 0;
        if (strcmp(inst.name, "BREAK") == 0)
            broken |= barrier_of(&inst) == LIFT_NONE ? ALL_BARRIERS : 1u << barrier_of(&inst);
    }
    if (!together)
        broken |= partial;
    if ((together || shows) && !(moved && broken))
        l->barriers = ALL_BARRIERS & ~broken;
}

/* Is this instruction about a barrier that is written? */
static bool
is_written(const struct lift *l, uint32_t b)
{
    return b != LIFT_NONE && (l->barriers >> b & 1);
}

/* BSSY */
void
hed_lift_part(struct lift *l)
{
    const uint32_t b = barrier_of(l->inst);

    if (is_written(l, b))
        hed_lift_put(l, "activemask.b32 %%b%u", b);
}

/* BSYNC */
void
hed_lift_meet_again(struct lift *l)
{
    const uint32_t b = barrier_of(l->inst);
    bool constant;

    l->in_group = l->met = false;
    if (!is_written(l, b))
        return;
    if (hed_lift_pred(l, 87, &constant) || !constant)
        hed_lift_refuse(l, "a meeting with a predicate");
    else
        hed_lift_put(l, "bar.warp.sync %%b%u", b);
}

/* BMOV. Where barriers are not written, what is saved of one is never looked at. */
void
hed_lift_save_barrier(struct lift *l)
{
    const struct hed_sass_operand *to = hed_lift_operand(l, 0);
    const uint32_t b = barrier_of(l->inst);

    if (to->kind == HED_SASS_REG && is_written(l, b))
        hed_lift_put(l, "mov.b32 %s, %%b%u", hed_lift_def(l, to), b);
    else if (to->kind == HED_SASS_REG)
        hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def(l, to));
    else if (is_written(l, b))
        hed_lift_put(l, "mov.b32 %%b%u, %s", b, hed_lift_word(l, hed_lift_operand(l, 1)));
}

/* Where compilers know that the lanes of a warp are together, a barrier of the warp is a NOP. The
 * order of accesses to memory is in the machine code; a compiler has to be told again. */
void
hed_lift_nop(struct lift *l)
{
    const char *t;

    if (l->use != HED_SASS_FOR_GPU)
        return;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "activemask.b32 %s", t);
    hed_lift_calc(l, "bar.warp.sync %s", t);
}
