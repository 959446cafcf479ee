/* How the rows of a filter are written. */
#pragma once

#include <sys/syscall.h>

#include "remote/server/sandbox/filter.h"

#define ALWAYS(name)         \
    {                        \
        .number = SYS_##name \
    }
#define AMONG(name, which, list, otherwise)                                                  \
    {                                                                                        \
        .number = SYS_##name, .test = HED_CALL_AMONG, .argument = (which), .values = (list), \
        .count = sizeof(list) / sizeof *(list), .error = (otherwise)                         \
    }
/* Not SO_LINGER: the last close() of such a socket waits, and the last one to close it may be the
 * listener, to which a worker can pass it. */
#define SOCKET_OPTIONS                                                                           \
    {                                                                                            \
        SO_REUSEADDR, SO_SNDBUF, SO_RCVBUF, SO_KEEPALIVE, SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO, \
            TCP_NODELAY, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT              \
    }
#define ON_SELF(name)                                  \
    {                                                  \
        .number = SYS_##name, .test = HED_CALL_ON_SELF \
    }
#define NEVER(name, otherwise)                                             \
    {                                                                      \
        .number = SYS_##name, .test = HED_CALL_NEVER, .error = (otherwise) \
    }
#define KILLS(name)                                  \
    {                                                \
        .number = SYS_##name, .test = HED_CALL_KILLS \
    }

#define LIST(list)                            \
    {                                         \
        (list), sizeof(list) / sizeof *(list) \
    }
