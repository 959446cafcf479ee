/* Pointer attributes: queries about an address. */
#include <string.h>

#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

#define ATTRIBUTES_MAX 256 /* in one call; there are 21 */

/* An address, with the allocation and the range it is in. */
struct pointer {
    uint64_t at;
    struct hed_allocation m;
    uint64_t range_at, range_size; /* of the reserved range, if it is in a mapping */
    uint64_t mapping_at, mapping_size;
    uint64_t pool;  /* the handle of its pool */
    uint64_t block; /* an id that all allocations in one block share */
};

static bool
look_up_pointer(struct hed_driver *d, uint64_t at, struct pointer *out)
{
    *out = (struct pointer){.at = at};
    if (!hed_memory_find(d, at, &out->m))
        return false;
    out->range_at = out->m.at;
    out->range_size = out->m.size;
    out->mapping_at = out->m.at;
    out->mapping_size = out->m.size;
    out->block = out->m.id;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);
    const struct hed_allocation *r = hed_memory_in_locked(d->memory, HED_TREE_RESERVED, at);

    if (out->m.kind == HED_MEMORY_VIRTUAL && r) {
        out->range_at = r->at;
        out->range_size = r->size;
    }
    if (m)
        out->pool = hed_pool_handle(m->pool);
    if (m && m->block) {
        out->mapping_at = m->block->at;
        out->mapping_size = m->block->size;
        out->block = m->block->at / HED_MACHINE_PAGE;
    }
    hed_unlock(&d->memory_lock);
    return true;
}

static bool
is_host_allocation(const struct hed_allocation *m)
{
    return m->kind == HED_MEMORY_HOST || m->kind == HED_MEMORY_REGISTERED || !m->device;
}

static unsigned
access_of(const struct hed_allocation *m)
{
    if (m->kind == HED_MEMORY_VIRTUAL)
        return m->flags;
    return m->kind == HED_MEMORY_REGISTERED && (m->flags & CU_MEMHOSTREGISTER_READ_ONLY)
               ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
               : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

/* Answers have three sizes; data need not be aligned. */
static CUresult
put64(void *data, uint64_t v)
{
    memcpy(data, &v, sizeof v);
    return CUDA_SUCCESS;
}

static CUresult
put_int_attribute(void *data, int v)
{
    memcpy(data, &v, sizeof v);
    return CUDA_SUCCESS;
}

static CUresult
put_tokens(void *data, const struct hed_allocation *m)
{
    const CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_v1 none = {0};

    if (is_host_allocation(m))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &none, sizeof none);
    return CUDA_SUCCESS;
}

static CUresult
answer_attribute(const struct pointer *p, CUpointer_attribute attribute, void *data)
{
    const struct hed_allocation *m = &p->m;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put64(data, m->kind == HED_MEMORY_POOL ? 0 : m->ctx_handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put_int_attribute(data,
                                 is_host_allocation(m) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (access_of(m) == 0)
            return CUDA_ERROR_INVALID_VALUE;
        return put64(data, p->at);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host_allocation(m) && m->kind != HED_MEMORY_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        return put64(data, p->at);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return put_tokens(data, m);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        /* NVIDIA's driver sets it for device memory from the start. */
        return put_int_attribute(data, m->sync_memops || !is_host_allocation(m));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put64(data, m->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put_int_attribute(data, m->kind == HED_MEMORY_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put_int_attribute(data, m->device ? m->device->ordinal : CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put64(data, p->range_at);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put64(data, p->range_size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return put_int_attribute(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put64(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        /* As NVIDIA's driver answers, although there is no IPC here: NCCL asks in order to tell
         * this memory from that of cuMemCreate, and fails if it is neither. */
        return put_int_attribute(data, m->kind == HED_MEMORY_DEVICE);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return put_int_attribute(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return put_int_attribute(data, (int)access_of(m));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return put64(data, p->pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return put64(data, p->mapping_size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return put64(data, p->mapping_at);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return put64(data, p->block);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The answers of cuPointerGetAttributes if there is none to give: for an address that CUDA does not
 * know, for a reserved one with nothing mapped there, or for just this attribute. */
static void
put_nothing(const struct pointer *p, bool reserved, bool known, CUpointer_attribute attribute,
            void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        (void)put64(data, known ? 0 : p->at);
        break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        (void)put64(data, 0);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        (void)put_int_attribute(data, CU_DEVICE_INVALID);
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        (void)put_int_attribute(data, 0);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (reserved)
            (void)answer_attribute(p, attribute, data);
        break;
    default:
        break;
    }
}

static bool
is_attribute(CUpointer_attribute attribute)
{
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

CUresult
hed_soft_cuPointerGetAttribute(struct hed_layer *self, struct hed_cuPointerGetAttribute *a)
{
    struct pointer p;

    if (hed_memory_initialized(self) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!a->data || !is_attribute(a->attribute) ||
        !look_up_pointer(hed_driver_of(self), a->ptr, &p) || p.m.kind == HED_MEMORY_RESERVED)
        return CUDA_ERROR_INVALID_VALUE;
    return answer_attribute(&p, a->attribute, a->data);
}

CUresult
hed_soft_cuPointerGetAttributes(struct hed_layer *self, struct hed_cuPointerGetAttributes *a)
{
    struct pointer p;

    if (hed_memory_initialized(self) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!a->attributes || !a->data || a->numAttributes == 0 || a->numAttributes > ATTRIBUTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < a->numAttributes; i++)
        if (!a->data[i] || !is_attribute(a->attributes[i]))
            return CUDA_ERROR_INVALID_VALUE;

    const bool found = look_up_pointer(hed_driver_of(self), a->ptr, &p);
    const bool reserved = found && p.m.kind == HED_MEMORY_RESERVED;
    const bool known = found && !reserved;

    for (unsigned i = 0; i < a->numAttributes; i++)
        if (!known || answer_attribute(&p, a->attributes[i], a->data[i]) != CUDA_SUCCESS)
            put_nothing(&p, reserved, known, a->attributes[i], a->data[i]);
    return CUDA_SUCCESS;
}

CUresult
hed_soft_cuPointerSetAttribute(struct hed_layer *self, struct hed_cuPointerSetAttribute *a)
{
    struct hed_driver *d = hed_driver_of(self);
    int value;

    if (hed_memory_initialized(self) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!a->value || a->attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&value, a->value, sizeof value);
    hed_lock(&d->memory_lock);

    struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, a->ptr);

    if (m)
        m->sync_memops = value != 0;
    hed_unlock(&d->memory_lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
