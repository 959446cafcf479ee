/* Joining and changing what share/sched/share.h describes. */
#include "share/sched/share.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/futex.h"

const struct hed_meet_shape hed_sched_shape = {
    .magic = HED_SCHED_MAGIC,
    .common = sizeof(struct hed_sched_common),
    .slot = sizeof(struct hed_sched_slot),
    .slots = HED_SCHED_SLOTS,
};

/* Relaxed everywhere in this file: stores happen under the meeting's lock, which orders them for
 * everybody who takes it; others read single numbers. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

#define GIVEN_COMMON                                                                               \
    (HED_SCHED_GIVEN_POLICY | HED_SCHED_GIVEN_HOLD | HED_SCHED_GIVEN_CAP | HED_SCHED_GIVEN_SLICE | \
     HED_SCHED_GIVEN_BATCH | HED_SCHED_GIVEN_BATCH_WAIT)

void
hed_sched_meet_name(const char *scope, const unsigned char uuid[16], char out[HED_SCHED_MEET_MAX])
{
    size_t n =
        (size_t)snprintf(out, HED_SCHED_MEET_MAX, HED_SCHED_BEGIN "%s%s", scope, *scope ? "-" : "");

    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(out + n, HED_SCHED_MEET_MAX - n, "%02x", uuid[i]);
}

/* ---- settings -------------------------------------------------------------------------------- */

static void
set_params_locked(struct hed_sched_common *c, const struct hed_sched_params *params, uint32_t given)
{
    if (given & HED_SCHED_GIVEN_HOLD)
        SET(c->hold, params->hold);
    if (given & HED_SCHED_GIVEN_CAP)
        SET(c->cap, params->cap);
    if (given & HED_SCHED_GIVEN_SLICE)
        SET(c->slice, params->slice);
    if (given & HED_SCHED_GIVEN_BATCH)
        SET(c->batch, params->batch);
    if (given & HED_SCHED_GIVEN_BATCH_WAIT)
        SET(c->batch_wait, params->batch_wait);
}

/* One policy's memory means nothing to another. */
static void
set_policy_locked(struct hed_meet *m, uint32_t policy)
{
    struct hed_sched_common *c = hed_meet_common(m);

    SET(c->policy, policy);
    for (int i = 0; i < HED_POLICY_MEMORY; i++)
        SET(c->memory[i], 0);
    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
        struct hed_sched_slot *p = hed_meet_slot(m, i);

        for (int k = 0; k < HED_POLICY_CLIENT_MEMORY; k++)
            SET(p->memory[k], 0);
    }
}

static void
set_common_locked(struct hed_meet *m, const struct hed_sched_settings *settings)
{
    struct hed_sched_common *c = hed_meet_common(m);

    if (!GET(c->made)) {
        set_params_locked(c, &settings->params, GIVEN_COMMON);
        set_policy_locked(m, settings->policy);
        SET(c->made, 1);
    } else if (settings->given & GIVEN_COMMON) {
        set_params_locked(c, &settings->params, settings->given);
        if ((settings->given & HED_SCHED_GIVEN_POLICY) && settings->policy != GET(c->policy))
            set_policy_locked(m, settings->policy);
    }
    if (settings->given & GIVEN_COMMON)
        SET(c->generation, GET(c->generation) + 1);
}

int
hed_sched_set_common(struct hed_meet *m, const struct hed_sched_settings *settings, uint64_t now)
{
    const int err = hed_meet_lock(m);

    if (err)
        return err;
    set_common_locked(m, settings);
    hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
    return 0;
}

void
hed_sched_change_locked(struct hed_sched_slot *p, const struct hed_sched_change *c)
{
    if (c->settings.given & HED_SCHED_GIVEN_PRIORITY)
        SET(p->priority, c->settings.priority);
    if (c->settings.given & HED_SCHED_GIVEN_WEIGHT)
        SET(p->weight, c->settings.weight);
    if (c->settings.given & HED_SCHED_GIVEN_DEADLINE)
        SET(p->deadline, c->settings.deadline);
    if (c->settings.given & HED_SCHED_GIVEN_SWAP)
        SET(p->swap, c->settings.swap);
    if (c->paused >= 0)
        SET(p->paused, (uint32_t)c->paused);
    if (c->release >= 0)
        SET(p->release, (uint32_t)c->release);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* If the others have all left, their settings go with them: the next client starts with the
 * defaults. */
static void
forget_settings_locked(struct hed_meet *m)
{
    struct hed_sched_common *c = hed_meet_common(m);

    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++)
        if ((int)i != hed_meet_index(m) && hed_meet_taken(m, i, NULL))
            return;
    SET(c->made, 0);
    SET(c->paused, 0);
    SET(c->high, 0);
}

