/* Types, constants, operands, and the small pieces of code that every family uses. */
#include <stdio.h>
#include <string.h>

#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/layout.h"

/* ---- types and constants --------------------------------------------------------------------- */

LLVMTypeRef
hed_lower_lanes(struct hed_lower *l, LLVMTypeRef t)
{
    return l->lanes == 1 ? t : LLVMVectorType(t, l->lanes);
}

LLVMTypeRef
hed_lower_int_type(struct hed_lower *l, enum hed_ptx_type t)
{
    return LLVMIntTypeInContext(l->context, hed_ptx_types[t].bits);
}

LLVMTypeRef
hed_lower_float_type(struct hed_lower *l, enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_F16:
        return l->f16;
    case HED_PTX_TYPE_F32:
        return l->f32;
    case HED_PTX_TYPE_F64:
        return l->f64;
    default:
        return NULL;
    }
}

static LLVMValueRef
splat_constant(struct hed_lower *l, LLVMValueRef c)
{
    LLVMValueRef all[2 * HED_PTX_LANES]; /* pairs of halves are twice as many lanes */

    if (l->lanes == 1)
        return c;
    for (unsigned i = 0; i < l->lanes; i++)
        all[i] = c;
    return LLVMConstVector(all, l->lanes);
}

LLVMValueRef
hed_lower_int(struct hed_lower *l, LLVMTypeRef t, uint64_t value)
{
    const unsigned bits = LLVMGetIntTypeWidth(t);

    if (bits < 64)
        value &= (UINT64_C(1) << bits) - 1;
    return splat_constant(l, LLVMConstInt(t, value, false));
}

LLVMValueRef
hed_lower_float(struct hed_lower *l, LLVMTypeRef t, double value)
{
    return splat_constant(l, LLVMConstReal(t, value));
}

LLVMValueRef
hed_lower_word(struct hed_lower *l, uint64_t value)
{
    return LLVMConstInt(l->i32, value, false);
}

LLVMValueRef
hed_lower_splat(struct hed_lower *l, LLVMValueRef v)
{
    if (l->lanes == 1)
        return v;
    if (LLVMIsConstant(v))
        return splat_constant(l, v);

    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(v), l->lanes);
    LLVMValueRef one =
        LLVMBuildInsertElement(l->b, LLVMGetPoison(t), v, LLVMConstInt(l->i32, 0, false), "");

    return LLVMBuildShuffleVector(l->b, one, LLVMGetPoison(t),
                                  LLVMConstNull(LLVMVectorType(l->i32, l->lanes)), "");
}

LLVMValueRef
hed_lower_concatenate(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    const unsigned n = LLVMGetVectorSize(LLVMTypeOf(a)) + LLVMGetVectorSize(LLVMTypeOf(b));
    LLVMValueRef from[2 * HED_PTX_LANES];

    for (unsigned i = 0; i < n; i++)
        from[i] = hed_lower_word(l, i);
    return LLVMBuildShuffleVector(l->b, a, b, LLVMConstVector(from, n), "");
}

LLVMValueRef
hed_lower_elements(struct hed_lower *l, LLVMValueRef v, unsigned from, unsigned step, unsigned n)
{
    LLVMValueRef picks[HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX];

    for (unsigned i = 0; i < n; i++)
        picks[i] = hed_lower_word(l, from + i * step);
    return LLVMBuildShuffleVector(l->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(picks, n),
                                  "");
}

/* ---- building -------------------------------------------------------------------------------- */

LLVMBasicBlockRef
hed_lower_block(struct hed_lower *l, const char *name)
{
    return LLVMAppendBasicBlockInContext(l->context, l->function->value, name);
}

void
hed_lower_unlikely(struct hed_lower *l, LLVMValueRef condition, LLVMBasicBlockRef yes,
                   LLVMBasicBlockRef no)
{
    LLVMValueRef branch = LLVMBuildCondBr(l->b, condition, yes, no);
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(l->context, "branch_weights", 14),
        LLVMValueAsMetadata(hed_lower_word(l, 1)),
        LLVMValueAsMetadata(hed_lower_word(l, 1u << 20)),
    };

    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(l->context, "prof", 4),
                    LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, weights, 3)));
}

