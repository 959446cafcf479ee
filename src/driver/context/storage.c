/* Context-local storage: values that runtimes keep in a context, by key, with a destructor.
 *
 * NVIDIA's runtime looks up a value on every call, so each thread remembers the last few that it
 * found. They stay valid until anything is put, removed or cleared anywhere (`epoch`), which
 * happens a few times in the life of a program.
 */
#include <stdlib.h>

#include "driver/context/context.h"

#define REMEMBERED 4     /* small, because thread-local memory of a plug-in is scarce */
#define ENTRIES_MAX 4096 /* keys in one context */

struct hed_storage {
    struct hed_storage *next; /* ctx->storage; guarded by ctx->lock */
    void *key;
    void *value;
    hed_storage_dtor dtor;
};

static _Atomic uint64_t epoch = 1;

struct memory {
    uint64_t epoch; /* 0: empty */
    const struct hed_context *ctx;
    void *key;
    void *value;
};

static _Thread_local struct memory remembered[REMEMBERED];

static struct memory *
thread_cache_entry(const struct hed_context *c, const void *key)
{
    /* Both are addresses: multiplying by the golden ratio moves the bits that differ to the top. */
    const uint64_t mixed = ((uintptr_t)c ^ (uintptr_t)key) * 0x9e3779b97f4a7c15ull;

    return &remembered[(mixed >> 32) % REMEMBERED];
}

/* Release: pairs with the acquire in hed_storage_get(); its reader then searches the list again. */
static void
storage_changed(void)
{
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
}

static struct hed_storage *
find_storage_locked(const struct hed_context *c, const void *key, unsigned *count)
{
    *count = 0;
    for (struct hed_storage *s = c->storage; s; s = s->next, ++*count)
        if (s->key == key)
            return s;
    return NULL;
}

CUresult
hed_storage_put(struct hed_context *c, void *key, void *value, hed_storage_dtor dtor)
{
    struct hed_storage *fresh = malloc(sizeof *fresh);
    unsigned count;
    CUresult r = CUDA_SUCCESS;

    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fresh = (struct hed_storage){NULL, key, value, dtor};
    hed_lock(&c->lock);

    struct hed_storage *s = find_storage_locked(c, key, &count);

    if (s) {
        r = CUDA_ERROR_INVALID_HANDLE;
    } else if (count >= ENTRIES_MAX) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        fresh->next = c->storage;
        c->storage = fresh;
        fresh = NULL;
        storage_changed();
    }
    hed_unlock(&c->lock);
    free(fresh);
    return r;
}

CUresult
hed_storage_get(struct hed_context *c, void *key, void **value)
{
    const uint64_t now = atomic_load_explicit(&epoch, memory_order_acquire);
    struct memory *m = thread_cache_entry(c, key);
    unsigned count;

    if (__builtin_expect(m->epoch == now && m->ctx == c && m->key == key, 1)) {
        *value = m->value;
        return CUDA_SUCCESS;
    }
    hed_lock(&c->lock);

    const struct hed_storage *s = find_storage_locked(c, key, &count);

    if (s) {
        *value = s->value;
        /* This is the epoch from before the search: a change since then invalidates the entry at
         * once. */
        *m = (struct memory){now, c, key, s->value};
    }
    hed_unlock(&c->lock);
    return s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
hed_storage_remove(struct hed_context *c, void *key)
{
    struct hed_storage *found = NULL;

    hed_lock(&c->lock);
    for (struct hed_storage **at = &c->storage; *at; at = &(*at)->next)
        if ((*at)->key == key) {
            found = *at;
            *at = found->next;
            storage_changed();
            break;
        }
    hed_unlock(&c->lock);
    free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void
hed_storage_clear(struct hed_context *c)
{
    for (;;) {
        hed_lock(&c->lock);

        struct hed_storage *s = c->storage;

        if (s) {
            c->storage = s->next;
            storage_changed();
        }
        hed_unlock(&c->lock);
        if (!s)
            return;
        if (s->dtor)
            s->dtor(hed_context_handle(c), s->key, s->value);
        free(s);
    }
}
