/* Programs from images, and images from bytes and files. See image.h. */
#include "driver/module/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/module/jit.h"
#include "kernel/fatbin.h"

/* ---- names ----------------------------------------------------------------------------------- */

static int
index_init(struct hed_index *x, uint32_t count)
{
    uint32_t size = 4;

    while (size < 2 * (uint64_t)count && size < UINT32_C(1) << 31)
        size *= 2;
    x->slots = calloc(size, sizeof *x->slots);
    x->mask = size - 1;
    return x->slots ? 0 : HED_ENOMEM;
}

/* The first of several equal names is found. */
static void
index_add(struct hed_index *x, const char *name, uint32_t position)
{
    uint32_t at = hed_str_hash(name, strlen(name)) & x->mask;

    while (x->slots[at])
        at = (at + 1) & x->mask;
    x->slots[at] = position + 1;
}

uint32_t
hed_program_kernel(const struct hed_program *p, const char *name)
{
    const struct hed_index *x = &p->kernels;

    for (uint32_t at = hed_str_hash(name, strlen(name)) & x->mask; x->slots[at];
         at = (at + 1) & x->mask)
        if (strcmp(p->code->kernels[x->slots[at] - 1].name, name) == 0)
            return x->slots[at] - 1;
    return HED_PROGRAM_NONE;
}

uint32_t
hed_program_var(const struct hed_program *p, const char *name)
{
    const struct hed_index *x = &p->vars;

    for (uint32_t at = hed_str_hash(name, strlen(name)) & x->mask; x->slots[at];
         at = (at + 1) & x->mask)
        if (strcmp(p->code->vars[x->slots[at] - 1].name, name) == 0)
            return x->slots[at] - 1;
    return HED_PROGRAM_NONE;
}

static int
make_indices(struct hed_program *p)
{
    const struct hed_code *c = p->code;

    if (index_init(&p->kernels, c->kernel_count) != 0 || index_init(&p->vars, c->var_count) != 0)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < c->kernel_count; i++)
        index_add(&p->kernels, c->kernels[i].name, i);
    /* CUDA also finds variables that are not visible, but prefers a visible one of the same
     * name. */
    for (int visible = 1; visible >= 0; visible--)
        for (uint32_t i = 0; i < c->var_count; i++)
            if (c->vars[i].visible == visible && c->vars[i].name[0])
                index_add(&p->vars, c->vars[i].name, i);
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

CUresult
hed_image_result(int err)
{
    return err == HED_EINVAL   ? CUDA_ERROR_INVALID_VALUE
           : err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                               : CUDA_ERROR_INVALID_IMAGE;
}

CUresult
hed_image_file(const char *path, struct hed_image *out, struct hed_bytes *file)
{
    struct hed_why why;
    int err = hed_fatbin_map(path, file, &why);

    if (err != 0) {
        /* Programs look for files in their caches like this, and FILE_NOT_FOUND says it all. */
        if (err == HED_ENOTFOUND)
            hed_info(DRIVER, "%s: %s", path, why.text);
        else
            hed_warn(DRIVER, "%s: %s", path, why.text);
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
    }
    err = hed_image_in(*file, out, &why);
    if (err != 0) {
        hed_warn(DRIVER, "%s: %s", path, why.text);
        hed_fatbin_unmap(*file);
        return hed_image_result(err);
    }
    return CUDA_SUCCESS;
}

/* ---- PTX ------------------------------------------------------------------------------------- */

CUresult
hed_ptx_result(int err)
{
    switch (err) {
    case 0:
        return CUDA_SUCCESS;
    case HED_ENOMEM:
    case HED_ELIMIT:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case HED_EVERSION:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case HED_ENOTFOUND:
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    case HED_ENOTSUP:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_PTX;
    }
}

#define PARTS_MAX 4096 /* fat binaries that one program is linked from */

unsigned
hed_ptx_only(const struct hed_profile *p)
{
    return HED_CHOOSE_PTX_ONLY | HED_CHOOSE_64BIT_ONLY |
           (p->accepts_newer_ptx ? HED_CHOOSE_NEWER_PTX : 0);
}

/* The PTX of a part for a device. A part with machine code for the device may have PTX for newer
 * ones only, as NVIDIA's device runtime does; then `fits` stays as it is. */
