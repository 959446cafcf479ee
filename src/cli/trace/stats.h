/* Counts and times of calls, for `heddle trace summary`. Knows no trace.
 *
 * Percentiles are exact (nearest rank) while a line has up to HED_STATS_EXACT calls and all lines
 * together up to HED_STATS_SAMPLES. A line that grows past that keeps a histogram instead, with 64
 * buckets for each power of two, so that a percentile is off by less than 1 %. Such lines are
 * marked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_STATS_EXACT 262144      /* times kept per line */
#define HED_STATS_SAMPLES 33554432u /* times kept in total: 256 MiB */
#define HED_STATS_BUCKETS 3776      /* 59 * 64: every u64 has one */
#define HED_STATS_LINES 1048576     /* lines at most; calls of more are not counted */

struct hed_call_stats_line {
    char *name;       /* owned */
    char *thread;     /* owned; NULL unless by thread */
    uint64_t count;   /* calls with a time of their own */
    uint64_t repeats; /* further calls, which were only counted */
    uint64_t errors;
    uint64_t total; /* ns */
    uint64_t min;   /* ns */
    uint64_t max;   /* ns */
    uint64_t bytes; /* bytes moved; counted by the caller */
    uint64_t p50;   /* ns; set by hed_call_stats_finish */
    uint64_t p99;
    uint64_t *samples; /* owned; NULL once there are buckets */
    size_t sample_room;
    uint64_t *buckets; /* owned; NULL while exact */
};

struct hed_call_stats {
    struct hed_call_stats_line *lines; /* owned */
    size_t count;
    size_t room;
    size_t samples; /* kept, all lines together */
};

/* Adds a line and returns its index, or SIZE_MAX if there is no memory. Copies both strings. */
size_t hed_call_stats_line(struct hed_call_stats *s, const char *name, const char *thread);

/* Counts one call of a line. False if there is no memory; then it is not counted. */
bool hed_call_stats_add(struct hed_call_stats *s, size_t line, uint64_t duration, bool error);

/* Computes the percentiles. */
void hed_call_stats_finish(struct hed_call_stats *s);

/* Counts n further calls of a line, whose times are not known. error: one of them failed. */
void hed_call_stats_repeat(struct hed_call_stats *s, size_t line, uint64_t n, bool error);

/* All calls of a line. */
uint64_t hed_call_stats_calls(const struct hed_call_stats_line *l);

/* ns: the time of all calls of a line. Those that were only counted are taken to have lasted as
 * long as the others on average. */
uint64_t hed_call_stats_total(const struct hed_call_stats_line *l);

double hed_call_stats_mean(const struct hed_call_stats_line *l);

void hed_call_stats_fini(struct hed_call_stats *s);
