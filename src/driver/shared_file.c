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
#include "base/process.h"

#define FILE_MAGIC 0x0000000145444548ull /* changes whenever the layout does */
#define LOCK_TRIES 50                    /* a millisecond each */

/* ---- processes ------------------------------------------------------------------------------- */

/* The value that stands for a living process in `owner`; 0 if it is not alive. Field 22 of
 * /proc/PID/stat is the time at which it started. */
static uint64_t
owner_of(pid_t pid)
{
    char text[1024];
    unsigned long long start = 0;
    const char *at = hed_process_stat(pid, text, sizeof text);

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

static int
open_shared_file(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    char path[4096];
    int fd;

    (void)snprintf(path, sizeof path, "/dev/shm/heddle-%u-devices", (unsigned)geteuid());
    fd = open(path, flags, 0600);
    if (fd < 0 && runtime && *runtime == '/' &&
        (size_t)snprintf(path, sizeof path, "%s/heddle-%u-devices", runtime, (unsigned)geteuid()) <
            sizeof path)
        fd = open(path, flags, 0600);
    if (fd < 0) {
        /* In a server's sandbox, for one. The process then knows of its own use only. */
        hed_debug(DRIVER, "%s: %s", path, strerror(errno));
        fd = memfd_create("heddle-devices", MFD_CLOEXEC);
        if (fd >= 0 && fchmod(fd, 0600) != 0) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

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

/* Maps the file, which must belong to us alone and have the right size. The file is locked. NULL if
 * it cannot be used. */
static struct hed_shared_file *
map_shared_file(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) != 0)
        return NULL;
    /* Allocates the pages too, so that a full /dev/shm is an error now and not a signal later. */
    if (st.st_size != (off_t)sizeof(struct hed_shared_file) &&
        (ftruncate(fd, 0) != 0 ||
         posix_fallocate(fd, 0, (off_t)sizeof(struct hed_shared_file)) != 0)) {
        (void)ftruncate(fd, 0);
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
    struct hed_shared_file *f = fd >= 0 && lock_file(fd) ? map_shared_file(fd) : NULL;

    *part = (struct hed_shared_part){0};
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
