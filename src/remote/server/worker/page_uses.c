/* See page_uses.h. */
#include "remote/server/worker/page_uses.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/lock.h"

#define PAGE 4096u

struct use_place {
    uint64_t context, stream; /* the client's names */
    uint64_t put;             /* the last number that was put on the stream */
};

struct hed_uses {
    struct hed_lock lock; /* rank HED_RANK_CHANNEL; guards the places */
    struct hed_words words;
    struct use_place places[HED_USES_STREAMS];
};

_Static_assert(HED_USES_STREAMS * sizeof(uint64_t) <= PAGE, "one page");

struct hed_uses *
hed_uses_create(void)
{
    struct hed_uses *u = calloc(1, sizeof *u);
    void *page = u ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                   : MAP_FAILED;

    if (page == MAP_FAILED) {
        free(u);
        return NULL;
    }
    hed_lock_init(&u->lock, HED_RANK_CHANNEL);
    u->words = (struct hed_words){.first = page, .count = PAGE / sizeof(uint64_t)};
    return u;
}

static uint64_t
number_at(const struct hed_uses *u, int place)
{
    /* Acquire: pairs with the write of the stream, which comes after its use of the page. */
    return atomic_load_explicit(&u->words.first[place], memory_order_acquire);
}

int
hed_uses_begin(struct hed_uses *u, uint64_t context, uint64_t stream)
{
    int found = -1;

    hed_lock(&u->lock);
    for (int i = 0; i < HED_USES_STREAMS; i++) {
        const struct use_place *p = &u->places[i];
        const bool idle = number_at(u, i) >= p->put;

        if (!idle && p->context == context && p->stream == stream) {
            found = i;
            break;
        }
        if (idle && found < 0)
            found = i;
    }
    if (found >= 0) {
        u->places[found].context = context;
        u->places[found].stream = stream;
        u->places[found].put++;
    }
    hed_unlock(&u->lock);
    return found;
}

void
hed_uses_end(struct hed_uses *u, struct hed_worker *w, CUstream stream, int place,
             struct hed_page_uses *page)
{
    hed_lock(&u->lock);
    page->last[place] = u->places[place].put;
    hed_unlock(&u->lock);
    /* If this fails, the place counts as used until its context ends, or until a later number. */
    (void)hed_words_write(w, &u->words, stream, (size_t)place, page->last[place]);
}

bool
hed_uses_are_over(const struct hed_uses *u, const struct hed_page_uses *page)
{
    for (int i = 0; i < HED_USES_STREAMS; i++)
        if (number_at(u, i) < page->last[i])
            return false;
    return true;
}

void
hed_uses_context_ended(struct hed_uses *u, uint64_t context)
{
    hed_lock(&u->lock);
    for (int i = 0; i < HED_USES_STREAMS; i++)
        if (u->places[i].context == context && number_at(u, i) < u->places[i].put)
            /* Release: as a stream would. */
            atomic_store_explicit(&u->words.first[i], u->places[i].put, memory_order_release);
    hed_unlock(&u->lock);
}
