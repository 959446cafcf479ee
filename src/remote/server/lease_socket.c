/* The worker's side of the lease socket. See lease_socket.h. */
#include "remote/server/lease_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/wire/conn.h"

static int
send_ask(int lease_socket, const struct hed_lease_socket_ask *ask, int fd)
{
    ssize_t n;

    if (fd >= 0)
        return hed_fd_send(lease_socket, &fd, 1, ask, sizeof *ask);
    do
        n = send(lease_socket, ask, sizeof *ask, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *ask ? 0 : HED_EIO;
}

int
hed_lease_socket_exchange(int lease_socket, const struct hed_lease_socket_ask *ask, int fd,
                          struct hed_lease_socket_answer *answer, int *got)
{
    int err = send_ask(lease_socket, ask, fd);
    int came = -1;

    if (err)
        return err;
    err = hed_fd_take_maybe(lease_socket, &came, answer, sizeof *answer, true);
    if (!err)
        err = answer->error;
    if (!err && got)
        *got = came;
    else if (came >= 0)
        (void)close(came);
    return err;
}

uint64_t
hed_lease_socket_ask(int lease_socket, const struct hed_lease_socket_ask *ask)
{
    struct hed_lease_socket_answer answer;

    return hed_lease_socket_exchange(lease_socket, ask, -1, &answer, NULL) == 0 ? answer.bytes : 0;
}
