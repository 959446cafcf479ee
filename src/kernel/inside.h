/* What the files of the kernel library share. kernel.h is what programs see.
 *
 *   image.c    bytes to a module of PTX; variables; lists
 *   check.c    a kernel made ready to run, or refused; explaining it
 *   run.c      memory, the engine, grids
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/lock.h"
#include "kernel/engine/heap.h"
#include "kernel/kernel.h"
#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/ptx.h"

struct hed_engine;

/* A kernel of an image. All but its program is constant. */
struct hed_image_kernel {
    const char *name;
    const struct hed_ptx_func *func; /* NULL: its machine code cannot be lifted; see why */
    uint32_t shared;
    /* Guarded by the image's lock; constant once it is set. */
    struct hed_interp *program; /* NULL until it is needed, or if it is refused */
    int err;                    /* why there will be none; 0 if it was not tried */
    struct hed_why why;
};

struct heddle_image {
    struct hed_arena arena; /* the image, descriptions */
    struct hed_ptx_module module;
    bool is_lifted; /* the module was made from machine code */
    struct hed_image_kernel *kernels;
    uint32_t kernel_count, kernel_room;
    uint64_t *vars;       /* addresses, by index */
    unsigned char *bytes; /* the variables' memory */
    struct hed_heap heap; /* of malloc in kernels */
    struct hed_engine *engine;
    struct hed_lock lock;
};

/* The error for the caller, with its reason. `because` may be NULL, and `cuda` is 0 for the number
 * that a driver has for such an error. */
int hed_image_fail(struct heddle_why *why, enum heddle_error error, int cuda, const char *because);
/* The nearest enum heddle_error of a HED_E. */
enum heddle_error hed_image_error(int err);
/* NULL if there is no such kernel. */
struct hed_image_kernel *hed_image_kernel_of(const struct heddle_image *image, int kernel);

/* The threads of a block that a directive names; 0 if it names none. */
static inline uint32_t
hed_image_threads(const uint32_t block[3])
{
    uint64_t n = block[0];

    for (int d = 1; d < 3 && n <= UINT32_MAX; d++)
        n *= block[d] ? block[d] : 1;
    return n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* check.c: the kernel's program; NULL and an error in *err if it cannot run. */
const struct hed_interp *hed_image_program(struct heddle_image *image, struct hed_image_kernel *k,
                                           int *err);

/* run.c: one engine for the process, while there are images. HED_ENOMEM. */
int hed_image_engine_take(struct hed_engine **out, struct hed_why *why);
void hed_image_engine_give(void);
