/* Walking a fat binary. See fatbin.h.
 *
 *     header (16)   magic u32, version u16, header size u16, size of all entries u64
 *     entry         header (64 and more), image, padding to 8 bytes
 *     entry ...
 */
#include "kernel/fatbin/fatbin.h"

#include <inttypes.h>

#include "base/err.h"
#include "base/number.h"

enum header_at { HEADER_VERSION = 4, HEADER_SELF = 6, HEADER_BODY = 8 };

enum entry_at {
    ENTRY_KIND = 0x00,
    ENTRY_SELF = 0x04,
    ENTRY_STORED = 0x08,
    ENTRY_PACKED = 0x10,
    ENTRY_OPTIONS = 0x14,
    ENTRY_MINOR = 0x18,
    ENTRY_MAJOR = 0x1a,
    ENTRY_ARCH = 0x1c,
    ENTRY_NAME = 0x20,
    ENTRY_NAME_SIZE = 0x24,
    ENTRY_FLAGS = 0x28,
    ENTRY_UNPACKED = 0x38,
};

bool
hed_fatbin_begins(struct hed_bytes b, uint64_t *size)
{
    const uint8_t *p = hed_bytes_at(b, 0, HED_FATBIN_HEADER_SIZE);

    if (!p || hed_load_u32(p) != HED_FATBIN_MAGIC || hed_load_u16(p + HEADER_VERSION) != 1)
        return false;

    const uint16_t self = hed_load_u16(p + HEADER_SELF);
    const uint64_t body = hed_load_u64(p + HEADER_BODY);

    if (self < HED_FATBIN_HEADER_SIZE || body > UINT64_MAX - self)
        return false;
    *size = self + body;
    return true;
}

int
hed_fatbin_walk(struct hed_bytes b, struct hed_fatbin_walk *w, struct hed_why *why)
{
    const uint8_t *p = hed_bytes_at(b, 0, HED_FATBIN_HEADER_SIZE);
    uint64_t size;

    if (!p) {
        hed_why_set(why, "a fat binary of %zu bytes: not even its header is whole", b.size);
        return HED_ETRUNC;
    }
    if (hed_load_u32(p) != HED_FATBIN_MAGIC) {
        hed_why_set(why, "not a fat binary");
        return HED_EFORMAT;
    }
    if (!hed_fatbin_begins(b, &size)) {
        hed_why_set(why, "a fat binary of unknown version %u", hed_load_u16(p + HEADER_VERSION));
        return HED_EVERSION;
    }
    *w = (struct hed_fatbin_walk){
        .bytes = hed_bytes_cut(b, 0, hed_min(size, b.size)),
        .at = hed_load_u16(p + HEADER_SELF),
        .cut = size > b.size,
    };
    return 0;
}

/* Names, options and the like lie inside the entry's header; those that do not are ignored. */
static void
read_extras(struct hed_bytes header, struct hed_fatbin_entry *e)
{
    const uint32_t name = hed_load_u32(header.data + ENTRY_NAME);
    const uint32_t block = hed_load_u32(header.data + ENTRY_OPTIONS);
    const uint8_t *p = block ? hed_bytes_at(header, block, 8) : NULL;

    if (name) {
        const uint32_t n = hed_load_u32(header.data + ENTRY_NAME_SIZE);

        e->name = hed_bytes_text(hed_bytes_cut(header, name, n));
    }
    if (p) {
        const struct hed_bytes text = hed_bytes_cut(header, hed_load_u32(p), hed_load_u32(p + 4));
        const struct hed_bytes rest = hed_bytes_from(header, hed_load_u32(p));

        e->has_options = rest.size > 0 && hed_load_u32(p + 4) <= rest.size &&
                         memchr(rest.data, 0, rest.size) != NULL;
        e->options = hed_bytes_text(text);
        if (e->flags & HED_FATBIN_COMPAT)
            e->compat = hed_bytes_from(text, e->options.size + 1);
    }
}

