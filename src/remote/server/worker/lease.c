/* Leases of memory, and pieces of the guest's window: the questions that a worker asks over its
 * lease socket (remote/server/lease_socket.h).
 */
#include <stdbool.h>
#include <string.h>

#include "remote/server/lease_socket.h"
#include "remote/server/worker/worker.h"

static uint64_t
ask_lease_socket(struct hed_worker *w, const struct hed_lease_socket_ask *ask)
{
    hed_lock(&w->lease_socket_lock);

    const uint64_t answer = hed_lease_socket_ask(w->start->lease_socket, ask);

    hed_unlock(&w->lease_socket_lock);
    return answer;
}

static uint64_t
ask_listener(struct hed_worker *w, enum hed_lease_socket_kind kind, int device, uint64_t bytes,
             uint64_t least)
{
    return ask_lease_socket(w, &(struct hed_lease_socket_ask){
                                   .kind = kind, .device = device, .bytes = bytes, .least = least});
}

int
hed_lease_exchange(struct hed_worker *w, const struct hed_lease_socket_ask *ask, int fd,
                   struct hed_lease_socket_answer *answer, int *got)
{
    hed_lock(&w->lease_socket_lock);

    const int err = hed_lease_socket_exchange(w->start->lease_socket, ask, fd, answer, got);

    hed_unlock(&w->lease_socket_lock);
    return err;
}

static bool
has_lease_socket(const struct hed_worker *w)
{
    return w->start->lease_socket > 0;
}

uint64_t
hed_lease_take(struct hed_worker *w, int device, uint64_t want, uint64_t least)
{
    return has_lease_socket(w) ? ask_listener(w, HED_LEASE_SOCKET_TAKE, device, want, least) : want;
}

void
hed_lease_give(struct hed_worker *w, int device, uint64_t bytes)
{
    if (has_lease_socket(w))
        (void)ask_listener(w, HED_LEASE_SOCKET_GIVE, device, bytes, 0);
}

/* The last answer, if nothing has changed since; otherwise asks again. */
static uint64_t
ask_again(struct hed_worker *w, enum hed_lease_socket_kind kind, int device)
{
    const bool known = w->notice && device >= 0 && device < HED_LEASE_SOCKET_PLACES;
    struct hed_told *told = known ? &w->told[kind == HED_LEASE_SOCKET_OTHERS][device] : NULL;
    uint64_t bytes;

    hed_lock(&w->lease_socket_lock);

    /* Acquire: pairs with the release in hed_ledger_changed(). Read before the question is asked,
     * so that a change meanwhile counts. */
    const uint64_t now =
        1 + (known ? atomic_load_explicit(&w->notice->changes, memory_order_acquire) : 0);
    const bool same = known && told->changes == now;

    bytes =
        same ? told->bytes
             : hed_lease_socket_ask(w->start->lease_socket,
                                    &(struct hed_lease_socket_ask){.kind = kind, .device = device});
    if (known)
        *told = (struct hed_told){now, bytes};
    hed_unlock(&w->lease_socket_lock);
    return bytes;
}

uint64_t
hed_lease_obtainable(struct hed_worker *w, int device)
{
    return has_lease_socket(w) ? ask_again(w, HED_LEASE_SOCKET_OBTAINABLE, device) : UINT64_MAX;
}

uint64_t
hed_lease_others(struct hed_worker *w, int device)
{
    return has_lease_socket(w) ? ask_again(w, HED_LEASE_SOCKET_OTHERS, device) : 0;
}

/* ---- the window ------------------------------------------------------------------------------ */

static uint64_t
take_window_piece(void *arg, uint64_t bytes)
{
    return ask_lease_socket(
        arg, &(struct hed_lease_socket_ask){.kind = HED_LEASE_SOCKET_PIECE_TAKE, .bytes = bytes});
}

static void
give_window_piece(void *arg, uint64_t offset, uint64_t bytes)
{
    (void)ask_lease_socket(arg, &(struct hed_lease_socket_ask){.kind = HED_LEASE_SOCKET_PIECE_GIVE,
                                                               .bytes = bytes,
                                                               .offset = offset});
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
