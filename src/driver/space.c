/* The bookkeeping of driver/space.h: all blocks are in one tree, ordered by address, and free
 * blocks also in another, ordered by size.
 *
 * Both are treaps: binary trees that keep the shape of random insertion by giving each node a
 * random priority. Both trees share the block, so that splitting and merging never search twice.
 */
#include "driver/space.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/number.h"

enum tree { BY_ADDRESS, BY_SIZE, TREES };

struct block {
    uint64_t at;
    uint64_t size;
    struct block *kid[TREES][2];
    uint32_t priority;
    bool taken;
};

struct hed_space {
    struct block *root[TREES];
    uint64_t used;
    uint64_t random; /* state of the generator of priorities */
};

static uint32_t
next_priority(struct hed_space *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)s->random;
}

/* Is a before b? In the tree by size, blocks of equal size are ordered by address. */
static bool
is_before(enum tree t, const struct block *a, const struct block *b)
{
    if (t == BY_SIZE && a->size != b->size)
        return a->size < b->size;
    return a->at < b->at;
}

static void
tree_rotate(enum tree t, struct block **link, int up)
{
    struct block *b = *link;
    struct block *kid = b->kid[t][up];

    b->kid[t][up] = kid->kid[t][!up];
    kid->kid[t][!up] = b;
    *link = kid;
}

static void
tree_insert(enum tree t, struct block **link, struct block *b)
{
    if (!*link) {
        b->kid[t][0] = b->kid[t][1] = NULL;
        *link = b;
        return;
    }

    const int side = is_before(t, *link, b);

    tree_insert(t, &(*link)->kid[t][side], b);
    if ((*link)->kid[t][side]->priority > (*link)->priority)
        tree_rotate(t, link, side);
}

static void
tree_erase(enum tree t, struct block **link, struct block *b)
{
    while (*link != b)
        link = &(*link)->kid[t][is_before(t, *link, b)];
    while (b->kid[t][0] || b->kid[t][1]) {
        struct block *const *kid = b->kid[t];
        const int up = !kid[0] || (kid[1] && kid[1]->priority > kid[0]->priority);

        tree_rotate(t, link, up);
        link = &(*link)->kid[t][!up];
    }
    *link = NULL;
}

static struct block *
new_block(struct hed_space *s, uint64_t at, uint64_t size, bool taken)
{
    struct block *b = calloc(1, sizeof *b);

    if (b)
        *b = (struct block){.at = at, .size = size, .priority = next_priority(s), .taken = taken};
    return b;
}

struct hed_space *
hed_space_create(uint64_t base, uint64_t size)
{
    struct hed_space *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->random = 0x9e3779b97f4a7c15ull;

    struct block *b = new_block(s, base, size, false);

    if (!b) {
        free(s);
        return NULL;
    }
    tree_insert(BY_ADDRESS, &s->root[BY_ADDRESS], b);
    tree_insert(BY_SIZE, &s->root[BY_SIZE], b);
    return s;
}

static void
free_tree(struct block *b)
{
    if (!b)
        return;
    free_tree(b->kid[BY_ADDRESS][0]);
    free_tree(b->kid[BY_ADDRESS][1]);
    free(b);
}

void
hed_space_free(struct hed_space *s)
{
    if (!s)
        return;
    free_tree(s->root[BY_ADDRESS]);
    free(s);
}

/* The block that holds an address, or NULL. */
static struct block *
block_of(const struct hed_space *s, uint64_t address)
{
    struct block *b = s->root[BY_ADDRESS];

    while (b && (address < b->at || address - b->at >= b->size))
        b = b->kid[BY_ADDRESS][address >= b->at];
    return b;
}

