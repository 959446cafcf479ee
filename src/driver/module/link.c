/* Linking at run time: cuLinkCreate and the calls that follow it.
 *
 * Inputs with PTX are joined into one PTX text (join.c). The "cubin" that cuLinkComplete returns is
 * a fat binary of our own with this text; cuModuleLoadData accepts it and copies of it. Machine
 * code cannot be linked here: a single input without PTX is returned unchanged, and one that comes
 * with others is refused.
 *
 * A machine that has a linker (machine->link_made) gets every input as it comes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/module/image.h"
#include "driver/module/jit.h"
#include "driver/module/link_find.h"
#include "driver/module/module.h"
#include "kernel/fatbin.h"

#define INPUTS_MAX 4096

/* The API requires that only one thread at a time uses a state; the handle merely keeps it from
 * being freed during a call. */
struct link {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_device *device; /* the device it is linked for */
    struct hed_jit jit;
    struct hed_arena arena;
    struct hed_bytes texts[INPUTS_MAX]; /* PTX, in the arena */
    size_t count;
    struct hed_bytes machine;  /* the last input without PTX, in the arena */
    size_t machine_count;      /* inputs without PTX */
    struct hed_linker *linker; /* the machine's linker; NULL: PTX is joined here */
    bool done;
    struct hed_buf out;
};

static void
link_destroy(struct hed_object *o)
{
    struct link *l = (struct link *)o;

    if (l->linker)
        l->driver->machine->link_gone(l->driver->machine_state, l->linker);
    hed_buf_fini(&l->jit.log);
    hed_buf_fini(&l->out);
    hed_arena_fini(&l->arena);
    free(l);
}

static struct link *
find_link(struct hed_layer *self, CUlinkState handle)
{
    return (struct link *)hed_handles_get(hed_driver_of(self)->handles, HED_KIND_LINK,
                                          (uint64_t)(uintptr_t)handle);
}

/* Asks the machine for a linker. */
static CUresult
find_linker(struct link *l)
{
    const struct hed_machine *m = l->driver->machine;
    const CUresult r = m->link_made(l->driver->machine_state, l->device, &l->jit.how, &l->linker);

    return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : r;
}

static CUresult
create_link(struct hed_layer *self, unsigned count, CUjit_option *options, void **values,
            CUlinkState *out)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;

    struct link *l = calloc(1, sizeof *l);

    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->object.destroy = link_destroy;
    l->driver = hed_driver_of(self);
    l->device = c->device;
    hed_arena_init(&l->arena, HED_PROGRAM_MAX);
    hed_buf_init(&l->out, HED_PROGRAM_MAX);
    r = hed_jit_begin(&l->jit, count, options, values);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        hed_stats_unsupported(HED_API_CUDA, HED_cuLinkCreate_v2, "an option of the soft driver");
    if (r == CUDA_SUCCESS)
        r = find_linker(l);
    if (r == CUDA_SUCCESS && hed_handles_add(l->driver->handles, HED_KIND_LINK, &l->object) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        link_destroy(&l->object);
        return r;
    }
    *out = (CUlinkState)(uintptr_t)l->object.handle;
    return CUDA_SUCCESS;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Copies an input; the copy lives as long as the state and ends with a NUL. */
static CUresult
keep_input(struct link *l, struct hed_bytes b, struct hed_bytes *out)
{
    unsigned char *copy = hed_arena_alloc(&l->arena, b.size + 1, 16);

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (b.size)
        memcpy(copy, b.data, b.size);
    copy[b.size] = 0;
    *out = (struct hed_bytes){copy, b.size};
    return CUDA_SUCCESS;
}

static CUresult
keep_machine_code(struct link *l, struct hed_bytes b)
{
    l->machine_count++;
    return keep_input(l, b, &l->machine);
}

