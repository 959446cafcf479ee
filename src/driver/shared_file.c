/* Joining the file that driver/shared_file.h describes. */
#include "driver/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/process.h"

#define FILE_MAGIC 0x0000000145444548ull /* changes whenever the layout does */
#define FILE_NAME "devices"
#define LOCK_TRIES 50 /* a millisecond each */
#define OPEN_TRIES 50

/* ---- processes ------------------------------------------------------------------------------- */

/* The value that stands for a living process in `owner`; 0 if it is not alive. Field 22 of
 * /proc/PID/stat is the time at which it started. */
static uint64_t
owner_of(pid_t pid)
{
    char text[1024];
    unsigned long long start = 0;
    const char *at = hed_process_stat(pid, text, sizeof text);

    if (at && at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X'))
        return 0; /* it has ended, and its parent has not asked for it yet */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %llu", &start) != 1)
        return 0;
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)start;
}

bool
hed_shared_alive(uint64_t owner)
{
    return owner >> 32 != 0 && owner >> 32 <= INT32_MAX && owner_of((pid_t)(owner >> 32)) == owner;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Locks the file. Gives up after a while: a process that is stopped while it holds the lock must
 * not stop us. */
static bool
lock_file(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        hed_sleep_ns(1000000);
    }
    return false;
}

/* Opens and locks the file in this folder, and creates it if `make`. Returns -1 if it cannot be
 * used, or is not there. */
static int
open_locked(const struct hed_meeting_folder *in, bool make)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0);
    struct stat st = {0};

    /* Another process may remove the file before it is locked here. */
    for (int i = 0; i < OPEN_TRIES; i++) {
        const int fd = openat(in->fd, FILE_NAME, flags, in->mode);

        if (fd < 0)
            return -1;
        /* A member of the group may open it just before its creator gives it to the group, and then
         * does not share this time. Only its owner can change it. */
        (void)hed_meeting_adopt(in, fd);

        const bool good = hed_meeting_owns(in, fd) && lock_file(fd) && fstat(fd, &st) == 0;

        if (good && st.st_nlink > 0)
            return fd;
        close(fd);
        if (!good)
            return -1;
    }
    return -1;
}

/* A file that no other process can find. In a server's sandbox, for one: the process then knows of
 * its own use only. */
