/* Arithmetic on classes. See class.h. */
#include "kernel/ptx/pass/class.h"

#include "base/number.h"

#define STEP_MAX (INT64_C(1) << 24)   /* 31 steps stay far from 2^31 */
#define OFFSET_MAX (INT64_C(1) << 29) /* so do sums of offsets */

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};

uint8_t
hed_class_align(uint64_t v)
{
    return v ? (uint8_t)__builtin_ctzll(v) : 63;
}

struct hed_uniform
hed_class_constant(uint64_t value)
{
    return (struct hed_uniform){.kind = HED_UNIFORM,
                                .is_constant = true,
                                .constant = value,
                                .align = hed_class_align(value),
                                .wraps = HED_FLOW_NONE};
}

bool
hed_class_is_same(const struct hed_uniform *a, const struct hed_uniform *b)
{
    return a->kind == b->kind && a->is_constant == b->is_constant && a->differ == b->differ &&
           a->align == b->align && a->step == b->step && a->offsets == b->offsets &&
           a->same == b->same && a->constant == b->constant && a->wraps == b->wraps &&
           a->wrap == b->wrap;
}

bool
hed_class_has_steps(struct hed_uniform c)
{
    return c.kind == HED_VARIES || c.kind == HED_OFFSETS || c.step != 0 || c.wraps != HED_FLOW_NONE;
}

unsigned
hed_class_differ(struct hed_uniform operand)
{
    return (unsigned)hed_min(operand.differ ? operand.differ : 64,
                             operand.below ? operand.below : 64);
}

uint64_t
hed_class_same(const struct hed_uniforms *u, struct hed_uniform c)
{
    unsigned differ;

    if (c.kind == HED_UNKNOWN || c.kind == HED_UNIFORM)
        return UINT64_MAX;
    if (c.kind == HED_VARIES)
        return c.same;
    differ = hed_class_differ(c);
    return u->width == HED_PTX_LANES && c.wraps == HED_FLOW_NONE && differ < 64
               ? UINT64_MAX << differ
               : 0;
}

/* ---- offsets --------------------------------------------------------------------------------- */

bool
hed_class_get_offsets(struct hed_uniform c, int64_t lanes[HED_PTX_LANES])
{
    if (c.kind == HED_UNKNOWN || c.kind == HED_VARIES || c.wraps != HED_FLOW_NONE)
        return false;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        lanes[i] = c.kind == HED_OFFSETS ? c.offsets->lanes[i] : c.step * (int64_t)i;
    return true;
}

bool
hed_class_never_carries(struct hed_uniform c)
{
    int64_t lanes[HED_PTX_LANES];

    if (!hed_class_get_offsets(c, lanes))
        return false;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        if (lanes[i] < 0 || (c.align < 63 && lanes[i] >> c.align != 0))
            return false;
    return true;
}

/* The only copy of these offsets; NULL if there is no memory. */
static const struct hed_offsets *
keep_offsets(const struct hed_uniforms *u, const int64_t lanes[HED_PTX_LANES])
{
    struct hed_offsets *o;
    unsigned same;

    for (o = u->memory->offsets; o; o = o->next) {
        for (same = 0; same < HED_PTX_LANES && o->lanes[same] == lanes[same]; same++)
            continue;
        if (same == HED_PTX_LANES)
            return o;
    }
    o = hed_flow_alloc(u->memory, 1, sizeof(*o));
    if (!o)
        return NULL;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        o->lanes[i] = (int32_t)lanes[i];
    o->next = u->memory->offsets;
    u->memory->offsets = o;
    return o;
}

struct hed_uniform
hed_class_offsets(const struct hed_uniforms *u, const int64_t lanes[HED_PTX_LANES], unsigned align)
{
    struct hed_uniform r = {.kind = HED_OFFSETS, .align = (uint8_t)align, .wraps = HED_FLOW_NONE};
    bool is_row = true;

    if (u->width != HED_PTX_LANES)
        return varies;
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        if (lanes[i] > OFFSET_MAX || lanes[i] < -OFFSET_MAX)
            return varies;
        is_row = is_row && lanes[i] == (int64_t)i * lanes[1];
    }
    if (is_row)
        return hed_class_rows(u, lanes[1], align);
    r.offsets = keep_offsets(u, lanes);
    return r.offsets ? r : varies;
}

struct hed_uniform
hed_class_rows(const struct hed_uniforms *u, int64_t step, unsigned align)
{
    if (step == 0 && u->width == 32)
        return (struct hed_uniform){
            .kind = HED_UNIFORM, .align = (uint8_t)align, .wraps = HED_FLOW_NONE};
    if (step > STEP_MAX || step < -STEP_MAX)
        return varies;
    return (struct hed_uniform){
        .kind = HED_ROWS, .align = (uint8_t)align, .step = step, .wraps = HED_FLOW_NONE};
}

struct hed_uniform
hed_class_join(const struct hed_uniforms *u, struct hed_uniform a, struct hed_uniform b)
{
    struct hed_uniform r;

    if (a.kind == HED_UNKNOWN)
        return b;
    if (b.kind == HED_UNKNOWN)
        return a;
    if (a.kind == HED_VARIES || b.kind == HED_VARIES || a.step != b.step ||
        a.offsets != b.offsets || a.wraps != b.wraps || a.wrap != b.wrap) {
        r = varies;
        r.same = hed_class_same(u, a) & hed_class_same(u, b);
        return r;
    }
    r = a;
    r.kind = (uint8_t)hed_max(a.kind, b.kind);
    r.below = (uint8_t)(a.below && b.below ? hed_max(a.below, b.below) : 0);
    r.differ = (uint8_t)(a.differ && b.differ ? hed_max(a.differ, b.differ) : 0);
    r.align = (uint8_t)hed_min(a.align, b.align);
    r.is_constant = a.is_constant && b.is_constant && a.constant == b.constant;
    r.constant = r.is_constant ? a.constant : 0;
    return r;
}

