/* Tiles of sums of products (pass/tiles.h) on processors whose registers hold 8 floats.
 *
 * 32 lanes of a number take four of their 16 registers, so a tile's sums do not fit. But lanes do
 * not meet in a tile: the first eight lanes get all of their products, then the next eight.
 *
 *      s0 += a0 b0  32 lanes                       s0 += a0 b0  lanes 0 to 7
 *      s1 += a0 b1                                 s1 += a0 b1
 *      ...                                  ->     ...          all steps
 *      s0 += a1 b0  the next step                  s0 += a0 b0  lanes 8 to 15
 *      ...                                         ...
 *
 * LLVM keeps this order, because its scheduler is off (compile.c).
 */
#include "kernel/ptx/lower/mask/mask.h"

#define PIECE 8 /* floats in a register */
#define PIECES (HED_PTX_LANES / PIECE)
#define SOURCES 3

/* An fma of a tile. */
struct member {
    struct hed_ptx_inst *inst;
    const struct member *before; /* the one whose sum it adds to; NULL: it is in[2] */
    LLVMValueRef in[SOURCES];    /* 32 words */
    LLVMValueRef pieces[PIECES]; /* of the result: 8 floats */
};

bool
hed_mask_has_pieces(const struct hed_lower *l)
{
#if defined(__x86_64__)
    return hed_lower_has(l, "fma") && hed_lower_has(l, "avx2") && !hed_lower_has(l, "avx512vl");
#else
    (void)l;
    return false;
#endif
}

/* Is it a fused multiply-add of the processor, in each lane? */
static bool
is_plain(const struct hed_lower *l, const struct hed_ptx_inst *i)
{
    const uint64_t odd = HED_PTX_FLAG(FTZ) | HED_PTX_FLAG(SAT);

    return !(i->form->flags & odd) && i->form->ntypes == 1 &&
           (!i->form->round || i->form->round == HED_PTX_ROUND_RN) &&
           hed_uniform_way(&hed_mask_state(l)->uniforms, i) == HED_PER_LANE;
}

/* How many instructions the tile has; 0: none, or some are not plain. */
static uint32_t
tile_length(const struct hed_lower *l, struct hed_ptx_inst *const *insts, uint32_t n)
{
    const struct mask *m = hed_mask_state(l);
    uint32_t tile = 0;

    for (uint32_t i = 0; i < n; i++) {
        const bool is_fma = !insts[i]->is_refused && !insts[i]->guard &&
                            insts[i]->noperands == 1 + SOURCES &&
                            insts[i]->operands[0].kind == HED_PTX_OPERAND_REG;
        const uint32_t own = is_fma ? m->tiles.of[insts[i]->operands[0].reg->id] : 0;

        if (i == 0)
            tile = own;
        if (own == 0 || own != tile)
            return i;
        if (i == HED_TILE_FMAS || !is_plain(l, insts[i]))
            return 0;
    }
    return n;
}

/* The sum that an fma adds to, if it is made in the tile. */
static const struct member *
find_before(const struct member *all, uint32_t n, const struct hed_ptx_reg *sum)
{
    while (n--)
        if (all[n].inst->operands[0].reg == sum)
            return &all[n];
    return NULL;
}

static void
read_sources(struct hed_lower *l, struct member *of)
{
    l->inst = of->inst;
    for (unsigned k = 0; k < SOURCES - (of->before ? 1u : 0u); k++)
        of->in[k] = hed_lower_get(l, &of->inst->operands[k + 1], HED_PTX_TYPE_F32);
    l->inst = NULL;
}

/* Eight lanes of a source. They are taken out as words, and floats then: LLVM would put an fma of
 * three parts of vectors together again. */
static LLVMValueRef
source_piece(struct hed_lower *l, const struct member *of, unsigned k, unsigned piece)
{
    if (k == SOURCES - 1 && of->before)
        return of->before->pieces[piece];
    return LLVMBuildBitCast(l->b, hed_lower_elements(l, of->in[k], piece * PIECE, 1, PIECE),
                            LLVMVectorType(l->f32, PIECE), "");
}

static void
make_piece(struct hed_lower *l, struct member *of, unsigned piece)
{
    LLVMValueRef args[SOURCES];

    for (unsigned k = 0; k < SOURCES; k++)
        args[k] = source_piece(l, of, k, piece);
    of->pieces[piece] =
        hed_lower_intrinsic(l, "llvm.fma", LLVMVectorType(l->f32, PIECE), args, SOURCES);
}

/* Writes a sum of 32 lanes. One that only the tile reads is left out by LLVM. */
static void
write_tile_sum(struct hed_lower *l, struct member *of)
{
    const struct hed_ptx_operand *to = &of->inst->operands[0];
    LLVMTypeRef words = LLVMVectorType(l->i32, PIECE), all = LLVMVectorType(l->f32, HED_PTX_LANES);
    LLVMValueRef parts[PIECES], v, f;

    for (unsigned i = 0; i < PIECES; i++)
        parts[i] = LLVMBuildBitCast(l->b, of->pieces[i], words, "");
    v = hed_mask_join(l, parts, PIECES);
    l->inst = of->inst;
    if (!hed_mask_takes_any_nan(l, to->reg)) {
        f = LLVMBuildBitCast(l->b, v, all, "");
        v = LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, f, f, ""),
                            hed_lower_int(l, l->i32, 0x7fffffff), v, "");
    }
    hed_lower_set(l, to, HED_PTX_TYPE_F32, v);
    l->inst = NULL;
}

uint32_t
hed_mask_make_tile(struct hed_lower *l, struct hed_ptx_inst *const *insts, uint32_t n)
{
    struct member all[HED_TILE_FMAS];
    uint32_t count;

    if (!hed_mask_state(l)->tiles.moved || !hed_mask_has_pieces(l))
        return 0;
    count = tile_length(l, insts, n);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (struct member){.inst = insts[i],
                                 .before = find_before(all, i, insts[i]->operands[3].reg)};
        hed_mask_note_late(l, insts[i]);
        read_sources(l, &all[i]);
    }
    for (unsigned piece = 0; piece < PIECES; piece++)
        for (uint32_t i = 0; i < count; i++)
            make_piece(l, &all[i], piece);
    for (uint32_t i = 0; i < count; i++)
        write_tile_sum(l, &all[i]);
    return count;
}
