/* heddle cpu: what its files share.
 *
 *   explain.c  the command: options, which kernels, one after the other
 *   source.c   where kernels come from: a file, or a running process
 *   made.c     compiles a kernel to see what becomes of it
 *   page.c     a kernel as a page of text, or as a line of a table
 *   json.c     a kernel as JSON
 *   warm.c     another command (warm.h): fills the cache
 *   cache.c    another command (cache.h): list, prune, export and import the cache
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/ptx.h"

struct hed_cpu_source;

int hed_cli_cpu(int argc, char **argv);
int hed_cli_cpu_explain(int argc, char **argv);
int hed_cli_cpu_warm(int argc, char **argv);
int hed_cli_cpu_cache(int argc, char **argv);

/* A pass of the compiler: struct hed_ptx_pass_report. */
struct hed_cpu_pass {
    const char *name, *does;
    uint32_t made;
    unsigned depth;
    uint64_t ns;
    int err;
    char did[64];
};

#define HED_CPU_PASSES_MAX 48 /* more than the lists of lower/passes.c have, for both shapes */

/* What became of a kernel. */
struct hed_cpu_made {
    bool is_known;
    struct hed_ptx_info info; /* made, flags, frame */
    uint32_t us;              /* that compiling took */
    bool is_cached;           /* the code came from the cache */
    size_t bytes;             /* of the object file; 0 if unknown */
    struct hed_why why;       /* why it was not made, or why not in a better shape; may be "" */
    struct hed_cpu_pass passes[HED_CPU_PASSES_MAX]; /* in the order in which they ended */
    unsigned npasses;
};

/* A kernel to explain. */
struct hed_cpu_subject {
    const char *name;   /* as in the text */
    const char *source; /* the file, or "process 123" */
    uint64_t image;     /* its number in the file, or of the process's module */
    const struct hed_ptx_module *module;
    const struct hed_ptx_func *func; /* NULL if the text is not known: only `shown` is set then */
    const char *why_no_text;
    const struct hed_board_kernel *shown; /* of a process; or NULL */
    bool is_lifted;                       /* the text was made from machine code */
    enum hed_rows rows;
    struct hed_cpu_made made;
    struct hed_explain explained;
};

struct hed_cpu_asked {
    const char *target; /* a file or a process */
    const char *kernel; /* NULL: all */
    uint32_t block[3];  /* --block; x is 0: not given */
    bool json, lines;
    bool passes;   /* --passes: of the compiler */
    bool is_quiet; /* kernels are only counted */
    bool *is_said; /* set if a file cannot be read, which was said nevertheless */
    bool compiles, compiles_not;
};

/* ---- source.c -------------------------------------------------------------------------------- */

/* Calls fn for each kernel; `explained` and `made` are not set unless a process says so. Returns an
 * exit code; the reason of a failure was printed. */
typedef bool (*hed_cpu_subject_fn)(void *arg, struct hed_cpu_subject *s);
int hed_cpu_each_subject(const struct hed_cpu_asked *asked, hed_cpu_subject_fn fn, void *arg);

/* ---- made.c ---------------------------------------------------------------------------------- */

/* Compiles the kernel as the CPU GPU does. */
void hed_cpu_make(struct hed_cpu_subject *s);

/* ---- page.c, json.c -------------------------------------------------------------------------- */

void hed_cpu_print_page(const struct hed_cpu_subject *s, const struct hed_cpu_asked *asked);
void hed_cpu_print_head(void);
void hed_cpu_print_row(const struct hed_cpu_subject *s);
void hed_cpu_print_json(const struct hed_cpu_subject *s, const struct hed_cpu_asked *asked);

/* The instruction as the text has it: without the numbers of values. */
const char *hed_cpu_inst_text(const struct hed_ptx_inst *i, char *out, size_t size);
const char *hed_cpu_tier_text(const struct hed_board_kernel *k);
const char *hed_cpu_shape_word(uint32_t made); /* "masks", "machine", "unknown" */
