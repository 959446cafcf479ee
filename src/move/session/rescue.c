/* Asks the parent of this process for help. See rescue.h. */
#include "move/session/rescue.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/log.h"
#include "base/str.h"
#include "move/session/agent.h"

/* Values of hed_remote_moving.rescue. */
enum { UNASKED, ASKED, REFUSED };

static void
ask_parent(const struct hed_remote *r, const char *lost)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};
    int fd;

    hed_talk_ask(&q, HED_TALK_RESCUE);
    memcpy(q.uuid, r->moving->agent->session, sizeof q.uuid);
    (void)hed_str_copy(q.label, sizeof q.label, lost);
    hed_address_text(&r->address, q.address, sizeof q.address);
    if (hed_talk_open_rescue(&fd, &why) != 0)
        return;
    hed_info(REMOTE,
             "the GPU's server is lost (%s); the program waits to be taken back to its "
             "newest snapshot",
             lost);
    /* Any answer is a refusal. */
    if (hed_talk_send(fd, &q, NULL, 0, &why) == 0)
        (void)hed_talk_wait(fd, -1, HED_TALK_RESCUE, &a, &why);
    (void)close(fd);
}

void
hed_remote_rescue(struct hed_remote *r, const char *why)
{
    uint32_t state = UNASKED;

    if (!r->moving->agent) /* it cannot have been saved */
        return;
    /* Acquire, here and below: pairs with the release of the thread that has asked. */
    if (atomic_compare_exchange_strong_explicit(&r->moving->rescue, &state, ASKED,
                                                memory_order_acquire, memory_order_acquire)) {
        ask_parent(r, why);
        atomic_store_explicit(&r->moving->rescue, REFUSED, memory_order_release);
        (void)hed_futex_wake_private(&r->moving->rescue, INT_MAX);
        return;
    }
    while (atomic_load_explicit(&r->moving->rescue, memory_order_acquire) == ASKED)
        (void)hed_futex_wait_private(&r->moving->rescue, ASKED, -1);
}