/* From now on, decisions include the own slot. */
static void
show_slot_locked(struct hed_meet *m, struct hed_sched_slot *p)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const uint32_t index = (uint32_t)hed_meet_index(m);

    if (GET(c->high) <= index)
        SET(c->high, index + 1);
    SET(p->present, 1);
}

static void
fill_slot_locked(struct hed_sched_slot *p, const struct hed_sched_settings *settings)
{
    SET(p->gate, HED_GATE_IDLE);
    SET(p->priority, settings->priority);
    SET(p->weight, settings->weight);
    SET(p->swap, settings->swap);
    SET(p->deadline, settings->deadline);
    SET(p->pid, (int32_t)getpid());
    SET(p->family, settings->family);
    SET(p->since, hed_now_ns());
    (void)snprintf(p->name, sizeof p->name, "%s", program_invocation_short_name);
    memcpy(p->group, settings->group, sizeof p->group);
}

int
hed_sched_join(const char *meet_name, const struct hed_sched_settings *settings,
               struct hed_meet **out, struct hed_why *why)
{
    struct hed_meet *m;
    int err = hed_meet_join(meet_name, &hed_sched_shape, &m, why);

    if (err)
        return err;
    err = hed_meet_lock(m);
    if (err) {
        hed_why_set(why, "%s: cannot be locked: %s", meet_name, hed_err_text(err));
        hed_meet_leave(m);
        return err;
    }

    struct hed_sched_slot *p = hed_meet_mine(m);

    forget_settings_locked(m);
    fill_slot_locked(p, settings);
    set_common_locked(m, settings);
    show_slot_locked(m, p);
    hed_sched_decide_locked(m, hed_now_ns());
    hed_meet_unlock(m);
    *out = m;
    return 0;
}

/* ---- working and resting --------------------------------------------------------------------- */

int
hed_sched_announce(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_slot *p = hed_meet_mine(m);
    const int err = p ? hed_meet_lock(m) : HED_ESTATE;

    if (err)
        return err;
    show_slot_locked(m, p);
    SET(p->last_call, now);
    if (!GET(p->working)) {
        SET(p->working, 1);
        SET(p->fresh, 1);
        SET(p->since, now);
    }
    hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
    return 0;
}

void
hed_sched_rest(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const uint64_t look = now + HED_SCHED_MARGIN_NS;

    if (!GET(c->held) || GET(c->next_look) <= look || hed_meet_lock(m) != 0)
        return;
    if (GET(c->next_look) > look)
        SET(c->next_look, look);

    const uint32_t first = GET(c->watchman);
    struct hed_sched_slot *p = first ? hed_meet_slot(m, first - 1) : NULL;

    /* The watchman sleeps until a later time, or is about to. The word must differ from the one
     * that it has seen. Release: a thread that sees the bit also sees the new time. */
    if (p && GET(p->gate) & HED_GATE_CLOSED) {
        atomic_fetch_xor_explicit(&p->gate, HED_GATE_NEWS, memory_order_release);
        (void)hed_futex_wake(&p->gate, INT_MAX);
    }
    hed_meet_unlock(m);
}

void
hed_sched_retire(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_slot *p = hed_meet_mine(m);

    if (!p || hed_meet_lock(m) != 0)
        return;
    SET(p->present, 0);
    SET(p->gate, 0);
    (void)hed_futex_wake(&p->gate, INT_MAX);
    hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
}

/* ---- being looked at ------------------------------------------------------------------------- */

int
hed_sched_watch(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const int err = hed_meet_lock(m);

    if (err)
        return err;
    SET(c->watch_until, now + HED_SCHED_WATCH_NS);
    hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
    return 0;
}

bool
hed_sched_is_watched(const struct hed_sched_common *c, uint64_t now)
{
    const uint64_t until = GET(c->watch_until);

    return until > now && until - now <= HED_SCHED_WATCH_NS;
}

uint64_t
hed_sched_calls(const struct hed_sched_slot *p)
{
    uint64_t n = 0;

    for (int i = 0; i < HED_SCHED_STRIPES; i++)
        n += GET(p->calls[i].n);
    return n;
}
