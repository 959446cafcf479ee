/* Lines about what heddle refuses. See refusal.h. */
#include "core/refusal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "core/config.h"

#define LINE_MAX_BYTES 512
#define LINES_MAX 1000 /* of a process */

static char file[HED_CONFIG_TEXT_MAX]; /* constant once is_wanted is set */
static _Atomic bool is_wanted;
static _Atomic unsigned lines;

void
hed_refusals_choose(const char *path)
{
    if (path[0] == '\0' || !hed_str_copy(file, sizeof file, path))
        return;
    /* Release: pairs with the acquire in hed_refused(), for the path. */
    atomic_store_explicit(&is_wanted, true, memory_order_release);
}

/* One write, so that lines of several processes do not mix. A file that is gone, because heddle run
 * has ended, is not made again. */
static void
append_line(const char *line, size_t size)
{
    const int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    ssize_t written = 0;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        written = write(fd, line, size);
    (void)written; /* there is nobody to tell */
    close(fd);
}

void
hed_refused(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;
    int n;

    if (!atomic_load_explicit(&is_wanted, memory_order_acquire) ||
        atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed) >= LINES_MAX)
        return;
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;

    const size_t size = (size_t)n < sizeof line - 2 ? (size_t)n : sizeof line - 2;

    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[size] = '\n';
    append_line(line, size + 1);
}
