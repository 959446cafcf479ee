/* Address space for stacks and shared memory. See region.h.
 *
 * Pieces are cut off the front of the range and never joined again, since sizes repeat from launch
 * to launch. A free piece is remembered outside of it, so that its pages can be released. Windows
 * are cut off its end, so that the pieces before them need not be aligned.
 */
#include "kernel/engine/region.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"

#define SHARE 4 /* the part that we take of a range that is smaller than wanted */
#define LEAST_RANGE ((size_t)256 << 20) /* bytes; with less, the engine does not start */

struct hed_region_free {
    struct hed_region_free *next;
    unsigned char *at;
};

void
hed_regions_init_at(struct hed_regions *a, uint64_t base, size_t size)
{
    hed_lock_init(&a->lock, HED_RANK_REGION);
    a->base = (unsigned char *)(uintptr_t)base;
    a->size = size;
    a->is_own = false;
    a->used = 0;
    a->end = size;
    a->windows = NULL;
    for (int i = 0; i < HED_REGION_CLASSES; i++)
        a->free[i] = NULL;
}

int
hed_regions_init(struct hed_regions *a, size_t want)
{
    void *p = MAP_FAILED;
    size_t size = want;

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
    hed_regions_init_at(a, (uint64_t)(uintptr_t)p, size);
    a->is_own = true;
    return 0;
}

static void
forget_free(struct hed_region_free **list)
{
    while (*list) {
        struct hed_region_free *f = *list;

        *list = f->next;
        free(f);
    }
}

void
hed_regions_fini(struct hed_regions *a)
{
    for (int i = 0; i < HED_REGION_CLASSES; i++)
        forget_free(&a->free[i]);
    forget_free(&a->windows);
    if (a->is_own)
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
reuse(struct hed_regions *a, struct hed_region_free **list)
{
    struct hed_region_free *f = NULL;
    unsigned char *at = NULL;

    hed_lock(&a->lock);
    f = *list;
    if (f)
        *list = f->next;
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
    out->at = reuse(a, &a->free[class]);
    if (out->at)
        return 0;
    hed_lock(&a->lock);
    if (out->size <= a->end - a->used) {
        out->at = a->base + a->used;
        a->used += out->size;
    }
    hed_unlock(&a->lock);
    if (!out->at)
        return HED_ENOMEM;
    /* A piece that fails here is lost: the system is out of memory or of mappings. */
    return mprotect(out->at, out->size, PROT_READ | PROT_WRITE) == 0 ? 0 : HED_ENOMEM;
}

static void
give_back(struct hed_regions *a, struct hed_region *r, struct hed_region_free **list)
{
    struct hed_region_free *f = malloc(sizeof *f);

    madvise(r->at, r->size, MADV_DONTNEED);
    if (!f)
        return; /* The addresses are lost; there are many. */
    f->at = r->at;
    hed_lock(&a->lock);
    f->next = *list;
    *list = f;
    hed_unlock(&a->lock);
    r->at = NULL;
}

void
hed_region_give(struct hed_regions *a, struct hed_region *r)
{
    give_back(a, r, &a->free[class_of(r->size)]);
}

int
hed_window_take(struct hed_regions *a, struct hed_region *out)
{
    const uintptr_t base = (uintptr_t)a->base;

    out->size = HED_WINDOW;
    out->at = reuse(a, &a->windows);
    if (out->at)
        return 0;
    hed_lock(&a->lock);

    const uintptr_t at = ((base + a->end) & ~(uintptr_t)(HED_WINDOW - 1)) - HED_WINDOW;

    if (a->end >= 2 * HED_WINDOW && at >= base + a->used) {
        a->end = at - base;
        out->at = a->base + a->end;
    }
    hed_unlock(&a->lock);
    return out->at ? 0 : HED_ENOMEM;
}

void
hed_window_give(struct hed_regions *a, struct hed_region *r)
{
    give_back(a, r, &a->windows);
}
