/* The times of a trace: cheap to read for the program, nanoseconds in the file.
 *
 * Threads read the processor's counter, which costs a fifth of reading CLOCK_MONOTONIC. The writer
 * reads both clocks in every round and keeps a line that turns ticks of the counter into
 * nanoseconds. Where the line has drifted from the clock, it gets a bend:
 *
 *     ns |                  o now        the line so far is kept up to the last time that was
 *        |               / .             converted; from there it leads to the clock's time now,
 *        |      bend  o  .  line so far  and then goes on at the rate that the clock had lately
 *        |         .
 *        +----------------------- ticks
 *
 * Where the counter cannot be used, ticks are nanoseconds and nothing is converted.
 *
 * Invariants:
 * 1. The line rises, and no part of it is changed after it was used: the records of a thread keep
 *    their order. (Very old bends may be forgotten, which moves times by less than the tolerance.)
 * 2. Only the thread that holds the writer's file lock touches it. `counter` is constant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_TRACE_BENDS_MAX 512
#define HED_TRACE_TOLERANCE_NS 200     /* the line may be that far from the clock */
#define HED_TRACE_BASELINE_NS 50000000 /* rates are measured over at least that, where possible */

/* The same instant in both clocks. */
struct hed_trace_instant {
    uint64_t ticks;
    uint64_t ns; /* of CLOCK_MONOTONIC */
};

struct hed_trace_clock {
    bool counter;  /* ticks are the processor's counter; else nanoseconds of CLOCK_MONOTONIC */
    uint64_t used; /* greatest ticks that were converted */
    size_t count;  /* of bends; the first is where the line begins */
    double rate;   /* nanoseconds per tick after the last bend; 0 before the first update */
    struct hed_trace_instant base;  /* the rate is measured from here */
    struct hed_trace_instant later; /* base, as soon as it is old enough */
    struct hed_trace_instant bends[HED_TRACE_BENDS_MAX];
};

/* counter: use the processor's counter if it keeps time here. */
void hed_trace_clock_init(struct hed_trace_clock *c, bool counter);

/* Compares the line with the clock, now. To be called before the first conversion. */
void hed_trace_clock_update(struct hed_trace_clock *c);

/* The parts of the two above, for tests: begins the line at an instant; compares it with an
 * instant, which is ignored if it is not after the previous one. */
void hed_trace_clock_begin(struct hed_trace_clock *c, struct hed_trace_instant start);
void hed_trace_clock_compare(struct hed_trace_clock *c, struct hed_trace_instant now);

/* Ticks as nanoseconds of CLOCK_MONOTONIC. */
uint64_t hed_trace_clock_ns(struct hed_trace_clock *c, uint64_t ticks);

/* Converts the times of complete records, n bytes of them, to nanoseconds in place. */
void hed_trace_clock_convert(struct hed_trace_clock *c, uint8_t *p, size_t n);
