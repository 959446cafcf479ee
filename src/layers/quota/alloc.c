/* Memory that one call takes and one gives back: plain, pitched, managed, arrays
 * (layers/quota/quota.h).
 *
 * A charge is what the device loses, as far as that can be known: sizes are rounded like NVIDIA's
 * driver does. Arrays are laid out by the driver as it likes; they are charged with whole tiles.
 */
#include "layers/quota/quota.h"

#include "core/array_format.h"

#define SMALL 512u
#define SMALL_MOST (1ull << 20) /* more than this has pages of its own */
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
quota_round(uint64_t n)
{
    return n <= SMALL_MOST ? up(n, SMALL) : up(n, PAGE);
}

/* After the call that took memory. */
static CUresult
charge_allocation(struct hed_layer *self, enum quota_kind kind, uint64_t key,
                  struct quota_device *d, uint64_t bytes)
{
    const struct quota_charge r = {
        .key = key, .bytes = bytes, .device = d, .context = quota_context(self), .kind = kind};

    if (quota_put(self->state, &r) == 0)
        return CUDA_SUCCESS;
    /* No memory to remember it: what is not remembered would never be given back. */
    if (kind == QUOTA_ARRAY)
        (void)hed_next(self, cuArrayDestroy, &(struct hed_cuArrayDestroy){(CUarray)key});
    else if (kind == QUOTA_MIPMAP)
        (void)hed_next(self, cuMipmappedArrayDestroy,
                       &(struct hed_cuMipmappedArrayDestroy){(CUmipmappedArray)key});
    else
        (void)hed_next(self, cuMemFree_v2, &(struct hed_cuMemFree_v2){key});
    quota_give(d, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* One call that takes `bytes` and, if it succeeds, has put the key into *out. */
#define TAKE(call, kind_, bytes_, good, out)                                   \
    do {                                                                       \
        struct quota_device *dev_ = (good) ? quota_current(self) : NULL;       \
        const uint64_t charge_ = dev_ ? (bytes_) : 0;                          \
                                                                               \
        if (charge_ == 0)                                                      \
            return hed_next(self, call, a);                                    \
        if (!quota_claim(self, dev_, charge_))                                 \
            return CUDA_ERROR_OUT_OF_MEMORY;                                   \
                                                                               \
        const CUresult r_ = hed_next(self, call, a);                           \
                                                                               \
        if (r_ != CUDA_SUCCESS) {                                              \
            quota_give(dev_, charge_);                                         \
            return r_;                                                         \
        }                                                                      \
        return charge_allocation(self, kind_, (uint64_t)(out), dev_, charge_); \
    } while (0)

CUresult
quota_cuMemAlloc(struct hed_layer *self, struct hed_cuMemAlloc *a)
{
    TAKE(cuMemAlloc, QUOTA_MEMORY, quota_round(a->bytesize), a->dptr, *a->dptr);
}

CUresult
quota_cuMemAlloc_v2(struct hed_layer *self, struct hed_cuMemAlloc_v2 *a)
{
    TAKE(cuMemAlloc_v2, QUOTA_MEMORY, quota_round(a->bytesize), a->dptr, *a->dptr);
}

/* Rows are as far apart as the driver likes: 512 bytes are the most it rounds to. */
static uint64_t
pitched(uint64_t width, uint64_t height)
{
    return quota_round(times(up(width, TILE_WIDTH), height));
}

CUresult
quota_cuMemAllocPitch(struct hed_layer *self, struct hed_cuMemAllocPitch *a)
{
    TAKE(cuMemAllocPitch, QUOTA_MEMORY, pitched(a->WidthInBytes, a->Height),
         a->dptr && a->pPitch && a->Height, *a->dptr);
}

CUresult
quota_cuMemAllocPitch_v2(struct hed_layer *self, struct hed_cuMemAllocPitch_v2 *a)
{
    TAKE(cuMemAllocPitch_v2, QUOTA_MEMORY, pitched(a->WidthInBytes, a->Height),
         a->dptr && a->pPitch && a->Height, *a->dptr);
}

/* Whole and at once, although its pages may be with the host. */
CUresult
quota_cuMemAllocManaged(struct hed_layer *self, struct hed_cuMemAllocManaged *a)
{
    TAKE(cuMemAllocManaged, QUOTA_MEMORY, quota_round(a->bytesize), a->dptr, *a->dptr);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static uint64_t
image(uint64_t width, uint64_t height, uint64_t depth, uint64_t size)
{
    const uint64_t row = up(times(width, size), height > 1 ? TILE_WIDTH : SMALL);
    const uint64_t rows = height > 1 ? up(height, TILE_ROWS) : 1;

    return times(times(row, rows), depth ? depth : 1);
}

static uint64_t
array_3d(const CUDA_ARRAY3D_DESCRIPTOR_v2 *d, unsigned levels)
{
    uint64_t w = d->Width;
    uint64_t h = d->Height;
    uint64_t z = d->Depth;
    uint64_t sum = 0;

    /* Memory is mapped to such an array later, by handle. */
    if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        const uint64_t n = image(w, h, z, hed_array_element_bytes(d->Format, d->NumChannels));

        sum = n > UINT64_MAX - sum ? UINT64_MAX : sum + n;
        w = w > 1 ? w / 2 : w;
        h = h > 1 ? h / 2 : h;
        /* Layers and faces do not become fewer; then this is right, else a little more. */
    }
    return quota_round(sum);
}

CUresult
quota_cuArrayCreate(struct hed_layer *self, struct hed_cuArrayCreate *a)
{
    const CUDA_ARRAY_DESCRIPTOR_v1 *d = a->pAllocateArray;

    TAKE(cuArrayCreate, QUOTA_ARRAY,
         quota_round(
             image(d->Width, d->Height, 1, hed_array_element_bytes(d->Format, d->NumChannels))),
         a->pHandle && d, *a->pHandle);
}

CUresult
quota_cuArrayCreate_v2(struct hed_layer *self, struct hed_cuArrayCreate_v2 *a)
{
    const CUDA_ARRAY_DESCRIPTOR_v2 *d = a->pAllocateArray;

    TAKE(cuArrayCreate_v2, QUOTA_ARRAY,
         quota_round(
             image(d->Width, d->Height, 1, hed_array_element_bytes(d->Format, d->NumChannels))),
         a->pHandle && d, *a->pHandle);
}

CUresult
quota_cuArray3DCreate(struct hed_layer *self, struct hed_cuArray3DCreate *a)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *d = a->pAllocateArray;
    const CUDA_ARRAY3D_DESCRIPTOR_v2 wide =
        !d ? (CUDA_ARRAY3D_DESCRIPTOR_v2){0}
           : (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = d->Width,
                                          .Height = d->Height,
                                          .Depth = d->Depth,
                                          .Format = d->Format,
                                          .NumChannels = d->NumChannels,
                                          .Flags = d->Flags};

    TAKE(cuArray3DCreate, QUOTA_ARRAY, array_3d(&wide, 1), a->pHandle && d, *a->pHandle);
}

CUresult
quota_cuArray3DCreate_v2(struct hed_layer *self, struct hed_cuArray3DCreate_v2 *a)
{
    TAKE(cuArray3DCreate_v2, QUOTA_ARRAY, array_3d(a->pAllocateArray, 1),
         a->pHandle && a->pAllocateArray, *a->pHandle);
}

CUresult
quota_cuMipmappedArrayCreate(struct hed_layer *self, struct hed_cuMipmappedArrayCreate *a)
{
    TAKE(cuMipmappedArrayCreate, QUOTA_MIPMAP, array_3d(a->pMipmappedArrayDesc, a->numMipmapLevels),
         a->pHandle && a->pMipmappedArrayDesc, *a->pHandle);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* After the call: the record that was taken out before it goes, or comes back. */
static CUresult
allocation_freed(struct hed_layer *self, bool found, const struct quota_charge *old, CUresult r)
{
    if (!found)
        return r;
    if (r != CUDA_SUCCESS)
        (void)quota_put(self->state, old);
    else if (old->thing)
        quota_pool_freed(self, old->thing, old->bytes);
    else
        quota_give(old->device, old->bytes);
    return r;
}

/* Memory of a graph's node is in no record. */
static void
graph_freed(struct hed_layer *self, bool found)
{
    const struct quota *q = self->state;
    struct quota_device *d;

    if (!found && atomic_load_explicit(&q->memory_nodes, memory_order_relaxed) &&
        (d = quota_current(self)) != NULL)
        quota_graph_end(self, d, 0);
}

CUresult
quota_cuMemFree(struct hed_layer *self, struct hed_cuMemFree *a)
{
    struct quota_charge old;
    const bool found = quota_take(self->state, QUOTA_MEMORY, a->dptr, &old);

    return allocation_freed(self, found, &old, hed_next(self, cuMemFree, a));
}

CUresult
quota_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    struct quota_charge old;
    const bool found = quota_take(self->state, QUOTA_MEMORY, a->dptr, &old);
    const CUresult r = allocation_freed(self, found, &old, hed_next(self, cuMemFree_v2, a));

    graph_freed(self, found);
    return r;
}

CUresult
quota_cuMemFreeAsync(struct hed_layer *self, struct hed_cuMemFreeAsync *a)
{
    struct quota_charge old;
    const bool found = quota_take(self->state, QUOTA_MEMORY, a->dptr, &old);
    const CUresult r = allocation_freed(self, found, &old, hed_next(self, cuMemFreeAsync, a));

    graph_freed(self, found);
    return r;
}

CUresult
quota_cuArrayDestroy(struct hed_layer *self, struct hed_cuArrayDestroy *a)
{
    struct quota_charge old;
    const uint64_t key = (uint64_t)(uintptr_t)a->hArray;
    const bool found = quota_take(self->state, QUOTA_ARRAY, key, &old);
    const CUresult r = allocation_freed(self, found, &old, hed_next(self, cuArrayDestroy, a));

    if (r == CUDA_SUCCESS)
        quota_physical_array_gone(self->state, key);
    return r;
}

CUresult
quota_cuMipmappedArrayDestroy(struct hed_layer *self, struct hed_cuMipmappedArrayDestroy *a)
{
    struct quota_charge old;
    const uint64_t key = (uint64_t)(uintptr_t)a->hMipmappedArray;
    const bool found = quota_take(self->state, QUOTA_MIPMAP, key, &old);
    const CUresult r =
        allocation_freed(self, found, &old, hed_next(self, cuMipmappedArrayDestroy, a));

    if (r == CUDA_SUCCESS)
        quota_physical_array_gone(self->state, key);
    return r;
}
