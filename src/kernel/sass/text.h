/* The code of a cubin: its sections of machine code with the names that belong to addresses, and
 * their listing in the manner of nvdisasm.
 */
#pragma once

#include <stdint.h>

#include "kernel/fatbin/bytes.h"

struct hed_arena;
struct hed_buf;
struct hed_why;

/* A function or a place that a relocation changes. */
struct hed_sass_name {
    uint32_t section;
    uint64_t at; /* offset in the section */
    struct hed_bytes name;
    uint32_t type;  /* of a relocation: R_CUDA_... */
    int64_t addend; /* of a relocation that has one; else 0 */
};

/* One section .text.<kernel>. Everything but the arrays points into the cubin. */
struct hed_sass_code {
    unsigned arch;         /* 80 for sm_80 */
    struct hed_bytes name; /* without ".text." */
    struct hed_bytes bytes;
    struct hed_sass_name *functions; /* by address */
    uint32_t function_count;
    struct hed_sass_name *relocations; /* by address */
    uint32_t relocation_count;
};

/* Finds the sections with code, in the order of the file. The arrays are in the arena, whose
 * ceiling limits them. HED_EFORMAT, HED_ETRUNC, HED_ELIMIT, HED_ENOTSUP (not a cubin). */
int hed_sass_sections(struct hed_bytes cubin, struct hed_arena *arena, struct hed_sass_code **out,
                      uint32_t *count, struct hed_why *why);

typedef void (*hed_sass_line_fn)(void *arg, const char *line);

/* Calls fn with each line of the listing. Labels are numbered from .L_x_0 in every section. Returns
 * the number of unknown instructions, which are listed as data; HED_ELIMIT (the arena, or a line
 * that is too long) or HED_ENOMEM. */
int64_t hed_sass_list(const struct hed_sass_code *code, struct hed_arena *arena,
                      hed_sass_line_fn fn, void *arg);
