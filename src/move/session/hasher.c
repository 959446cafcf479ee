/* The hash of chunks, on the device (move/file/hash.h). See contents.h.
 *
 * The agent makes ordinary calls of the driver, past the hold: a module, two tables of memory,
 * a launch. The tables are blocks of their own, so that they can be told from the program's memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "core/layer.h"
#include "driver/driver.h"
#include "move/session/contents.h"

#define TABLE_LEAST ((size_t)2 << 20) /* bytes; smaller allocations share blocks */
#define BLOCKS_MOST 4096u             /* of a launch */

#define ASK(r, name, ...) \
    hed_cuda_invoke(&(r)->calls.layer, HED_##name, &(struct hed_##name){__VA_ARGS__})

/* What there is in one context. */
struct hasher_part {
    struct hed_context *ctx; /* a reference */
    CUmodule module;
    CUfunction function;
    CUstream stream; /* has no order with the program's */
    CUdeviceptr pieces, out;
};

struct hed_remote_hasher {
    struct hed_remote *remote;
    size_t room; /* chunks at a time */
    unsigned count;
    struct hasher_part parts[HED_PROFILE_DEVICES_MAX];
    struct hed_snap_piece *pieces;
    struct hed_snap_hash *hashes;
};

static size_t
table_bytes(size_t chunks)
{
    return hed_max(chunks * sizeof(struct hed_snap_piece), TABLE_LEAST);
}

static CUresult
open_part(struct hed_remote_hasher *h, struct hasher_part *p)
{
    struct hed_remote *r = h->remote;
    CUresult result = ASK(r, cuModuleLoadData, .module = &p->module, .image = hed_snap_hash_ptx);

    if (result == CUDA_SUCCESS)
        result = ASK(r, cuModuleGetFunction, .hfunc = &p->function, .hmod = p->module,
                     .name = "hed_snap_hash");
    if (result == CUDA_SUCCESS)
        result = ASK(r, cuFuncLoad, .function = p->function);
    if (result == CUDA_SUCCESS)
        result = ASK(r, cuStreamCreate, .phStream = &p->stream, .Flags = CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = ASK(r, cuMemAlloc_v2, .dptr = &p->pieces, .bytesize = table_bytes(h->room));
    if (result == CUDA_SUCCESS)
        result = ASK(r, cuMemAlloc_v2, .dptr = &p->out, .bytesize = table_bytes(h->room));
    return result;
}

static void
close_part(struct hed_remote_hasher *h, struct hasher_part *p)
{
    struct hed_remote *r = h->remote;

    if (hed_context_alive(p->ctx) && hed_thread_push(r->driver, p->ctx)) {
        if (p->out)
            (void)ASK(r, cuMemFree_v2, .dptr = p->out);
        if (p->pieces)
            (void)ASK(r, cuMemFree_v2, .dptr = p->pieces);
        if (p->stream)
            (void)ASK(r, cuStreamDestroy_v2, .hStream = p->stream);
        if (p->module)
            (void)ASK(r, cuModuleUnload, .hmod = p->module);
        hed_thread_pop(r->driver);
    }
    hed_context_unref(p->ctx);
}

int
hed_remote_hasher_open(struct hed_remote *r, size_t chunks, struct hed_remote_hasher **out,
                       struct hed_why *why)
{
    struct hed_remote_hasher *h = calloc(1, sizeof *h);
    CUresult result = CUDA_SUCCESS;

    if (!h || chunks == 0) {
        free(h);
        return h ? HED_ENOTSUP : HED_ENOMEM;
    }
    /* A capture of the program must not be spoilt by calls of this thread. */
    (void)ASK(r, cuThreadExchangeStreamCaptureMode,
              .mode = &(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_RELAXED});
    h->remote = r;
    h->room = hed_clamp(chunks, 256, 1 << 20);
    h->pieces = calloc(h->room, sizeof *h->pieces);
    h->hashes = calloc(h->room, sizeof *h->hashes);
    if (!h->pieces || !h->hashes)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < r->device_count && result == CUDA_SUCCESS; i++) {
        struct hed_context *c = hed_context_living(r->driver, i);

        if (!c)
            continue;
        h->parts[h->count].ctx = c;
        if (!hed_thread_push(r->driver, c)) {
            hed_context_unref(c);
            result = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        }
        result = open_part(h, &h->parts[h->count++]);
        hed_thread_pop(r->driver);
    }
    if (result != CUDA_SUCCESS) {
        hed_why_set(why, "the device cannot hash memory: CUDA error %d", (int)result);
        hed_remote_hasher_close(h);
        return HED_ENOTSUP;
    }
    *out = h;
    return 0;
}

void
hed_remote_hasher_close(struct hed_remote_hasher *h)
{
    if (!h)
        return;
    for (unsigned i = 0; i < h->count; i++)
        close_part(h, &h->parts[i]);
    free(h->pieces);
    free(h->hashes);
    free(h);
}

void
hed_remote_extents_hide(struct hed_remote_extents *x, uint64_t at)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->all[i].about.kind == HED_SNAP_DEVICE && x->all[i].about.key == at) {
            x->bytes -= x->all[i].about.size;
            x->chunks -= hed_divide_up(x->all[i].about.size, HED_EXTENT_CHUNK);
            x->count--;
            memmove(&x->all[i], &x->all[i + 1], (x->count - i) * sizeof *x->all);
            return;
        }
}

