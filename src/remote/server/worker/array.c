/* HED_MSG_ARRAY: arrays and mipmapped arrays, which are created under the client's names and
 * charged to its lease of the device.
 *
 * Invariants, as seen by the thread that holds the current ticket:
 * 1. An array is in the list exactly as long as its names are bound and its bytes are in the
 *    ledger.
 * 2. The levels of a mipmap have names of their own, which are bound and unbound with it.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "core/array_format.h"
#include "remote/server/worker/worker.h"

#define LEVELS_MAX 32
#define ARRAYS_MAX (1u << 20) /* per client */
#define BUCKETS 256u

struct array {
    struct array *next;
    uint64_t name, real;
    uint64_t bytes;
    int device;
    uint32_t levels;  /* 0 if it is not mipmapped */
    uint64_t level[]; /* the client's names of the levels */
};

struct hed_worker_arrays {
    struct array *buckets[BUCKETS];
    uint32_t count;
};

static struct array **
find_array(struct hed_worker_arrays *all, uint64_t name)
{
    struct array **at = &all->buckets[name % BUCKETS];

    while (*at && (*at)->name != name)
        at = &(*at)->next;
    return at;
}

/* ---- what it takes --------------------------------------------------------------------------- */

/* An estimate: devices keep arrays in blocks of at least ROW bytes by ROWS rows, and every level of
 * a mipmap in pages of its own. So a million arrays of one element take more than a million
 * elements. False if no device has that much memory. */
#define ROW 64u
#define ROWS 8u
#define PAGE 4096u
static bool
array_bytes(const struct hed_array_body *b, uint64_t *out)
{
    const uint64_t height = b->height ? b->height : 1;
    uint64_t n;

    if (b->channels > 4 ||
        __builtin_mul_overflow(
            b->width, hed_array_element_bytes((CUarray_format)b->format, b->channels), &n) ||
        n > UINT64_MAX / 4 || height > UINT64_MAX / 4)
        return false;
    n = hed_round_up(n, ROW);
    if (__builtin_mul_overflow(n, height > 1 ? hed_round_up(height, ROWS) : 1, &n) ||
        __builtin_mul_overflow(n, b->depth ? b->depth : 1, &n) || n > UINT64_MAX / 4)
        return false;
    if (b->levels > 1)
        n += n / 2 + b->levels * (uint64_t)PAGE;
    *out = hed_round_up(n, PAGE);
    return true;
}

static CUresult
charge_array(struct hed_worker *w, struct array *a)
{
    CUdevice device = 0;
    const CUresult r = hed_worker_do(w, cuCtxGetDevice, .device = &device);

    a->device = (int)device;
    if (r != CUDA_SUCCESS || a->bytes == 0)
        return r;
    return hed_lease_take(w, a->device, a->bytes, a->bytes) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_OUT_OF_MEMORY;
}

static void
uncharge_array(struct hed_worker *w, const struct array *a)
{
    if (a->bytes)
        hed_lease_give(w, a->device, a->bytes);
}

/* ---- making ---------------------------------------------------------------------------------- */

static CUresult
make_array(struct hed_worker *w, const struct hed_array_body *b, struct array *a)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v2 d = {.Width = b->width,
                                          .Height = b->height,
                                          .Depth = b->depth,
                                          .Format = (CUarray_format)b->format,
                                          .NumChannels = b->channels,
                                          .Flags = b->flags};
    CUmipmappedArray mipmap = NULL;
    CUarray array = NULL;
    CUresult r;

    if (b->levels)
        r = hed_worker_do(w, cuMipmappedArrayCreate, .pHandle = &mipmap, .pMipmappedArrayDesc = &d,
                          .numMipmapLevels = b->levels);
    else
        r = hed_worker_do(w, cuArray3DCreate_v2, .pHandle = &array, .pAllocateArray = &d);
    a->real = b->levels ? (uint64_t)(uintptr_t)mipmap : (uint64_t)(uintptr_t)array;
    return r;
}

static void
unmake_array(struct hed_worker *w, const struct array *a)
{
    CUresult r;

    if (a->levels)
        r = hed_worker_do(w, cuMipmappedArrayDestroy,
                          .hMipmappedArray = (CUmipmappedArray)(uintptr_t)a->real);
    else
        r = hed_worker_do(w, cuArrayDestroy, .hArray = (CUarray)(uintptr_t)a->real);
    if (r != CUDA_SUCCESS)
        hed_debug(SERVER, "destroying an array answered %d", (int)r);
}

