/* The bookkeeping of driver/memory/blocks.h.
 *
 *   take: charge, take addresses (locked) --> map (not locked) --> into the list (locked)
 *   give: out of the list (locked) --> unmap (not locked) --> addresses, discharge (locked)
 */
#include "driver/memory/blocks.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "core/usage.h"
#include "driver/memory/memory.h"
#include "driver/shared.h"

#define BLOCK (2u << 20)       /* bytes in a block that small allocations share */
#define KEPT_BLOCK (32u << 20) /* bytes; a pool grows by multiples of this */
#define SMALL (BLOCK / 2)      /* bytes; larger allocations get a block of their own */
#define SPARE_PART 128         /* spare blocks are at most this part of a device */

static void
tell_used(const struct hed_device *dev)
{
    hed_shared_memory(dev->driver, dev->ordinal, dev->used);
    hed_usage_set(dev->ordinal, HED_USAGE_BY_DRIVER, dev->used, 0);
}

bool
hed_device_charge(struct hed_device *dev, uint64_t bytes)
{
    if (!dev)
        return true;
    if (bytes > dev->info.profile.memory - dev->used)
        return false;
    dev->used += bytes;
    tell_used(dev);
    return true;
}

void
hed_device_discharge(struct hed_device *dev, uint64_t bytes)
{
    if (!dev)
        return;
    dev->used -= bytes;
    tell_used(dev);
}

void
hed_blocks_init(struct hed_blocks *b, struct hed_driver *d, struct hed_space *space,
                struct hed_device *payer, bool keeps)
{
    const uint64_t unit = payer && space == payer->space ? d->machine->memory.map_unit : 0;
    const uint64_t most = payer ? payer->info.profile.memory / SPARE_PART : UINT64_MAX;

    *b = (struct hed_blocks){.driver = d,
                             .space = space,
                             .payer = payer,
                             .keeps = keeps,
                             .spare_most = hed_min(d->machine->memory.keep, most),
                             .unit = unit > HED_MACHINE_PAGE ? unit : HED_MACHINE_PAGE};
}

uint64_t
hed_blocks_round(uint64_t size)
{
    return size > UINT64_MAX / 2 ? UINT64_MAX / 2 : hed_align_up(size, KEPT_BLOCK);
}

static void
list_locked(struct hed_memory_block **list, struct hed_memory_block *k)
{
    k->next = *list;
    k->link = list;
    if (k->next)
        k->next->link = &k->next;
    *list = k;
}

static void
unlist_locked(struct hed_memory_block *k)
{
    if (!k->link)
        return;
    *k->link = k->next;
    if (k->next)
        k->next->link = k->link;
    k->link = NULL;
}

/* Cuts a piece from a block that exists already. */
static struct hed_memory_block *
cut_locked(struct hed_blocks *b, uint64_t size, uint64_t align, uint64_t *at)
{
    struct hed_memory_block *next;

    for (struct hed_memory_block *k = b->open; k; k = next) {
        next = k->next;
        if (k->room < size)
            continue;
        if (hed_space_take(k->pieces, size, align, at) == 0) {
            k->used += size;
            if (k->used == k->size) {
                unlist_locked(k);
                list_locked(&b->full, k);
            }
            return k;
        }
        k->room = size - HED_SPACE_ALIGN;
    }
    return NULL;
}

/* Charges a block to its payer; false if the device does not have that much. */
static bool
pay_locked(struct hed_blocks *b, uint64_t size)
{
    if (b->limit && (b->reserved > b->limit || size > b->limit - b->reserved))
        return false;
    if (!hed_device_charge(b->payer, size))
        return false;
    b->reserved += size;
    if (b->reserved > b->reserved_high)
        b->reserved_high = b->reserved;
    return true;
}

static void
unpay_locked(struct hed_blocks *b, uint64_t size)
{
    hed_device_discharge(b->payer, size);
    b->reserved -= size;
}

