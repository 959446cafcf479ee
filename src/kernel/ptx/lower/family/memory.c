/* ld and st in all spaces and orders, and memory on the stack. */
#include "kernel/ptx/lower/lower.h"

#include "kernel/ptx/lower/family/family.h"

/* .cv means "don't cache and fetch again": programs wait for the host with it. */
static bool
is_volatile_form(const struct hed_ptx_form *f)
{
    return f->sem == HED_PTX_SEM_VOLATILE || f->cop == HED_PTX_COP_CV ||
           (f->flags & HED_PTX_FLAG(MMIO));
}

/* Do plain instructions move the pair at once? */
static bool
is_whole_pair(const struct hed_lower *l, const struct hed_ptx_form *f)
{
    return hed_ptx_publishes_pair(f) && l->options->check_alignment &&
           (hed_lower_has(l, "lse2") || (hed_lower_has(l, "avx") && hed_lower_has(l, "cx16")));
}

static LLVMAtomicOrdering
access_order(const struct hed_lower *l, const struct hed_ptx_form *f)
{
    switch (f->sem) {
    case HED_PTX_SEM_ACQUIRE:
        return LLVMAtomicOrderingAcquire;
    case HED_PTX_SEM_RELEASE:
        return LLVMAtomicOrderingRelease;
    case HED_PTX_SEM_VOLATILE:
    case HED_PTX_SEM_RELAXED:
        return LLVMAtomicOrderingMonotonic;
    default:
        return is_volatile_form(f) || is_whole_pair(l, f) ? LLVMAtomicOrderingMonotonic
                                                          : LLVMAtomicOrderingNotAtomic;
    }
}

static unsigned
operand_space(const struct hed_ptx_form *f, unsigned nth)
{
    return nth < f->nspaces ? f->spaces[nth] : HED_PTX_SPACE_NONE;
}

static struct hed_lower_access
access_of_instruction(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned space = operand_space(f, 0);
    const bool is_private = space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC ||
                            space == HED_PTX_SPACE_LOCAL;
    struct hed_lower_access how = {
        .type = hed_lower_int_type(l, f->types[0]),
        .count = f->vec ? f->vec : 1,
        .align = 1,
        /* No other thread sees this memory. */
        .order = is_private ? LLVMAtomicOrderingNotAtomic : access_order(l, f),
        .is_volatile = is_volatile_form(f),
        .is_constant =
            space == HED_PTX_SPACE_CONST || space == HED_PTX_SPACE_PARAM_ENTRY ||
            (space == HED_PTX_SPACE_PARAM && l->function->ptx->is_entry && f->op == HED_PTX_OP_LD),
    };
    const unsigned bytes = hed_ptx_types[f->types[0]].bits / 8;

    /* LLVM splits atomic accesses of unknown alignment, so claim it: misaligned ones trap. */
    if (how.order != LLVMAtomicOrderingNotAtomic)
        how.align = bytes;
    else if (l->options->check_alignment)
        how.align = bytes * how.count;
    return how;
}

/* Accesses to a variable are checked against its declared alignment, which may be less than what
 * the access could claim. */
static void
limit_alignment(const struct hed_lower_place *at, struct hed_lower_access *how)
{
    if (at->var || at->base)
        how->align = how->order == LLVMAtomicOrderingNotAtomic ? 1 : how->align;
}

/* ---- vectors that others look at ------------------------------------------------------------- */

/* Other threads and processes may look at a vector with an order while it is accessed, and programs
 * rely on a GPU to move it at once (base/whole.h). So its elements are joined to words that are as
 * wide as one access can be, and the shapes load them from the end and store the end last.
 *
 *     v4.b32   { e0 e1 e2 e3 }  --join--> { e1:e0, e3:e2 }  --pair, if 16 bytes--> { e3:e2:e1:e0 }
 */
struct words {
    LLVMTypeRef half; /* what elements are joined to: at most 8 bytes */
    unsigned count;   /* of these */
    unsigned each;    /* elements in one of them */
    bool paired;      /* two of them are one access */
};

/* Does LLVM make one access of an atomic i128, and no call to a library? Without FEAT_LSE2 or AVX
 * it is a compare-and-exchange. Two accesses would not do: CUB's scans read {status, value}, NCCL
 * {data, flag}, so no order of the two is right for both. */
