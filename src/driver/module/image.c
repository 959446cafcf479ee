/* Programs out of images. See image.h.
 *
 * PTX is what runs here, so it is preferred to machine code whenever an image
 * has both; machine code alone is described, which lets everything but a launch
 * succeed.
 */
#include "driver/module/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/far.h"
#include "driver/module/describe.h"
#include "driver/module/jit.h"
#include "driver/near/near.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "fatbin/file.h"
#include "fatbin/image.h"
#include "fatbin/ptx_text.h"

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t
hash(const char *s)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

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

/* Of equal names the first is found. */
static void
index_add(struct hed_index *x, const char *name, uint32_t position)
{
    uint32_t at = hash(name) & x->mask;

    while (x->slots[at])
        at = (at + 1) & x->mask;
    x->slots[at] = position + 1;
}

uint32_t
hed_program_kernel(const struct hed_program *p, const char *name)
{
    const struct hed_index *x = &p->kernels;

    for (uint32_t at = hash(name) & x->mask; x->slots[at]; at = (at + 1) & x->mask)
        if (strcmp(p->code->kernels[x->slots[at] - 1].name, name) == 0)
            return x->slots[at] - 1;
    return HED_PROGRAM_NONE;
}

uint32_t
hed_program_var(const struct hed_program *p, const char *name)
{
    const struct hed_index *x = &p->vars;

    for (uint32_t at = hash(name) & x->mask; x->slots[at]; at = (at + 1) & x->mask)
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
    /* CUDA finds variables that are not visible too; of equal names a visible one. */
    for (int visible = 1; visible >= 0; visible--)
        for (uint32_t i = 0; i < c->var_count; i++)
            if (c->vars[i].visible == visible)
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

int
hed_image_in(struct hed_bytes b, struct hed_image *out, struct hed_why *why)
{
    const struct hed_bytes text = hed_bytes_text(b);
    struct hed_ptx_head head;
    uint64_t size;

    if (hed_fatbin_begins(b, &size)) {
        *out = (struct hed_image){HED_IMAGE_FATBIN, b, NULL};
        if (size < b.size)
            out->bytes.size = (size_t)size;
    } else if (hed_cubin_begins(b)) {
        *out = (struct hed_image){HED_IMAGE_CUBIN, b, NULL};
    } else if (hed_ptx_begins(text, &head)) {
        *out = (struct hed_image){HED_IMAGE_PTX, text, NULL};
    } else {
        hed_why_set(why, "neither a fat binary nor a cubin nor PTX");
        return HED_EFORMAT;
    }
    return 0;
}

CUresult
hed_image_file(const char *path, struct hed_image *out, struct hed_bytes *file)
{
    struct hed_why why;
    int err = hed_fatbin_map(path, file, &why);

    if (err != 0) {
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

/* ---- opening --------------------------------------------------------------------------------- */

/* What an opening is about. */
struct opening {
    struct hed_program *p;
    const struct hed_profile *profile;
    uint32_t device; /* 10 * major + minor */
    const struct hed_jit_how *how;
    struct hed_buf *log; /* how->log */
    struct hed_why why;
};

static CUresult
ptx_result(int err)
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

/* Text that stays where it is as long as the program. */
static CUresult
open_ptx(struct opening *o, struct hed_bytes text, uint32_t arch)
{
    const struct hed_code_source source = {
        .data = text.data, .size = text.size, .device = o->device, .arch = arch};
    const struct hed_driver *d = o->p->driver;

    return ptx_result(
        d->machine->executor->open(d->machine_state, &source, &o->p->code, o->log, &o->why));
}

static int
keep(struct opening *o, struct hed_bytes *text)
{
    unsigned char *copy = hed_arena_alloc(&o->p->arena, text->size + 1, 16);

    if (!copy)
        return HED_ENOMEM;
    if (text->size) /* an entry of a fat binary may hold nothing */
        memcpy(copy, text->data, text->size);
    copy[text->size] = 0;
    text->data = copy;
    return 0;
}

static CUresult
open_text(struct opening *o, struct hed_bytes text)
{
    struct hed_ptx_head head;

    if (!hed_ptx_begins(text, &head)) {
        hed_why_set(&o->why, "this is no PTX");
        return CUDA_ERROR_INVALID_PTX;
    }
    if (!o->profile->accepts_newer_ptx && head.arch.number != 0 &&
        !hed_arch_compiles(head.arch, o->device)) {
        hed_why_set(&o->why, "PTX for sm_%u%.1s cannot be compiled for sm_%u", head.arch.number,
                    &head.arch.suffix, o->device);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (keep(o, &text) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return open_ptx(o, text, head.arch.number);
}

/* No machine of ours runs machine code: the driver itself describes it, so that all of them do it
 * alike, variables included. */
static CUresult
open_cubin(struct opening *o, struct hed_bytes bytes)
{
    const int err = hed_cubin_describe(bytes, &o->p->code, &o->why);

    o->p->described = err == 0;
    return err == 0 ? CUDA_SUCCESS : hed_image_result(err);
}

/* ---- fat binaries ---------------------------------------------------------------------------- */

#define PARTS_MAX 4096 /* fat binaries a program is linked of */

static unsigned
ptx_only(const struct hed_profile *p)
{
    return HED_CHOOSE_PTX_ONLY | HED_CHOOSE_64BIT_ONLY |
           (p->accepts_newer_ptx ? HED_CHOOSE_NEWER_PTX : 0);
}

/* May another PTX of the same fat binary do better? */
static bool
worth_another(CUresult r)
{
    return r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           r == CUDA_ERROR_NOT_SUPPORTED;
}

/* The PTX of a fat binary, newest first, until one can be read. NOT_FOUND:
 * there is none. */
static CUresult
open_fatbin_ptx(struct opening *o, struct hed_bytes fatbin)
{
    struct hed_choose how = {.device = o->device, .flags = ptx_only(o->profile)};
    struct hed_fatbin_entry e;
    CUresult first = CUDA_ERROR_NOT_FOUND;
    struct hed_why why;

    while (hed_fatbin_choose(fatbin, &how, &e, &why) == 0) {
        struct hed_bytes text;
        int err = hed_fatbin_image(&e, &o->p->arena, &text, &o->why);

        if (err == 0 && e.packing == HED_PACKING_NONE)
            err = keep(o, &text);

        const CUresult r = err == 0            ? open_ptx(o, text, e.arch.number)
                           : err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                               : CUDA_ERROR_INVALID_IMAGE;

        if (r == CUDA_SUCCESS)
            return r;
        hed_info(DRIVER, "compute_%u of a fat binary: %s", e.arch.number, o->why.text);
        if (first == CUDA_ERROR_NOT_FOUND)
            first = r;
        if (!worth_another(r) || e.arch.number == 0)
            return r;
        how.ptx_below = e.arch.number;
    }
    return first;
}

CUresult
hed_image_join(const struct hed_profile *profile, const void *const *parts, struct hed_arena *arena,
               struct hed_buf *joined, uint32_t *arch, struct hed_why *why)
{
    const struct hed_choose how = {.device = (uint32_t)(10 * profile->major + profile->minor),
                                   .flags = ptx_only(profile)};
    size_t count = 0, n = 0;
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
            hed_fatbin_choose(image.bytes, &how, &e, why) != 0 ||
            hed_fatbin_image(&e, arena, &texts[n], why) != 0) {
            hed_warn(DRIVER, "part %zu of a linked program has no PTX to use: %s", i, why->text);
            continue;
        }
        *arch = e.arch.number > *arch ? e.arch.number : *arch;
        n++;
    }
    if (n > 0)
        r = ptx_result(hed_ptx_join(texts, n, joined, why));
    free(texts);
    return r;
}

/* The PTX that a linked program (-rdc=true) was made of, joined to one text. */
static CUresult
open_parts(struct opening *o, const void *const *parts)
{
    struct hed_buf joined;
    uint32_t arch;

    hed_buf_init(&joined, HED_PROGRAM_MAX);

    CUresult r = hed_image_join(o->profile, parts, &o->p->arena, &joined, &arch, &o->why);

    if (r == CUDA_SUCCESS) {
        struct hed_bytes text = {joined.data, joined.size};

        r = keep(o, &text) != 0 ? CUDA_ERROR_OUT_OF_MEMORY : open_ptx(o, text, arch);
    }
    hed_buf_fini(&joined);
    return r;
}

/* "sm_80 sm_90" of everything that is there, for who wonders why nothing runs.
 */
static void
name_archs(struct hed_program *p, struct hed_bytes fatbin)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    size_t used = 0;

    if (hed_fatbin_walk(fatbin, &w, NULL) != 0)
        return;
    while (hed_fatbin_next(&w, &e, NULL) > 0 && used < sizeof p->archs) {
        char arch[HED_ARCH_TEXT];
        const int n = snprintf(p->archs + used, sizeof p->archs - used, "%s%s", used ? " " : "",
                               hed_fatbin_arch_text(&e, arch));

        used += n > 0 ? (size_t)n : 0;
    }
}

static CUresult
open_fatbin(struct opening *o, const struct hed_image *image)
{
    const struct hed_choose how = {.device = o->device,
                                   .flags = HED_CHOOSE_CUBIN_ONLY | HED_CHOOSE_64BIT_ONLY};
    struct hed_fatbin_entry e;
    struct hed_bytes cubin;
    CUresult r = open_fatbin_ptx(o, image->bytes);

    if (r == CUDA_ERROR_NOT_FOUND && image->parts)
        r = open_parts(o, image->parts);
    if (r != CUDA_ERROR_NOT_FOUND)
        return r;

    name_archs(o->p, image->bytes);

    int err = hed_fatbin_choose(image->bytes, &how, &e, &o->why);

    if (err == HED_ENOTFOUND)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (err == 0)
        err = hed_fatbin_image(&e, &o->p->arena, &cubin, &o->why);
    return err == 0 ? open_cubin(o, cubin) : hed_image_result(err);
}

static CUresult
open_bare_cubin(struct opening *o, struct hed_bytes cubin)
{
    struct hed_arch arch;
    char text[HED_ARCH_TEXT];
    const int err = hed_cubin_arch(cubin, &arch, &o->why);

    if (err != 0)
        return hed_image_result(err);
    (void)hed_str_copy(o->p->archs, sizeof o->p->archs, hed_arch_text(arch, "sm_", text));
    if (!hed_arch_runs(arch, o->device)) {
        hed_why_set(&o->why, "machine code for %s does not run on sm_%u", o->p->archs, o->device);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return open_cubin(o, cubin);
}

/* What of it a machine that is elsewhere needs, its own side chooses. */
static CUresult
open_far(struct opening *o, struct hed_device *dev, const struct hed_image *image)
{
    const struct hed_driver *d = o->p->driver;

    return d->machine->far->open(d->machine_state, dev, image, &o->p->code, o->how, &o->why);
}

static CUresult
open_image(struct opening *o, const struct hed_image *image)
{
    switch (image->kind) {
    case HED_IMAGE_PTX:
        return open_text(o, image->bytes);
    case HED_IMAGE_CUBIN:
        return open_bare_cubin(o, image->bytes);
    default:
        return open_fatbin(o, image);
    }
}

CUresult
hed_program_open(struct hed_device *dev, const struct hed_image *image,
                 const struct hed_jit_how *how, struct hed_program **out)
{
    static const struct hed_jit_how any = {.now = false};
    struct hed_buf *log = how ? how->log : NULL;
    struct hed_program *p = calloc(1, sizeof *p);
    struct opening o = {.p = p,
                        .profile = &dev->info.profile,
                        .device =
                            (uint32_t)(10 * dev->info.profile.major + dev->info.profile.minor),
                        .how = how ? how : &any,
                        .log = log};

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&p->refs, 1);
    p->driver = dev->driver;
    hed_arena_init(&p->arena, HED_PROGRAM_MAX);

    CUresult r = p->driver->machine->far ? open_far(&o, dev, image) : open_image(&o, image);

    if (r == CUDA_SUCCESS && make_indices(p) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        hed_warn(DRIVER, "an image cannot be loaded (%d): %s", r, o.why.text);
        if (log && log->size == 0 && log->err == 0 && o.why.text[0])
            hed_buf_addf(log, "%s\n", o.why.text);
        hed_program_unref(p);
        return r;
    }
    *out = p;
    return CUDA_SUCCESS;
}

void
hed_program_ref(struct hed_program *p)
{
    /* Relaxed: who has a reference hands out another. */
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void
hed_program_unref(struct hed_program *p)
{
    /* Release: what this user did is seen by whoever frees it; acquire is the
   * other side. */
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    const struct hed_machine *m = p->driver->machine;

    if (p->code && p->described)
        hed_cubin_forget(p->code);
    else if (p->code)
        (m->far ? m->far->close : m->executor->close)(p->driver->machine_state, p->code);
    free(p->kernels.slots);
    free(p->vars.slots);
    hed_arena_fini(&p->arena);
    free(p);
}

void
hed_program_fill(struct hed_program *p, const uint64_t *addresses)
{
    const struct hed_machine *m = p->driver->machine;

    if (m->far)
        return; /* filled where they are */
    if (!p->described) {
        m->executor->fill_vars(p->driver->machine_state, p->code, addresses);
        return;
    }
    for (uint32_t i = 0; i < p->code->var_count; i++) {
        const struct hed_code_var *v = &p->code->vars[i];

        if (!addresses[i])
            continue;
        m->memory.fill(p->driver->machine_state, addresses[i], 0, 1, v->size);
        if (v->init_size)
            m->memory.copy(p->driver->machine_state, addresses[i], (uint64_t)(uintptr_t)v->init,
                           v->init_size);
    }
}
