/* Included by conformance programs: CUDA's types, the library under test, checks.
 *
 * The library is the one that HED_LIBCUDA names, otherwise libcuda.so.1 as the loader finds it, so
 * that the same program runs on heddle and on NVIDIA's driver. A program returns 0, 1 for a
 * failure, or 77 for "skipped".
 */
#pragma once

#ifdef HED_CUDA_H
#define __CUDA_API_VERSION_INTERNAL /* every version of a function by its own name */
#include <cuda.h>
#else
#include "gen/cuda_front.h"
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/patience.h" /* by its path, because tests/gpu/record.py has no include path */

#define CHECK(holds, ...)                                   \
    do {                                                    \
        if (!(holds)) {                                     \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fprintf(stderr, " (%s)\n", #holds);             \
            exit(1);                                        \
        }                                                   \
    } while (0)

#define CHECK_IS(got, expected)                                                  \
    do {                                                                         \
        const long long got_ = (long long)(got);                                 \
        const long long expected_ = (long long)(expected);                       \
                                                                                 \
        CHECK(got_ == expected_, "%s is %lld, not %lld", #got, got_, expected_); \
    } while (0)

static inline const char *
conf_libcuda(void)
{
    const char *path = getenv("HED_LIBCUDA");

    return path ? path : "libcuda.so.1";
}

static inline void *
conf_open(void)
{
    void *library = dlopen(conf_libcuda(), RTLD_NOW);

    CHECK(library, "%s", dlerror());
    return library;
}

static inline void *
conf_symbol(const char *name)
{
    static void *library; /* the same for every thread */
    void *p;

    if (!__atomic_load_n(&library, __ATOMIC_ACQUIRE))
        __atomic_store_n(&library, conf_open(), __ATOMIC_RELEASE);
    p = dlsym(__atomic_load_n(&library, __ATOMIC_ACQUIRE), name);
    CHECK(p, "%s is missing", name);
    return p;
}

/* CU(cuInit)(0) calls the library under test. */
#define CU(name) ((__typeof__(&(name)))conf_symbol(#name))

/* Runs this program again, with an argument and more environment (NAME, value, ..., NULL). Returns
 * its exit status; `text` receives what it wrote to standard error. */
static inline int
conf_again(const char *argument, char *text, size_t size, const char *const *more)
{
    int ends[2];
    int status;
    size_t n = 0;
    pid_t child;

    CHECK(pipe(ends) == 0, "no pipe");
    child = fork();
    CHECK(child >= 0, "no child");
    if (child == 0) {
        for (; *more; more += 2) {
            if (more[1])
                setenv(more[0], more[1], 1);
            else
                unsetenv(more[0]);
        }
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "again", argument, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* A path in the test's own folder. */
static inline const char *
conf_path(char *path, size_t size, const char *name)
{
    const char *scratch = getenv("HED_SCRATCH");

    CHECK(scratch, "HED_SCRATCH is not set");
    snprintf(path, size, "%s/%s", scratch, name);
    return path;
}