static int
open_lone_file(void)
{
    const int fd = memfd_create("heddle-devices", MFD_CLOEXEC);

    if (fd >= 0 && fchmod(fd, 0600) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int
open_shared_file(void)
{
    struct hed_meeting_folders all;
    struct hed_why why = {""};

    if (hed_meeting_open(true, &all, &why) != 0) {
        hed_debug(DRIVER, "%s", why.text);
        return open_lone_file();
    }

    const struct hed_meeting_folder *in = hed_meeting_find(&all, FILE_NAME);
    const int fd = open_locked(in, true);

    if (fd < 0)
        hed_debug(DRIVER, "%s/" FILE_NAME " cannot be used", in->path);
    hed_meeting_close(&all);
    return fd >= 0 ? fd : open_lone_file();
}

/* Maps the file, which gets the right size. It is locked. NULL if it cannot be used. */
static struct hed_shared_file *
map_shared_file(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return NULL;
    /* Allocates the pages too, so that a full /dev/shm is an error now and not a signal later. */
    if (st.st_size != (off_t)sizeof(struct hed_shared_file) &&
        (ftruncate(fd, 0) != 0 ||
         posix_fallocate(fd, 0, (off_t)sizeof(struct hed_shared_file)) != 0)) {
        if (ftruncate(fd, 0) != 0)
            hed_debug(DRIVER, "a part of " FILE_NAME " stays");
        return NULL;
    }

    void *p = mmap(NULL, sizeof(struct hed_shared_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED)
        return NULL;

    struct hed_shared_file *f = p;

    if (atomic_load_explicit(&f->magic, memory_order_acquire) != FILE_MAGIC) {
        memset((void *)f, 0, sizeof *f);
        /* Release: a process that sees the magic number (the acquire above) sees the zeros as
         * well. */
        atomic_store_explicit(&f->magic, FILE_MAGIC, memory_order_release);
    }
    return f;
}

/* Marks the devices that some living process uses. */
static void
mark_live(const struct hed_shared_file *f, bool live[HED_SHARED_DEVICES])
{
    for (size_t i = 0; i < HED_SHARED_SLOTS; i++) {
        const struct hed_shared_slot *s = &f->slots[i];

        if (!hed_shared_alive(atomic_load_explicit(&s->owner, memory_order_acquire)))
            continue;
        for (size_t k = 0; k < HED_PROFILE_DEVICES_MAX; k++) {
            const uint32_t at = atomic_load_explicit(&s->device[k], memory_order_relaxed);

            if (at > 0 && at <= HED_SHARED_DEVICES)
                live[at - 1] = true;
        }
    }
}

static bool
has_uuid(const struct hed_shared_device *d, const uint64_t uuid[2])
{
    return atomic_load_explicit(&d->uuid[0], memory_order_relaxed) == uuid[0] &&
           atomic_load_explicit(&d->uuid[1], memory_order_relaxed) == uuid[1];
}

/* The device's entry in the file, plus 1: its own, an empty one, or one that no living process uses
 * any more. 0 if there is none. The file is locked. */
static uint32_t
enter_device(struct hed_shared_file *f, const uint8_t uuid[16], bool live[HED_SHARED_DEVICES])
{
    static const uint64_t nobody[2];
    uint64_t want[2];
    uint32_t at = 0;

    memcpy(want, uuid, sizeof want);
    while (at < HED_SHARED_DEVICES && !has_uuid(&f->devices[at], want))
        at++;
    if (at == HED_SHARED_DEVICES)
        for (at = 0; at < HED_SHARED_DEVICES && !has_uuid(&f->devices[at], nobody);)
            at++;
    if (at == HED_SHARED_DEVICES)
        for (at = 0; at < HED_SHARED_DEVICES && live[at];)
            at++;
    if (at == HED_SHARED_DEVICES)
        return 0;

    struct hed_shared_device *d = &f->devices[at];

    if (!has_uuid(d, want)) {
        atomic_store_explicit(&d->worked, 0, memory_order_relaxed);
        for (size_t i = 0; i < HED_SHARED_SECONDS; i++)
            atomic_store_explicit(&d->seconds[i], 0, memory_order_relaxed);
        atomic_store_explicit(&d->uuid[0], want[0], memory_order_relaxed);
        atomic_store_explicit(&d->uuid[1], want[1], memory_order_relaxed);
    }
    live[at] = true;
    return at + 1;
}

/* Claims a slot whose process is dead, or an empty one. The file is locked. */
static struct hed_shared_slot *
claim_slot(struct hed_shared_file *f, uint64_t owner, const uint32_t *device)
{
    for (size_t i = 0; i < HED_SHARED_SLOTS; i++) {
        struct hed_shared_slot *s = &f->slots[i];
        const uint64_t old = atomic_load_explicit(&s->owner, memory_order_acquire);

        /* A slot with our own owner was left by an earlier driver in this process. */
        if (old != owner && hed_shared_alive(old))
            continue;
        atomic_store_explicit(&s->owner, 0, memory_order_relaxed);
        for (size_t k = 0; k < HED_PROFILE_DEVICES_MAX; k++) {
            atomic_store_explicit(&s->used[k], 0, memory_order_relaxed);
            atomic_store_explicit(&s->device[k], device[k], memory_order_relaxed);
        }
        /* Release: a process that sees us as the owner (the acquire in each_use) sees the slot
         * empty. */
        atomic_store_explicit(&s->owner, owner, memory_order_release);
        return s;
    }
    return NULL;
}

/* A file of our own, for processes that cannot share: they know at least about themselves. */
static struct hed_shared_file *
private_file(void)
{
    void *p = mmap(NULL, sizeof(struct hed_shared_file), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

struct hed_shared_file *
hed_shared_join(const struct hed_profile_device *all, size_t count, struct hed_shared_part *part)
{
    const int fd = open_shared_file();
    struct hed_shared_file *f = fd >= 0 ? map_shared_file(fd) : NULL;
    struct stat st;

    *part = (struct hed_shared_part){0};
    if (f && fstat(fd, &st) == 0) {
        part->file = st.st_ino;
        part->system = st.st_dev;
    }
    if (!f) {
        hed_debug(DRIVER, "cannot share the use of devices with other processes");
        f = private_file();
    }
    if (f) {
        bool live[HED_SHARED_DEVICES] = {false};

        mark_live(f, live);
        part->owner = owner_of(getpid());
        for (size_t i = 0; i < count; i++)
            part->device[i] = enter_device(f, all[i].uuid, live);
        part->slot = part->owner ? claim_slot(f, part->owner, part->device) : NULL;
    }
    if (fd >= 0) {
        /* The mapping keeps the open file, and with it the lock, alive: so unlock explicitly. */
        (void)flock(fd, LOCK_UN);
        close(fd);
    }
    return f;
}

static bool
has_living_owner(const struct hed_shared_file *f)
{
    for (size_t i = 0; i < HED_SHARED_SLOTS; i++)
        if (hed_shared_alive(atomic_load_explicit(&f->slots[i].owner, memory_order_acquire)))
            return true;
    return false;
}

/* Joining needs the file's lock, too: no process is about to claim a slot in it. */
void
hed_shared_remove(const struct hed_shared_file *f, const struct hed_shared_part *part)
{
    struct hed_meeting_folders all;
    struct stat st;

    if (part->file == 0 || hed_meeting_open(false, &all, NULL) != 0)
        return;

    const struct hed_meeting_folder *in = hed_meeting_find(&all, FILE_NAME);
    const int fd = open_locked(in, false);

    if (fd >= 0) {
        if (fstat(fd, &st) == 0 && st.st_ino == part->file && st.st_dev == part->system &&
            !has_living_owner(f))
            (void)unlinkat(in->fd, FILE_NAME, 0);
        close(fd); /* the lock ends with it */
    }
    hed_meeting_close(&all);
}
