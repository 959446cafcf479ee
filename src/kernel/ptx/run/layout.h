/* The layout of a module: the order of its variables and functions, the functions that a kernel
 * needs, and the kernel's shared memory. The code that loads a module and the code that compiles it
 * must agree, so both ask here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/ptx.h"

/* A linked program has NVIDIA's device runtime in it, which is made for a GPU's system functions.
 * Its functions count as declared only from here on, so that ours are called. For whoever has
 * parsed a module that is to run: otherwise its kernels are compiled with NVIDIA's functions. */
void hed_ptx_leave_out_device_runtime(struct hed_ptx_module *m);

/* Does this variable have a place in hed_ptx_grid.vars? Global and const ones do. */
bool hed_ptx_var_counts(const struct hed_ptx_var *v);

/* The number of variables in the module, including those that its functions declare. */
uint32_t hed_ptx_var_count(const struct hed_ptx_module *m);

/* Calls fn for each of them in the order of their indices, from 0. */
typedef void (*hed_ptx_var_fn)(void *arg, uint32_t index, const struct hed_ptx_var *v);
void hed_ptx_each_var(const struct hed_ptx_module *m, hed_ptx_var_fn fn, void *arg);

/* The index of a variable; UINT32_MAX if it has none. Walks the module. */
uint32_t hed_ptx_var_index(const struct hed_ptx_module *m, const struct hed_ptx_var *v);

/* The position of a function in module->funcs; UINT32_MAX if it belongs to another module. */
uint32_t hed_ptx_func_index(const struct hed_ptx_module *m, const struct hed_ptx_func *f);

/* The address that a function pointer holds: HED_PTX_FUNC_STRIDE * (1 + index). */
uint64_t hed_ptx_func_address(const struct hed_ptx_module *m, const struct hed_ptx_func *f);

/* Writes the addresses in the initial value of a variable, which lies at `at`. addresses has those
 * of the `count` variables of the module, by index. */
void hed_ptx_relocate_var(const struct hed_ptx_module *m, const struct hed_ptx_var *v, void *at,
                          const uint64_t *addresses, uint32_t count);

struct hed_ptx_placed {
    const struct hed_ptx_var *var;
    uint32_t offset;
};

/* A kernel and all functions that it can reach. */
struct hed_ptx_unit {
    const struct hed_ptx_func **funcs; /* with a body; the kernel first; aliases resolved */
    uint32_t nfuncs;
    uint32_t ncalled; /* the first so many are called by name; pointers lead to the others */
    bool *reached;    /* by index of the function in the module */
    struct hed_ptx_placed *shared; /* variables in shared memory */
    uint32_t nshared;
    uint32_t shared_size;  /* bytes of static shared memory */
    uint32_t shared_align; /* dynamic shared memory begins at the next multiple of this */
    bool recurses;         /* there is a cycle of calls, or a call through a pointer */
};

/* HED_ENOMEM, or HED_ELIMIT for more than 2 GiB of shared memory. Call fini only after success. */
int hed_ptx_unit_init(struct hed_ptx_unit *u, const struct hed_ptx_module *m,
                      const struct hed_ptx_func *kernel);
void hed_ptx_unit_fini(struct hed_ptx_unit *u);

/* The function that a name stands for: the end of its chain of aliases. */
const struct hed_ptx_func *hed_ptx_func_real(const struct hed_ptx_func *f);
