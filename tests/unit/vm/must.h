/* For the files that play a guest and its QEMU, on any thread: what must hold, or the test ends. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define must(condition)                                                                       \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            abort();                                                                          \
        }                                                                                     \
    } while (0)
