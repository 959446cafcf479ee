/* See event.h. */
#include "driver/ipc/event.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sealed.h"
#include "driver/context/context.h"

#define PAGE 4096 /* bytes of the file */
#define PLACES 160
#define LOOK_NS (20 * HED_NS_PER_MS) /* how often a waiter looks at its context */
#define ALIVE_LOOKS 10               /* looks after which it looks for the other process */
#define UNKNOWN_LOOKS 500            /* after which a record without a process is given up */

struct place {
    _Atomic uint64_t reached; /* the last record of this place that was reached */
    _Atomic uint64_t begun;   /* the last one that was begun; */
    _Atomic uint64_t owner;   /* its process: the number, and 32 bits of the start */
};

struct page {
    char magic[8];
    uint8_t secret[HED_IPC_SECRET];
    uint8_t uuid[16];
    _Atomic uint64_t recorded;
    _Atomic uint32_t wakeups; /* changes with every record that is reached */
    uint32_t zero;
    struct place places[PLACES];
};

_Static_assert(sizeof(struct page) <= PAGE, "one page");

struct hed_shared_event {
    struct page *page;
    int fd;      /* -1: another process's event */
    uint64_t me; /* this process, as the owner of a place */
    uint8_t secret[HED_IPC_SECRET];
};

static const char magic[8] = "HEDEVNT";

/* ---- life ------------------------------------------------------------------------------------ */

void
hed_shared_event_free(struct hed_shared_event *e)
{
    if (!e)
        return;
    if (e->page)
        munmap(e->page, PAGE);
    if (e->fd >= 0)
        close(e->fd);
    free(e);
}

static uint64_t
mark_of_process(pid_t pid)
{
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)hed_process_start(pid);
}

/* Takes the descriptor only if it succeeds. */
static int
map_page(int fd, struct hed_shared_event **out)
{
    struct hed_shared_event *e = calloc(1, sizeof *e);
    void *p = e ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (p == MAP_FAILED) {
        free(e);
        return HED_ENOMEM;
    }
    e->page = p;
    e->fd = fd;
    e->me = mark_of_process(getpid());
    *out = e;
    return 0;
}

int
hed_shared_event_create(const uint8_t uuid[16], struct hed_shared_event **out)
{
    const int fd = memfd_create(HED_IPC_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct hed_shared_event *e = NULL;
    int err = HED_ENOMEM;

    if (fd < 0)
        return err;
    if (ftruncate(fd, PAGE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        err = map_page(fd, &e);
    if (err) {
        close(fd);
        return err;
    }
    err = hed_ipc_secret(e->secret);
    if (err) {
        hed_shared_event_free(e);
        return err;
    }
    memcpy(e->page->secret, e->secret, sizeof e->secret);
    memcpy(e->page->uuid, uuid, 16);
    memcpy(e->page->magic, magic, sizeof magic);
    *out = e;
    return 0;
}

int
hed_shared_event_open(const struct hed_ipc_name *n, struct hed_shared_event **out)
{
    struct hed_shared_event *e = NULL;
    int fd;
    int err = hed_ipc_open(n, HED_IPC_EVENT, &fd);

    if (err)
        return err;
    err = hed_fd_is_sealed(fd, PAGE) ? map_page(fd, &e) : HED_ENOTFOUND;
    close(fd);
    if (err)
        return err;
    e->fd = -1;
    if (memcmp(e->page->magic, magic, sizeof magic) != 0 ||
        memcmp(e->page->secret, n->secret, sizeof n->secret) != 0) {
        hed_shared_event_free(e);
        return HED_ENOTFOUND;
    }
    *out = e;
    return 0;
}

int
hed_shared_event_name(const struct hed_shared_event *e, struct hed_ipc_name *out)
{
    return e->fd < 0 ? HED_EINVAL : hed_ipc_name(HED_IPC_EVENT, e->fd, e->secret, 0, PAGE, out);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct place *
place_of_record(struct hed_shared_event *e, uint64_t number)
{
    return &e->page->places[number % PLACES];
}

uint64_t
hed_shared_event_begin(struct hed_shared_event *e)
{
    /* Relaxed: it only numbers the records. */
    const uint64_t number =
        atomic_fetch_add_explicit(&e->page->recorded, 1, memory_order_relaxed) + 1;
    struct place *p = place_of_record(e, number);

    atomic_store_explicit(&p->owner, e->me, memory_order_relaxed);
    /* Release: pairs with the acquire in owner_is_gone(). */
    atomic_store_explicit(&p->begun, number, memory_order_release);
    return number;
}

void
hed_shared_event_reached(struct hed_shared_event *e, uint64_t number)
{
    struct place *p = place_of_record(e, number);
    uint64_t before = atomic_load_explicit(&p->reached, memory_order_relaxed);

    /* Release: pairs with the acquire in is_record_reached(), in whatever process: what the stream
     * did before the record is visible there. */
    while (before < number &&
           !atomic_compare_exchange_weak_explicit(&p->reached, &before, number,
                                                  memory_order_release, memory_order_relaxed))
        ;
    atomic_fetch_add_explicit(&e->page->wakeups, 1, memory_order_release);
    (void)hed_futex_wake(&e->page->wakeups, INT_MAX);
}

uint64_t
hed_shared_event_last(const struct hed_shared_event *e)
{
    /* Acquire: a process that was told of the record sees it. */
    return atomic_load_explicit(&e->page->recorded, memory_order_acquire);
}

static bool
is_record_reached(struct hed_shared_event *e, uint64_t number)
{
    return number == 0 || atomic_load_explicit(&place_of_record(e, number)->reached,
                                               memory_order_acquire) >= number;
}

/* Has the process that recorded it died? */
static bool
owner_is_gone(struct hed_shared_event *e, uint64_t number, bool *known)
{
    const struct place *p = place_of_record(e, number);

    *known = atomic_load_explicit(&p->begun, memory_order_acquire) >= number;
    if (!*known)
        return false;

    const uint64_t owner = atomic_load_explicit(&p->owner, memory_order_relaxed);
    const pid_t pid = (pid_t)(owner >> 32);

    return pid <= 0 || (uint32_t)hed_process_start(pid) != (uint32_t)owner;
}

bool
hed_shared_event_is_reached(struct hed_shared_event *e, uint64_t number)
{
    bool known;

    return is_record_reached(e, number) || owner_is_gone(e, number, &known);
}

CUresult
hed_shared_event_wait(struct hed_shared_event *e, uint64_t number, const struct hed_context *c)
{
    for (unsigned looks = 0;; looks++) {
        const uint32_t wakeups = atomic_load_explicit(&e->page->wakeups, memory_order_acquire);
        bool known = true;

        if (is_record_reached(e, number))
            return CUDA_SUCCESS;
        if (looks % ALIVE_LOOKS == 0 && owner_is_gone(e, number, &known))
            return CUDA_SUCCESS;
        /* It was killed between two instructions, or the page is not what it was. */
        if (!known && looks >= UNKNOWN_LOOKS) {
            hed_warn(
                DRIVER,
                "the process that made record %llu of a shared event does not know it any more",
                (unsigned long long)number);
            return CUDA_SUCCESS;
        }
        /* Acquire: pairs with the store that ends the context. */
        if (hed_context_error(c) != CUDA_SUCCESS ||
            !atomic_load_explicit(&c->alive, memory_order_acquire))
            return hed_context_error(c);
        (void)hed_futex_wait(&e->page->wakeups, wakeups, LOOK_NS);
    }
}
