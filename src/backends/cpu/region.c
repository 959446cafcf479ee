/* Address space for stacks and shared memory. See region.h.
 *
 * Pieces are cut off the front of the range and never joined again, since sizes repeat from launch
 * to launch. A free piece is remembered outside of it, so that its pages can be released.
 */
#include "backends/cpu/region.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"

#define SHARE 4 /* the part that we take of a range that is smaller than wanted */
#define LEAST_RANGE ((size_t)256 << 20) /* bytes; with less, the engine does not start */

struct hed_region_free {
    struct hed_region_free *next;
    unsigned char *at;
};

int
hed_regions_init(struct hed_regions *a, size_t want)
{
    void *p = MAP_FAILED;
    size_t size = want;

    hed_lock_init(&a->lock, HED_RANK_REGION);
    for (; size >= LEAST_RANGE; size /= 2) {
        p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED)
            break;
    }
    if (p == MAP_FAILED)
        return HED_ENOMEM;
    /* Where address space is limited (ulimit -v, sanitizers), others need some too. */
    if (size < want && size / SHARE >= LEAST_RANGE) {
        munmap((unsigned char *)p + size / SHARE, size - size / SHARE);
        size /= SHARE;
    }
    a->base = p;
    a->size = size;
    a->used = 0;
    for (int i = 0; i < HED_REGION_CLASSES; i++)
        a->free[i] = NULL;
    return 0;
}

void
hed_regions_fini(struct hed_regions *a)
{
    for (int i = 0; i < HED_REGION_CLASSES; i++) {
        while (a->free[i]) {
            struct hed_region_free *f = a->free[i];

            a->free[i] = f->next;
            free(f);
        }
    }
    if (a->base)
        munmap(a->base, a->size);
    hed_lock_fini(&a->lock);
}

static int
class_of(size_t size)
{
    int class = 0;

    while (class < HED_REGION_CLASSES && HED_REGION_LEAST << class < size)
        class ++;
    return class;
}

static unsigned char *
reuse(struct hed_regions *a, int class)
{
    struct hed_region_free *f = NULL;
    unsigned char *at = NULL;

    hed_lock(&a->lock);
    f = a->free[class];
    if (f)
        a->free[class] = f->next;
    hed_unlock(&a->lock);
    if (f)
        at = f->at;
    free(f);
    return at;
}

int
hed_region_take(struct hed_regions *a, size_t size, struct hed_region *out)
{
    const int class = class_of(size);

    if (class == HED_REGION_CLASSES)
        return HED_ENOMEM;
    out->size = HED_REGION_LEAST << class;
    out->at = reuse(a, class);
    if (out->at)
        return 0;
    hed_lock(&a->lock);
    if (out->size <= a->size - a->used) {
        out->at = a->base + a->used;
        a->used += out->size;
    }
    hed_unlock(&a->lock);
    if (!out->at)
        return HED_ENOMEM;
    /* A piece that fails here is lost: the system is out of memory or of mappings. */
    return mprotect(out->at, out->size, PROT_READ | PROT_WRITE) == 0 ? 0 : HED_ENOMEM;
}

void
hed_region_give(struct hed_regions *a, struct hed_region *r)
{
    struct hed_region_free *f = malloc(sizeof *f);
    const int class = class_of(r->size);

    madvise(r->at, r->size, MADV_DONTNEED);
    if (!f)
        return; /* The addresses are lost; there are many. */
    f->at = r->at;
    hed_lock(&a->lock);
    f->next = a->free[class];
    a->free[class] = f;
    hed_unlock(&a->lock);
    r->at = NULL;
}
