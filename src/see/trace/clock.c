/* The clock of see/trace/clock.h. */
#include "see/trace/clock.h"

#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/log.h"
#include "see/trace/format.h"

#define READINGS 3 /* of which the quickest counts: it was not interrupted */

static struct hed_trace_instant
read_instant(void)
{
    struct hed_trace_instant now = {0};
    uint64_t quickest = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        const uint64_t before = hed_counter_read();
        const uint64_t ns = hed_now_ns();
        const uint64_t took = hed_counter_read() - before;

        if (took < quickest) {
            quickest = took;
            now = (struct hed_trace_instant){before + took / 2, ns};
        }
    }
    return now;
}

static double
rate_between(struct hed_trace_instant a, struct hed_trace_instant b)
{
    return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

/* Forgets every other bend, so that the memory of old times gets coarser but never ends. */
static void
thin_bends(struct hed_trace_clock *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i += 2)
        c->bends[kept++] = c->bends[i];
    c->count = kept;
}

static void
add_bend(struct hed_trace_clock *c, struct hed_trace_instant at)
{
    if (at.ticks <= c->bends[c->count - 1].ticks)
        return;
    if (c->count == HED_TRACE_BENDS_MAX)
        thin_bends(c);
    c->bends[c->count++] = at;
}

/* The last bend that is not after `ticks`, or the first. */
static size_t
find_bend(const struct hed_trace_clock *c, uint64_t ticks)
{
    size_t low = 0;
    size_t high = c->count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (c->bends[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t
ns_on_line(const struct hed_trace_clock *c, uint64_t ticks)
{
    const struct hed_trace_instant *from = &c->bends[c->count - 1];
    double rate = c->rate;

    if (ticks < from->ticks && c->count > 1) {
        from = &c->bends[find_bend(c, ticks)];
        rate = rate_between(from[0], from[1]);
    }
    if (ticks >= from->ticks)
        return from->ns + (uint64_t)((double)(ticks - from->ticks) * rate);

    /* Before the line begins. */
    const uint64_t before = (uint64_t)((double)(from->ticks - ticks) * rate);

    return before < from->ns ? from->ns - before : 0;
}

void
hed_trace_clock_begin(struct hed_trace_clock *c, struct hed_trace_instant start)
{
    c->used = 0;
    c->count = 1;
    c->rate = 0;
    c->base = c->later = c->bends[0] = start;
}

void
hed_trace_clock_compare(struct hed_trace_clock *c, struct hed_trace_instant now)
{
    const struct hed_trace_instant last = c->bends[c->count - 1];

    if (now.ticks <= last.ticks || now.ns <= last.ns)
        return;

    const uint64_t used = c->used > last.ticks ? c->used : last.ticks;
    const uint64_t used_ns = ns_on_line(c, used);
    const uint64_t expected = ns_on_line(c, now.ticks);
    const uint64_t off = expected > now.ns ? expected - now.ns : now.ns - expected;

    /* A line that is ahead of the clock where it was last used cannot be bent back. */
    if ((c->rate == 0 || off > HED_TRACE_TOLERANCE_NS) && now.ticks > used && now.ns > used_ns) {
        add_bend(c, (struct hed_trace_instant){used, used_ns});
        add_bend(c, now);
        c->rate = rate_between(c->base, now);
    }
    if (now.ns - c->later.ns >= HED_TRACE_BASELINE_NS) {
        c->base = c->later;
        c->later = now;
    }
}

void
hed_trace_clock_init(struct hed_trace_clock *c, bool counter)
{
    c->counter = counter && hed_counter_usable();
    if (c->counter)
        hed_trace_clock_begin(c, read_instant());
}

void
hed_trace_clock_update(struct hed_trace_clock *c)
{
    if (c->counter)
        hed_trace_clock_compare(c, read_instant());
}

uint64_t
hed_trace_clock_ns(struct hed_trace_clock *c, uint64_t ticks)
{
    if (!c->counter)
        return ticks;
    if (ticks > c->used)
        c->used = ticks;
    return ns_on_line(c, ticks);
}

static uint64_t
duration_ns(const struct hed_trace_clock *c, uint64_t ticks)
{
    const double ns = (double)ticks * c->rate;

    return ns < (double)UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

static void
convert_short(struct hed_trace_clock *c, uint8_t *p)
{
    struct hed_trace_short h;

    memcpy(&h, p, sizeof h);
    h.start = hed_trace_clock_ns(c, h.start);

    const uint64_t ns = duration_ns(c, h.duration);

    h.duration = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    memcpy(p, &h, sizeof h);
}

static void
convert_long(struct hed_trace_clock *c, uint8_t *p)
{
    struct hed_trace_long h;

    memcpy(&h, p, sizeof h);
    /* What a GPU did has been timed by the GPU's own clock, in nanoseconds. */
    if (h.kind == HED_TRACE_ACTIVITY)
        return;
    h.start = hed_trace_clock_ns(c, h.start);
    h.duration = duration_ns(c, h.duration);
    memcpy(p, &h, sizeof h);
}

void
hed_trace_clock_convert(struct hed_trace_clock *c, uint8_t *p, size_t n)
{
    size_t size;

    if (!c->counter)
        return;
    for (size_t at = 0; at < n; at += size) {
        size = hed_trace_record_size(p + at, n - at);
        if (size == 0) {
            hed_bug("a trace record that makes no sense");
            return;
        }
        if (hed_trace_is_short(p + at))
            convert_short(c, p + at);
        else
            convert_long(c, p + at);
    }
}