LLVMValueRef
hed_lower_alloca(struct hed_lower *l, LLVMTypeRef t, uint64_t count, unsigned align)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMValueRef first = LLVMGetFirstInstruction(l->function->entry);
    LLVMValueRef a;

    if (first)
        LLVMPositionBuilderBefore(l->b, first);
    else
        LLVMPositionBuilderAtEnd(l->b, l->function->entry);
    a = count == 1 ? LLVMBuildAlloca(l->b, t, "")
                   : LLVMBuildAlloca(l->b, LLVMArrayType(t, (unsigned)count), "");
    if (align)
        LLVMSetAlignment(a, align);
    LLVMPositionBuilderAtEnd(l->b, here);
    return a;
}

LLVMValueRef
hed_lower_at(struct hed_lower *l, LLVMValueRef ptr, int64_t bytes)
{
    LLVMValueRef index = LLVMConstInt(l->i64, (uint64_t)bytes, true);

    return bytes == 0 ? ptr : LLVMBuildGEP2(l->b, l->i8, ptr, &index, 1, "");
}

LLVMValueRef
hed_lower_field(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef ptr, size_t offset)
{
    LLVMValueRef v = LLVMBuildLoad2(l->b, t, hed_lower_at(l, ptr, (int64_t)offset), "");
    const unsigned kind = LLVMGetMDKindIDInContext(l->context, "invariant.load", 14);

    LLVMSetMetadata(v, kind,
                    LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
    return v;
}

LLVMValueRef
hed_lower_resize(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed)
{
    LLVMTypeRef from = LLVMTypeOf(v);
    const bool has_lanes = LLVMGetTypeKind(from) == LLVMVectorTypeKind;
    const unsigned old = LLVMGetIntTypeWidth(has_lanes ? LLVMGetElementType(from) : from);
    const unsigned now = LLVMGetIntTypeWidth(t);
    LLVMTypeRef to = has_lanes ? LLVMVectorType(t, LLVMGetVectorSize(from)) : t;

    if (old == now)
        return v;
    if (old > now)
        return LLVMBuildTrunc(l->b, v, to, "");
    return is_signed ? LLVMBuildSExt(l->b, v, to, "") : LLVMBuildZExt(l->b, v, to, "");
}

LLVMValueRef
hed_lower_select(struct hed_lower *l, LLVMValueRef c, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(l->b, c, yes, no, "");
}

LLVMValueRef
hed_lower_intrinsic(struct hed_lower *l, const char *name, LLVMTypeRef t, LLVMValueRef *args,
                    unsigned n)
{
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));

    if (id == 0) {
        hed_lower_refuse(l, "LLVM has no %s", name);
        return LLVMGetPoison(t);
    }

    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, &t, 1);

    return LLVMBuildCall2(l->b, LLVMIntrinsicGetType(l->context, id, &t, 1), f, args, n, "");
}

bool
hed_lower_has(const struct hed_lower *l, const char *feature)
{
    const char *all = l->options->features ? l->options->features : "";
    const size_t n = strlen(feature);

    for (const char *at = all; (at = strstr(at, feature)); at += n)
        if (at > all && at[-1] == '+' && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}

bool
hed_lower_has_fma(const struct hed_lower *l)
{
#if defined(__aarch64__)
    (void)l;
    return true;
#else
    return hed_lower_has(l, "fma");
#endif
}

void
hed_lower_attribute(struct hed_lower *l, LLVMValueRef f, const char *name, uint64_t value)
{
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

    if (kind)
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(l->context, kind, value));
}

