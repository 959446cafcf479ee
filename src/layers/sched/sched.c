/* The sched layer: programs that share a GPU take turns on it, by a policy (src/sched). Nobody is
 * in charge: the processes decide themselves, in shared memory, and a call that may go on goes on
 * in its own thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "layers/sched/sched.h"

/* The place of a GPU whose users cannot be met: its gate is always open. */
static struct hed_sched_place nowhere;
static struct hed_sched_common nothing;

/* "program/client": what `heddle sched list` shows of a client that has a name. */
static void
name_place(struct hed_sched_gpu *g)
{
    char *name = g->place->name;
    const size_t n = strnlen(name, HED_SCHED_NAME);

    if (!g->client || n >= HED_SCHED_NAME - 1 || hed_meet_lock(g->meet) != 0)
        return;
    (void)snprintf(name + n, HED_SCHED_NAME - n, "/%.*s", (int)(HED_SCHED_NAME - n - 2),
                   g->client->name);
    hed_meet_unlock(g->meet);
}

static void
meet(struct hed_sched *s, struct hed_sched_gpu *g, const CUuuid *uuid)
{
    char name[HED_SCHED_MEET_MAX];
    struct hed_why why;
    const struct hed_sched_settings *settings = g->client ? &g->client->settings : &s->settings;

    hed_sched_meet_name(s->settings.scope, (const unsigned char *)uuid, name);
    if (hed_sched_join(name, settings, &g->meet, &why) == 0) {
        g->place = hed_meet_mine(g->meet);
        g->common = hed_meet_common(g->meet);
        name_place(g);
        hed_info(SCHED, "device %d: place %d at %s", g->device, hed_meet_index(g->meet), name);
        return;
    }
    g->meet = NULL;
    g->place = &nowhere;
    g->common = &nothing;
    hed_warn(SCHED, "device %d is not shared with others: %s", g->device, why.text);
}

struct hed_sched_gpu *
hed_sched_join_gpu(struct hed_layer *self, CUdevice device)
{
    struct hed_sched *s = self->state;
    CUuuid uuid = {{0}};
    struct hed_cuDeviceGetUuid_v2 a = {&uuid, device};
    const struct hed_sched_named *mine = hed_sched_mine(s);
    struct hed_sched_gpu *g = NULL;

    if (hed_next(self, cuDeviceGetUuid_v2, &a) != CUDA_SUCCESS)
        return NULL;
    hed_lock(&s->lock);

    const uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    for (uint32_t i = 0; !g && i < count; i++)
        if (s->gpus[i]->device == device && s->gpus[i]->client == mine)
            g = s->gpus[i];
    if (!g && count < HED_SCHED_GPUS && (g = calloc(1, sizeof *g)) != NULL) {
        g->device = device;
        g->client = mine;
        meet(s, g, &uuid);
        s->gpus[count] = g;
        /* Release, both: pair with the acquires in hed_sched_open and hed_sched_all_open. */
        atomic_store_explicit(&s->count, count + 1, memory_order_release);
        atomic_store_explicit(&s->only, count == 0 && s->named_count == 0 ? g->place : NULL,
                              memory_order_release);
    }
    hed_unlock(&s->lock);
    return g;
}

static int
sched_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_sched *s = calloc(1, sizeof *s);
    int err = s ? 0 : HED_ENOMEM;

    if (err)
        hed_why_set(why, "sched: %s", hed_err_text(err));
    else
        err = hed_sched_parse(*config->sched ? config->sched : "on", &s->settings, why);
    if (err) {
        free(s);
        return err;
    }
    hed_lock_init(&s->lock, HED_RANK_SCHED);
    self->state = s;
    return 0;
}

/* Calls may come afterwards: they find gates that are open. */
void
hed_sched_let_go(struct hed_layer *self)
{
    struct hed_sched *s = self->state;
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        if (s->gpus[i]->meet)
            hed_sched_go(s->gpus[i]->meet, hed_now_ns());
}

static void
sched_forked(struct hed_layer *self)
{
    struct hed_sched *s = self->state;
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    /* What other threads were about to do stays with the parent. Relaxed: there is one thread. */
    hed_lock_init(&s->lock, HED_RANK_SCHED);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        s->gpus[i]->pace.polling = false;
        hed_meet_forked(s->gpus[i]->meet);
    }
}

static int
sched_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    return note == HED_NOTE_CLIENT ? hed_sched_set_client(self, text) : 0;
}

const struct hed_layer_type hed_sched_layer = {
    .name = "sched",
    .cuda = &hed_sched_cuda,
    .init = sched_init,
    .fini = hed_sched_let_go,
    .forked = sched_forked,
    .note = sched_note,
};
