/* Opening snapshots and reading chunks. See reader.h.
 *
 *     superblock  >  footer  >  tables, digest  >  check.c  >  homes
 */
#include "move/file/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/number.h"
#include "move/file/pack.h"
#include "move/file/reader_parts.h"
#include "move/file/writer.h"

#define SCAN (1u << 20) /* bytes that are read at once in search of a footer */

/* ---- superblock ------------------------------------------------------------------------------ */

static bool
ends_in_nul(const char *s, size_t size)
{
    return memchr(s, 0, size) != NULL;
}

static int
check_super(const struct hed_snap_super *s, struct hed_why *why)
{
    if (memcmp(s->magic, HED_SNAP_MAGIC, sizeof s->magic) != 0) {
        hed_why_set(why, "not a snapshot: it does not begin with %s", HED_SNAP_MAGIC);
        return HED_EFORMAT;
    }
    if (hed_crc32c(0, s, offsetof(struct hed_snap_super, crc)) != s->crc) {
        hed_why_set(why, "the superblock is damaged");
        return HED_EFORMAT;
    }
    if (s->major != HED_SNAP_MAJOR) {
        hed_why_set(why, "version %u.%u of the format; this heddle reads version %u", s->major,
                    s->minor, HED_SNAP_MAJOR);
        return HED_EVERSION;
    }
    if (s->bytes != HED_SNAP_BLOCK || s->chunk_size < HED_SNAP_CHUNK_LEAST ||
        s->chunk_size > HED_SNAP_CHUNK_MOST || (s->chunk_size & (s->chunk_size - 1)) ||
        hed_snap_uuid_is_zero(s->uuid) || !ends_in_nul(s->backend, sizeof s->backend) ||
        !ends_in_nul(s->arch, sizeof s->arch) || !ends_in_nul(s->device, sizeof s->device) ||
        !ends_in_nul(s->address, sizeof s->address) ||
        !ends_in_nul(s->program, sizeof s->program) || !ends_in_nul(s->label, sizeof s->label)) {
        hed_why_set(why, "the superblock has impossible values");
        return HED_EFORMAT;
    }
    return 0;
}

static void
take_about(struct hed_snap_about *a, const struct hed_snap_super *s)
{
    memcpy(a->uuid, s->uuid, sizeof a->uuid);
    memcpy(a->parent, s->parent, sizeof a->parent);
    memcpy(a->session, s->session, sizeof a->session);
    a->epoch = s->epoch;
    a->created_ns = s->created_ns;
    a->heap_base = s->heap_base;
    a->heap_size = s->heap_size;
    a->chunk_size = s->chunk_size;
    a->pid = s->pid;
    memcpy(a->backend, s->backend, sizeof a->backend);
    memcpy(a->arch, s->arch, sizeof a->arch);
    memcpy(a->device, s->device, sizeof a->device);
    memcpy(a->address, s->address, sizeof a->address);
    memcpy(a->program, s->program, sizeof a->program);
    memcpy(a->label, s->label, sizeof a->label);
}

int
hed_snap_about_get(const struct hed_snap_files *files, int fd, struct hed_snap_about *out)
{
    struct hed_snap_super s;
    int err = hed_snap_pread(files, fd, &s, sizeof s, 0);

    err = err ? err : check_super(&s, NULL);
    if (err == 0)
        take_about(out, &s);
    return err;
}

/* ---- footer and tables ----------------------------------------------------------------------- */

uint64_t
hed_snap_tables_bytes(const struct hed_snap_footer *f)
{
    return (uint64_t)f->homes * sizeof(struct hed_snap_home_row) +
           (uint64_t)f->blobs * sizeof(struct hed_snap_blob_row) +
           (uint64_t)f->extents * sizeof(struct hed_snap_extent_row) +
           (uint64_t)f->chunks * sizeof(struct hed_snap_chunk_row) + f->names;
}

