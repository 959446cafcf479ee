/* The arena: one range of addresses that the client and the worker's backend both have.
 *
 *   base + i * stride         a share for devices: the backend's device addresses
 *   base + shares * stride    the host's share: memory of both processes, or of each its own
 *
 * The worker offers a base at which its backend has reserved the usable part of each share. The
 * client accepts it or asks for another. Or the client says which base it wants, because it was
 * served elsewhere before: then that one is offered, or none.
 *
 * All backends have the same stride and prefer the same base, so that a client can go from one to
 * another. A GPU has other bases to choose from; the CPU GPU has only those inside its own range.
 * For a backend that does no work, addresses of this process are reserved.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/reserve.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/worker.h"

/* The soft driver's own stride. The client gets half of each share; on the CPU GPU the rest is for
 * what comes with code. */
#define STRIDE (UINT64_C(1) << 40)
#define USABLE (STRIDE / 2)
/* Where a client may want its arena: not where a worker's stacks and libraries are. */
#define LOWEST (UINT64_C(1) << 40)
#define HIGHEST UINT64_C(0x700000000000)

/* The first is where confined kernels of the CPU GPU have their devices (kernel/engine/sandbox.c).
 * It is in the range of the CPU GPU without confinement, too. */
static const uint64_t bases[] = {0x201000000000, 0x401000000000, 0x601000000000, 0x301000000000,
                                 0x101000000000};

static bool
is_cpu(const struct hed_worker *w)
{
    return w->backend == HED_BACKEND_CPU;
}

void
hed_arena_init_sizes(struct hed_worker *w)
{
    w->stride = STRIDE;
    w->usable = USABLE;
    w->map_unit = 2u << 20;
    w->device_shares = w->device_count;
}

static void
release_at(struct hed_worker *w, uint64_t at, uint64_t size)
{
    (void)hed_worker_do(w, cuMemAddressFree, .ptr = at, .size = size);
}

static bool
reserve_at(struct hed_worker *w, uint64_t at, uint64_t size, uint64_t *got)
{
    CUdeviceptr p = 0;

    if (hed_worker_do(w, cuMemAddressReserve, .ptr = &p, .size = size, .addr = at) != CUDA_SUCCESS)
        return false;
    *got = p;
    if (at == 0 || p == at)
        return true;
    release_at(w, p, size);
    return false;
}

/* Does the backend reserve this share? The host's is memory of this process, but on the CPU GPU
 * that is the same. */
static bool
is_backends_share(const struct hed_worker *w, int i)
{
    return is_cpu(w) || (!w->no_memory && i < w->device_shares);
}

static bool
reserve_share(struct hed_worker *w, uint64_t base, int i)
{
    const uint64_t at = base + (uint64_t)i * w->stride;
    uint64_t got;

    return is_backends_share(w, i) ? reserve_at(w, at, w->usable, &got)
                                   : hed_reserve_addresses(at, w->usable);
}

/* Gives back the first shares; with the host's there is one more than for devices. */
static void
release_shares(struct hed_worker *w, uint64_t base, int count)
{
    for (int i = 0; i < count; i++) {
        const uint64_t at = base + (uint64_t)i * w->stride;

        if (is_backends_share(w, i))
            release_at(w, at, w->usable);
        else
            (void)munmap((void *)(uintptr_t)at, w->usable);
    }
}

static bool
try_base(struct hed_worker *w, uint64_t base)
{
    for (int i = 0; i <= w->device_shares; i++)
        if (!reserve_share(w, base, i)) {
            release_shares(w, base, i);
            return false;
        }
    return true;
}

/* The CPU GPU's own range may be elsewhere than usual: asks where it begins. Nothing has been
 * allocated in it yet. */
static uint64_t
lowest_base(struct hed_worker *w)
{
    uint64_t at = 0;

    if (!reserve_at(w, 0, w->usable, &at))
        return 0;
    release_at(w, at, w->usable);
    return at;
}

static uint64_t
offer_wanted(struct hed_worker *w, uint64_t want)
{
    const uint64_t all = ((uint64_t)w->device_shares + 1) * w->stride;

    return want % w->map_unit == 0 && want >= LOWEST && want <= HIGHEST - all && try_base(w, want)
               ? want
               : 0;
}

