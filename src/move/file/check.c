/* Is what the tables of a snapshot say possible? The digest has been checked, so that a file that
 * was damaged by accident does not get here: these checks are for files that were made to harm, and
 * for faults of a writer. See reader_parts.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "move/file/reader_parts.h"

static int
refuse_row(struct hed_why *why, const char *table, uint64_t row, const char *text)
{
    hed_why_set(why, "%s %" PRIu64 ": %s", table, row, text);
    return HED_EFORMAT;
}

static int
check_homes(const struct hed_snap_reader *r, struct hed_why *why)
{
    for (uint32_t i = 0; i < r->footer.homes; i++) {
        const struct hed_snap_home_row *h = &r->home_rows[i];

        if (h->zero || hed_snap_uuid_is_zero(h->uuid))
            return refuse_row(why, "home", i, "not a snapshot");
        if (memcmp(h->uuid, r->super.uuid, sizeof h->uuid) == 0)
            return refuse_row(why, "home", i, "the snapshot names itself");
        for (uint32_t k = 0; k < i; k++) {
            if (memcmp(h->uuid, r->home_rows[k].uuid, sizeof h->uuid) == 0)
                return refuse_row(why, "home", i, "named twice");
        }
    }
    return 0;
}

/* Blobs lie one after the other between superblock and tables, so that none overlap. */
static int
check_blobs(const struct hed_snap_reader *r, struct hed_why *why)
{
    uint64_t end = HED_SNAP_BLOCK, stored = 0;

    for (uint32_t i = 0; i < r->footer.blobs; i++) {
        const struct hed_snap_blob_row *b = &r->blobs[i];

        if (b->offset % HED_SNAP_BLOCK || b->offset < end ||
            !hed_range_fits(b->offset, b->stored, r->footer.tables))
            return refuse_row(why, "blob", i, "is at an impossible position");
        if (b->size == 0 || b->size > r->super.chunk_size || b->stored == 0 || b->zero)
            return refuse_row(why, "blob", i, "has an impossible size");
        if (b->packing == HED_SNAP_RAW ? b->stored != b->size
                                       : b->packing != HED_SNAP_ZSTD || b->stored >= b->size ||
                                             !(r->footer.needs & HED_SNAP_NEED_ZSTD))
            return refuse_row(why, "blob", i, "is packed in an unknown way");
        end = b->offset + b->stored;
        stored += b->stored;
    }
    if (stored != r->footer.stored)
        return refuse_row(why, "blob", r->footer.blobs, "the sum of sizes is wrong");
    return 0;
}

int
hed_snap_check_name(uint32_t kind, const char *name, size_t bytes, struct hed_why *why)
{
    const bool named =
        kind == HED_SNAP_VARIABLE || kind == HED_SNAP_FILE || kind == HED_SNAP_OBJECTS;

    if (kind == 0 || kind > HED_SNAP_KIND_LAST) {
        hed_why_set(why, "extents of kind %" PRIu32 " are not known", kind);
        return HED_EFORMAT;
    }
    if (bytes > HED_SNAP_NAME_MAX || memchr(name, 0, bytes) || (named && bytes == 0)) {
        hed_why_set(why, "a %s cannot have this name", hed_snap_kind_name(kind));
        return HED_EFORMAT;
    }
    /* Files are extracted by their names. */
    if (kind == HED_SNAP_FILE && (memchr(name, '/', bytes) || strcmp(name, ".") == 0 ||
                                  strcmp(name, "..") == 0 || bytes > 255)) {
        hed_why_set(why, "the name of a file is not a plain file name");
        return HED_EFORMAT;
    }
    return 0;
}

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int
hed_snap_extent_compare(const struct hed_snap_extent *a, const struct hed_snap_extent *b)
{
    int order = compare_numbers(a->kind, b->kind);

    order = order ? order : compare_numbers(a->device, b->device);
    order = order ? order : compare_numbers(a->key, b->key);
    order = order ? order : compare_numbers(a->context, b->context);
    return order ? order : strcmp(a->name, b->name);
}

static int
compare_in_order(const void *a, const void *b, void *arg)
{
    const struct hed_snap_extent *extents = arg;

    return hed_snap_extent_compare(&extents[*(const uint32_t *)a], &extents[*(const uint32_t *)b]);
}

/* Where the rows of one extent must begin, after those before it. */
struct run {
    uint64_t chunk;
    uint64_t name;
    uint64_t content;
};