static bool
has_whole_16(const struct hed_lower *l)
{
#if defined(__aarch64__)
    (void)l;
    return true;
#else
    return hed_lower_has(l, "cx16");
#endif
}

/* Changes an access with an order to one of words. False: there is nothing to join. */
static bool
join_access(struct hed_lower *l, const struct hed_ptx_operand *memory, struct hed_lower_access *how,
            struct words *w)
{
    const unsigned bytes = hed_ptx_types[l->inst->form->types[0]].bits / 8;
    const unsigned whole = bytes * how->count, half = whole < 8 ? whole : 8;
    const unsigned align =
        memory->kind == HED_PTX_OPERAND_VAR || memory->base == HED_PTX_OPERAND_VAR
            ? memory->var->align
            : whole;
    const unsigned space = operand_space(l->inst->form, 0);
    /* A block runs on one thread, which alone reaches its shared memory. */
    const bool wide = whole >= 16 && align >= 16 && space != HED_PTX_SPACE_SHARED &&
                      space != HED_PTX_SPACE_SHARED_CTA;

    if (how->order == LLVMAtomicOrderingNotAtomic || how->count == 1 || bytes > 8 || align < half)
        return false;
    if (wide && !has_whole_16(l))
        hed_lower_refuse(l, "16 bytes at once, on a processor without cmpxchg16b");
    *w = (struct words){.half = LLVMIntTypeInContext(l->context, half * 8),
                        .count = whole / half,
                        .each = half / bytes,
                        .paired = wide};
    how->type = w->paired ? l->i128 : w->half;
    how->count = w->paired ? w->count / 2 : w->count;
    how->align = whole < align ? whole : align;
    /* The parts are one access to whoever finds the end of it new. */
    if (how->order == LLVMAtomicOrderingMonotonic)
        how->order = l->inst->form->op == HED_PTX_OP_LD ? LLVMAtomicOrderingAcquire
                                                        : LLVMAtomicOrderingRelease;
    return true;
}

/* Two halves as one i128, and back. With lanes this is a shuffle: LLVM takes shifts of i128
 * apart. */
static LLVMValueRef
pair_halves(struct hed_lower *l, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef picks[2 * HED_PTX_LANES];
    const unsigned n = LLVMGetTypeKind(LLVMTypeOf(low)) == LLVMVectorTypeKind
                           ? LLVMGetVectorSize(LLVMTypeOf(low))
                           : 1;

    if (n == 1) {
        low = LLVMBuildZExt(l->b, low, l->i128, "");
        high = LLVMBuildZExt(l->b, high, l->i128, "");
        return LLVMBuildOr(l->b, low,
                           LLVMBuildShl(l->b, high, LLVMConstInt(l->i128, 64, false), ""), "");
    }
    for (unsigned i = 0; i < 2 * n; i++)
        picks[i] = hed_lower_word(l, i / 2 + (i % 2 ? n : 0));
    return LLVMBuildBitCast(
        l->b, LLVMBuildShuffleVector(l->b, low, high, LLVMConstVector(picks, 2 * n), ""),
        LLVMVectorType(l->i128, n), "");
}

static LLVMValueRef
take_half(struct hed_lower *l, LLVMValueRef pair, unsigned nth)
{
    unsigned n;

    if (LLVMGetTypeKind(LLVMTypeOf(pair)) != LLVMVectorTypeKind)
        return LLVMBuildTrunc(l->b,
                              LLVMBuildLShr(l->b, pair, LLVMConstInt(l->i128, 64 * nth, false), ""),
                              l->i64, "");
    n = LLVMGetVectorSize(LLVMTypeOf(pair));
    pair = LLVMBuildBitCast(l->b, pair, LLVMVectorType(l->i64, 2 * n), "");
    return hed_lower_elements(l, pair, nth, 2, n);
}

