/* Code on this machine: PTX or machine code of an image, opened by the executor.
 *
 *   image ──choose, unpack, join parts──> PTX text ──executor->open──> code
 *        ╲─ choose, unpack ─────────────> cubin ──── if it is taken ──╱
 *                                               ╲─── else: described, cannot run
 *
 * The order in which the code of a fat binary is tried depends on the setting cpu_code
 * (hed_near.prefers); see `ways`. Machine code that the executor does not take is described, so
 * that everything but a launch succeeds.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/module/describe.h"
#include "driver/module/image.h"
#include "driver/module/jit.h"
#include "driver/module/module.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "kernel/fatbin.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* An image that is being opened. */
struct opening {
    struct hed_near *near;
    struct hed_program *p;
    const struct hed_profile *profile;
    uint32_t device; /* 10 * major + minor */
    const struct hed_jit_how *how;
    struct hed_why *why;
};

/* Opens code that lives as long as the program. */
static int
open_code(struct opening *o, enum hed_code_kind kind, struct hed_bytes bytes, uint32_t arch)
{
    const struct hed_code_source source = {
        .kind = kind, .data = bytes.data, .size = bytes.size, .device = o->device, .arch = arch};

    return o->near->executor->open(o->near, &source, &o->p->code, o->how->log, o->why);
}

static CUresult
open_ptx(struct opening *o, struct hed_bytes text, uint32_t arch)
{
    return hed_ptx_result(open_code(o, HED_CODE_PTX, text, arch));
}

/* Copies code that need not live long. A NUL follows it. */
static int
keep_code(struct opening *o, struct hed_bytes *code)
{
    unsigned char *copy = hed_arena_alloc(&o->p->arena, code->size + 1, 16);

    if (!copy)
        return HED_ENOMEM;
    if (code->size) /* an entry of a fat binary may be empty */
        memcpy(copy, code->data, code->size);
    copy[code->size] = 0;
    code->data = copy;
    return 0;
}

