/* The guest's memory. See memory.h. */
#include "remote/server/vm/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"

static bool
spans_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

static int
check_place(const struct hed_guest_memory *m, const struct hed_guest_place *p, struct hed_why *why)
{
    uint64_t end;

    if (p->size == 0 || __builtin_add_overflow(p->guest, p->size, &end) ||
        __builtin_add_overflow(p->user, p->size, &end)) {
        hed_why_set(why, "a region of memory has no size, or wraps around");
        return HED_EFORMAT;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        const struct hed_guest_region *r = &m->regions[i];

        if (spans_overlap(r->guest, r->size, p->guest, p->size) ||
            spans_overlap(r->user, r->size, p->user, p->size)) {
            hed_why_set(why, "regions of memory overlap");
            return HED_EFORMAT;
        }
    }
    return 0;
}

/* Huge pages can only be unmapped as a whole; the file says how large they are. */
static uint64_t
round_to_pages(uint64_t n, const struct stat *st)
{
    const uint64_t page = st->st_blksize > 0 ? (uint64_t)st->st_blksize : 1;

    return (page & (page - 1)) == 0 && n <= UINT64_MAX - page ? (n + page - 1) & ~(page - 1) : n;
}

/* Maps the file from its beginning: an offset would have to be a multiple of the page size, which
 * QEMU does not promise. */
static int
map_place(struct hed_guest_memory *m, const struct hed_guest_place *p, int fd, struct hed_why *why)
{
    struct hed_guest_region *r = &m->regions[m->count];
    struct stat st;
    uint64_t end;
    int err = check_place(m, p, why);

    if (err)
        return err;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        __builtin_add_overflow(p->offset, p->size, &end) || end > (uint64_t)st.st_size) {
        hed_why_set(why, "a region of memory is not inside its file");
        return HED_EFORMAT;
    }
    end = round_to_pages(end, &st);

    void *map = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (map == MAP_FAILED) {
        hed_why_set(why, "a region of memory cannot be mapped: %s", strerror(errno));
        return errno == EACCES ? HED_EFORMAT : HED_ENOMEM;
    }
    *r = (struct hed_guest_region){
        .guest = p->guest,
        .user = p->user,
        .size = p->size,
        .at = (uint8_t *)map + p->offset,
        .map = map,
        .mapped = end,
    };
    m->count++;
    return 0;
}

int
hed_guest_map(struct hed_guest_memory *m, const struct hed_guest_place *places, const int *fds,
              uint32_t count, struct hed_why *why)
{
    int err = 0;

    hed_guest_unmap(m);
    if (count > HED_GUEST_REGIONS) {
        hed_why_set(why, "%u regions of memory, more than %d", count, HED_GUEST_REGIONS);
        return HED_EFORMAT;
    }
    for (uint32_t i = 0; i < count && !err; i++)
        err = map_place(m, &places[i], fds[i], why);
    if (err)
        hed_guest_unmap(m);
    return err;
}

void
hed_guest_unmap(struct hed_guest_memory *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        (void)munmap(m->regions[i].map, m->regions[i].mapped);
    m->count = 0;
}

void *
hed_guest_at(const struct hed_guest_memory *m, uint64_t address, uint64_t *n)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct hed_guest_region *r = &m->regions[i];
        const uint64_t offset = address - r->guest;

        if (address < r->guest || offset >= r->size)
            continue;
        if (*n > r->size - offset)
            *n = r->size - offset;
        return r->at + offset;
    }
    return NULL;
}

void *
hed_guest_at_user(const struct hed_guest_memory *m, uint64_t address, uint64_t n,
                  uint64_t alignment)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct hed_guest_region *r = &m->regions[i];
        const uint64_t offset = address - r->user;

        if (address < r->user || offset >= r->size || n > r->size - offset)
            continue;
        return (uintptr_t)(r->at + offset) % alignment == 0 ? r->at + offset : NULL;
    }
    return NULL;
}

void
hed_guest_copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    __asm__ __volatile__("" ::: "memory");
}
