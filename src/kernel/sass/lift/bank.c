/* What constant banks hold: parameters, words of the system, numbers and addresses of the cubin.
 * See inside.h. */
#include <inttypes.h>

#include "base/number.h"
#include "kernel/sass/lift/inside.h"

/* Words of constant bank 0 before the parameters, the same for all. */
enum {
    NTID_X = 0x00,
    NTID_Y = 0x04,
    NTID_Z = 0x08,
    NCTAID_X = 0x0c,
    NCTAID_Y = 0x10,
    NCTAID_Z = 0x14,
    LOCAL_WINDOW = 0x20,
    STACK_POINTER = 0x28,
    DYNAMIC_SHARED = 0x2c,
    GRID_ID = 0x30,
    NSMID = 0x10c,
    RESERVED_SHARED = 0x114,
};

/* Until sm_89. */
enum {
    SHARED_WINDOW = 0x18,
    BANK_ADDRESS = 0x40,
    EXCLUDED_RANGE = 0x50,
    ENVREG = 0x88,
    DESCRIPTOR = 0x118,
    RESERVED_END = 0x120,
    RESERVED_END_1 = 0x124,
    GRAPH_EXEC = 0x130,
};

/* Since sm_90. Blocks that were launched without a cluster are clusters of one block. */
enum {
    ENVREG_90 = 0x40,
    EXCLUDED_RANGE_90 = 0xd0,
    EXPLICIT_CLUSTER = 0x140,
    CLUSTER_NCTAID = 0x144,  /* three words */
    CLUSTER_INVERSE = 0x150, /* 1 / CLUSTER_NCTAID, floats */
    NCLUSTERID = 0x15c,      /* three words */
    CLUSTER_NCTARANK = 0x188,
    GRAPH_EXEC_90 = 0x190,
    PARAM_ADDRESS = 0x198,
    DESCRIPTOR_90 = 0x208,
};

#define ENVREGS 32

/* A word that is a special register; NULL if it is none. */
static const char *
special_word(const struct lift *l, int64_t offset)
{
    static const struct {
        int at;
        const char *name;
    } specials[] = {
        {NTID_X, "%ntid.x"},
        {NTID_Y, "%ntid.y"},
        {NTID_Z, "%ntid.z"},
        {NCTAID_X, "%nctaid.x"},
        {NCTAID_Y, "%nctaid.y"},
        {NCTAID_Z, "%nctaid.z"},
        {DYNAMIC_SHARED, "%dynamic_smem_size"},
        {NSMID, "%nsmid"},
        {NCLUSTERID, "%nctaid.x"},
        {NCLUSTERID + 4, "%nctaid.y"},
        {NCLUSTERID + 8, "%nctaid.z"},
    };
    const size_t count =
        sizeof specials / sizeof specials[0] - (hed_lift_arch(l) < LIFT_HOPPER ? 3 : 0);

    for (size_t i = 0; i < count; i++)
        if (offset == specials[i].at)
            return specials[i].name;
    return NULL;
}

/* A word that is a number here; NULL if it is none. */
static const char *
number_word(int64_t offset)
{
    switch (offset) {
    case RESERVED_SHARED:
    case DESCRIPTOR: /* of memory: any value does */
    case DESCRIPTOR + 4:
    case EXCLUDED_RANGE:
    case EXCLUDED_RANGE + 4:
    case RESERVED_END:
    case RESERVED_END_1:
    case GRAPH_EXEC:
    case GRAPH_EXEC + 4:
        return "0";
    default:
        return NULL;
    }
}

static const char *
number_word_90(int64_t offset)
{
    switch (offset) {
    case RESERVED_SHARED:
    case DESCRIPTOR_90:
    case DESCRIPTOR_90 + 4:
    case EXCLUDED_RANGE_90:
    case EXCLUDED_RANGE_90 + 4:
    case EXPLICIT_CLUSTER:
    case GRAPH_EXEC_90:
    case GRAPH_EXEC_90 + 4:
        return "0";
    case CLUSTER_NCTAID:
    case CLUSTER_NCTAID + 4:
    case CLUSTER_NCTAID + 8:
    case CLUSTER_NCTARANK:
        return "1";
    case CLUSTER_INVERSE:
    case CLUSTER_INVERSE + 4:
    case CLUSTER_INVERSE + 8:
        return "0x3f800000";
    default:
        return NULL;
    }
}

