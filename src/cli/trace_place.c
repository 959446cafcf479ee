/* Checking where a trace goes. See trace_place.h. */
#include "cli/trace_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "see/see.h"

#define TRIAL_SIZE (64u * 1024) /* bytes that must fit on the disk before a trace is begun */

/* Only an empty file or an older trace may be replaced: a typo must not destroy somebody's file. */
static int
check_old_trace(const char *path)
{
    char magic[sizeof HED_TRACE_MAGIC - 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    /* Whether there is one cannot be told in a folder that may not be entered. Then nothing can be
     * written, either, and the check of the folder says so. */
    if (fd < 0 && (errno == ENOENT || (errno == EACCES && lstat(path, &st) != 0)))
        return HED_EXIT_OK;
    if (fd < 0) {
        hed_cli_say("run: --trace '%s': cannot read the file that is there: %s", path,
                    strerror(errno));
        return HED_EXIT_USAGE;
    }

    const bool known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const bool trace = known && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
                       memcmp(magic, HED_TRACE_MAGIC, sizeof magic) == 0;

    close(fd);
    if (trace || (known && st.st_size == 0))
        return HED_EXIT_OK;
    hed_cli_say("run: --trace '%s' is a file that is not a trace, so it is not replaced; use "
                "another name",
                path);
    return HED_EXIT_USAGE;
}

/* Can n bytes be written? Some file systems report only on close that they are full. Closes fd. */
static bool
write_trial(int fd, size_t n)
{
    static const char zeros[4096];
    bool good = true;

    while (good && n > 0) {
        const ssize_t put = write(fd, zeros, n < sizeof zeros ? n : sizeof zeros);

        good = put > 0;
        n -= good ? (size_t)put : 0;
    }

    const int error = good ? 0 : errno;

    if (close(fd) != 0 && good)
        return false;
    errno = error;
    return good;
}

/* Tries to write there: permissions say nothing about read-only, full or special file systems. */
static int
check_trace_folder(const char *path)
{
    char trial[PATH_MAX + 32];
    const int n = (int)(strrchr(path, '/') - path);

    snprintf(trial, sizeof trial, "%.*s/.heddle-XXXXXX", n < PATH_MAX ? n : PATH_MAX, path);

    const int fd = mkostemp(trial, O_CLOEXEC);

    /* The name is removed first, so that nothing is left behind even if heddle is killed. */
    if (fd < 0 || unlink(trial) != 0 || !write_trial(fd, TRIAL_SIZE)) {
        hed_cli_say("run: --trace '%s': cannot write in %.*s: %s", path, n ? n : 1, path,
                    strerror(errno));
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

int
hed_trace_place_check(const char *path)
{
    const int code = check_old_trace(path);

    return code == HED_EXIT_OK ? check_trace_folder(path) : code;
}
