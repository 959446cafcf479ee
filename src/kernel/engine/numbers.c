/* See numbers.h. */
#include "kernel/engine/numbers.h"

#include <stdlib.h>

void
hed_numbers_fini(struct hed_numbers *t)
{
    for (unsigned i = 0; i < HED_NUMBERS_PAGES; i++)
        free(atomic_exchange_explicit(&t->pages[i], NULL, memory_order_relaxed));
    t->lowest = t->end = 0;
}

/* NULL if there is no page yet. */
static _Atomic(void *) *
place_of(const struct hed_numbers *t, uint32_t number)
{
    /* Acquire: pairs with the release in make_place_locked(). */
    _Atomic(void *) *page =
        atomic_load_explicit(&t->pages[number / HED_NUMBERS_PAGE], memory_order_acquire);

    return page ? &page[number % HED_NUMBERS_PAGE] : NULL;
}

static _Atomic(void *) *
make_place_locked(struct hed_numbers *t, uint32_t number)
{
    if (!place_of(t, number))
        /* Release: whoever finds the page finds it empty. */
        atomic_store_explicit(&t->pages[number / HED_NUMBERS_PAGE],
                              calloc(HED_NUMBERS_PAGE, sizeof(_Atomic(void *))),
                              memory_order_release);
    return place_of(t, number);
}

uint32_t
hed_numbers_add_locked(struct hed_numbers *t, void *thing)
{
    uint32_t number = t->lowest ? t->lowest : 1;
    _Atomic(void *) *at;

    while (number < t->end && hed_numbers_find(t, number))
        number++;
    at = number < HED_NUMBERS_END ? make_place_locked(t, number) : NULL;
    if (!at)
        return 0;
    /* Release: a kernel that finds it finds all of it. */
    atomic_store_explicit(at, thing, memory_order_release);
    t->lowest = number + 1;
    if (t->end < t->lowest)
        t->end = t->lowest;
    return number;
}

void
hed_numbers_remove_locked(struct hed_numbers *t, uint64_t number)
{
    atomic_store_explicit(place_of(t, (uint32_t)number), NULL, memory_order_relaxed);
    if (number < t->lowest)
        t->lowest = (uint32_t)number;
}

void *
hed_numbers_find(const struct hed_numbers *t, uint64_t number)
{
    _Atomic(void *) *at = number < HED_NUMBERS_END ? place_of(t, (uint32_t)number) : NULL;

    return at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
}
