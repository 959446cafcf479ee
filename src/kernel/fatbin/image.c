/* Images by pointer. See image.h. */
#include "kernel/fatbin/image.h"

#include <elf.h>

#include "base/err.h"
#include "base/number.h"
#include "base/readable.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/elf.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/ptx_text.h"

/* Nothing longer can be an image. */
#define EXTENT_MAX (UINT64_C(1) << 40)

_Static_assert(sizeof(struct hed_fatbin_wrapper) == HED_FATBIN_WRAPPER_SIZE,
               "the wrapper's layout is fixed");

static int
at_fatbin(const void *p, struct hed_image *out, struct hed_why *why)
{
    const struct hed_bytes header = {p, hed_readable(p, HED_FATBIN_HEADER_SIZE)};
    struct hed_fatbin_walk w;
    uint64_t size;

    if (!hed_fatbin_begins(header, &size))
        return hed_fatbin_walk(header, &w, why) < 0 ? HED_EFORMAT : HED_EVERSION;
    if (size > EXTENT_MAX) {
        hed_why_set(why, "the fat binary's header makes no sense");
        return HED_EFORMAT;
    }
    *out = (struct hed_image){HED_IMAGE_FATBIN, {p, (size_t)size}, NULL, false};
    return 0;
}

/* A header that is damaged may lead out of the memory that can be read. What is missing then is
 * found later, as with a file that was cut. */
static void
cut_to_readable(struct hed_image *image)
{
    image->bytes.size = hed_readable(image->bytes.data, image->bytes.size);
}

static int
at_wrapper(const void *p, struct hed_image *out, struct hed_why *why)
{
    struct hed_fatbin_wrapper w;

    if (hed_readable(p, sizeof w) < sizeof w) {
        hed_why_set(why, "the fat binary's wrapper cannot be read");
        return HED_EFORMAT;
    }
    memcpy(&w, p, sizeof w);
    if (!w.data || hed_readable(w.data, sizeof(uint32_t)) < sizeof(uint32_t) ||
        hed_load_u32(w.data) != HED_FATBIN_MAGIC) {
        hed_why_set(why, "the fat binary's wrapper (version %u) leads nowhere", w.version);
        return HED_EFORMAT;
    }

    const int err = at_fatbin(w.data, out, why);

    if (err == 0) {
        out->preserved = true; /* only a compiler makes wrappers, as data of the program */
        out->parts = w.version == 2 ? w.parts : NULL;
    }
    return err;
}

static int
at_elf(const void *p, struct hed_image *out, struct hed_why *why)
{
    struct hed_elf_file o;
    Elf64_Ehdr head;

    if (hed_readable(p, sizeof head) < sizeof head) {
        hed_why_set(why, "the ELF file's header cannot be read");
        return HED_EFORMAT;
    }
    memcpy(&head, p, sizeof head);

    /* ptxas and nvlink put segment headers last, and section headers right before them. Neither sum
     * overflows once the offsets are known to be small. */
    const bool fits = head.e_shoff <= EXTENT_MAX && head.e_phoff <= EXTENT_MAX;
    const uint64_t sections = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    const uint64_t segments = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
    const uint64_t end = hed_max(sections, segments);

    if (head.e_machine != HED_ELF_CUDA || !fits || end > EXTENT_MAX || end < sizeof head) {
        hed_why_set(why, "an ELF file, but not a cubin");
        return HED_EFORMAT;
    }

    /* The end of the sections is known once the headers can be read. */
    struct hed_bytes b = {p, hed_readable(p, (size_t)end)};

    if (b.size < sections) {
        hed_why_set(why, "the cubin's headers lead out of the memory that can be read");
        return HED_EFORMAT;
    }
    for (uint32_t i = 0; i < head.e_shnum && head.e_shentsize == sizeof(Elf64_Shdr); i++) {
        Elf64_Shdr s;

        memcpy(&s, b.data + head.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type != SHT_NOBITS && s.sh_size < EXTENT_MAX && s.sh_offset < EXTENT_MAX &&
            s.sh_offset + s.sh_size > b.size)
            b.size = (size_t)(s.sh_offset + s.sh_size);
    }

    b.size = hed_readable(p, b.size);

    const int err = hed_elf_file_read(b, &o, why);

    if (err == 0)
        *out = (struct hed_image){HED_IMAGE_CUBIN, b, NULL, false};
    return err;
}

int
hed_image_at(const void *p, struct hed_image *out, struct hed_why *why)
{
    struct hed_ptx_head head;

    if (!p) {
        hed_why_set(why, "no image");
        return HED_EINVAL;
    }
    /* No magic number contains a NUL, and a text may be shorter than four bytes. */
    if (strnlen(p, 4) == 4) {
        const uint32_t magic = hed_load_u32(p);

        if (magic == HED_FATBIN_WRAPPER_MAGIC)
            return at_wrapper(p, out, why);
        if (magic == HED_FATBIN_MAGIC) {
            const int err = at_fatbin(p, out, why);

            if (!err)
                cut_to_readable(out);
            return err;
        }
        if (memcmp(p, ELFMAG, SELFMAG) == 0)
            return at_elf(p, out, why);
    }

    const struct hed_bytes text = {p, strlen(p)};

    if (!hed_ptx_begins(text, &head)) {
        hed_why_set(why, "neither a fat binary nor a cubin nor PTX");
        return HED_EFORMAT;
    }
    *out = (struct hed_image){HED_IMAGE_PTX, text, NULL, false};
    return 0;
}

int
hed_image_in(struct hed_bytes b, struct hed_image *out, struct hed_why *why)
{
    const struct hed_bytes text = hed_bytes_text(b);
    struct hed_ptx_head head;
    uint64_t size;

    if (hed_fatbin_begins(b, &size)) {
        *out = (struct hed_image){HED_IMAGE_FATBIN, b, NULL, false};
        if (size < b.size)
            out->bytes.size = (size_t)size;
    } else if (hed_cubin_begins(b)) {
        *out = (struct hed_image){HED_IMAGE_CUBIN, b, NULL, false};
    } else if (hed_ptx_begins(text, &head)) {
        *out = (struct hed_image){HED_IMAGE_PTX, text, NULL, false};
    } else {
        hed_why_set(why, "neither a fat binary nor a cubin nor PTX");
        return HED_EFORMAT;
    }
    return 0;
}
