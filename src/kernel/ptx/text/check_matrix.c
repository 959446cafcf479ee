/* The number of registers in the fragments of a matrix: mma, wmma, ldmatrix, stmatrix.
 *
 * A fragment is a thread's share of the matrix, which is divided among the 32 threads of the warp.
 * (The old m8n8k4 on halves divides it among 8 threads; four such groups work independently.) The
 * numbers are packed into 32-bit registers; a number of 32 bits or more has a register of its own.
 */
#include "kernel/ptx/text/parser.h"

static unsigned
registers(unsigned elements, unsigned type, unsigned threads)
{
    const unsigned bits = hed_ptx_types[type].bits;
    const unsigned each = elements / threads;

    return bits >= 32 ? each : (each * bits + 31) / 32;
}

static bool
has(const struct hed_ptx_operand *o, unsigned count)
{
    if (o->kind == HED_PTX_OPERAND_REG)
        return count == 1;
    return o->kind == HED_PTX_OPERAND_VEC && o->count == count;
}

static bool
check_mma(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    const bool narrow = (f->flags & (HED_PTX_FLAG(KIND_F8F6F4) | HED_PTX_FLAG(KIND_MXF8F6F4))) != 0;
    const bool sparse = (f->flags & (HED_PTX_FLAG(SP) | HED_PTX_FLAG(SP_ORDERED))) != 0;
    const bool old = f->m == 8 && f->n == 8 && f->k == 4 && f->types[1] == HED_PTX_TYPE_F16;
    const unsigned threads = old ? 8 : 32;
    const unsigned k = sparse ? f->k / 2u : f->k;
    const unsigned a = narrow ? HED_PTX_TYPE_E4M3 : f->types[1];
    const unsigned b = narrow ? HED_PTX_TYPE_E4M3 : f->types[2];

    return f->ntypes >= 4 && has(&i->operands[0], registers(f->m * f->n, f->types[0], threads)) &&
           has(&i->operands[1], registers(f->m * k, a, threads)) &&
           has(&i->operands[2], registers(f->k * f->n, b, threads)) &&
           has(&i->operands[3], registers(f->m * f->n, f->types[3], threads));
}

/* wmma keeps two copies of a and b if they are halves, and always 8 registers of them. */
static unsigned
wmma_inputs(const struct hed_ptx_form *f, unsigned rows, unsigned type)
{
    if (type == HED_PTX_TYPE_F16)
        return 8;
    return registers(rows * f->k, type, 32);
}

static unsigned
wmma_input_type(const struct hed_ptx_form *f, unsigned nth)
{
    /* wmma.mma...m16n16k16.f32.f32 has halves for inputs and names only d and c. */
    return f->ntypes >= 4 ? f->types[nth] : HED_PTX_TYPE_F16;
}

static bool
check_wmma(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    const unsigned last = f->types[f->ntypes - 1];

    if (f->op == HED_PTX_OP_WMMA_MMA)
        return has(&i->operands[0], registers(f->m * f->n, f->types[0], 32)) &&
               has(&i->operands[1], wmma_inputs(f, f->m, wmma_input_type(f, 1))) &&
               has(&i->operands[2], wmma_inputs(f, f->n, wmma_input_type(f, 2))) &&
               has(&i->operands[3], registers(f->m * f->n, last, 32));

    const struct hed_ptx_operand *o = &i->operands[f->op == HED_PTX_OP_WMMA_LOAD ? 0 : 1];

    if (f->matrix == HED_PTX_MATRIX_A)
        return has(o, wmma_inputs(f, f->m, f->types[0]));
    if (f->matrix == HED_PTX_MATRIX_B)
        return has(o, wmma_inputs(f, f->n, f->types[0]));
    return has(o, registers(f->m * f->n, f->types[0], 32));
}

bool
hed_ptx_check_matrix(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;

    switch (f->op) {
    case HED_PTX_OP_MMA:
        return check_mma(i);
    case HED_PTX_OP_LDMATRIX:
        return has(&i->operands[0], f->count * (f->m == 16 && f->n == 16 ? 2u : 1u));
    case HED_PTX_OP_STMATRIX:
        return has(&i->operands[1], f->count);
    default:
        return check_wmma(i);
    }
}
