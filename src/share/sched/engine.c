/* The engine's life: creating it, joining GPUs, and its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "share/sched/gate.h"

/* Stand for a GPU whose other clients cannot be reached: its gate is always open. */
static struct hed_sched_slot lone_slot;
static struct hed_sched_common lone_common;

/* Memory that is zeroed and begins with a cache line; free() releases it. */
static void *
alloc_lines(size_t size)
{
    const size_t rounded = hed_round_up(size, 64);
    void *p = aligned_alloc(64, rounded);

    return p ? memset(p, 0, rounded) : NULL;
}

int
hed_sched_create(const struct hed_sched_driver *driver, void *below,
                 const struct hed_sched_settings *settings, struct hed_sched **out,
                 struct hed_why *why)
{
    static _Atomic uint64_t engines;
    struct hed_sched *s = alloc_lines(sizeof *s);

    if (!s) {
        hed_why_set(why, "sched: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    /* Relaxed: a number that nobody else gets. */
    s->id = atomic_fetch_add_explicit(&engines, 1, memory_order_relaxed) + 1;
    s->driver = driver;
    s->below = below;
    s->settings = *settings;
    hed_lock_init(&s->lock, HED_RANK_SCHED);
    *out = s;
    return 0;
}

/* `heddle sched list` shows a named client as "program/client". */
static void
name_slot(struct hed_gate *g)
{
    char *name = g->slot->name;
    const size_t n = strnlen(name, HED_SCHED_NAME);

    if (!g->client || n >= HED_SCHED_NAME - 1 || hed_meet_lock(g->meet) != 0)
        return;
    (void)snprintf(name + n, HED_SCHED_NAME - n, "/%.*s", (int)(HED_SCHED_NAME - n - 2),
                   g->client->name);
    hed_meet_unlock(g->meet);
}

static void
join_clients(struct hed_gate *g, const unsigned char uuid[16])
{
    const struct hed_sched *s = g->sched;
    char name[HED_SCHED_MEET_MAX];
    struct hed_why why;
    const struct hed_sched_settings *settings = g->client ? &g->client->settings : &s->settings;

    hed_sched_meet_name(s->settings.scope, uuid, name);
    if (hed_sched_join(name, settings, &g->meet, &why) == 0) {
        g->slot = hed_meet_mine(g->meet);
        g->common = hed_meet_common(g->meet);
        name_slot(g);
        hed_info(SCHED, "device %d: slot %d of %s", g->device, hed_meet_index(g->meet), name);
        return;
    }
    g->meet = NULL;
    g->slot = &lone_slot;
    g->common = &lone_common;
    hed_warn(SCHED, "device %d is not shared with others: %s", g->device, why.text);
}

/* The memory of the process is shown once on each device: with its own client, not with those that
 * its threads have named. */
static void
show_memory(const struct hed_gate *g)
{
    if (g->sched->driver->show_memory && g->meet && !g->client)
        g->sched->driver->show_memory(g->device, g->slot);
}

struct hed_gate *
hed_sched_join_device(struct hed_sched *s, int device)
{
    unsigned char uuid[16] = {0};
    const struct hed_sched_named *client = hed_sched_thread_client(s);
    struct hed_gate *g = NULL;

    if (!s->driver->get_uuid(s->below, device, uuid))
        return NULL;
    hed_lock(&s->lock);

    const uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    for (uint32_t i = 0; !g && i < count; i++)
        if (s->gates[i]->device == device && s->gates[i]->client == client)
            g = s->gates[i];
    if (!g && count < HED_SCHED_GATES && (g = alloc_lines(sizeof *g)) != NULL) {
        g->sched = s;
        g->device = device;
        g->client = client;
        atomic_init(&g->pace.next_poll, UINT64_MAX);
        join_clients(g, uuid);
        show_memory(g);
        s->gates[count] = g;
        /* Release, both: pair with the acquires in hed_gate_open and hed_sched_all_open. */
        atomic_store_explicit(&s->count, count + 1, memory_order_release);
        atomic_store_explicit(&s->only, count == 0 && s->named_count == 0 ? g->slot : NULL,
                              memory_order_release);
    }
    hed_unlock(&s->lock);
    return g;
}

void
hed_sched_open_gates(struct hed_sched *s)
{
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        /* Sequentially consistent, and before the gate opens: a thread that comes to the gate late
         * would announce itself, and find it closed again. It looks at this before it sleeps. */
        atomic_store_explicit(&s->gates[i]->ending, true, memory_order_seq_cst);
        if (s->gates[i]->meet) {
            if (s->driver->show_memory)
                s->driver->show_memory(s->gates[i]->device, NULL);
            hed_sched_retire(s->gates[i]->meet, hed_now_ns());
            hed_meet_end(s->gates[i]->meet);
        }
    }
}

void
hed_sched_forked(struct hed_sched *s)
{
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    /* The other threads, and what they were doing, stay with the parent. Relaxed: there is one
     * thread. */
    hed_lock_init(&s->lock, HED_RANK_SCHED);
    atomic_store_explicit(&s->busy, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        s->gates[i]->pace.polling = false;
        hed_meet_forked(s->gates[i]->meet);
    }
}
