/* Compiling a kernel of a PTX module to an object file. The only part that needs LLVM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/pass/rows.h"

struct hed_buf;
struct hed_ptx_func;
struct hed_ptx_info;
struct hed_ptx_module;
struct hed_why;

/* A pass of the compiler that has run (lower/passes.c), with those inside of it before it. */
struct hed_ptx_pass_report {
    uint32_t made; /* enum hed_ptx_made: the shape that is tried */
    const char *name, *does;
    const char *did; /* what it has found or made; may be "" */
    unsigned depth;  /* passes that it is a part of */
    uint64_t ns;     /* with the passes inside of it */
    int err;         /* 0, or why this shape ends here */
};

struct hed_ptx_options {
    enum hed_rows rows;        /* how the launch lays threads out in warps */
    int level;                 /* of optimisation: 0 to 3 */
    bool check_alignment;      /* misaligned accesses trap, as on a GPU */
    bool confined;             /* the kernel stays in its address sandbox: abi.h */
    const char *cpu;           /* LLVM's name; "" or NULL: generic */
    const char *features;      /* LLVM's: "+fp16,+lse"; NULL: none */
    const char *dump;          /* a folder for LLVM's text of the code, for people; or NULL */
    struct hed_ptx_info *info; /* takes what the object says of itself; or NULL */
    /* Told of each pass, for people; or NULL. */
    void (*on_pass)(void *arg, const struct hed_ptx_pass_report *r);
    void *on_pass_arg;
};

/* Appends the ELF object file; kernel/ptx/run/abi.h describes its contents. Returns HED_ENOTSUP,
 * with the instruction, function and line in `why`, if the kernel cannot be compiled. If a faster
 * shape refused it, the result is 0 and `why` has the reason. May be called from several threads at
 * once. */
int hed_ptx_compile(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                    const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why);

/* The library heddle/compiler-llvm.so exports this, and hed_ptx_compiler_serve (serve.c). */
struct hed_ptx_compiler {
    uint32_t abi; /* HED_PTX_ABI */
    int (*compile)(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                   const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why);
    const char *version;
};
extern const struct hed_ptx_compiler hed_ptx_compiler_llvm;

/* Did LLVM give up in this process, and leave things in any state? */
bool hed_ptx_compiler_is_damaged(void);