/* The same where one of them has offsets. */
static struct hed_uniform
add_offsets(const struct hed_uniforms *u, struct hed_uniform a, struct hed_uniform b, int sign)
{
    int64_t x[HED_PTX_LANES], y[HED_PTX_LANES];

    if (!hed_class_get_offsets(a, x) || !hed_class_get_offsets(b, y))
        return varies;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        x[i] += sign * y[i];
    return hed_class_offsets(u, x, (unsigned)hed_min(a.align, b.align));
}

struct hed_uniform
hed_class_add(const struct hed_uniforms *u, struct hed_uniform a, struct hed_uniform b, int sign)
{
    struct hed_uniform r;

    if (a.kind == HED_UNKNOWN || b.kind == HED_UNKNOWN)
        return unknown;
    if (a.kind == HED_VARIES || b.kind == HED_VARIES)
        return varies;
    if (a.kind == HED_OFFSETS || b.kind == HED_OFFSETS)
        return add_offsets(u, a, b, sign);
    if (a.kind == HED_UNIFORM && b.kind == HED_UNIFORM)
        return (struct hed_uniform){.kind = HED_UNIFORM,
                                    .align = (uint8_t)hed_min(a.align, b.align),
                                    .wraps = HED_FLOW_NONE};
    if (a.wraps != HED_FLOW_NONE && b.wraps != HED_FLOW_NONE && a.wraps != b.wraps)
        return varies;
    r = hed_class_rows(u, a.step + sign * b.step, (unsigned)hed_min(a.align, b.align));
    r.wraps = a.wraps != HED_FLOW_NONE ? a.wraps : b.wraps;
    r.wrap = a.wrap + sign * b.wrap;
    if (r.wraps != HED_FLOW_NONE && (r.kind != HED_ROWS || r.wrap == 0)) {
        /* What wrapped around has gone, or one number per warp would not say it. */
        if (r.wrap != 0)
            return varies;
        r.wraps = HED_FLOW_NONE;
    }
    return r;
}

struct hed_uniform
hed_class_scale(const struct hed_uniforms *u, struct hed_uniform a, int64_t by)
{
    struct hed_uniform r;
    int64_t step, wrap, lanes[HED_PTX_LANES];

    if (a.kind == HED_OFFSETS) {
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            if (__builtin_mul_overflow((int64_t)a.offsets->lanes[i], by, &lanes[i]))
                return varies;
        return hed_class_offsets(u, lanes,
                                 (unsigned)hed_min(a.align + hed_class_align((uint64_t)by), 63));
    }
    if (a.kind != HED_ROWS)
        return (struct hed_uniform){
            .kind = a.kind,
            .align = (uint8_t)hed_min(a.align + hed_class_align((uint64_t)by), 63),
            .wraps = HED_FLOW_NONE};
    if (__builtin_mul_overflow(a.step, by, &step) || __builtin_mul_overflow(a.wrap, by, &wrap))
        return varies;
    r = hed_class_rows(u, step, (unsigned)hed_min(a.align + hed_class_align((uint64_t)by), 63));
    if (r.kind == HED_ROWS && a.wraps != HED_FLOW_NONE) {
        r.wraps = a.wraps;
        r.wrap = wrap;
    }
    return r;
}

int64_t
hed_class_number(uint64_t v, unsigned bits)
{
    return bits == 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

struct hed_uniform
hed_class_multiply(const struct hed_uniforms *u, struct hed_uniform a, struct hed_uniform b,
                   unsigned bits)
{
    if (a.kind == HED_UNKNOWN || b.kind == HED_UNKNOWN)
        return unknown;
    if (a.kind == HED_VARIES || b.kind == HED_VARIES)
        return varies;
    if (b.is_constant)
        return hed_class_scale(u, a, hed_class_number(b.constant, bits));
    if (a.is_constant)
        return hed_class_scale(u, b, hed_class_number(a.constant, bits));
    if (a.kind == HED_OFFSETS || b.kind == HED_OFFSETS || a.step != 0 || b.step != 0 ||
        a.wraps != HED_FLOW_NONE || b.wraps != HED_FLOW_NONE)
        return varies;
    return (struct hed_uniform){.kind = (uint8_t)hed_max(a.kind, b.kind),
                                .align = (uint8_t)hed_min(a.align + b.align, 63),
                                .wraps = HED_FLOW_NONE};
}

struct hed_uniform
hed_class_widen(struct hed_uniform a)
{
    /* All numbers are known to have no sign, or all have the same: they differ by the same when
     * they are widened. */
    const bool is_exact = a.below < 32 || hed_class_never_carries(a);

    if (a.kind == HED_OFFSETS && !is_exact)
        return varies;
    if (a.kind == HED_ROWS && a.step != 0 && !is_exact) {
        a.wraps = HED_WRAPS_HERE;
        a.wrap = a.step > 0 ? -1 : 1;
    }
    /* A constant with a sign would have to be widened with it. */
    a.is_constant = a.is_constant && a.below < 32;
    a.constant = a.is_constant ? a.constant : 0;
    return a;
}
