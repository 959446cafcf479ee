/* Memory that one call takes and another gives back: plain, pitched, managed, arrays
 * (share/quota/engine.h).
 *
 * A charge is what the device loses, as far as that can be known: sizes are rounded as NVIDIA's
 * driver rounds them. The driver chooses the layout of arrays, so they are charged with whole
 * tiles.
 */
#include "share/quota/engine.h"

#include "core/array_format.h"

#define SMALL 512u
#define SMALL_MOST (1ull << 20) /* a larger allocation has pages of its own */
#define PAGE (2ull << 20)
#define TILE_WIDTH 512u
#define TILE_ROWS 8u

static uint64_t
up(uint64_t n, uint64_t to)
{
    return n > UINT64_MAX - to ? UINT64_MAX / to * to : (n + to - 1) / to * to;
}

static uint64_t
times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

uint64_t
hed_quota_round(uint64_t n)
{
    return n <= SMALL_MOST ? up(n, SMALL) : up(n, PAGE);
}

static void
destroy_allocation(struct hed_layer *self, enum quota_kind kind, uint64_t key)
{
    if (kind == QUOTA_ARRAY)
        (void)hed_call(self->next, cuArrayDestroy, .hArray = (CUarray)key);
    else if (kind == QUOTA_MIPMAP)
        (void)hed_call(self->next, cuMipmappedArrayDestroy,
                       .hMipmappedArray = (CUmipmappedArray)key);
    else
        (void)hed_call(self->next, cuMemFree_v2, .dptr = key);
}

/* Remembers the charge after the call that took the memory. */
static CUresult
charge_allocation(struct hed_layer *self, enum quota_kind kind, uint64_t key,
                  struct quota_device *d, uint64_t bytes)
{
    const struct quota_charge r = {
        .key = key, .bytes = bytes, .device = d, .context = hed_quota_context(self), .kind = kind};

    if (hed_quota_put(self->state, &r) == 0)
        return CUDA_SUCCESS;
    /* A charge that is not remembered would never be given back. */
    destroy_allocation(self, kind, key);
    hed_quota_give(d, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes a call that takes `bytes` of the current device. 0: it takes none, or will fail. */
static inline __attribute__((always_inline)) CUresult
take_charged(struct hed_layer *self, const struct quota_call *c, uint64_t bytes)
{
    struct quota_device *d = c->out.at && bytes ? hed_quota_current(self) : NULL;

    if (!d)
        return quota_next(self, c);
    if (!hed_quota_claim(self, d, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const CUresult r = quota_next(self, c);

    if (r != CUDA_SUCCESS) {
        hed_quota_give(d, bytes);
        return r;
    }
    return charge_allocation(self, hed_cuda_info[c->id].new_kind, hed_place_get(c->out), d, bytes);
}

/* Managed memory is charged in full at once, although its pages may be on the host. */
static inline __attribute__((always_inline)) CUresult
quota_do_alloc(struct hed_layer *self, const struct quota_call *c)
{
    return take_charged(self, c, hed_quota_round(c->bytes));
}

HED_CUDA_MEMORY_ALLOC(QUOTA_CALL)

/* The driver chooses the pitch. It rounds a row up to 512 bytes at most. */
static CUresult
quota_do_alloc_rows(struct hed_layer *self, const struct quota_call *c)
{
    const uint64_t bytes = times(up(c->bytes, TILE_WIDTH), c->rows);

    return take_charged(self, c, c->pitch.at ? hed_quota_round(bytes) : 0);
}

HED_CUDA_MEMORY_ALLOC_ROWS(QUOTA_CALL)

/* ---- arrays ---------------------------------------------------------------------------------- */

static uint64_t
image(uint64_t width, uint64_t height, uint64_t depth, uint64_t size)
{
    const uint64_t row = up(times(width, size), height > 1 ? TILE_WIDTH : SMALL);
    const uint64_t rows = height > 1 ? up(height, TILE_ROWS) : 1;

    return times(times(row, rows), depth ? depth : 1);
}

static CUresult
quota_do_alloc_array(struct hed_layer *self, const struct quota_call *c)
{
    const uint64_t element = hed_array_element_bytes(c->format, c->channels);
    const unsigned levels = c->levels ? c->levels : 1;
    uint64_t w = c->width;
    uint64_t h = c->height;
    uint64_t sum = 0;

    /* The program maps memory to such an array later, by handle. */
    if (c->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return quota_next(self, c);
    for (unsigned i = 0; i < levels && i < 64; i++) {
        const uint64_t n = image(w, h, c->depth, element);

        sum = n > UINT64_MAX - sum ? UINT64_MAX : sum + n;
        w = w > 1 ? w / 2 : w;
        h = h > 1 ? h / 2 : h;
        /* Layers and faces stay as many; for a volume this charges a little too much. */
    }
    return take_charged(self, c, hed_quota_round(sum));
}

HED_CUDA_MEMORY_ALLOC_ARRAY(QUOTA_CALL)

/* ---- giving back ----------------------------------------------------------------------------- */

/* After a call that frees: gives the charge back, or keeps it if the call has failed. */
static CUresult
allocation_freed(struct hed_layer *self, bool found, const struct quota_charge *old, CUresult r)
{
    if (!found)
        return r;
    if (r != CUDA_SUCCESS)
        (void)hed_quota_put(self->state, old);
    else if (old->thing)
        hed_quota_pool_freed(self, old->thing, old->bytes);
    else
        hed_quota_give(old->device, old->bytes);
    return r;
}

/* The memory of a graph's node has no charge of its own: the graphs of the device are counted. */
static void
graph_freed(struct hed_layer *self, bool found)
{
    const struct hed_quota *q = self->state;
    struct quota_device *d;

    if (!found && atomic_load_explicit(&q->memory_nodes, memory_order_relaxed) &&
        (d = hed_quota_current(self)) != NULL)
        hed_quota_graph_end(self, d, 0);
}

/* Frees memory, an array or a module. */
static inline __attribute__((always_inline)) CUresult
quota_do_free(struct hed_layer *self, const struct quota_call *c)
{
    const enum quota_kind kind = hed_cuda_info[c->id].of_kind;
    struct quota_charge old;
    const bool found = hed_quota_take(self->state, kind, c->key, &old);
    const CUresult r = allocation_freed(self, found, &old, quota_next(self, c));

    if (kind == QUOTA_MEMORY)
        graph_freed(self, found);
    else if (kind != QUOTA_MODULE && r == CUDA_SUCCESS)
        hed_quota_physical_array_gone(self->state, c->key);
    return r;
}

HED_CUDA_MEMORY_FREE(QUOTA_CALL)
