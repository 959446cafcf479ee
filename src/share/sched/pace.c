/* The pace: how much GPU time a client has in flight, by a clock that events keep right.
 *
 * Every piece of work moves the clock by the time that its kind took before (kinds.c). Marks, which
 * are events after some of the work, correct the clock: a mark that has passed early sets it back,
 * one that is late sets it forward. Calls that pass by ask the driver about marks, so neither a
 * thread of the engine nor a wait is needed.
 *
 * Many threads may launch at once, so a call writes no memory that they share. Each thread adds up
 * the time of its own calls and puts it on the clock when it amounts to a part of the cap. For each
 * thread, the clock is behind by one such part at most.
 */
#include "share/sched/gate.h"

#define POLL_NS 100000  /* between two questions to the driver */
#define STEP_NS 1000000 /* GPU time between marks, as long as nobody waits for the GPU */
#define PART 64         /* a thread puts such a part of the cap on the clock at a time */

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- around a call --------------------------------------------------------------------------- */

/* From the process's own clock, not from the slot, where others may write. */
uint64_t
hed_pace_ends(struct hed_gate *g, uint64_t now)
{
    const uint64_t ends = GET(g->pace.ends);

    return ends > now ? ends : now;
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
hed_pace_begin(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_sched *s = pass->gate->sched;

    if (!hed_sched_kind_estimate(pass, now) || !has_room_for_marks(pass->gate) ||
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

/* The work of the calling thread that is not on a clock yet. */
static _Thread_local struct {
    uint64_t engine;             /* hed_sched.id; 0: none */
    const struct hed_gate *gate; /* of that engine */
    uint64_t stream;             /* the key of its stream */
    uint64_t ns;
} owed;

/* Whether the call's time must go on the clock now. If not, the thread keeps it. */
static bool
is_worth_charging(const struct hed_gate_pass *pass)
{
    const struct hed_gate *g = pass->gate;

    if (owed.engine != g->sched->id || owed.gate != g || owed.stream != pass->work.stream_key) {
        owed.engine = g->sched->id;
        owed.gate = g;
        owed.stream = pass->work.stream_key;
        owed.ns = 0; /* less than a part, of another gate or stream: not worth a lock */
        return true;
    }
    return pass->mark.start || pass->work.blocks || !pass->known ||
           owed.ns + pass->takes >= hed_gate_cap(g) / PART;
}

/* Puts the thread's time, with this call's, on the clock. True if a mark is to follow the call. */
static bool
charge_work(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;
    const uint64_t ns = owed.ns + pass->takes;
    const uint64_t cap = hed_gate_cap(g);
    const bool limited = GET(g->slot->gate) & HED_GATE_LIMIT;
    /* Work of an unknown kind may be long: two pieces are enough while another client may come. */
    const bool careful = !pass->known && limited && ns < cap / 2;

    owed.ns = 0;
    hed_lock_brief(&s->lock);

    const uint64_t old = GET(p->ends);
    const uint64_t ends = (old > now ? old : now) + (careful ? cap / 2 : ns);
    const uint64_t stream = GET(p->stream);

    SET(p->ends, ends);
    if (stream != pass->work.stream_key && stream != UINT64_MAX)
        SET(p->stream, stream == 0 ? pass->work.stream_key : UINT64_MAX);
    pass->mark.predicted = ends;
    SET(g->slot->ends, ends);
    atomic_fetch_add_explicit(&g->slot->used, ns, memory_order_relaxed);

    const bool mark = pass->mark.start || (ends >= p->marked + (limited ? cap / 4 : STEP_NS) &&
                                           p->count < HED_PACE_MARKS);

    if (mark)
        p->marked = ends;
    hed_unlock_brief(&s->lock);
    return mark;
}

/* The clock runs while the oldest mark is late: ask the driver then. */
static void
plan_poll_locked(struct hed_pace *p)
{
    SET(p->next_poll, p->count ? p->last_poll + POLL_NS : UINT64_MAX);
}

void
hed_pace_end(struct hed_gate_pass *pass)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    struct hed_pace *p = &g->pace;

    if (!is_worth_charging(pass)) {
        owed.ns += pass->takes;
        return;
    }

    const uint64_t now = hed_now_ns();

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
        plan_poll_locked(p);
    }
    hed_event_give_locked(s, pass->mark.end, pass->mark.context);
    hed_unlock_brief(&s->lock);
    hed_pace_cancel(pass);
    hed_sched_end_own_calls(s);
    hed_pace_poll(g, now);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static uint64_t
shift_time(uint64_t t, uint64_t by, bool forward, uint64_t now)
{
    if (forward)
        return t + by;
    return t > now + by ? t - by : now;
}

static void
shift_clock_locked(struct hed_gate *g, uint64_t by, bool forward, uint64_t now)
{
    struct hed_pace *p = &g->pace;

    SET(p->ends, shift_time(GET(p->ends), by, forward, now));
    p->marked = shift_time(p->marked, by, forward, now);
    for (unsigned i = 0; i < p->count; i++) {
        struct hed_mark *m = &p->marks[(p->first + i) % HED_PACE_MARKS];

        m->predicted = shift_time(m->predicted, by, forward, now);
    }
    SET(g->slot->ends, GET(p->ends));
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

    /* Relaxed: nearly every call ends here; the rest is looked at again under the lock. */
    if (now < GET(p->next_poll) || !hed_sched_begin_own_calls(s))
        return;
    hed_lock_brief(&s->lock);
    more = p->count > 0 && !p->polling && now >= p->last_poll + POLL_NS;
    if (more) {
        p->polling = true;
        p->last_poll = now;
        plan_poll_locked(p);
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
        if (!more) {
            p->polling = false;
            plan_poll_locked(p);
        }
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

    SET(p->stream, 0);
    SET(p->ends, now);
    p->marked = now;
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
        plan_poll_locked(p);
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
