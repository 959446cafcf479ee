/* The tables of tables.h. A table is an array of words: its size in bytes, then functions. */
#include "backends/null/tables.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "backends/null/null.h"
#include "base/lock.h"
#include "driver/driver.h"

#define HOOKS 4096    /* more words than a runtime has functions; 0: no tool wants to know of it */
#define STORAGE_MAX 8 /* one for each runtime in the process */

typedef void (*slot)(void);

/* For what the runtime only wants to have told, and asks for without looking at the answer. */
static CUresult
nothing(void)
{
    return CUDA_SUCCESS;
}

/* Sharing a device with OpenGL or VDPAU. */
static CUresult
refuse_graphics(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
one_context(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)(uintptr_t)HED_NULL_OBJECT;
    return CUDA_SUCCESS;
}

static CUresult
primary_context(CUcontext *out, CUdevice ordinal)
{
    return ordinal == 0 ? one_context(out) : CUDA_ERROR_INVALID_DEVICE;
}

/* Runtimes before CUDA 12 load their fat binaries through the table. */
static CUresult
load_wrapper(CUmodule *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)(uintptr_t)hed_null_mint(NULL);
    return CUDA_SUCCESS;
}

static CUresult
load_header(const void *header, CUmodule *out)
{
    return load_wrapper(out);
}

static void
hooks_of(const uint32_t **flags, size_t *count)
{
    static const uint32_t hooks[HOOKS];

    if (flags)
        *flags = hooks;
    if (count)
        *count = HOOKS;
}

/* Any value but 0 marks a context that the runtime must not use. */
static CUresult
accept_context(CUcontext handle, uint32_t *kind)
{
    if (kind)
        *kind = 0;
    return CUDA_SUCCESS;
}

/* ---- storage of a context -------------------------------------------------------------------- */

/* All contexts are one here. It does not end, so that no destructor is ever called. */
static struct hed_lock storage_lock = HED_LOCK_INIT(HED_RANK_STATS);
static struct {
    void *key;
    void *value;
} stored[STORAGE_MAX]; /* guarded by storage_lock; free where key is NULL */

static CUresult
storage_put(CUcontext handle, void *key, void *value, void (*dtor)(void))
{
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    if (!key)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&storage_lock);
    for (int i = 0; i < STORAGE_MAX && r != CUDA_SUCCESS; i++)
        if (!stored[i].key) {
            stored[i].key = key;
            stored[i].value = value;
            r = CUDA_SUCCESS;
        }
    hed_unlock(&storage_lock);
    return r;
}

static CUresult
storage_remove(CUcontext handle, void *key)
{
    CUresult r = CUDA_ERROR_INVALID_HANDLE;

    hed_lock(&storage_lock);
    for (int i = 0; i < STORAGE_MAX && key && r != CUDA_SUCCESS; i++)
        if (stored[i].key == key) {
            stored[i].key = NULL;
            r = CUDA_SUCCESS;
        }
    hed_unlock(&storage_lock);
    return r;
}

static CUresult
storage_get(void **value, CUcontext handle, void *key)
{
    CUresult r = CUDA_ERROR_INVALID_HANDLE;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&storage_lock);
    for (int i = 0; i < STORAGE_MAX && key && r != CUDA_SUCCESS; i++)
        if (stored[i].key == key) {
            *value = stored[i].value;
            r = CUDA_SUCCESS;
        }
    hed_unlock(&storage_lock);
    return r;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static CUresult integrity(uint32_t version, uint64_t seconds, uint8_t out[16]);

/* The first word: the size in bytes of a table of `words` words. */
#define SIZE(words) (slot)(uintptr_t)((words) * sizeof(slot))
#define NOTHING (slot) nothing

static const slot interface_table[13] = {
    SIZE(13),
    (slot)load_wrapper,
    (slot)primary_context,
    (slot)refuse_graphics,
    NOTHING,
    NOTHING,
    (slot)load_wrapper,
    NOTHING,
    (slot)load_header,
    NOTHING,
    NULL,
    NOTHING,
    NOTHING,
};
static const slot hooks_table[7] = {SIZE(7), NOTHING, (slot)hooks_of, NOTHING,
                                    NOTHING, NOTHING, (slot)hooks_of};
static const slot tls_table[4] = {SIZE(4), NOTHING, (slot)one_context, NULL};
static const slot storage_table[4] = {(slot)storage_put, (slot)storage_remove, (slot)storage_get,
                                      NULL};
static const slot checks_table[15] = {
    SIZE(15), NOTHING, (slot)accept_context,
    NOTHING,  NOTHING, NOTHING,
    NOTHING,  NOTHING, NOTHING,
    NOTHING,  NOTHING, NOTHING,
    NOTHING,  NOTHING, NOTHING,
};
static const slot integrity_table[3] = {SIZE(3), (slot)integrity, NOTHING};
static const slot log_table[3] = {SIZE(3), NOTHING, NOTHING};

/* The one device has neither a UUID nor an address: outputs of this backend are zero. */
static CUresult
integrity(uint32_t version, uint64_t seconds, uint8_t out[16])
{
    const struct hed_integrity_device device = {.pci_bus = 0};
    const struct hed_integrity in = {
        .driver_version = HED_NULL_VERSION,
        .version = version,
        .process = (uint32_t)getpid(),
        .thread = (uint32_t)(uintptr_t)pthread_self(),
        .interface_table = (uintptr_t)interface_table,
        .integrity_table = (uintptr_t)integrity_table,
        .function = (uintptr_t)integrity_table[1],
        .seconds = seconds,
        .devices = &device,
        .device_count = 1,
    };

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    hed_integrity_answer(&in, out);
    return CUDA_SUCCESS;
}

static const struct {
    unsigned char id[16]; /* as it is in memory */
    const slot *table;
} tables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     interface_table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     hooks_table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     tls_table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     storage_table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     checks_table},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
      0xf2},
     integrity_table},
    {{0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d,
      0xd9},
     log_table},
};

CUresult
hed_null_table(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (memcmp(tables[i].id, id, sizeof tables[i].id) == 0) {
            *table = tables[i].table;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
