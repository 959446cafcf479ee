/* The worker's side of the desk. See desk.h. */
#include "remote/server/desk.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/wire/conn.h"

static int
send_ask(int desk, const struct hed_desk_ask *ask, int fd)
{
    ssize_t n;

    if (fd >= 0)
        return hed_fd_send(desk, &fd, 1, ask, sizeof *ask);
    do
        n = send(desk, ask, sizeof *ask, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *ask ? 0 : HED_EIO;
}

int
hed_desk_exchange(int desk, const struct hed_desk_ask *ask, int fd, struct hed_desk_answer *answer,
                  int *got)
{
    int err = send_ask(desk, ask, fd);
    int came = -1;

    if (err)
        return err;
    err = hed_fd_take_maybe(desk, &came, answer, sizeof *answer, true);
    if (!err)
        err = answer->error;
    if (!err && got)
        *got = came;
    else if (came >= 0)
        (void)close(came);
    return err;
}

uint64_t
hed_desk_ask(int desk, const struct hed_desk_ask *ask)
{
    struct hed_desk_answer answer;

    return hed_desk_exchange(desk, ask, -1, &answer, NULL) == 0 ? answer.bytes : 0;
}
