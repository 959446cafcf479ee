/* Opens images and lists what is in them.
 *
 *   PTX text ─────────────────────────────────╮
 *   fat binary ─ its PTX ─ unpacked ──────────┼─ parsed ─ variables placed ─ kernels listed
 *             ╰ or its cubin ─╮               │
 *   cubin ────────────────────┴─ lifted ──────╯
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "kernel/engine/texels.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/image.h"
#include "kernel/inside.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/sass/lift.h"

#define IMAGE_MAX ((size_t)2 << 30) /* bytes of an image and of what is made of it */
#define DEVICE 90                   /* of a fat binary, the code for this architecture is taken */
#define VARIABLE_ALIGN 256u
#define KERNELS_MAX (1u << 20)

/* The number with which a driver would report an error that is not a grid's. */
static CUresult
number_of_error(enum heddle_error error)
{
    switch (error) {
    case HEDDLE_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case HEDDLE_BAD_IMAGE:
        return CUDA_ERROR_INVALID_IMAGE;
    case HEDDLE_NOT_FOUND:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case HEDDLE_REFUSED:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int
hed_image_fail(struct heddle_why *why, enum heddle_error error, int cuda, const char *because)
{
    if (why) {
        (void)snprintf(why->text, sizeof why->text, "%s", because ? because : "no reason given");
        why->cuda = cuda ? cuda : (int)number_of_error(error);
    }
    return error;
}

enum heddle_error
hed_image_error(int err)
{
    switch (err) {
    case HED_ENOMEM:
    case HED_ELIMIT:
        return HEDDLE_NO_MEMORY;
    case HED_ENOTFOUND:
        return HEDDLE_NOT_FOUND;
    case HED_ENOTSUP:
        return HEDDLE_REFUSED;
    default:
        return HEDDLE_BAD_IMAGE;
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

static struct hed_image_kernel *
add_image_kernel(struct heddle_image *image, const char *name)
{
    struct hed_image_kernel *more = image->kernels;

    if (image->kernel_count == image->kernel_room) {
        const uint32_t room = image->kernel_room ? image->kernel_room * 2 : 16;

        more = room <= KERNELS_MAX ? realloc(more, room * sizeof *more) : NULL;
        if (!more)
            return NULL;
        image->kernels = more;
        image->kernel_room = room;
    }
    more += image->kernel_count++;
    *more = (struct hed_image_kernel){.name = name};
    return more;
}

static int
list_image_kernels(struct heddle_image *image)
{
    for (const struct hed_ptx_func *f = image->module.funcs; f; f = f->next) {
        struct hed_image_kernel *k;
        struct hed_ptx_unit unit;

        if (!f->is_entry || !f->has_body)
            continue;
        k = add_image_kernel(image, f->name);

        const int err = k ? hed_ptx_unit_init(&unit, &image->module, f) : HED_ENOMEM;

        if (err)
            return err;
        k->func = f;
        k->shared = unit.shared_size;
        hed_ptx_unit_fini(&unit);
    }
    return 0;
}

/* ---- variables ------------------------------------------------------------------------------- */

struct layout {
    struct heddle_image *image;
    uint64_t size; /* so far */
    uint32_t count;
    const char *name; /* that is sought, or NULL */
    const struct hed_ptx_var *found;
    uint32_t found_at;
};

static void
place_variable(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct layout *l = arg;
    const uint64_t size = hed_ptx_var_is_reference(v) ? sizeof(union hed_reference_room) : v->size;

    l->image->vars[index] = l->size;
    l->size += hed_round_up(hed_min(size, IMAGE_MAX), VARIABLE_ALIGN);
}

static void
fill_variable(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    const struct layout *l = arg;
    unsigned char *at = (unsigned char *)(uintptr_t)l->image->vars[index];

    if (hed_ptx_var_is_reference(v)) {
        ((union hed_reference_room *)(void *)at)->magic = HED_UNBOUND_MAGIC;
        return;
    }
    if (v->init_size)
        memcpy(at, v->init, hed_min(v->init_size, v->size));
    hed_ptx_relocate_var(&l->image->module, v, at, l->image->vars, l->count);
}

static int
place_variables(struct heddle_image *image)
{
    struct layout l = {.image = image, .count = hed_ptx_var_count(&image->module)};

    image->vars = calloc(l.count + (size_t)1, sizeof *image->vars);
    if (!image->vars)
        return HED_ENOMEM;
    hed_ptx_each_var(&image->module, place_variable, &l);
    if (l.size > IMAGE_MAX)
        return HED_ELIMIT;
    image->bytes = heddle_memory_alloc(l.size);
    if (!image->bytes)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < l.count; i++)
        image->vars[i] += (uintptr_t)image->bytes;
    hed_ptx_each_var(&image->module, fill_variable, &l);
    return 0;
}

static void
seek_variable(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct layout *l = arg;

    if (!l->found && !v->owner && !hed_ptx_var_is_reference(v) && strcmp(v->name, l->name) == 0) {
        l->found = v;
        l->found_at = index;
    }
}

int
heddle_image_variable(const struct heddle_image *image, const char *name, void **at, size_t *size)
{
    struct layout l = {.name = name};

    if (!image || !name || !at)
        return HEDDLE_INVALID;
    hed_ptx_each_var(&image->module, seek_variable, &l);
    if (!l.found)
        return HEDDLE_NOT_FOUND;
    *at = (void *)(uintptr_t)image->vars[l.found_at];
    if (size)
        *size = l.found->size;
    return 0;
}

/* ---- from bytes to a module ------------------------------------------------------------------ */

static int
load_ptx(struct heddle_image *image, const void *text, size_t size, struct hed_why *why)
{
    const int err = hed_ptx_parse(&image->module, text, size);
    const struct hed_ptx_error *e = image->module.errors;

    if (err && e)
        hed_why_set(why, "PTX line %u, column %u: %.300s", e->line, e->column, e->text);
    else if (err)
        hed_why_set(why, "PTX cannot be read: %s", hed_err_text(err));
    else
        hed_ptx_leave_out_device_runtime(&image->module);
    return err;
}

/* Kernels that cannot be lifted are listed nevertheless, and refused when they are to run. */
struct lifting {
    struct heddle_image *image;
    const struct hed_sass_program *program;
    bool is_full;
};

static void
note_refused(void *arg, uint32_t kernel, const char *why)
{
    struct lifting *l = arg;
    const struct hed_bytes name = l->program->cubin.kernels[kernel].name;
    char *copy = hed_arena_alloc(&l->image->arena, name.size + 1, 1);
    struct hed_image_kernel *k = copy ? add_image_kernel(l->image, copy) : NULL;

    if (!k) {
        l->is_full = true;
        return;
    }
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    k->err = HED_ENOTSUP;
    hed_why_set(&k->why, "%s", why);
}

static int
load_cubin(struct heddle_image *image, struct hed_bytes cubin, struct hed_why *why)
{
    struct hed_sass_program *program;
    struct lifting l = {.image = image};
    struct hed_buf text;
    int err = hed_sass_open(cubin, &image->arena, &program, why);

    if (err)
        return err;
    image->is_lifted = true;
    l.program = program;
    hed_buf_init(&text, IMAGE_MAX);
    err = hed_sass_lift_module(program, note_refused, &l, &text, why);
    if (!err)
        err = l.is_full ? HED_ENOMEM : load_ptx(image, text.data, text.size, why);
    hed_buf_fini(&text);
    return err;
}

/* PTX, else machine code that can be lifted. */
static int
load_fatbin(struct heddle_image *image, struct hed_bytes fatbin, struct hed_why *why)
{
    struct hed_choose how = {.device = DEVICE, .flags = HED_CHOOSE_PTX_ONLY | HED_CHOOSE_NEWER_PTX};
    struct hed_fatbin_entry entry;
    struct hed_bytes bytes;
    int err = hed_fatbin_choose(fatbin, &how, &entry, why);

    if (err == HED_ENOTFOUND) {
        how.flags = HED_CHOOSE_CUBIN_ONLY;
        how.takes_cubin = hed_sass_lifts;
        err = hed_fatbin_choose(fatbin, &how, &entry, why);
    }
    if (!err)
        err = hed_fatbin_image(&entry, &image->arena, &bytes, why);
    if (err)
        return err;
    return entry.kind == HED_FATBIN_PTX ? load_ptx(image, bytes.data, bytes.size, why)
                                        : load_cubin(image, bytes, why);
}

static int
load_bytes(struct heddle_image *image, const void *bytes, size_t size, struct hed_why *why)
{
    struct hed_bytes b = {.size = size};
    struct hed_image in;
    /* The model points into the text, so it lives as long as the image. */
    void *copy = hed_arena_alloc(&image->arena, size + 1, 16);
    int err;

    if (!copy)
        return HED_ENOMEM;
    memcpy(copy, bytes, size);
    ((char *)copy)[size] = '\0';
    b.data = copy;
    err = hed_image_in(b, &in, why);
    if (err)
        return err;
    switch (in.kind) {
    case HED_IMAGE_FATBIN:
        err = load_fatbin(image, in.bytes, why);
        break;
    case HED_IMAGE_CUBIN:
        err = load_cubin(image, in.bytes, why);
        break;
    default:
        err = load_ptx(image, in.bytes.data, in.bytes.size, why);
    }
    if (!err)
        err = place_variables(image);
    return err ? err : list_image_kernels(image);
}

/* ---- the calls ------------------------------------------------------------------------------- */

int
heddle_image_open(const void *bytes, size_t size, struct heddle_image **out, struct heddle_why *why)
{
    struct heddle_image *image;
    struct hed_why because = {.text = ""};
    int err;

    if (!bytes || !out || size > IMAGE_MAX)
        return hed_image_fail(why, HEDDLE_INVALID, 0, "no image, or one of more than 2 GiB");
    image = calloc(1, sizeof *image);
    if (!image)
        return hed_image_fail(why, HEDDLE_NO_MEMORY, 0, "not enough memory for an image");
    hed_arena_init(&image->arena, IMAGE_MAX);
    hed_ptx_module_init(&image->module, HED_PTX_CEILING);
    hed_heap_init(&image->heap, NULL);
    hed_lock_init(&image->lock, HED_RANK_CODE);
    err = hed_image_engine_take(&image->engine, &because);
    if (!err)
        err = load_bytes(image, bytes, size, &because);
    if (err) {
        const bool is_bad_text = image->module.errors && !image->is_lifted;

        heddle_image_close(image);
        return hed_image_fail(why, hed_image_error(err), is_bad_text ? CUDA_ERROR_INVALID_PTX : 0,
                              because.text[0] ? because.text : hed_err_text(err));
    }
    *out = image;
    return 0;
}

void
heddle_image_close(struct heddle_image *image)
{
    if (!image)
        return;
    if (image->engine)
        hed_image_engine_give();
    for (uint32_t i = 0; i < image->kernel_count; i++)
        hed_interp_free(image->kernels[i].program);
    free(image->kernels);
    free(image->vars);
    heddle_memory_free(image->bytes);
    hed_heap_fini(&image->heap);
    hed_ptx_module_fini(&image->module);
    hed_arena_fini(&image->arena);
    hed_lock_fini(&image->lock);
    free(image);
}

struct hed_image_kernel *
hed_image_kernel_of(const struct heddle_image *image, int kernel)
{
    return image && kernel >= 0 && (uint32_t)kernel < image->kernel_count ? &image->kernels[kernel]
                                                                          : NULL;
}

int
heddle_image_count(const struct heddle_image *image)
{
    return image ? (int)image->kernel_count : 0;
}

int
heddle_image_find(const struct heddle_image *image, const char *name)
{
    for (int i = 0; name && i < heddle_image_count(image); i++)
        if (strcmp(image->kernels[i].name, name) == 0)
            return i;
    return HEDDLE_NOT_FOUND;
}

int
heddle_image_kernel(const struct heddle_image *image, int kernel, struct heddle_kernel *out)
{
    const struct hed_image_kernel *k = hed_image_kernel_of(image, kernel);
    struct heddle_kernel known = {.size = sizeof known};

    if (!k || !out || out->size < sizeof out->size)
        return HEDDLE_INVALID;
    known.size = out->size;
    known.name = k->name;
    known.shared = k->shared;
    if (k->func) {
        const struct hed_ptx_directives *d = &k->func->directives;

        known.params = k->func->sig.nparams;
        known.param_bytes = (uint32_t)k->func->sig.params_size;
        known.max_threads = hed_image_threads(d->maxntid);
        for (int i = 0; i < 3; i++)
            known.required[i] = d->reqntid[i] ? d->reqntid[i] : d->reqntid[0] ? 1 : 0;
    }
    memcpy(out, &known, hed_min(out->size, sizeof known));
    return 0;
}

int
heddle_image_param(const struct heddle_image *image, int kernel, uint32_t param,
                   struct heddle_param *out)
{
    const struct hed_image_kernel *k = hed_image_kernel_of(image, kernel);
    const struct hed_ptx_var *v = k && k->func ? k->func->sig.params : NULL;

    while (v && param--)
        v = v->next;
    if (!v || !out)
        return HEDDLE_INVALID;
    *out = (struct heddle_param){(uint32_t)v->offset, (uint32_t)v->size};
    return 0;
}