/* Levels that were never named are ignored. */
static void
unbind_names(struct hed_worker *w, const struct array *a)
{
    (void)hed_name_unbind(w->names, a->name, NULL);
    for (uint32_t i = 0; i < a->levels; i++)
        (void)hed_name_unbind(w->names, a->level[i], NULL);
}

/* Binds the names of the array and of its levels, or none of them if that fails (HED_EEXIST,
 * ...). */
static int
bind_names(struct hed_worker *w, struct array *a)
{
    const uint32_t levels = a->levels;
    int err = hed_name_fits(a->name, levels ? "mipmap" : "array")
                  ? hed_name_bind(w->names, a->name, a->real)
                  : HED_EFORMAT;

    if (err)
        return err;
    for (a->levels = 0; a->levels < levels && !err; a->levels += !err) {
        CUarray level = NULL;
        const CUresult r = hed_worker_do(w, cuMipmappedArrayGetLevel, .pLevelArray = &level,
                                         .hMipmappedArray = (CUmipmappedArray)(uintptr_t)a->real,
                                         .level = a->levels);

        err = r == CUDA_SUCCESS && hed_name_fits(a->level[a->levels], "array")
                  ? hed_name_bind(w->names, a->level[a->levels], (uint64_t)(uintptr_t)level)
                  : HED_ENOTFOUND;
    }
    if (err)
        unbind_names(w, a);
    a->levels = levels;
    return err;
}

/* Returns HED_E... if the request makes no sense. *result is the backend's answer. */
static int
create_named_array(struct hed_worker *w, const struct hed_array_body *b, CUresult *result)
{
    struct array *a = calloc(1, sizeof *a + b->levels * sizeof a->level[0]);
    int err = 0;

    *result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!a || w->arrays->count >= ARRAYS_MAX)
        goto out;
    a->name = b->name;
    a->levels = b->levels;
    for (uint32_t i = 0; i < b->levels; i++)
        a->level[i] = ((const uint64_t *)(const void *)(b + 1))[i];
    if (!array_bytes(b, &a->bytes))
        goto out;
    *result = charge_array(w, a);
    if (*result != CUDA_SUCCESS)
        goto out;
    *result = make_array(w, b, a);
    if (*result == CUDA_SUCCESS) {
        err = bind_names(w, a);
        if (!err) {
            struct array **at = find_array(w->arrays, a->name);

            a->next = *at;
            *at = a;
            w->arrays->count++;
            return 0;
        }
        hed_warn(SERVER, "the client's names of an array cannot be used: %s", hed_err_text(err));
        *result = CUDA_ERROR_INVALID_HANDLE;
        unmake_array(w, a);
    }
    uncharge_array(w, a);
out:
    free(a);
    return err == HED_EEXIST || err == HED_ELIMIT ? HED_EFORMAT : 0;
}

/* The names are unbound in ticket order. The next ticket does not have to wait for the device. */
static int
destroy_named_array(struct hed_worker_channel *ch, uint64_t name)
{
    struct array **at = find_array(ch->worker->arrays, name);
    struct array *a = *at;

    if (!a)
        return HED_EFORMAT;
    *at = a->next;
    ch->worker->arrays->count--;
    unbind_names(ch->worker, a);
    hed_ticket_pass(ch);
    unmake_array(ch->worker, a);
    uncharge_array(ch->worker, a);
    free(a);
    return 0;
}

int
hed_do_array(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_array_body *b = (const struct hed_array_body *)m;
    struct hed_worker *w = ch->worker;
    CUresult result;

    if (!w->arrays && !(w->arrays = calloc(1, sizeof *w->arrays)))
        return HED_ENOMEM;
    if (b->op == HED_ARRAY_DESTROY)
        return destroy_named_array(ch, b->name);
    if (b->op != HED_ARRAY_CREATE || b->levels > LEVELS_MAX ||
        b->levels * sizeof(uint64_t) > m->size - sizeof *b || *find_array(w->arrays, b->name))
        return HED_EFORMAT;

    const int err = create_named_array(w, b, &result);

    return err ? err : hed_worker_answer(ch, m, (int)result, NULL, 0);
}
