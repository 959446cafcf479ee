/* Programs: images opened for one compute capability, and lookup by name in them.
 *
 *   bytes --hed_image_at--> image --machine->open--> code
 *
 * A program has a reference count and is shared by everything that is loaded from it. It is
 * constant after open.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "driver/parts.h"
#include "kernel/fatbin.h"

struct hed_buf;
struct hed_code;
struct hed_image;
struct hed_jit_how;

#define HED_PROGRAM_NONE UINT32_MAX
#define HED_PROGRAM_MAX ((size_t)1 << 30) /* bytes of PTX, unpacked */

/* A hash table from names to positions: open addressing, at most half full. */
struct hed_index {
    uint32_t *slots; /* position + 1; 0: empty */
    uint32_t mask;
};

struct hed_program {
    _Atomic uint32_t refs;
    struct hed_driver *driver;
    struct hed_code *code;
    bool described;         /* set by the machine: the code describes a cubin and cannot run */
    struct hed_arena arena; /* for text that the machine points into */
    struct hed_index kernels, vars;
    char archs[256]; /* the architectures in the image if it runs from machine code, or not at all;
                      * for the log */
};

/* Opens an image for a device, with JIT options or without (how is NULL). Logs failures.
 * INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION, JIT_COMPILER_NOT_FOUND,
 * NOT_SUPPORTED, OUT_OF_MEMORY. */
CUresult hed_program_open(struct hed_device *dev, const struct hed_image *image,
                          const struct hed_jit_how *how, struct hed_program **out);
void hed_program_ref(struct hed_program *p);
void hed_program_unref(struct hed_program *p);

/* Positions by name; HED_PROGRAM_NONE if there is none. */
uint32_t hed_program_kernel(const struct hed_program *p, const char *name);
uint32_t hed_program_var(const struct hed_program *p, const char *name);

/* The CUDA result for an image that hed_image_at() or hed_image_in() refuses. */
CUresult hed_image_result(int err);

/* The image in a file. The file is mapped; the caller gives it back with hed_fatbin_unmap() when
 * the image is no longer used. FILE_NOT_FOUND, INVALID_IMAGE. */
CUresult hed_image_file(const char *path, struct hed_image *out, struct hed_bytes *file);

/* The process ends: says why, if images were there and none could be loaded. */
void hed_program_end(struct hed_driver *d);

/* The CUDA result for PTX that cannot be read. */
CUresult hed_ptx_result(int err);

/* Flags for hed_fatbin_choose() that select the PTX for a device. */
unsigned hed_ptx_only(const struct hed_profile *p);

/* Joins the PTX that a linked program (-rdc=true) was made from into one text: the parts of an
 * image, for a device. NOT_FOUND if there is none. Unpacked text goes into the arena. `missing` is
 * set to the number of parts that have no PTX for the device; `why` says what the last one has. */
CUresult hed_image_join(const struct hed_profile *profile, const void *const *parts,
                        struct hed_arena *arena, struct hed_buf *joined, uint32_t *arch,
                        size_t *missing, struct hed_why *why);

/* ---- join.c: several PTX modules as one ------------------------------------------------------ */

/* Joins several PTX texts that refer to each other's functions and variables into one. The newest
 * version and target are kept, names that only one module sees are made different, and the first of
 * several weak definitions stays. The result does not end with a NUL. HED_EFORMAT, HED_ENOMEM,
 * HED_ELIMIT (the buffer's ceiling). */
int hed_ptx_join(const struct hed_bytes *texts, size_t count, struct hed_buf *out,
                 struct hed_why *why);
