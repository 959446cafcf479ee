/* heddle cpu warm: what its files share.
 *
 *   warm.c      the command; runs a program, and waits for what it leaves to be compiled
 *   library.c   compiles the kernels of a file ahead
 */
#pragma once

#include <stdint.h>

struct hed_cache;

struct hed_warm {
    char **program; /* NULL at the end; NULL: files are compiled */
    const char *const *files;
    unsigned file_count;
    const char *gpu;   /* --gpu */
    const char *match; /* --match: a part of kernels' names; NULL: all */
    unsigned most;     /* --most: kernels */
    unsigned seconds;  /* --seconds, by the clock */
    struct hed_cache *cache;
};

/* Compiles kernels of the files, as a program that uses them would. Returns an exit code. */
int hed_warm_files(const struct hed_warm *w);
