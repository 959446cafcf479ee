/* The pace: how much GPU time a client has in flight, by a clock that events keep right.
 *
 * Every piece of work moves the clock by the time that its kind took before (kinds.c). Marks, which
 * are events after some of the work, correct the clock: a mark that has passed early sets it back,
 * one that is late sets it forward. Calls that pass by ask the driver about marks, so neither a
 * thread of the engine nor a wait is needed.
 */
#include "sched/gate.h"

#define POLL_NS 100000  /* between two questions to the driver */
#define STEP_NS 1000000 /* GPU time between marks, as long as nobody waits for the GPU */

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- around a call --------------------------------------------------------------------------- */

/* From the process's own clock, not from the slot, where others may write. */
uint64_t
hed_pace_ends(struct hed_gate *g, uint64_t now)
{
    struct hed_sched *s = g->sched;

    hed_lock_brief(&s->lock);

    const uint64_t ends = g->pace.ends > now ? g->pace.ends : now;

    hed_unlock_brief(&s->lock);
    return ends;
}

static bool
record_event(struct hed_sched *s, uint64_t event, const struct hed_gpu_work *work)
{
    return event && s->driver->record_event(s->below, event, work->stream, work->ptds);
}

static bool
has_room_for_marks(struct hed_gate *g)
{
    struct hed_sched *s = g->sched;

    hed_lock_brief(&s->lock);

    const bool room = g->pace.count + 2 < HED_PACE_MARKS;

    hed_unlock_brief(&s->lock);
    return room;
}

void
hed_pace_begin(struct hed_gate_pass *pass)
{
    struct hed_sched *s = pass->gate->sched;

    if (!hed_sched_kind_wants_sample(s, &pass->work) || !has_room_for_marks(pass->gate) ||
        !hed_sched_begin_own_calls(s))
        return;
    pass->mark.context = s->driver->get_context(s->below);
    pass->mark.start = hed_event_take(s, pass->mark.context, &pass->era);
    if (!record_event(s, pass->mark.start, &pass->work))
        hed_pace_cancel(pass);
    hed_sched_end_own_calls(s);
}

void
hed_pace_cancel(struct hed_gate_pass *pass)
{
    struct hed_sched *s = pass->gate->sched;

    if (!pass->mark.start)
        return;
    hed_lock_brief(&s->lock);
    if (pass->era == s->era) /* else its context may have ended during the call */
        hed_event_give_locked(s, pass->mark.start, pass->mark.context);
    hed_unlock_brief(&s->lock);
    pass->mark.start = 0;
}

/* Adds a call's time to the clock. True if a mark is to follow it. */
static bool
charge_work(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;

    hed_lock_brief(&s->lock);

    const struct hed_sched_kind *k = hed_sched_kind_find_locked(s, pass->work.kind);
    const uint64_t ns = k->samples ? k->ns : pass->work.guess;
    const uint64_t cap = hed_gate_cap(g);
    /* Work of an unknown kind may be long: two pieces are enough while another client may come. */
    const bool careful = !k->samples && (GET(g->slot->gate) & HED_GATE_LIMIT) && ns < cap / 2;

    p->ends = (p->ends > now ? p->ends : now) + (careful ? cap / 2 : ns);
    p->stream =
        p->stream == 0 || p->stream == pass->work.stream_key ? pass->work.stream_key : UINT64_MAX;
    pass->mark.predicted = p->ends;
    SET(g->slot->ends, p->ends);
    atomic_fetch_add_explicit(&g->slot->used, ns, memory_order_relaxed);

    const uint64_t step = GET(g->slot->gate) & HED_GATE_LIMIT ? cap / 4 : STEP_NS;
    const bool mark =
        pass->mark.start || (p->ends >= p->marked + step && p->count < HED_PACE_MARKS);

    if (mark)
        p->marked = p->ends;
    hed_unlock_brief(&s->lock);
    return mark;
}

