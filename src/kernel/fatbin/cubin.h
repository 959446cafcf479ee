/* The contents of a cubin, the ELF file with machine code for one architecture: its kernels, the
 * layout of their parameters, and the resources they need. docs/internals/fatbin.md describes the
 * records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fatbin/arch.h"
#include "kernel/fatbin/bytes.h"

struct hed_arena;
struct hed_why;

struct hed_cubin_param {
    uint32_t offset; /* bytes, from the first parameter */
    uint32_t size;   /* bytes */
};

/* Numbers are bytes unless the comment says otherwise; 0 if the cubin does not say. */
struct hed_cubin_kernel {
    struct hed_bytes name;
    struct hed_cubin_param *params; /* by position */
    uint32_t param_count;
    uint32_t param_bytes;         /* all parameters together */
    uint32_t param_bank;          /* where they begin in constant bank 0 */
    uint32_t registers;           /* per thread */
    uint32_t max_registers;       /* the limit it was compiled with */
    uint64_t shared;              /* static shared memory per block, as the program declared it */
    uint64_t reserved;            /* shared memory that the system takes in addition */
    uint64_t local;               /* .nv.local: local memory per thread, in old ABIs */
    uint32_t stack;               /* the stack of a thread, in local memory */
    uint64_t constant;            /* constant bank 0, including parameters */
    uint64_t code;                /* machine code */
    uint32_t max_threads[3];      /* from launch bounds */
    uint32_t required_threads[3]; /* the block must have exactly this size */
    uint32_t cluster[3];          /* blocks per cluster */
    uint32_t max_cluster;         /* blocks */
    uint32_t barriers;
};

struct hed_cubin {
    struct hed_arch arch; /* with the suffix 'a' if it has one; 'f' is not recorded */
    bool linked;          /* false if it is relocatable, to be linked with others */
    uint32_t api;         /* CUDA version it was made with, 130 for 13.0; 0 if it does not say */
    struct hed_cubin_kernel *kernels; /* in the order of the symbol table */
    uint32_t kernel_count;
};

bool hed_cubin_begins(struct hed_bytes b);

/* Reads only the architecture, from the header and one section. Fails as hed_cubin_read does. */
int hed_cubin_arch(struct hed_bytes b, struct hed_arch *out, struct hed_why *why);

/* Reads all of it. The result is allocated in the arena, whose ceiling limits it; names point into
 * the bytes. HED_EFORMAT, HED_ETRUNC, HED_ELIMIT, HED_ENOMEM, HED_ENOTSUP (not a cubin that we
 * know). */
int hed_cubin_read(struct hed_bytes b, struct hed_arena *arena, struct hed_cubin *out,
                   struct hed_why *why);

/* ---- cubin_info.c: the records in .nv.info sections ------------------------------------------ */

/* Called with each record's attribute and value; a negative result ends the walk and is
 * returned. */
typedef int (*hed_cubin_info_fn)(void *arg, uint8_t attribute, struct hed_bytes value);

/* 0, the result of fn, or HED_EFORMAT for bad records. */
int hed_cubin_info_each(struct hed_bytes b, hed_cubin_info_fn fn, void *arg);

/* Reads a kernel's own records into the kernel. If params is NULL, only counts the parameters. */
int hed_cubin_info_kernel(struct hed_bytes b, struct hed_cubin_kernel *k, uint32_t *api);

/* A record of the whole module; true if it is about the function of one symbol. */
bool hed_cubin_info_global(uint8_t attribute, struct hed_bytes value, uint32_t *symbol,
                           struct hed_cubin_kernel *into);

/* Does .nv.compat say that the code is tied to exactly one architecture? */
bool hed_cubin_info_exact(struct hed_bytes compat);