static int
check_extent(struct hed_snap_reader *r, uint32_t i, struct run *run, struct hed_why *why)
{
    const struct hed_snap_extent_row *e = &r->extent_rows[i];
    const uint64_t chunks = hed_divide_up(e->size, r->super.chunk_size);
    struct hed_why inner = {""};

    if (e->zero || e->zero2 || e->mode & ~07777u)
        return refuse_row(why, "extent", i, "has unknown flags");
    if (e->size > HED_SNAP_EXTENT_MAX || e->first != run->chunk ||
        !hed_range_fits(e->first, chunks, r->footer.chunks))
        return refuse_row(why, "extent", i, "names chunks that do not exist");
    if (e->name != run->name || e->name_bytes > HED_SNAP_NAME_MAX ||
        !hed_range_fits(e->name, (uint64_t)e->name_bytes + 1, r->footer.names) ||
        r->names[e->name + e->name_bytes] != 0)
        return refuse_row(why, "extent", i, "has a name outside of the table of names");
    if (hed_snap_check_name(e->kind, r->names + e->name, e->name_bytes, &inner) != 0)
        return refuse_row(why, "extent", i, inner.text);
    run->chunk += chunks;
    run->name += (uint64_t)e->name_bytes + 1;
    run->content += e->size;
    r->extents[i] = (struct hed_snap_extent){.kind = e->kind,
                                             .device = e->device,
                                             .key = e->key,
                                             .context = e->context,
                                             .size = e->size,
                                             .mode = e->mode,
                                             .name = r->names + e->name};
    r->order[i] = i;
    return 0;
}

static int
check_extents(struct hed_snap_reader *r, struct hed_why *why)
{
    const uint32_t n = r->footer.extents;
    struct run run = {0};

    r->extents = calloc(n ? n : 1, sizeof *r->extents);
    r->order = calloc(n ? n : 1, sizeof *r->order);
    if (!r->extents || !r->order) {
        hed_why_set(why, "not enough memory for %" PRIu32 " extents", n);
        return HED_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int err = check_extent(r, i, &run, why);

        if (err)
            return err;
    }
    if (run.chunk != r->footer.chunks || run.name != r->footer.names ||
        run.content != r->footer.content)
        return refuse_row(why, "extent", n, "the sums of sizes are wrong");
    qsort_r(r->order, n, sizeof *r->order, compare_in_order, r->extents);
    for (uint32_t i = 1; i < n; i++) {
        if (compare_in_order(&r->order[i - 1], &r->order[i], r->extents) == 0)
            return refuse_row(why, "extent", r->order[i], "appears twice");
    }
    return 0;
}

static int
check_chunk(const struct hed_snap_reader *r, const struct hed_snap_chunk_row *c, uint32_t length)
{
    if (c->home == HED_SNAP_ZEROS)
        return c->blob == 0 ? 0 : HED_EFORMAT;
    if (c->home != HED_SNAP_HERE)
        return c->home - 1 < r->footer.homes && c->blob < HED_SNAP_CHUNKS_MAX ? 0 : HED_EFORMAT;
    if (c->blob >= r->footer.blobs)
        return HED_EFORMAT;

    const struct hed_snap_blob_row *b = &r->blobs[c->blob];

    return b->size == length && b->hash[0] == c->hash[0] && b->hash[1] == c->hash[1] ? 0
                                                                                     : HED_EFORMAT;
}

static int
check_chunks(const struct hed_snap_reader *r, struct hed_why *why)
{
    for (uint32_t i = 0; i < r->footer.extents; i++) {
        const struct hed_snap_extent *e = &r->extents[i];
        const uint64_t first = r->extent_rows[i].first;
        const uint64_t n = hed_divide_up(e->size, r->super.chunk_size);

        for (uint64_t k = 0; k < n; k++) {
            const uint32_t length = hed_snap_length(e, r->super.chunk_size, k);

            if (check_chunk(r, &r->chunks[first + k], length) != 0)
                return refuse_row(why, "chunk", first + k, "is at the wrong position");
        }
    }
    return 0;
}

int
hed_snap_check_tables(struct hed_snap_reader *r, struct hed_why *why)
{
    int err = check_homes(r, why);

    err = err ? err : check_blobs(r, why);
    err = err ? err : check_extents(r, why);
    return err ? err : check_chunks(r, why);
}
