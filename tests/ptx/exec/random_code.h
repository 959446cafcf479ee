/* Between random_kernel.c and random_code.c. */
#pragma once

#include "ptx/exec/random_kernel.h"

/* random_kernel.c */
uint64_t random_next(uint64_t *state);
unsigned random_pick(struct random_kernel *k, unsigned n);
__attribute__((format(printf, 2, 3))) void random_line(struct random_kernel *k, const char *form,
                                                       ...);

/* The lines from `first` on can be left out together. */
void random_piece_from(struct random_kernel *k, unsigned first);

/* random_code.c */
/* Sets all registers, so that none is read before it is written. */
void random_registers(struct random_kernel *k);
/* "@%p1 ", "@!%p2 " or mostly nothing. */
void random_guard(struct random_kernel *k, char guard[16]);
/* Names a predicate, which it may have made before. */
void random_condition(struct random_kernel *k, char name[24]);
/* One instruction that computes. */
void random_instruction(struct random_kernel *k);

/* random_forms.c */
/* One instruction of any family that computes. */
void random_form(struct random_kernel *k);
/* One access to memory of the thread's own, or a call. */
void random_access(struct random_kernel *k);
/* One operation among the lanes of a warp, which all come here together. */
void random_meeting(struct random_kernel *k);

/* random_share.c */
/* What values are made of. */
enum random_family {
    RANDOM_ROW,       /* steps from lane to lane */
    RANDOM_STEPS,     /* by more than 1 */
    RANDOM_EVEN,      /* the same in all lanes */
    RANDOM_BITS,      /* varies, but not in all bits */
    RANDOM_DISTANCES, /* differs by what is known */
    RANDOM_FAMILIES,
};
/* Declares and sets the registers of random_share.c and random_ways.c. */
void random_registers_shared(struct random_kernel *k);
/* One value. */
void random_value(struct random_kernel *k, const char *to, unsigned family);
/* Names a predicate, perhaps with a '!', that holds for no lane, for all, or, unless it must be
 * even, for some. */
const char *random_even_condition(struct random_kernel *k, bool is_even);
/* One instruction on what lanes share. */
void random_shared(struct random_kernel *k);
/* %w0: a number of any size whose distances between lanes may be known. */
void random_distance(struct random_kernel *k);
/* %w0: the address in shared memory of one of the thread's two cells of 16 bytes. */
void random_cell(struct random_kernel *k, unsigned which);

/* random_ways.c */
/* Ways that meet, and perhaps a loop. */
void random_ways(struct random_kernel *k);
/* Many sums of products. Once in a kernel: it has many lines. */
void random_sums(struct random_kernel *k);
