/* Has kernels compiled by processes of their own. See compiler.h.
 *
 * All that comes from a compiler is checked: it may have died in the middle, or been taken over by
 * a text that it could not bear.
 */
#include "backends/cpu/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/code.h"
#include "backends/cpu/start.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sealed.h"
#include "kernel/forkserver.h"
#include "kernel/ptx.h"

#define FAILURES_MAX 3 /* fork servers that may die before none is started any more */

/* ---- the fork server ------------------------------------------------------------------------- */

static void
close_sockets(const int *sockets, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (sockets[i] >= 0)
            (void)close(sockets[i]);
}

/* Opens and locks the file on which somebody waits for the fork server's end; -1: nobody waits. The
 * lock holds as long as a copy of the descriptor is open. */
static int
lock_for_waiting(const char *path)
{
    const int fd = *path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Starts heddle-compiler with the other ends of the sockets; the last one is the list's unless that
 * is NULL. */
static int
start_forkserver(const struct hed_compilers *c, int *ours, unsigned count, int *list,
                 struct hed_why *why)
{
    int theirs[HED_FORKSERVER_SOCKETS + 2], pair[2], err = 0;
    char name[] = "heddle-compiler", slots[16], niceness[16], program[16], seconds[16], kernels[16],
         limit[32], folder[PATH_MAX], awaited[] = "awaited";
    const int lock = list ? lock_for_waiting(c->after.lock) : -1;
    char *const arguments[] = {name,
                               slots,
                               niceness,
                               program,
                               list ? seconds : NULL,
                               kernels,
                               limit,
                               folder,
                               lock >= 0 ? awaited : NULL,
                               NULL};
    const unsigned all = count + (list ? 1 : 0);
    unsigned made = 0, given;

    (void)snprintf(slots, sizeof slots, "%u", count);
    (void)snprintf(niceness, sizeof niceness, "%d", c->niceness);
    (void)snprintf(program, sizeof program, "%d", (int)getpid());
    if (list) {
        (void)snprintf(seconds, sizeof seconds, "%u", c->after.seconds);
        (void)snprintf(kernels, sizeof kernels, "%u", c->after.kernels);
        (void)snprintf(limit, sizeof limit, "%llu",
                       (unsigned long long)hed_cache_limit(c->after.cache));
        (void)snprintf(folder, sizeof folder, "%s", hed_cache_path(c->after.cache));
    }
    for (; !err && made < all; made += !err) {
        err = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : -errno;
        if (!err) {
            *(made < count ? &ours[made] : list) = pair[0];
            theirs[made] = pair[1];
        }
    }
    given = made;
    if (!err && lock >= 0)
        theirs[given++] = lock;
    if (!err)
        err = hed_start_process(c->path, arguments, theirs, given);
    close_sockets(theirs, made);
    if (lock >= 0)
        (void)close(lock);
    if (err) {
        close_sockets(ours, made < count ? made : count);
        if (made > count)
            (void)close(*list);
        hed_why_set(why, "the PTX compiler cannot be started: %.300s: %s", c->path, strerror(-err));
    }
    return err ? HED_ENOTFOUND : 0;
}

static int
connect_forkserver_locked(struct hed_compilers *c, struct hed_why *why)
{
    int sockets[HED_FORKSERVER_SOCKETS];
    /* In the worker of a server, the fork server is there already, and there will be no other. */
    const unsigned given = c->given ? c->given(sockets, HED_FORKSERVER_SOCKETS) : 0;
    const unsigned count = given ? given : c->count;
    int err = 0, list = -1;

    if (given && c->failures) {
        hed_why_set(why, "the process that compiles kernels has died");
        err = HED_ENOTFOUND;
    }
    if (!err && !given)
        err = start_forkserver(c, sockets, count, c->after.cache ? &list : NULL, why);
    if (err) {
        c->is_absent = true;
        return err;
    }
    c->count = count;
    for (unsigned i = 0; i < count; i++)
        c->slots[i] = (struct hed_compiler_slot){.socket = sockets[i]};
    c->list = list;
    c->wanted_count = 0;
    c->is_running = true;
    c->is_lost = false;
    return 0;
}

static void
disconnect_locked(struct hed_compilers *c)
{
    for (unsigned i = 0; c->is_running && i < c->count; i++)
        (void)close(c->slots[i].socket);
    if (c->is_running && c->list >= 0)
        (void)close(c->list);
    c->list = -1;
    c->wanted_count = 0;
    c->is_running = false;
    c->is_lost = false;
}

static struct hed_compiler_slot *
take_compiler(struct hed_compilers *c, struct hed_why *why)
{
    struct hed_compiler_slot *slot = NULL;

    hed_lock(&c->lock);
    while (!slot && !c->is_absent) {
        if (!c->is_running && connect_forkserver_locked(c, why) != 0)
            break;
        for (unsigned i = 0; !c->is_lost && !slot && i < c->count; i++)
            slot = c->slots[i].busy ? NULL : &c->slots[i];
        if (!slot)
            (void)hed_lock_wait(&c->lock, &c->free, UINT64_MAX);
    }
    if (slot) {
        slot->busy = true;
        c->busy++;
    } else if (!why->text[0]) {
        hed_why_set(why, "there is no PTX compiler");
    }
    hed_unlock(&c->lock);
    return slot;
}

static void
leave_compiler(struct hed_compilers *c, struct hed_compiler_slot *slot, bool is_lost)
{
    hed_lock(&c->lock);
    slot->busy = false;
    c->busy--;
    if (is_lost && !c->is_lost) {
        c->is_lost = true;
        c->is_absent = ++c->failures >= FAILURES_MAX;
    }
    if (c->is_lost && c->busy == 0)
        disconnect_locked(c);
    pthread_cond_broadcast(&c->free);
    hed_unlock(&c->lock);
}

/* ---- a request ------------------------------------------------------------------------------- */

static int
send_request(const struct hed_compiler_job *j, int socket, uint32_t number, uint32_t flags,
             bool with_text)
{
    const size_t name = strlen(j->entry), features = strlen(j->features);
    struct hed_forkserver_request r = {
        .magic = HED_FORKSERVER_MAGIC,
        .number = number,
        .abi = HED_PTX_ABI,
        .rows = j->rows,
        .level = (uint32_t)j->level,
        .flags = (j->check_alignment ? HED_FORKSERVER_CHECK_ALIGNMENT : 0u) |
                 (j->confined ? HED_FORKSERVER_CONFINED : 0u) | flags,
        .seconds = j->seconds,
        .name_size = (uint32_t)name,
        .features_size = (uint32_t)features,
        .memory = j->memory,
        .text_size = j->text->size,
    };
    struct hed_buf tail;
    int fd = -1, err = 0;

    if (name > HED_FORKSERVER_NAME_MAX || features > HED_FORKSERVER_FEATURES_MAX ||
        j->text->size > HED_FORKSERVER_TEXT_MAX)
        return -EMSGSIZE;
    memcpy(r.text, j->text->key.hash, sizeof r.text);
    memcpy(r.claim, j->key.hash, sizeof r.claim);
    hed_buf_init(&tail, HED_FORKSERVER_REQUEST_MAX);
    hed_buf_add(&tail, j->entry, name);
    hed_buf_add(&tail, j->features, features);
    if (tail.err)
        err = -ENOMEM;
    if (!err && with_text && hed_fd_write_sealed("heddle-ptx", j->text->data, j->text->size, &fd))
        err = -ENOMEM;
    if (!err)
        err = hed_forkserver_send(socket, &r, sizeof r, tail.data, tail.size, fd);
    if (fd >= 0)
        (void)close(fd);
    hed_buf_fini(&tail);
    return err;
}

/* Answers to requests that nobody waits for any more. */
static void
drop_old_answers(const struct hed_compiler_slot *slot)
{
    struct hed_forkserver_answer a;
    int fd;

    while (hed_forkserver_receive(slot->socket, &a, sizeof a, MSG_DONTWAIT, &fd) > 0)
        if (fd >= 0)
            (void)close(fd);
}

/* The answer to a request. *fd is the object's memory, or -1. */
static int
receive_answer(const struct hed_compiler_slot *slot, uint32_t number,
               struct hed_forkserver_answer *a, int *fd)
{
    for (;;) {
        const long n = hed_forkserver_receive(slot->socket, a, sizeof *a, 0, fd);

        if (n <= 0)
            return HED_EIO;
        a->why.text[sizeof a->why.text - 1] = 0;
        if (n == (long)sizeof *a && a->magic == HED_FORKSERVER_MAGIC &&
            (a->kind == HED_FORKSERVER_DIED || a->number == number))
            return 0;
        if (*fd >= 0)
            (void)close(*fd);
    }
}

/* Copies the object: its memory is not ours. */
static int
read_object(int fd, uint64_t size, struct hed_buf *object, struct hed_why *why)
{
    unsigned char piece[65536];
    uint64_t at = 0;

    while (fd >= 0 && at < size && size <= HED_FORKSERVER_OBJECT_MAX) {
        const ssize_t n = pread(fd, piece, hed_min(sizeof piece, size - at), (off_t)at);

        if (n <= 0)
            break;
        hed_buf_add(object, piece, (size_t)n);
        at += (uint64_t)n;
    }
    if (size == 0 || at != size) {
        hed_why_set(why, "the compiler sent no object");
        return HED_ENOTSUP;
    }
    return object->err;
}

/* Why a compiler died, for people. */
static void
explain_death(const struct hed_forkserver_answer *a, const struct hed_compiler_job *j,
              struct hed_why *why)
{
    const unsigned peak = (unsigned)hed_min(a->peak >> 20, UINT32_MAX);

    if (a->signal == SIGXCPU || a->signal == SIGALRM)
        hed_why_set(why, "the compiler took more than %u s of processor time (compile_time)",
                    j->seconds);
    else if (a->signal)
        hed_why_set(why, "the compiler died of signal %u (%s) with %u MiB of memory of at most %u",
                    a->signal, strsignal((int)a->signal), peak, (unsigned)(j->memory >> 20));
    else
        hed_why_set(why, "the compiler ended without an answer");
}

static int
take_answer(const struct hed_forkserver_answer *a, int fd, const struct hed_compiler_job *j,
            struct hed_buf *object, bool *died, struct hed_why *why)
{
    *died = a->kind == HED_FORKSERVER_DIED;
    if (*died) {
        explain_death(a, j, why);
        return HED_ENOTSUP;
    }
    if (a->kind != HED_FORKSERVER_DONE) {
        hed_why_set(why, "the compiler sent an invalid answer");
        return HED_ENOTSUP;
    }
    hed_why_set(why, "%s", a->why.text);
    if (a->err)
        return a->err == HED_ENOTFOUND || a->err == HED_ENOMEM ? a->err : HED_ENOTSUP;
    return read_object(fd, a->size, object, why);
}

/* 0, HED_EIO if the fork server is gone, or the error of the request. */
static int
exchange_packets(struct hed_compiler_slot *slot, const struct hed_compiler_job *j, uint32_t number,
                 uint32_t flags, struct hed_forkserver_answer *a, int *fd)
{
    bool with_text =
        !slot->has_text || memcmp(slot->text, j->text->key.hash, sizeof slot->text) != 0;

    for (;;) {
        const int err = send_request(j, slot->socket, number, flags, with_text);

        if (err == -EMSGSIZE)
            return HED_ELIMIT;
        if (err)
            return err == -EPIPE || err == -ECONNRESET ? HED_EIO : HED_ENOMEM;
        if (receive_answer(slot, number, a, fd) != 0)
            return HED_EIO;
        if (a->kind != HED_FORKSERVER_NEEDS_TEXT || with_text)
            return 0;
        if (*fd >= 0)
            (void)close(*fd);
        with_text = true;
    }
}

int
hed_compilers_compile(struct hed_compilers *c, const struct hed_compiler_job *job,
                      struct hed_buf *object, bool *died, struct hed_why *why)
{
    struct hed_forkserver_answer a;
    struct hed_compiler_slot *slot = take_compiler(c, why);
    int fd = -1, err;

    *died = false;
    if (!slot)
        return HED_ENOTFOUND;
    hed_lock(&c->lock);

    const uint32_t number = ++c->number;

    hed_unlock(&c->lock);
    drop_old_answers(slot);
    err = exchange_packets(slot, job, number, c->after.cache ? HED_FORKSERVER_KEEP : 0u, &a, &fd);

    const bool is_lost = err == HED_EIO;

    if (is_lost) {
        *died = true;
        hed_why_set(why, "the process that compiles kernels has died");
        err = HED_ENOTSUP;
    } else if (err == HED_ELIMIT) {
        hed_why_set(why, "the kernel's PTX or its name is too long for the compiler");
    } else if (err) {
        hed_why_set(why, "not enough memory to ask the compiler");
    } else {
        err = take_answer(&a, fd, job, object, died, why);
        slot->has_text = a.kind == HED_FORKSERVER_DONE && !a.leaves && !a.err;
        memcpy(slot->text, job->text->key.hash, sizeof slot->text);
    }
    if (fd >= 0)
        (void)close(fd);
    leave_compiler(c, slot, is_lost);
    return err;
}

/* ---- after the end --------------------------------------------------------------------------- */

static struct hed_compiler_wanted *
find_wanted_locked(struct hed_compilers *c, const struct hed_cache_key *key)
{
    for (unsigned i = 0; i < c->wanted_count; i++)
        if (memcmp(&c->wanted[i].key, key, sizeof *key) == 0)
            return &c->wanted[i];
    return NULL;
}

/* Has the fork server got the text? It keeps it while something on the list has it. */
static bool
has_text_locked(const struct hed_compilers *c, const uint8_t *text)
{
    for (unsigned i = 0; i < c->wanted_count; i++)
        if (memcmp(c->wanted[i].text, text, sizeof c->wanted[i].text) == 0)
            return true;
    return false;
}

/* If the fork server is busy, the kernel is forgotten. */
static void
want_locked(struct hed_compilers *c, const struct hed_compiler_job *job)
{
    struct hed_compiler_wanted *w = &c->wanted[c->wanted_count];
    const uint8_t *text = job->text->key.hash;

    if (find_wanted_locked(c, &job->key) || c->wanted_count == HED_FORKSERVER_AFTER_MAX ||
        send_request(job, c->list, 0, 0, !has_text_locked(c, text)) != 0)
        return;
    w->key = job->key;
    memcpy(w->text, text, sizeof w->text);
    c->wanted_count++;
}

void
hed_compilers_want(struct hed_compilers *c, const struct hed_compiler_job *job)
{
    struct hed_why why;
    bool is_first;

    if (!c->after.cache)
        return;
    hed_lock(&c->lock);
    if (!c->is_absent && !c->is_running)
        (void)connect_forkserver_locked(c, &why);
    if (c->is_running && c->list >= 0)
        want_locked(c, job);
    is_first = c->wanted_count && !c->after_said;
    c->after_said |= is_first;
    hed_unlock(&c->lock);
    if (is_first)
        hed_info(CPU,
                 "what is hot when the program ends is compiled after it, for at most %u s and %u "
                 "kernels (cpu_after); heddle cpu cache list shows it",
                 c->after.seconds, c->after.kernels);
}

void
hed_compilers_withdraw(struct hed_compilers *c, const struct hed_cache_key *key)
{
    struct hed_forkserver_request r = {.magic = HED_FORKSERVER_MAGIC,
                                       .flags = HED_FORKSERVER_WITHDRAW};
    struct hed_compiler_wanted *w;

    if (!c->after.cache)
        return;
    memcpy(r.claim, key->hash, sizeof r.claim);
    hed_lock(&c->lock);
    w = find_wanted_locked(c, key);
    /* What cannot be withdrawn now will be found in the cache. */
    if (w && hed_forkserver_send(c->list, &r, sizeof r, NULL, 0, -1) == 0)
        *w = c->wanted[--c->wanted_count];
    hed_unlock(&c->lock);
}

/* ---- the beginning and the end --------------------------------------------------------------- */

void
hed_compilers_init(struct hed_compilers *c, unsigned slots, int niceness)
{
    hed_lock_init(&c->lock, HED_RANK_CODE);
    pthread_cond_init(&c->free, NULL);
    c->count = (unsigned)hed_clamp(slots, 1, HED_FORKSERVER_SOCKETS);
    c->niceness = niceness;
    c->list = -1;
}

void
hed_compilers_forked(struct hed_compilers *c)
{
    hed_lock_init(&c->lock, HED_RANK_CODE);
    pthread_cond_init(&c->free, NULL);
    disconnect_locked(c);
    c->busy = 0;
    c->failures = 0;
}

void
hed_compilers_fini(struct hed_compilers *c)
{
    disconnect_locked(c);
    pthread_cond_destroy(&c->free);
    hed_lock_fini(&c->lock);
}
