/* The table of layers/watch/table.h: open addressing. Removing a block moves later ones forward, so
 * there are no tombstones. */
#include "layers/watch/table.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 256

void
watch_table_init(struct watch_table *t)
{
    memset(t, 0, sizeof *t);
    hed_lock_init(&t->lock, HED_RANK_WATCHED);
}

void
watch_table_fini(struct watch_table *t)
{
    free(t->slots);
    hed_lock_fini(&t->lock);
}

static size_t
home_of(const struct watch_table *t, uint32_t kind, uint64_t address)
{
    const uint64_t h = (address ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h >> 32) & (t->size - 1);
}

/* The slot of the block, or the free one where it would be. There is always a free one. */
static struct watch_block *
find_block(const struct watch_table *t, uint32_t kind, uint64_t address)
{
    size_t i = home_of(t, kind, address);

    while (t->slots[i].kind && (t->slots[i].kind != kind || t->slots[i].item.address != address))
        i = (i + 1) & (t->size - 1);
    return &t->slots[i];
}

static bool
grow_blocks(struct watch_table *t)
{
    const struct watch_table old = *t;
    const size_t size = t->size ? t->size * 2 : FIRST_SIZE;
    struct watch_block *slots = calloc(size, sizeof *slots);

    if (!slots)
        return false;
    t->slots = slots;
    t->size = size;
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].kind)
            *find_block(t, old.slots[i].kind, old.slots[i].item.address) = old.slots[i];
    free(old.slots);
    return true;
}

static void
remove_block(struct watch_table *t, struct watch_block *b)
{
    size_t hole = (size_t)(b - t->slots);

    t->live--;
    t->bytes -= b->bytes;
    for (size_t i = (hole + 1) & (t->size - 1); t->slots[i].kind; i = (i + 1) & (t->size - 1)) {
        const size_t home = home_of(t, t->slots[i].kind, t->slots[i].item.address);

        /* It may move to the hole if its home is not between the two. */
        if (((i - home) & (t->size - 1)) >= ((i - hole) & (t->size - 1))) {
            t->slots[hole] = t->slots[i];
            hole = i;
        }
    }
    t->slots[hole].kind = 0;
}

bool
watch_table_put(struct watch_table *t, const struct watch_block *b)
{
    bool good = true;

    hed_lock_brief(&t->lock);
    if ((t->live + 1) * 4 > t->size * 3)
        good = grow_blocks(t);
    if (good) {
        struct watch_block *at = find_block(t, b->kind, b->item.address);

        if (at->kind) {
            remove_block(t, at);
            at = find_block(t, b->kind, b->item.address);
        }
        *at = *b;
        at->item.bytes = b->bytes;
        if (!at->item.serial)
            at->item.serial = ++t->serial;
        t->live++;
        t->bytes += b->bytes;
        t->peak = t->bytes > t->peak ? t->bytes : t->peak;
    }
    hed_unlock_brief(&t->lock);
    return good;
}

bool
watch_table_share(struct watch_table *t, uint32_t kind, uint64_t address)
{
    bool found = false;

    hed_lock_brief(&t->lock);
    if (t->size) {
        struct watch_block *b = find_block(t, kind, address);

        found = b->kind != 0;
        b->refs += found;
    }
    hed_unlock_brief(&t->lock);
    return found;
}

bool
watch_table_take(struct watch_table *t, uint32_t kind, uint64_t address, struct watch_block *out)
{
    bool taken = false;

    hed_lock_brief(&t->lock);
    if (t->size) {
        struct watch_block *b = find_block(t, kind, address);

        if (b->kind && --b->refs == 0) {
            *out = *b;
            out->refs = 1;
            remove_block(t, b);
            taken = true;
        }
    }
    hed_unlock_brief(&t->lock);
    return taken;
}

static size_t
count_blocks(const struct watch_table *t, CUcontext context)
{
    size_t n = 0;

    for (size_t i = 0; context && i < t->size; i++)
        n += t->slots[i].kind && t->slots[i].context == context;
    return n;
}

void
watch_table_take_context(struct watch_table *t, CUcontext context, struct watch_taken *out)
{
    *out = (struct watch_taken){.blocks = NULL};
    hed_lock(&t->lock);

    const size_t n = count_blocks(t, context);

    if (n)
        out->blocks = calloc(n, sizeof *out->blocks);
    /* Removing may move another block into the slot, which is then looked at, too. */
    for (size_t i = 0; n && i < t->size;) {
        if (!t->slots[i].kind || t->slots[i].context != context) {
            i++;
            continue;
        }
        if (out->blocks)
            out->blocks[out->count++] = t->slots[i];
        remove_block(t, &t->slots[i]);
    }
    hed_unlock(&t->lock);
}

void
watch_table_put_back(struct watch_table *t, const struct watch_taken *taken)
{
    for (size_t i = 0; i < taken->count; i++)
        (void)watch_table_put(t, &taken->blocks[i]);
}

void
watch_taken_free(struct watch_taken *taken)
{
    free(taken->blocks);
    *taken = (struct watch_taken){.blocks = NULL};
}

static int
compare_serials(const void *a, const void *b)
{
    const struct hed_control_memory *x = a, *y = b;

    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Puts the item at `i` of a heap, whose largest serial is the first, where it belongs. */
static void
sift_down(struct hed_control_memory *heap, size_t i, size_t n)
{
    for (size_t child = 2 * i + 1; child < n; i = child, child = 2 * i + 1) {
        const struct hed_control_memory item = heap[i];

        child += child + 1 < n && heap[child + 1].serial > heap[child].serial;
        if (heap[child].serial <= item.serial)
            return;
        heap[i] = heap[child];
        heap[child] = item;
    }
}

size_t
watch_table_list(struct watch_table *t, uint64_t after, struct hed_control_memory *out, size_t room)
{
    size_t n = 0;

    hed_lock(&t->lock);
    for (size_t i = 0; room && i < t->size; i++) {
        const struct hed_control_memory *item = &t->slots[i].item;

        if (!t->slots[i].kind || item->serial <= after)
            continue;
        if (n < room) {
            out[n++] = *item;
            for (size_t k = n / 2; n == room && k-- > 0;)
                sift_down(out, k, n);
        } else if (item->serial < out[0].serial) {
            out[0] = *item; /* the latest of those that are there makes room */
            sift_down(out, 0, n);
        }
    }
    hed_unlock(&t->lock);
    if (n)
        qsort(out, n, sizeof *out, compare_serials);
    return n;
}

struct watch_totals
watch_table_totals(struct watch_table *t)
{
    hed_lock(&t->lock);

    const struct watch_totals totals = {t->serial, t->live, t->bytes, t->peak};

    hed_unlock(&t->lock);
    return totals;
}
