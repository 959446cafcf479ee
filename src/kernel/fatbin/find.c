/* Finding GPU code. See find.h.
 *
 *     archive -> members -> ELF file -> sections -> fat binaries
 *                  file  -> ELF file -> sections -> fat binaries
 *                  file  -> fat binaries, cubin, PTX
 *
 * Each arrow is a cursor in struct hed_find; hed_find_next moves the innermost one that can move.
 */
#include "kernel/fatbin/find.h"

#include <ar.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/fatbin/cubin.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/ptx_text.h"

void
hed_find_init(struct hed_find *f, struct hed_bytes file, unsigned flags)
{
    *f = (struct hed_find){.file = file, .flags = flags};
}

/* ---- regions --------------------------------------------------------------------------------- */

static void
set_region(struct hed_find *f, struct hed_bytes region, struct hed_bytes name, bool relocatable)
{
    f->region = region;
    f->region_at = 0;
    f->region_name = name;
    f->region_relocatable = relocatable;
}

/* Fat binaries follow one another, with gaps in between; the inside of one is not searched. */
static bool
next_in_region(struct hed_find *f, struct hed_found *out)
{
    static const uint32_t magic = HED_FATBIN_MAGIC;

    while (f->region_at < f->region.size) {
        const size_t left = f->region.size - f->region_at;
        const uint8_t *p = memmem(f->region.data + f->region_at, left, &magic, sizeof magic);
        uint64_t size;

        if (!p)
            break;
        f->region_at = (size_t)(p - f->region.data);

        const struct hed_bytes rest = hed_bytes_from(f->region, f->region_at);

        if (!hed_fatbin_begins(rest, &size)) {
            f->region_at += sizeof magic;
            continue;
        }
        *out = (struct hed_found){
            .kind = HED_FOUND_FATBIN,
            .bytes = hed_bytes_cut(rest, 0, hed_min(size, rest.size)),
            .offset = (uint64_t)(p - f->file.data),
            .section = f->region_name,
            .member = f->member,
            .relocatable = f->region_relocatable,
            .cut = size > rest.size,
        };
        /* A size that is too large is wrong, and more fat binaries may follow. */
        f->region_at += out->cut ? HED_FATBIN_HEADER_SIZE : (size_t)size;
        return true;
    }
    f->region = (struct hed_bytes){NULL, 0};
    return false;
}

/* ---- sections -------------------------------------------------------------------------------- */

static void
count_wrappers(struct hed_find *f, struct hed_bytes b)
{
    for (size_t at = 0; hed_bytes_has(b, at, HED_FATBIN_WRAPPER_SIZE);
         at += HED_FATBIN_WRAPPER_SIZE) {
        const uint32_t version = hed_load_u32(b.data + at + 4);

        if (hed_load_u32(b.data + at) == HED_FATBIN_WRAPPER_MAGIC)
            f->wrappers[version == 1 || version == 2 ? version : 0]++;
    }
}

static bool
next_section(struct hed_find *f)
{
    struct hed_elf_section s;

    while (f->section < f->object.count) {
        if (!hed_elf_file_section(&f->object, f->section++, &s) || s.bytes.size == 0)
            continue;
        if (hed_elf_section_is(&s, ".nvFatBinSegment"))
            count_wrappers(f, s.bytes);

        const bool relocatable = hed_elf_section_is(&s, "__nv_relfatbin");

        if (relocatable || hed_elf_section_is(&s, ".nv_fatbin") ||
            !(f->flags & HED_FIND_SECTIONS)) {
            set_region(f, s.bytes, s.name, relocatable);
            return true;
        }
    }
    f->object.count = 0;
    return false;
}

/* ---- files and members ----------------------------------------------------------------------- */

static int
found_whole(const struct hed_find *f, enum hed_found_kind kind, struct hed_bytes b,
            struct hed_found *out)
{
    *out = (struct hed_found){
        .kind = kind,
        .bytes = b,
        .offset = (uint64_t)(b.data - f->file.data),
        .member = f->member,
    };
    return 1;
}