static enum hed_fatbin_packing
packing_of(uint64_t flags, uint32_t packed)
{
    if (flags & HED_FATBIN_SEALED)
        return HED_PACKING_SEALED;
    if (packed == 0)
        return HED_PACKING_NONE;
    if (flags & HED_FATBIN_ZSTD)
        return HED_PACKING_ZSTD;
    return flags & HED_FATBIN_LZ4 ? HED_PACKING_LZ4 : HED_PACKING_UNKNOWN;
}

static char
suffix_of(uint64_t flags)
{
    if (flags & HED_FATBIN_ARCH_EXACT)
        return 'a';
    return flags & HED_FATBIN_ARCH_FAMILY ? 'f' : '\0';
}

static void
read_fatbin_entry(struct hed_bytes header, struct hed_bytes image, struct hed_fatbin_entry *e)
{
    const uint8_t *p = header.data;
    const uint32_t packed = hed_load_u32(p + ENTRY_PACKED);

    e->kind = hed_load_u16(p + ENTRY_KIND);
    e->major = hed_load_u16(p + ENTRY_MAJOR);
    e->minor = hed_load_u16(p + ENTRY_MINOR);
    e->flags = hed_load_u64(p + ENTRY_FLAGS);
    e->arch = (struct hed_arch){hed_load_u32(p + ENTRY_ARCH), suffix_of(e->flags)};
    e->packing = packing_of(e->flags, packed);
    e->stored = packed ? hed_bytes_cut(image, 0, packed) : image;
    e->size = packed ? hed_load_u64(p + ENTRY_UNPACKED) : image.size;
    read_extras(header, e);
}

int
hed_fatbin_next(struct hed_fatbin_walk *w, struct hed_fatbin_entry *out, struct hed_why *why)
{
    const uint8_t *p = hed_bytes_at(w->bytes, w->at, HED_FATBIN_ENTRY_SIZE);

    if (w->at >= w->bytes.size && !w->cut)
        return 0;
    if (!p) {
        hed_why_set(why, "the fat binary ends inside the header of the entry at 0x%zx", w->at);
        return HED_ETRUNC;
    }

    const uint32_t self = hed_load_u32(p + ENTRY_SELF);
    const uint64_t stored = hed_load_u64(p + ENTRY_STORED);
    const uint32_t packed = hed_load_u32(p + ENTRY_PACKED);

    if (self < HED_FATBIN_ENTRY_SIZE || packed > stored) {
        hed_why_set(why, "the header of the entry at 0x%zx makes no sense", w->at);
        return HED_EFORMAT;
    }
    if (!hed_bytes_has(w->bytes, w->at, self) ||
        !hed_bytes_has(w->bytes, (uint64_t)w->at + self, stored)) {
        hed_why_set(why, "the entry at 0x%zx (%" PRIu64 " bytes) goes past the fat binary's end",
                    w->at, stored);
        return HED_ETRUNC;
    }

    struct hed_fatbin_entry e = {.offset = w->at};

    read_fatbin_entry(hed_bytes_cut(w->bytes, w->at, self),
                      hed_bytes_cut(w->bytes, (uint64_t)w->at + self, stored), &e);
    w->at += (size_t)(self + stored);
    *out = e;
    return 1;
}

const char *
hed_fatbin_kind_name(uint16_t kind)
{
    switch (kind) {
    case HED_FATBIN_PTX:
        return "ptx";
    case HED_FATBIN_CUBIN:
        return "cubin";
    case HED_FATBIN_LTO:
        return "lto";
    default:
        return NULL;
    }
}

const char *
hed_fatbin_arch_text(const struct hed_fatbin_entry *e, char *out)
{
    const char *prefix = e->kind == HED_FATBIN_PTX   ? "compute_"
                         : e->kind == HED_FATBIN_LTO ? "lto_"
                                                     : "sm_";

    return hed_arch_text(e->arch, prefix, out);
}
