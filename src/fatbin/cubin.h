/* What is in a cubin, the ELF file of machine code for one architecture: its kernels, how their
 * parameters lie, and what they need. docs/internals/fatbin.md has the records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fatbin/arch.h"
#include "fatbin/bytes.h"

struct hed_arena;
struct hed_why;

struct hed_cubin_param {
    uint32_t offset; /* bytes, from the first parameter */
    uint32_t size;   /* bytes */
};

/* Numbers are bytes unless they say otherwise; 0 where the cubin does not say. */
struct hed_cubin_kernel {
    struct hed_bytes name;
    struct hed_cubin_param *params; /* by position */
    uint32_t param_count;
    uint32_t param_bytes;         /* all parameters together */
    uint32_t param_bank;          /* where they begin in constant bank 0 */
    uint32_t registers;           /* a thread */
    uint32_t max_registers;       /* the limit it was compiled with */
    uint64_t shared;              /* static shared memory a block, as the program declared it */
    uint64_t reserved;            /* shared memory the system keeps for itself, on top of that */
    uint64_t local;               /* .nv.local: a thread's local memory of old ABIs */
    uint32_t stack;               /* a thread's stack, which is in local memory */
    uint64_t constant;            /* constant bank 0, parameters included */
    uint64_t code;                /* machine code */
    uint32_t max_threads[3];      /* from launch bounds */
    uint32_t required_threads[3]; /* the block must be exactly that */
    uint32_t cluster[3];          /* blocks a cluster */
    uint32_t max_cluster;         /* blocks */
    uint32_t barriers;
};

struct hed_cubin {
    struct hed_arch arch; /* the suffix 'a' if it says so; a cubin does not tell 'f' */
    bool linked;          /* false: relocatable, to be linked with others */
    uint32_t api;         /* CUDA version it was made with, 130 for 13.0; 0 if it does not say */
    struct hed_cubin_kernel *kernels; /* in the order of the symbol table */
    uint32_t kernel_count;
};

bool hed_cubin_begins(struct hed_bytes b);

/* The architecture alone, of the header and one section; cheap. As hed_cubin_read fails. */
int hed_cubin_arch(struct hed_bytes b, struct hed_arch *out, struct hed_why *why);

/* Reads all of it. What it points to is in the arena, whose ceiling bounds it, names in the bytes.
 * HED_EFORMAT, HED_ETRUNC, HED_ELIMIT, HED_ENOMEM, HED_ENOTSUP (no cubin of ours). */
int hed_cubin_read(struct hed_bytes b, struct hed_arena *arena, struct hed_cubin *out,
                   struct hed_why *why);

/* ---- cubin_info.c: the records in .nv.info sections ------------------------------------------ */

/* Called with each record's attribute and value; a negative result ends the walk with it. */
typedef int (*hed_cubin_info_fn)(void *arg, uint8_t attribute, struct hed_bytes value);

/* 0, what fn returned, or HED_EFORMAT for records that do not add up. */
int hed_cubin_info_each(struct hed_bytes b, hed_cubin_info_fn fn, void *arg);

/* A kernel's own records into the kernel; counts parameters in param_count if params is NULL, fills
 * them in if it is not. */
int hed_cubin_info_kernel(struct hed_bytes b, struct hed_cubin_kernel *k, uint32_t *api);

/* A record of the whole module: true if it says something about one symbol's function. */
bool hed_cubin_info_global(uint8_t attribute, struct hed_bytes value, uint32_t *symbol,
                           struct hed_cubin_kernel *into);

/* The value of .nv.compat's mark for code that is tied to exactly one architecture. */
bool hed_cubin_info_exact(struct hed_bytes compat);