/* Sets the elements of words that were loaded. */
static void
set_elements(struct hed_lower *l, const struct words *w, LLVMValueRef *words)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    for (unsigned i = 0; i < w->count * w->each; i++) {
        const struct hed_ptx_operand e = hed_ptx_nth_element(&l->inst->operands[0], i);
        const unsigned nth = i / w->each;
        LLVMValueRef v = w->paired ? take_half(l, words[nth / 2], nth % 2) : words[nth];

        v = LLVMBuildLShr(l->b, v, hed_lower_int(l, w->half, i % w->each * hed_ptx_types[t].bits),
                          "");
        hed_lower_set(l, &e, t, hed_lower_resize(l, v, hed_lower_int_type(l, t), false));
    }
}

/* Makes words of the elements. */
static void
get_words(struct hed_lower *l, const struct words *w, LLVMValueRef *words)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    for (unsigned nth = 0; nth < w->count; nth++) {
        LLVMValueRef v = NULL;

        for (unsigned i = 0; i < w->each; i++) {
            const struct hed_ptx_operand e =
                hed_ptx_nth_element(&l->inst->operands[1], nth * w->each + i);
            LLVMValueRef part = hed_lower_resize(l, hed_lower_get(l, &e, t), w->half, false);

            part =
                LLVMBuildShl(l->b, part, hed_lower_int(l, w->half, i * hed_ptx_types[t].bits), "");
            v = v ? LLVMBuildOr(l->b, v, part, "") : part;
        }
        words[nth] = v;
    }
    for (unsigned i = 0; w->paired && i < w->count / 2; i++)
        words[i] = pair_halves(l, words[2 * i], words[2 * i + 1]);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

void
hed_op_load(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of_instruction(l);
    struct words words;
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[1], operand_space(f, 0), whole);
    const bool joined = join_access(l, &l->inst->operands[1], &how, &words);
    LLVMValueRef out[HED_LOWER_ELEMENTS_MAX];

    /* In a kernel, .param also holds the arguments of the functions it calls, and an address in a
     * register may point there. */
    if (!at.base && operand_space(f, 0) != HED_PTX_SPACE_CONST)
        how.is_constant = false;
    limit_alignment(&at, &how);
    if (l->err)
        return;
    l->shape->load(l, &at, &how, out);
    if (joined)
        set_elements(l, &words, out);
    for (unsigned i = 0; !joined && i < how.count; i++) {
        const struct hed_ptx_operand e = hed_ptx_nth_element(&l->inst->operands[0], i);

        hed_lower_set(l, &e, f->types[0], out[i]);
    }
}

void
hed_op_store(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of_instruction(l);
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[0], operand_space(f, 0), whole);
    struct words words;
    const bool joined = join_access(l, &l->inst->operands[0], &how, &words);
    LLVMValueRef in[HED_LOWER_ELEMENTS_MAX];

    limit_alignment(&at, &how);
    if (joined)
        get_words(l, &words, in);
    for (unsigned i = 0; !joined && i < how.count; i++) {
        const struct hed_ptx_operand e = hed_ptx_nth_element(&l->inst->operands[1], i);

        in[i] = hed_lower_get(l, &e, f->types[0]);
    }
    if (!l->err)
        l->shape->store(l, &at, &how, in);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static void
allocate_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef a = LLVMBuildArrayAlloca(l->b, l->i8, args[0], "");

    LLVMSetAlignment(a, *(const unsigned *)arg);
    results[0] = LLVMBuildPtrToInt(l->b, a, l->i64, "");
}

void
hed_op_alloca(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const enum hed_ptx_type t = i->form->types[0];
    unsigned align = l->meaning->align;
    LLVMValueRef size = hed_lower_get(l, &i->operands[1], t);
    LLVMValueRef at;

    if (l->options->confined) {
        hed_lower_refuse(l, "memory on the stack of a confined kernel");
        return;
    }
    l->shape->each(l, allocate_for_lane, &align, &size, 1, &l->i64, &at, 1);
    hed_lower_set(l, &i->operands[0], t, hed_lower_resize(l, at, hed_lower_int_type(l, t), false));
}

/* The memory of alloca is released when the function returns, so any value will do. */
void
hed_op_stacksave(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    hed_lower_set(l, &l->inst->operands[0], t, hed_lower_int(l, hed_lower_int_type(l, t), 0));
}

/* Only cache hints use the value of createpolicy. */
void
hed_op_createpolicy(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B64, hed_lower_int(l, l->i64, 0));
}
