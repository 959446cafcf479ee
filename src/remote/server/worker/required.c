/* Block sizes that kernels require. See required.h. */
#include "remote/server/worker/required.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/fatbin.h"
#include "remote/server/worker/linked.h"

/* Bytes of one decompressed entry, and of what is read of it. */
#define UNPACKED_MAX ((size_t)1 << 30)

struct one {
    struct one *next;
    uint32_t threads[3];
    char name[];
};

struct hed_required {
    struct one *first;
};

static void
add_required(struct hed_required *r, const char *name, size_t n, const uint32_t threads[3])
{
    struct one *o = malloc(sizeof *o + n + 1);

    if (!o)
        return;
    memcpy(o->threads, threads, sizeof o->threads);
    memcpy(o->name, name, n);
    o->name[n] = '\0';
    o->next = r->first;
    r->first = o;
}

/* ---- PTX ------------------------------------------------------------------------------------- */

static void
read_ptx(struct hed_required *r, struct hed_bytes text)
{
    struct hed_ptx_glance k;
    size_t at = 0;

    while (hed_ptx_next_kernel(text, &at, &k, NULL, 0))
        if (k.required[0])
            add_required(r, (const char *)k.name.data, k.name.size, k.required);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void
read_cubin(struct hed_required *r, struct hed_bytes bytes)
{
    struct hed_arena arena;
    struct hed_cubin c;

    hed_arena_init(&arena, UNPACKED_MAX);
    if (hed_cubin_read(bytes, &arena, &c, NULL) == 0)
        for (uint32_t i = 0; i < c.kernel_count; i++)
            if (c.kernels[i].required_threads[0])
                add_required(r, (const char *)c.kernels[i].name.data, c.kernels[i].name.size,
                             c.kernels[i].required_threads);
    hed_arena_fini(&arena);
}

static void
read_entry(struct hed_required *r, const struct hed_fatbin_entry *e)
{
    struct hed_arena arena;
    struct hed_bytes bytes;

    hed_arena_init(&arena, UNPACKED_MAX);
    if (hed_fatbin_image(e, &arena, &bytes, NULL) == 0) {
        if (e->kind == HED_FATBIN_PTX)
            read_ptx(r, bytes);
        else if (e->kind == HED_FATBIN_CUBIN)
            read_cubin(r, bytes);
    }
    hed_arena_fini(&arena);
}

static void
read_image(struct hed_required *r, struct hed_bytes bytes)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;

    if (hed_cubin_begins(bytes))
        read_cubin(r, bytes);
    else if (hed_fatbin_walk(bytes, &w, NULL) != 0)
        read_ptx(r, hed_bytes_text(bytes));
    else
        while (hed_fatbin_next(&w, &e, NULL) > 0)
            read_entry(r, &e);
}

struct hed_required *
hed_required_read(const void *image, uint64_t size)
{
    struct hed_required *r = calloc(1, sizeof *r);
    struct hed_bytes part;

    if (!r)
        return NULL;
    if (!hed_linked_begins(image, size))
        read_image(r, (struct hed_bytes){image, (size_t)size});
    for (uint32_t i = 0; hed_linked_at(image, size, i, &part); i++)
        read_image(r, part);
    return r;
}

bool
hed_required_find(const struct hed_required *r, const char *name, uint32_t out[3])
{
    for (const struct one *o = r ? r->first : NULL; o; o = o->next) {
        if (strcmp(o->name, name) == 0) {
            memcpy(out, o->threads, sizeof o->threads);
            return true;
        }
    }
    return false;
}

void
hed_required_free(struct hed_required *r)
{
    while (r && r->first) {
        struct one *o = r->first;

        r->first = o->next;
        free(o);
    }
    free(r);
}
