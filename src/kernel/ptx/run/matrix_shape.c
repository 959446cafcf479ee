/* Which products of matrices there are: types and shapes. What they do is in matrix.c. */
#include <string.h>

#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/group.h"

bool
hed_ptx_is_integer_element(enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_S8:
    case HED_PTX_TYPE_U8:
    case HED_PTX_TYPE_S4:
    case HED_PTX_TYPE_U4:
    case HED_PTX_TYPE_B1:
    case HED_PTX_TYPE_S32:
        return true;
    default:
        return false;
    }
}

bool
hed_ptx_is_matrix_type(enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_F16:
    case HED_PTX_TYPE_BF16:
    case HED_PTX_TYPE_TF32:
    case HED_PTX_TYPE_F32:
    case HED_PTX_TYPE_F64:
    case HED_PTX_TYPE_E4M3:
    case HED_PTX_TYPE_E5M2:
        return true;
    default:
        return hed_ptx_is_integer_element(t);
    }
}

/* The numbers of a type in a register. */
static unsigned
numbers_in_word(enum hed_ptx_type t)
{
    const unsigned bits = hed_ptx_types[t].bits;

    return bits >= 32 ? 1 : 32 / bits;
}

bool
hed_ptx_is_fragment_shape(unsigned rows, unsigned columns)
{
    return rows * columns >= HED_PTX_LANES && rows * columns % HED_PTX_LANES == 0;
}

bool
hed_ptx_is_product_shape(const struct hed_ptx_mma *m)
{
    const unsigned k = m->k & HED_PTX_MMA_K;

    if (m->m * k > HED_PTX_MMA_A_MAX || m->n * k > HED_PTX_MMA_B_MAX ||
        m->m * m->n > HED_PTX_MMA_C_MAX)
        return false;
    if (m->k & HED_PTX_MMA_WMMA)
        return hed_ptx_is_fragment_shape(m->m, k) && hed_ptx_is_fragment_shape(k, m->n) &&
               hed_ptx_is_fragment_shape(m->m, m->n);
    return (m->m == 8 || m->m == 16) && m->n == 8 && k > 0 &&
           k % (4 * numbers_in_word(m->a)) == 0 && k % (4 * numbers_in_word(m->b)) == 0 &&
           (!(m->k & HED_PTX_MMA_SPARSE) || hed_ptx_mma_chunks(m).count);
}

const char *
hed_ptx_mma_describe(const struct hed_ptx_form *f, struct hed_ptx_mma *m)
{
    const uint64_t others = HED_PTX_FLAG(KIND_MXF8F6F4) | HED_PTX_FLAG(KIND_MXF4) |
                            HED_PTX_FLAG(KIND_MXF4NVF4) | HED_PTX_FLAG(BLOCK_SCALE);
    const bool sparse = (f->flags & (HED_PTX_FLAG(SP) | HED_PTX_FLAG(SP_ORDERED))) != 0;
    const bool is_wmma = f->op == HED_PTX_OP_WMMA_MMA;
    const bool is_short = is_wmma && f->ntypes < 4; /* names only d and c: the factors are halves */

    *m = (struct hed_ptx_mma){
        .m = (uint8_t)f->m,
        .n = (uint8_t)f->n,
        .k = f->k,
        .d = f->types[0],
        .a = is_short ? HED_PTX_TYPE_F16 : f->types[1],
        .b = is_short ? HED_PTX_TYPE_F16 : f->types[2],
        .c = f->types[is_short ? f->ntypes - 1 : 3],
    };
    m->k |= is_wmma ? HED_PTX_MMA_WMMA : 0;
    m->k |= f->flags & HED_PTX_FLAG(SATFINITE) ? HED_PTX_MMA_SATURATE : 0;
    m->k |= f->oper == HED_PTX_OPER_AND ? HED_PTX_MMA_AND : 0;
    m->k |= sparse ? HED_PTX_MMA_SPARSE : 0;
    if (f->flags & others || (sparse && is_wmma))
        return "scaled matrices are not supported";
    if (!hed_ptx_is_matrix_type(m->d) || !hed_ptx_is_matrix_type(m->a) ||
        !hed_ptx_is_matrix_type(m->b) || !hed_ptx_is_matrix_type(m->c))
        return "matrices of this type are not supported";
    if (f->op == HED_PTX_OP_MMA && f->m == 8 && m->a == HED_PTX_TYPE_F16)
        return "m8n8k4 of halves is not supported";
    if (f->m > 32 || f->n > 32 || f->k > 256 || !hed_ptx_is_product_shape(m))
        return "this shape is not supported";
    return NULL;
}

uint64_t
hed_ptx_mma_pack(const struct hed_ptx_mma *m)
{
    uint64_t arg = 0;

    memcpy(&arg, m, sizeof(*m));
    return arg;
}

uint64_t
hed_ptx_wmma_pack(const struct hed_ptx_wmma *w)
{
    uint64_t arg = 0;

    memcpy(&arg, w, sizeof(*w));
    return arg;
}
