/* Joining and leaving a meeting, its lock, and looking at it. The file is share/meet/file.h's.
 *
 * Joining takes no lock that another process could hold: a process tries the claims one after the
 * other, zeroes the slot whose claim it gets, and then marks the slot as in use. So a member that
 * is slow or stopped, at whatever step, blocks no other.
 */
#include "share/meet/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "base/process.h"
#include "share/meet/file.h"

#define COMMON_MAX (16u << 20)
#define SLOT_MAX (1u << 20)
#define REPLACE_NS (10 * HED_NS_PER_S) /* how long to wait for a file of another layout to go */

/* How long to wait for lock 0 while the same process has it. No process needs it for more than
 * microseconds, but a holder that does not get the processor may keep it for much longer. */
#define LOCK_STOPPED_NS (2 * HED_NS_PER_S) /* its holder is stopped */
#define LOCK_HELD_NS (10 * HED_NS_PER_S)   /* its holder is running, or is not known */
#define LOCK_AGAIN_NS HED_NS_PER_MS        /* after one wait has failed */
#define NAP_NS 5000
#define NAP_MAX_NS 500000

static size_t
round_to_line(size_t n)
{
    return hed_round_up(n, HED_MEET_LINE);
}

size_t
hed_meet_slot_offset(const struct hed_meet_shape *s, uint32_t index)
{
    return HED_MEET_LINE + round_to_line(s->common) +
           (size_t)index * (HED_MEET_LINE + round_to_line(s->slot));
}