/* A word of bank 0 that is not a parameter. */
static const char *
system_word(struct lift *l, int64_t offset)
{
    const bool hopper = hed_lift_arch(l) >= LIFT_HOPPER;
    const int64_t envreg = offset - (hopper ? ENVREG_90 : ENVREG);
    const char *name = special_word(l, offset), *number, *t;

    if (!name && envreg >= 0 && envreg < ENVREGS * 4 && envreg % 4 == 0)
        name = hed_lift_text(l, "%%envreg%d", (int)envreg / 4);
    if (name) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "mov.u32 %s, %s", t, name);
        return t;
    }
    if (offset == STACK_POINTER)
        return hed_lift_text(l, "%u", l->local);
    number = hopper ? number_word_90(offset) : number_word(offset);
    if (!number)
        hed_lift_refuse(l, "a word of constant bank 0 that is not known");
    return number ? number : "0";
}

/* The generic address of a piece of memory of the kernel. */
static const char *
window_address(struct lift *l, const char *space, const char *name)
{
    const char *q = hed_lift_temp(l, 'q'), *g = hed_lift_temp(l, 'q');

    hed_lift_calc(l, "mov.u64 %s, %s", q, name);
    hed_lift_calc(l, "cvta.%s.u64 %s, %s", space, g, q);
    return g;
}

/* Eight bytes of bank 0 that are addresses; NULL if they are not. */
static const char *
system_address(struct lift *l, int64_t offset)
{
    const bool hopper = hed_lift_arch(l) >= LIFT_HOPPER;
    const char *q, *g;

    if (offset == LOCAL_WINDOW) {
        l->uses_local = true;
        return window_address(l, "local", hed_lift_local_name(l));
    }
    if (offset == GRID_ID) {
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "mov.u64 %s, %%gridid", q);
        return q;
    }
    if (offset == SHARED_WINDOW && !hopper)
        return window_address(l, "shared", hed_lift_shared_name(l));
    if (offset != (hopper ? PARAM_ADDRESS : BANK_ADDRESS) || l->is_function)
        return NULL;
    g = window_address(l, "param", "heddle_param0");
    if (hopper)
        return g;
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "sub.u64 %s, %s, %u", q, g, l->code.kernel->param_bank);
    return q;
}

/* The low or high word of a 64-bit value. */
static const char *
half_of(struct lift *l, const char *q, bool high)
{
    const char *low = hed_lift_temp(l, 't'), *up = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, up, q);
    return high ? up : low;
}

/* A word that several small parameters share: bytes between them are zero. */
static const char *
param_bytes(struct lift *l, int64_t at)
{
    const char *sum = "0";

    for (unsigned i = 0; i < 4; i++) {
        const char *p = hed_lift_param(l, at + i, 1), *byte, *shifted, *next;

        if (!p)
            continue;
        byte = hed_lift_temp(l, 't');
        shifted = hed_lift_temp(l, 't');
        next = hed_lift_temp(l, 't');
        hed_lift_calc(l, "ld.param.u8 %s, [%s]", byte, p);
        hed_lift_calc(l, "shl.b32 %s, %s, %u", shifted, byte, i * 8);
        hed_lift_calc(l, "or.b32 %s, %s, %s", next, sum, shifted);
        sum = next;
    }
    return sum;
}

