/* What is in a snapshot that was opened: extents, chunks, bytes. See reader.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/number.h"
#include "move/file/pack.h"
#include "move/file/reader_parts.h"

const struct hed_snap_about *
hed_snap_reader_about(const struct hed_snap_reader *r)
{
    return &r->about;
}

bool
hed_snap_reader_is_partial(const struct hed_snap_reader *r)
{
    return r->footer.flags & HED_SNAP_PARTIAL;
}

const uint8_t *
hed_snap_reader_home(const struct hed_snap_reader *r, uint32_t number)
{
    return number < r->footer.homes ? r->home_rows[number].uuid : NULL;
}

uint32_t
hed_snap_length(const struct hed_snap_extent *e, uint32_t chunk_size, uint64_t index)
{
    return (uint32_t)hed_min(e->size - index * chunk_size, chunk_size);
}

void
hed_snap_reader_sizes(const struct hed_snap_reader *r, struct hed_snap_sizes *out)
{
    *out = (struct hed_snap_sizes){.file = r->file_bytes,
                                   .content = r->footer.content,
                                   .stored = r->footer.stored,
                                   .extents = r->footer.extents,
                                   .chunks = r->footer.chunks,
                                   .blobs = r->footer.blobs,
                                   .homes = r->footer.homes};
    for (uint32_t id = 0; id < r->footer.extents; id++) {
        const uint32_t n = hed_snap_chunk_count(r, id);

        for (uint32_t i = 0; i < n; i++) {
            const uint32_t length = hed_snap_length(&r->extents[id], r->super.chunk_size, i);
            const enum hed_snap_where where = hed_snap_chunk_where(r, id, i);

            out->zeros += where == HED_SNAP_IS_ZERO ? length : 0;
            out->elsewhere += where == HED_SNAP_IN_HOME ? length : 0;
        }
    }
}

/* ---- extents --------------------------------------------------------------------------------- */

uint32_t
hed_snap_extent_count(const struct hed_snap_reader *r)
{
    return r->footer.extents;
}

const struct hed_snap_extent *
hed_snap_extent_at(const struct hed_snap_reader *r, uint32_t id)
{
    return id < r->footer.extents ? &r->extents[id] : NULL;
}

