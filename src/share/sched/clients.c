/* Clients: a process is one, and every name that its threads give themselves (heddle_set_client) is
 * another, with a gate of its own on each GPU. Nearly always there is one client on one GPU, and
 * calls do not come through here. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "share/sched/gate.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static _Thread_local struct {
    const struct hed_sched *sched;
    const struct hed_sched_named *client;
} thread;

const struct hed_sched_named *
hed_sched_thread_client(const struct hed_sched *s)
{
    return thread.sched == s ? thread.client : NULL;
}

/* The client of that name. Its settings count when it is made; `heddle sched set` changes them
 * later. NULL: there are too many. */
static struct hed_sched_named *
find_client_locked(struct hed_sched *s, const struct hed_sched_named *wanted)
{
    struct hed_sched_named *c = NULL;

    for (uint32_t i = 0; !c && i < s->named_count; i++)
        if (strcmp(s->named[i]->name, wanted->name) == 0)
            c = s->named[i];
    if (c || s->named_count == HED_SCHED_CLIENTS || !(c = malloc(sizeof *c)))
        return c;
    *c = *wanted;
    s->named[s->named_count++] = c;
    /* From now on a call must ask for which client its thread works. Relaxed: this thread sees
     * it. */
    atomic_store_explicit(&s->only, NULL, memory_order_relaxed);
    return c;
}

int
hed_sched_set_client(struct hed_sched *s, const char *text)
{
    struct hed_sched_named wanted = {.settings = s->settings};
    struct hed_why why = {""};
    int err;

    thread.sched = s;
    thread.client = NULL;
    if (!text || !*text)
        return 0;
    /* Only the process sets what all clients share. */
    wanted.settings.given = 0;
    err = hed_sched_parse_client(text, wanted.name, &wanted.settings, &why);
    if (err) {
        hed_warn(SCHED, "heddle_set_client: %s", why.text);
        return err;
    }
    hed_lock(&s->lock);
    thread.client = find_client_locked(s, &wanted);
    hed_unlock(&s->lock);
    if (thread.client)
        return 0;
    hed_warn(SCHED,
             "heddle_set_client: \"%s\": a process can name %d clients; the thread works "
             "for the process itself",
             wanted.name, HED_SCHED_CLIENTS);
    return HED_ELIMIT;
}

bool
hed_sched_all_open(struct hed_sched *s)
{
    /* Acquire: as in hed_gate_open. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);
    const struct hed_sched_named *client = hed_sched_thread_client(s);
    struct hed_sched_slot *first = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct hed_gate *g = s->gates[i];

        if (g->client != client)
            continue;
        if (GET(g->slot->gate) != 0)
            return false;
        first = first ? first : g->slot;
    }
    if (first)
        hed_sched_count(first);
    return first;
}

struct hed_gate *
hed_gate_current(struct hed_sched *s)
{
    const struct hed_sched_named *client = hed_sched_thread_client(s);
    int device = -1;

    if (!s->driver->get_device(s->below, &device))
        return NULL;

    /* Acquire: as in hed_gate_open. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        if (s->gates[i]->device == device && s->gates[i]->client == client)
            return s->gates[i]->meet ? s->gates[i] : NULL;

    struct hed_gate *g = hed_sched_join_device(s, device);

    return g && g->meet ? g : NULL;
}
