/* Counts and times. */
#include "cli/trace/stats.h"

#include <stdlib.h>
#include <string.h>

size_t
hed_call_stats_line(struct hed_call_stats *s, const char *name, const char *thread)
{
    if (s->count == HED_STATS_LINES)
        return SIZE_MAX;
    if (s->count == s->room) {
        const size_t more = s->room ? s->room * 2 : 64;
        struct hed_call_stats_line *lines = reallocarray(s->lines, more, sizeof(*lines));

        if (!lines)
            return SIZE_MAX;
        s->lines = lines;
        s->room = more;
    }

    struct hed_call_stats_line l = {.name = strdup(name), .thread = thread ? strdup(thread) : NULL};

    if (!l.name || (thread && !l.thread)) {
        free(l.name);
        free(l.thread);
        return SIZE_MAX;
    }
    s->lines[s->count] = l;
    return s->count++;
}

/* Values below 64 have a bucket each; above, 64 buckets share each power of two. */
static size_t
bucket_of(uint64_t v)
{
    if (v < 64)
        return (size_t)v;

    const unsigned exponent = 63 - (unsigned)__builtin_clzll(v);

    return (size_t)(exponent - 5) * 64 + (size_t)((v >> (exponent - 6)) & 63);
}

/* The middle of a bucket. */
static uint64_t
value_of(size_t bucket)
{
    if (bucket < 128)
        return bucket;

    const unsigned exponent = (unsigned)(bucket / 64) + 5;
    const uint64_t width = UINT64_C(1) << (exponent - 6);

    return (UINT64_C(1) << exponent) + (bucket % 64) * width + width / 2;
}

static bool
become_histogram(struct hed_call_stats *s, struct hed_call_stats_line *l)
{
    l->buckets = calloc(HED_STATS_BUCKETS, sizeof(*l->buckets));
    if (!l->buckets)
        return false;
    for (uint64_t i = 0; i < l->count; i++)
        l->buckets[bucket_of(l->samples[i])]++;
    free(l->samples);
    l->samples = NULL;
    s->samples -= l->sample_room;
    l->sample_room = 0;
    return true;
}

/* Makes room for one more sample, or turns the line into a histogram. */
static bool
prepare_line(struct hed_call_stats *s, struct hed_call_stats_line *l)
{
    const size_t more = l->sample_room ? l->sample_room * 2 : 64;

    if (l->buckets || l->count < l->sample_room)
        return true;
    if (more > HED_STATS_EXACT || s->samples + more - l->sample_room > HED_STATS_SAMPLES)
        return become_histogram(s, l);

    uint64_t *samples = reallocarray(l->samples, more, sizeof(*samples));

    if (!samples)
        return false;
    s->samples += more - l->sample_room;
    l->samples = samples;
    l->sample_room = more;
    return true;
}

bool
hed_call_stats_add(struct hed_call_stats *s, size_t line, uint64_t duration, bool error)
{
    struct hed_call_stats_line *l = &s->lines[line];

    if (!prepare_line(s, l))
        return false;
    if (l->buckets)
        l->buckets[bucket_of(duration)]++;
    else
        l->samples[l->count] = duration;
    l->min = l->count == 0 || duration < l->min ? duration : l->min;
    l->count++;
    l->errors += error;
    l->max = duration > l->max ? duration : l->max;
    /* A file may hold any durations; a sum that wraps would be nonsense that looks like sense. */
    if (__builtin_add_overflow(l->total, duration, &l->total))
        l->total = UINT64_MAX;
    return true;
}

void
hed_call_stats_repeat(struct hed_call_stats *s, size_t line, uint64_t n, bool error)
{
    struct hed_call_stats_line *l = &s->lines[line];

    l->errors += error;
    if (__builtin_add_overflow(l->repeats, n, &l->repeats))
        l->repeats = UINT64_MAX;
}

uint64_t
hed_call_stats_calls(const struct hed_call_stats_line *l)
{
    uint64_t n;

    return __builtin_add_overflow(l->count, l->repeats, &n) ? UINT64_MAX : n;
}

uint64_t
hed_call_stats_total(const struct hed_call_stats_line *l)
{
    const double rest = hed_call_stats_mean(l) * (double)l->repeats;

    return (double)l->total + rest < 0x1p63 ? l->total + (uint64_t)rest : UINT64_MAX;
}

static int
by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The least value that `percent` of a hundred are not over. Samples are sorted by now. */
static uint64_t
percentile(const struct hed_call_stats_line *l, unsigned percent)
{
    /* Not count * percent / 100, which may wrap. */
    const uint64_t exact = l->count / 100 * percent + (l->count % 100 * percent + 99) / 100;
    uint64_t rank = exact ? exact : 1;

    if (l->count == 0)
        return 0;
    if (!l->buckets)
        return l->samples[rank - 1];
    for (size_t i = 0; i < HED_STATS_BUCKETS; i++) {
        if (rank <= l->buckets[i])
            return value_of(i) < l->max ? value_of(i) : l->max;
        rank -= l->buckets[i];
    }
    return l->max;
}

void
hed_call_stats_finish(struct hed_call_stats *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct hed_call_stats_line *l = &s->lines[i];

        if (l->samples)
            qsort(l->samples, (size_t)l->count, sizeof(*l->samples), by_value);
        l->p50 = percentile(l, 50);
        l->p99 = percentile(l, 99);
    }
}

double
hed_call_stats_mean(const struct hed_call_stats_line *l)
{
    return l->count ? (double)l->total / (double)l->count : 0;
}

void
hed_call_stats_fini(struct hed_call_stats *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->lines[i].name);
        free(s->lines[i].thread);
        free(s->lines[i].samples);
        free(s->lines[i].buckets);
    }
    free(s->lines);
    *s = (struct hed_call_stats){0};
}
