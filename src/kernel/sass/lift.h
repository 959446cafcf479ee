/* Lifting: machine code of a kernel as PTX, which the compiler and the baseline tier run, and which
 * a driver for another GPU compiles. docs/internals/lift.md is the guide.
 *
 *     cubin --hed_sass_open--> program: variables, kernels
 *     program, kernel --hed_sass_lift--> PTX of one kernel
 *
 * A program is constant after open; several threads may lift kernels of it at once. Everything in a
 * cubin is untrusted. The PTX goes through the parser like any other text, so nothing that is
 * written here need be believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/fatbin/bytes.h"
#include "kernel/fatbin/cubin.h"

struct hed_arena;
struct hed_buf;
struct hed_why;

/* A piece of the module's memory: a section of variables or constants, or one managed variable. In
 * the text of every kernel they are declared in this order, under these names. */
struct hed_sass_var {
    const char *name;
    uint64_t size; /* bytes */
    uint32_t align;
    bool constant;         /* constant bank 2 of a kernel, bank 3 or bank 4 */
    bool of_compiler;      /* bank 2 or 4: no variables of the program */
    bool managed;          /* managed memory */
    struct hed_bytes init; /* the first bytes; the rest is zero */
};

/* A variable as the program knows it: a part of one of the pieces. */
struct hed_sass_symbol {
    struct hed_bytes name;
    uint32_t var;
    uint64_t at, size;
    bool visible;  /* can be found by name */
    bool shared;   /* another one has some of its bytes, too */
    bool repeated; /* another one has its name */
};

/* Eight bytes of a piece that hold the address of a byte in a piece, or one of code, which is the
 * number `addend`. */
#define HED_SASS_NUMBER UINT32_MAX
struct hed_sass_pointer {
    uint32_t var, to; /* to: NUMBER if it is a number */
    uint64_t at;
    int64_t addend;
};

struct hed_sass_program {
    struct hed_cubin cubin; /* with the kernels */
    struct hed_sass_var *vars;
    uint32_t var_count;
    struct hed_sass_symbol *symbols; /* by piece and place */
    uint32_t symbol_count;
    struct hed_sass_pointer *pointers; /* by piece and place */
    uint32_t pointer_count;
    struct lift_module *inside;
};

/* The architecture that the text is written for if that of the code is older. Later ones compile
 * it, too. */
#define HED_SASS_PTX_ARCH 80u

/* The architectures whose machine code is lifted, and how users are told. */
#define HED_SASS_FIRST_ARCH 75
#define HED_SASS_LAST_ARCH 90
/* From here on libraries multiply matrices with instructions that are refused. */
#define HED_SASS_PARTLY_ARCH 90
#define HED_SASS_SM_NAME(number) "sm_" #number
#define HED_SASS_SM(number) HED_SASS_SM_NAME(number)
#define HED_SASS_ARCHS HED_SASS_SM(HED_SASS_FIRST_ARCH) " to " HED_SASS_SM(HED_SASS_LAST_ARCH)

/* Is machine code of this architecture known here? */
bool hed_sass_lifts(struct hed_arch arch);

/* Reads a cubin. The result is in the arena, whose ceiling limits it, and points into the bytes.
 * HED_EFORMAT, HED_ETRUNC, HED_ELIMIT; HED_ENOTSUP for an architecture that we do not know. */
int hed_sass_open(struct hed_bytes cubin, struct hed_arena *arena, struct hed_sass_program **out,
                  struct hed_why *why);

/* What the text is for. */
enum hed_sass_for {
    HED_SASS_FOR_CPU, /* variables are pieces without values: whoever loads the text fills them */
    HED_SASS_FOR_GPU, /* complete: variables have their names and values */
};

/* Appends the PTX of one kernel, an index into program->cubin.kernels. HED_ENOTSUP with the
 * instruction in `why` if it uses something that cannot be lifted; HED_EFORMAT, HED_ELIMIT,
 * HED_ENOMEM. */
int hed_sass_lift(const struct hed_sass_program *program, uint32_t kernel, enum hed_sass_for use,
                  struct hed_buf *ptx, struct hed_why *why);

/* Appends the PTX of a function that a kernel calls by its address, if there are too many of them
 * to have them all in the kernel's text: a .func with one parameter, for the CPU. It is what a call
 * of an address that is no function of the kernel's text means. HED_ENOTFOUND if no function has
 * this address; else as above. */
int hed_sass_lift_function(const struct hed_sass_program *program, uint32_t kernel,
                           uint64_t address, struct hed_buf *ptx, struct hed_why *why);

/* The kernel that has this address in code lifted for the CPU, where kernels take the addresses of
 * others to launch them; UINT32_MAX if none has. */
uint32_t hed_sass_kernel_at(const struct hed_sass_program *program, uint64_t address);

/* Called for each kernel that cannot be lifted. */
typedef void (*hed_sass_refused_fn)(void *arg, uint32_t kernel, const char *why);

/* Appends one module with all kernels that can be lifted, for a GPU. HED_ENOTSUP if there are
 * kernels and none can be lifted; HED_ELIMIT, HED_ENOMEM. */
int hed_sass_lift_module(const struct hed_sass_program *program, hed_sass_refused_fn refused,
                         void *arg, struct hed_buf *ptx, struct hed_why *why);
