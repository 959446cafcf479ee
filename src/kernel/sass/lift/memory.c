/* Loads, stores, constants, asynchronous copies, fences. See inside.h for the rules. */
#include "kernel/sass/lift/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define LOOK_AHEAD 64 /* instructions in which a reader of a pair is looked for */

static const char *const types[] = {"u8", "s8", "u16", "s16", "b32", "b64"};

/* sm_75 has a load of 16 bytes for lanes that have the same address. */
bool
hed_lift_access_size(struct lift *l, unsigned *size)
{
    *size = (unsigned)hed_sass_bits(l->inst, 73, 3);
    if (*size == LIFT_SIZE_QUAD_OF_ALL && hed_lift_arch(l) == LIFT_TURING &&
        strcmp(l->inst->name, "LDG") == 0)
        *size = LIFT_SIZE_QUAD;
    if (*size <= LIFT_SIZE_QUAD)
        return true;
    hed_lift_refuse(l, "a size that is not known");
    return false;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* In the forms without a uniform register nothing but .E says that the address is a pair. */
static bool
is_pair(const struct lift *l, const struct hed_sass_operand *o)
{
    const bool plain = (l->inst->opcode & 0xe00) == 0x200 ||
                       (l->inst->opcode == 0x980 && !hed_sass_bits(l->inst, 91, 1)) ||
                       (hed_lift_arch(l) == LIFT_TURING && !o->has_ureg);

    return o->wide || (plain && hed_lift_has(l, "E"));
}

/* The register of a 64-bit address; "0" for RZ. */
static const char *
address_register(struct lift *l, const struct hed_sass_operand *o)
{
    const struct hed_sass_operand reg = {.kind = HED_SASS_REG, .reg = o->reg};
    const char *q, *w;

    if (o->reg == HED_SASS_RZ || is_pair(l, o))
        return hed_lift_u64(l, &reg);
    w = hed_lift_word(l, &reg);
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, w);
    return q;
}

const char *
hed_lift_far(struct lift *l, const struct hed_sass_operand *o)
{
    const struct hed_sass_operand ur = {.kind = HED_SASS_UREG, .reg = o->ureg};
    const char *base = address_register(l, o), *q;

    if (o->kind != HED_SASS_MEMORY) {
        hed_lift_refuse(l, "no address");
        return "%q0";
    }
    if (o->has_ureg && !o->descriptor && o->ureg != HED_SASS_URZ) {
        const char *more = hed_lift_u64(l, &ur);

        if (strcmp(base, "0") == 0) {
            base = more;
        } else {
            q = hed_lift_temp(l, 'q');
            hed_lift_calc(l, "add.s64 %s, %s, %s", q, base, more);
            base = q;
        }
    }
    if (strcmp(base, "0") == 0) {
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "mov.u64 %s, %" PRId64, q, o->value);
        return q;
    }
    return o->value ? hed_lift_text(l, "%s+%" PRId64, base, o->value) : base;
}

const char *
hed_lift_shared_index(struct lift *l, const struct hed_sass_operand *o)
{
    const unsigned by = o->choice.value ? o->choice.value + 1 : 0; /* 1, 4, 8, 16 */
    const char *sum = NULL, *t;

    if (o->reg != HED_SASS_RZ) {
        sum = hed_lift_text(l, "%%r%u", o->reg);
        if (by) {
            t = hed_lift_temp(l, 't');
            hed_lift_calc(l, "shl.b32 %s, %s, %u", t, sum, by);
            sum = t;
        }
    }
    if (o->has_ureg && o->ureg != HED_SASS_URZ) {
        const char *u = hed_lift_text(l, "%%u%u", o->ureg);

        if (!sum)
            return u;
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "add.s32 %s, %s, %s", t, sum, u);
        sum = t;
    }
    return sum;
}

