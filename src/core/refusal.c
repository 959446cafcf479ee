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

static struct {
    void (*fn)(void *state, const char *line);
    void *state;
} listener; /* constant once is_told is set */
static _Atomic bool is_told;

void
hed_refusals_choose(const char *path)
{
    if (path[0] == '\0' || !hed_str_copy(file, sizeof file, path))
        return;
    /* Release: pairs with the acquire in is_line_wanted(), for the path. */
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

/* Formats a line: without control characters, and with a newline before its end. */
__attribute__((format(printf, 2, 0))) static size_t
format_line(char *line, const char *fmt, va_list ap)
{
    const int n = vsnprintf(line, LINE_MAX_BYTES - 1, fmt, ap);

    if (n < 0)
        return 0;

    const size_t size = (size_t)n < LINE_MAX_BYTES - 2 ? (size_t)n : LINE_MAX_BYTES - 2;

    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[size] = '\n';
    line[size + 1] = '\0';
    return size + 1;
}

/* Is there anybody to note it, and has this process not said too much already? */
static bool
is_line_wanted(void)
{
    return atomic_load_explicit(&is_wanted, memory_order_acquire) &&
           atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed) < LINES_MAX;
}

void
hed_refused(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;

    if (!is_line_wanted())
        return;
    va_start(ap, fmt);
    append_line(line, format_line(line, fmt, ap));
    va_end(ap);
}

void
hed_refused_in_kernel(const char *fmt, ...)
{
    /* Acquire: pairs with the release in hed_refusals_tell(). */
    const bool told = atomic_load_explicit(&is_told, memory_order_acquire);
    const bool wanted = is_line_wanted();
    char line[LINE_MAX_BYTES];
    va_list ap;

    if (!wanted && !told)
        return;
    va_start(ap, fmt);

    const size_t size = format_line(line, fmt, ap);

    va_end(ap);
    if (wanted)
        append_line(line, size);
    if (told && size) {
        line[size - 1] = '\0';
        listener.fn(listener.state, line);
    }
}

void
hed_refusals_tell(void (*fn)(void *state, const char *line), void *state)
{
    listener.fn = fn;
    listener.state = state;
    /* Release: pairs with the acquire in hed_refused_in_kernel(). */
    atomic_store_explicit(&is_told, true, memory_order_release);
}
