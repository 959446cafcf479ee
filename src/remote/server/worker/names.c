/* The client's names and the backend's handles for the same objects. See worker.h.
 *
 *     63      56 55             32 31            4 3   0
 *     |  kind   |   generation    |   index       |  0  |      a name (the client's handle)
 *
 * There is one table per kind, in chunks that are allocated when first needed, so a lookup is two
 * array accesses. The index of older clients fills the whole low half; hed_name_slot() gives names
 * of both forms places of their own. A name with another generation than the bound one is not
 * found.
 *
 * A thread of the client may name a new object before another thread's message about the old object
 * of the same index has come. Such names wait in a list of their own until the entry is free.
 *
 * Names are bound and forgotten under a lock, because calls that block do so after they have passed
 * the ticket on. A lookup takes no lock: it reads the entry's name before and after the handle, so
 * the handle is the one that the name stood for at that time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/lock.h"
#include "remote/server/worker/worker.h"

#define KINDS 256
#define CHUNK 1024u                     /* names per chunk */
#define CHUNKS (HED_NAME_SLOTS / CHUNK) /* per kind */
#define OTHERS_MAX 4096u                /* a client that reuses an index has only a few of them */

struct entry {
    _Atomic uint64_t name; /* 0 if the entry is free */
    _Atomic uint64_t real;
};

struct table {
    _Atomic(struct entry *) chunks[CHUNKS];
};

struct other {
    struct other *next;
    uint64_t name, real;
};

struct hed_names {
    _Atomic(struct table *) kinds[KINDS];
    struct hed_lock lock;          /* rank HED_RANK_CHANNEL; guards changes, and others */
    struct other *others;          /* names whose entry an older name still occupies */
    _Atomic uint32_t others_count; /* 0 saves searching the list */
};

/* 0 and the numbers of the default streams mean the same everywhere. */
static bool
is_plain_name(uint64_t name)
{
    return name <= 2;
}

/* By the number of the kind in a name: enum hed_kind of the client's soft driver. */
static const char *const kinds[] = {
    "",       "context", "stream",    "event",     "module",     "library",  "function",
    "kernel", "graph",   "graphNode", "graphExec", "pool",       "physical", "array",
    "mipmap", "texture", "surface",   "linkState", "userObject",
};

bool
hed_name_fits(uint64_t name, const char *kind)
{
    const size_t number = (size_t)(name >> 56);

    if (is_plain_name(name))
        return name == 0 || strcmp(kind, "stream") == 0;
    if (number == 0 || number >= sizeof kinds / sizeof kinds[0])
        return false;
    /* A kernel can stand for a function. */
    return strcmp(kinds[number], kind) == 0 ||
           (strcmp(kind, "function") == 0 && strcmp(kinds[number], "kernel") == 0);
}

struct hed_names *
hed_names_create(void)
{
    struct hed_names *n = calloc(1, sizeof *n);

    if (n)
        hed_lock_init(&n->lock, HED_RANK_CHANNEL);
    return n;
}

void
hed_names_free(struct hed_names *n)
{
    for (unsigned k = 0; n && k < KINDS; k++) {
        /* Relaxed: no other thread is left. */
        struct table *t = atomic_load_explicit(&n->kinds[k], memory_order_relaxed);

        for (unsigned c = 0; t && c < CHUNKS; c++)
            free(atomic_load_explicit(&t->chunks[c], memory_order_relaxed));
        free(t);
    }
    while (n && n->others) {
        struct other *o = n->others;

        n->others = o->next;
        free(o);
    }
    if (n)
        hed_lock_fini(&n->lock);
    free(n);
}

/* ---- names whose entry is taken -------------------------------------------------------------- */

static int
bind_other_locked(struct hed_names *n, uint64_t name, uint64_t real)
{
    /* Relaxed: under the lock. */
    const bool full = atomic_load_explicit(&n->others_count, memory_order_relaxed) >= OTHERS_MAX;
    struct other *o = full ? NULL : malloc(sizeof *o);

    if (!o)
        return full ? HED_ELIMIT : HED_ENOMEM;
    *o = (struct other){n->others, name, real};
    n->others = o;
    atomic_fetch_add_explicit(&n->others_count, 1, memory_order_relaxed); /* under the lock */
    return 0;
}

