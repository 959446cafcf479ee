/* Searching the code in an image. See codes.h. */
#include "kernel/fatbin/codes.h"

#include "base/arena.h"
#include "base/err.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/fatbin.h"

#define UNPACKED_MAX ((size_t)1 << 30) /* bytes of one entry */

static int
look_at_entry(const struct hed_fatbin_entry *e, hed_code_fn *fn, void *arg, bool *short_of_memory)
{
    struct hed_arena arena;
    struct hed_bytes bytes;
    int found = 0, err;

    if (e->kind != HED_FATBIN_PTX && e->kind != HED_FATBIN_CUBIN)
        return 0;
    hed_arena_init(&arena, UNPACKED_MAX);
    err = hed_fatbin_image(e, &arena, &bytes, NULL);
    if (!err)
        found = fn(arg, e->kind == HED_FATBIN_PTX, bytes);
    else if (err == HED_ENOMEM)
        *short_of_memory = true;
    hed_arena_fini(&arena);
    return found;
}

int
hed_image_codes(struct hed_bytes image, hed_code_fn *fn, void *arg)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    bool short_of_memory = false;
    int found = 0;

    if (hed_cubin_begins(image))
        return fn(arg, false, image);
    if (hed_fatbin_walk(image, &w, NULL) != 0)
        return fn(arg, true, image);
    while (!found && hed_fatbin_next(&w, &e, NULL) > 0)
        found = look_at_entry(&e, fn, arg, &short_of_memory);
    return found || !short_of_memory ? found : HED_ENOMEM;
}
