/* Linking on the worker if it has a real device: its driver's cuLink* calls, one by one. A linker
 * has a number, as a library does. Otherwise PTX is linked here (driver/module/link.c). */
#include <stdlib.h>
#include <string.h>

#include "remote/client/code.h"
#include "remote/client/memory.h"

#define LOST CUDA_ERROR_DEVICE_UNAVAILABLE
#define NAME_MAX_BYTES 256u

struct hed_linker {
    struct hed_remote_library code; /* only its number and remote are used */
    struct hed_device *device;
    struct hed_jit_how how;
};

/* Sends one message. The first makes the linker. */
static CUresult
link_step(struct hed_remote_opening *o)
{
    const char *name = o->input && o->input->name ? o->input->name : "";
    const uint32_t n = (uint32_t)strnlen(name, NAME_MAX_BYTES - 1);
    const uint32_t extra = o->how->count * (uint32_t)sizeof(struct hed_wire_jit) + n + 1;
    struct hed_remote_channel *channel;
    struct hed_open_answer a;
    struct hed_open_body *b = hed_remote_begin_open(o->code, HED_OPEN_LINK,
                                                    hed_remote_current(o->remote), extra, &channel);

    if (!b)
        return LOST;
    b->device = hed_remote_ordinal(o->remote, o->device);
    b->flags = o->last ? HED_OPEN_LAST : 0;
    if (o->input) {
        b->type = o->input->type;
        b->size = o->bytes.size;
        memcpy(b->hash, o->hash, sizeof b->hash);
    }

    const uint32_t at = hed_remote_put_options(b, o->how);

    memcpy((char *)b + at, name, n); /* the terminating 0 is there already */
    if (hed_remote_end(channel, &b->head, at + n + 1) != 0)
        return LOST;

    const CUresult r = hed_remote_open_answer(o, channel, &a);

    return r == CUDA_SUCCESS && o->last ? hed_remote_open_more(o, a.contents) : r;
}

CUresult
hed_remote_link_made(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                     struct hed_linker **out)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_remote_opening o = {.remote = r, .device = dev, .how = how};
    struct hed_linker *l;
    CUresult result;

    if (!r->devices[dev->ordinal].real)
        return CUDA_ERROR_NOT_SUPPORTED;
    l = calloc(1, sizeof *l);
    if (!l || !hed_remote_take_number(r, &l->code.number)) {
        free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->code.remote = r;
    l->device = dev;
    l->how = *how;
    l->how.log = NULL;
    o.code = &l->code;
    hed_buf_init(&o.contents, HED_CONTENTS_MAX);
    result = link_step(&o);
    hed_buf_fini(&o.contents);
    if (result != CUDA_SUCCESS) {
        hed_remote_give_number(r, l->code.number);
        free(l);
        return result;
    }
    *out = l;
    return CUDA_SUCCESS;
}

/* The options were sent when the linker was made; after that, only whether the log is wanted
 * matters. */
static struct hed_remote_opening
link_opening(struct hed_linker *l, struct hed_jit_how *how, struct hed_buf *log)
{
    *how = (struct hed_jit_how){.log = log};
    return (struct hed_remote_opening){
        .remote = l->code.remote, .code = &l->code, .device = l->device, .how = how};
}

CUresult
hed_remote_link_add(void *m, struct hed_linker *l, const struct hed_linker_input *input,
                    struct hed_buf *log)
{
    struct hed_jit_how how;
    struct hed_remote_opening o = link_opening(l, &how, log);
    struct hed_bytes bytes = {input->data, input->size};
    CUresult r;

    (void)m;
    if (input->type == CU_JIT_INPUT_PTX)
        bytes = hed_bytes_text(bytes); /* the worker adds a 0 behind it */
    if (bytes.size == 0 || bytes.size > HED_IMAGE_MAX)
        return CUDA_ERROR_INVALID_IMAGE;
    o.bytes = bytes;
    o.input = input;
    hed_buf_init(&o.contents, HED_CONTENTS_MAX);
    r = hed_remote_with_image(&o, link_step);
    hed_buf_fini(&o.contents);
    return r;
}

CUresult
hed_remote_link_end(void *m, struct hed_linker *l, struct hed_buf *out, struct hed_buf *log)
{
    struct hed_jit_how how;
    struct hed_remote_opening o = link_opening(l, &how, log);
    CUresult r;

    (void)m;
    o.last = true;
    hed_buf_init(&o.contents, HED_CONTENTS_MAX);
    r = link_step(&o);
    if (r == CUDA_SUCCESS) {
        hed_buf_add(out, o.contents.data, o.contents.size);
        r = out->err || o.contents.size == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    hed_buf_fini(&o.contents);
    return r;
}

void
hed_remote_link_gone(void *m, struct hed_linker *l)
{
    hed_remote_close_there(&l->code);
    hed_remote_give_number(hed_remote_of(m), l->code.number);
    free(l);
}
