/* The baseline tier: runs a kernel at once, without a compiler.
 *
 * A kernel is decoded into steps, and each step does one operation for all 32 lanes of a warp. The
 * results are the same bits as those of compiled code. It is independent of kernel/ptx/lower: the
 * code generators and this room test each other.
 *
 * A program is made from a module, which must outlive it. It is constant once it is made, so any
 * number of warps can run it at the same time.
 */
#pragma once

#include "kernel/ptx/run/abi.h"

struct hed_interp;
struct hed_ptx_func;
struct hed_ptx_module;
struct hed_why;

/* HED_ENOTSUP, with the instruction, function and line in `why`, if an instruction of the kernel or
 * of a function that is called by name cannot be run; HED_ENOMEM, HED_ELIMIT. Where only a pointer
 * leads to such an instruction, running it is a failure: host->refuse. */
int hed_interp_create(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                      struct hed_interp **out, struct hed_why *why);

/* The program whose first function has an address, for calls of addresses that no function of a
 * program has; NULL if there is none. Called in a warp, by any number of them at the same time.
 * It must live as long as the one that calls it, with the same variables, and its shared variables
 * at the same places. */
typedef const struct hed_interp *(*hed_interp_find_fn)(void *arg, uint64_t address);
/* Before hed_interp_info: what such functions do is not known, so they may wait. */
void hed_interp_set_finder(struct hed_interp *p, hed_interp_find_fn find, void *arg);

/* The program must not be running. NULL is fine. */
void hed_interp_free(struct hed_interp *p);

/* What the runner has to know; warps have 32 lanes. */
const struct hed_ptx_info *hed_interp_info(const struct hed_interp *p);

/* Runs a warp of the program in s->grid->program to its end. The registers and the local
 * variables of its lanes are kept in s->memory. */
void hed_interp_entry(struct hed_ptx_warp *s);
