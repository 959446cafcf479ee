/* Limits of time: a thread that looks at launches and compilations which take long.
 *
 *   a launch that runs too long   its grid fails with CUDA_ERROR_LAUNCH_TIMEOUT, as with the
 *                                 watchdog of a GPU; threads in a loop of compiled code are
 *                                 interrupted (fault.c), others notice it themselves
 *   a compilation that takes too much processor time
 *                                 whoever runs the process is asked to end it: nothing can stop the
 *                                 compiler
 *
 * Launches are measured by the clock, because a kernel that only waits uses no processor time.
 * Compilations are measured by the time of their thread, so that a busy machine changes nothing.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct hed_engine;
struct hed_grid;
struct hed_watch;

/* Asks whoever runs the process to end it. False if nobody will. */
typedef bool (*hed_give_up_fn)(const char *why);

/* A launch or a compilation under way; on the stack of the thread that does it. */
struct hed_watched {
    struct hed_watched *next; /* guarded by the watch's lock, like all of this */
    struct hed_watched **at;  /* NULL: it is not watched */
    struct hed_grid *grid;    /* NULL: a compilation */
    pthread_t thread;         /* that began it */
    const char *name;         /* of what is compiled */
    clockid_t clock;          /* of `end` */
    uint64_t end;             /* ns */
    bool told;                /* of a compilation: somebody has been asked */
};

/* Limits in ns; 0 for none. NULL if there are none at all, or no memory; all functions take NULL.
 * Starts no thread before there is something to watch. */
struct hed_watch *hed_watch_create(uint64_t kernel_ns, uint64_t compile_ns, hed_give_up_fn give_up);
/* Nothing may be watched any more. */
void hed_watch_free(struct hed_watch *w);
/* In the child of a fork, where the thread does not exist. */
void hed_watch_forked(struct hed_watch *w);

/* When a launch that begins now must have ended, or 0. */
uint64_t hed_watch_deadline(const struct hed_watch *w);
/* Watches a grid that must end before `deadline`; 0: never. */
void hed_watch_launch(struct hed_watch *w, struct hed_watched *out, struct hed_grid *g,
                      uint64_t deadline);
/* Watches what the calling thread compiles. The name must stay valid until the end. */
void hed_watch_compilation(struct hed_watch *w, struct hed_watched *out, const char *name);
void hed_watch_end(struct hed_watch *w, struct hed_watched *it);