const char *
hed_lift_shared(struct lift *l, const struct hed_sass_operand *o)
{
    const int64_t at = o->value - hed_lift_shared_begin(l);
    const char *index = hed_lift_shared_index(l, o), *base, *t;

    l->uses_shared = true;
    if (o->kind != HED_SASS_MEMORY)
        hed_lift_refuse(l, "no address");
    if (!index)
        return hed_lift_text(l, "%s+%" PRId64, hed_lift_shared_name(l), at);
    base = hed_lift_temp(l, 't');
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "mov.u32 %s, %s", base, hed_lift_shared_name(l));
    hed_lift_calc(l, "add.s32 %s, %s, %s", t, index, base);
    return at ? hed_lift_text(l, "%s+%" PRId64, t, at) : t;
}

/* ---- order ----------------------------------------------------------------------------------- */

unsigned
hed_lift_order_field(const struct lift *l)
{
    /* sm_75 has the order in 79..80 and the scope, from the block to the system, in 77..78. */
    static const uint8_t strong[] = {5, 5, 7, 10}, devices[] = {8, 8, 8, 12};
    const unsigned field = (unsigned)hed_sass_bits(l->inst, 77, 4);

    if (hed_lift_arch(l) != LIFT_TURING)
        return field;
    switch (field >> 2) {
    case 0:
        return 4;
    case 1:
        return 0;
    case 2:
        return strong[field & 3];
    default:
        return devices[field & 3];
    }
}

/* The words for the order and the scope of an access, by their field. */
static const char *
order_of_access(struct lift *l, bool is_load, bool is_global)
{
    switch (hed_lift_order_field(l)) {
    case 0:
        return "";
    case 4:
        if (is_load)
            return is_global ? ".nc" : "";
        return ".relaxed.cta";
    case 5:
        return ".relaxed.cta";
    case 6:
    case 7:
        return ".relaxed.gpu";
    case 10: /* what volatile becomes; a compiler may not merge or drop it again */
        return l->use == HED_SASS_FOR_GPU ? ".volatile" : ".relaxed.sys";
    case 8:
    case 12:
        return is_global ? ".mmio.relaxed.sys" : ".relaxed.sys";
    default:
        if (!is_load)
            hed_lift_refuse(l, "an order of memory that is not known");
        return is_global ? ".nc" : "";
    }
}

/* "ld.relaxed.gpu.global": .nc comes last. */
static const char *
load_name(struct lift *l, const char *space)
{
    const bool is_global = strcmp(space, ".global") == 0;
    const char *order = is_global || space[0] == '\0' ? order_of_access(l, true, is_global) : "";
    const bool is_last = strcmp(order, ".nc") == 0;

    return hed_lift_text(l, "ld%s%s%s", is_last ? "" : order, space, is_last ? order : "");
}

