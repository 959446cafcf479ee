/* Leases of memory, and pieces of the guest's window: the questions that a worker asks at its desk
 * (remote/server/desk.h).
 */
#include <stdbool.h>
#include <string.h>

#include "remote/server/desk.h"
#include "remote/server/worker/worker.h"

static uint64_t
ask_desk(struct hed_worker *w, const struct hed_desk_ask *ask)
{
    hed_lock(&w->desk_lock);

    const uint64_t answer = hed_desk_ask(w->start->desk, ask);

    hed_unlock(&w->desk_lock);
    return answer;
}

static uint64_t
ask_listener(struct hed_worker *w, enum hed_desk_kind kind, int device, uint64_t bytes,
             uint64_t least)
{
    return ask_desk(
        w, &(struct hed_desk_ask){.kind = kind, .device = device, .bytes = bytes, .least = least});
}

int
hed_lease_exchange(struct hed_worker *w, const struct hed_desk_ask *ask, int fd,
                   struct hed_desk_answer *answer, int *got)
{
    hed_lock(&w->desk_lock);

    const int err = hed_desk_exchange(w->start->desk, ask, fd, answer, got);

    hed_unlock(&w->desk_lock);
    return err;
}

static bool
has_desk(const struct hed_worker *w)
{
    return w->start->desk > 0;
}

uint64_t
hed_lease_take(struct hed_worker *w, int device, uint64_t want, uint64_t least)
{
    return has_desk(w) ? ask_listener(w, HED_DESK_TAKE, device, want, least) : want;
}

void
hed_lease_give(struct hed_worker *w, int device, uint64_t bytes)
{
    if (has_desk(w))
        (void)ask_listener(w, HED_DESK_GIVE, device, bytes, 0);
}

/* The last answer, if nothing has changed since; otherwise asks again. */
static uint64_t
ask_again(struct hed_worker *w, enum hed_desk_kind kind, int device)
{
    const bool known = w->notice && device >= 0 && device < HED_DESK_PLACES;
    struct hed_told *told = known ? &w->told[kind == HED_DESK_OTHERS][device] : NULL;
    uint64_t bytes;

    hed_lock(&w->desk_lock);

    /* Acquire: pairs with the release in hed_ledger_changed(). Read before the question is asked,
     * so that a change meanwhile counts. */
    const uint64_t now =
        1 + (known ? atomic_load_explicit(&w->notice->changes, memory_order_acquire) : 0);
    const bool same = known && told->changes == now;

    bytes =
        same ? told->bytes
             : hed_desk_ask(w->start->desk, &(struct hed_desk_ask){.kind = kind, .device = device});
    if (known)
        *told = (struct hed_told){now, bytes};
    hed_unlock(&w->desk_lock);
    return bytes;
}

uint64_t
hed_lease_obtainable(struct hed_worker *w, int device)
{
    return has_desk(w) ? ask_again(w, HED_DESK_OBTAINABLE, device) : UINT64_MAX;
}

uint64_t
hed_lease_others(struct hed_worker *w, int device)
{
    return has_desk(w) ? ask_again(w, HED_DESK_OTHERS, device) : 0;
}

/* ---- the window ------------------------------------------------------------------------------ */

static uint64_t
take_window_piece(void *arg, uint64_t bytes)
{
    return ask_desk(arg, &(struct hed_desk_ask){.kind = HED_DESK_PIECE_TAKE, .bytes = bytes});
}

static void
give_window_piece(void *arg, uint64_t offset, uint64_t bytes)
{
    (void)ask_desk(
        arg, &(struct hed_desk_ask){.kind = HED_DESK_PIECE_GIVE, .bytes = bytes, .offset = offset});
}

void
hed_worker_window_init(struct hed_worker *w)
{
    const struct hed_worker_start *s = w->start;

    w->window = (struct hed_window){.fd = s->window > 0 ? s->window : -1,
                                    .size = s->window_size,
                                    .take = take_window_piece,
                                    .give = give_window_piece,
                                    .arg = w};
    memcpy(w->window.id, s->window_id, sizeof w->window.id);
}
