/* The arena: one range of addresses that the client and the worker's backend both have.
 *
 *   base + i * stride           device i's share: the backend's device addresses
 *   base + count * stride       the host's share: memory of both processes, or of each its own
 *
 * The worker offers a base at which its backend has reserved the devices' shares. The client
 * accepts it or asks for another. With a GPU there are several bases to choose from; the CPU GPU
 * has one. For a backend that does no work, addresses of this process are reserved.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/reserve.h"
#include "server/worker/worker.h"

#define GPU_STRIDE (UINT64_C(1) << 39)
/* The soft driver's own stride; the client gets half of each share. */
#define CPU_STRIDE (UINT64_C(1) << 40)

static const uint64_t bases[] = {0x200000000000, 0x300000000000, 0x600000000000, 0x100000000000,
                                 0x400000000000};

static bool
is_cpu(const struct hed_worker *w)
{
    return w->backend == HED_BACKEND_CPU;
}

void
hed_arena_init_sizes(struct hed_worker *w)
{
    w->stride = is_cpu(w) ? CPU_STRIDE : GPU_STRIDE;
    w->usable = is_cpu(w) ? CPU_STRIDE / 2 : GPU_STRIDE;
    w->map_unit = 2u << 20;
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
    (void)hed_worker_do(w, cuMemAddressFree, .ptr = p, .size = size);
    return false;
}

static void
release_at(struct hed_worker *w, uint64_t at, uint64_t size)
{
    (void)hed_worker_do(w, cuMemAddressFree, .ptr = at, .size = size);
}

/* The devices of a GPU backend share one range. The host's share is memory of this process. */
static bool
try_gpu(struct hed_worker *w, uint64_t base)
{
    const uint64_t devices = (uint64_t)w->device_count * w->stride;
    uint64_t got;

    if (!w->no_memory && !reserve_at(w, base, devices, &got))
        return false;
    if (hed_reserve_addresses(base + (w->no_memory ? 0 : devices),
                              w->stride + (w->no_memory ? devices : 0)))
        return true;
    if (!w->no_memory)
        release_at(w, base, devices);
    return false;
}

/* The soft driver has one space per device and one for the host, all in a row; the client gets the
 * first half of each. Nothing has been allocated in them yet. */
static bool
try_cpu(struct hed_worker *w, uint64_t *base)
{
    uint64_t got;

    if (!reserve_at(w, 0, w->usable, base))
        return false;
    for (int i = 1; i <= w->device_count; i++) {
        if (reserve_at(w, *base + (uint64_t)i * w->stride, w->usable, &got))
            continue;
        while (--i >= 0)
            release_at(w, *base + (uint64_t)i * w->stride, w->usable);
        return false;
    }
    return true;
}

/* Offers the next base after one that the client refused (0 for the first). Returns 0 if there is
 * none. */
static uint64_t
offer_base(struct hed_worker *w, uint64_t refused)
{
    uint64_t base = 0;
    size_t i = 0;

    if (is_cpu(w))
        return refused == 0 && try_cpu(w, &base) ? base : 0;
    while (refused && i < sizeof bases / sizeof bases[0] && bases[i++] != refused)
        continue;
    for (; i < sizeof bases / sizeof bases[0]; i++)
        if (try_gpu(w, bases[i]))
            return bases[i];
    return 0;
}

static void
withdraw_base(struct hed_worker *w, uint64_t base)
{
    const uint64_t devices = (uint64_t)w->device_count * w->stride;

    if (is_cpu(w))
        return;
    if (!w->no_memory)
        release_at(w, base, devices);
    (void)munmap((void *)(uintptr_t)(base + (w->no_memory ? 0 : devices)),
                 w->stride + (w->no_memory ? devices : 0));
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
 * not in a window, the descriptors of the slots and of the heap follow the answer. */
static int
accept_base(struct hed_worker_channel *ch, const struct hed_msg *m, struct hed_arena_answer *a)
{
    struct hed_worker *w = ch->worker;
    struct hed_why why = {""};
    int fds[2] = {-1, -1};
    const bool passes = w->shares && !w->in_window; /* descriptors */
    int err = passes ? make_slots(w, &fds[0]) : 0;

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
        err = hed_conn_send_fds(hed_channel_conn(ch->channel), fds, 2);
    if (fds[0] >= 0)
        (void)close(fds[0]);
    return err;
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
    if (o->refused != w->offered)
        return HED_EFORMAT;
    if (w->offered)
        withdraw_base(w, w->offered);
    w->offered = a.base = offer_base(w, o->refused);
    return hed_worker_answer_with(ch, m, a.base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, &a,
                                  sizeof a, 0);
}
