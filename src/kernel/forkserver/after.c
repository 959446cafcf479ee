/* After the program's end: what was hot is compiled nevertheless, for its next run.
 *
 *   program ══ list ══ fork server      a request for each kernel that becomes hot, and a
 *      │                    │           withdrawal for each that was compiled
 *      ends                 ├─ takes its turn among the processes of the user that do this
 *                           ├─ lets the compilers end, which put what they make into the cache
 *                           └─ compiles what is left on the list, one kernel after another
 *
 * All of it has the lowest priority, unless somebody waits for it (heddle cpu warm), and ends after
 * a number of seconds and of kernels, on SIGTERM, or if others of the user work and wait already. A
 * kernel that a program compiles meanwhile is left to that program, which has a higher priority.
 *
 * A compiler gets its request from a socket whose other end is closed already. So it finds its
 * program gone, and puts the object into the cache by itself (kernel/ptx/lower/serve.c).
 *
 * Invariants:
 * 1. A text is open if and only if a request on the list has it.
 * 2. Nothing is compiled after the end of a program that wanted nothing.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/number.h"
#include "base/sanitize.h"
#include "base/sealed.h"
#include "kernel/cache/cache.h"
#include "kernel/forkserver/message.h"
#include "kernel/forkserver/room.h"

#define LOOK_MS 200 /* between two looks at what has changed meanwhile */
#define SPARE_DESCRIPTORS 64
#define READ_SECONDS 60 /* the most that reading the list may take */

/* A request on the list. */
struct wanted {
    struct hed_forkserver_request request;
    struct hed_cache_key key; /* of what it is to make, if the program tells the truth */
    unsigned char *tail;      /* the name and the features, owned */
    int text;                 /* the memory with the PTX, shared by those with the same hash */
};

struct hed_after {
    const struct hed_forkserver_after *how;
    unsigned count;
    uint64_t texts; /* bytes of PTX */
    char program[32];
    uint64_t end; /* hed_now_ns() */
    int turn;
    unsigned next, started;                               /* on the list; of compilers for it */
    const struct wanted *at_work[HED_FORKSERVER_SOCKETS]; /* by compiler */
    struct wanted wanted[HED_FORKSERVER_AFTER_MAX];
    unsigned char packet[HED_FORKSERVER_REQUEST_MAX];
    struct hed_forkserver_texts texts_of; /* the request that is being read */
};

static volatile sig_atomic_t is_stopped;

static void
on_stop(int signal)
{
    (void)signal;
    is_stopped = 1;
}

struct hed_after *
hed_after_create(const struct hed_forkserver_after *how)
{
    struct hed_after *a = calloc(1, sizeof *a);
    char path[64];

    if (!a)
        return NULL;
    a->how = how;
    a->turn = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)how->program);
    (void)hed_read_small(path, a->program, sizeof a->program);
    a->program[strcspn(a->program, "\n")] = 0;
    return a;
}

