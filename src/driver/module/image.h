/* Programs: what an image became for one compute capability, and finding things in it by name.
 *
 *   bytes --hed_image_at--> image --machine->open--> code
 *
 * A program is counted and shared by everything that is loaded from it; it is constant after open.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "driver/driver.h"
#include "fatbin/bytes.h"

struct hed_buf;
struct hed_code;
struct hed_image;
struct hed_jit_how;

#define HED_PROGRAM_NONE UINT32_MAX
#define HED_PROGRAM_MAX ((size_t)1 << 30) /* bytes of PTX, unpacked */

/* Positions by name: open addressing, at most half full. */
struct hed_index {
    uint32_t *slots; /* position + 1; 0: empty */
    uint32_t mask;
};

struct hed_program {
    _Atomic uint32_t refs;
    struct hed_driver *driver;
    struct hed_code *code;
    bool described;         /* the machine's: code is of a cubin, described, and cannot run */
    struct hed_arena arena; /* for texts that the machine points into */
    struct hed_index kernels, vars;
    char archs[256]; /* what the image has, if nothing in it runs here: for the log */
};

/* Opens an image for a device, in any way (NULL) or in a certain one. What fails is logged.
 * INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION, JIT_COMPILER_NOT_FOUND,
 * NOT_SUPPORTED, OUT_OF_MEMORY. */
CUresult hed_program_open(struct hed_device *dev, const struct hed_image *image,
                          const struct hed_jit_how *how, struct hed_program **out);
void hed_program_ref(struct hed_program *p);
void hed_program_unref(struct hed_program *p);

/* By name: HED_PROGRAM_NONE. */
uint32_t hed_program_kernel(const struct hed_program *p, const char *name);
uint32_t hed_program_var(const struct hed_program *p, const char *name);

/* The CUDA result for an image that hed_image_at or hed_image_in do not take. */
CUresult hed_image_result(int err);

/* An image in bytes with an end, as files have them. HED_EFORMAT. */
int hed_image_in(struct hed_bytes b, struct hed_image *out, struct hed_why *why);

/* The image that a file is; mapped, to be given back with hed_fatbin_unmap when the image is no
 * longer used. FILE_NOT_FOUND, INVALID_IMAGE. */
CUresult hed_image_file(const char *path, struct hed_image *out, struct hed_bytes *file);

/* The CUDA result for PTX that cannot be read. */
CUresult hed_ptx_result(int err);

/* What of a fat binary is PTX for a device: flags for hed_fatbin_choose. */
unsigned hed_ptx_only(const struct hed_profile *p);

/* The PTX that a linked program (-rdc=true) was made of as one text: the parts of an image, for a
 * device. NOT_FOUND: there is none. What is unpacked goes into the arena. */
CUresult hed_image_join(const struct hed_profile *profile, const void *const *parts,
                        struct hed_arena *arena, struct hed_buf *joined, uint32_t *arch,
                        struct hed_why *why);

/* ---- join.c: several PTX modules as one ------------------------------------------------------ */

/* One PTX text out of several that name each other's functions and variables: the newest version
 * and target are kept, names that only one module sees are made different, and of several weak
 * definitions the first stays. The result has no NUL at its end. HED_EFORMAT, HED_ENOMEM,
 * HED_ELIMIT (the buffer's ceiling). */
int hed_ptx_join(const struct hed_bytes *texts, size_t count, struct hed_buf *out,
                 struct hed_why *why);