static int
check_footer(const struct hed_snap_super *s, const struct hed_snap_footer *f, uint64_t at,
             struct hed_why *why)
{
    if (memcmp(f->magic, HED_SNAP_FOOTER_MAGIC, sizeof f->magic) != 0 ||
        memcmp(f->end, HED_SNAP_END_MAGIC, sizeof f->end) != 0) {
        hed_why_set(why, "the file has no footer: it was cut, or never finished");
        return HED_ETRUNC;
    }
    if (hed_crc32c(0, f, offsetof(struct hed_snap_footer, crc)) != f->crc) {
        hed_why_set(why, "the footer is damaged");
        return HED_EFORMAT;
    }
    if (memcmp(f->uuid, s->uuid, sizeof f->uuid) != 0 || f->at != at) {
        hed_why_set(why, "the footer is not of this file: it was cut or joined");
        return HED_EFORMAT;
    }
    if (f->needs & ~(uint32_t)HED_SNAP_NEEDS_KNOWN || f->flags & ~(uint32_t)HED_SNAP_PARTIAL) {
        hed_why_set(why, "needs features that this heddle does not have (0x%" PRIx32 ")", f->needs);
        return HED_EVERSION;
    }
    if (f->needs & HED_SNAP_NEED_ZSTD && !hed_snap_has_zstd()) {
        hed_why_set(why, "needs zstd support, which this heddle was built without");
        return HED_ENOTSUP;
    }
    if (f->homes > HED_SNAP_HOMES_MAX || f->blobs > HED_SNAP_CHUNKS_MAX ||
        f->extents > HED_SNAP_EXTENTS_MAX || f->chunks > HED_SNAP_CHUNKS_MAX ||
        f->names > HED_SNAP_NAMES_MAX) {
        hed_why_set(why, "the tables are larger than any snapshot's");
        return HED_ELIMIT;
    }

    const uint64_t bytes = hed_snap_tables_bytes(f);

    if (f->tables < HED_SNAP_BLOCK || f->tables % HED_SNAP_BLOCK || f->zero ||
        !hed_range_fits(f->tables, bytes, at) ||
        hed_round_up(f->tables + bytes, HED_SNAP_BLOCK) != at) {
        hed_why_set(why, "the tables are not where the footer says");
        return HED_EFORMAT;
    }
    return 0;
}

void
hed_snap_digest(const struct hed_snap_super *s, const void *tables, uint64_t bytes,
                const struct hed_snap_footer *f, uint8_t out[HED_SNAP_DIGEST])
{
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, s, sizeof *s);
    hed_hash_add(&h, tables, bytes);
    hed_hash_add(&h, f, offsetof(struct hed_snap_footer, digest));
    hed_hash_end(&h, out);
}

void
hed_snap_lay_out(struct hed_snap_reader *r)
{
    const unsigned char *at = r->tables;

    r->home_rows = (const void *)at;
    at += r->footer.homes * sizeof *r->home_rows;
    r->blobs = (const void *)at;
    at += r->footer.blobs * sizeof *r->blobs;
    r->extent_rows = (const void *)at;
    at += r->footer.extents * sizeof *r->extent_rows;
    r->chunks = (const void *)at;
    at += r->footer.chunks * sizeof *r->chunks;
    r->names = (const char *)at;
}

/* Reads the tables of the footer in r, and compares the digest. */
static int
read_tables(struct hed_snap_reader *r, struct hed_why *why)
{
    /* With the zeros after them, so that every byte up to the footer is checked. */
    const uint64_t bytes = r->footer.at - r->footer.tables;
    uint8_t digest[HED_SNAP_DIGEST];

    free(r->tables);
    r->tables = malloc(bytes ? bytes : 1);
    if (!r->tables) {
        hed_why_set(why, "not enough memory for %" PRIu64 " bytes of tables", bytes);
        return HED_ENOMEM;
    }

    const int err = hed_snap_pread(r->files, r->fd, r->tables, bytes, r->footer.tables);

    if (err) {
        hed_why_set(why, "cannot read the tables: %s", hed_err_text(err));
        return err;
    }
    hed_snap_digest(&r->super, r->tables, bytes, &r->footer, digest);
    if (memcmp(digest, r->footer.digest, sizeof digest) != 0) {
        hed_why_set(why, "the tables are damaged");
        return HED_EFORMAT;
    }
    return 0;
}

