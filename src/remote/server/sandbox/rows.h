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