static const char *
store_name(struct lift *l, const char *space)
{
    const bool is_global = strcmp(space, ".global") == 0;
    const char *order = is_global || space[0] == '\0' ? order_of_access(l, false, is_global) : "";

    return hed_lift_text(l, "st%s%s", order, space);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* Does an instruction read the register and the next one as one value? */
static bool
reads_pair(const struct hed_sass_inst *inst, uint32_t reg)
{
    const bool is_double = inst->name[0] == 'D' && strcmp(inst->name, "DEPBAR") != 0;

    for (unsigned i = 0; i < inst->operand_count; i++) {
        const struct hed_sass_operand *o = &inst->operands[i];

        if (o->reg == reg && ((o->kind == HED_SASS_MEMORY && o->wide) ||
                              (o->kind == HED_SASS_REG && is_double && i > 0)))
            return true;
    }
    return false;
}

bool
hed_lift_is_wanted_whole(const struct lift *l, const struct hed_sass_operand *o)
{
    struct hed_sass_inst inst;

    if (o->kind != HED_SASS_REG || o->reg == HED_SASS_RZ || o->reg % 2)
        return false;
    for (uint32_t i = l->index + 1; i < l->node->end && i < l->index + LOOK_AHEAD; i++) {
        const uint8_t *p =
            hed_bytes_at(l->code.bytes, (uint64_t)i * HED_SASS_BYTES, HED_SASS_BYTES);

        if (!p || hed_sass_decode(hed_lift_arch(l), p, &inst) != 0)
            return false;
        if (reads_pair(&inst, o->reg))
            return true;
        if (inst.operand_count && inst.operands[0].kind == HED_SASS_REG &&
            inst.operands[0].reg == o->reg)
            return false;
    }
    return false;
}

/* Must two words be read or written at once? So it is with an order of memory: other threads may
 * look at them meanwhile. */
static bool
is_one_access(const char *name, unsigned size)
{
    return size == LIFT_SIZE_PAIR &&
           (strstr(name, ".relaxed") != NULL || strstr(name, ".volatile") != NULL);
}

void
hed_lift_put_load(struct lift *l, const char *ld, unsigned size, const char *at)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);

    if (size <= LIFT_SIZE_WORD) {
        hed_lift_put(l, "%s.%s %s, [%s]", ld, types[size], hed_lift_def(l, d), at);
    } else if (is_one_access(ld, size) || hed_lift_is_wanted_whole(l, d)) {
        const char *q = hed_lift_def64(l, d);

        if (size == LIFT_SIZE_PAIR)
            hed_lift_put(l, "%s.b64 %s, [%s]", ld, q, at);
        else
            hed_lift_put(l, "%s.v2.b64 {%s, %s}, [%s]", ld, q, hed_lift_def64_nth(l, d, 2), at);
        hed_lift_end64(l, d);
        if (size == LIFT_SIZE_QUAD)
            hed_lift_end64_nth(l, d, 2);
    } else {
        const char *a = hed_lift_def_nth(l, d, 0), *b = hed_lift_def_nth(l, d, 1);

        if (size == LIFT_SIZE_PAIR)
            hed_lift_put(l, "%s.v2.b32 {%s, %s}, [%s]", ld, a, b, at);
        else
            hed_lift_put(l, "%s.v4.b32 {%s, %s, %s, %s}, [%s]", ld, a, b, hed_lift_def_nth(l, d, 2),
                         hed_lift_def_nth(l, d, 3), at);
    }
}

void
hed_lift_put_store(struct lift *l, const char *st, unsigned size, const char *at)
{
    const struct hed_sass_operand *s = hed_lift_operand(l, 1);

    if (size <= LIFT_SIZE_WORD) {
        hed_lift_put(l, "%s.%s [%s], %s", st, types[size], at, hed_lift_nth(l, s, 0));
    } else if (is_one_access(st, size) ||
               (hed_lift_has_wide(l, s, 0) &&
                (size == LIFT_SIZE_PAIR || hed_lift_has_wide(l, s, 2)))) {
        const char *q = hed_lift_u64_nth(l, s, 0);

        if (size == LIFT_SIZE_PAIR)
            hed_lift_put(l, "%s.b64 [%s], %s", st, at, q);
        else
            hed_lift_put(l, "%s.v2.b64 [%s], {%s, %s}", st, at, q, hed_lift_u64_nth(l, s, 2));
    } else {
        const char *a = hed_lift_nth(l, s, 0), *b = hed_lift_nth(l, s, 1);

        if (size == LIFT_SIZE_PAIR)
            hed_lift_put(l, "%s.v2.b32 [%s], {%s, %s}", st, at, a, b);
        else
            hed_lift_put(l, "%s.v4.b32 [%s], {%s, %s, %s, %s}", st, at, a, b, hed_lift_nth(l, s, 2),
                         hed_lift_nth(l, s, 3));
    }
}

/* Replaces the guard by one that also wants a predicate, or wants it to be false. */
static void
narrow_guard(struct lift *l, const char *guard, unsigned reg, bool wanted)
{
    const char *t, *x;

    if (!guard[0]) {
        (void)snprintf(l->guard, sizeof l->guard, "@%s%%p%u ", wanted ? "" : "!", reg);
        return;
    }
    t = hed_lift_temp(l, 't');
    x = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "selp.b32 %s, 1, 0, %%p%u", t, reg);
    hed_lift_calc(l, "setp.%s.and.b32 %s, %s, 0, %.*s", wanted ? "ne" : "eq", x, t,
                  (int)strlen(guard) - 2, guard + 1);
    (void)snprintf(l->guard, sizeof l->guard, "@%s ", x);
}

