/* For tests: a new worker every so many calls, with everything that the program has. No program may
 * notice it.
 *
 *   HED_TEST_MOVES=N    after each N calls of the process; every third time it is the old one again
 */
#include "move/session/trial.h"

#ifdef HED_DEBUG

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "move/session/contents.h"

#define DEADLINE_MS 300 /* some streams wait for the program itself */

static pthread_once_t trial_once = PTHREAD_ONCE_INIT;
static long every; /* calls; 0: never */
static _Atomic long calls;
static unsigned moves; /* guarded by `moving` */
static struct hed_lock moving = HED_LOCK_INIT(HED_RANK_SESSION);

static void
read_every(void)
{
    const char *text = secure_getenv("HED_TEST_MOVES");

    every = text ? strtol(text, NULL, 10) : 0;
}

static int
go_and_arrive(struct hed_remote *r, struct hed_remote_host_copy *host_copy,
              struct hed_remote_pump **pump, struct hed_why *why)
{
    struct hed_remote_moved moved = {0};
    struct hed_remote_fill fill;
    int err = hed_remote_host_copy_take(host_copy, r, *pump, false, &moved, why);

    hed_remote_pump_close(*pump); /* what is ours must not be taken along */
    *pump = NULL;
    if (!err && moves % 3 == 1) /* once with a worker to come back to, once without */
        err = hed_remote_part(r, false, why);
    hed_remote_fill_init(&fill, host_copy, NULL, false);
    return err ? err : hed_remote_arrive(r, NULL, &fill.source, why);
}

/* Leaves the worker, which waits, and returns. */
static int
park_once(struct hed_remote *r, struct hed_why *why)
{
    const int err = hed_remote_part(r, true, why);

    return err ? err : hed_remote_return(r, why);
}

static void
move_once(struct hed_remote *r)
{
    struct hed_remote_host_copy *host_copy = NULL;
    struct hed_remote_pump *pump = NULL;
    struct hed_why why = {""};
    int err = hed_remote_pump_open(r, &pump, &why);

    if (!err)
        err = hed_remote_host_copy_make(pump, hed_remote_extents_guess(r), &host_copy, &why);
    if (!err)
        err = hed_remote_hold(r, DEADLINE_MS, &why);
    if (!err) {
        if (++moves % 3 == 0 && r->capabilities & HED_CAN_PARK)
            err = park_once(r, &why);
        else
            err = go_and_arrive(r, host_copy, &pump, &why);
        hed_remote_release(r);
    }
    hed_remote_pump_close(pump);
    hed_remote_host_copy_free(host_copy);
    if (err)
        hed_warn(REMOTE, "a trial move failed (%s): %s", hed_err_text(err), why.text);
    else
        hed_info(REMOTE, "a trial move is done");
}

void
hed_remote_trial(struct hed_remote *r)
{
    (void)pthread_once(&trial_once, read_every);
    if (every <= 0 || !r->driver || atomic_load(&r->lost) || atomic_fetch_add(&calls, 1) % every)
        return;
    if (hed_lock_try(&moving)) {
        move_once(r);
        hed_unlock(&moving);
    }
}

#else
typedef int hed_remote_trial_nothing; /* a file must not be empty */
#endif