static struct hed_meet_owner *
owner_at(struct hed_meet *m, uint32_t index)
{
    return (struct hed_meet_owner *)(m->map + hed_meet_slot_offset(&m->shape, index));
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Sleeps a little longer each time. */
static void
take_nap(uint64_t *nap)
{
    hed_sleep_ns(*nap);
    if (*nap < NAP_MAX_NS)
        *nap *= 2;
}

static struct hed_meet_head *
head_of(struct hed_meet *m)
{
    return (struct hed_meet_head *)m->map;
}

/* How long the present holder of lock 0 may keep it. */
static uint64_t
lock_patience(struct hed_meet *m)
{
    const int32_t holder = atomic_load_explicit(&head_of(m)->holder, memory_order_relaxed);

    if (m->stuck)
        return LOCK_AGAIN_NS;
    return holder > 0 && hed_process_is_stopped(holder) ? LOCK_STOPPED_NS : LOCK_HELD_NS;
}

/* Takes lock 0 by trying: a process that is stopped while it holds the lock must not block this one
 * for ever. The wait is measured from the last time that the lock was seen to change hands, so it
 * goes on as long as the others make progress. */
static int
lock_common(struct hed_meet *m)
{
    uint64_t since = hed_now_ns();
    uint64_t nap = NAP_NS;
    uint32_t seen = atomic_load_explicit(&head_of(m)->serial, memory_order_relaxed);
    int e;

    while ((e = hed_meet_lock_bytes(m->fd, F_WRLCK, 0, 1)) != 0) {
        const uint32_t serial = atomic_load_explicit(&head_of(m)->serial, memory_order_relaxed);
        const uint64_t now = hed_now_ns();

        if (!hed_meet_is_lock_taken(e))
            return hed_err_from_errno(e);
        if (serial != seen && !m->stuck) {
            seen = serial;
            since = now;
        }
        if (now - since > LOCK_AGAIN_NS && now - since > lock_patience(m))
            return HED_ETIME;
        take_nap(&nap);
    }
    /* Relaxed: waiting processes read single numbers. */
    atomic_fetch_add_explicit(&head_of(m)->serial, 1, memory_order_relaxed);
    atomic_store_explicit(&head_of(m)->holder, (int32_t)getpid(), memory_order_relaxed);
    return 0;
}

int
hed_meet_lock(struct hed_meet *m)
{
    hed_lock(&m->lock);

    const int err = m->fd < 0 ? HED_ESTATE : lock_common(m);

    /* One thread has waited for it; the others, and every later call, need not wait as long. */
    m->stuck = err == HED_ETIME;
    if (err)
        hed_unlock(&m->lock);
    return err;
}

void
hed_meet_unlock(struct hed_meet *m)
{
    atomic_store_explicit(&head_of(m)->holder, 0, memory_order_relaxed);
    (void)hed_meet_lock_bytes(m->fd, F_UNLCK, 0, 1);
    hed_unlock(&m->lock);
}

/* ---- joining --------------------------------------------------------------------------------- */

static int
check_arguments(const char *name, const struct hed_meet_shape *s, struct hed_why *why)
{
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (n == 0 || n > HED_MEET_NAME_MAX || name[n] != '\0') {
        hed_why_set(why,
                    "'%.120s' is not a name for a meeting file: use letters, digits, '-' and '.'",
                    name);
        return HED_EINVAL;
    }
    if (s->magic == 0 || s->common > COMMON_MAX || s->slot > SLOT_MAX || s->slots == 0 ||
        s->slots > HED_MEET_SLOTS_MAX) {
        hed_why_set(why, "%s: the sizes in this meeting file are impossible; remove it", name);
        return HED_EINVAL;
    }
    return 0;
}

/* Claims slot i, zeroes it and marks it as in use. Returns 0 or errno. */
static int
claim_meeting_slot(struct hed_meet *m, uint32_t i)
{
    struct hed_meet_owner *o = owner_at(m, i);
    int e = hed_meet_lock_bytes(m->fd, F_WRLCK, hed_meet_claim_byte(i), 1);

    if (e != 0)
        return e;
    memset((void *)o, 0, HED_MEET_LINE + round_to_line(m->shape.slot));
    atomic_store_explicit(&o->pid, (int32_t)getpid(), memory_order_relaxed);
    e = hed_meet_lock_bytes(m->fd, F_WRLCK, hed_meet_use_byte(i), 1);
    if (e != 0)
        (void)hed_meet_lock_bytes(m->fd, F_UNLCK, hed_meet_claim_byte(i), 1);
    return e;
}

/* 1: this file has gone or is about to, so start again. */
static int
take_slot(struct hed_meet *m, struct hed_why *why)
{
    int e = EAGAIN;

    for (uint32_t i = 0; hed_meet_is_lock_taken(e) && i < m->shape.slots; i++)
        if ((e = claim_meeting_slot(m, i)) == 0)
            m->index = (int)i;

    const bool is_full = hed_meet_is_lock_taken(e);

    /* If slot 0 is free now, the one that had all locks did not remove the file. */
    if (!hed_meet_has_name(m) ||
        (is_full && (hed_meet_has_remover(m->fd) ||
                     !hed_meet_is_byte_locked(m->fd, hed_meet_claim_byte(0))))) {
        m->index = -1;
        return 1;
    }
    if (is_full) {
        hed_why_set(why, "%s/%s: all %u slots are taken: end a program that uses it",
                    m->folder.path, m->name, m->shape.slots);
        return HED_ELIMIT;
    }
    return e == 0 ? 0 : hed_meet_explain(m, why, e);
}

static int
enter_file(struct hed_meet *m, bool join, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + REPLACE_NS;
    uint64_t nap = NAP_NS;

    for (;;) {
        int r = hed_meet_open_file(m, join, why);

        if (r == 0 && join)
            r = take_slot(m, why);
        if (r <= 0)
            return r;
        hed_meet_close_file(m);
        if (hed_now_ns() > end) {
            hed_why_set(why, "%s/%s: other processes keep removing it", m->folder.path, m->name);
            return HED_EIO;
        }
        take_nap(&nap);
    }
}

int
hed_meet_name_file(struct hed_meet *m, const char *name, const struct hed_meet_shape *shape,
                   struct hed_why *why)
{
    const int err = check_arguments(name, shape, why);

    if (err)
        return err;
    m->shape = *shape;
    m->size = hed_meet_slot_offset(shape, shape->slots);
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    return 0;
}

static int
enter_meeting(const char *name, const struct hed_meet_shape *shape, bool join,
              struct hed_meet **out, struct hed_why *why)
{
    struct hed_meet *m = calloc(1, sizeof *m);
    int err;

    if (!m) {
        hed_why_set(why, "%s: %s", name, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    m->folder.fd = -1;
    m->fd = -1;
    m->index = -1;
    hed_lock_init(&m->lock, HED_RANK_MEET);
    err = hed_meet_name_file(m, name, shape, why);
    if (!err)
        err = enter_file(m, join, why);
    if (err) {
        m->index = -1;
        hed_meet_leave(m);
        return err;
    }
    *out = m;
    return 0;
}

int
hed_meet_join(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter_meeting(name, shape, true, out, why);
}

int
hed_meet_look(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter_meeting(name, shape, false, out, why);
}

void
hed_meet_leave(struct hed_meet *m)
{
    if (!m)
        return;
    hed_meet_end(m);
    hed_meet_close_file(m);
    hed_lock_fini(&m->lock);
    free(m);
}

/* The child has the parent's locks for as long as it has the descriptor. Code that still uses an
 * address of the mapping finds private memory there. */
void
hed_meet_forked(struct hed_meet *m)
{
    if (!m || m->fd < 0)
        return;
    close(m->fd);
    close(m->folder.fd);
    m->fd = -1;
    m->folder.fd = -1;
    m->index = -1;
    hed_lock_init(&m->lock, HED_RANK_MEET);
    (void)mmap(m->map, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0);
}

/* ---- looking --------------------------------------------------------------------------------- */

void *
hed_meet_common(struct hed_meet *m)
{
    return m->map + HED_MEET_LINE;
}

void *
hed_meet_mine(struct hed_meet *m)
{
    return m->index < 0 ? NULL : hed_meet_slot(m, (uint32_t)m->index);
}

int
hed_meet_index(const struct hed_meet *m)
{
    return m->index;
}

void *
hed_meet_slot(struct hed_meet *m, uint32_t index)
{
    return index < m->shape.slots ? m->map + hed_meet_slot_offset(&m->shape, index) + HED_MEET_LINE
                                  : NULL;
}

bool
hed_meet_taken(struct hed_meet *m, uint32_t index, pid_t *pid)
{
    if (m->fd < 0 || index >= m->shape.slots)
        return false;
    /* The kernel does not report the locks of the description that asks. */
    if ((int)index != m->index && !hed_meet_is_byte_locked(m->fd, hed_meet_use_byte(index)))
        return false;
    if (pid)
        *pid = atomic_load_explicit(&owner_at(m, index)->pid, memory_order_relaxed);
    return true;
}