/* Reserves addresses for a new block and charges it. */
static CUresult
reserve_block_locked(struct hed_blocks *b, struct hed_memory_block *k, uint64_t align)
{
    if (!pay_locked(b, k->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (hed_space_take(b->space, k->size, align, &k->at) != 0) {
        unpay_locked(b, k->size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static void
release_block_locked(struct hed_blocks *b, struct hed_memory_block *k, bool paid)
{
    (void)hed_space_give(b->space, k->at);
    if (paid)
        unpay_locked(b, k->size);
}

/* ---- spare blocks ---------------------------------------------------------------------------- */

/* Turns an empty block, which is charged and in no list, into a spare one, if more are allowed. */
static bool
spare_locked(struct hed_blocks *b, struct hed_memory_block *k)
{
    /* Others can still see what a shared block held, and would see what it holds next. */
    if (k->share || k->size > b->spare_most - b->spare_bytes)
        return false;
    unpay_locked(b, k->size);
    b->spare_bytes += k->size;
    list_locked(&b->spare, k);
    return true;
}

/* A spare block that fits, charged again and in no list; NULL if there is none. */
static struct hed_memory_block *
unspare_locked(struct hed_blocks *b, uint64_t size, uint64_t align, bool alone)
{
    for (struct hed_memory_block *k = b->spare; k; k = k->next) {
        if (k->size != size || k->at % align || alone != (k->pieces == NULL))
            continue;
        if (!pay_locked(b, size))
            return NULL;
        unlist_locked(k);
        b->spare_bytes -= size;
        return k;
    }
    return NULL;
}

static void
free_block(struct hed_memory_block *k)
{
    if (k->share) {
        struct hed_driver *d = k->owner->driver;

        if (k->share->memory)
            d->machine->memory.physical_free(d->machine_state, k->share->memory);
        if (k->share->fd >= 0)
            close(k->share->fd);
        free(k->share);
    }
    hed_space_free(k->pieces);
    free(k);
}

static int
map_block(struct hed_blocks *b, const struct hed_memory_block *k)
{
    const struct hed_machine_memory *memory = &b->driver->machine->memory;
    void *m = b->driver->machine_state;

    return b->file ? memory->physical_map(m, b->file, k->at - b->file_base, k->at, k->size)
                   : memory->map(m, k->at, k->size);
}

/* Makes a new block: mapped, and in no list. */
static CUresult
map_new_block(struct hed_blocks *b, uint64_t size, uint64_t align, bool alone,
              struct hed_memory_block **out)
{
    struct hed_driver *d = b->driver;
    struct hed_memory_block *k = calloc(1, sizeof *k);

    if (!k)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *k = (struct hed_memory_block){.owner = b, .size = size, .room = size};
    hed_lock(&d->memory_lock);

    const CUresult r = reserve_block_locked(b, k, align);

    hed_unlock(&d->memory_lock);
    if (r != CUDA_SUCCESS) {
        free(k);
        return r;
    }
    k->pieces = alone ? NULL : hed_space_create(k->at, k->size);

    const int err = !alone && !k->pieces ? HED_ENOMEM : map_block(b, k);

    if (err) {
        hed_lock(&d->memory_lock);
        release_block_locked(b, k, true);
        hed_unlock(&d->memory_lock);
        free_block(k);
        return hed_memory_refused(err);
    }
    *out = k;
    return CUDA_SUCCESS;
}

/* Frees an empty block that is in no list. */
static void
drop_block(struct hed_memory_block *k, bool paid)
{
    struct hed_blocks *b = k->owner;
    struct hed_driver *d = b->driver;

    d->machine->memory.unmap(d->machine_state, k->at, k->size);
    if (b->file)
        d->machine->memory.physical_discard(d->machine_state, b->file, k->at - b->file_base,
                                            k->size);
    hed_lock(&d->memory_lock);
    release_block_locked(b, k, paid);
    hed_unlock(&d->memory_lock);
    free_block(k);
}

static CUresult
take_alone(struct hed_blocks *b, uint64_t size, uint64_t align, uint64_t *at, uint64_t *taken,
           struct hed_memory_block **block)
{
    struct hed_memory_block *k;
    const uint64_t whole = hed_align_up(size, b->unit);
    const uint64_t at_least = align > BLOCK ? align : BLOCK;

    hed_lock(&b->driver->memory_lock);
    k = b->spare ? unspare_locked(b, whole, at_least, true) : NULL;
    hed_unlock(&b->driver->memory_lock);

    const CUresult r = k ? CUDA_SUCCESS : map_new_block(b, whole, at_least, true, &k);

    if (r != CUDA_SUCCESS)
        return r;
    k->used = whole;
    *at = k->at;
    *taken = whole;
    *block = k;
    return CUDA_SUCCESS;
}

CUresult
hed_blocks_take(struct hed_blocks *b, uint64_t size, uint64_t align, uint64_t *at, uint64_t *taken,
                struct hed_memory_block **block)
{
    if (align < HED_SPACE_ALIGN)
        align = HED_SPACE_ALIGN;
    if (size == 0 || size > UINT64_MAX / 2 || align > UINT32_MAX || (align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!b->keeps && (size > SMALL || align > SMALL))
        return take_alone(b, size, align, at, taken, block);
    size = hed_align_up(size, HED_SPACE_ALIGN);

    const uint64_t step = b->keeps ? KEPT_BLOCK : b->unit > BLOCK ? b->unit : BLOCK;
    const uint64_t at_least = align > BLOCK ? align : BLOCK;

    hed_lock(&b->driver->memory_lock);

    struct hed_memory_block *k = cut_locked(b, size, align, at);

    if (!k && b->spare) {
        k = unspare_locked(b, hed_align_up(size, step), at_least, false);
        if (k) {
            list_locked(&b->open, k);
            k = cut_locked(b, size, align, at);
        }
    }
    hed_unlock(&b->driver->memory_lock);
    if (!k) {
        const CUresult r = map_new_block(b, hed_align_up(size, step), at_least, false, &k);

        if (r != CUDA_SUCCESS)
            return r;
        hed_lock(&b->driver->memory_lock);
        list_locked(&b->open, k);
        /* The new block comes first in the list, and fits, unless there is no memory to note it. */
        k = cut_locked(b, size, align, at);
        hed_unlock(&b->driver->memory_lock);
        if (!k)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *taken = size;
    *block = k;
    return CUDA_SUCCESS;
}

/* Takes a block that nobody needs out of the lists; false if it stays. */
static bool
retire_block_locked(struct hed_memory_block *k)
{
    struct hed_blocks *b = k->owner;

    if (k->used || k->pins || (k->pieces && b->keeps && b->reserved <= b->keep))
        return false;
    unlist_locked(k);
    return !spare_locked(b, k);
}

void
hed_blocks_give(struct hed_memory_block *k, uint64_t at, uint64_t taken)
{
    struct hed_blocks *b = k->owner;
    struct hed_driver *d = b->driver;

    hed_lock(&d->memory_lock);
    if (k->pieces) {
        (void)hed_space_give(k->pieces, at);
        unlist_locked(k);
        list_locked(&b->open, k);
    }
    k->used -= taken;
    k->room = k->size - k->used;

    const bool drop = retire_block_locked(k);

    hed_unlock(&d->memory_lock);
    if (drop)
        drop_block(k, true);
}

void
hed_blocks_pin_locked(struct hed_memory_block *k)
{
    k->pins++;
}

void
hed_blocks_unpin(struct hed_memory_block *k)
{
    struct hed_driver *d = k->owner->driver;

    hed_lock(&d->memory_lock);
    k->pins--;

    const bool drop = retire_block_locked(k);

    hed_unlock(&d->memory_lock);
    if (drop)
        drop_block(k, true);
}

static void
drop_all(struct hed_memory_block *k, bool paid)
{
    struct hed_memory_block *next;

    for (; k; k = next) {
        next = k->next;
        drop_block(k, paid);
    }
}

void
hed_blocks_trim(struct hed_blocks *b, uint64_t keep)
{
    struct hed_memory_block *empty = NULL;
    struct hed_memory_block *spare;
    struct hed_memory_block *next;

    hed_lock(&b->driver->memory_lock);

    uint64_t left = b->reserved;

    for (struct hed_memory_block *k = b->open; k && left > keep; k = next) {
        next = k->next;
        if (k->used || k->pins)
            continue;
        left -= k->size;
        unlist_locked(k);
        k->next = empty;
        empty = k;
    }
    spare = b->spare;
    b->spare = NULL;
    b->spare_bytes = 0;
    hed_unlock(&b->driver->memory_lock);
    drop_all(empty, true);
    drop_all(spare, false);
}

void
hed_blocks_fini(struct hed_blocks *b)
{
    struct hed_memory_block **lists[] = {&b->open, &b->full, &b->spare};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        while (*lists[i]) {
            struct hed_memory_block *k = *lists[i];

            unlist_locked(k);
            free_block(k);
        }
    }
}
