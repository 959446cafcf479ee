/* Libraries of a worker that runs nothing (null): their contents are found here. See code.h. */
#include <string.h>

#include "base/err.h"
#include "driver/driver.h"
#include "kernel/fatbin.h"
#include "remote/client/code.h"

#define REGISTERS 32     /* of a kernel that has not been compiled: a plausible number */
#define PARAMS_MAX 4096u /* parameters that are read */

static int
make_kernel_room(struct hed_remote_library *c, uint32_t count)
{
    c->kernels = hed_arena_alloc(&c->arena, (count + (size_t)1) * sizeof *c->kernels, 8);
    c->described = hed_arena_alloc(&c->arena, (count + (size_t)1) * sizeof *c->described, 8);
    if (!c->kernels || !c->described)
        return HED_ENOMEM;
    memset(c->kernels, 0, count * sizeof *c->kernels);
    for (uint32_t i = 0; i < count; i++)
        atomic_init(&c->described[i], true);
    c->code.kernels = c->kernels;
    c->code.kernel_count = count;
    return 0;
}

/* ---- machine code ---------------------------------------------------------------------------- */

static int
describe_cubin(struct hed_remote_library *c, struct hed_bytes cubin)
{
    struct hed_why why;
    int err = hed_cubin_describe(cubin, &c->local, &why);

    if (err == 0)
        err = make_kernel_room(c, c->local->kernel_count);
    for (uint32_t i = 0; err == 0 && i < c->local->kernel_count; i++) {
        c->kernels[i] = c->local->kernels[i];
        c->kernels[i].has_code = true;
    }
    return err;
}

/* ---- PTX ------------------------------------------------------------------------------------- */

static int
describe_ptx_kernel(struct hed_arena *a, const struct hed_ptx_glance *g,
                    const struct hed_ptx_place *places, struct hed_code_kernel *out)
{
    const uint32_t n = g->param_count < PARAMS_MAX ? g->param_count : PARAMS_MAX;
    char *name = hed_arena_alloc(a, g->name.size + 1, 1);
    struct hed_code_param *params = hed_arena_alloc(a, (n + (size_t)1) * sizeof *params, 8);

    if (!name || !params)
        return HED_ENOMEM;
    memcpy(name, g->name.data, g->name.size);
    name[g->name.size] = '\0';
    for (uint32_t i = 0; i < n; i++)
        params[i] = (struct hed_code_param){places[i].offset, places[i].size};
    *out = (struct hed_code_kernel){.name = name,
                                    .params = params,
                                    .param_count = n,
                                    .param_bytes = g->param_bytes,
                                    .registers = REGISTERS,
                                    .max_threads = g->max_threads,
                                    .has_code = true};
    memcpy(out->required, g->required, sizeof out->required);
    return 0;
}

static int
describe_ptx(struct hed_remote_library *c, struct hed_bytes text)
{
    struct hed_ptx_place places[PARAMS_MAX];
    struct hed_ptx_glance g;
    uint32_t count = 0, i = 0;
    size_t at = 0;
    int err;

    while (count < HED_KERNELS_MAX && hed_ptx_next_kernel(text, &at, &g, NULL, 0))
        count++;
    err = make_kernel_room(c, count);
    for (at = 0; err == 0 && i < count; i++)
        err = hed_ptx_next_kernel(text, &at, &g, places, PARAMS_MAX)
                  ? describe_ptx_kernel(&c->arena, &g, places, &c->kernels[i])
                  : HED_EFORMAT;
    return err;
}

/* Describes the parts of a linked program, joined as a CPU GPU joins them. */
static int
describe_parts(struct hed_remote_library *c, const struct hed_image *image,
               const struct hed_profile *profile)
{
    struct hed_buf joined;
    struct hed_why why = {""};
    size_t missing;
    uint32_t arch;
    int err = 0;

    if (!image->parts)
        return make_kernel_room(c, 0);
    hed_buf_init(&joined, HED_PROGRAM_MAX);

    const CUresult r =
        hed_image_join(profile, image->parts, &c->arena, &joined, &arch, &missing, &why);

    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        err = HED_ENOMEM;
    else
        err = describe_ptx(c, (struct hed_bytes){joined.data, joined.size});
    hed_buf_fini(&joined);
    return err;
}

int
hed_remote_describe_here(struct hed_remote_library *c, const struct hed_image *image,
                         const struct hed_profile *profile)
{
    struct hed_bytes bytes = image->bytes;
    int err;

    if (image->kind == HED_IMAGE_CUBIN)
        err = describe_cubin(c, bytes);
    else if (image->kind == HED_IMAGE_PTX)
        err = describe_ptx(c, bytes);
    else if (hed_remote_any(image->bytes, HED_FATBIN_CUBIN, &c->arena, &bytes) == 0)
        err = describe_cubin(c, bytes);
    else if (hed_remote_any(image->bytes, HED_FATBIN_PTX, &c->arena, &bytes) == 0)
        err = describe_ptx(c, hed_bytes_text(bytes));
    else
        err = describe_parts(c, image, profile);
    return err == HED_ENOMEM ? err : 0;
}