/* A load with a predicate: where it is false, the result is zero and memory is not read. Code
 * relies on it: it does not clear the registers before. */
static void
put_load_or_zero(struct lift *l, const char *ld, unsigned size, const char *at)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const unsigned reg = HED_SASS_PT - (unsigned)hed_sass_bits(l->inst, 64, 3);
    const bool inverted = hed_sass_bits(l->inst, 67, 1), guarded = l->guarded;
    char guard[sizeof l->guard];

    if (reg == HED_SASS_PT) {
        if (!inverted)
            hed_lift_put_load(l, ld, size, at);
        else
            hed_lift_refuse(l, "a load that never happens");
        return;
    }
    l->pred_uses[l->index] |= (uint16_t)(1u << reg);
    memcpy(guard, l->guard, sizeof guard);
    l->guarded = true;
    narrow_guard(l, guard, reg, !inverted);
    hed_lift_put_load(l, ld, size, at);
    narrow_guard(l, guard, reg, inverted);
    for (unsigned i = 0; i < (hed_lift_size_bytes(size) + 3) / 4; i++)
        hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, d, i));
    memcpy(l->guard, guard, sizeof guard);
    l->guarded = guarded;
}

static bool
is_far(struct lift *l)
{
    if (hed_lift_has(l, "E"))
        return true;
    hed_lift_refuse(l, "an address of 32 bits");
    return false;
}

static void
lift_far_load(struct lift *l, const char *space)
{
    unsigned size;

    if (strcmp(l->inst->name, "LDG") == 0 && hed_sass_bits(l->inst, 81, 3) != HED_SASS_PT)
        hed_lift_refuse(l, "a load that answers a question");
    if (is_far(l) && hed_lift_access_size(l, &size)) {
        const struct hed_sass_operand *from = hed_lift_operand(l, 1);
        const char *at = space[0] ? hed_lift_far(l, from) : hed_lift_generic(l, from);

        put_load_or_zero(l, load_name(l, space), size, at);
    }
}

static void
lift_far_store(struct lift *l, const char *space)
{
    unsigned size;

    if (is_far(l) && hed_lift_access_size(l, &size)) {
        const struct hed_sass_operand *to = hed_lift_operand(l, 0);
        const char *at = space[0] ? hed_lift_far(l, to) : hed_lift_generic(l, to);

        hed_lift_put_store(l, store_name(l, space), size, at);
    }
}

void
hed_lift_load_global(struct lift *l)
{
    lift_far_load(l, ".global");
}

void
hed_lift_load_generic(struct lift *l)
{
    lift_far_load(l, "");
}

void
hed_lift_store_global(struct lift *l)
{
    lift_far_store(l, ".global");
}

void
hed_lift_store_generic(struct lift *l)
{
    lift_far_store(l, "");
}

/* Machine code does not say which accesses to shared memory were volatile, and lanes of a warp may
 * count on their order and on nothing else. The compiler that wrote it has moved all that could be
 * moved; the one that reads the text must leave them where they are. On our CPU nobody moves an
 * access that another lane could see. */
void
hed_lift_load_shared(struct lift *l)
{
    const char *ld = l->use == HED_SASS_FOR_GPU ? "ld.volatile.shared" : "ld.shared";
    unsigned size;

    if (hed_lift_access_size(l, &size))
        hed_lift_put_load(l, ld, size, hed_lift_shared(l, hed_lift_operand(l, 1)));
}

