/* What workers write to their standard error, on its way to the log. A client may have taken its
 * worker over, so nothing of it is trusted: each line gets a head that the listener writes, nothing
 * but printable characters passes, and there is a limit on how much a worker may say.
 *
 *   worker ──pipe──> lines ──┬── "heddle[PID/SESSION] text" ──> standard error
 *                            └── over the limit: dropped and counted
 *
 * Neither side waits for the other: the worker's end of the pipe fails when it is full, and what
 * the server's own standard error does not take at once is dropped.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"

#define PER_SECOND (UINT64_C(64) << 10) /* bytes that a worker may write */
#define AT_ONCE (UINT64_C(256) << 10)   /* the same, after it was silent for a while */
#define REST_MS 1000                    /* a worker that wrote more is not read for so long */
#define HEAD 48                         /* bytes, more than the head of a line has */

/* ---- lines ----------------------------------------------------------------------------------- */

/* The text behind the head that the worker gave its line, if it is one of heddle's. */
static const char *
skip_head(const char *text)
{
    const char *at = text;

    if (strncmp(at, "heddle[", 7) != 0)
        return NULL;
    for (at += 7; isdigit((unsigned char)*at); at++)
        ;
    return strncmp(at, "] ", 2) == 0 ? at + 2 : NULL;
}

/* Can the log take a line of a worker now? In a pipe that nobody reads, half of the room is left
 * for the listener's own lines, which would wait for it. */
static bool
log_is_ready(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    const int room = fcntl(STDERR_FILENO, F_GETPIPE_SZ);
    int held = 0;

    if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
        return false;
    return room <= 0 || ioctl(STDERR_FILENO, FIONREAD, &held) != 0 || held < room / 2;
}

static void
write_line(struct hed_lines *l)
{
    char line[HEAD + sizeof l->text + 8];

    l->text[l->count] = '\0';

    const char *text = skip_head(l->text);
    const int n = snprintf(line, sizeof line, "heddle[%d/%s] %s%s%s\n", (int)l->pid, l->name,
                           text ? "" : "stderr: ", text ? text : l->text, l->cut ? "..." : "");
    const bool empty = l->count == 0;

    l->count = 0;
    l->cut = false;
    if (empty || n <= 0)
        return;
    l->budget -= hed_min(l->budget, HEAD);
    if (!log_is_ready() || write(STDERR_FILENO, line, (size_t)n) < 0)
        l->dropped += (uint64_t)n;
}

static void
take_byte(struct hed_lines *l, char byte)
{
    if (byte == '\n')
        write_line(l);
    else if (l->count < sizeof l->text - 1)
        l->text[l->count++] = byte >= ' ' && byte <= '~' ? byte : '?';
    else
        l->cut = true;
}

/* ---- the limit ------------------------------------------------------------------------------- */

static void
refill_budget(struct hed_lines *l, uint64_t now_ns)
{
    const uint64_t ms = hed_min((now_ns - l->at_ns) / HED_NS_PER_MS, UINT64_C(60000));

    l->budget = hed_min(l->budget + ms * PER_SECOND / 1000, AT_ONCE);
    l->at_ns += ms * HED_NS_PER_MS;
    if (ms == 60000)
        l->at_ns = now_ns;
}

static void
say_dropped(struct hed_lines *l)
{
    if (l->dropped)
        hed_warn(SERVER,
                 "worker %d wrote more than the log takes: at least %llu bytes are not in this log",
                 (int)l->pid, (unsigned long long)l->dropped);
    l->dropped = 0;
}

static void
take_bytes(struct hed_lines *l, const char *piece, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (l->budget) {
            take_byte(l, piece[i]);
            continue;
        }
        /* What comes later does not belong to the line that has begun. */
        l->cut = l->count > 0;
        write_line(l);
        l->dropped += size - i;
        return;
    }
}

/* Takes what there is, at most what a pipe holds. Returns false when nobody can write any more. */
static bool
read_lines(struct hed_lines *l)
{
    char piece[16384];

    refill_budget(l, hed_now_ns());
    for (int i = 0; i < 4; i++) {
        const ssize_t n = read(l->fd, piece, sizeof piece);

        if (n == 0)
            return false;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        l->budget -= hed_min(l->budget, (uint64_t)n);
        take_bytes(l, piece, (size_t)n);
    }
    return true;
}

/* ---- for the server -------------------------------------------------------------------------- */

int
hed_lines_open(struct hed_lines *l)
{
    int ends[2];

    *l = (struct hed_lines){.fd = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    l->source.kind = HED_SOURCE_LINES;
    l->fd = ends[0];
    return ends[1];
}

void
hed_lines_begin(struct hed_server *s, struct hed_lines *l, pid_t pid, const char *name)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};

    l->pid = pid;
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    l->budget = AT_ONCE;
    l->at_ns = hed_now_ns();
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, l->fd, &e) != 0)
        hed_warn(SERVER, "cannot log what process %d writes: %m", (int)pid);
}

void
hed_lines_ready(struct hed_server *s, struct hed_lines *l)
{
    if (l->fd < 0 || l->resume_ns)
        return;
    if (!read_lines(l) || l->budget == 0) {
        /* Nothing more can come, or nothing more is wanted for a while. */
        (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, l->fd, NULL);
        if (l->budget == 0) {
            l->resume_ns = hed_now_ns() + REST_MS * HED_NS_PER_MS;
            s->resting++;
        }
    }
}

/* Returns when it is due; UINT64_MAX if it is being read. */
static uint64_t
resume_lines(struct hed_server *s, struct hed_lines *l, uint64_t now_ns)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};

    if (l->fd < 0 || l->resume_ns == 0)
        return UINT64_MAX;
    if (l->resume_ns > now_ns)
        return l->resume_ns;
    l->resume_ns = 0;
    s->resting--;
    if (log_is_ready())
        say_dropped(l);
    (void)epoll_ctl(s->epoll, EPOLL_CTL_ADD, l->fd, &e);
    return UINT64_MAX;
}

uint64_t
hed_lines_resume(struct hed_server *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (int i = 0; s->resting && i < HED_LEDGER_WORKERS; i++)
        if (s->children[i].pid)
            next = hed_min(next, resume_lines(s, &s->children[i].lines, now_ns));
    for (struct hed_guest *g = s->resting ? s->guests : NULL; g; g = g->next)
        next = hed_min(next, resume_lines(s, &g->lines, now_ns));
    return next;
}

void
hed_lines_end(struct hed_server *s, struct hed_lines *l)
{
    if (l->fd < 0)
        return;
    if (l->resume_ns)
        s->resting--;
    l->resume_ns = 0;
    (void)read_lines(l);
    write_line(l);
    say_dropped(l);
    /* Closing it would not do: a worker that was just forked may still have it, too. */
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, l->fd, NULL);
    (void)close(l->fd);
    l->fd = -1;
}