static int
look_for_other_locked(struct hed_names *n, uint64_t name, uint64_t *real, bool forget)
{
    struct other **at = &n->others;
    struct other *o;

    while ((o = *at) && o->name != name)
        at = &o->next;
    if (o && real)
        *real = o->real;
    if (o && forget) {
        *at = o->next;
        free(o);
        atomic_fetch_sub_explicit(&n->others_count, 1, memory_order_relaxed); /* as above */
    }
    return o ? 0 : HED_ENOTFOUND;
}

static int
look_for_other(struct hed_names *n, uint64_t name, uint64_t *real)
{
    int err;

    /* Relaxed: a name is looked up under a later ticket than it was bound under. */
    if (atomic_load_explicit(&n->others_count, memory_order_relaxed) == 0)
        return HED_ENOTFOUND;
    hed_lock(&n->lock);
    err = look_for_other_locked(n, name, real, false);
    hed_unlock(&n->lock);
    return err;
}

/* ---- all names ------------------------------------------------------------------------------- */

/* The entry of a name. With `make`, which needs the lock, it is allocated. NULL if there is none or
 * no memory. */
static struct entry *
find_name_entry(struct hed_names *n, uint64_t name, bool make)
{
    const uint32_t slot = hed_name_slot(name);
    const uint32_t chunk = slot / CHUNK;

    if (chunk >= CHUNKS)
        return NULL;

    /* Acquire here and below: pairs with the release after the allocation. */
    struct table *t = atomic_load_explicit(&n->kinds[name >> 56], memory_order_acquire);

    if (!t && make && (t = calloc(1, sizeof *t)))
        atomic_store_explicit(&n->kinds[name >> 56], t, memory_order_release);
    if (!t)
        return NULL;

    struct entry *c = atomic_load_explicit(&t->chunks[chunk], memory_order_acquire);

    if (!c && make && (c = calloc(CHUNK, sizeof *c)))
        atomic_store_explicit(&t->chunks[chunk], c, memory_order_release);
    return c ? &c[slot % CHUNK] : NULL;
}

static int
bind_name_locked(struct hed_names *n, uint64_t name, uint64_t real)
{
    struct entry *e = find_name_entry(n, name, true);

    if (!e)
        return HED_ENOMEM;

    /* Relaxed: only changed under the lock. */
    const uint64_t old = atomic_load_explicit(&e->name, memory_order_relaxed);

    if (old == name || look_for_other_locked(n, name, NULL, false) == 0)
        return HED_EEXIST;
    if (old != 0)
        return bind_other_locked(n, name, real);
    /* Release, both: a lookup that sees this handle, from before or after, also sees that the name
     * has changed (hed_name_real). */
    atomic_store_explicit(&e->real, real, memory_order_release);
    atomic_store_explicit(&e->name, name, memory_order_release);
    return 0;
}

int
hed_name_bind(struct hed_names *n, uint64_t name, uint64_t real)
{
    int err;

    if (is_plain_name(name) || hed_name_slot(name) >= HED_NAME_SLOTS)
        return HED_ELIMIT;
    hed_lock(&n->lock);
    err = bind_name_locked(n, name, real);
    hed_unlock(&n->lock);
    return err;
}

int
hed_name_real(struct hed_names *n, uint64_t name, uint64_t *real)
{
    if (is_plain_name(name)) {
        *real = name;
        return 0;
    }

    const struct entry *e = find_name_entry(n, name, false);

    /* Acquire, all: pairs with the releases in bind_name_locked(). A name that is still there
     * afterwards was there when the handle was read. */
    if (!e || atomic_load_explicit(&e->name, memory_order_acquire) != name)
        return look_for_other(n, name, real);

    const uint64_t found = atomic_load_explicit(&e->real, memory_order_acquire);

    if (atomic_load_explicit(&e->name, memory_order_acquire) != name)
        return look_for_other(n, name, real);
    *real = found;
    return 0;
}

int
hed_name_unbind(struct hed_names *n, uint64_t name, uint64_t *real)
{
    int err = 0;

    if (is_plain_name(name))
        return HED_ENOTFOUND;
    hed_lock(&n->lock);

    struct entry *e = find_name_entry(n, name, false);

    /* Relaxed: only changed under the lock. */
    if (!e || atomic_load_explicit(&e->name, memory_order_relaxed) != name) {
        err = look_for_other_locked(n, name, real, true);
    } else {
        if (real)
            *real = atomic_load_explicit(&e->real, memory_order_relaxed);
        /* Release: as in bind_name_locked(). */
        atomic_store_explicit(&e->name, 0, memory_order_release);
    }
    hed_unlock(&n->lock);
    return err;
}