static const char *
bank0(struct lift *l, int64_t offset, unsigned bytes)
{
    const int64_t at = offset - (int64_t)l->code.kernel->param_bank;
    const bool is_param =
        !l->is_function && at >= 0 &&
        hed_range_fits((uint64_t)at, bytes, hed_round_up(l->code.kernel->param_bytes, 4u));
    const char *p = is_param && at % bytes == 0 ? hed_lift_param(l, at, bytes) : NULL;

    if (p) {
        const char *t = hed_lift_temp(l, bytes == 8 ? 'q' : 't');

        hed_lift_calc(l, "ld.param.b%u %s, [%s]", bytes * 8, t, p);
        return t;
    }
    if (is_param && bytes == 4)
        return param_bytes(l, at);
    if (bytes == 8) {
        const char *q = system_address(l, offset), *low, *high;

        if (q)
            return q;
        low = bank0(l, offset, 4);
        high = bank0(l, offset + 4, 4);
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, low, high);
        return q;
    }

    const char *q = offset >= 0 ? system_address(l, offset & ~INT64_C(7)) : NULL;

    if (q)
        return half_of(l, q, offset & 4);
    if (at >= 0 && (l->code.kernel->param_bytes || l->is_function)) {
        hed_lift_refuse(l, "a constant behind the parameters");
        return "0";
    }
    return system_word(l, offset);
}

/* A number that the cubin has, from bank 2 or 4. */
static const char *
known_constant(struct lift *l, const struct lift_bank *bank, int64_t offset, unsigned bytes)
{
    const uint8_t *p = offset >= 0 ? hed_bytes_at(bank->bytes, (uint64_t)offset, bytes) : NULL;

    if (!p) {
        hed_lift_refuse(l, "a constant that the cubin does not have");
        return "0";
    }
    return bytes == 8 ? hed_lift_text(l, "0x%" PRIx64, hed_load_u64(p))
                      : hed_lift_text(l, "0x%x", hed_load_u32(p));
}

/* All of an address, or a half of it. Calls compare functions with the same numbers. */
static const char *
address_text(struct lift *l, const struct lift_address *a, unsigned bytes, bool high)
{
    const char *q;

    switch (a->kind) {
    case LIFT_FUNCTION:
        return bytes == 8 || !high ? hed_lift_text(l, "%u", LIFT_FUNCTION_NUMBER(a->index)) : "0";
    case LIFT_CODE:
        return bytes == 8 || !high
                   ? hed_lift_text(
                         l, "%u",
                         hed_lift_code_number(l->program->inside, a->index, (uint64_t)a->addend))
                   : "0";
    case LIFT_VARIABLE:
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "mov.u64 %s, %s", q, hed_lift_variable(l, a->index, a->addend));
        return bytes == 8 ? q : half_of(l, q, high);
    default:
        hed_lift_refuse(l, "an address that is not known");
        return "0";
    }
}

static const char *
pooled_constant(struct lift *l, const struct lift_bank *bank, int64_t offset, unsigned bytes)
{
    const int64_t base = offset & ~INT64_C(7);
    const struct lift_address a = hed_lift_address(bank, (uint64_t)base);

    return a.kind == LIFT_NUMBER ? known_constant(l, bank, offset, bytes)
                                 : address_text(l, &a, bytes, offset != base);
}

const char *
hed_lift_patched(struct lift *l)
{
    const struct lift_patch *p = hed_lift_patch(&l->code, l->index);

    return p ? address_text(l, &p->to, 4, p->to.how == LIFT_HIGH) : NULL;
}

const char *
hed_lift_constant(struct lift *l, uint32_t bank, int64_t offset, unsigned bytes)
{
    const char *t;

    switch (bank) {
    case 0:
        return bank0(l, offset, bytes);
    case 2:
        return pooled_constant(l, &l->code.literals, offset, bytes);
    case 3:
        if (l->code.constants == LIFT_NONE)
            break;
        if (l->use == HED_SASS_FOR_GPU)
            return hed_lift_named_constant(l, offset, bytes);
        t = hed_lift_temp(l, bytes == 8 ? 'q' : 't');
        hed_lift_calc(l, "ld.const.b%u %s, [%s]", bytes * 8, t,
                      hed_lift_variable(l, l->code.constants, offset));
        return t;
    case 4:
        return pooled_constant(l, &l->code.pool, offset, bytes);
    default:
        break;
    }
    hed_lift_refuse(l, "a constant bank that is not known");
    return "0";
}