/* Offers the next base after one that the client refused (0 for the first). Returns 0 if there is
 * none. */
static uint64_t
offer_base(struct hed_worker *w, uint64_t refused)
{
    size_t i = 0;

    while (refused && i < sizeof bases / sizeof bases[0] && bases[i++] != refused)
        continue;
    for (; i < sizeof bases / sizeof bases[0]; i++)
        if (try_base(w, bases[i]))
            return bases[i];
    if (!is_cpu(w) || refused)
        return 0;

    const uint64_t base = lowest_base(w);

    return base && try_base(w, base) ? base : 0;
}

/* Creates the page of slots that both sides see. It is sealed, so that neither side can shrink it
 * under the other. */
static int
make_slots(struct hed_worker *w, int *fd)
{
    const size_t size = w->slot_count * sizeof *w->slots;

    *fd = memfd_create("heddle slots", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 || ftruncate(*fd, (off_t)size) != 0 ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return HED_ENOMEM;
    w->slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (w->slots == MAP_FAILED) {
        w->slots = NULL;
        return HED_ENOMEM;
    }
    return 0;
}

/* The client has accepted the base: starts everything that depends on it. If memory is shared, and
 * not in a window, the descriptor of the slots follows the answer, and that of the heap, unless the
 * client has brought its own. */
static int
accept_base(struct hed_worker_channel *ch, const struct hed_msg *m, struct hed_arena_answer *a)
{
    struct hed_worker *w = ch->worker;
    struct hed_why why = {""};
    int fds[2] = {-1, -1};
    const bool passes = w->shares && !w->in_window; /* descriptors */
    int err = passes ? make_slots(w, &fds[0]) : 0;

    if (!err && passes && w->capabilities & HED_CAN_CLIENT_HEAP)
        err = hed_pinned_take_heap(w, hed_channel_conn(ch->channel), &why);
    if (!err)
        err = hed_worker_memory_init(w, &why);
    if (!err)
        err = hed_worker_code_init(w, &why);
    if (!err)
        err = hed_worker_host_init(w, &why);
    if (!err)
        err = hed_worker_progress_init(w);
    fds[1] = w->heap;
    if (err)
        hed_error(SERVER, "cannot start a session: %s", why.text[0] ? why.text : hed_err_text(err));
    /* Release: pairs with the acquire in attach_channel(), so that a new channel finds everything
     * ready. */
    if (!err)
        atomic_store_explicit(&w->settled, true, memory_order_release);
    if (!err)
        err = hed_worker_answer_with(ch, m, CUDA_SUCCESS, a, sizeof *a, 0);
    if (!err && passes)
        err = hed_conn_send_fds(hed_channel_conn(ch->channel), fds, w->clients_heap ? 1 : 2);
    w->slots_fd = fds[0]; /* a client that returns gets it again */
    return err;
}

/* Since 2.1 the client says how many shares it needs. */
static int
change_offer(struct hed_worker *w, const struct hed_arena_offer *o, uint64_t *base)
{
    const bool asks = w->capabilities & HED_CAN_BASE && o->head.size >= sizeof *o;

    if (o->refused != w->offered || (asks && o->devices > (uint32_t)w->device_count))
        return HED_EFORMAT;
    if (w->offered)
        release_shares(w, w->offered, w->device_shares + 1);
    w->device_shares = asks ? (int)o->devices : w->device_count;
    w->offered = *base = asks && o->want ? offer_wanted(w, o->want) : offer_base(w, o->refused);
    return 0;
}

int
hed_do_arena(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_arena_offer *o = (const struct hed_arena_offer *)m;
    struct hed_arena_answer a;
    struct hed_worker *w = ch->worker;

    memset(&a, 0, sizeof a);
    if (w->base)
        return HED_EFORMAT;
    if (o->base) { /* the client has reserved it, too */
        if (o->base != w->offered)
            return HED_EFORMAT;
        w->base = a.base = o->base;
        return accept_base(ch, m, &a);
    }

    const int err = change_offer(w, o, &a.base);

    if (err)
        return err;
    return hed_worker_answer_with(ch, m, a.base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, &a,
                                  sizeof a, 0);
}
