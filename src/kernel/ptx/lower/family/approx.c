/* ex2, lg2, sin, cos, tanh and rsqrt of f32, without branches, for any number of lanes.
 *
 * They are short polynomials in f64. The results are off by hardly more than the last rounding to
 * f32, which is better than PTX asks for. sin and cos start as a GPU does: they multiply by 1 / 2
 * pi in f32, and so have the same errors for large inputs as a GPU.
 *
 * The results are the same on every machine because IEEE defines the rounding of each operation. A
 * machine with fused multiply-add uses it, which changes some f64 values but, for all 2^32 inputs,
 * no result (tests/ptx/exec/every_float.c). Not for tanh, where one result would differ.
 */
#include "kernel/ptx/lower/family/math.h"

/* Adding this to a double rounds it to a whole number, which is then in the low bits. */
#define WHOLE 0x1.8p52

static LLVMValueRef
f64_constant(struct hed_lower *l, double v)
{
    return hed_lower_float(l, l->f64, v);
}

static LLVMValueRef
f64_add(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFAdd(l->b, a, b, "");
}

static LLVMValueRef
f64_sub(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFSub(l->b, a, b, "");
}

static LLVMValueRef
f64_mul(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFMul(l->b, a, b, "");
}

static LLVMValueRef
f64_compare(struct hed_lower *l, LLVMRealPredicate p, LLVMValueRef a, double b)
{
    return LLVMBuildFCmp(l->b, p, a, f64_constant(l, b), "");
}

static LLVMValueRef
f64_multiply_add(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef args[] = {a, b, c};

    return hed_lower_has_fma(l) ? hed_lower_intrinsic(l, "llvm.fma", LLVMTypeOf(a), args, 3)
                                : f64_add(l, f64_mul(l, a, b), c);
}

/* c[0] + x (c[1] + x (c[2] ...)) */
static LLVMValueRef
f64_polynomial(struct hed_lower *l, LLVMValueRef x, const double *c, unsigned n, bool may_fuse)
{
    LLVMValueRef r = f64_constant(l, c[n - 1]);

    for (unsigned i = n - 1; i-- > 0;)
        r = may_fuse ? f64_multiply_add(l, r, x, f64_constant(l, c[i]))
                     : f64_add(l, f64_mul(l, r, x), f64_constant(l, c[i]));
    return r;
}

/* 2^x for |x| up to 1000. The result for a NaN is undefined. */
static LLVMValueRef
power_of_two(struct hed_lower *l, LLVMValueRef x, bool may_fuse)
{
    /* ln(2)^k / k! */
    static const double c[] = {
        1.0,
        0x1.62e42fefa39efp-1,
        0x1.ebfbdff82c58fp-3,
        0x1.c6b08d704a0c0p-5,
        0x1.3b2ab6fba4e77p-7,
        0x1.5d87fe78a6731p-10,
        0x1.430912f86c787p-13,
        0x1.ffcbfc588b0c7p-17,
        0x1.62c0223a5c824p-20,
        0x1.b5253d395e7c4p-24,
        0x1.e4cf5158b8ecap-28,
    };
    LLVMValueRef whole = f64_add(l, x, f64_constant(l, WHOLE));
    LLVMValueRef p = f64_polynomial(l, f64_sub(l, x, f64_sub(l, whole, f64_constant(l, WHOLE))), c,
                                    11, may_fuse);
    LLVMValueRef bits = hed_cast(l, whole, l->i64);

    bits = LLVMBuildShl(l->b, bits, hed_like(l, bits, 52), "");
    bits = LLVMBuildAdd(l->b, bits, hed_cast(l, p, l->i64), "");
    return hed_cast(l, bits, l->f64);
}

