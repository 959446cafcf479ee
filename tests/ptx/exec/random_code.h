/* Between random_kernel.c and random_code.c. */
#pragma once

#include "ptx/exec/random_kernel.h"

/* random_kernel.c */
uint64_t random_next(uint64_t *state);
unsigned random_pick(struct random_kernel *k, unsigned n);
__attribute__((format(printf, 2, 3))) void random_line(struct random_kernel *k, const char *form,
                                                       ...);

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
