/* heddle-compiler: the fork server of a program that compiles kernels for the CPU GPU. The program
 * starts it (backends/cpu/start.c); people do not.
 *
 *     heddle-compiler COUNT NICENESS PID      the sockets are the descriptors from 3 on
 *
 * PID is the program's, for people who wonder whose process this is.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/forkserver/forkserver.h"

#define FIRST_SOCKET 3

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

int
main(int argc, char **argv)
{
    const long count = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
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
    (void)setpriority(PRIO_PROCESS, 0, (int)strtol(argv[2], NULL, 10));
    (void)setrlimit(RLIMIT_CORE, &none); /* a core file would be taken for the program's */

    const struct hed_forkserver how = {
        .sockets = sockets, .count = (unsigned)count, .library = library};

    hed_forkserver_run(&how);
}
