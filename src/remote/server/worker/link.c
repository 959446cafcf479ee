/* Linking for a client: cuLinkCreate and the calls after it. See library.h.
 *
 * The inputs are images like others, sent and found by their hashes. The driver gets the length of
 * each and copies what it needs.
 */
#include <string.h>

#include "base/err.h"
#include "remote/server/worker/images.h"
#include "remote/server/worker/intact.h"
#include "remote/server/worker/library.h"
#include "remote/server/worker/worker.h"

/* The image's name, after the options. NULL if it has no end. */
static const char *
input_name(const struct hed_open_body *b)
{
    const size_t at = sizeof *b + (size_t)b->options * sizeof(struct hed_wire_jit);
    const char *name = (const char *)b + at;

    return at < b->head.size && memchr(name, 0, b->head.size - at) ? name : NULL;
}

/* Machine code and fat binaries contain their own length, and the driver believes it. */
static bool
is_input_intact(const struct hed_open_body *b, const void *image)
{
    return (b->type != CU_JIT_INPUT_CUBIN && b->type != CU_JIT_INPUT_FATBINARY) ||
           hed_image_is_intact(image, b->size, true);
}

static CUresult
add_input(struct hed_worker *w, struct hed_worker_library *lib, const struct hed_open_body *b)
{
    void *image;
    const int err = hed_images_map(w->code->images, b->hash, b->size, &image);
    CUresult r = CUDA_ERROR_INVALID_IMAGE;

    if (err)
        return err == HED_ENOTFOUND ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OUT_OF_MEMORY;
    /* PTX is passed with its terminating 0, which follows every image. */
    if (is_input_intact(b, image))
        r = hed_worker_do(w, cuLinkAddData_v2, .state = lib->link, .type = (CUjitInputType)b->type,
                          .data = image, .size = (size_t)b->size + (b->type == CU_JIT_INPUT_PTX),
                          .name = input_name(b));
    hed_images_unmap(image, b->size);
    return r;
}

/* Copies the result, whose bytes belong to the linker, and destroys the linker. */
static CUresult
finish_link(struct hed_worker *w, struct hed_worker_library *lib)
{
    void *made = NULL;
    size_t size = 0;
    CUresult r =
        hed_worker_do(w, cuLinkComplete, .state = lib->link, .cubinOut = &made, .sizeOut = &size);

    if (r == CUDA_SUCCESS && made && size)
        hed_buf_add(&lib->contents, made, size);
    if (r == CUDA_SUCCESS && (lib->contents.err || !lib->contents.size))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    (void)hed_worker_do(w, cuLinkDestroy, .state = lib->link);
    lib->link = NULL;
    return r;
}

CUresult
hed_worker_link(struct hed_worker *w, struct hed_worker_library *lib, const struct hed_open_body *b,
                int *err)
{
    struct hed_jit_room *j = lib->jit;
    CUresult r = CUDA_SUCCESS;

    if (b->size > HED_IMAGE_MAX || b->type >= CU_JIT_NUM_INPUT_TYPES || b->options > j->count ||
        (b->size && !input_name(b)) || (lib->links && !lib->link)) {
        *err = HED_EFORMAT;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!lib->links) {
        lib->links = true;
        r = hed_worker_do(w, cuLinkCreate_v2, .numOptions = j->count,
                          .options = j->count ? j->options : NULL,
                          .optionValues = j->count ? j->values : NULL, .stateOut = &lib->link);
        if (r == CUDA_SUCCESS && !lib->link) /* the backend does no work */
            r = CUDA_ERROR_NOT_SUPPORTED;
    }
    if (r == CUDA_SUCCESS && b->size)
        r = add_input(w, lib, b);
    if (r == CUDA_SUCCESS && b->flags & HED_OPEN_LAST)
        r = finish_link(w, lib);
    return r;
}
