/* Functions: kernels in contexts, under the client's names. See code.h. */
#include <stdlib.h>

#include "base/err.h"
#include "remote/server/worker/library.h"
#include "remote/server/worker/worker.h"

struct hed_worker_function *
hed_worker_function(struct hed_worker_code *c, uint64_t name)
{
    const uint32_t index = hed_name_slot(name);
    struct hed_worker_function *chunk = index / HED_FUNCTION_CHUNK < HED_FUNCTION_CHUNKS
                                            ? c->functions[index / HED_FUNCTION_CHUNK]
                                            : NULL;

    return chunk && chunk[index % HED_FUNCTION_CHUNK].name == name && name
               ? &chunk[index % HED_FUNCTION_CHUNK]
               : NULL;
}

int
hed_worker_function_add(struct hed_worker *w, uint64_t name, CUfunction real, uint32_t param_bytes)
{
    struct hed_worker_code *c = w->code;
    const uint32_t index = hed_name_slot(name);

    if (index / HED_FUNCTION_CHUNK >= HED_FUNCTION_CHUNKS)
        return HED_EFORMAT;

    struct hed_worker_function **chunk = &c->functions[index / HED_FUNCTION_CHUNK];

    if (!*chunk && !(*chunk = calloc(HED_FUNCTION_CHUNK, sizeof **chunk)))
        return HED_ENOMEM;
    if ((*chunk)[index % HED_FUNCTION_CHUNK].name || !hed_name_fits(name, "function") ||
        hed_name_bind(w->names, name, (uint64_t)(uintptr_t)real) != 0)
        return HED_EFORMAT;
    (*chunk)[index % HED_FUNCTION_CHUNK] =
        (struct hed_worker_function){.name = name, .real = real, .param_bytes = param_bytes};
    return 0;
}

/* A function must be forgotten with its context or library, because its handle then means nothing
 * to the driver. */
void
hed_worker_functions_forget(struct hed_worker *w, uint64_t context, const void *library)
{
    for (uint32_t i = 0; w->code && i < HED_FUNCTION_CHUNKS; i++) {
        struct hed_worker_function *chunk = w->code->functions[i];

        for (uint32_t k = 0; chunk && k < HED_FUNCTION_CHUNK; k++) {
            struct hed_worker_function *f = &chunk[k];

            if (!f->name ||
                !((context && f->context == context) || (library && f->library == library)))
                continue;
            (void)hed_name_unbind(w->names, f->name, NULL);
            *f = (struct hed_worker_function){.name = 0};
        }
    }
}

static int
forget_function(struct hed_worker *w, uint64_t name)
{
    struct hed_worker_function *f = hed_worker_function(w->code, name);

    if (f) {
        (void)hed_name_unbind(w->names, name, NULL);
        *f = (struct hed_worker_function){.name = 0};
    }
    return 0; /* it may never have been made */
}

static CUresult
make_function(struct hed_worker *w, struct hed_worker_library *lib, const struct hed_kernel_body *b,
              int *err)
{
    CUkernel kernel = NULL;
    CUfunction real = NULL;
    CUresult r = CUDA_SUCCESS;
    uint32_t params = HED_PARAMS_UNKNOWN;

    if (w->no_memory) { /* nothing is known of its kernels, and any will do */
        r = hed_worker_do(w, cuLibraryGetKernel, .pKernel = &kernel, .library = lib->real,
                          .name = "any");
    } else {
        kernel = lib->kernels[b->index];
        params = hed_worker_param_bytes(w, lib, b->index);
    }
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuKernelGetFunction, .pFunc = &real, .kernel = kernel);
    if (r == CUDA_SUCCESS)
        *err = hed_worker_function_add(w, b->function, real, params);
    if (r == CUDA_SUCCESS && !*err) {
        struct hed_worker_function *f = hed_worker_function(w->code, b->function);

        f->context = b->head.context;
        f->library = lib;
    }
    return r;
}

static int
answer_kernel(struct hed_worker_channel *ch, const struct hed_kernel_body *b,
              struct hed_worker_library *lib)
{
    struct hed_answer a = {.result = 0};
    struct hed_buf description;
    CUresult r = CUDA_ERROR_NOT_FOUND;

    hed_buf_init(&description, HED_BULK_CHUNK);
    if (!ch->worker->no_memory)
        r = hed_worker_describe(ch->worker, lib, b->index, b->device, false, true, &description);

    const uint64_t bulk = r == CUDA_SUCCESS ? description.size : 0;
    int err = hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, bulk);

    if (!err && bulk)
        err = hed_channel_bulk_write(ch->channel, description.data, bulk);
    hed_buf_fini(&description);
    return err;
}

int
hed_do_kernel(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_kernel_body *b = (const struct hed_kernel_body *)m;
    struct hed_worker *w = ch->worker;
    int err = 0;

    if (!w->code || m->size < sizeof *b || m->bulk)
        return HED_EFORMAT;
    if (b->forget)
        return forget_function(w, b->function);

    struct hed_worker_library *lib = hed_worker_library(w->code, b->code);

    if (!lib || lib->links || b->device < 0 || b->device >= w->device_count ||
        (b->index >= lib->kernel_count && !w->no_memory))
        return HED_EFORMAT;
    if (b->function)
        hed_worker_failed(w, m->context, make_function(w, lib, b, &err));
    return err || !(m->flags & HED_MSG_WANTS_ANSWER) ? err : answer_kernel(ch, b, lib);
}
