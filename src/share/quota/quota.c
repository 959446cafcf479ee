/* The engine of memory limits: its life, devices, and room for what is asked for. The layer sees
 * share/quota/quota.h; share/quota/engine.h lists the parts.
 */
#include "share/quota/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stream.h"

#define ORDINAL_KEY UINT64_C(0x6c616e6964726f23) /* instead of a UUID's first half */
#define GROUP_MAGIC 0x51554f32u                  /* changes with the layout */

/* ---- devices --------------------------------------------------------------------------------- */

void
hed_quota_key_of_ordinal(unsigned ordinal, uint64_t key[2])
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
group_slot(struct hed_quota *q, const uint64_t key[2])
{
    struct quota_common *c = hed_meet_common(q->meet);
    uint32_t i = 0;

    while (i < QUOTA_DEVICES &&
           !(claim_key_word(&c->key[i][0], key[0]) && claim_key_word(&c->key[i][1], key[1])))
        i++;
    return i;
}

static struct quota_device *
make_quota_device(struct hed_quota *q, const uint64_t key[2])
{
    struct quota_device *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    memcpy(d->key, key, sizeof d->key);
    d->limit = q->limit;
    atomic_init(&d->ordinal, -1);
    d->total = &d->alone;
    hed_lock_init(&d->graph_lock, HED_RANK_RECORDS);
    hed_lock_init(&d->code_lock, HED_RANK_RECORDS);
    if (!q->meet)
        return d;
    d->slot = group_slot(q, key);
    if (d->slot >= QUOTA_DEVICES) {
        /* Memory that cannot be counted is not given out. */
        hed_error(
            QUOTA,
            "the memory group has no room for another device, so nothing can be allocated on it");
        d->limit = 0;
        return d;
    }
    d->meet = q->meet;
    d->total = &((struct quota_common *)hed_meet_common(q->meet))->total[d->slot];
    d->used = &((struct quota_slot *)hed_meet_mine(q->meet))->used[d->slot];
    return d;
}

struct quota_device *
hed_quota_device_by_key(struct hed_quota *q, const uint64_t key[2])
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
hed_quota_device(struct hed_layer *self, CUdevice ordinal)
{
    struct hed_quota *q = self->state;
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
        hed_quota_key_of_ordinal((unsigned)ordinal, key);
    d = hed_quota_device_by_key(q, key);
    if (d) {
        atomic_store_explicit(&d->ordinal, (int)ordinal, memory_order_relaxed);
        hed_quota_show(d);
    }
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&q->ordinals[ordinal], d, memory_order_release);
    return d;
}

struct quota_device *
hed_quota_current(struct hed_layer *self)
{
    CUdevice dev = 0;

    return hed_call(self->next, cuCtxGetDevice, .device = &dev) == CUDA_SUCCESS
               ? hed_quota_device(self, dev)
               : NULL;
}

CUcontext
hed_quota_context(struct hed_layer *self)
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
hed_quota_relax(struct hed_layer *self)
{
    const struct hed_quota *q = self->state;

    return atomic_load_explicit(&q->captures, memory_order_relaxed)
               ? exchange_mode(self, CU_STREAM_CAPTURE_MODE_RELAXED)
               : -1;
}

void
hed_quota_relaxed(struct hed_layer *self, int before)
{
    if (before >= 0)
        (void)exchange_mode(self, (CUstreamCaptureMode)before);
}

void
hed_quota_relieve(struct hed_layer *self, struct quota_device *d)
{
    const int mode = hed_quota_relax(self);

    hed_quota_pools_settle(self, d, true);
    hed_quota_graph_trim(self, d);
    hed_quota_relaxed(self, mode);
}

/* The program sees only that there is no memory, so the user is told whose limit it is: once,
 * because some programs try again and again, and cope. */
static void
report_limit(struct hed_quota *q, struct quota_device *d, uint64_t n)
{
    const unsigned long long want = n, limit = d->limit, used = hed_quota_used(d);

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
hed_quota_claim(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    if (hed_quota_reserve(d, n))
        return true;
    /* More than the limit would not fit if everything else were freed. */
    if (n <= d->limit) {
        hed_quota_relieve(self, d);
        if (hed_quota_reserve(d, n))
            return true;
    }
    report_limit(self->state, d, n);
    return false;
}

/* ---- the engine ------------------------------------------------------------------------------ */

static int
join_group(struct hed_quota *q, const char *group, struct hed_why *why)
{
    static const struct hed_meet_shape shape = {GROUP_MAGIC, sizeof(struct quota_common),
                                                sizeof(struct quota_slot), QUOTA_SLOTS};
    char name[128];

    if (!group || !*group)
        return 0;
    if (q->limit == QUOTA_LIMIT_MAX) {
        hed_why_set(why, "mem_group: a group needs a limit; set mem, too");
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

int
hed_quota_create(uint64_t limit, const char *group, struct hed_quota **out, struct hed_why *why)
{
    struct hed_quota *q = aligned_alloc(_Alignof(struct hed_quota), sizeof *q);

    if (!q) {
        hed_why_set(why, "quota: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    memset(q, 0, sizeof *q);
    q->limit = limit && limit < QUOTA_LIMIT_MAX ? limit : QUOTA_LIMIT_MAX;
    hed_lock_init(&q->lock, HED_RANK_QUOTA);
    for (size_t i = 0; i < QUOTA_SHARDS; i++)
        hed_lock_init(&q->shards[i].lock, HED_RANK_RECORDS);

    const int err = join_group(q, group, why);

    if (err) {
        free(q);
        return err;
    }
    *out = q;
    return 0;
}

void
hed_quota_fini(struct hed_quota *q)
{
    hed_meet_end(q->meet);
}

void
hed_quota_forked(struct hed_quota *q)
{
    hed_meet_forked(q->meet);
}