/* PTX is parsed when it is added, so that errors can be reported with its name. */
static CUresult
link_add_text(struct link *l, struct hed_bytes text)
{
    const struct hed_image image = {.kind = HED_IMAGE_PTX, .bytes = hed_bytes_text(text)};
    struct hed_program *p;

    if (l->count == INPUTS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;

    struct hed_jit_how how = l->jit.how;

    how.log = &l->jit.log;
    how.now = true;

    CUresult r = hed_program_open(l->device, &image, &how, &p);

    if (r != CUDA_SUCCESS)
        return r;
    hed_program_unref(p);
    r = keep_input(l, image.bytes, &l->texts[l->count]);
    l->count += r == CUDA_SUCCESS;
    return r;
}

/* Adds the PTX in a fat binary that fits the device; NOT_FOUND if there is none. */
static CUresult
add_fatbin(struct link *l, struct hed_bytes fatbin)
{
    const struct hed_profile *p = &l->device->info.profile;
    const struct hed_choose how = {.device = (uint32_t)(10 * p->major + p->minor),
                                   .flags = hed_ptx_only(p)};
    struct hed_fatbin_entry e;
    struct hed_bytes text;
    struct hed_why why;

    if (hed_fatbin_choose(fatbin, &how, &e, &why) != 0)
        return CUDA_ERROR_NOT_FOUND;
    if (hed_fatbin_image(&e, &l->arena, &text, &why) != 0) {
        hed_buf_addf(&l->jit.log, "%s\n", why.text);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return link_add_text(l, text);
}

static CUresult
link_add_image(struct link *l, struct hed_bytes b)
{
    struct hed_image image;
    struct hed_why why;
    CUresult r = CUDA_ERROR_NOT_FOUND;

    if (hed_image_in(b, &image, &why) != 0) {
        hed_buf_addf(&l->jit.log, "%s\n", why.text);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (image.kind == HED_IMAGE_PTX)
        return link_add_text(l, image.bytes);
    if (image.kind == HED_IMAGE_FATBIN)
        r = add_fatbin(l, image.bytes);
    return r == CUDA_ERROR_NOT_FOUND ? keep_machine_code(l, image.bytes) : r;
}

static CUresult
add_of_object(void *arg, struct hed_bytes fatbin)
{
    const CUresult r = add_fatbin(arg, fatbin);

    return r == CUDA_ERROR_NOT_FOUND ? keep_machine_code(arg, fatbin) : r;
}

/* Of a library, a program takes what it needs. What it has not got is found when it is called. */
static CUresult
add_of_library(void *arg, struct hed_bytes fatbin)
{
    const CUresult r = add_fatbin(arg, fatbin);

    return r == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : r;
}

/* The machine returns the whole log every time. */
static CUresult
add_to_linker(struct link *l, CUjitInputType type, struct hed_bytes b, const char *name)
{
    const struct hed_linker_input input = {type, b.data, b.size, name};

    hed_buf_reset(&l->jit.log);
    return l->driver->machine->link_add(l->driver->machine_state, l->linker, &input,
                                        l->jit.how.log);
}

static CUresult
link_add_input(struct link *l, CUjitInputType type, struct hed_bytes b, const char *name)
{
    if (l->linker && (unsigned)type < CU_JIT_NUM_INPUT_TYPES)
        return add_to_linker(l, type, b, name);
    switch (type) {
    case CU_JIT_INPUT_PTX:
        return link_add_text(l, b);
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
        return link_add_image(l, b);
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
        /* The device runtime, with which kernels launch kernels, is built in. */
        if (name && strstr(name, "cudadevrt")) {
            hed_buf_addf(&l->jit.log, "%s is not needed\n", name);
            return CUDA_SUCCESS;
        }
        return hed_link_find(b, type == CU_JIT_INPUT_OBJECT ? add_of_object : add_of_library, l);
    case CU_JIT_INPUT_NVVM:
        hed_stats_unsupported(HED_API_CUDA, HED_cuLinkAddData_v2, "the soft driver (NVVM)");
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Options of one input are checked, but only those of the state say where logs go. */
static CUresult
add_checked(struct link *l, CUjitInputType type, struct hed_bytes b, const char *name,
            unsigned count, CUjit_option *options, void **values)
{
    struct hed_jit own;
    CUresult r = hed_jit_begin(&own, count, options, values);

    hed_buf_fini(&own.log);
    if (r == CUDA_SUCCESS && l->done)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = link_add_input(l, type, b, name);
    hed_jit_report(&l->jit, r);
    return r;
}

static CUresult
add_data(struct hed_layer *self, const struct hed_cuLinkAddData_v2 *a)
{
    struct link *l = find_link(self, a->state);

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;

    const struct hed_bytes b = {a->data, a->size};
    const CUresult r = a->data && a->size ? add_checked(l, a->type, b, a->name, a->numOptions,
                                                        a->options, a->optionValues)
                                          : CUDA_ERROR_INVALID_VALUE;

    hed_object_put(&l->object);
    return r;
}

static CUresult
link_add_file(struct hed_layer *self, const struct hed_cuLinkAddFile_v2 *a)
{
    struct link *l = find_link(self, a->state);
    struct hed_bytes file;
    struct hed_why why;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->path) {
        r = CUDA_ERROR_FILE_NOT_FOUND;
        if (hed_fatbin_map(a->path, &file, &why) == 0) {
            r = add_checked(l, a->type, file, a->path, a->numOptions, a->options, a->optionValues);
            hed_fatbin_unmap(file);
        }
    }
    hed_object_put(&l->object);
    return r;
}

/* ---- the result ------------------------------------------------------------------------------ */

#define OPTIONS_SIZE 16 /* their position, their length, and a NUL: drivers always look for them */

/* Writes a fat binary with one PTX entry; docs/internals/fatbin.md has the layout. */
static void
put_fatbin(struct hed_buf *out, const struct hed_buf *text, const struct hed_ptx_head *head)
{
    static const unsigned char zeros[8];
    const uint64_t stored = (text->size + 1 + 7) / 8 * 8;
    unsigned char header[HED_FATBIN_HEADER_SIZE] = {0};
    unsigned char entry[HED_FATBIN_ENTRY_SIZE + OPTIONS_SIZE] = {0};
    const uint32_t options = HED_FATBIN_ENTRY_SIZE, option_text = options + 8;
    const uint32_t magic = HED_FATBIN_MAGIC;
    const uint16_t version = 1, header_size = sizeof header;
    const uint64_t rest = sizeof entry + stored;
    const uint16_t kind = HED_FATBIN_PTX, entry_version = 0x0101;
    const uint32_t entry_size = sizeof entry;
    const uint64_t flags = HED_FATBIN_64BIT | HED_FATBIN_LINUX |
                           (head->arch.suffix == 'a'   ? HED_FATBIN_ARCH_EXACT
                            : head->arch.suffix == 'f' ? HED_FATBIN_ARCH_FAMILY
                                                       : 0);

    memcpy(header, &magic, 4);
    memcpy(header + 4, &version, 2);
    memcpy(header + 6, &header_size, 2);
    memcpy(header + 8, &rest, 8);
    memcpy(entry, &kind, 2);
    memcpy(entry + 2, &entry_version, 2);
    memcpy(entry + 4, &entry_size, 4);
    memcpy(entry + 8, &stored, 8);
    memcpy(entry + 0x14, &options, 4);
    memcpy(entry + options, &option_text, 4);
    memcpy(entry + 0x18, &head->minor, 2);
    memcpy(entry + 0x1A, &head->major, 2);
    memcpy(entry + 0x1C, &head->arch.number, 4);
    memcpy(entry + 0x28, &flags, 8);
    hed_buf_add(out, header, sizeof header);
    hed_buf_add(out, entry, sizeof entry);
    hed_buf_add(out, text->data, text->size);
    hed_buf_add(out, zeros, (size_t)(stored - text->size));
}

static CUresult
join_inputs(struct link *l)
{
    const struct hed_profile *p = &l->device->info.profile;
    struct hed_buf text;
    struct hed_ptx_head head;
    struct hed_why why = {""};
    int err = 0;

    hed_buf_init(&text, HED_PROGRAM_MAX);
    if (l->count)
        err = hed_ptx_join(l->texts, l->count, &text, &why);
    else
        hed_buf_addf(&text, ".version 7.0\n.target sm_%d%d\n.address_size 64\n", p->major,
                     p->minor);
    if (err == 0)
        err = text.err;
    if (err == 0 && !hed_ptx_begins((struct hed_bytes){text.data, text.size}, &head))
        err = HED_EFORMAT;
    if (err == 0) {
        put_fatbin(&l->out, &text, &head);
        err = l->out.err;
    } else {
        hed_buf_addf(&l->jit.log, "%s\n", why.text);
    }
    hed_buf_fini(&text);
    return err == 0                                 ? CUDA_SUCCESS
           : err == HED_ENOMEM || err == HED_ELIMIT ? CUDA_ERROR_OUT_OF_MEMORY
                                                    : CUDA_ERROR_INVALID_PTX;
}

static CUresult
complete_link(struct link *l)
{
    if (l->linker) {
        hed_buf_reset(&l->jit.log);
        return l->driver->machine->link_end(l->driver->machine_state, l->linker, &l->out,
                                            l->jit.how.log);
    }
    if (l->machine_count + l->count > 1 && l->machine_count) {
        hed_buf_addf(&l->jit.log,
                     "machine code cannot be linked here; %zu of %zu inputs have no PTX "
                     "(nvcc -gencode arch=compute_80,code=compute_80)\n",
                     l->machine_count, l->machine_count + l->count);
        hed_stats_unsupported(HED_API_CUDA, HED_cuLinkComplete, "the soft driver (machine code)");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!l->machine_count)
        return join_inputs(l);
    hed_buf_add(&l->out, l->machine.data, l->machine.size);
    return l->out.err ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult
soft_cuLinkComplete(struct hed_layer *self, struct hed_cuLinkComplete *a)
{
    struct link *l = find_link(self, a->state);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    if (l->done) {
        r = CUDA_ERROR_INVALID_HANDLE;
    } else if (a->cubinOut) {
        r = complete_link(l);
        l->done = true;
        hed_jit_report(&l->jit, r);
    }
    if (r == CUDA_SUCCESS) {
        *a->cubinOut = l->out.data;
        if (a->sizeOut)
            *a->sizeOut = l->out.size;
    }
    hed_object_put(&l->object);
    return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static CUresult
soft_cuLinkCreate(struct hed_layer *self, struct hed_cuLinkCreate *a)
{
    return create_link(self, a->numOptions, a->options, a->optionValues, a->stateOut);
}

static CUresult
soft_cuLinkCreate_v2(struct hed_layer *self, struct hed_cuLinkCreate_v2 *a)
{
    return create_link(self, a->numOptions, a->options, a->optionValues, a->stateOut);
}

static CUresult
soft_cuLinkAddData(struct hed_layer *self, struct hed_cuLinkAddData *a)
{
    return add_data(self,
                    &(struct hed_cuLinkAddData_v2){a->state, a->type, a->data, a->size, a->name,
                                                   a->numOptions, a->options, a->optionValues});
}

static CUresult
soft_cuLinkAddData_v2(struct hed_layer *self, struct hed_cuLinkAddData_v2 *a)
{
    return add_data(self, a);
}

static CUresult
soft_cuLinkAddFile(struct hed_layer *self, struct hed_cuLinkAddFile *a)
{
    return link_add_file(self,
                         &(struct hed_cuLinkAddFile_v2){a->state, a->type, a->path, a->numOptions,
                                                        a->options, a->optionValues});
}

static CUresult
soft_cuLinkAddFile_v2(struct hed_layer *self, struct hed_cuLinkAddFile_v2 *a)
{
    return link_add_file(self, a);
}

static CUresult
soft_cuLinkDestroy(struct hed_layer *self, struct hed_cuLinkDestroy *a)
{
    struct hed_object *o = hed_handles_remove(hed_driver_of(self)->handles, HED_KIND_LINK,
                                              (uint64_t)(uintptr_t)a->state);

    if (!o)
        return CUDA_ERROR_INVALID_HANDLE;
    hed_object_put(o);
    return CUDA_SUCCESS;
}

const struct hed_cuda_ops hed_calls_link = {
    .cuLinkCreate = soft_cuLinkCreate,
    .cuLinkCreate_v2 = soft_cuLinkCreate_v2,
    .cuLinkAddData = soft_cuLinkAddData,
    .cuLinkAddData_v2 = soft_cuLinkAddData_v2,
    .cuLinkAddFile = soft_cuLinkAddFile,
    .cuLinkAddFile_v2 = soft_cuLinkAddFile_v2,
    .cuLinkComplete = soft_cuLinkComplete,
    .cuLinkDestroy = soft_cuLinkDestroy,
};
