/* What the log says while a test does something. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "harness/unit.h"

struct captured {
    int before, fds[2];
};

/* From here on warnings and errors are kept. They must fit into a pipe. */
static inline void
captured_begin(struct captured *c)
{
    c->before = dup(STDERR_FILENO);
    assert_int_equal(pipe2(c->fds, O_NONBLOCK), 0);
    assert_int_equal(hed_log_setup("warn", NULL), 0);
    (void)dup2(c->fds[1], STDERR_FILENO);
}

static inline void
captured_end(struct captured *c, char *text, size_t size)
{
    (void)dup2(c->before, STDERR_FILENO);
    assert_int_equal(hed_log_setup(NULL, NULL), 0);

    const ssize_t got = read(c->fds[0], text, size - 1);

    text[got > 0 ? got : 0] = '\0';
    close(c->fds[0]);
    close(c->fds[1]);
    close(c->before);
}

/* The log is one line, with this text. */
static inline void
assert_one_line(const char *log, const char *text)
{
    assert_non_null(strstr(log, text));
    assert_ptr_equal(strchr(log, '\n'), strrchr(log, '\n'));
}
