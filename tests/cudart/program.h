/* What programs of this folder that are linked with a runtime share: its prototypes, two kernels
 * and a variable, and how they say what went wrong. EDITION is that of the runtime. */
#pragma once

#include "image.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#if EDITION >= 13
#include "gen/cudart_api_13.h"
#elif EDITION >= 12
#include "gen/cudart_api_12.h"
#else
#include "gen/cudart_api_11.0.h"
#endif

#define COUNT 16 /* of numbers that a kernel works on, each with a thread of its own */
#define BYTES (COUNT * sizeof(unsigned))

#define OK(call) expect_error((call), cudaSuccess, #call, __LINE__)
#define FAILS(error, call) expect_error((call), (error), #call, __LINE__)
#define EXPECT(what) expect((what), #what, __LINE__)

/* A kernel of a pointer p and a number n: p[thread] = p[thread] OPERATION n. */
#define KERNEL(name, operation)                                \
    ".visible .entry " name "(.param .u64 p, .param .u32 n)\n" \
    "{\n"                                                      \
    ".reg .b64 %p, %o; .reg .b32 %n, %i, %a;\n"                \
    "ld.param.u64 %p, [p];\n"                                  \
    "ld.param.u32 %n, [n];\n"                                  \
    "mov.u32 %i, %tid.x;\n"                                    \
    "mul.wide.u32 %o, %i, 4;\n"                                \
    "add.s64 %p, %p, %o;\n"                                    \
    "ld.global.u32 %a, [%p];\n" operation " %a, %a, %n;\n"     \
    "st.global.u32 [%p], %a;\n"                                \
    "ret;\n"                                                   \
    "}\n"

static const char program_ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 8 .b8 kept[64];\n" KERNEL("add", "add.s32")
        KERNEL("multiply", "mul.lo.s32");

/* The addresses by which the program knows them. */
static char add, multiply;
static unsigned kept[COUNT];

static const dim3 one_block = {1, 1, 1};
static const dim3 all_threads = {COUNT, 1, 1};
static _Atomic int failures;

static inline bool
expect(bool holds, const char *what, int line)
{
    if (!holds) {
        atomic_fetch_add(&failures, 1);
        fprintf(stderr, "line %d: not so: %s\n", line, what);
    }
    return holds;
}

static inline bool
expect_error(cudaError_t r, cudaError_t wanted, const char *what, int line)
{
    if (r != wanted) {
        atomic_fetch_add(&failures, 1);
        fprintf(stderr, "line %d: %s = %d, not %d\n", line, what, (int)r, (int)wanted);
    }
    return r == wanted;
}

static inline void
register_program(void)
{
    void **handle = __cudaRegisterFatBinary(image_wrap(program_ptx));

    image_kernel(handle, &add, "add");
    image_kernel(handle, &multiply, "multiply");
    image_variable(handle, kept, "kept", sizeof kept);
    __cudaRegisterFatBinaryEnd(handle);
}

/* Numbers in device memory. */
static inline unsigned *
make_numbers(unsigned value)
{
    unsigned n[COUNT];
    void *p = NULL;

    for (int i = 0; i < COUNT; i++)
        n[i] = value;
    OK(cudaMalloc(&p, BYTES));
    OK(cudaMemcpy(p, n, BYTES, cudaMemcpyHostToDevice));
    return p;
}

static inline bool
all_are(const unsigned *n, unsigned value)
{
    for (int i = 0; i < COUNT; i++)
        if (n[i] != value) {
            fprintf(stderr, "number %d is %u, not %u\n", i, n[i], value);
            return false;
        }
    return true;
}

static inline bool
numbers_are(const unsigned *device, unsigned value)
{
    unsigned n[COUNT];

    return OK(cudaMemcpy(n, device, BYTES, cudaMemcpyDeviceToHost)) && all_are(n, value);
}

/* Cases of a program: their names are its arguments. */
struct program_case {
    const char *name;
    void (*run)(void);
};

static inline int
run_cases(const struct program_case *cases, int argc, char **argv)
{
    register_program();
    for (int i = 1; i < argc; i++) {
        const struct program_case *c = cases;

        while (c->name && strcmp(c->name, argv[i]) != 0)
            c++;
        if (!c->name) {
            fprintf(stderr, "there is no case %s\n", argv[i]);
            return 2;
        }
        c->run();
        if (failures) {
            fprintf(stderr, "failed: %s\n", c->name);
            return 1;
        }
    }
    return 0;
}