/* The exponent plus log2(m) of the mantissa m: z (c0 + c1 z^2 + ...) with z = (m - 1) / (m + 1). */
static LLVMValueRef
approx_lg2(struct hed_lower *l, LLVMValueRef x)
{
    /* 2 / ln(2) / (2 k + 1) */
    static const double c[] = {
        0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1, 0x1.2776c50ef9bfep-1, 0x1.a61762a7aded9p-2,
        0x1.484b13d7c02a9p-2, 0x1.0c9a84994022dp-2, 0x1.c68f568d31760p-3, 0x1.89f3b1694cffep-3,
    };
    LLVMValueRef bits = hed_cast(l, x, l->i64);
    LLVMValueRef root = hed_like(l, bits, 0x3fe6a09e00000000); /* sqrt(1/2), about */
    LLVMValueRef e =
        LLVMBuildAShr(l->b, LLVMBuildSub(l->b, bits, root, ""), hed_like(l, bits, 52), "");
    LLVMValueRef m = LLVMBuildSub(l->b, bits, LLVMBuildShl(l->b, e, hed_like(l, e, 52), ""), "");
    LLVMValueRef whole = LLVMBuildAdd(l->b, e, hed_like(l, e, 0x4338000000000000), "");
    LLVMValueRef z, r;

    m = hed_cast(l, m, l->f64);
    z = LLVMBuildFDiv(l->b, f64_sub(l, m, f64_constant(l, 1)), f64_add(l, m, f64_constant(l, 1)),
                      "");
    r = f64_multiply_add(l, z, f64_polynomial(l, f64_mul(l, z, z), c, 8, true),
                         f64_sub(l, hed_cast(l, whole, l->f64), f64_constant(l, WHOLE)));

    /* 0 gives -infinity, infinity gives itself, negative numbers give NaN. */
    r = hed_lower_select(l, f64_compare(l, LLVMRealOEQ, x, 0), f64_constant(l, -__builtin_inf()),
                         r);
    r = hed_lower_select(l, f64_compare(l, LLVMRealOEQ, x, __builtin_inf()), x, r);
    return hed_lower_select(l, f64_compare(l, LLVMRealOLT, x, 0),
                            f64_constant(l, __builtin_nan("")), r);
}

/* sin or cos of 2 pi `turns`: the nearest quarter, and a series on either side of it. */
static LLVMValueRef
approx_wave(struct hed_lower *l, LLVMValueRef turns, bool is_cos)
{
    /* (2 pi)^k / k! with alternating signs */
    static const double sines[] = {
        0x1.921fb54442d18p+2,  -0x1.4abbce625be53p+5, 0x1.466bc6775aae2p+6,
        -0x1.32d2cce62bd86p+6, 0x1.50783487ee782p+5,  -0x1.e3074fde8871fp+3,
    };
    static const double cosines[] = {
        1.0,
        -0x1.3bd3cc9be45dep+4,
        0x1.03c1f081b5ac4p+6,
        -0x1.55d3c7e3cbffap+6,
        0x1.e1f506891babbp+5,
        -0x1.a6d1f2a204a8cp+4,
        0x1.f9d38a3763cc3p+2,
    };
    LLVMValueRef quarters =
        f64_add(l, f64_mul(l, turns, f64_constant(l, 4)), f64_constant(l, WHOLE));
    LLVMValueRef n = hed_cast(l, quarters, l->i64);
    LLVMValueRef near =
        f64_mul(l, f64_sub(l, quarters, f64_constant(l, WHOLE)), f64_constant(l, 0.25));
    LLVMValueRef x = f64_sub(l, turns, near);
    LLVMValueRef x2 = f64_mul(l, x, x);
    LLVMValueRef s = f64_mul(l, x, f64_polynomial(l, x2, sines, 6, true));
    LLVMValueRef c = f64_polynomial(l, x2, cosines, 7, true);
    LLVMValueRef one = hed_like(l, n, 1);
    LLVMValueRef odd, r, sign;

    if (is_cos)
        n = LLVMBuildAdd(l->b, n, one, "");
    odd = hed_trunc(l, LLVMBuildAnd(l->b, n, one, ""), l->i1);
    r = hed_lower_select(l, odd, c, s);
    sign = LLVMBuildAnd(l->b, n, hed_like(l, n, 2), "");
    sign = LLVMBuildShl(l->b, sign, hed_like(l, n, 62), "");
    return hed_cast(l, LLVMBuildXor(l->b, hed_cast(l, r, l->i64), sign, ""), l->f64);
}

/* x between -most and most; a NaN may become anything. */
static LLVMValueRef
f32_clamp(struct hed_lower *l, LLVMValueRef x, double most)
{
    LLVMValueRef high = hed_lower_float(l, l->f32, most), low = hed_lower_float(l, l->f32, -most);

    x = hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealOGT, x, high, ""), high, x);
    return hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealOLT, x, low, ""), low, x);
}

