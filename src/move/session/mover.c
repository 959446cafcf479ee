/* The table by which the mover hangs on the client. See remote/client/mover.h. */
#include "remote/client.h"

#include <stdlib.h>

#include "base/futex.h"
#include "core/config.h"
#include "move/session/agent.h"
#include "move/session/moving.h"
#include "move/session/rescue.h"
#include "move/session/trial.h"

_Static_assert(HED_MOVER_NVML == HED_HOLD_NVML, "the hold shows the client's number");

static int
create_moving(struct hed_remote *r, const struct hed_config *config, struct hed_why *why)
{
    struct hed_remote_moving *m = calloc(1, sizeof *m);

    if (!m) {
        hed_why_set(why, "not enough memory for a remote GPU");
        return HED_ENOMEM;
    }
    hed_hold_init(&m->hold);
    m->obeys = hed_remote_obeys(config->orders);
    r->moving = m;
    return 0;
}

static void
moving_forked(struct hed_remote *r)
{
    if (r->moving->standby)
        hed_remote_channels_forked(r->moving->standby);
    hed_remote_agent_forked(r);
}

static uint64_t
moving_capabilities(const struct hed_remote *r)
{
    return HED_CAN_PARK | (r->moving->obeys != HED_OBEYS_NONE ? HED_CAN_ORDERS : 0) |
           (r->moving->looks_for_room ? HED_LOOKS_FOR_ROOM : 0);
}

static void *
pass_hold(struct hed_remote *r, int call)
{
    if (call != HED_MOVER_NVML)
        hed_remote_trial(r);
    return hed_hold_enter(&r->moving->hold, call);
}

static void
leave_hold(void *entered)
{
    hed_hold_leave(entered);
}

static void
wait_while_away(struct hed_remote *r)
{
    struct hed_remote_moving *m = r->moving;

    /* Acquire: pairs with the release in attachment.c. */
    while (atomic_load_explicit(&m->away, memory_order_acquire) != 0 &&
           !pthread_equal(m->holder, pthread_self()))
        (void)hed_futex_wait_private(&m->away, 1, -1);
}

static bool
is_on_trial(const struct hed_remote *r)
{
    return r->moving->trying;
}

static void
note_trouble(struct hed_remote *r, const char *why)
{
    hed_why_set(&r->moving->trouble, "%s", why);
}

const struct hed_remote_mover hed_remote_session_mover = {
    .create = create_moving,
    .start = hed_remote_agent_start,
    .forked = moving_forked,
    .ended = hed_remote_agent_ended,
    .capabilities = moving_capabilities,
    .enter = pass_hold,
    .leave = leave_hold,
    .await_worker = wait_while_away,
    .on_trial = is_on_trial,
    .trial_lost = note_trouble,
    .rescue = hed_remote_rescue,
};
