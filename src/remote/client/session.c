/* The session with a worker: its slots, its failures, and its end. See remote.h. */
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "driver/driver.h"
#include "remote/client/mover.h"
#include "remote/client/remote.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/* Slots are taken in turn, so that one is not used again while its last owner may still be written
 * to. */
uint32_t
hed_remote_slot_take(struct hed_remote *r)
{
    uint32_t slot = 0;

    if (!r->slots || r->slot_count <= HED_SLOT_FIRST)
        return 0;
    hed_lock(&r->channels_lock);
    for (uint32_t i = 0; i < r->slot_count - HED_SLOT_FIRST && !slot; i++) {
        const uint32_t at = HED_SLOT_FIRST + (r->slot_next + i) % (r->slot_count - HED_SLOT_FIRST);

        if (r->slot_used[at / 64] >> at % 64 & 1)
            continue;
        r->slot_used[at / 64] |= UINT64_C(1) << at % 64;
        r->slot_next = at - HED_SLOT_FIRST + 1;
        slot = at;
    }
    hed_unlock(&r->channels_lock);
    if (slot) /* relaxed: no other thread knows of it yet */
        atomic_store_explicit(&r->slots[slot], 0, memory_order_relaxed);
    return slot;
}

void
hed_remote_slot_give(struct hed_remote *r, uint32_t slot)
{
    if (!slot)
        return;
    hed_lock(&r->channels_lock);
    r->slot_used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    hed_unlock(&r->channels_lock);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void *
fail_all(void *arg)
{
    struct hed_driver *d = arg;

    hed_lock(&d->contexts_lock);
    for (struct hed_context *c = d->contexts; c; c = c->next)
        hed_context_fail(c, CUDA_ERROR_DEVICE_UNAVAILABLE);
    hed_unlock(&d->contexts_lock);
    return NULL;
}

/* Ends all channels: other threads may be waiting on theirs, and the worker, if it is still there,
 * must stop. */
static void *
end_all(void *arg)
{
    struct hed_remote *r = arg;

    hed_lock(&r->channels_lock);
    for (const struct hed_remote_channel *ch = r->channels; ch; ch = ch->next)
        if (ch->channel)
            hed_conn_break(hed_channel_conn(ch->channel));
    hed_unlock(&r->channels_lock);
    return NULL;
}

/* The thread that notices may hold a stream's or a channel's lock, which rank below that of the
 * contexts. So another thread does it. */
static void
do_soon(void *(*what)(void *), void *arg)
{
    if (hed_thread_detached(NULL, what, arg) != 0)
        hed_warn(REMOTE, "cannot start a thread that ends the session's channels");
}

bool
hed_remote_on_trial(const struct hed_remote *r)
{
    return r->mover && r->mover->on_trial(r);
}

static void
end_session(struct hed_remote *r, const char *why)
{
    /* Relaxed: the first thread logs it, and the others find out. */
    if (atomic_load_explicit(&r->ended, memory_order_relaxed) ||
        atomic_exchange_explicit(&r->lost, true, memory_order_relaxed))
        return;
    if (hed_remote_on_trial(r)) { /* nothing else is lost */
        r->mover->trial_lost(r, why);
        return;
    }
    hed_error(REMOTE, "the GPU's server is lost: %s", why);
    /* Relaxed: as in hed_context_error(). */
    if (r->driver)
        atomic_store_explicit(&r->driver->lost, CUDA_ERROR_DEVICE_UNAVAILABLE,
                              memory_order_relaxed);
    do_soon(end_all, r);
    /* The thread that runs functions of the program (host.c) notices by itself: this may be called
     * with locks held, which must not be held while they run. */
}

void
hed_remote_lose(struct hed_remote *r, const char *why)
{
    /* Relaxed: as in end_session(). Until the program has to see the loss, nothing is lost. */
    if (r->mover && !r->mover->on_trial(r) &&
        !atomic_load_explicit(&r->ended, memory_order_relaxed) &&
        !atomic_load_explicit(&r->lost, memory_order_relaxed))
        r->mover->rescue(r, why);
    end_session(r, why);
}

/* A server that says why it ends the session would do so again, so nobody is asked for help. */
void
hed_remote_lose_channel(struct hed_remote *r, struct hed_channel *ch, int err)
{
    struct hed_end end;

    if (err == HED_EIO && hed_channel_last_words(ch, &end))
        end_session(r, end.text);
    else
        hed_remote_lose(r, err == HED_EIO ? "the worker is gone, or gives no sign of life"
                                          : hed_err_text(err));
}

void
hed_remote_failed(struct hed_remote *r, uint64_t context, CUresult error)
{
    struct hed_object *c = NULL;

    if (hed_remote_on_trial(r)) {
        hed_remote_lose(r, "work failed while the program's state was being restored");
        return;
    }
    /* Not through hed_context_find(), whose reference replaces one that this thread may be
     * using. */
    if (r->driver && context)
        c = hed_handles_get(r->driver->handles, HED_KIND_CONTEXT, context);
    /* A context that has been destroyed has no users any more. */
    if (c) {
        hed_context_fail((struct hed_context *)c, error);
        hed_object_put(c);
    } else if (r->driver && !context)
        do_soon(fail_all, r->driver);
}