struct hed_cache_key
hed_after_key(const struct hed_forkserver_after *how, const struct hed_forkserver_request *r,
              const struct hed_forkserver_texts *texts)
{
    struct hed_cache_key claim;

    memcpy(claim.hash, r->claim, sizeof claim.hash);
    if (how->is_awaited)
        return claim;
    return hed_cache_key_of(&(struct hed_cache_origin){
        .code = r->text,
        .kernel = texts->name,
        .features = texts->features,
        .compiler = how->compiler,
        .abi = r->abi,
        .rows = r->rows,
        .level = r->level,
        .check_alignment = r->flags & HED_FORKSERVER_CHECK_ALIGNMENT,
        .confined = r->flags & HED_FORKSERVER_CONFINED,
    });
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct wanted *
find_wanted(struct hed_after *a, const uint8_t *claim)
{
    for (unsigned i = 0; i < a->count; i++)
        if (memcmp(a->wanted[i].request.claim, claim, sizeof a->wanted[i].request.claim) == 0)
            return &a->wanted[i];
    return NULL;
}

static struct wanted *
find_text(struct hed_after *a, const uint8_t *text)
{
    for (unsigned i = 0; i < a->count; i++)
        if (memcmp(a->wanted[i].request.text, text, sizeof a->wanted[i].request.text) == 0)
            return &a->wanted[i];
    return NULL;
}

static void
drop_wanted(struct hed_after *a, struct wanted *w)
{
    const struct wanted gone = *w;

    free(gone.tail);
    *w = a->wanted[--a->count];
    if (!find_text(a, gone.request.text)) {
        (void)close(gone.text);
        a->texts -= gone.request.text_size;
    }
}

/* Takes a request onto the list, and the text that came with it. Forgets it if there is no room. */
static void
add_wanted(struct hed_after *a, const struct hed_forkserver_request *r, int *fd)
{
    const size_t tail = (size_t)r->name_size + r->features_size;
    const struct wanted *same = find_text(a, r->text);
    struct wanted *w = &a->wanted[a->count];

    if (a->count == HED_FORKSERVER_AFTER_MAX || find_wanted(a, r->claim) || (!same && *fd < 0) ||
        (same && same->request.text_size != r->text_size))
        return;
    /* Descriptors are needed for other things, too. */
    if (!same &&
        (!hed_fd_is_final(*fd, r->text_size) || *fd + SPARE_DESCRIPTORS > sysconf(_SC_OPEN_MAX)))
        return;
    if (!same && (r->text_size > HED_FORKSERVER_AFTER_TEXTS ||
                  a->texts + r->text_size > HED_FORKSERVER_AFTER_TEXTS))
        return;
    *w = (struct wanted){.request = *r, .tail = malloc(tail ? tail : 1)};
    if (!w->tail)
        return;
    memcpy(w->tail, a->packet + sizeof *r, tail);
    hed_forkserver_texts(r, w->tail, &a->texts_of);
    w->key = hed_after_key(a->how, r, &a->texts_of);
    w->text = same ? same->text : *fd;
    if (!same) {
        a->texts += r->text_size;
        *fd = -1;
    }
    a->count++;
}

static void
read_wanted(struct hed_after *a, size_t size, int *fd)
{
    struct hed_forkserver_request r;

    if (size < sizeof r)
        return;
    memcpy(&r, a->packet, sizeof r);
    if (r.magic != HED_FORKSERVER_MAGIC || r.name_size > HED_FORKSERVER_NAME_MAX ||
        r.features_size > HED_FORKSERVER_FEATURES_MAX ||
        size != sizeof r + r.name_size + r.features_size)
        return;
    if (r.flags & HED_FORKSERVER_WITHDRAW) {
        struct wanted *w = find_wanted(a, r.claim);

        if (w)
            drop_wanted(a, w);
    } else {
        add_wanted(a, &r, fd);
    }
}

/* Closing what came can take as long as a program likes that was taken over, and it can send
 * without end: this process ends then. */
void
hed_after_read(struct hed_after *a)
{
    (void)alarm(READ_SECONDS);
    for (;;) {
        int fd = -1;
        const long n =
            hed_forkserver_receive(a->how->list, a->packet, sizeof a->packet, MSG_DONTWAIT, &fd);

        if (n <= 0)
            break;
        read_wanted(a, (size_t)n, &fd);
        if (fd >= 0)
            (void)close(fd);
    }
    (void)alarm(0);
}

/* ---- after the end --------------------------------------------------------------------------- */

/* The program has said how much memory its compilers may have. */
static void
limit_compilers(const struct hed_forkserver_state *f)
{
    const struct rlimit most = {.rlim_cur = HED_FORKSERVER_AFTER_MEMORY,
                                .rlim_max = HED_FORKSERVER_AFTER_MEMORY};

    if (HED_SANITIZED) /* a sanitizer reserves far more than that */
        return;
    for (unsigned i = 0; i < HED_FORKSERVER_SOCKETS; i++)
        if (f->compilers[i])
            (void)prlimit(f->compilers[i], RLIMIT_DATA, &most, NULL);
}

/* Signals come only here. */
static void
let_signals_in(long ms)
{
    const struct timespec moment = {.tv_nsec = ms * (long)HED_NS_PER_MS};
    sigset_t open;

    (void)sigemptyset(&open);
    (void)ppoll(NULL, 0, &moment, &open);
}

static bool
has_time(void *arg)
{
    const struct hed_after *a = arg;

    let_signals_in(0);
    return !is_stopped && hed_now_ns() < a->end;
}

/* Waits until a compiler ends, or for a moment. */
static void
wait_for_compilers(struct hed_forkserver_state *f)
{
    let_signals_in(LOOK_MS);
    hed_forkserver_reap(f);
}

static bool
is_compiling(const struct hed_forkserver_state *f)
{
    for (unsigned i = 0; i < HED_FORKSERVER_SOCKETS; i++)
        if (f->compilers[i])
            return true;
    return false;
}

static void
end_compilers(struct hed_forkserver_state *f)
{
    for (unsigned i = 0; i < HED_FORKSERVER_SOCKETS; i++)
        if (f->compilers[i])
            (void)kill(f->compilers[i], SIGKILL);
    while (is_compiling(f))
        wait_for_compilers(f);
}

/* Takes the lowest priority, with all that it has forked: nothing else is in its group. */
static void
become_helper(const struct hed_after *a)
{
    const struct sched_param none = {.sched_priority = 0};

    (void)prctl(PR_SET_NAME, "heddle-after");
    if (a->how->is_awaited)
        return;
    (void)setpriority(PRIO_PGRP, 0, HED_FORKSERVER_AFTER_NICENESS);
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

static void
listen_for_stop(void)
{
    const struct sigaction stop = {.sa_handler = on_stop};
    sigset_t blocked;

    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    (void)sigaddset(&blocked, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
}

static void
tell_what_is_compiled(const struct hed_after *a, const struct wanted *w, unsigned left)
{
    char text[HED_CACHE_TURN_TEXT];

    (void)snprintf(text, sizeof text, "%d %d %u %.31s\n%.*s\n", (int)getpid(), (int)a->how->program,
                   left, a->program, (int)hed_min(w->request.name_size, 512u),
                   (const char *)w->tail);
    hed_cache_tell_turn(a->turn, text);
}

/* Starts a compiler with this request. Its process, or 0 if none can be started. */
static pid_t
start_wanted(const struct hed_after *a, const struct hed_forkserver_state *f,
             const struct wanted *w)
{
    const uint64_t now = hed_now_ns(), left = now < a->end ? (a->end - now) / HED_NS_PER_S : 0;
    struct hed_forkserver_request r = w->request;
    int pair[2], err;
    pid_t pid;

    r.flags |= HED_FORKSERVER_KEEP;
    r.memory =
        r.memory ? hed_min(r.memory, HED_FORKSERVER_AFTER_MEMORY) : HED_FORKSERVER_AFTER_MEMORY;
    r.seconds = (uint32_t)(left + 1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return 0;
    err = hed_forkserver_send(pair[0], &r, sizeof r, w->tail, (size_t)r.name_size + r.features_size,
                              w->text);
    (void)close(pair[0]);
    pid = err ? -1 : hed_forkserver_fork(f, pair[1]);
    (void)close(pair[1]);
    return pid > 0 ? pid : 0;
}

/* Is it in the cache, or does a program compile it? Programs claim and store what they lift from
 * machine code under keys of that. */
static bool
is_settled(const struct hed_after *a, const struct wanted *w)
{
    struct hed_cache_key claim;

    memcpy(claim.hash, w->request.claim, sizeof claim.hash);
    return hed_cache_is_claimed(a->how->cache, &claim) || hed_cache_has(a->how->cache, &claim) ||
           hed_cache_has(a->how->cache, &w->key);
}

/* The first that is not in the cache, or NULL. */
static const struct wanted *
first_missing(const struct hed_after *a)
{
    for (unsigned i = 0; i < a->count; i++)
        if (!hed_cache_has(a->how->cache, &a->wanted[i].key))
            return &a->wanted[i];
    return NULL;
}

/* Starts a compiler for the next kernel that needs one. False if there is none. */
static bool
start_next(struct hed_after *a, struct hed_forkserver_state *f, unsigned slot)
{
    while (a->next < a->count && a->started < a->how->kernels && has_time(a)) {
        const unsigned left = a->count - a->next;
        struct wanted *w = &a->wanted[a->next++];

        if (is_settled(a, w))
            continue;
        tell_what_is_compiled(a, w, left);
        f->compilers[slot] = start_wanted(a, f, w);
        a->at_work[slot] = w;
        a->started++;
        return f->compilers[slot] != 0;
    }
    return false;
}

/* What the program had asked for comes first, and is on the list, too. Without a turn nothing is
 * finished: many short programs must not leave many compilers behind. */
static void
finish_what_was_begun(struct hed_after *a, struct hed_forkserver_state *f)
{
    const struct wanted *told = NULL;

    while (a->turn >= 0 && is_compiling(f) && has_time(a)) {
        const struct wanted *w = first_missing(a);

        if (w && w != told)
            tell_what_is_compiled(a, w, a->count - (unsigned)(w - a->wanted));
        told = w;
        wait_for_compilers(f);
    }
    end_compilers(f);
}

/* The first that became hot comes first. One at a time, unless somebody waits for it. */
static void
work_list_off(struct hed_after *a, struct hed_forkserver_state *f)
{
    const unsigned most = a->how->is_awaited ? f->how->count : 1;

    for (;;) {
        for (unsigned i = 0; i < most; i++)
            while (!f->compilers[i] && start_next(a, f, i))
                ;
        if (!is_compiling(f))
            return;
        wait_for_compilers(f);
        /* Gives way to a program that has begun or stored it meanwhile. */
        for (unsigned i = 0; i < most; i++)
            if (f->compilers[i] && is_settled(a, a->at_work[i]))
                (void)kill(f->compilers[i], SIGKILL);
        if (!has_time(a))
            end_compilers(f);
    }
}

void
hed_after_run(struct hed_after *a, struct hed_forkserver_state *f)
{
    hed_after_read(a);
    for (unsigned i = 0; i < f->how->count; i++)
        (void)close(f->how->sockets[i]);
    (void)close(a->how->list);
    f->is_over = true;
    a->end = hed_now_ns() + a->how->seconds * HED_NS_PER_S;
    listen_for_stop();
    become_helper(a);
    limit_compilers(f);
    if (a->count && has_time(a))
        a->turn = hed_cache_take_turn(a->how->cache, a->how->is_awaited, has_time, a);
    finish_what_was_begun(a, f);
    if (a->turn >= 0 && has_time(a) && hed_forkserver_load(f))
        work_list_off(a, f);
    if (a->turn >= 0)
        hed_cache_tell_turn(a->turn, "");
}
