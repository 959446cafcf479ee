/* heddle-compiler: the fork server of a program that compiles kernels for the CPU GPU. The program
 * starts it (backends/cpu/start.c); people do not.
 *
 *     heddle-compiler COUNT NICENESS PID [SECONDS KERNELS LIMIT CACHE [awaited]]
 *
 * The sockets are the descriptors from 3 on. NICENESS is added to the program's. PID is the
 * program's, also for people who wonder whose process this is. The others say what happens after
 * its end (after.c): for how many seconds and kernels, the limit of the cache in bytes, and its
 * folder. The socket behind the COUNT ones is that of the list. With "awaited", somebody waits for
 * the end of this process, and has locked the descriptor behind that: it is just kept open.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/identity.h"
#include "kernel/cache/cache.h"
#include "kernel/forkserver/forkserver.h"

#define FIRST_SOCKET 3
#define FILES 4096 /* far more than there are texts on the list */

/* The library is beside this program. */
static bool
find_compiler_library(char *out, size_t size)
{
    char own[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash;

    if (n <= 0)
        return false;
    own[n] = 0;
    slash = strrchr(own, '/');
    if (!slash)
        return false;
    slash[1] = 0;

    const int length = snprintf(out, size, "%scompiler-llvm.so", own);

    return length > 0 && (size_t)length < size;
}

static unsigned
read_count(const char *text)
{
    const unsigned long long n = strtoull(text, NULL, 10);

    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

/* A program may have given its ends of the sockets to somebody. If this system cannot tell that it
 * has ended, the sockets do. If it has ended already, and the number is another's, they have. */
static int
open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The list has a descriptor for each text, and compilers close all that they can have. */
static void
limit_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

int
main(int argc, char **argv)
{
    const long count = argc == 4 || argc == 8 || argc == 9 ? strtol(argv[1], NULL, 10) : 0;
    const struct rlimit none = {0};
    char library[PATH_MAX];
    int sockets[HED_FORKSERVER_SOCKETS];

    if (count < 1 || count > HED_FORKSERVER_SOCKETS ||
        !find_compiler_library(library, sizeof library)) {
        (void)fprintf(stderr, "heddle-compiler: heddle starts this program itself\n");
        return 2;
    }
    for (int i = 0; i < count; i++)
        sockets[i] = FIRST_SOCKET + i;
    /* Behind the program, which may have a low priority itself. */
    (void)nice((int)strtol(argv[2], NULL, 10));
    (void)setrlimit(RLIMIT_CORE, &none); /* a core file would be taken for the program's */

    struct hed_forkserver_after after = {.list = FIRST_SOCKET + (int)count};

    if (argc >= 8) {
        after.program = (pid_t)strtol(argv[3], NULL, 10);
        after.seconds = read_count(argv[4]);
        after.kernels = read_count(argv[5]);
        after.process = open_process(after.program);
        after.is_awaited = argc == 9;
        limit_descriptors();
        after.compiler = hed_file_identity(library);
        after.cache = hed_cache_create(argv[7], strtoull(argv[6], NULL, 10));
    }

    const struct hed_forkserver how = {.sockets = sockets,
                                       .count = (unsigned)count,
                                       .library = library,
                                       .after = after.cache ? &after : NULL};

    hed_forkserver_run(&how);
}