/* 1 - 2 / (e^2x + 1), or x if x is near 0; x is at most 32. */
static LLVMValueRef
approx_tanh(struct hed_lower *l, LLVMValueRef x)
{
    LLVMValueRef e = f64_mul(l, x, f64_constant(l, 0x1.71547652b82fep+1));
    LLVMValueRef small = f64_compare(l, LLVMRealOLT, hed_one(l, "llvm.fabs", x), 0x1p-12);
    LLVMValueRef r;

    e = f64_add(l, power_of_two(l, e, false), f64_constant(l, 1));
    r = f64_sub(l, f64_constant(l, 1), LLVMBuildFDiv(l->b, f64_constant(l, 2), e, ""));
    return hed_lower_select(l, small, x, r);
}

LLVMValueRef
hed_lower_approx(struct hed_lower *l, enum hed_ptx_op op, LLVMValueRef v)
{
    const bool is_wave = op == HED_PTX_OP_SIN || op == HED_PTX_OP_COS;
    LLVMTypeRef wide = hed_lower_lanes(l, l->f64), narrow = LLVMTypeOf(v);
    LLVMValueRef r, odd = v;

    switch (op) {
    case HED_PTX_OP_EX2:
        /* Beyond 160 the result is infinite or zero in f32. */
        v = f32_clamp(l, v, 160);
        r = power_of_two(l, LLVMBuildFPExt(l->b, v, wide, ""), true);
        break;
    case HED_PTX_OP_LG2:
        r = approx_lg2(l, LLVMBuildFPExt(l->b, v, wide, ""));
        break;
    case HED_PTX_OP_TANH:
        v = f32_clamp(l, v, 32);
        r = approx_tanh(l, LLVMBuildFPExt(l->b, v, wide, ""));
        break;
    default:
        v = LLVMBuildFMul(l->b, v, hed_lower_float(l, l->f32, 0x1.45f306p-3), "");
        r = approx_wave(l, LLVMBuildFPExt(l->b, v, wide, ""), op == HED_PTX_OP_COS);
        break;
    }
    /* The series are meaningless for NaN and, of sin and cos, for infinities. */
    if (is_wave)
        odd = LLVMBuildFSub(l->b, v, v, "");
    return hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealUNO, odd, odd, ""), odd,
                            LLVMBuildFPTrunc(l->b, r, narrow, ""));
}

/* ---- 1 / sqrt(x) ----------------------------------------------------------------------------- */

#if defined(__aarch64__)

/* Two lanes: the processor's estimate, and three steps of Newton, each of which doubles the number
 * of right bits. For all floats this rounds to the same f32 as a square root and a division. */
static LLVMValueRef
rsqrt_of_two(struct hed_lower *l, LLVMValueRef x)
{
    LLVMValueRef y = hed_one(l, "llvm.aarch64.neon.frsqrte", x);

    for (unsigned i = 0; i < 3; i++)
        y = f64_mul(l, y, hed_two(l, "llvm.aarch64.neon.frsqrts", x, f64_mul(l, y, y)));
    return y;
}

static LLVMValueRef
f64_rsqrt(struct hed_lower *l, LLVMValueRef x)
{
    LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(x));

    if (l->lanes == 1)
        return NULL;
    for (unsigned i = 0; i < l->lanes; i += 2) {
        LLVMValueRef at[] = {hed_lower_word(l, i), hed_lower_word(l, i + 1)};
        LLVMValueRef two =
            rsqrt_of_two(l, LLVMBuildShuffleVector(l->b, x, x, LLVMConstVector(at, 2), ""));

        for (unsigned k = 0; k < 2; k++)
            all = LLVMBuildInsertElement(
                l->b, all, LLVMBuildExtractElement(l->b, two, hed_lower_word(l, k), ""), at[k], "");
    }
    return all;
}

#else

static LLVMValueRef
f64_rsqrt(struct hed_lower *l, LLVMValueRef x)
{
    (void)l;
    (void)x;
    return NULL;
}

#endif

LLVMValueRef
hed_lower_rsqrt(struct hed_lower *l, LLVMValueRef v)
{
    LLVMValueRef x = LLVMBuildFPExt(l->b, v, hed_lower_lanes(l, l->f64), "");
    LLVMValueRef r = f64_rsqrt(l, x);

    if (!r)
        r = LLVMBuildFDiv(l->b, f64_constant(l, 1), hed_one(l, "llvm.sqrt", x), "");
    return LLVMBuildFPTrunc(l->b, r, LLVMTypeOf(v), "");
}