static int
read_footer_at(struct hed_snap_reader *r, uint64_t at, struct hed_why *why)
{
    int err = hed_snap_pread(r->files, r->fd, &r->footer, sizeof r->footer, at);

    if (err)
        hed_why_set(why, "cannot read the footer: %s", hed_err_text(err));
    err = err ? err : check_footer(&r->super, &r->footer, at, why);
    err = err ? err : read_tables(r, why);
    if (err == 0)
        r->file_bytes = at + HED_SNAP_BLOCK;
    return err;
}

/* Looks backwards for a footer that is valid, below `end`. */
static int
find_footer(struct hed_snap_reader *r, uint64_t end, struct hed_why *why)
{
    unsigned char *piece = malloc(SCAN);
    int err = piece ? HED_ETRUNC : HED_ENOMEM;

    hed_why_set(why, piece ? "no writer has finished the file" : "no memory");
    while (err == HED_ETRUNC && end > HED_SNAP_BLOCK) {
        const uint64_t n = hed_min(SCAN, end - HED_SNAP_BLOCK);
        const int failed = hed_snap_pread(r->files, r->fd, piece, n, end - n);

        if (failed) {
            hed_why_set(why, "cannot read the file: %s", hed_err_text(failed));
            err = failed;
        }
        for (uint64_t at = n; err == HED_ETRUNC && at > 0; at -= HED_SNAP_BLOCK) {
            if (memcmp(piece + at - HED_SNAP_BLOCK, HED_SNAP_FOOTER_MAGIC, 8) == 0 &&
                read_footer_at(r, end - n + at - HED_SNAP_BLOCK, NULL) == 0)
                err = 0;
        }
        end -= n;
    }
    free(piece);
    return err;
}

static int
read_end(struct hed_snap_reader *r, unsigned flags, struct hed_why *why)
{
    const uint64_t size = r->file_bytes;
    const bool whole = size >= 2 * HED_SNAP_BLOCK && size % HED_SNAP_BLOCK == 0;
    int err = HED_ETRUNC;

    if (whole)
        err = read_footer_at(r, size - HED_SNAP_BLOCK, why);
    else
        hed_why_set(why, "the file was cut: it has %" PRIu64 " bytes, not a multiple of %u", size,
                    HED_SNAP_BLOCK);
    if ((err == HED_ETRUNC || err == HED_EFORMAT) && flags & HED_SNAP_OPEN_PARTIAL)
        err = find_footer(r, size - size % HED_SNAP_BLOCK, why);
    if (err == 0 && r->footer.flags & HED_SNAP_PARTIAL && !(flags & HED_SNAP_OPEN_PARTIAL)) {
        hed_why_set(why, "not complete: its second half was never written");
        err = HED_ESTATE;
    }
    return err;
}

/* ---- homes ----------------------------------------------------------------------------------- */

static int
check_in_homes(const struct hed_snap_reader *r, uint32_t id, struct hed_why *why)
{
    const struct hed_snap_extent *e = &r->extents[id];
    const struct hed_snap_chunk_row *c = r->chunks + r->extent_rows[id].first;
    const uint64_t n = hed_divide_up(e->size, r->super.chunk_size);

    for (uint64_t i = 0; i < n; i++) {
        if (c[i].home == HED_SNAP_HERE || c[i].home == HED_SNAP_ZEROS)
            continue;

        const struct hed_snap_reader *home = r->homes[c[i].home - 1].reader;
        const struct hed_snap_blob_row *b =
            c[i].blob < home->footer.blobs ? &home->blobs[c[i].blob] : NULL;

        if (!b || b->size != hed_snap_length(e, r->super.chunk_size, i) ||
            b->hash[0] != c[i].hash[0] || b->hash[1] != c[i].hash[1]) {
            char text[HED_SNAP_UUID_TEXT];

            hed_why_set(why, "chunk %" PRIu64 " of extent %" PRIu32 " is not in snapshot %s", i, id,
                        hed_snap_uuid_text(home->super.uuid, text));
            return HED_EFORMAT;
        }
    }
    return 0;
}

