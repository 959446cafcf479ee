/* Fuzz target: any file, searched for GPU code in both ways. PTX is read, too. */
#include "harness/fuzz.h"

#include "base/err.h"
#include "kernel/fatbin/find.h"
#include "kernel/fatbin/ptx_text.h"

#define PLACES 4

static void
search_file(struct hed_bytes b, unsigned flags)
{
    struct hed_find f;
    struct hed_found found;
    struct hed_why why = {""};
    struct hed_ptx_head head;
    struct hed_ptx_glance kernel;
    struct hed_ptx_place places[PLACES];
    size_t n = 0;
    int r;

    hed_find_init(&f, b, flags);
    while ((r = hed_find_next(&f, &found, &why)) > 0) {
        size_t at = 0;

        must(found.bytes.data == b.data + found.offset);
        must(found.offset <= b.size && found.bytes.size <= b.size - found.offset);
        /* Sections may overlap, so there may be more images than fit side by side. */
        must(++n <= b.size * b.size + 1);
        if (found.kind == HED_FOUND_PTX) {
            must(hed_ptx_begins(found.bytes, &head));
            while (hed_ptx_next_entry(found.bytes, &at).size)
                must(at <= found.bytes.size);
            at = 0;
            while (hed_ptx_next_kernel(found.bytes, &at, &kernel, places, PLACES))
                must(at <= found.bytes.size && kernel.param_bytes <= 32764);
        }
    }
    must(r == 0 || why.text[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hed_bytes b = {data, size};

    search_file(b, 0);
    search_file(b, HED_FIND_SECTIONS);
    return 0;
}