static CUresult
open_text(struct opening *o, struct hed_bytes text)
{
    struct hed_ptx_head head;

    if (!hed_ptx_begins(text, &head)) {
        hed_why_set(o->why, "this is not PTX");
        return CUDA_ERROR_INVALID_PTX;
    }
    if (!o->profile->accepts_newer_ptx && head.arch.number != 0 &&
        !hed_arch_compiles(head.arch, o->device)) {
        hed_why_set(o->why, "PTX for sm_%u%.1s cannot be compiled for sm_%u", head.arch.number,
                    &head.arch.suffix, o->device);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (keep_code(o, &text) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return open_ptx(o, text, head.arch.number);
}

/* Machine code that the executor does not take is described here, variables included, so that all
 * executors behave alike. */
static CUresult
open_described_cubin(struct opening *o, struct hed_bytes bytes)
{
    const int err = hed_cubin_describe(bytes, &o->p->code, o->why);

    o->p->described = err == 0;
    return err == 0 ? CUDA_SUCCESS : hed_image_result(err);
}

/* Says once that machine code runs which is not made for the device. Libraries choose kernels for
 * their device, and these may do something else, or nothing, in code for another one. */
static void
warn_of_foreign_cubin(struct hed_near *n, uint32_t device, struct hed_arch arch)
{
    /* Relaxed: it only says whether the line has been written. */
    if (!atomic_exchange_explicit(&n->warned, true, memory_order_relaxed))
        hed_warn(DRIVER,
                 "an image has nothing for sm_%u that runs here, so its machine code for sm_%u "
                 "runs; if that fails, choose a device of its kind (--gpu cpu:a100)",
                 device, arch.number);
}

/* Opens a cubin that lives as long as the program, so that its kernels run. NOT_FOUND if that
 * cannot be. */
static CUresult
open_cubin(struct opening *o, struct hed_bytes bytes, struct hed_arch arch)
{
    const int err = open_code(o, HED_CODE_CUBIN, bytes, arch.number);

    if (err == 0 && !hed_arch_runs(arch, o->device))
        warn_of_foreign_cubin(o->near, o->device, arch);
    if (err == HED_ENOMEM)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (err != 0)
        hed_info(DRIVER, "machine code for sm_%u: %s", arch.number, o->why->text);
    return err == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static bool
takes_cubin(const struct opening *o, struct hed_arch arch)
{
    return o->near->executor->takes_cubin && o->near->executor->takes_cubin(arch);
}

/* ---- fat binaries ---------------------------------------------------------------------------- */

#define FITTING_PTX (HED_CHOOSE_PTX_ONLY | HED_CHOOSE_64BIT_ONLY)

/* Is it worth trying other code of the same fat binary? */
static bool
worth_another(CUresult r)
{
    return r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           r == CUDA_ERROR_NOT_SUPPORTED;
}

/* Opens the PTX of a fat binary, newest first, until one can be read. NOT_FOUND if there is
 * none. */
static CUresult
open_fatbin_ptx(struct opening *o, struct hed_bytes fatbin, unsigned flags)
{
    struct hed_choose how = {.device = o->device, .flags = flags};
    struct hed_fatbin_entry e;
    CUresult first = CUDA_ERROR_NOT_FOUND;
    struct hed_why why;

    while (hed_fatbin_choose(fatbin, &how, &e, &why) == 0) {
        struct hed_bytes text;
        int err = hed_fatbin_image(&e, &o->p->arena, &text, o->why);

        if (err == 0 && e.packing == HED_PACKING_NONE)
            err = keep_code(o, &text);

        const CUresult r = err == 0            ? open_ptx(o, text, e.arch.number)
                           : err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                               : CUDA_ERROR_INVALID_IMAGE;

        if (r == CUDA_SUCCESS)
            return r;
        hed_info(DRIVER, "compute_%u of a fat binary: %s", e.arch.number, o->why->text);
        if (first == CUDA_ERROR_NOT_FOUND)
            first = r;
        if (!worth_another(r) || e.arch.number == 0)
            return r;
        how.ptx_below = e.arch.number;
    }
    return first;
}

/* Lists the architectures in the image ("sm_80 sm_90"), for the message that nothing in it runs. */
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

/* The machine code of a fat binary that the device would use or, if `takes` is not NULL, that it
 * is true for. */
static int
choose_cubin(const struct opening *o, struct hed_bytes fatbin, bool (*takes)(struct hed_arch arch),
             struct hed_fatbin_entry *out, struct hed_why *why)
{
    const struct hed_choose how = {.device = o->device,
                                   .flags = HED_CHOOSE_CUBIN_ONLY | HED_CHOOSE_64BIT_ONLY,
                                   .takes_cubin = takes};

    return hed_fatbin_choose(fatbin, &how, out, why);
}

/* Opens the PTX that a linked program (-rdc=true) was made from, joined into one text. Without the
 * PTX of all parts, machine code that was linked from them is better. */
static CUresult
open_parts(struct opening *o, const struct hed_image *image)
{
    struct hed_fatbin_entry e;
    struct hed_buf joined;
    size_t missing = 0;
    uint32_t arch;
    struct hed_why why;

    hed_buf_init(&joined, HED_PROGRAM_MAX);

    CUresult r =
        hed_image_join(o->profile, image->parts, &o->p->arena, &joined, &arch, &missing, o->why);

    if (r == CUDA_SUCCESS && missing) {
        if (choose_cubin(o, image->bytes, o->near->executor->takes_cubin, &e, &why) == 0)
            r = CUDA_ERROR_NOT_FOUND;
        else
            hed_warn(DRIVER, "parts of a linked program have no usable PTX (%zu of them): %s",
                     missing, o->why->text);
    }
    if (r == CUDA_SUCCESS) {
        struct hed_bytes text = {joined.data, joined.size};

        r = keep_code(o, &text) != 0 ? CUDA_ERROR_OUT_OF_MEMORY : open_ptx(o, text, arch);
    }
    hed_buf_fini(&joined);
    return r;
}

/* Opens PTX that a driver would compile for the device, of a fat binary or of the parts that it was
 * linked from. */
static CUresult
open_fitting_ptx(struct opening *o, const struct hed_image *image)
{
    const CUresult r = open_fatbin_ptx(o, image->bytes, FITTING_PTX);

    return r == CUDA_ERROR_NOT_FOUND && image->parts ? open_parts(o, image) : r;
}

/* Opens PTX for newer devices if there is none that fits and the profile accepts it, or if a device
 * would use machine code of the image: NVIDIA's libraries have machine code for each device and PTX
 * for the newest. Such an image loads in any case. */
static CUresult
open_newer_ptx(struct opening *o, const struct hed_image *image)
{
    const struct hed_choose fitting = {.device = o->device, .flags = FITTING_PTX};
    struct hed_fatbin_entry e;
    struct hed_why why;
    const bool loads = choose_cubin(o, image->bytes, NULL, &e, &why) == 0;

    if (hed_fatbin_choose(image->bytes, &fitting, &e, &why) == 0 ||
        (!loads && !o->profile->accepts_newer_ptx))
        return CUDA_ERROR_NOT_FOUND;

    const CUresult r = open_fatbin_ptx(o, image->bytes, FITTING_PTX | HED_CHOOSE_NEWER_PTX);

    return loads && worth_another(r) ? CUDA_ERROR_NOT_FOUND : r;
}

/* Opens machine code of a fat binary so that its kernels run: what is made for the device, else
 * what the device would run, else what the executor takes. */
static CUresult
open_fatbin_cubin(struct opening *o, const struct hed_image *image)
{
    bool (*const takes)(struct hed_arch) = o->near->executor->takes_cubin;
    struct hed_fatbin_entry e;
    struct hed_bytes cubin;
    struct hed_why why;

    if (!takes || choose_cubin(o, image->bytes, takes, &e, &why) != 0 ||
        hed_fatbin_image(&e, &o->p->arena, &cubin, &why) != 0)
        return CUDA_ERROR_NOT_FOUND;
    if (e.packing == HED_PACKING_NONE && keep_code(o, &cubin) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    name_archs(o->p, image->bytes);
    return open_cubin(o, cubin, e.arch);
}

static CUresult
describe_fatbin_cubin(struct opening *o, struct hed_bytes fatbin)
{
    struct hed_fatbin_entry e;
    struct hed_bytes cubin;
    int err = choose_cubin(o, fatbin, NULL, &e, o->why);

    if (err == HED_ENOTFOUND)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    name_archs(o->p, fatbin);
    if (err == 0)
        err = hed_fatbin_image(&e, &o->p->arena, &cubin, o->why);
    return err == 0 ? open_described_cubin(o, cubin) : hed_image_result(err);
}

/* The ways to open a fat binary, best first; ADR 30 says why. A way answers NOT_FOUND if the image
 * has no such code, or none that the executor takes. */
#define WAYS 3

typedef CUresult (*open_fn)(struct opening *o, const struct hed_image *image);

static const open_fn ways[][WAYS] = {
    [HED_NEAR_AUTO] = {open_fitting_ptx, open_newer_ptx, open_fatbin_cubin},
    [HED_NEAR_PTX] = {open_fitting_ptx, open_newer_ptx, open_fatbin_cubin},
    [HED_NEAR_SASS] = {open_fatbin_cubin, open_fitting_ptx, open_newer_ptx},
};

static CUresult
open_fatbin(struct opening *o, const struct hed_image *image)
{
    CUresult first = CUDA_ERROR_NOT_FOUND;
    struct hed_why why;

    for (int i = 0; i < WAYS; i++) {
        const CUresult r = ways[o->near->prefers][i](o, image);

        if (r == CUDA_SUCCESS || (r != CUDA_ERROR_NOT_FOUND && !worth_another(r)))
            return r;
        /* What is wrong with the code that was wanted most is what the user can mend. */
        if (r != CUDA_ERROR_NOT_FOUND && first == CUDA_ERROR_NOT_FOUND) {
            first = r;
            why = *o->why;
        }
    }
    if (first == CUDA_ERROR_NOT_FOUND)
        return describe_fatbin_cubin(o, image->bytes);
    *o->why = why;
    return first;
}

/* A device refuses machine code for others, and programs count on that. With the preference for
 * machine code, it runs all the same. */
static CUresult
open_bare_cubin(struct opening *o, struct hed_bytes cubin)
{
    struct hed_arch arch;
    char text[HED_ARCH_TEXT];
    const int err = hed_cubin_arch(cubin, &arch, o->why);
    CUresult r = CUDA_ERROR_NOT_FOUND;

    if (err != 0)
        return hed_image_result(err);
    (void)hed_str_copy(o->p->archs, sizeof o->p->archs, hed_arch_text(arch, "sm_", text));
    if (!hed_arch_runs(arch, o->device) &&
        !(takes_cubin(o, arch) && o->near->prefers == HED_NEAR_SASS)) {
        hed_why_set(o->why, "machine code for %s does not run on sm_%u", o->p->archs, o->device);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (takes_cubin(o, arch))
        r = keep_code(o, &cubin) == 0 ? open_cubin(o, cubin, arch) : CUDA_ERROR_OUT_OF_MEMORY;
    return r == CUDA_ERROR_NOT_FOUND ? open_described_cubin(o, cubin) : r;
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
hed_near_open(void *m, struct hed_device *dev, struct hed_program *p, const struct hed_image *image,
              const struct hed_jit_how *how, struct hed_why *why)
{
    struct opening o = {.near = m,
                        .p = p,
                        .profile = &dev->info.profile,
                        .device =
                            (uint32_t)(10 * dev->info.profile.major + dev->info.profile.minor),
                        .how = how,
                        .why = why};

    return open_image(&o, image);
}

void
hed_near_close(void *m, struct hed_program *p)
{
    const struct hed_near *n = m;

    if (p->described)
        hed_cubin_forget(p->code);
    else
        n->executor->close(m, p->code);
}

void
hed_near_fill_vars(void *m, struct hed_program *p, const uint64_t *addresses, const uint64_t *where)
{
    const struct hed_near *n = m;

    if (!p->described) {
        n->executor->fill_vars(m, p->code, addresses, where);
        return;
    }
    for (uint32_t i = 0; i < p->code->var_count; i++) {
        const struct hed_code_var *v = &p->code->vars[i];

        if (!where[i])
            continue;
        n->executor->memory.fill(m, where[i], 0, 1, v->size);
        if (v->init_size)
            n->executor->memory.copy(m, where[i], (uint64_t)(uintptr_t)v->init, v->init_size);
    }
}

CUresult
hed_near_function_load(void *m, struct hed_function *f, const uint32_t *block, struct hed_why *why)
{
    const struct hed_near *n = m;

    return n->executor->prepare(m, f->module->code, f->kernel, block, why);
}

/* Kernels that cannot be compiled are reported when they are launched. */
void
hed_near_module_load(void *m, struct hed_module *mod)
{
    const struct hed_near *n = m;

    for (uint32_t i = 0; i < mod->code->kernel_count; i++) {
        struct hed_why why;

        if (mod->code->kernels[i].has_code &&
            n->executor->prepare(m, mod->code, i, NULL, &why) != CUDA_SUCCESS)
            hed_info(DRIVER, "%s cannot be compiled: %s", mod->code->kernels[i].name, why.text);
    }
}
