/* The pace: how much GPU time a process has in flight, told by a clock that events keep right.
 *
 * Each piece of work is added to the clock with what its kind took before: a moving average over
 * samples, a pair of events around one call in SAMPLE_EVERY and around the first few. Marks, events
 * behind the work, correct the clock: a mark that has passed before its time sets it back, one that
 * has not passed after its time sets it forward. So neither a thread nor a wait is needed: the next
 * call that comes by asks.
 *
 * Times of work beside which another process's ran are too long, sometimes by far: an average goes
 * up by a part of itself at most.
 */
#include <pthread.h>

#include "layers/sched/sched.h"

#define SAMPLE_FIRST 2 /* one call in so many is timed, until three in a row took the same */
#define SAMPLE_EVERY 32
#define STEADY 3
#define SHORTEST_NS 500 /* no work takes less */
#define LONGEST_NS UINT32_MAX
#define POLL_NS 100000  /* between two questions to the driver */
#define STEP_NS 1000000 /* between marks of work that nobody is waiting to interrupt */
#define PROBES 8        /* of the table of kinds */

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- kinds ----------------------------------------------------------------------------------- */

static struct hed_work_time *
find_kind_locked(struct hed_sched *s, uint64_t key)
{
    struct hed_work_time *worst = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        struct hed_work_time *k = &s->kinds[(key + i) % HED_PACE_KINDS];

        if (k->key == key)
            return k;
        if (!worst || k->key == 0 || (worst->key != 0 && k->samples < worst->samples))
            worst = k;
    }
    *worst = (struct hed_work_time){.key = key};
    return worst;
}

/* What is far too long was taken beside another process's work, and is soon forgotten. But one kind
 * may as well be short and long by turns: the average is to lie between. */
static void
learn_locked(struct hed_sched *s, uint64_t key, double ms)
{
    struct hed_work_time *k = find_kind_locked(s, key);
    uint64_t ns = !(ms > 0) ? 0 : ms >= 4000 ? LONGEST_NS : (uint64_t)(ms * 1e6);

    ns = ns < SHORTEST_NS ? SHORTEST_NS : ns;

    const uint64_t off = ns > k->ns ? ns - k->ns : k->ns - ns;

    k->steady = off <= k->ns / 4 ? k->steady + (k->steady < STEADY) : 0;
    if (k->samples == 0)
        k->ns = (uint32_t)ns;
    else if (ns < k->ns)
        k->ns -= (uint32_t)(off / (ns < k->ns / 2 ? 2 : 4));
    else
        k->ns += (uint32_t)((off < k->ns / 2 ? off : k->ns / 2) / 4);
    if (k->samples < UINT32_MAX)
        k->samples++;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* An event of that context, which is current; NULL. */
static CUevent
take_event(struct hed_layer *self, CUcontext context, uint32_t *era)
{
    struct hed_sched *s = self->state;
    CUevent e = NULL;

    hed_lock_brief(&s->lock);
    *era = s->era;
    for (unsigned i = s->spares; !e && i-- > 0;) {
        if (s->spare[i].context != context)
            continue;
        e = s->spare[i].end;
        s->spare[i] = s->spare[--s->spares];
    }
    hed_unlock_brief(&s->lock);
    if (!e) {
        struct hed_cuEventCreate a = {&e, CU_EVENT_DEFAULT};

        if (hed_next(self, cuEventCreate, &a) != CUDA_SUCCESS)
            return NULL;
    }
    return e;
}

/* Keeps it for the next time. */
static void
give_event_locked(struct hed_sched *s, CUevent e, CUcontext context)
{
    if (e && s->spares < HED_PACE_SPARE)
        s->spare[s->spares++] = (struct hed_mark){.end = e, .context = context};
}

/* Events above what is worth keeping: the oldest, which may be of contexts that are not used any
 * more. Returns how many. */
static unsigned
take_surplus_locked(struct hed_sched *s, unsigned keep, CUevent events[HED_PACE_SPARE])
{
    const unsigned n = s->spares > keep ? s->spares - keep : 0;

    for (unsigned i = 0; i < n; i++)
        events[i] = s->spare[i].end;
    for (unsigned i = n; n && i < s->spares; i++)
        s->spare[i - n] = s->spare[i];
    s->spares -= n;
    return n;
}

static void
destroy(struct hed_layer *self, const CUevent *events, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct hed_cuEventDestroy_v2 a = {events[i]};

        (void)hed_next(self, cuEventDestroy_v2, &a);
    }
}

