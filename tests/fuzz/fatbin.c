/* Fuzz target: a fat binary, of which every entry is unpacked, into the arena and into small
 * buffers. */
#include "harness/fuzz.h"

#include "base/arena.h"
#include "base/err.h"
#include "kernel/fatbin/fatbin.h"

#define CEILING (1u << 20)

static bool
inside(struct hed_bytes part, struct hed_bytes whole)
{
    return part.size == 0 || (part.data >= whole.data && part.size <= whole.size &&
                              (size_t)(part.data - whole.data) <= whole.size - part.size);
}

static unsigned
add_up(struct hed_bytes b)
{
    unsigned sum = 0;

    for (size_t i = 0; i < b.size; i++)
        sum += b.data[i];
    return sum;
}

static void
unpack(const struct hed_fatbin_entry *e, struct hed_arena *arena)
{
    struct hed_bytes image = {NULL, 0};
    struct hed_why why = {""};
    uint8_t room[256];
    size_t size = 0;
    volatile unsigned sum;

    hed_arena_reset(arena);
    if (hed_fatbin_image(e, arena, &image, &why) == 0)
        sum = add_up(image);
    else
        must(why.text[0] != '\0');
    if (hed_fatbin_unpack(e, room, sizeof room, &size, &why) == 0) {
        must(size <= sizeof room);
        sum = add_up((struct hed_bytes){room, size});
    }
    (void)sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hed_bytes b = {data, size};
    const struct hed_choose how = {.device = 90, .flags = HED_CHOOSE_NEWER_PTX};
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    struct hed_arena arena;
    struct hed_why why;
    char text[HED_ARCH_TEXT];

    hed_arena_init(&arena, CEILING);
    if (hed_fatbin_walk(b, &w, &why) == 0) {
        while (hed_fatbin_next(&w, &e, &why) > 0) {
            must(inside(e.stored, b) && inside(e.options, b) && inside(e.name, b) &&
                 inside(e.compat, b));
            hed_fatbin_arch_text(&e, text);
            unpack(&e, &arena);
        }
        if (hed_fatbin_choose(b, &how, &e, &why) == 0)
            must(e.kind == HED_FATBIN_CUBIN || e.kind == HED_FATBIN_PTX);
    }
    hed_arena_fini(&arena);
    return 0;
}
