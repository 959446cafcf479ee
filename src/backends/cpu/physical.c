/* Physical memory of the CPU GPU: files in memory, which are mapped where the program
 * wants them, and which other processes can map, too.
 *
 *   | size bytes: the memory | one page: struct trailer, written when the memory is exported |
 *
 * A descriptor that is imported comes from another process, which may be hostile. Only a file that
 * cannot shrink is taken, since reading behind the end of a file kills a process. Its contents are
 * the other's to change at any time, as those of a GPU's memory would be.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "base/err.h"
#include "base/number.h"
#include "base/sealed.h"
#include "driver/driver.h"

#define TRAILER_SIZE 4096 /* bytes */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct cpu_physical {
    struct hed_physical_memory pub; /* first */
    int fd;
};

struct trailer {
    char magic[8];
    uint64_t size; /* of the memory */
    uint8_t owner[HED_PHYSICAL_OWNER];
};

static const char magic[8] = "HEDPHYS";

/* Takes the descriptor if it succeeds. */
static int
physical_of(int fd, uint64_t size, struct hed_physical_memory **out)
{
    struct cpu_physical *p = malloc(sizeof *p);

    if (!p)
        return HED_ENOMEM;
    p->pub.size = size;
    p->fd = fd;
    *out = &p->pub;
    return 0;
}

int
hed_cpu_physical_create(void *m, int device, uint64_t size, struct hed_physical_memory **out)
{
    const int fd = memfd_create(HED_IPC_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct rlimit most;

    /* A larger file would end the process by a signal. */
    if (fd >= 0 && getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        size + TRAILER_SIZE > most.rlim_cur) {
        close(fd);
        return HED_ENOMEM;
    }
    if (fd < 0)
        return HED_ENOMEM;
    if (size <= INT64_MAX - TRAILER_SIZE && ftruncate(fd, (off_t)(size + TRAILER_SIZE)) == 0 &&
        fcntl(fd, F_ADD_SEALS, SEALS) == 0 && physical_of(fd, size, out) == 0)
        return 0;
    close(fd);
    return HED_ENOMEM;
}

void
hed_cpu_physical_free(void *m, struct hed_physical_memory *p)
{
    close(((struct cpu_physical *)p)->fd);
    free(p);
}

int
hed_cpu_physical_map(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                     uint64_t size)
{
    if (!hed_range_fits(offset, size, p->size))
        return HED_ERANGE;

    void *a = mmap((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   ((struct cpu_physical *)p)->fd, (off_t)offset);

    return a == MAP_FAILED ? HED_ENOMEM : 0;
}

void *
hed_cpu_physical_view(struct hed_physical_memory *p, uint64_t offset, uint64_t size)
{
    void *a = hed_range_fits(offset, size, p->size)
                  ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                         ((struct cpu_physical *)p)->fd, (off_t)offset)
                  : MAP_FAILED;

    return a == MAP_FAILED ? NULL : a;
}

void
hed_cpu_physical_discard(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t size)
{
    if (hed_range_fits(offset, size, p->size))
        (void)fallocate(((struct cpu_physical *)p)->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)offset, (off_t)size);
}

int
hed_cpu_physical_export(void *m, struct hed_physical_memory *p, const uint8_t *owner, int *fd)
{
    const int own = ((struct cpu_physical *)p)->fd;
    struct trailer t = {.size = p->size};

    memcpy(t.magic, magic, sizeof t.magic);
    memcpy(t.owner, owner, sizeof t.owner);
    if (pwrite(own, &t, sizeof t, (off_t)p->size) != (ssize_t)sizeof t)
        return HED_ENOMEM;
    *fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    return *fd < 0 ? HED_ENOMEM : 0;
}

/* Is a descriptor memory that a process of heddle has exported? */
static bool
read_trailer(int fd, struct trailer *t)
{
    struct stat st;

    if (!hed_fd_is_sealed(fd, TRAILER_SIZE + 1) || fstat(fd, &st) != 0)
        return false;

    const uint64_t size = (uint64_t)st.st_size - TRAILER_SIZE;

    return pread(fd, t, sizeof *t, (off_t)size) == (ssize_t)sizeof *t &&
           memcmp(t->magic, magic, sizeof magic) == 0 && t->size == size &&
           size % HED_MACHINE_PAGE == 0;
}

int
hed_cpu_physical_import(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out)
{
    struct trailer t;

    if (!read_trailer(fd, &t))
        return HED_EINVAL;

    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (own < 0)
        return HED_ENOMEM;
    if (physical_of(own, t.size, out) != 0) {
        close(own);
        return HED_ENOMEM;
    }
    memcpy(owner, t.owner, sizeof t.owner);
    return 0;
}
