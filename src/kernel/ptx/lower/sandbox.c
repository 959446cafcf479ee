/* Confined kernels: every pointer that code makes of an address stays in the kernel's address
 * sandbox (kernel/ptx/run/abi.h).
 *
 *      an address that the kernel computed     sandbox + lower bits of the address
 *      such an address and a known distance    sandbox + lower bits, + distance
 *      shared memory and an offset of 32 bits  as it is: shared memory is far from its ends
 *      variables, parameters, and a distance   the same; they lie in the sandbox
 *
 * What is not in the address sandbox has pointers that code does not make of addresses: LLVM's own
 * stack, the warp and what belongs to it. So the rule is that a number becomes a pointer here only,
 * which hed_pass_check_sandbox() tests.
 */
#include <llvm-c/Core.h>
#include <stddef.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/lower/passes.h"

#define LOCAL_ALIGN 64                  /* bytes */
#define LOCAL_MAX ((uint64_t)256 << 20) /* bytes of a warp's variables */
#define SHORT_MAX (INT64_C(1) << 32) /* what an offset of 32 bits, with or without sign, is below */

/* ---- addresses ------------------------------------------------------------------------------- */

static bool
is_operation(LLVMValueRef v, LLVMOpcode op)
{
    return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == op;
}

static bool
is_near(LLVMValueRef v, int64_t most)
{
    if (!LLVMIsAConstantInt(v) || LLVMGetIntTypeWidth(LLVMTypeOf(v)) != 64)
        return false;

    const int64_t n = (int64_t)LLVMConstIntGetZExtValue(v);

    return n >= -most && n <= most;
}

static bool
is_shared_base(const struct hed_lower *l, LLVMValueRef v)
{
    return is_operation(v, LLVMPtrToInt) && LLVMGetOperand(v, 0) == l->function->shared;
}

/* A number that was made of 32 bits. */
static bool
is_short(LLVMValueRef v)
{
    if (is_operation(v, LLVMZExt) || is_operation(v, LLVMSExt)) {
        LLVMTypeRef from = LLVMTypeOf(LLVMGetOperand(v, 0));

        return LLVMGetTypeKind(from) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(from) <= 32;
    }
    if (is_operation(v, LLVMAnd) && LLVMIsAConstantInt(LLVMGetOperand(v, 1)))
        return LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1)) < (uint64_t)SHORT_MAX;
    return is_near(v, SHORT_MAX);
}

static bool
is_in_shared(const struct hed_lower *l, LLVMValueRef address)
{
    if (!l->function->shared || !is_operation(address, LLVMAdd))
        return false;

    LLVMValueRef a = LLVMGetOperand(address, 0), b = LLVMGetOperand(address, 1);

    return (is_shared_base(l, a) && is_short(b)) || (is_shared_base(l, b) && is_short(a));
}

static LLVMValueRef
sandbox_bits(struct hed_lower *l, LLVMTypeRef t)
{
    LLVMValueRef bits = LLVMConstInt(l->i64, HED_PTX_SANDBOX_SIZE - 1, false);

    return t == l->i64 ? bits : hed_lower_int(l, l->i64, HED_PTX_SANDBOX_SIZE - 1);
}

LLVMValueRef
hed_lower_pointer(struct hed_lower *l, LLVMValueRef address)
{
    int64_t distance = 0;
    LLVMValueRef at;

    if (!l->options->confined || is_in_shared(l, address))
        return LLVMBuildIntToPtr(l->b, address, l->ptr, "");
    /* Code that uses an address several times, with other distances, needs one `and`. */
    if (is_operation(address, LLVMAdd) &&
        is_near(LLVMGetOperand(address, 1), HED_PTX_SANDBOX_REACH)) {
        distance = (int64_t)LLVMConstIntGetZExtValue(LLVMGetOperand(address, 1));
        address = LLVMGetOperand(address, 0);
    }
    at = LLVMBuildAnd(l->b, address, sandbox_bits(l, l->i64), "");
    at = LLVMBuildGEP2(l->b, l->i8, l->function->sandbox, &at, 1, "");
    return hed_lower_at(l, at, distance);
}

LLVMValueRef
hed_lower_in_sandbox(struct hed_lower *l, LLVMValueRef addresses)
{
    LLVMValueRef sandbox;

    if (!l->options->confined)
        return addresses;
    sandbox = hed_lower_splat(l, LLVMBuildPtrToInt(l->b, l->function->sandbox, l->i64, ""));
    return LLVMBuildAdd(l->b,
                        LLVMBuildAnd(l->b, addresses, sandbox_bits(l, LLVMTypeOf(addresses)), ""),
                        sandbox, "");
}

bool
hed_lower_reaches(struct hed_lower *l, int64_t distance)
{
    if (!l->options->confined ||
        (distance >= -HED_PTX_SANDBOX_REACH && distance <= HED_PTX_SANDBOX_REACH))
        return true;
    hed_lower_refuse(l, "the address is too far from the variable");
    return false;
}

/* ---- local memory ---------------------------------------------------------------------------- */

LLVMValueRef
hed_lower_local(struct hed_lower *l, uint64_t bytes, unsigned align)
{
    const uint64_t at = l->info.local;

    if (!l->options->confined)
        return hed_lower_alloca(l, l->i8, bytes, align);
    if (bytes > LOCAL_MAX || at > LOCAL_MAX - bytes || align > LOCAL_ALIGN) {
        hed_lower_refuse(l, "the variables of a confined kernel are too large");
        return LLVMGetPoison(l->ptr);
    }
    /* No function is called while it runs, so each has its own place. */
    l->info.local = (uint32_t)hed_round_up(at + bytes, LOCAL_ALIGN);
    return hed_lower_at(
        l, hed_lower_field(l, l->ptr, l->function->warp, offsetof(struct hed_ptx_warp, local)),
        (int64_t)at);
}

/* ---- the module as a whole ------------------------------------------------------------------- */

/* The pointer is shared memory and an offset, whatever function this is in. */
static bool
is_made_of_shared(LLVMValueRef pointer)
{
    LLVMValueRef address = LLVMGetOperand(pointer, 0);

    if (!is_operation(address, LLVMAdd))
        return false;

    LLVMValueRef a = LLVMGetOperand(address, 0), b = LLVMGetOperand(address, 1);

    return (is_operation(a, LLVMPtrToInt) && is_short(b)) ||
           (is_operation(b, LLVMPtrToInt) && is_short(a));
}

int
hed_pass_check_sandbox(struct hed_lower *l)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                if (LLVMGetInstructionOpcode(i) == LLVMIntToPtr && !is_made_of_shared(i)) {
                    hed_why_set(
                        l->why,
                        "heddle made a pointer that could leave the address sandbox, which is "
                        "a bug");
                    return HED_ESTATE;
                }
    return 0;
}

/* Code behind something that LLVM takes for impossible would be whatever lies there. */
int
hed_pass_close_ends(struct hed_lower *l)
{
    const unsigned id = LLVMLookupIntrinsicID("llvm.trap", 9);
    LLVMValueRef trap = LLVMGetIntrinsicDeclaration(l->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, NULL, 0);

    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
            LLVMValueRef end = LLVMGetBasicBlockTerminator(b);

            if (!end || LLVMGetInstructionOpcode(end) != LLVMUnreachable)
                continue;
            LLVMPositionBuilderBefore(l->b, end);
            LLVMBuildCall2(l->b, type, trap, NULL, 0, "");
        }
    return 0;
}