void
hed_pace_end(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;

    if (!charge_work(pass, now) || pass->work.blocks || !hed_sched_begin_own_calls(s)) {
        hed_pace_cancel(pass);
        return;
    }

    const uint64_t context = s->driver->get_context(s->below);
    uint32_t era;

    pass->mark.end = hed_event_take(s, context, &era);
    /* A context may have ended during the call, and the start event with it. */
    if (pass->mark.context != context || pass->era != era)
        pass->mark.start = 0;
    pass->mark.context = context;
    pass->mark.kind = pass->work.kind;

    const bool good = record_event(s, pass->mark.end, &pass->work);

    hed_lock_brief(&s->lock);
    if (good && p->count < HED_PACE_MARKS) {
        p->marks[(p->first + p->count++) % HED_PACE_MARKS] = pass->mark;
        pass->mark.start = pass->mark.end = 0;
    }
    hed_event_give_locked(s, pass->mark.end, pass->mark.context);
    hed_unlock_brief(&s->lock);
    hed_pace_cancel(pass);
    hed_sched_end_own_calls(s);
    hed_pace_poll(g, now);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void
shift_clock_locked(struct hed_gate *g, uint64_t by, bool forward, uint64_t now)
{
    struct hed_pace *p = &g->pace;
    uint64_t *const words[] = {&p->ends, &p->marked};

    for (unsigned i = 0; i < p->count + 2; i++) {
        uint64_t *w = i < 2 ? words[i] : &p->marks[(p->first + i - 2) % HED_PACE_MARKS].predicted;

        *w = forward ? *w + by : *w > now + by ? *w - by : now;
    }
    SET(g->slot->ends, p->ends);
}

/* Takes the driver's answer about the oldest mark. True: ask about the next one. */
static bool
take_answer_locked(struct hed_gate *g, enum hed_event_state state, double ms, uint64_t now)
{
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;
    const struct hed_mark m = p->marks[p->first];

    if (state == HED_EVENT_PENDING) {
        if (m.predicted < now)
            shift_clock_locked(g, now - m.predicted, true, now);
        return false;
    }
    p->first = (p->first + 1) % HED_PACE_MARKS;
    p->count--;
    if (state == HED_EVENT_FAILED) /* the context has failed, and its events with it */
        return true;
    if (m.start && ms >= 0)
        hed_sched_kind_learn_locked(s, m.kind, ms);
    hed_event_give_locked(s, m.start, m.context);
    hed_event_give_locked(s, m.end, m.context);
    if (m.predicted > now)
        shift_clock_locked(g, m.predicted - now, false, now);
    return true;
}

/* Asks about marks, oldest first, as long as they have passed. One thread at a time does. */
void
hed_pace_poll(struct hed_gate *g, uint64_t now)
{
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;
    uint64_t surplus[HED_PACE_SPARE];
    bool more;

    if (!hed_sched_begin_own_calls(s))
        return;
    hed_lock_brief(&s->lock);
    more = p->count > 0 && !p->polling && now >= p->last_poll + POLL_NS;
    if (more) {
        p->polling = true;
        p->last_poll = now;
    }
    while (more) {
        const struct hed_mark m = p->marks[p->first];
        double ms = -1;

        hed_unlock_brief(&s->lock);

        const enum hed_event_state state = s->driver->query_event(s->below, m.end);

        if (state == HED_EVENT_DONE && m.start)
            ms = s->driver->elapsed_ms(s->below, m.start, m.end);
        hed_lock_brief(&s->lock);
        more = take_answer_locked(g, state, ms, now) && p->count > 0;
        if (!more)
            p->polling = false;
    }

    const unsigned count = hed_event_surplus_locked(s, HED_PACE_KEPT, surplus);

    hed_unlock_brief(&s->lock);
    hed_event_destroy(s, surplus, count);
    hed_sched_end_own_calls(s);
}

/* Marks that are left follow work that is done. Nobody need ask for them, but samples are worth
 * having, so they stay for the next poll. */
void
hed_pace_rest_locked(struct hed_gate *g, uint64_t now)
{
    struct hed_pace *p = &g->pace;

    p->stream = 0;
    p->ends = p->marked = now;
    for (unsigned i = 0; i < p->count; i++)
        p->marks[(p->first + i) % HED_PACE_MARKS].predicted = now;
    SET(g->slot->ends, now);
}

/* ---- contexts that end ----------------------------------------------------------------------- */

/* Takes marks away until there is no room for their events. True: there are more. */
static bool
drop_marks_locked(struct hed_sched *s, uint64_t events[HED_PACE_SPARE], unsigned *n)
{
    for (uint32_t i = 0; i < GET(s->count); i++) {
        struct hed_pace *p = &s->gates[i]->pace;

        for (; p->count > 0; p->count--) {
            const struct hed_mark *m = &p->marks[p->first];

            if (*n + 2 > HED_PACE_SPARE)
                return true;
            if (m->start)
                events[(*n)++] = m->start;
            events[(*n)++] = m->end;
            p->first = (p->first + 1) % HED_PACE_MARKS;
        }
    }
    return false;
}

void
hed_sched_context_ends(struct hed_sched *s)
{
    uint64_t events[HED_PACE_SPARE];
    bool more;

    do {
        hed_lock_brief(&s->lock);
        s->era++;

        unsigned n = hed_event_surplus_locked(s, 0, events);

        more = drop_marks_locked(s, events, &n);
        hed_unlock_brief(&s->lock);
        hed_event_destroy(s, events, n);
    } while (more);
}
