/* Why CRIU failed, from its log. See criu.h.
 *
 * Errors are lines such as
 *
 *     (00.029665) Error (criu/util.c:1433): rlimit: Can't setup RLIMIT_NOFILE for self: ...
 *
 * The first one that is not known to be harmless is the cause; the others follow from it.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "move/command/criu.h"

/* criu tries things out at its start, and reports what it does without. */
static const char *const harmless[] = {
    "exited, status=",
    "Can't setup RLIMIT_NOFILE",
    "Can't load nftables",
    "Could not initialize",
};

static const struct {
    const char *said;
    const char *advice;
} known[] = {
    {"vdso: Unexpected rt vDSO", "this kernel is newer than this criu supports: install criu 4.1"},
    {"Can't fork for", "is the number of the process taken? Restore it with --new-pids"},
    {"Unable to create a thread",
     "is the number of one of its threads taken? Restore it with --new-pids"},
    {"External socket is used",
     "the program is connected to another process by a unix socket; close the connection first"},
    {"is not a terminal", "run the command in a terminal, as the program was"},
    {"Connected TCP socket",
     "the program has a TCP connection of its own; close the connection first"},
    {"has bad size",
     "the program had this file open, and it has changed since; only files that are opened for "
     "appending may: give the file the size that is expected"},
    {"session leader",
     "the program belongs to a session from outside of its container; start it with setsid"},
    {"is already traced", "a debugger is attached to the program; detach it first"},
    {"Can't obtain FPU registers",
     "a thread of the program uses AMX, which this criu cannot save; install criu 4.1"},
    {"pagemap-cache: Failed", "the program has reserved too many addresses for this criu"},
    {"No space left on device", "there is no room on the disk"},
    {"Can't open file", "a file that the program has open is not there any more"},
};

static bool
line_has(const char *line, size_t n, const char *text)
{
    return memmem(line, n, text, strlen(text)) != NULL;
}

static bool
is_harmless(const char *line, size_t n)
{
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (line_has(line, n, harmless[i]))
            return true;
    return false;
}

/* What to do about an error, of the cause or of what follows from it; NULL: nothing is known. */
static const char *
find_advice(const char *log, size_t size)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (line_has(log, size, known[i].said))
            return known[i].advice;
    return NULL;
}

void
hed_criu_explain(const char *log, size_t size, struct hed_why *why)
{
    for (size_t at = 0; at < size;) {
        const char *line = log + at;
        const char *newline = memchr(line, '\n', size - at);
        const size_t n = newline ? (size_t)(newline - line) : size - at;
        const char *error = memmem(line, n, "Error (", 7);
        const char *text = error ? memmem(error, n - (size_t)(error - line), "): ", 3) : NULL;

        at += n + 1;
        if (!text || is_harmless(line, n))
            continue;
        text += 3;

        const char *advice = find_advice(line, size - (size_t)(line - log));

        hed_why_set(why, "criu says: %.*s%s%s%s", (int)(n - (size_t)(text - line)), text,
                    advice ? " (" : "", advice ? advice : "", advice ? ")" : "");
        return;
    }
    hed_why_set(why, "criu failed and its log does not say why");
}