void
hed_lift_store_shared(struct lift *l)
{
    const char *st = l->use == HED_SASS_FOR_GPU ? "st.volatile.shared" : "st.shared";
    unsigned size;

    if (hed_lift_access_size(l, &size))
        hed_lift_put_store(l, st, size, hed_lift_shared(l, hed_lift_operand(l, 0)));
}

/* ---- copies and fences ----------------------------------------------------------------------- */

/* .ZFILL: the lowest bits of the address say how many bytes at the end are zeros. Sets the address
 * without them; the result is how many bytes are copied. */
static const char *
filled_size(struct lift *l, const struct hed_sass_operand *from, unsigned bytes, const char **at)
{
    struct hed_sass_operand base = *from;
    const char *sum = hed_lift_temp(l, 'q'), *q = hed_lift_temp(l, 'q');
    const char *low = hed_lift_temp(l, 't'), *zeros = hed_lift_temp(l, 't');
    const char *n = hed_lift_temp(l, 't');

    base.value = 0;
    hed_lift_calc(l, "add.s64 %s, %s, %" PRId64, sum, hed_lift_far(l, &base), from->value);
    hed_lift_calc(l, "cvt.u32.u64 %s, %s", low, sum);
    hed_lift_calc(l, "and.b32 %s, %s, %u", zeros, low, bytes - 1);
    hed_lift_calc(l, "sub.s32 %s, %u, %s", n, bytes, zeros);
    hed_lift_calc(l, "and.b64 %s, %s, %" PRId64, q, sum, -(int64_t)bytes);
    *at = q;
    return n;
}

/* A copy of 4, 8 or 16 bytes; where the predicate is false, zeros are written. */
void
hed_lift_copy(struct lift *l)
{
    const struct hed_sass_operand *to = hed_lift_operand(l, 0), *from = hed_lift_operand(l, 1);
    const char *shared = hed_lift_shared(l, to), *global, *cache, *n, *t;
    unsigned size;
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant);

    if (!hed_lift_access_size(l, &size))
        return;
    if (size < LIFT_SIZE_WORD) {
        hed_lift_refuse(l, "a size that is not known");
        return;
    }
    n = hed_lift_text(l, "%u", hed_lift_size_bytes(size));
    if (hed_lift_has(l, "ZFILL"))
        n = filled_size(l, from, hed_lift_size_bytes(size), &global);
    else
        global = hed_lift_far(l, from);
    if (p) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "selp.b32 %s, %s, 0, %s", t, n, p);
        n = t;
    } else if (!constant) {
        n = "0";
    }
    cache = hed_lift_has(l, "BYPASS") && size == LIFT_SIZE_QUAD ? "cg" : "ca";
    hed_lift_put(l, "cp.async.%s.shared.global [%s], [%s], %u, %s", cache, shared, global,
                 hed_lift_size_bytes(size), n);
}

void
hed_lift_copies_end(struct lift *l)
{
    hed_lift_put(l, "cp.async.commit_group");
}

/* Scoreboards of other instructions need no wait: waiting for copies at them does no harm. */
void
hed_lift_copies_wait(struct lift *l)
{
    if (hed_lift_has(l, "LE"))
        hed_lift_put(l, "cp.async.wait_group %u", (unsigned)hed_sass_bits(l->inst, 38, 6));
}

/* A load and the invalidation of the cache after it are an acquiring load: what follows may not be
 * read before. */
void
hed_lift_cache(struct lift *l)
{
    if (hed_lift_has(l, "IVALL") || hed_lift_has(l, "IVALLP") || hed_lift_has(l, "IV"))
        hed_lift_put(l, "fence.acq_rel.gpu");
}

void
hed_lift_fence(struct lift *l)
{
    static const char *const scopes[] = {"cta", "cta", "gpu", "sys", NULL, "sys", NULL, NULL};
    const char *scope = scopes[hed_sass_bits(l->inst, 76, 3)];

    if (scope)
        hed_lift_put(l, "fence.%s.%s", hed_lift_has(l, "ALL") ? "acq_rel" : "sc", scope);
    else
        hed_lift_refuse(l, "a scope that is not known");
}
