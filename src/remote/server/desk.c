/* The worker's side of the desk. See desk.h. */
#include "remote/server/desk.h"

#include <errno.h>
#include <sys/socket.h>

uint64_t
hed_desk_ask(int desk, const struct hed_desk_ask *ask)
{
    struct hed_desk_answer answer;
    ssize_t n;

    do
        n = send(desk, ask, sizeof *ask, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *ask)
        return 0;
    do
        n = recv(desk, &answer, sizeof answer, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof answer ? answer.bytes : 0;
}