bool
hed_remote_hasher_owns(const struct hed_remote_hasher *h, uint64_t at)
{
    for (unsigned i = 0; h && i < h->count; i++)
        if (h->parts[i].pieces == at || h->parts[i].out == at)
            return true;
    return false;
}

/* The variables of the kernel's own module are none, so memory is all there is to hide. */
void
hed_remote_hasher_hide(const struct hed_remote_hasher *h, struct hed_remote_extents *x)
{
    for (unsigned i = 0; h && i < h->count; i++) {
        hed_remote_extents_hide(x, h->parts[i].pieces);
        hed_remote_extents_hide(x, h->parts[i].out);
    }
}

/* Begins to hash pieces[at .. at + count). */
static CUresult
launch_hasher(struct hed_remote_hasher *h, const struct hasher_part *p, size_t at, size_t count)
{
    struct hed_remote *r = h->remote;
    CUdeviceptr pieces = p->pieces + at * sizeof *h->pieces, out = p->out + at * sizeof *h->hashes;
    uint32_t n = (uint32_t)count;
    void *params[] = {&pieces, &out, &n};
    CUresult result = ASK(r, cuMemcpyHtoDAsync_v2, .dstDevice = pieces, .srcHost = h->pieces + at,
                          .ByteCount = count * sizeof *h->pieces, .hStream = p->stream);

    if (result == CUDA_SUCCESS)
        result =
            ASK(r, cuLaunchKernel, .f = p->function, .gridDimX = n < BLOCKS_MOST ? n : BLOCKS_MOST,
                .gridDimY = 1, .gridDimZ = 1, .blockDimX = HED_SNAP_HASH_THREADS, .blockDimY = 1,
                .blockDimZ = 1, .hStream = p->stream, .kernelParams = params);
    return result;
}

/* Gets the hashes of pieces[at .. at + count). A copy to memory that is not pinned may wait for the
 * kernel, so it does not belong to the beginning. */
static CUresult
fetch_hashes(struct hed_remote_hasher *h, const struct hasher_part *p, size_t at, size_t count)
{
    struct hed_remote *r = h->remote;
    CUresult result = ASK(r, cuMemcpyDtoHAsync_v2, .dstHost = h->hashes + at,
                          .srcDevice = p->out + at * sizeof *h->hashes,
                          .ByteCount = count * sizeof *h->hashes, .hStream = p->stream);

    return result == CUDA_SUCCESS ? ASK(r, cuStreamSynchronize, .hStream = p->stream) : result;
}

static const struct hasher_part *
part_of_chunk(const struct hed_remote_hasher *h, const struct hed_remote_chunk *c)
{
    for (unsigned k = 0; k < h->count; k++)
        if (h->parts[k].ctx->device == c->extent->ctx->device)
            return &h->parts[k];
    return NULL;
}

/* Chunks of one device, from chunks[0] on; they are pieces[at] and following. Says how many it has
 * looked at, and how many pieces they are. */
static CUresult
hash_some(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks, size_t count,
          size_t at, bool begins, size_t *looked, size_t *pieces)
{
    const struct hasher_part *p = part_of_chunk(h, chunks);
    size_t n = 0, i = 0;
    CUresult result;

    for (; i < count && chunks[i].extent->ctx->device == chunks[0].extent->ctx->device; i++)
        if (hed_remote_is_hashable(&chunks[i]))
            h->pieces[at + n++] =
                (struct hed_snap_piece){chunks[i].extent->at + chunks[i].offset, chunks[i].size};
    *looked = i;
    *pieces = n;
    if (n == 0)
        return CUDA_SUCCESS;
    if (!p || !hed_thread_push(h->remote->driver, p->ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    result = begins ? launch_hasher(h, p, at, n) : fetch_hashes(h, p, at, n);
    hed_thread_pop(h->remote->driver);
    return result;
}

static int
hasher_failed(CUresult result, struct hed_why *why)
{
    if (result == CUDA_SUCCESS)
        return 0;
    hed_why_set(why, "the device could not hash its memory: CUDA error %d", (int)result);
    return HED_EIO;
}

size_t
hed_remote_hasher_room(const struct hed_remote_hasher *h)
{
    return h->room;
}

static CUresult
hash_all(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks, size_t count,
         bool begins)
{
    CUresult result = count <= h->room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    for (size_t i = 0, at = 0, n, pieces; i < count && result == CUDA_SUCCESS; i += n, at += pieces)
        result = hash_some(h, chunks + i, count - i, at, begins, &n, &pieces);
    return result;
}

int
hed_remote_hasher_begin(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                        size_t count, struct hed_why *why)
{
    return hasher_failed(hash_all(h, chunks, count, true), why);
}

int
hed_remote_hasher_end(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                      size_t count, struct hed_snap_hash *out, struct hed_why *why)
{
    const int err = hasher_failed(hash_all(h, chunks, count, false), why);

    for (size_t i = 0, at = 0; i < count && !err; i++)
        if (hed_remote_is_hashable(&chunks[i]))
            out[i] = h->hashes[at++];
    return err;
}

int
hed_remote_hasher_run(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                      size_t count, struct hed_snap_hash *out, struct hed_why *why)
{
    int err = 0;

    for (size_t at = 0, n; at < count && !err; at += n) {
        n = hed_min(count - at, h->room);
        err = hed_remote_hasher_begin(h, chunks + at, n, why);
        if (!err)
            err = hed_remote_hasher_end(h, chunks + at, n, out + at, why);
    }
    return err;
}