static int
open_home(struct hed_snap_reader *r, uint32_t i, hed_snap_home_fn *home, void *arg,
          struct hed_why *why)
{
    const uint8_t *uuid = r->home_rows[i].uuid;
    char text[HED_SNAP_UUID_TEXT];
    struct hed_why inner = {""};
    struct hed_snap_home *h = &r->homes[i];

    h->fd = home(arg, uuid);
    if (h->fd < 0) {
        hed_why_set(why, "needs snapshot %s (epoch %" PRIu64 "), which is not there",
                    hed_snap_uuid_text(uuid, text), r->home_rows[i].epoch);
        return HED_ENOTFOUND;
    }

    int err = hed_snap_reader_open(r->files, h->fd, 0, NULL, NULL, &h->reader, &inner);

    if (err == 0 && memcmp(h->reader->super.uuid, uuid, HED_SNAP_UUID) != 0) {
        hed_why_set(&inner, "it is another snapshot");
        err = HED_EFORMAT;
    }
    if (err)
        hed_why_set(why, "needs snapshot %s, which cannot be used: %s",
                    hed_snap_uuid_text(uuid, text), inner.text);
    return err;
}

static int
open_homes(struct hed_snap_reader *r, hed_snap_home_fn *home, void *arg, struct hed_why *why)
{
    int err = 0;

    r->homes = calloc(r->footer.homes ? r->footer.homes : 1, sizeof *r->homes);
    if (!r->homes) {
        hed_why_set(why, "no memory");
        return HED_ENOMEM;
    }
    for (uint32_t i = 0; i < r->footer.homes; i++)
        r->homes[i].fd = -1;
    for (uint32_t i = 0; i < r->footer.homes && err == 0; i++)
        err = open_home(r, i, home, arg, why);
    for (uint32_t i = 0; i < r->footer.extents && err == 0; i++)
        err = check_in_homes(r, i, why);
    return err;
}

/* ---- open and free --------------------------------------------------------------------------- */

static int
read_all(struct hed_snap_reader *r, unsigned flags, hed_snap_home_fn *home, void *arg,
         struct hed_why *why)
{
    int err = 0;

    if (r->files->size(r->files->state, r->fd, &r->file_bytes) != 0) {
        hed_why_set(why, "not a plain file");
        return HED_EINVAL;
    }
    err = hed_snap_pread(r->files, r->fd, &r->super, sizeof r->super, 0);
    if (err) {
        hed_why_set(why, err == HED_ETRUNC ? "not a snapshot: it is too short" : "cannot read: %s",
                    hed_err_text(err));
        return err;
    }
    err = check_super(&r->super, why);
    err = err ? err : read_end(r, flags, why);
    if (err)
        return err;
    take_about(&r->about, &r->super);
    hed_snap_lay_out(r);
    err = hed_snap_check_tables(r, why);
    return err || !home ? err : open_homes(r, home, arg, why);
}

int
hed_snap_reader_open(const struct hed_snap_files *files, int fd, unsigned flags,
                     hed_snap_home_fn *home, void *arg, struct hed_snap_reader **out,
                     struct hed_why *why)
{
    struct hed_snap_reader *r = calloc(1, sizeof *r);

    if (!r) {
        hed_why_set(why, "no memory");
        return HED_ENOMEM;
    }
    r->files = files;
    r->fd = fd;

    const int err = read_all(r, flags, home, arg, why);

    if (err)
        hed_snap_reader_free(r);
    else
        *out = r;
    return err;
}

void
hed_snap_reader_free(struct hed_snap_reader *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->homes && i < r->footer.homes; i++) {
        hed_snap_reader_free(r->homes[i].reader);
        if (r->homes[i].fd >= 0)
            (void)r->files->close(r->files->state, r->homes[i].fd);
    }
    free(r->homes);
    free(r->order);
    free(r->extents);
    free(r->tables);
    free(r);
}
