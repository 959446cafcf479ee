/* Libraries on the worker: an image becomes one, and this side learns what is in it.
 * remote/wire/code.h describes the messages.
 *
 *   image -> what the worker needs of it (image.c) -> is it there? else send -> kernels
 */
#include "remote/client/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "driver/driver.h"
#include "remote/client/memory.h"
#include "remote/client/queue.h"

#define LOST CUDA_ERROR_DEVICE_UNAVAILABLE

int
hed_remote_code_init(struct hed_remote *r)
{
    r->code = calloc(1, sizeof *r->code);
    if (!r->code)
        return HED_ENOMEM;
    hed_lock_init(&r->code->lock, HED_RANK_IMAGES);
    (void)pthread_cond_init(&r->code->unpinned, NULL);
    return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool
hed_remote_take_number(struct hed_remote *r, uint32_t *out)
{
    struct hed_remote_code *c = r->code;
    bool found = false;

    hed_lock(&c->lock);
    for (uint32_t i = 0; i < HED_CODES_MAX / 64 && !found; i++) {
        if (c->numbers[i] == UINT64_MAX)
            continue;
        *out = 64 * i + (uint32_t)__builtin_ctzll(~c->numbers[i]);
        c->numbers[i] |= UINT64_C(1) << *out % 64;
        found = true;
    }
    hed_unlock(&c->lock);
    return found;
}

void
hed_remote_give_number(struct hed_remote *r, uint32_t number)
{
    hed_lock(&r->code->lock);
    r->code->numbers[number / 64] &= ~(UINT64_C(1) << number % 64);
    hed_unlock(&r->code->lock);
}

/* ---- contents -------------------------------------------------------------------------------- */

static const struct hed_wire_param *
params_of(const struct hed_wire_kernel *w)
{
    return (const struct hed_wire_param *)(w + 1);
}

/* The worker's numbers are checked before they are used. */
int
hed_remote_read_record(struct hed_arena *arena, const struct hed_wire_kernel *w,
                       struct hed_code_kernel *k)
{
    const struct hed_wire_param *params = params_of(w);
    const int32_t *a = w->attributes;
    struct hed_code_param *to =
        w->params ? hed_arena_alloc(arena, w->params * sizeof *to, 8) : NULL;

    if (w->params && !to)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < w->params; i++) {
        if (params[i].offset > HED_PARAMS_MAX || params[i].size > HED_PARAMS_MAX - params[i].offset)
            return HED_EFORMAT;
        to[i] = (struct hed_code_param){params[i].offset, params[i].size};
        if (to[i].offset + to[i].size > k->param_bytes)
            k->param_bytes = to[i].offset + to[i].size;
    }
    k->params = to;
    k->param_count = w->params;
    k->max_threads = (uint32_t)a[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    k->shared = (uint32_t)a[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    k->constant = (uint32_t)a[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES];
    k->local = (uint32_t)a[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES];
    k->registers = a[CU_FUNC_ATTRIBUTE_NUM_REGS] > 0 ? (uint32_t)a[CU_FUNC_ATTRIBUTE_NUM_REGS] : 1;
    k->ptx_version = (uint32_t)a[CU_FUNC_ATTRIBUTE_PTX_VERSION];
    k->binary_version = (uint32_t)a[CU_FUNC_ATTRIBUTE_BINARY_VERSION];
    k->must_have_cluster = a[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] != 0;
    for (int i = 0; i < 3; i++)
        k->cluster[i] = (uint32_t)a[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i];
    memcpy(k->required, w->required, sizeof k->required);
    k->has_code = true;
    return 0;
}

const struct hed_wire_kernel *
hed_remote_description(const unsigned char *p, size_t n)
{
    const struct hed_wire_kernel *w = (const struct hed_wire_kernel *)(const void *)p;

    if (n < sizeof *w || w->size > n || w->size % 8 != 0 || w->params > HED_PARAMS_MAX ||
        w->name > w->size ||
        w->size < sizeof *w + (size_t)w->params * sizeof(struct hed_wire_param) + w->name)
        return NULL;
    return w;
}

/* Reads all kernels from a library's contents. */
static int
read_contents(struct hed_remote_library *c, const struct hed_buf *contents, uint32_t count)
{
    size_t at = 0;
    int err = 0;

    c->kernels = hed_arena_alloc(&c->arena, (count + (size_t)1) * sizeof *c->kernels, 8);
    c->described = hed_arena_alloc(&c->arena, (count + (size_t)1) * sizeof *c->described, 8);
    if (!c->kernels || !c->described)
        return HED_ENOMEM;
    memset(c->kernels, 0, count * sizeof *c->kernels);
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct hed_wire_kernel *w =
            hed_remote_description(contents->data + at, contents->size - at);
        const char *name = w ? (const char *)(params_of(w) + w->params) : NULL;
        char *copy = w && w->name ? hed_arena_alloc(&c->arena, w->name, 1) : NULL;

        if (!w || w->name == 0 || memchr(name, 0, w->name) != name + w->name - 1)
            return HED_EFORMAT;
        if (!copy)
            return HED_ENOMEM;
        memcpy(copy, name, w->name);
        c->kernels[i].name = copy;
        atomic_init(&c->described[i], w->described != 0);
        if (w->described)
            err = hed_remote_read_record(&c->arena, w, &c->kernels[i]);
        at += w->size;
    }
    c->code.kernels = c->kernels;
    c->code.kernel_count = count;
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct hed_open_body *
hed_remote_begin_open(struct hed_remote_library *c, enum hed_open_op op, uint64_t context,
                      uint32_t extra, struct hed_remote_channel **channel)
{
    struct hed_open_body *b = hed_remote_begin(c->remote, HED_MSG_OPEN, (uint32_t)sizeof *b + extra,
                                               context, 0, 0, channel);

    if (b) {
        b->op = op;
        b->code = c->number;
        b->head.flags = op == HED_OPEN_CLOSE ? 0 : HED_MSG_WANTS_ANSWER;
    }
    return b;
}

int
hed_remote_take_bulk(struct hed_remote_channel *channel, struct hed_buf *to, uint64_t n)
{
    unsigned char piece[16384];
    int err = 0;

    for (size_t some; n > 0 && !err; n -= some) {
        some = n < sizeof piece ? (size_t)n : sizeof piece;
        err = hed_channel_bulk_read(channel->channel, piece, some);
        if (to)
            hed_buf_add(to, piece, some);
    }
    return err ? err : to && to->err != HED_ELIMIT ? to->err : 0;
}

/* The answer's head is copied, since reading bulk may overwrite it. */
CUresult
hed_remote_open_answer(struct hed_remote_opening *o, struct hed_remote_channel *channel,
                       struct hed_open_answer *a)
{
    const struct hed_open_answer *got = (struct hed_open_answer *)hed_remote_answer(channel);

    if (!got)
        return LOST;
    if (got->head.head.size < sizeof *got)
        goto nonsense;
    *a = *got;
    if (a->log > HED_CODE_LOG_MAX || a->log > a->head.head.bulk || a->kernels > HED_KERNELS_MAX ||
        a->contents > HED_CONTENTS_MAX || a->head.head.bulk - a->log > a->contents)
        goto nonsense;
    if (hed_remote_take_bulk(channel, o->how->log, a->log) == 0 &&
        hed_remote_take_bulk(channel, &o->contents, a->head.head.bulk - a->log) == 0)
        return (CUresult)a->head.result;
nonsense:
    hed_remote_lose(o->remote, "the worker sent an invalid description of a library");
    return LOST;
}

CUresult
hed_remote_open_more(struct hed_remote_opening *o, uint64_t all)
{
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS && o->contents.size < all) {
        const uint64_t before = o->contents.size;
        struct hed_remote_channel *channel;
        struct hed_open_answer a = {.kernels = 0};
        struct hed_open_body *b = hed_remote_begin_open(o->code, HED_OPEN_MORE, 0, 0, &channel);

        if (!b)
            return LOST;
        b->offset = before;
        r = hed_remote_end(channel, &b->head, sizeof *b) == 0
                ? hed_remote_open_answer(o, channel, &a)
                : LOST;
        if (r == CUDA_SUCCESS && o->contents.size == before)
            r = LOST;
    }
    return r;
}

/* Writes the options behind the body. */
uint32_t
hed_remote_put_options(struct hed_open_body *b, const struct hed_jit_how *how)
{
    struct hed_wire_jit *to = (struct hed_wire_jit *)(b + 1);

    b->log = how->log ? HED_CODE_LOG_MAX : 0;
    b->options = how->count;
    for (unsigned i = 0; i < how->count; i++)
        to[i] = (struct hed_wire_jit){.option = (uint32_t)how->choices[i].option,
                                      .value = how->choices[i].value};
    return (uint32_t)(sizeof *b + how->count * sizeof *to);
}

static CUresult
try_open(struct hed_remote_opening *o)
{
    struct hed_remote_channel *channel;
    struct hed_open_answer a = {.kernels = 0};
    struct hed_open_body *b =
        hed_remote_begin_open(o->code, HED_OPEN_LOAD, o->context,
                              o->how->count * (uint32_t)sizeof(struct hed_wire_jit), &channel);

    if (!b)
        return LOST;
    b->device = hed_remote_ordinal(o->remote, o->device);
    b->flags = o->how->now ? HED_OPEN_NOW : 0;
    b->size = o->bytes.size;
    memcpy(b->hash, o->hash, sizeof b->hash);
    if (hed_remote_end(channel, &b->head, hed_remote_put_options(b, o->how)) != 0)
        return LOST;

    CUresult r = hed_remote_open_answer(o, channel, &a);

    o->kernels = a.kernels;
    return r == CUDA_SUCCESS ? hed_remote_open_more(o, a.contents) : r;
}

static CUresult
send_image(struct hed_remote_opening *o)
{
    for (size_t at = 0, n; at < o->bytes.size; at += n) {
        struct hed_remote_channel *channel;
        struct hed_image_body *b =
            hed_remote_begin(o->remote, HED_MSG_IMAGE, sizeof *b, 0, 0, 0, &channel);

        n = o->bytes.size - at < HED_BULK_CHUNK ? o->bytes.size - at : HED_BULK_CHUNK;
        if (!b)
            return LOST;
        b->head.bulk = n;
        b->size = o->bytes.size;
        b->offset = at;
        memcpy(b->hash, o->hash, sizeof b->hash);
        if (hed_remote_end(channel, &b->head, sizeof *b) != 0 ||
            hed_channel_bulk_write(channel->channel, o->bytes.data + at, n) != 0) {
            hed_remote_lose(o->remote, "an image could not be sent");
            return LOST;
        }
    }
    return CUDA_SUCCESS;
}

/* The length of a damaged image may be wrong, so that it ends in memory that is used for other
 * things. The worker does not store what changed on its way. */
static CUresult
explain_missing(const struct hed_remote_opening *o)
{
    uint8_t now[HED_HASH_SIZE];

    hed_hash_of(o->bytes.data, o->bytes.size, now);
    return memcmp(now, o->hash, sizeof now) == 0 ? CUDA_ERROR_OUT_OF_MEMORY
                                                 : CUDA_ERROR_INVALID_IMAGE;
}

CUresult
hed_remote_with_image(struct hed_remote_opening *o, CUresult (*fn)(struct hed_remote_opening *o))
{
    hed_hash_of(o->bytes.data, o->bytes.size, o->hash);

    CUresult r = fn(o);

    if (r == CUDA_ERROR_FILE_NOT_FOUND) {
        r = send_image(o);
        if (r == CUDA_SUCCESS)
            r = fn(o);
    }
    return r == CUDA_ERROR_FILE_NOT_FOUND ? explain_missing(o) : r;
}

void
hed_remote_library_free(struct hed_remote_library *c)
{
    if (c->local)
        hed_cubin_forget(c->local);
    hed_arena_fini(&c->arena);
    free(c->copy);
    free(c->order);
    free(c->before);
    free(c->names);
    free(c);
}

/* Keeps what is needed to open the library at another worker. False if there is no memory. */
static bool
keep_opening(struct hed_remote_library *c, const struct hed_remote_opening *o,
             const struct hed_image *image)
{
    struct hed_remote_library **link = &o->remote->code->libraries;

    c->device = o->device;
    c->context = o->context;
    c->how = *o->how;
    c->how.log = NULL;
    c->image = *image;
    if (!image->preserved) {
        c->copy = malloc(image->bytes.size ? image->bytes.size : 1);
        if (!c->copy)
            return false;
        memcpy(c->copy, image->bytes.data, image->bytes.size);
        c->image.bytes.data = c->copy;
    }
    hed_lock(&o->remote->code->lock);
    c->serial = ++o->remote->code->serials;
    while (*link && (*link)->number < c->number)
        link = &(*link)->next;
    c->next = *link;
    *link = c;
    hed_unlock(&o->remote->code->lock);
    return true;
}

static void
forget_opening(struct hed_remote *r, struct hed_remote_library *c)
{
    struct hed_remote_library **link = &r->code->libraries;

    hed_lock(&r->code->lock);
    while (c->pins)
        (void)hed_lock_wait(&r->code->lock, &r->code->unpinned, UINT64_MAX);
    while (*link && *link != c)
        link = &(*link)->next;
    if (*link)
        *link = c->next;
    hed_unlock(&r->code->lock);
}

void
hed_remote_close_there(struct hed_remote_library *c)
{
    struct hed_remote_channel *channel;
    struct hed_open_body *b = hed_remote_begin_open(c, HED_OPEN_CLOSE, 0, 0, &channel);

    if (b)
        (void)hed_remote_end(channel, &b->head, sizeof *b);
}

static CUresult
complete_opening(struct hed_remote_opening *o, const struct hed_image *image, struct hed_why *why)
{
    CUresult r = hed_remote_with_image(o, try_open);

    if (r != CUDA_SUCCESS)
        return r;

    const int err = o->remote->backend == HED_BACKEND_NULL
                        ? hed_remote_describe_here(o->code, image, &o->device->info.profile)
                        : read_contents(o->code, &o->contents, o->kernels);

    if (err == 0)
        return CUDA_SUCCESS;
    hed_remote_close_there(o->code);
    if (err == HED_EFORMAT)
        hed_remote_lose(o->remote, "the worker sent an invalid description of a library");
    return err == HED_EFORMAT ? LOST : CUDA_ERROR_OUT_OF_MEMORY;
}

void
hed_remote_profile_there(const struct hed_remote *r, const struct hed_device *dev,
                         struct hed_profile *out)
{
    const struct hed_remote_device *there = &r->devices[dev->ordinal];

    *out = dev->info.profile;
    out->major = there->major;
    out->minor = there->minor;
    out->accepts_newer_ptx = there->accepts_newer_ptx;
}

/* Opens o->code from an image. The worker gets what its device needs; one that runs nothing (null)
 * gets what a GPU would get. */
CUresult
hed_remote_open_there(struct hed_remote_opening *o, const struct hed_image *image,
                      struct hed_why *why)
{
    struct hed_remote *r = o->remote;
    const bool machine_code = r->devices[o->device->ordinal].real || r->backend == HED_BACKEND_NULL;
    struct hed_profile profile;
    struct hed_buf made;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    hed_remote_profile_there(r, o->device, &profile);
    hed_buf_init(&made, HED_IMAGE_MAX);
    hed_buf_init(&o->contents, HED_CONTENTS_MAX);
    hed_arena_init(&o->code->arena, HED_CONTENTS_MAX);
    if (hed_remote_pack(image, &profile, machine_code, &made, &o->bytes) == 0)
        result = o->bytes.size <= HED_IMAGE_MAX ? complete_opening(o, image, why)
                                                : CUDA_ERROR_INVALID_IMAGE;
    hed_buf_fini(&made);
    hed_buf_fini(&o->contents);
    return result;
}

CUresult
hed_remote_open(void *m, struct hed_device *dev, const struct hed_image *image,
                struct hed_code **out, const struct hed_jit_how *how, struct hed_why *why)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_remote_opening o = {
        .remote = r, .device = dev, .how = how, .context = hed_remote_current(r)};
    struct hed_remote_library *c = calloc(1, sizeof *c);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (c && hed_remote_take_number(r, &c->number)) {
        c->remote = r;
        o.code = c;
        result = hed_remote_open_there(&o, image, why);
        if (result == CUDA_SUCCESS && !keep_opening(c, &o, image)) {
            hed_remote_close_there(c);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (result != CUDA_SUCCESS) {
            hed_why_set(why, "the worker could not load it");
            hed_remote_give_number(r, c->number);
        }
    }
    if (result == CUDA_SUCCESS)
        *out = &c->code;
    else if (c)
        hed_remote_library_free(c);
    return result;
}

void
hed_remote_close(void *m, struct hed_code *code)
{
    struct hed_remote_library *c = hed_remote_library(code);

    forget_opening(hed_remote_of(m), c);
    /* The number can be used again once this message has its ticket. */
    hed_remote_close_there(c);
    hed_remote_give_number(hed_remote_of(m), c->number);
    hed_remote_library_free(c);
}
