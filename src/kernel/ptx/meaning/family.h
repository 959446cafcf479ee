/* The meanings of the families, for meaning.c, which says what belongs to which opcode. Each
 * function sets the member of struct hed_ptx_meaning that is its own, or returns
 * hed_meaning_refuse().
 */
#pragma once

#include "kernel/ptx/meaning/meaning.h"

typedef int hed_meaning_fn(const struct hed_ptx_inst *i, struct hed_ptx_meaning *m,
                           struct hed_why *why);

#define HED_MEANING(name)                                                           \
    int hed_meaning_##name(const struct hed_ptx_inst *i, struct hed_ptx_meaning *m, \
                           struct hed_why *why)

/* Sets the reason. Always HED_ENOTSUP. */
int hed_meaning_refuse(struct hed_why *why, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* texture.c */
HED_MEANING(sample);
HED_MEANING(surface);
HED_MEANING(texture_query);

/* matrix.c */
HED_MEANING(mma);
HED_MEANING(matrix_move);
HED_MEANING(movmatrix);
HED_MEANING(wmma_move);

/* memory.c */
HED_MEANING(atomic);
HED_MEANING(copy);
HED_MEANING(bulk_copy);
HED_MEANING(arrival);
HED_MEANING(alloca);

/* lanes.c */
HED_MEANING(shfl);
HED_MEANING(vote);
HED_MEANING(redux);
HED_MEANING(barrier_red);

/* value.c */
HED_MEANING(cvt);
HED_MEANING(cvt_pack);
HED_MEANING(compare);
HED_MEANING(lop3);
HED_MEANING(mov);

/* call.c */
HED_MEANING(call);
/* Whether a function may pass what it passes to another one of the program. */
int hed_meaning_check_passed(const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
                             struct hed_why *why);
