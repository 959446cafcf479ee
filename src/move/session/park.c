/* Messages about parking. See park.h. */
#include "move/session/park.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sealed.h"
#include "remote/client.h"

/* The worker may still be writing down that the last function has run. */
#define PARK_TRIES 200
#define PARK_NAP_NS (5 * HED_NS_PER_MS)

/* Asks once: CUDA's result, or HED_EIO. */
static int
ask_park(struct hed_remote *r, uint8_t *key)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m = hed_remote_begin(r, HED_MSG_PARK, sizeof *m, 0, 0, 0, &channel);

    if (!m)
        return HED_EIO;
    m->flags = HED_MSG_WANTS_ANSWER;
    if (hed_remote_end(channel, m, sizeof *m) != 0)
        return HED_EIO;

    const struct hed_park_answer *a =
        (const struct hed_park_answer *)(const void *)hed_remote_answer(channel);

    if (!a || (a->head.result == CUDA_SUCCESS && a->head.head.size < sizeof *a))
        return HED_EIO;
    if (a->head.result == CUDA_SUCCESS)
        memcpy(key, a->key, sizeof a->key);
    return a->head.result;
}

int
hed_remote_say_park(struct hed_remote *r, uint8_t *key, struct hed_why *why)
{
    int result = CUDA_ERROR_NOT_READY;

    if (!(r->capabilities & HED_CAN_PARK)) {
        hed_why_set(why, "the server keeps no worker for a client that is away (--park-timeout)");
        return HED_ENOTSUP;
    }
    for (int i = 0; i < PARK_TRIES && result == CUDA_ERROR_NOT_READY; i++) {
        if (i > 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = PARK_NAP_NS}, NULL);
        result = ask_park(r, key);
    }
    if (result == CUDA_SUCCESS)
        return 0;
    hed_why_set(why, result == CUDA_ERROR_NOT_READY ? "the worker still has work of this program"
                                                    : "the worker cannot wait for this program");
    return result == CUDA_ERROR_NOT_READY ? HED_ETIME : HED_EIO;
}

/* ---- return ---------------------------------------------------------------------------------- */

static int
hear_welcome_back(struct hed_remote *r, struct hed_channel *channel)
{
    struct hed_msg *m;
    int err;

    do
        err = hed_channel_next(channel, r->timeout_ms, &m);
    while (!err && m->kind == HED_MSG_PING); /* a sign of life */
    if (err)
        return err;
    return m->kind == HED_MSG_ANSWER && m->size >= sizeof(struct hed_answer) &&
                   ((const struct hed_answer *)m)->result == CUDA_SUCCESS
               ? 0
               : HED_EFORMAT;
}

/* The page of slots is the one of before. */
static int
take_slots_back(struct hed_remote *r, struct hed_channel *channel)
{
    const size_t size = r->slot_count * sizeof *r->slots;
    void *slots = NULL;
    int fd = -1;
    int err = 0;

    if (!hed_channel_shares(channel) || !size)
        return 0;
    if (!hed_channel_window_of(channel, &slots)) {
        err = hed_conn_take_fds(hed_channel_conn(channel), &fd, 1, r->timeout_ms);
        if (!err && !hed_fd_is_sealed(fd, size))
            err = HED_EFORMAT;
        if (!err)
            slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fd >= 0)
            (void)close(fd);
    }
    if (!err && slots == MAP_FAILED)
        err = HED_ENOMEM;
    if (!err)
        r->slots = slots;
    return err;
}

int
hed_remote_say_return(struct hed_remote *r, const uint8_t *key, struct hed_channel **out,
                      struct hed_why *why)
{
    struct hed_channel *channel = NULL;
    struct hed_conn *conn;
    int err = hed_remote_call_on(r, HED_PREFACE_CHANNEL, &conn, why);

    if (!err && r->in_window)
        hed_conn_set_window(conn, &r->window);
    if (!err)
        err = hed_channel_create(conn, r->address.transport->channel, &channel, why);
    if (err)
        return err;
    err = hed_remote_patience(r, channel);
    if (!err)
        err = hed_remote_say_attach(r, channel, 0, HED_CHANNEL_RETURN, key);
    if (!err)
        err = hear_welcome_back(r, channel);
    if (!err)
        err = take_slots_back(r, channel);
    if (err) {
        hed_channel_free(channel);
        hed_why_set(why, "the worker did not take this program back: %s", hed_err_text(err));
        return err;
    }
    memcpy(r->secret, key, sizeof r->secret);
    *out = channel;
    return 0;
}
