/* Heaps and bases that a client should not send or want: a worker refuses them, and the server goes
 * on. Over shm, where the heap is the client's own file.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "raw.h"

#define UNIT UINT64_C(65536)
#define USUAL UINT64_C(0x201000000000) /* where all backends have their arena */

static void
a_heap_grows(void)
{
    struct raw r;

    raw_ready(&r, RAW_ALL);
    MUST(ftruncate(r.heap, 4 * (off_t)UNIT) == 0);
    MUST(raw_map_host(&r, 0, UNIT) == 0);
    MUST(raw_map_host(&r, UNIT, 3 * UNIT) == 0);
    MUST(ftruncate(r.heap, 5 * (off_t)UNIT) == 0);
    MUST(raw_map_host(&r, 4 * UNIT, UNIT) == 0);
    raw_end(&r);
}

static void
nothing_is_mapped_behind_its_end(void)
{
    static const struct {
        uint64_t size, offset, bytes;
    } wrong[] = {{0, 0, UNIT},
                 {UNIT, 0, 2 * UNIT},
                 {2 * UNIT - 1, UNIT, UNIT},
                 {UNIT, UINT64_C(1) << 38, UNIT},
                 {UINT64_C(1) << 62, UINT64_C(1) << 39, UNIT}, /* behind the end of the share */
                 {UINT64_C(1) << 62, (UINT64_C(1) << 39) - UNIT, 2 * UNIT}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct raw r;

        raw_ready(&r, RAW_ALL);
        MUST(ftruncate(r.heap, (off_t)wrong[i].size) == 0);
        MUST(raw_map_host(&r, wrong[i].offset, wrong[i].bytes) == RAW_GONE);
        raw_end(&r);
    }
}

/* Is a session with this heap refused? */
static bool
is_refused_heap(int fd)
{
    struct raw r;

    raw_begin(&r, RAW_ALL);

    const uint64_t base = raw_offer(&r, 0, r.welcome.device_count);
    const bool refused = raw_accept(&r, base, fd) != 0;

    MUST(base);
    raw_end(&r);
    return refused;
}

static void
a_heap_is_memory_that_cannot_shrink(void)
{
    char name[] = "/tmp/raw.XXXXXX";
    const int file = mkstemp(name);
    const int huge = memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    int ends[2];

    MUST(file >= 0 && unlink(name) == 0 && ftruncate(file, 1 << 20) == 0);
    MUST(pipe(ends) == 0);
    MUST(is_refused_heap(file));
    MUST(is_refused_heap(ends[0]));
    MUST(is_refused_heap(ends[1]));
    MUST(is_refused_heap(open("/dev/zero", O_RDWR)));
    MUST(is_refused_heap(open("/tmp", O_RDONLY)));
    MUST(is_refused_heap(raw_memory(1 << 20, 0, 0)));
    MUST(is_refused_heap(raw_memory(1 << 20, 0, F_SEAL_GROW | F_SEAL_SEAL)));
    if (huge >= 0) {
        MUST(fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        MUST(is_refused_heap(huge));
    }
    MUST(!is_refused_heap(raw_memory(UINT64_C(1) << 62, 0, F_SEAL_SHRINK)));
    MUST(!is_refused_heap(raw_memory(0, 0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)));
}

/* Memory that cannot be mapped is not there, and the session goes on. */
static void
a_heap_that_cannot_be_written_has_no_memory(void)
{
    struct raw r;
    char path[64];

    raw_begin(&r, RAW_ALL);

    const uint64_t base = raw_offer(&r, 0, r.welcome.device_count);
    const int fd = raw_memory(1 << 20, 0, F_SEAL_SHRINK);

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(raw_accept(&r, base, open(path, O_RDONLY | O_CLOEXEC)) == 0);
    MUST(raw_map_host(&r, 0, UNIT) > 0);
    MUST(raw_map_host(&r, 0, UNIT) > 0);
    raw_end(&r);
    (void)close(fd);
}

static void
a_client_of_before_gets_the_workers_heap(void)
{
    struct raw r;

    raw_ready(&r, HED_CAN_SLOTS | HED_CAN_SHARED_HEAP);
    MUST(!(r.welcome.capabilities & (HED_CAN_CLIENT_HEAP | HED_CAN_BASE)));
    MUST(raw_map_host(&r, UINT64_C(1) << 38, UNIT) == 0);
    raw_end(&r);
}

/* ---- bases ----------------------------------------------------------------------------------- */

static void
a_base_can_be_wanted(void)
{
    struct raw r;
    const uint64_t wrong[] = {1,
                              4096,
                              USUAL + 4096,
                              UINT64_C(0x7ffff0000000),
                              UINT64_C(0x6ff000000000),
                              UINT64_C(0x800000000000),
                              UINT64_MAX - 0xfffff,
                              UINT64_C(0xffff800000000000)};

    raw_begin(&r, RAW_ALL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        MUST(raw_offer(&r, wrong[i], 1) == 0);
    MUST(raw_offer(&r, USUAL, 1) == USUAL);
    raw_end(&r);
    raw_begin(&r, RAW_ALL);
    MUST(raw_offer(&r, 0, 1) == USUAL);
    raw_end(&r);
    raw_begin(&r, RAW_ALL);
    MUST(raw_offer(&r, USUAL, 0) == USUAL); /* a client that sees no device */
    MUST(raw_accept(&r, USUAL, raw_memory(1 << 20, 0, F_SEAL_SHRINK)) == 0);
    raw_end(&r);
}

static void
shares_are_at_most_as_many_as_devices(void)
{
    static const uint32_t wrong[] = {1, 64, UINT32_MAX};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct raw r;

        raw_begin(&r, RAW_ALL);
        MUST(raw_offer(&r, 0,
                       r.welcome.device_count + wrong[i] > wrong[i]
                           ? r.welcome.device_count + wrong[i]
                           : wrong[i]) == 0);
        MUST(raw_offer(&r, 0, 1) == 0); /* it has ended */
        raw_end(&r);
    }
}

/* With an argument: the backend needs a context to map memory, so nothing is mapped. */
int
main(int argc, char **argv)
{
    (void)argv;
    if (argc < 2) {
        a_heap_grows();
        nothing_is_mapped_behind_its_end();
        a_heap_that_cannot_be_written_has_no_memory();
        a_client_of_before_gets_the_workers_heap();
    }
    a_heap_is_memory_that_cannot_shrink();
    a_base_can_be_wanted();
    shares_are_at_most_as_many_as_devices();
    return 0;
}
