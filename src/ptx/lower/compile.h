/* A kernel out of a PTX module into an object file. The only part that needs LLVM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_buf;
struct hed_ptx_func;
struct hed_ptx_module;
struct hed_why;

enum hed_ptx_shape {
    HED_PTX_SCALAR = 1, /* a strand is a thread: plain, the reference */
    HED_PTX_WARP = 32,  /* a strand is a warp; kernels it cannot do are done as scalar */
};

struct hed_ptx_options {
    enum hed_ptx_shape shape;
    int level;            /* of optimisation: 0 to 3 */
    bool check_alignment; /* misaligned accesses trap, as on a GPU */
    const char *cpu;      /* LLVM's name; "" or NULL: generic */
    const char *features; /* LLVM's: "+fp16,+lse"; NULL: none */
    const char *dump;     /* a folder for LLVM's text of what is compiled, to look at; or NULL */
};

/* Appends the ELF object file (ptx/run/abi.h has its contents). HED_ENOTSUP, with the instruction,
 * function and line, for what cannot be compiled. What the warp shape cannot do is done as scalar:
 * then `why` says why although the result is 0. May be called from several threads at once. */
int hed_ptx_compile(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                    const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why);

/* What changes the code: LLVM's version and ours. For cache keys. */
const char *hed_ptx_compiler(void);

/* The plug-in heddle/compiler-llvm.so exports this, and nothing else. */
struct hed_ptx_compiler {
    uint32_t abi; /* HED_PTX_ABI */
    int (*compile)(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                   const struct hed_ptx_options *o, struct hed_buf *object, struct hed_why *why);
    const char *version;
};
extern const struct hed_ptx_compiler hed_ptx_compiler_llvm;