static bool
record(struct hed_layer *self, CUevent e, const struct hed_turn *t)
{
    struct hed_cuEventRecord a = {e, t->stream, t->ptds};

    return e && hed_next(self, cuEventRecord, &a) == CUDA_SUCCESS;
}

uint64_t
hed_pace_takes(struct hed_sched *s, const struct hed_turn *t)
{
    hed_lock_brief(&s->lock);

    const struct hed_work_time *k = find_kind_locked(s, t->kind);
    const uint64_t ns = k->samples ? k->ns : t->guess;

    hed_unlock_brief(&s->lock);
    return ns;
}

/* Not from the place, where others may write. */
uint64_t
hed_pace_ends(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now)
{
    hed_lock_brief(&s->lock);

    const uint64_t ends = g->pace.ends > now ? g->pace.ends : now;

    hed_unlock_brief(&s->lock);
    return ends;
}

void
hed_pace_begin(struct hed_layer *self, struct hed_turn *t)
{
    struct hed_sched *s = self->state;
    struct hed_pace *p = &t->gpu->pace;

    hed_lock_brief(&s->lock);

    struct hed_work_time *k = find_kind_locked(s, t->kind);
    const bool sample = k->calls % (k->steady < STEADY ? SAMPLE_FIRST : SAMPLE_EVERY) == 0 &&
                        p->count + 2 < HED_PACE_MARKS;

    k->calls++;
    hed_unlock_brief(&s->lock);
    if (!sample || !hed_sched_own_begin(s))
        return;
    t->mark.context = hed_sched_context(self->next);
    t->mark.start = take_event(self, t->mark.context, &t->era);
    if (!record(self, t->mark.start, t))
        hed_pace_cancel(s, t);
    hed_sched_own_end(s);
}

void
hed_pace_cancel(struct hed_sched *s, struct hed_turn *t)
{
    if (!t->mark.start)
        return;
    hed_lock_brief(&s->lock);
    if (t->era == s->era) /* else its context may have ended during the call */
        give_event_locked(s, t->mark.start, t->mark.context);
    hed_unlock_brief(&s->lock);
    t->mark.start = NULL;
}

/* Adds a call's time to the clock; true if a mark is to be put behind it. */
static bool
charge(struct hed_sched *s, struct hed_turn *t, uint64_t now)
{
    struct hed_sched_gpu *g = t->gpu;
    struct hed_pace *p = &g->pace;
    const uint64_t stream = hed_stream_key(t->stream, t->ptds, (uint64_t)pthread_self());

    hed_lock_brief(&s->lock);

    const struct hed_work_time *k = find_kind_locked(s, t->kind);
    const uint64_t ns = k->samples ? k->ns : t->guess;
    const uint64_t cap = hed_sched_cap(g);
    /* What is not known yet may be long: two of it are enough, where somebody may come. */
    const bool careful = !k->samples && (GET(g->place->gate) & HED_GATE_LIMIT) && ns < cap / 2;

    p->ends = (p->ends > now ? p->ends : now) + (careful ? cap / 2 : ns);
    p->stream = p->stream == 0 || p->stream == stream ? stream : UINT64_MAX;
    t->mark.predicted = p->ends;
    SET(g->place->ends, p->ends);
    atomic_fetch_add_explicit(&g->place->used, ns, memory_order_relaxed);

    const uint64_t step = GET(g->place->gate) & HED_GATE_LIMIT ? cap / 4 : STEP_NS;
    const bool mark = t->mark.start || (p->ends >= p->marked + step && p->count < HED_PACE_MARKS);

    if (mark)
        p->marked = p->ends;
    hed_unlock_brief(&s->lock);
    return mark;
}

