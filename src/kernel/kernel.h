/* libheddle-kernel: runs GPU code on this machine's processor. It needs no GPU, no driver and no
 * CUDA: PTX text, a fat binary or machine code goes in, and memory has the results.
 *
 *     struct heddle_image *image;
 *     struct heddle_why why;
 *
 *     if (heddle_image_open(text, size, &image, &why) != 0)
 *         printf("%s\n", why.text);
 *     int add = heddle_image_find(image, "add");
 *     struct heddle_grid grid = {
 *         .size = sizeof grid, .blocks = {n / 256, 1, 1}, .threads = {256, 1, 1}};
 *     void *args[] = {&a, &b, &sum};
 *
 *     if (heddle_image_run(image, add, &grid, args, &why) != 0)
 *         printf("%s\n", why.text);
 *     heddle_image_close(image);
 *
 * An address on the device is an address of this process, so any memory of the program can be an
 * argument. A kernel can also write wherever the program can: only run code that you trust.
 *
 * Kernels run in heddle's baseline tier, blocks on all cores. What they print goes to stdout. Not
 * offered: textures and surfaces, and kernels that launch kernels.
 *
 * Functions return 0 or more, or a negative enum heddle_error; then `why`, which may be NULL, has
 * the reason. Any thread may call them, and run the same image at the same time. The child of a
 * fork() must not use images of its parent. While a grid runs, the library handles SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL and SIGTRAP; what does not come from a kernel goes to the handler that was there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum heddle_error {
    HEDDLE_NO_MEMORY = -1,
    HEDDLE_INVALID = -2,   /* an argument of the call makes no sense */
    HEDDLE_BAD_IMAGE = -3, /* the image is damaged, or none of the known kinds */
    HEDDLE_NOT_FOUND = -4,
    HEDDLE_REFUSED = -5, /* the kernel has an instruction that cannot be run here */
    HEDDLE_FAILED = -6,  /* the grid failed: a trap, a bad address, an assertion */
    HEDDLE_TIME = -7,    /* the grid ran longer than its limit */
};

/* The reason of a failure, in English. */
struct heddle_why {
    char text[512];
    int cuda; /* the CUresult with which a CUDA driver would report it */
};

/* The version of the library, "0.3.0". */
const char *heddle_kernel_version(void);

/* ---- images ---------------------------------------------------------------------------------- */

struct heddle_image;

/* Opens PTX text, a fat binary or a cubin, and copies it. Of a fat binary, its PTX is taken if it
 * has any. Variables of the image get their memory and initial values. Kernels are not looked at
 * yet: heddle_image_check() does that. */
int heddle_image_open(const void *bytes, size_t size, struct heddle_image **out,
                      struct heddle_why *why);
/* None of its grids may run. NULL is fine. */
void heddle_image_close(struct heddle_image *image);

/* The variable's memory. */
int heddle_image_variable(const struct heddle_image *image, const char *name, void **at,
                          size_t *size);

/* ---- kernels --------------------------------------------------------------------------------- */

/* Set size to sizeof(struct heddle_kernel) before the call: a newer library fills only what fits,
 * and an older one leaves the rest alone. The name lives as long as the image. */
struct heddle_kernel {
    size_t size;
    const char *name;
    uint32_t params;      /* how many there are */
    uint32_t param_bytes; /* of all parameters, with the gaps between them */
    uint32_t shared;      /* bytes of static shared memory of a block */
    uint32_t max_threads; /* that a block may have: .maxntid; 0 if it does not say */
    uint32_t required[3]; /* the only block that it runs with: .reqntid; 0 if it does not say */
};

struct heddle_param {
    uint32_t offset, size; /* bytes */
};

/* The number of kernels; they are called by their position from 0. */
int heddle_image_count(const struct heddle_image *image);
/* The kernel of this name, or HEDDLE_NOT_FOUND. */
int heddle_image_find(const struct heddle_image *image, const char *name);
int heddle_image_kernel(const struct heddle_image *image, int kernel, struct heddle_kernel *out);
int heddle_image_param(const struct heddle_image *image, int kernel, uint32_t param,
                       struct heddle_param *out);
/* Can the kernel be run? HEDDLE_REFUSED with the instruction, its function and line in `why` if it
 * cannot. */
int heddle_image_check(struct heddle_image *image, int kernel, struct heddle_why *why);
/* Writes what is known of how the kernel runs to out[room], always with a NUL: which instructions
 * do the same in all lanes of a warp, how it accesses memory, where lanes part. `threads` is the
 * block. Returns the length that the whole text has. */
int heddle_image_explain(struct heddle_image *image, int kernel, const uint32_t threads[3],
                         char *out, size_t room);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Zeroed memory that begins at a multiple of 256, as a CUDA driver gives it; NULL if there is none.
 * Kernels can use any other memory of the process as well. */
void *heddle_memory_alloc(size_t size);
void heddle_memory_free(void *p);

/* ---- running --------------------------------------------------------------------------------- */

/* Blocks and threads are at least 1 in each dimension; another zero means the usual. */
struct heddle_grid {
    size_t size; /* sizeof(struct heddle_grid) */
    uint32_t blocks[3], threads[3];
    uint32_t dynamic_shared; /* bytes of each block */
    int is_cooperative;      /* blocks may wait for each other at a barrier of the grid */
    uint64_t time_limit_ns;  /* 0: none */
    size_t heap_limit;       /* bytes that the image's kernels may take by malloc; 0: 8 MiB */
};

/* Runs a grid to its end. args has a pointer to each argument, in the order of the parameters. */
int heddle_image_run(struct heddle_image *image, int kernel, const struct heddle_grid *grid,
                     void *const *args, struct heddle_why *why);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
