/* See event_page.h. */
#include "remote/server/worker/event_page.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sealed.h"

#define PLACE_BITS 8 /* of `last` */
#define WHO_BITS 16  /* of a claim */
#define WHO_MAX ((UINT64_C(1) << WHO_BITS) - 1)
#define WHO_TRIES 64

struct place {
    _Atomic uint64_t reached;
    _Atomic uint64_t claim; /* the number of its last record, and who records; 0: none */
};

struct hed_event_words {
    char magic[8];
    _Atomic uint64_t numbers; /* the last number that was taken */
    _Atomic uint64_t last;    /* the last record: its number and place; 0: none */
    _Atomic uint64_t people;  /* the last worker that records */
    struct place places[HED_EVENT_PLACES];
};

_Static_assert(sizeof(struct hed_event_words) <= HED_EVENT_PAGE, "one page");
_Static_assert(HED_EVENT_PLACES <= 1 << PLACE_BITS, "a place fits");

static const char magic[8] = "HEDEVT2";

static uint64_t
load_shared(const _Atomic uint64_t *at)
{
    /* Acquire: pairs with the release of another worker, or of a stream, which writes after all of
     * its earlier work. */
    return atomic_load_explicit((_Atomic uint64_t *)at, memory_order_acquire);
}

/* ---- the file -------------------------------------------------------------------------------- */

int
hed_event_file(int *out)
{
    const int fd = memfd_create("heddle-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return HED_ENOMEM;
    if (ftruncate(fd, HED_EVENT_PAGE) == 0 &&
        pwrite(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        *out = fd;
        return 0;
    }
    (void)close(fd);
    return HED_ENOMEM;
}

int
hed_event_page_map(struct hed_event_page *p, int fd)
{
    void *at;

    if (!hed_fd_is_sealed(fd, HED_EVENT_PAGE))
        return HED_EFORMAT;
    at = mmap(NULL, HED_EVENT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return HED_ENOMEM;
    *p = (struct hed_event_page){.words = at, .fd = fd};
    if (memcmp(p->words->magic, magic, sizeof magic) == 0)
        return 0;
    hed_event_page_unmap(p);
    return HED_EFORMAT;
}

void
hed_event_page_unmap(struct hed_event_page *p)
{
    (void)munmap(p->words, HED_EVENT_PAGE);
    p->words = NULL;
}

/* ---- who is alive ---------------------------------------------------------------------------- */

static struct flock
lock_byte_of(uint64_t who)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)who, .l_len = 1};
}

/* Takes a number under which nobody has recorded, and its lock. */
static int
become_somebody(struct hed_event_page *p)
{
    for (int i = 0; i < WHO_TRIES && !p->me; i++) {
        /* Relaxed: it only has to be another number for everybody. */
        const uint64_t who =
            1 + atomic_fetch_add_explicit(&p->words->people, 1, memory_order_relaxed);
        struct flock l = lock_byte_of(who);

        if (who > WHO_MAX)
            break;
        if (fcntl(p->fd, F_SETLK, &l) == 0)
            p->me = who;
    }
    return p->me ? 0 : HED_ELIMIT;
}

static bool
is_recorder_dead(const struct hed_event_page *p, uint64_t who)
{
    struct flock l = lock_byte_of(who);

    /* Nobody is 0, not even before this worker has a number. The kernel does not tell a process of
     * its own locks. */
    return who == 0 || (who != p->me && fcntl(p->fd, F_GETLK, &l) == 0 && l.l_type == F_UNLCK);
}