void
hed_pace_end(struct hed_layer *self, struct hed_turn *t, uint64_t now)
{
    struct hed_sched *s = self->state;
    struct hed_pace *p = &t->gpu->pace;

    if (!charge(s, t, now) || t->blocks || !hed_sched_own_begin(s)) {
        hed_pace_cancel(s, t);
        return;
    }

    const CUcontext here = hed_sched_context(self->next);
    uint32_t era;

    t->mark.end = take_event(self, here, &era);
    /* Contexts may have ended during the call, this one and with it the event, too. */
    if (t->mark.context != here || t->era != era)
        t->mark.start = NULL;
    t->mark.context = here;
    t->mark.kind = t->kind;

    const bool good = record(self, t->mark.end, t);

    hed_lock_brief(&s->lock);
    if (good && p->count < HED_PACE_MARKS) {
        p->marks[(p->first + p->count++) % HED_PACE_MARKS] = t->mark;
        t->mark.start = t->mark.end = NULL;
    }
    give_event_locked(s, t->mark.end, t->mark.context);
    hed_unlock_brief(&s->lock);
    hed_pace_cancel(s, t);
    hed_sched_own_end(s);
    hed_pace_poll(self, t->gpu, now);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void
shift_locked(struct hed_sched_gpu *g, uint64_t by, bool forward, uint64_t now)
{
    struct hed_pace *p = &g->pace;
    uint64_t *const words[] = {&p->ends, &p->marked};

    for (unsigned i = 0; i < p->count + 2; i++) {
        uint64_t *w = i < 2 ? words[i] : &p->marks[(p->first + i - 2) % HED_PACE_MARKS].predicted;

        *w = forward ? *w + by : *w > now + by ? *w - by : now;
    }
    SET(g->place->ends, p->ends);
}

/* The driver's answer about the oldest mark; true: look at the next one. */
static bool
take_answer_locked(struct hed_sched *s, struct hed_sched_gpu *g, CUresult r, double ms,
                   uint64_t now)
{
    struct hed_pace *p = &g->pace;
    const struct hed_mark m = p->marks[p->first];

    if (r == CUDA_ERROR_NOT_READY) {
        if (m.predicted < now)
            shift_locked(g, now - m.predicted, true, now);
        return false;
    }
    p->first = (p->first + 1) % HED_PACE_MARKS;
    p->count--;
    if (r != CUDA_SUCCESS) /* the context has failed, and its events with it */
        return true;
    if (m.start && ms >= 0)
        learn_locked(s, m.kind, ms);
    give_event_locked(s, m.start, m.context);
    give_event_locked(s, m.end, m.context);
    if (m.predicted > now)
        shift_locked(g, m.predicted - now, false, now);
    return true;
}

/* Asks about marks, oldest first, as long as they have passed. One thread does, at a time. */
void
hed_pace_poll(struct hed_layer *self, struct hed_sched_gpu *g, uint64_t now)
{
    struct hed_sched *s = self->state;
    struct hed_pace *p = &g->pace;
    CUevent surplus[HED_PACE_SPARE];
    bool more;

    if (!hed_sched_own_begin(s))
        return;
    hed_lock_brief(&s->lock);
    more = p->count > 0 && !p->polling && now >= p->last_poll + POLL_NS;
    if (more) {
        p->polling = true;
        p->last_poll = now;
    }
    while (more) {
        const struct hed_mark m = p->marks[p->first];
        float ms = -1;
        struct hed_cuEventQuery query = {m.end};
        struct hed_cuEventElapsedTime elapsed = {&ms, m.start, m.end};

        hed_unlock_brief(&s->lock);

        const CUresult r = hed_next(self, cuEventQuery, &query);

        if (r == CUDA_SUCCESS && m.start &&
            hed_next(self, cuEventElapsedTime, &elapsed) != CUDA_SUCCESS)
            ms = -1;
        hed_lock_brief(&s->lock);
        more = take_answer_locked(s, g, r, (double)ms, now) && p->count > 0;
        if (!more)
            p->polling = false;
    }

    const unsigned count = take_surplus_locked(s, HED_PACE_KEPT, surplus);

    hed_unlock_brief(&s->lock);
    destroy(self, surplus, count);
    hed_sched_own_end(s);
}

/* Marks that are left are behind work that is done: nobody need ask for them, but samples are
 * worth having, so they stay for the next poll. */
void
hed_pace_quiet_locked(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now)
{
    struct hed_pace *p = &g->pace;

    p->stream = 0;
    p->ends = p->marked = now;
    for (unsigned i = 0; i < p->count; i++)
        p->marks[(p->first + i) % HED_PACE_MARKS].predicted = now;
    SET(g->place->ends, now);
}

/* Takes marks away until there is no room for their events; true if there are more. */
static bool
forget_marks_locked(struct hed_sched *s, CUevent events[HED_PACE_SPARE], unsigned *n)
{
    for (uint32_t i = 0; i < GET(s->count); i++) {
        struct hed_pace *p = &s->gpus[i]->pace;

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
hed_pace_forget(struct hed_layer *self)
{
    struct hed_sched *s = self->state;
    CUevent events[HED_PACE_SPARE];
    bool more;

    do {
        hed_lock_brief(&s->lock);
        s->era++;

        unsigned n = take_surplus_locked(s, 0, events);

        more = forget_marks_locked(s, events, &n);
        hed_unlock_brief(&s->lock);
        destroy(self, events, n);
    } while (more);
}