static int
choose_part(const struct hed_profile *profile, struct hed_bytes part, struct hed_fatbin_entry *out,
            bool *fits, struct hed_why *why)
{
    struct hed_choose how = {.device = (uint32_t)(10 * profile->major + profile->minor),
                             .flags = HED_CHOOSE_CUBIN_ONLY | HED_CHOOSE_64BIT_ONLY};
    struct hed_why none;
    const bool runs = hed_fatbin_choose(part, &how, out, &none) == 0;
    int err;

    how.flags = hed_ptx_only(profile);
    err = hed_fatbin_choose(part, &how, out, why);
    if (err == 0)
        *fits = true;
    if (err == 0 || !runs)
        return err;
    how.flags |= HED_CHOOSE_NEWER_PTX;
    return hed_fatbin_choose(part, &how, out, &none) == 0 ? 0 : err;
}

CUresult
hed_image_join(const struct hed_profile *profile, const void *const *parts, struct hed_arena *arena,
               struct hed_buf *joined, uint32_t *arch, size_t *missing, struct hed_why *why)
{
    size_t count = 0, n = 0;
    bool fits = false;
    CUresult r = CUDA_ERROR_NOT_FOUND;

    while (parts[count] && count < PARTS_MAX)
        count++;

    struct hed_bytes *texts = count ? calloc(count, sizeof *texts) : NULL;

    if (!texts)
        return count ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_FOUND;
    *arch = 0;
    for (size_t i = 0; i < count; i++) {
        struct hed_image image;
        struct hed_fatbin_entry e;

        if (hed_image_at(parts[i], &image, why) != 0 || image.kind != HED_IMAGE_FATBIN ||
            choose_part(profile, image.bytes, &e, &fits, why) != 0 ||
            hed_fatbin_image(&e, arena, &texts[n], why) != 0) {
            continue;
        }
        *arch = e.arch.number > *arch ? e.arch.number : *arch;
        n++;
    }
    *missing = count - n;
    /* A library such as NCCL has machine code for this device and PTX for newer ones in every part:
     * its PTX uses what this device lacks. */
    if (fits && n > 0)
        r = hed_ptx_result(hed_ptx_join(texts, n, joined, why));
    free(texts);
    return r;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* A library that has code for some architectures beside its other code tries all of it, and is not
 * surprised: NCCL does so. If such an image is all that a program has, it is told at the end. */
static void
tell_of_failure(struct hed_driver *d, const struct hed_image *image, CUresult r, const char *why)
{
    char *none = NULL;

    if (r != CUDA_ERROR_NO_BINARY_FOR_GPU || image->kind != HED_IMAGE_FATBIN ||
        !hed_fatbin_is_tied(image->bytes)) {
        hed_warn(DRIVER, "an image cannot be loaded (%d): %s", r, why);
        return;
    }
    hed_info(DRIVER, "an image cannot be loaded (%d): %s", r, why);

    char *reason = strdup(why);

    if (reason && !atomic_compare_exchange_strong_explicit(
                      &d->not_loaded, &none, reason, memory_order_acq_rel, memory_order_acquire))
        free(reason);
}

CUresult
hed_program_open(struct hed_device *dev, const struct hed_image *image,
                 const struct hed_jit_how *how, struct hed_program **out)
{
    static const struct hed_jit_how any = {.now = false};
    struct hed_buf *log = how ? how->log : NULL;
    struct hed_program *p = calloc(1, sizeof *p);
    struct hed_why why = {""};

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&p->refs, 1);
    p->driver = dev->driver;
    hed_arena_init(&p->arena, HED_PROGRAM_MAX);

    CUresult r =
        p->driver->machine->open(p->driver->machine_state, dev, p, image, how ? how : &any, &why);

    if (r == CUDA_SUCCESS && make_indices(p) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        tell_of_failure(dev->driver, image, r, why.text);
        if (log && log->size == 0 && log->err == 0 && why.text[0])
            hed_buf_addf(log, "%s\n", why.text);
        hed_program_unref(p);
        return r;
    }
    /* Relaxed: it only decides about a line in the log. */
    atomic_store_explicit(&dev->driver->loaded, true, memory_order_relaxed);
    *out = p;
    return CUDA_SUCCESS;
}

void
hed_program_end(struct hed_driver *d)
{
    char *reason = atomic_exchange_explicit(&d->not_loaded, NULL, memory_order_acq_rel);

    if (reason && !atomic_load_explicit(&d->loaded, memory_order_relaxed))
        hed_warn(DRIVER, "no image could be loaded: %s", reason);
    free(reason);
}

void
hed_program_ref(struct hed_program *p)
{
    /* Relaxed: the caller has a reference already. */
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void
hed_program_unref(struct hed_program *p)
{
    /* Release: the thread that frees it sees what this user did. Acquire: this thread may be that
     * one. */
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (p->code)
        p->driver->machine->close(p->driver->machine_state, p);
    free(p->kernels.slots);
    free(p->vars.slots);
    hed_arena_fini(&p->arena);
    free(p);
}