/* The records of a place up to this number count as reached. */
static void
reach_for_others(struct place *p, uint64_t number)
{
    uint64_t before = load_shared(&p->reached);

    /* Release: as a stream would. */
    while (before < number &&
           !atomic_compare_exchange_weak_explicit(&p->reached, &before, number,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static bool
is_place_pending(const struct place *p, uint64_t *claim)
{
    *claim = load_shared(&p->claim);
    return load_shared(&p->reached) < *claim >> WHO_BITS;
}

void
hed_event_page_bury(struct hed_event_page *p)
{
    uint64_t claim;

    for (int i = 0; i < HED_EVENT_PLACES; i++)
        if (is_place_pending(&p->words->places[i], &claim) && is_recorder_dead(p, claim & WHO_MAX))
            reach_for_others(&p->words->places[i], claim >> WHO_BITS);
}

void
hed_event_page_give_up(struct hed_event_page *p, uint64_t context)
{
    for (int i = 0; i < HED_EVENT_PLACES; i++)
        if (p->mine[i].number && p->mine[i].context == context) {
            reach_for_others(&p->words->places[i], p->mine[i].number);
            p->mine[i].number = 0;
        }
}

/* ---- records --------------------------------------------------------------------------------- */

/* Release: pairs with the acquire of who looks whether we are alive. Acquire: what was reached
 * there has been seen. Fails if another worker has taken the place meanwhile. */
static bool
claim_place(struct place *p, uint64_t was, uint64_t claim)
{
    return atomic_compare_exchange_strong_explicit(&p->claim, &was, claim, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* The place of this worker's records on a stream, or a free one. -1: all are taken. */
static int
take_place(struct hed_event_page *p, uint64_t context, uint64_t stream, uint64_t claim)
{
    uint64_t was;

    for (int i = 0; i < HED_EVENT_PLACES; i++) {
        struct place *at = &p->words->places[i];

        if (is_place_pending(at, &was) && (was & WHO_MAX) == p->me && p->mine[i].stream == stream &&
            p->mine[i].context == context && claim_place(at, was, claim))
            return i;
    }
    for (int i = 0; i < HED_EVENT_PLACES; i++) {
        struct place *at = &p->words->places[i];

        /* Another worker may have taken a later number and been faster: numbers of a place only
         * grow, or those who wait for the later one would miss it. */
        if (!is_place_pending(at, &was) && was >> WHO_BITS < claim >> WHO_BITS &&
            load_shared(&at->reached) < claim >> WHO_BITS && claim_place(at, was, claim)) {
            p->mine[i].context = context;
            p->mine[i].stream = stream;
            return i;
        }
    }
    return -1;
}

int
hed_event_page_begin(struct hed_event_page *p, uint64_t context, uint64_t stream, uint64_t *number,
                     int *place)
{
    const int err = p->me ? 0 : become_somebody(p);

    if (err)
        return err;
    /* Relaxed: it only numbers the records. */
    *number = 1 + atomic_fetch_add_explicit(&p->words->numbers, 1, memory_order_relaxed);
    *place = take_place(p, context, stream, *number << WHO_BITS | p->me);
    if (*place < 0)
        return HED_ELIMIT;
    p->mine[*place].number = *number;
    return 0;
}

void
hed_event_page_end(struct hed_event_page *p, uint64_t number, int place)
{
    const uint64_t now = number << PLACE_BITS | (uint64_t)place;
    uint64_t before = load_shared(&p->words->last);

    /* Release: pairs with the acquire of who waits: the place is claimed. */
    while (before < now &&
           !atomic_compare_exchange_weak_explicit(&p->words->last, &before, now,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

void
hed_event_page_drop(struct hed_event_page *p, uint64_t number, int place)
{
    reach_for_others(&p->words->places[place], number);
}

size_t
hed_event_page_word(int place)
{
    return (offsetof(struct hed_event_words, places) + (size_t)place * sizeof(struct place) +
            offsetof(struct place, reached)) /
           sizeof(uint64_t);
}

bool
hed_event_page_last(const struct hed_event_page *p, uint64_t *number, int *place)
{
    const uint64_t last = load_shared(&p->words->last);

    *number = last >> PLACE_BITS;
    *place = (int)(last & ((1 << PLACE_BITS) - 1));
    return *number && *place < HED_EVENT_PLACES && !hed_event_page_is_reached(p, *number, *place);
}

bool
hed_event_page_is_reached(const struct hed_event_page *p, uint64_t number, int place)
{
    return load_shared(&p->words->places[place].reached) >= number;
}

bool
hed_event_page_is_over(struct hed_event_page *p, uint64_t number, int place)
{
    struct place *at = &p->words->places[place];
    uint64_t claim;

    if (hed_event_page_is_reached(p, number, place) || !is_place_pending(at, &claim))
        return true;
    if (!is_recorder_dead(p, claim & WHO_MAX))
        return false;
    reach_for_others(at, claim >> WHO_BITS);
    return true;
}
