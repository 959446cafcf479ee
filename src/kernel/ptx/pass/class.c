/* Arithmetic on classes. See class.h. */
#include "kernel/ptx/pass/class.h"

#include "base/number.h"

#define STEP_MAX (INT64_C(1) << 24) /* 31 steps stay far from 2^31 */

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
hed_class_join(struct hed_uniform a, struct hed_uniform b)
{
    struct hed_uniform r;

    if (a.kind == HED_UNKNOWN)
        return b;
    if (b.kind == HED_UNKNOWN)
        return a;
    if (a.kind == HED_VARIES || b.kind == HED_VARIES || a.step != b.step || a.wraps != b.wraps ||
        a.wrap != b.wrap)
        return varies;
    r = a;
    r.kind = (uint8_t)hed_max(a.kind, b.kind);
    r.align = (uint8_t)hed_min(a.align, b.align);
    r.is_constant = a.is_constant && b.is_constant && a.constant == b.constant;
    r.constant = r.is_constant ? a.constant : 0;
    r.is_small = a.is_small && b.is_small;
    return r;
}

struct hed_uniform
hed_class_add(const struct hed_uniforms *u, struct hed_uniform a, struct hed_uniform b, int sign)
{
    struct hed_uniform r;

    if (a.kind == HED_UNKNOWN || b.kind == HED_UNKNOWN)
        return unknown;
    if (a.kind == HED_VARIES || b.kind == HED_VARIES)
        return varies;
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
    int64_t step, wrap;

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
    if (a.step != 0 || b.step != 0 || a.wraps != HED_FLOW_NONE || b.wraps != HED_FLOW_NONE)
        return varies;
    return (struct hed_uniform){.kind = (uint8_t)hed_max(a.kind, b.kind),
                                .align = (uint8_t)hed_min(a.align + b.align, 63),
                                .wraps = HED_FLOW_NONE};
}

struct hed_uniform
hed_class_widen(struct hed_uniform a)
{
    if (a.kind == HED_ROWS && a.step != 0) {
        a.wraps = HED_WRAPS_HERE;
        a.wrap = a.step > 0 ? -1 : 1;
    }
    /* A constant would have to be widened with the right sign. */
    a.is_constant = false;
    a.constant = 0;
    return a;
}