/* 1 if the bytes themselves are GPU code, 0 if they are to be searched. */
static int
begin_search(struct hed_find *f, struct hed_bytes b, struct hed_found *out, struct hed_why *why)
{
    const struct hed_bytes none = {NULL, 0};
    struct hed_ptx_head head;

    if (hed_cubin_begins(b))
        return found_whole(f, HED_FOUND_CUBIN, b, out);
    if (hed_ptx_begins(b, &head))
        return found_whole(f, HED_FOUND_PTX, b, out);
    if (hed_elf_file_begins(b)) {
        const int err = hed_elf_file_read(b, &f->object, why);

        f->section = 0;
        /* The section headers may have been stripped. */
        if (err == 0 && f->object.count == 0)
            set_region(f, b, none, false);
        /* In an archive other members follow. */
        return f->is_archive ? 0 : err;
    }
    /* Archives have members of all kinds, but a file that the user names is worth a search. */
    if (!f->is_archive || hed_fatbin_begins(b, &(uint64_t){0}))
        set_region(f, b, none, false);
    return 0;
}

/* "/123" is the name at offset 123 in the table, up to "/\n"; "name/" is the name itself. */
static struct hed_bytes
member_name(const struct hed_find *f, const struct ar_hdr *h)
{
    struct hed_bytes name = {(const uint8_t *)h->ar_name, sizeof h->ar_name};
    size_t n = 0;

    if (h->ar_name[0] == '/' && h->ar_name[1] >= '0' && h->ar_name[1] <= '9') {
        char digits[sizeof h->ar_name];

        memcpy(digits, h->ar_name + 1, sizeof digits - 1);
        digits[sizeof digits - 1] = '\0';
        name = hed_bytes_from(f->names, strtoull(digits, NULL, 10));
    }
    while (n < name.size && name.data[n] != '/' && name.data[n] != '\n')
        n++;
    return hed_bytes_cut(name, 0, n);
}

/* 1 and the bytes of the next member, 0 at the end, HED_EFORMAT if the archive is damaged. */
static int
next_member(struct hed_find *f, struct hed_bytes *out, struct hed_why *why)
{
    const uint8_t *p = hed_bytes_at(f->file, f->member_at, sizeof(struct ar_hdr));
    struct ar_hdr h;
    char digits[sizeof h.ar_size + 1];

    if (f->member_at >= f->file.size)
        return 0;
    if (p) {
        memcpy(&h, p, sizeof h);
        memcpy(digits, h.ar_size, sizeof h.ar_size);
        digits[sizeof h.ar_size] = '\0';
    }
    if (!p || memcmp(h.ar_fmag, ARFMAG, sizeof h.ar_fmag) != 0) {
        hed_why_set(why, "the archive is damaged at 0x%zx", f->member_at);
        return HED_EFORMAT;
    }

    const uint64_t size = strtoull(digits, NULL, 10);
    const size_t start = f->member_at + sizeof h;

    if (!hed_bytes_has(f->file, start, size)) {
        hed_why_set(why, "the archive ends inside the member at 0x%zx", f->member_at);
        return HED_ETRUNC;
    }
    *out = hed_bytes_cut(f->file, start, size);
    f->member = member_name(f, (const struct ar_hdr *)(const void *)p);
    if (memcmp(h.ar_name, "// ", 3) == 0)
        f->names = *out;
    f->member_at = start + (size_t)size + (size & 1);
    return 1;
}

int
hed_find_next(struct hed_find *f, struct hed_found *out, struct hed_why *why)
{
    struct hed_bytes next = f->file;
    int r;

    for (;;) {
        if (next_in_region(f, out))
            return 1;
        if (next_section(f))
            continue;
        if (f->begun && !f->is_archive)
            return 0;
        if (!f->begun && hed_bytes_begin(f->file, ARMAG, SARMAG)) {
            f->is_archive = true;
            f->member_at = SARMAG;
        }
        f->begun = true;
        if (f->is_archive) {
            r = next_member(f, &next, why);
            if (r <= 0)
                return r;
        }
        r = begin_search(f, next, out, why);
        if (r != 0)
            return r;
    }
}
