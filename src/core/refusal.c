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

#include "base/lock.h"
#include "base/str.h"
#include "core/config.h"
#include "core/stats.h"

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

/* ---- what the program may read --------------------------------------------------------------- */

static struct hed_lock problems_lock = HED_LOCK_INIT(HED_RANK_PROBLEMS);
static char problems[HED_PROBLEMS_KEPT][LINE_MAX_BYTES];
static _Atomic uint64_t problem_count; /* grows under the lock */
static char cause[LINE_MAX_BYTES];

/* `size` bytes, the last of which is a newline. */
static void
add_problem_line(const char *line, size_t size)
{
    hed_lock(&problems_lock);

    const uint64_t n = atomic_load_explicit(&problem_count, memory_order_relaxed);
    char *at = problems[n % HED_PROBLEMS_KEPT];

    memcpy(at, line, size);
    at[size ? size - 1 : 0] = '\0';
    /* Release: who sees the number finds the text. */
    atomic_store_explicit(&problem_count, n + 1, memory_order_release);
    hed_unlock(&problems_lock);
}

void
hed_problem_add(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    add_problem_line(line, format_line(line, fmt, ap));
    va_end(ap);
}

void
hed_problem_cause(const char *text)
{
    hed_lock(&problems_lock);
    (void)hed_str_copy(cause, sizeof cause, text);
    hed_unlock(&problems_lock);
}

bool
hed_problem_take_cause(char *out, size_t size)
{
    hed_lock(&problems_lock);
    (void)hed_str_copy(out, size, cause);
    cause[0] = '\0';
    hed_unlock(&problems_lock);
    return size > 0 && out[0] != '\0';
}

void
hed_problems_forked(void)
{
    hed_lock_init(&problems_lock, HED_RANK_PROBLEMS);
}

uint64_t
hed_problem_count(void)
{
    return atomic_load_explicit(&problem_count, memory_order_acquire);
}

bool
hed_problem_get(uint64_t number, char *out, size_t size)
{
    bool kept;

    hed_lock(&problems_lock);

    const uint64_t n = atomic_load_explicit(&problem_count, memory_order_relaxed);

    kept = number < n && n - number <= HED_PROBLEMS_KEPT;
    if (kept && size)
        (void)snprintf(out, size, "%s", problems[number % HED_PROBLEMS_KEPT]);
    hed_unlock(&problems_lock);
    return kept;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Notes a line for everybody who wants it: the file only if it is `noted`. */
__attribute__((format(printf, 3, 0))) static size_t
take_refusal(char *line, bool noted, const char *fmt, va_list ap)
{
    const size_t size = format_line(line, fmt, ap);

    hed_stats_add(&hed_stats.refusals, 1);
    add_problem_line(line, size);
    if (noted && is_line_wanted())
        append_line(line, size);
    return size;
}

void
hed_refused(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)take_refusal(line, true, fmt, ap);
    va_end(ap);
}

void
hed_refused_again(const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)take_refusal(line, false, fmt, ap);
    va_end(ap);
}

void
hed_refused_in_kernel(const char *fmt, ...)
{
    /* Acquire: pairs with the release in hed_refusals_tell(). */
    const bool told = atomic_load_explicit(&is_told, memory_order_acquire);
    char line[LINE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);

    const size_t size = take_refusal(line, true, fmt, ap);

    va_end(ap);
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
