/* The quota layer: a process, or a group of processes, gets no more than a limit of each device's
 * memory (settings mem and mem_group). layers/quota/quota.h lists the parts.
 */
#include "layers/quota/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/stream.h"

#define LIMIT_MAX ((UINT64_C(1) << 48) - 1)      /* a total has 48 bits for bytes */
#define ORDINAL_KEY UINT64_C(0x6c616e6964726f23) /* instead of a UUID's first half */
#define GROUP_MAGIC 0x51554f32u                  /* changes with the layout */

extern const struct hed_layer_type hed_quota_layer;

/* ---- devices --------------------------------------------------------------------------------- */

void
quota_key_of_ordinal(unsigned ordinal, uint64_t key[2])
{
    key[0] = ORDINAL_KEY;
    key[1] = ordinal;
}

/* Whether the word holds this key, or was free and holds it now. A free word is 0, so a key of 0 is
 * written as a number that no ordinal is. */
static bool
claim_key_word(_Atomic uint64_t *word, uint64_t key)
{
    uint64_t old = 0;

    key = key ? key : UINT64_MAX;
    return atomic_compare_exchange_strong_explicit(word, &old, key, memory_order_relaxed,
                                                   memory_order_relaxed) ||
           old == key;
}

/* The device's number in the group; QUOTA_DEVICES: there is no room. Keys are written once,
 * one half after the other, and every process goes through them in the same order. So all processes
 * find a device at the same number without a lock, which a stopped process could hold for ever. */
static uint32_t
group_slot(struct quota *q, const uint64_t key[2])
{
    struct quota_common *c = hed_meet_common(q->meet);
    uint32_t i = 0;

    while (i < QUOTA_DEVICES &&
           !(claim_key_word(&c->key[i][0], key[0]) && claim_key_word(&c->key[i][1], key[1])))
        i++;
    return i;
}

static struct quota_device *
make_quota_device(struct quota *q, const uint64_t key[2])
{
    struct quota_device *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    memcpy(d->key, key, sizeof d->key);
    d->limit = q->limit;
    d->total = &d->alone;
    hed_lock_init(&d->graph_lock, HED_RANK_RECORDS);
    hed_lock_init(&d->code_lock, HED_RANK_RECORDS);
    if (!q->meet)
        return d;
    d->slot = group_slot(q, key);
    if (d->slot >= QUOTA_DEVICES) {
        /* Memory that cannot be counted is not given out. */
        hed_error(QUOTA, "the group has no room for one more device: nothing is allocated on it");
        d->limit = 0;
        return d;
    }
    d->meet = q->meet;
    d->total = &((struct quota_common *)hed_meet_common(q->meet))->total[d->slot];
    d->used = &((struct quota_slot *)hed_meet_mine(q->meet))->used[d->slot];
    return d;
}

struct quota_device *
quota_device_by_key(struct quota *q, const uint64_t key[2])
{
    struct quota_device *d = NULL;

    hed_lock(&q->lock);
    for (uint32_t i = 0; !d && i < q->device_count; i++)
        if (memcmp(q->devices[i]->key, key, sizeof q->devices[i]->key) == 0)
            d = q->devices[i];
    if (!d && q->device_count < QUOTA_DEVICES && (d = make_quota_device(q, key)) != NULL)
        q->devices[q->device_count++] = d;
    hed_unlock(&q->lock);
    return d;
}

struct quota_device *
quota_device(struct hed_layer *self, CUdevice ordinal)
{
    struct quota *q = self->state;
    CUuuid uuid = {{0}};
    uint64_t key[2];

    if (ordinal < 0 || ordinal >= QUOTA_DEVICES)
        return NULL;

    struct quota_device *d = atomic_load_explicit(&q->ordinals[ordinal], memory_order_acquire);

    if (d)
        return d;

    const CUresult r = hed_call(self->next, cuDeviceGetUuid_v2, .uuid = &uuid, .dev = ordinal);

    if (r == CUDA_ERROR_NOT_INITIALIZED || r == CUDA_ERROR_DEINITIALIZED ||
        r == CUDA_ERROR_INVALID_DEVICE)
        return NULL;
    memcpy(key, &uuid, sizeof key);
    if (r != CUDA_SUCCESS || (key[0] == 0 && key[1] == 0))
        quota_key_of_ordinal((unsigned)ordinal, key);
    d = quota_device_by_key(q, key);
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&q->ordinals[ordinal], d, memory_order_release);
    return d;
}

struct quota_device *
quota_current(struct hed_layer *self)
{
    CUdevice dev = 0;

    return hed_call(self->next, cuCtxGetDevice, .device = &dev) == CUDA_SUCCESS
               ? quota_device(self, dev)
               : NULL;
}

