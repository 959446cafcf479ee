/* The parent of a program whose refusals count. See refusal.h. */
#include "cli/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/supervise.h"
#include "move/move.h"

#define SHOWN_MAX 3 /* refusals that the line names */
#define LINE_BYTES 512

int
hed_refusal_file(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    const int n = snprintf(path, size, "%s/heddle-refused-XXXXXX",
                           folder && folder[0] == '/' ? folder : "/tmp");
    const int fd = n > 0 && (size_t)n < size ? mkostemp(path, O_CLOEXEC) : -1;

    if (fd < 0) {
        hed_cli_say("run: --fail-on-refusal: cannot make the file '%s': %s", path, strerror(errno));
        return HED_EXIT_BROKEN;
    }
    close(fd);
    return HED_EXIT_OK;
}

/* Has the file this line before `end`? Processes of a program are refused the same things. */
static bool
is_repeated(const char *path, const char *line, long end)
{
    FILE *f = fopen(path, "re");
    char other[LINE_BYTES];
    bool found = false;

    while (f && !found && ftell(f) < end && fgets(other, sizeof other, f))
        found = ftell(f) <= end && strcmp(other, line) == 0;
    if (f)
        fclose(f);
    return found;
}

/* Names the first few things, one per line, and counts the others. True if there is any. */
static bool
tell_refusals(const char *path)
{
    FILE *f = fopen(path, "re");
    char line[LINE_BYTES];
    unsigned long count = 0;

    while (f) {
        const long at = ftell(f);

        if (!fgets(line, sizeof line, f))
            break;
        if (is_repeated(path, line, at))
            continue;
        if (count++ == 0)
            hed_cli_say("run: the program ended with 0, but heddle refused what it asked for:");
        if (count <= SHOWN_MAX)
            hed_cli_say("run:   %.*s", (int)strcspn(line, "\n"), line);
    }
    if (count > SHOWN_MAX)
        hed_cli_say("run:   and %lu more; `heddle run` without --fail-on-refusal ends with 0",
                    count - SHOWN_MAX);
    if (f)
        fclose(f);
    return count > 0;
}

int
hed_refusal_run(const char *path, int (*start)(void *arg), void *arg)
{
    struct hed_supervised s = {.was_saved = hed_saved_hear};
    int signal_number = 0;
    sigset_t old;
    int code;

    fflush(NULL);
    hed_supervise_prepare(&old);
    s.pid = fork();
    if (s.pid == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        _exit(start(arg));
    }
    if (s.pid < 0) {
        hed_cli_say("run: cannot start a process: %s", strerror(errno));
        code = HED_EXIT_BROKEN;
    } else {
        code = hed_supervise(&s, &signal_number);
    }
    if (code == HED_EXIT_OK && tell_refusals(path))
        code = HED_EXIT_REFUSED;
    (void)unlink(path);
    if (signal_number)
        hed_supervise_die(signal_number);
    return code;
}
