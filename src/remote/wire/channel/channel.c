/* Channels of all kinds: how they begin and end. shm.c and stream.c carry the messages. */
#include "remote/wire/channel/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int
channel_make(struct hed_conn *conn, const struct hed_channel_ops *ops, bool client,
             struct hed_channel **out, struct hed_why *why)
{
    struct hed_msg *message = aligned_alloc(HED_MSG_ALIGN, HED_MSG_MAX);
    struct hed_channel *ch = NULL;
    const int err = message ? ops->create(conn, client, &ch, why) : HED_ENOMEM;

    if (err) {
        if (err == HED_ENOMEM)
            hed_why_set(why, "out of memory");
        free(message);
        hed_conn_close(conn);
        return err;
    }
    if (!ch->ops)
        ch->ops = ops;
    ch->conn = conn;
    ch->message = message;
    memset(message, 0, sizeof *message); /* hed_channel_last_words() may look before `next` does */
    *out = ch;
    return 0;
}

int
hed_channel_create(struct hed_conn *conn, const struct hed_channel_ops *ops,
                   struct hed_channel **out, struct hed_why *why)
{
    return channel_make(conn, ops, true, out, why);
}

int
hed_channel_accept(struct hed_conn *conn, const struct hed_channel_ops *ops,
                   struct hed_channel **out, struct hed_why *why)
{
    return channel_make(conn, ops, false, out, why);
}

void
hed_channel_free(struct hed_channel *ch)
{
    if (!ch)
        return;

    const bool forked = !ch->conn;

    hed_conn_close(ch->conn);
    if (!forked && ch->ops->wake_peer)
        ch->ops->wake_peer(ch);
    free(ch->message);
    ch->ops->free(ch);
}

void
hed_channel_stop(struct hed_channel *ch)
{
    hed_conn_break(ch->conn);
    if (ch->ops->wake_own)
        ch->ops->wake_own(ch);
}

void
hed_channel_forked(struct hed_channel *ch)
{
    if (!ch || !ch->conn)
        return;
    hed_conn_forget(ch->conn);
    ch->conn = NULL;
    ch->ops->forked(ch);
}

bool
hed_channel_last_words(struct hed_channel *ch, struct hed_end *out)
{
    if (!ch->conn)
        return false;
    if (ch->message->kind == HED_MSG_END && ch->message->size >= sizeof *out)
        memcpy(out, ch->message, sizeof *out);
    else if (!ch->ops->read_last || ch->ops->read_last(ch, out) != 0 ||
             out->head.kind != HED_MSG_END)
        return false;
    out->text[sizeof out->text - 1] = '\0';
    for (char *at = out->text; *at; at++)
        *at = *at >= ' ' && *at < 0x7f ? *at : '?';
    return true;
}

void
hed_channel_bulk_done(struct hed_channel *ch, size_t n)
{
    if (ch->ops->bulk_done(ch, n) == HED_EINVAL)
        hed_bug("more bulk given back than was taken");
}

bool
hed_channel_bulk_area(struct hed_channel *ch, int direction, void **p, size_t *n)
{
    void *area = ch->ops->bulk_area(ch, direction);

    if (!area)
        return false;
    *p = area;
    *n = HED_CHANNEL_STAGED;
    return true;
}