/* Turns [at, at + size) of a free block into a taken block of its own; the rest stays free. */
static int
carve_block(struct hed_space *s, struct block *b, uint64_t at, uint64_t size)
{
    const uint64_t end = b->at + b->size;
    struct block *left = at > b->at ? new_block(s, b->at, at - b->at, false) : NULL;
    struct block *right = at + size < end ? new_block(s, at + size, end - at - size, false) : NULL;

    if ((at > b->at && !left) || (at + size < end && !right)) {
        free(left);
        free(right);
        return HED_ENOMEM;
    }
    tree_erase(BY_SIZE, &s->root[BY_SIZE], b);
    tree_erase(BY_ADDRESS, &s->root[BY_ADDRESS], b);
    b->at = at;
    b->size = size;
    b->taken = true;
    tree_insert(BY_ADDRESS, &s->root[BY_ADDRESS], b);
    for (int i = 0; i < 2; i++) {
        struct block *rest = i ? right : left;

        if (rest) {
            tree_insert(BY_ADDRESS, &s->root[BY_ADDRESS], rest);
            tree_insert(BY_SIZE, &s->root[BY_SIZE], rest);
        }
    }
    s->used += size;
    return 0;
}

/* The smallest free block, of at least `size` bytes, in which an aligned piece fits. */
static struct block *
best_fit(struct block *b, uint64_t size, uint64_t align)
{
    if (!b)
        return NULL;
    if (b->size >= size) {
        struct block *smaller = best_fit(b->kid[BY_SIZE][0], size, align);
        const uint64_t skip = -b->at & (align - 1);

        if (smaller)
            return smaller;
        if (skip <= b->size - size)
            return b;
    }
    return best_fit(b->kid[BY_SIZE][1], size, align);
}

int
hed_space_take(struct hed_space *s, uint64_t size, uint64_t align, uint64_t *out)
{
    if (size == 0 || (align & (align - 1)))
        return HED_EINVAL;
    if (align < HED_SPACE_ALIGN)
        align = HED_SPACE_ALIGN;
    if (size > UINT64_MAX - HED_SPACE_ALIGN)
        return HED_ELIMIT;
    size = hed_round_up(size, HED_SPACE_ALIGN);

    struct block *b = best_fit(s->root[BY_SIZE], size, align);

    if (!b)
        return HED_ELIMIT;

    const uint64_t at = b->at + (-b->at & (align - 1));
    const int err = carve_block(s, b, at, size);

    if (!err)
        *out = at;
    return err;
}

int
hed_space_take_at(struct hed_space *s, uint64_t at, uint64_t size)
{
    struct block *b = block_of(s, at);

    if (size == 0 || at % HED_SPACE_ALIGN || size % HED_SPACE_ALIGN)
        return HED_EINVAL;
    if (!b || b->taken || size > b->at + b->size - at)
        return HED_EEXIST;
    return carve_block(s, b, at, size);
}

/* Joins a free block with the one right after it, if that is free too. */
static void
join_free_blocks(struct hed_space *s, struct block *b, struct block *after)
{
    tree_erase(BY_SIZE, &s->root[BY_SIZE], b);
    tree_erase(BY_SIZE, &s->root[BY_SIZE], after);
    tree_erase(BY_ADDRESS, &s->root[BY_ADDRESS], after);
    b->size += after->size; /* its position in the tree by address does not change */
    free(after);
    tree_insert(BY_SIZE, &s->root[BY_SIZE], b);
}

int
hed_space_give(struct hed_space *s, uint64_t at)
{
    struct block *b = block_of(s, at);

    if (!b || !b->taken || b->at != at)
        return HED_ENOTFOUND;
    s->used -= b->size;
    b->taken = false;
    tree_insert(BY_SIZE, &s->root[BY_SIZE], b);

    struct block *after = block_of(s, b->at + b->size);
    struct block *prior = block_of(s, b->at - 1);

    if (after && !after->taken)
        join_free_blocks(s, b, after);
    if (prior && !prior->taken)
        join_free_blocks(s, prior, b);
    return 0;
}

bool
hed_space_find(struct hed_space *s, uint64_t address, uint64_t *at, uint64_t *size)
{
    const struct block *b = block_of(s, address);

    if (!b || !b->taken)
        return false;
    *at = b->at;
    *size = b->size;
    return true;
}

uint64_t
hed_space_used(struct hed_space *s)
{
    return s->used;
}