void
hed_lower_text_attribute(struct hed_lower *l, LLVMValueRef f, const char *name, const char *value)
{
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

LLVMValueRef
hed_lower_declare_as(struct hed_lower *l, const char *name, LLVMTypeRef type)
{
    LLVMValueRef v = LLVMAddFunction(l->module, name, type);

    hed_lower_attribute(l, v, "nounwind", 0);
    hed_lower_text_attribute(l, v, "frame-pointer", "all");
    /* A large frame touches each page, so that it cannot skip the guard under the stack. */
    if (l->options->confined)
        hed_lower_text_attribute(l, v, "probe-stack", "inline-asm");
    return v;
}

LLVMValueRef
hed_lower_declare(struct hed_lower *l, const struct hed_ptx_func *f, LLVMTypeRef type)
{
    char name[256];
    LLVMValueRef v;

    /* The prefix keeps LLVM from giving a name a meaning of its own ("memcpy"). */
    snprintf(name, sizeof(name), "f.%s", f->name);
    v = hed_lower_declare_as(l, f == l->kernel ? "hed_kernel" : name, type);
    if (f != l->kernel)
        LLVMSetLinkage(v, LLVMInternalLinkage);
    return v;
}

LLVMValueRef
hed_lower_external(struct hed_lower *l, const char *name, LLVMTypeRef type)
{
    LLVMValueRef f = LLVMGetNamedFunction(l->module, name);

    if (f)
        return f;
    f = LLVMAddFunction(l->module, name, type);
    /* Hidden functions are called directly, without a table of addresses; the loader makes
     * stubs. */
    LLVMSetVisibility(f, LLVMHiddenVisibility);
    hed_lower_attribute(l, f, "nounwind", 0);
    return f;
}

static LLVMTypeRef
type_of_call(LLVMTypeRef result, LLVMValueRef *args, unsigned n)
{
    LLVMTypeRef types[16];

    for (unsigned i = 0; i < n && i < 16; i++)
        types[i] = LLVMTypeOf(args[i]);
    return LLVMFunctionType(result, types, n, false);
}

LLVMValueRef
hed_lower_runtime(struct hed_lower *l, const char *name, LLVMTypeRef result, LLVMValueRef *args,
                  unsigned n)
{
    LLVMTypeRef type = type_of_call(result, args, n);

    return LLVMBuildCall2(l->b, type, hed_lower_external(l, name, type), args, n, "");
}

void
hed_lower_trap(struct hed_lower *l, LLVMValueRef args[3])
{
    LLVMTypeRef type = type_of_call(l->nothing, args, 3);
    LLVMValueRef f = hed_lower_external(l, "hed_rt_trap", type), call;

    /* It keeps no register. But since it does not return nobody finds out, and callers with this
     * convention need not save registers for it. */
    LLVMSetFunctionCallConv(f, HED_LOWER_RARE);
    call = LLVMBuildCall2(l->b, type, f, args, 3, "");
    LLVMSetInstructionCallConv(call, HED_LOWER_RARE);
    LLVMBuildUnreachable(l->b);
}

static LLVMValueRef
call_helper(struct hed_lower *l, const char *name, LLVMTypeRef result, LLVMValueRef *args,
            unsigned n)
{
    LLVMTypeRef type = type_of_call(result, args, n);
    const bool is_new = LLVMGetNamedFunction(l->module, name) == NULL;
    LLVMValueRef f = hed_lower_external(l, name, type);

    if (is_new) {
        hed_lower_attribute(l, f, "memory", 0);
        hed_lower_attribute(l, f, "willreturn", 0);
    }
    return LLVMBuildCall2(l->b, type, f, args, n, "");
}

LLVMValueRef
hed_lower_helper(struct hed_lower *l, const char *name, LLVMTypeRef result, LLVMValueRef *args,
                 unsigned n)
{
    LLVMValueRef all;

    if (l->lanes == 1)
        return call_helper(l, name, result, args, n);
    all = LLVMGetPoison(LLVMVectorType(result, l->lanes));
    for (unsigned i = 0; i < l->lanes; i++) {
        LLVMValueRef at = LLVMConstInt(l->i32, i, false);
        LLVMValueRef one[16];

        for (unsigned k = 0; k < n && k < 16; k++)
            one[k] = LLVMBuildExtractElement(l->b, args[k], at, "");
        all = LLVMBuildInsertElement(l->b, all, call_helper(l, name, result, one, n), at, "");
    }
    return all;
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool
is_signed_type(enum hed_ptx_type t)
{
    return hed_ptx_types[t].kind == HED_PTX_KIND_S;
}

static double
double_constant(const struct hed_ptx_operand *o)
{
    const uint32_t low = (uint32_t)o->bits;
    double d;
    float f;

    if (o->is_f32) {
        memcpy(&f, &low, sizeof(f));
        return (double)f;
    }
    memcpy(&d, &o->bits, sizeof(d));
    return d;
}

static uint64_t
f32_constant_bits(const struct hed_ptx_operand *o)
{
    const float f = (float)double_constant(o);
    uint32_t bits;

    if (o->is_f32)
        return (uint32_t)o->bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static uint64_t
f64_constant_bits(const struct hed_ptx_operand *o)
{
    const double d = double_constant(o);
    uint64_t bits;

    memcpy(&bits, &d, sizeof(bits));
    return bits;
}

/* The bf16 of a constant: its float, rounded to nearest even. */
static uint64_t
bf16_constant_bits(const struct hed_ptx_operand *o)
{
    const uint32_t bits = (uint32_t)f32_constant_bits(o);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static LLVMValueRef
float_operand_bits(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    LLVMTypeRef type = hed_lower_int_type(l, t);

    switch (t) {
    case HED_PTX_TYPE_F16:
        return splat_constant(l, LLVMConstBitCast(LLVMConstReal(l->f16, double_constant(o)),
                                                  LLVMInt16TypeInContext(l->context)));
    case HED_PTX_TYPE_BF16:
        return hed_lower_int(l, type, bf16_constant_bits(o));
    default:
        if (hed_ptx_types[t].bits == 32)
            return hed_lower_int(l, type, f32_constant_bits(o));
        return hed_lower_int(l, type, t == HED_PTX_TYPE_F64 ? f64_constant_bits(o) : o->bits);
    }
}

static LLVMValueRef
integer_operand(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    LLVMTypeRef type = hed_lower_int_type(l, t);

    if (t == HED_PTX_TYPE_PRED)
        return hed_lower_int(l, type, o->bits != 0);
    if (hed_ptx_types[t].bits > 64)
        return splat_constant(l, LLVMConstInt(type, o->bits, true));
    return hed_lower_int(l, type, o->bits);
}

LLVMValueRef
hed_lower_slot(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned n)
{
    return l->function->regs[r->id][n];
}

static LLVMValueRef
load_register(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned n)
{
    LLVMTypeRef t = hed_lower_lanes(l, hed_lower_int_type(l, r->type));

    if (l->shape->read)
        return l->shape->read(l, r);
    return LLVMBuildLoad2(l->b, t, hed_lower_slot(l, r, n), "");
}

LLVMValueRef
hed_lower_get(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    LLVMTypeRef type = hed_lower_int_type(l, t);
    const char *why = hed_ptx_lacks_value(o, t);
    LLVMValueRef v;

    if (why) {
        hed_lower_refuse(l, "%s", why);
        return hed_lower_int(l, type, 0);
    }
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        v = load_register(l, o->reg, hed_ptx_operand_element(o));
        break;
    case HED_PTX_OPERAND_SREG:
        v = hed_lower_sreg(l, o);
        break;
    case HED_PTX_OPERAND_INT:
        v = integer_operand(l, o, t);
        break;
    case HED_PTX_OPERAND_FLOAT:
        v = float_operand_bits(l, o, t);
        break;
    case HED_PTX_OPERAND_VAR:
    case HED_PTX_OPERAND_FUNC:
        v = hed_lower_address_of(l, o);
        break;
    default: /* a sink */
        return hed_lower_int(l, type, 0);
    }
    v = hed_lower_resize(l, v, type, is_signed_type(t));
    return o->negated && t == HED_PTX_TYPE_PRED ? LLVMBuildNot(l->b, v, "") : v;
}

void
hed_lower_set(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t,
              LLVMValueRef v)
{
    const char *why = hed_ptx_lacks_place(o);

    if (why)
        hed_lower_refuse(l, "%s", why);
    if (o->kind != HED_PTX_OPERAND_REG)
        return;
    v = hed_lower_resize(l, v, hed_lower_int_type(l, o->reg->type), is_signed_type(t));
    if (l->shape->write)
        l->shape->write(l, o->reg, v);
    else
        l->shape->assign(l, hed_lower_slot(l, o->reg, hed_ptx_operand_element(o)), v);
}

static LLVMValueRef
carry_slot(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;

    if (!f->carry) {
        f->carry = hed_lower_alloca(l, hed_lower_lanes(l, l->i1), 1, 0);
        /* It starts as 0; PTX does not define its value before the first .cc instruction. */
        LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);

        LLVMPositionBuilderBefore(l->b, LLVMGetBasicBlockTerminator(f->entry));
        LLVMBuildStore(l->b, LLVMConstNull(hed_lower_lanes(l, l->i1)), f->carry);
        LLVMPositionBuilderAtEnd(l->b, here);
    }
    return f->carry;
}

LLVMValueRef
hed_lower_get_carry(struct hed_lower *l)
{
    return LLVMBuildLoad2(l->b, hed_lower_lanes(l, l->i1), carry_slot(l), "");
}

void
hed_lower_set_carry(struct hed_lower *l, LLVMValueRef v)
{
    l->shape->assign(l, carry_slot(l), v);
}