CUcontext
quota_context(struct hed_layer *self)
{
    return hed_current_context(self->next);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* The mode that the thread had before; -1: the layer below does not answer. */
static int
exchange_mode(struct hed_layer *self, CUstreamCaptureMode mode)
{
    return hed_call(self->next, cuThreadExchangeStreamCaptureMode, .mode = &mode) == CUDA_SUCCESS
               ? (int)mode
               : -1;
}

int
quota_relax(struct hed_layer *self)
{
    const struct quota *q = self->state;

    return atomic_load_explicit(&q->captures, memory_order_relaxed)
               ? exchange_mode(self, CU_STREAM_CAPTURE_MODE_RELAXED)
               : -1;
}

void
quota_relaxed(struct hed_layer *self, int before)
{
    if (before >= 0)
        (void)exchange_mode(self, (CUstreamCaptureMode)before);
}

void
quota_relieve(struct hed_layer *self, struct quota_device *d)
{
    const int mode = quota_relax(self);

    quota_pools_settle(self, d, true);
    quota_graph_trim(self, d);
    quota_relaxed(self, mode);
}

/* The program sees only that there is no memory, so the user is told whose limit it is: once,
 * because some programs try again and again, and cope. */
static void
report_limit(struct quota *q, struct quota_device *d, uint64_t n)
{
    const unsigned long long want = n, limit = d->limit, used = quota_used(d);

    /* Relaxed: it only keeps the line from being repeated. */
    if (!atomic_exchange_explicit(&q->warned, true, memory_order_relaxed))
        hed_warn(QUOTA,
                 "limit of --mem reached: %llu bytes are over the limit of %llu, of which %llu are "
                 "used; said once",
                 want, limit, used);
    else
        hed_info(QUOTA, "%llu bytes are over the limit of %llu, of which %llu are used", want,
                 limit, used);
}

bool
quota_claim(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    if (quota_reserve(d, n))
        return true;
    /* More than the limit would not fit if everything else were freed. */
    if (n <= d->limit) {
        quota_relieve(self, d);
        if (quota_reserve(d, n))
            return true;
    }
    report_limit(self->state, d, n);
    return false;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int
join_group(struct quota *q, const char *group, struct hed_why *why)
{
    static const struct hed_meet_shape shape = {GROUP_MAGIC, sizeof(struct quota_common),
                                                sizeof(struct quota_slot), QUOTA_SLOTS};
    char name[128];

    if (!*group)
        return 0;
    if (q->limit == LIMIT_MAX) {
        hed_why_set(why, "mem_group: a group needs a limit, mem");
        return HED_EINVAL;
    }
    if ((size_t)snprintf(name, sizeof name, "quota-%s", group) >= sizeof name) {
        hed_why_set(why, "mem_group: the name is too long");
        return HED_EINVAL;
    }

    const int err = hed_meet_join(name, &shape, &q->meet, why);

    if (err)
        hed_why_set(why, "mem_group: %s", why ? why->text : "");
    return err;
}

static int
quota_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct quota *q = aligned_alloc(_Alignof(struct quota), sizeof *q);

    if (!q) {
        hed_why_set(why, "quota: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    memset(q, 0, sizeof *q);
    q->limit = config->mem && config->mem < LIMIT_MAX ? config->mem : LIMIT_MAX;
    hed_lock_init(&q->lock, HED_RANK_QUOTA);
    for (size_t i = 0; i < QUOTA_SHARDS; i++)
        hed_lock_init(&q->shards[i].lock, HED_RANK_RECORDS);

    const int err = join_group(q, config->mem_group, why);

    if (err) {
        free(q);
        return err;
    }
    self->state = q;
    return 0;
}

/* Calls that come later still find the group's memory. */
static void
quota_fini(struct hed_layer *self)
{
    const struct quota *q = self->state;

    hed_meet_end(q->meet);
}

static void
quota_forked(struct hed_layer *self)
{
    struct quota *q = self->state;

    hed_meet_forked(q->meet);
}

#define ENTRY(call, ...) .call = quota_##call,

static const struct hed_cuda_ops quota_cuda = {HED_CUDA_MEMORY(ENTRY)};
static const struct hed_nvml_ops quota_nvml = {HED_NVML_MEMORY(ENTRY)};

const struct hed_layer_type hed_quota_layer = {
    .name = "quota",
    .cuda = &quota_cuda,
    .nvml = &quota_nvml,
    .init = quota_init,
    .fini = quota_fini,
    .forked = quota_forked,
};
