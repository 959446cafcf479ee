/* Sums and products of f32 that are rounded in a direction, for all lanes at once.
 *
 * They are computed in f64, rounded to odd with the help of the exact error, and rounded to the
 * nearest f32. The comparison of the two tells whether that is on the right side; if not, the next
 * f32 is.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

static inline uint32_t
directed_bits(double wide, unsigned mode)
{
    const float near = (float)wide;
    const double back = (double)near;
    const uint32_t bits = hed_to_bits32(near);
    const bool minus = bits >> 31;
    const bool over = mode == HED_PTX_ROUND_RM   ? back > wide
                      : mode == HED_PTX_ROUND_RP ? back < wide
                      : minus                    ? back < wide
                                                 : back > wide;
    /* Away from 0 is one more, towards 0 one less. */
    const bool away = mode == HED_PTX_ROUND_RM ? minus : mode == HED_PTX_ROUND_RP ? !minus : false;
    const uint32_t moved = away ? bits + 1 : bits - 1;

    return wide != wide ? 0x7fffffff : over ? moved : bits;
}

/* When rounding down, a sum that is zero is -0 unless both parts are +0. */
static inline double
odd_sum(double a, double b, unsigned mode)
{
    double err;
    const double sum = real_two_sum(a, b, &err);
    const double zero = hed_from_bits64((hed_to_bits64(a) | hed_to_bits64(b)) & UINT64_C(1) << 63);

    return real_odd(mode == HED_PTX_ROUND_RM && sum == 0 ? zero : sum, err);
}

#define DIRECTED_STEPS(name, mode)                                                             \
    STEP_BINARY(add_##name, uint32_t, float, float,                                            \
                directed_bits(odd_sum((double)a, (double)b, mode), mode))                      \
    STEP_BINARY(sub_##name, uint32_t, float, float,                                            \
                directed_bits(odd_sum((double)a, -(double)b, mode), mode))                     \
    STEP_BINARY(mul_##name, uint32_t, float, float, directed_bits((double)a *(double)b, mode)) \
    STEP_TERNARY(fma_##name, uint32_t, float, float, float,                                    \
                 directed_bits(odd_sum((double)a *(double)b, (double)c, mode), mode))

DIRECTED_STEPS(rz_f32, HED_PTX_ROUND_RZ)
DIRECTED_STEPS(rm_f32, HED_PTX_ROUND_RM)
DIRECTED_STEPS(rp_f32, HED_PTX_ROUND_RP)

interp_run
hed_interp_directed(const struct hed_ptx_form *f)
{
    static const interp_run steps[3][4] = {
        {add_rz_f32, sub_rz_f32, mul_rz_f32, fma_rz_f32},
        {add_rm_f32, sub_rm_f32, mul_rm_f32, fma_rm_f32},
        {add_rp_f32, sub_rp_f32, mul_rp_f32, fma_rp_f32},
    };
    const unsigned row = (unsigned)f->round - HED_PTX_ROUND_RZ;

    if (f->types[0] != HED_PTX_TYPE_F32 || f->flags || row > 2)
        return NULL;
    switch (f->op) {
    case HED_PTX_OP_ADD:
        return steps[row][0];
    case HED_PTX_OP_SUB:
        return steps[row][1];
    case HED_PTX_OP_MUL:
        return steps[row][2];
    case HED_PTX_OP_FMA:
    case HED_PTX_OP_MAD:
        return steps[row][3];
    default:
        return NULL;
    }
}
