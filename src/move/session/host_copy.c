/* Contents of device memory in memory of this process, for programs that are swapped out or moved.
 * See contents.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/err.h"
#include "base/meminfo.h"
#include "base/number.h"
#include "move/session/contents.h"

#define ROUND ((uint64_t)2 << 20) /* bytes; a huge page */

struct host_extent {
    struct hed_snap_extent about; /* its name is owned */
    uint64_t at;                  /* where its bytes begin */
};

struct hed_remote_host_copy {
    char *memory;
    uint64_t room, bytes;
    struct host_extent *all;
    size_t count;
};

static int
get_room(struct hed_remote_host_copy *h, uint64_t bytes, struct hed_why *why)
{
    const uint64_t room = hed_round_up(bytes ? bytes : 1, ROUND);
    char *p;

    if (room <= h->room)
        return 0;
    if (room - h->room > hed_memory_available()) {
        hed_why_set(why,
                    "%llu MiB of device memory do not fit into the free memory of this machine",
                    (unsigned long long)(room >> 20));
        return HED_ENOMEM;
    }
    p = h->memory ? mremap(h->memory, h->room, room, MREMAP_MAYMOVE)
                  : mmap(NULL, room, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        hed_why_set(why, "not enough memory for the contents of the device");
        return HED_ENOMEM;
    }
    (void)madvise(p, room, MADV_HUGEPAGE); /* a hint */
    h->memory = p;
    h->room = room;
    return 0;
}

int
hed_remote_host_copy_make(struct hed_remote_pump *p, uint64_t bytes,
                          struct hed_remote_host_copy **out, struct hed_why *why)
{
    struct hed_remote_host_copy *h = calloc(1, sizeof *h);
    int err = h ? get_room(h, bytes, why) : HED_ENOMEM;

    if (err) {
        free(h);
        return err;
    }
    hed_remote_pump_touch(p, h->memory, h->room);
    *out = h;
    return 0;
}

static void
forget_host_extents(struct hed_remote_host_copy *h)
{
    for (size_t i = 0; i < h->count; i++)
        free((void *)(uintptr_t)h->all[i].about.name);
    free(h->all);
    h->all = NULL;
    h->count = 0;
}

void
hed_remote_host_copy_free(struct hed_remote_host_copy *h)
{
    if (!h)
        return;
    forget_host_extents(h);
    if (h->memory)
        (void)munmap(h->memory, h->room);
    free(h);
}

uint64_t
hed_remote_host_copy_bytes(const struct hed_remote_host_copy *h)
{
    return h ? h->bytes : 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int
plan_host_copy(struct hed_remote_host_copy *h, const struct hed_remote_extents *x,
               struct hed_why *why)
{
    forget_host_extents(h);
    h->bytes = 0;
    h->all = calloc(x->count + 1, sizeof *h->all);
    if (!h->all)
        return HED_ENOMEM;
    for (size_t i = 0; i < x->count; i++) {
        h->all[i] = (struct host_extent){.about = x->all[i].about, .at = h->bytes};
        h->all[i].about.name = strdup(x->all[i].about.name);
        h->count++;
        if (!h->all[i].about.name)
            return HED_ENOMEM;
        h->bytes = hed_round_up(h->bytes + x->all[i].about.size, 64);
    }
    return get_room(h, h->bytes, why);
}

/* Copies to memory that is not read soon, so that it does not pass through the caches: that takes a
 * third of the memory's time. */
static void
copy_past_caches(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    if ((uintptr_t)to % 16 == 0 && (uintptr_t)from % 16 == 0) {
        const size_t whole = n / sizeof(__m128i);
        const __m128i *x = from;
        __m128i *y = to;

        for (size_t i = 0; i < whole; i++)
            _mm_stream_si128(y + i, _mm_load_si128(x + i));
        _mm_sfence();
        memcpy(y + whole, x + whole, n % sizeof(__m128i));
        return;
    }
#endif
    memcpy(to, from, n);
}

struct copying {
    struct hed_remote_host_copy *host_copy;
    struct hed_remote_moved *moved;
};

static int
keep_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    struct copying *k = arg;

    (void)why;
    copy_past_caches(k->host_copy->memory + k->host_copy->all[c->id].at + c->offset, data, c->size);
    /* Relaxed: a counter. */
    atomic_fetch_add_explicit(&k->moved->bytes, c->size, memory_order_relaxed);
    return 0;
}

int
hed_remote_host_copy_take(struct hed_remote_host_copy *h, struct hed_remote *r,
                          struct hed_remote_pump *p, bool rest, struct hed_remote_moved *moved,
                          struct hed_why *why)
{
    struct copying k = {h, moved};
    struct hed_remote_chunk *chunks = NULL;
    struct hed_remote_extents x;
    int err = hed_remote_extents_list(r, &x, why);

    if (err)
        return err;
    if (rest)
        hed_remote_extents_rest(&x);
    err = plan_host_copy(h, &x, why);
    if (!err && !(chunks = calloc(x.chunks + 1, sizeof *chunks)))
        err = HED_ENOMEM;
    if (!err) {
        hed_remote_extents_cut(&x, chunks);
        err = hed_remote_pump_read(p, chunks, x.chunks, keep_chunk, &k, why);
    }
    free(chunks);
    hed_remote_extents_free(&x);
    return err;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static bool
is_same_extent(const struct hed_snap_extent *a, const struct hed_snap_extent *b)
{
    return a->kind == b->kind && a->device == b->device && a->key == b->key &&
           a->context == b->context && a->size == b->size && strcmp(a->name, b->name) == 0;
}

/* Lists made at two workers are in the same order. */
const char *
hed_remote_host_copy_find(const struct hed_remote_host_copy *h, const struct hed_remote_chunk *c)
{
    if (c->id >= h->count || !is_same_extent(&h->all[c->id].about, &c->extent->about))
        return NULL;
    return h->memory + h->all[c->id].at + c->offset;
}
