/* Memory that is already in use becomes a file in memory, which other processes can map.
 *
 * It is done slice by slice: the slice can only be read, its bytes go to the file, and the file is
 * mapped over it. Kernels and copies need not stop. A thread that writes to the slice meanwhile
 * faults, waits in the handler (fault.c) and writes again.
 *
 *   writer     store ──fault──> is the address in the slice? ──> sleeps until it is not; again
 *                                   ╲─ no longer: it was a moment ago ──> again, but only once
 *
 * Whether a fault is such a write cannot be seen when the slice is done before the handler looks.
 * So each thread may try once again after every slice; a store to a bad address then faults once
 * more.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "base/err.h"
#include "base/number.h"
#include "kernel/engine.h"

#define SLICE ((uint64_t)64 << 20) /* bytes; while a slice is copied, its memory is there twice */
#define PIECE HED_MACHINE_PAGE     /* bytes; pieces of zeros take no room in the file */
#define HUGE_LEAST ((uint64_t)8 << 20)
#define SEEN 64 /* threads that are remembered; any power of two */

/* The slice that can only be read. Written by one thread at a time, read by handlers. */
static _Atomic uint64_t slice_at, slice_end;
static _Atomic uint32_t slices;            /* that were begun */
static _Atomic uint64_t tried_again[SEEN]; /* thread number and slice, by thread */

static bool
is_in_slice(uint64_t address)
{
    /* Acquire: pairs with the release in share_slice(). The end is 0 when there is none. */
    const uint64_t end = atomic_load_explicit(&slice_end, memory_order_acquire);

    return address < end && address >= atomic_load_explicit(&slice_at, memory_order_acquire);
}

/* For handlers of signals: a thread has written where it may not. True: it was to memory that is
 * being shared, or may have been, and the thread can try again now. */
static bool
may_be_sharing(uint64_t address)
{
    const uint32_t begun = atomic_load_explicit(&slices, memory_order_acquire);
    const struct timespec moment = {.tv_nsec = 50000};

    if (begun == 0)
        return false;
    if (is_in_slice(address)) {
        while (is_in_slice(address))
            (void)nanosleep(&moment, NULL);
        return true;
    }

    const uint32_t me = (uint32_t)syscall(SYS_gettid);
    const uint64_t tag = (uint64_t)me << 32 | begun;

    /* Relaxed: a thread only looks for what it wrote itself. */
    return atomic_exchange_explicit(&tried_again[me % SEEN], tag, memory_order_relaxed) != tag;
}

static bool
is_zero(const unsigned char *p, uint64_t size)
{
    return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

static void
copy_slice(unsigned char *to, const unsigned char *from, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += PIECE)
        if (!is_zero(from + at, PIECE))
            memcpy(to + at, from + at, PIECE);
}

/* `fd_at` is where the slice begins in the file. */
static int
share_slice(struct hed_physical_memory *p, uint64_t fd_at, uint64_t at, uint64_t size)
{
    void *from = (void *)(uintptr_t)at;
    int err;
    void *to = hed_cpu_physical_view(p, fd_at, size);

    if (!to)
        return HED_ENOMEM;
    atomic_store_explicit(&slice_at, at, memory_order_release);
    atomic_store_explicit(&slice_end, at + size, memory_order_release);
    atomic_fetch_add_explicit(&slices, 1, memory_order_release);
    err = mprotect(from, size, PROT_READ) == 0 ? 0 : HED_ENOMEM;
    if (!err) {
        copy_slice(to, from, size);
        err = hed_cpu_physical_map(NULL, p, fd_at, at, size);
        if (err)
            (void)mprotect(from, size, PROT_READ | PROT_WRITE);
        else if (size >= HUGE_LEAST)
            (void)madvise(from, size, MADV_HUGEPAGE);
    }
    atomic_store_explicit(&slice_end, 0, memory_order_release);
    munmap(to, size);
    return err;
}

int
hed_cpu_share(void *m, uint64_t at, uint64_t size, struct hed_physical_memory **out)
{
    struct hed_physical_memory *p;
    int err = hed_cpu_physical_create(m, -1, size, &p);

    if (err)
        return err;
    hed_fault_set_retry(may_be_sharing);
    for (uint64_t done = 0; !err && done < size; done += SLICE)
        err = share_slice(p, done, at + done, hed_min(SLICE, size - done));
    /* What has been moved stays in the file, which its mappings keep; nobody will know of it. */
    if (err)
        hed_cpu_physical_free(m, p);
    else
        *out = p;
    return err;
}