bool
hed_snap_extent_find(const struct hed_snap_reader *r, const struct hed_snap_extent *like,
                     uint32_t *id)
{
    struct hed_snap_extent wanted = *like;
    uint32_t low = 0, high = r->footer.extents;

    wanted.name = wanted.name ? wanted.name : "";
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = hed_snap_extent_compare(&wanted, &r->extents[r->order[middle]]);

        if (order == 0) {
            *id = r->order[middle];
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

const char *
hed_snap_kind_name(enum hed_snap_kind kind)
{
    static const char *const names[] = {
        [HED_SNAP_DEVICE] = "device", [HED_SNAP_PHYSICAL] = "physical",
        [HED_SNAP_ARRAY] = "array",   [HED_SNAP_VARIABLE] = "variable",
        [HED_SNAP_FILE] = "file",     [HED_SNAP_OBJECTS] = "objects",
        [HED_SNAP_HOST] = "host"};

    return kind > 0 && kind <= HED_SNAP_KIND_LAST ? names[kind] : "?";
}

const char *
hed_snap_extent_text(const struct hed_snap_extent *e, char *out, size_t size)
{
    const char *kind = hed_snap_kind_name(e->kind);

    if (e->name && e->name[0])
        (void)snprintf(out, size, "%s '%.200s'", kind, e->name);
    else
        (void)snprintf(out, size, "%s 0x%" PRIx64, kind, e->key);
    return out;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

uint32_t
hed_snap_chunk_count(const struct hed_snap_reader *r, uint32_t id)
{
    return id < r->footer.extents
               ? (uint32_t)hed_divide_up(r->extents[id].size, r->super.chunk_size)
               : 0;
}

static const struct hed_snap_chunk_row *
chunk_row(const struct hed_snap_reader *r, uint32_t id, uint32_t index)
{
    return index < hed_snap_chunk_count(r, id) ? r->chunks + r->extent_rows[id].first + index
                                               : NULL;
}

size_t
hed_snap_chunk_length(const struct hed_snap_reader *r, uint32_t id, uint32_t index)
{
    return chunk_row(r, id, index) ? hed_snap_length(&r->extents[id], r->super.chunk_size, index)
                                   : 0;
}

const struct hed_snap_hash *
hed_snap_chunk_hash(const struct hed_snap_reader *r, uint32_t id, uint32_t index)
{
    const struct hed_snap_chunk_row *c = chunk_row(r, id, index);

    _Static_assert(sizeof(struct hed_snap_hash) == sizeof c->hash, "the row has the hash itself");
    return c ? (const struct hed_snap_hash *)(const void *)c->hash : NULL;
}

enum hed_snap_where
hed_snap_chunk_where(const struct hed_snap_reader *r, uint32_t id, uint32_t index)
{
    const struct hed_snap_chunk_row *c = chunk_row(r, id, index);

    if (!c || c->home == HED_SNAP_ZEROS)
        return HED_SNAP_IS_ZERO;
    return c->home == HED_SNAP_HERE ? HED_SNAP_IN_FILE : HED_SNAP_IN_HOME;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int
read_packed(const struct hed_snap_reader *r, const struct hed_snap_blob_row *b, void *p)
{
    unsigned char *packed = malloc(b->stored);
    int err = packed ? hed_snap_pread(r->files, r->fd, packed, b->stored, b->offset) : HED_ENOMEM;

    if (err == 0 && hed_crc32c(0, packed, b->stored) != b->crc)
        err = HED_EFORMAT;
    err = err ? err : hed_snap_unpack(packed, b->stored, p, b->size);
    free(packed);
    return err;
}

int
hed_snap_blob_get(const struct hed_snap_reader *r, uint32_t blob, void *p, bool check,
                  struct hed_why *why)
{
    const struct hed_snap_blob_row *b = &r->blobs[blob];
    const bool packed = b->packing != HED_SNAP_RAW;
    struct hed_snap_hash hash;
    int err =
        packed ? read_packed(r, b, p) : hed_snap_pread(r->files, r->fd, p, b->size, b->offset);

    if (err == 0 && (check || packed)) {
        hed_snap_hash(p, b->size, &hash);
        if (hash.w[0] != b->hash[0] || hash.w[1] != b->hash[1])
            err = HED_EFORMAT;
    }
    if (err)
        hed_why_set(why, "the %" PRIu32 " bytes at 0x%" PRIx64 ": %s", b->stored, b->offset,
                    err == HED_EFORMAT ? "their checksum is wrong" : hed_err_text(err));
    return err;
}

static int
get_chunk(const struct hed_snap_reader *r, uint32_t id, uint32_t index, void *p, size_t size,
          bool check, struct hed_why *why)
{
    const struct hed_snap_chunk_row *c = chunk_row(r, id, index);
    char text[256], uuid[HED_SNAP_UUID_TEXT];
    struct hed_why inner = {""};

    if (!c || size != hed_snap_length(&r->extents[id], r->super.chunk_size, index)) {
        hed_why_set(why, "extent %" PRIu32 " has no chunk %" PRIu32 " of %zu bytes", id, index,
                    size);
        return HED_EINVAL;
    }
    if (c->home == HED_SNAP_ZEROS) {
        memset(p, 0, size);
        return 0;
    }
    if (c->home != HED_SNAP_HERE && !r->homes) {
        hed_why_set(why, "chunk %" PRIu32 " of %s lies in snapshot %s, which was not opened", index,
                    hed_snap_extent_text(&r->extents[id], text, sizeof text),
                    hed_snap_uuid_text(r->home_rows[c->home - 1].uuid, uuid));
        return HED_ENOTFOUND;
    }

    const struct hed_snap_reader *home =
        c->home == HED_SNAP_HERE ? r : r->homes[c->home - 1].reader;
    const int err = hed_snap_blob_get(home, c->blob, p, check, &inner);

    if (err)
        hed_why_set(why, "chunk %" PRIu32 " of %s cannot be read from snapshot %s: %s", index,
                    hed_snap_extent_text(&r->extents[id], text, sizeof text),
                    hed_snap_uuid_text(home->super.uuid, uuid), inner.text);
    return err;
}

int
hed_snap_chunk_get(const struct hed_snap_reader *r, uint32_t id, uint32_t index, void *p,
                   size_t size, struct hed_why *why)
{
    return get_chunk(r, id, index, p, size, true, why);
}

int
hed_snap_chunk_read(const struct hed_snap_reader *r, uint32_t id, uint32_t index, void *p,
                    size_t size, struct hed_why *why)
{
    return get_chunk(r, id, index, p, size, false, why);
}

/* ---- UUIDs ----------------------------------------------------------------------------------- */

const char *
hed_snap_uuid_text(const uint8_t uuid[HED_SNAP_UUID], char out[HED_SNAP_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    char *at = out;

    for (int i = 0; i < HED_SNAP_UUID; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[uuid[i] >> 4];
        *at++ = digits[uuid[i] & 15];
    }
    *at = '\0';
    return out;
}

bool
hed_snap_uuid_is_zero(const uint8_t uuid[HED_SNAP_UUID])
{
    uint8_t any = 0;

    for (int i = 0; i < HED_SNAP_UUID; i++)
        any |= uuid[i];
    return any == 0;
}
