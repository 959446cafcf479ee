/* Reading two snapshots in memory, for the fuzz targets. See snap_play.h. */
#include "snap_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/number.h"
#include "move/file/files.h"
#include "move/file/format.h"
#include "move/file/reader.h"
#include "move/file/reader_parts.h"
#include "move/file/writer.h"

/* More is not read chunk by chunk, nor written again: that takes long, and finds nothing. */
#define CONTENT_MAX (256u << 10) /* bytes */
#define CHUNK_MAX (64u << 10)    /* bytes */

static ssize_t
fuzz_pread(void *state, int fd, void *p, size_t n, uint64_t at)
{
    const struct snap_input *in = state;

    if (at >= in->size[fd])
        return 0;
    n = hed_min(n, in->size[fd] - at);
    memcpy(p, in->data[fd] + at, n);
    return (ssize_t)n;
}

static ssize_t
fuzz_pwrite(void *state, int fd, const void *p, size_t n, uint64_t at)
{
    (void)state;
    (void)fd;
    (void)p;
    (void)at;
    return (ssize_t)n;
}

static int
fuzz_sync(void *state, int fd)
{
    (void)state;
    (void)fd;
    return 0;
}

static int
fuzz_size(void *state, int fd, uint64_t *out)
{
    *out = ((const struct snap_input *)state)->size[fd];
    return 0;
}

static int
fuzz_truncate(void *state, int fd, uint64_t size)
{
    (void)state;
    (void)fd;
    (void)size;
    return 0;
}

static int
second_file(void *arg, const uint8_t uuid[HED_SNAP_UUID])
{
    (void)arg;
    (void)uuid;
    return 1;
}

/* ---- what a reader promises ------------------------------------------------------------------ */

static void
read_chunks(const struct hed_snap_reader *r)
{
    unsigned char *piece = malloc(hed_snap_reader_about(r)->chunk_size);

    for (uint32_t id = 0; piece && id < hed_snap_extent_count(r); id++) {
        const struct hed_snap_extent *e = hed_snap_extent_at(r, id);
        uint64_t bytes = 0;
        uint32_t found;

        must(hed_snap_extent_find(r, e, &found) && found == id);
        must(e->kind != HED_SNAP_FILE || (e->name[0] && !strchr(e->name, '/')));
        for (uint32_t i = 0; i < hed_snap_chunk_count(r, id); i++) {
            const size_t n = hed_snap_chunk_length(r, id, i);
            struct hed_snap_hash hash;
            struct hed_why why = {""};

            must(n > 0 && n <= hed_snap_reader_about(r)->chunk_size);
            bytes += n;
            if (hed_snap_chunk_get(r, id, i, piece, n, &why) != 0) {
                must(why.text[0]);
            } else if (hed_snap_chunk_where(r, id, i) != HED_SNAP_IS_ZERO) {
                hed_snap_hash(piece, n, &hash);
                must(hed_snap_hash_same(&hash, hed_snap_chunk_hash(r, id, i)));
            }
        }
        must(bytes == e->size);
    }
    free(piece);
}

static void
check_reader(const struct hed_snap_files *files, const struct hed_snap_reader *r)
{
    const struct hed_snap_about about = {.uuid = {1}, .chunk_size = 4096};
    struct hed_snap_writer *w = NULL;
    struct hed_snap_sizes sizes;

    hed_snap_reader_sizes(r, &sizes);
    must(sizes.zeros + sizes.elsewhere <= sizes.content);
    if (sizes.content > CONTENT_MAX || hed_snap_reader_about(r)->chunk_size > CHUNK_MAX)
        return;
    read_chunks(r);
    (void)hed_snap_verify(r, 1, NULL, NULL);
    if (hed_snap_writer_create(files, 0, &about, r, NULL, &w, NULL) == 0)
        must(hed_snap_writer_finish(w, NULL) == 0);
    hed_snap_writer_free(w);
}

/* Opens the first file: as a part of a snapshot, or only as a whole one; with or without homes. */
static void
open_input(const struct hed_snap_files *files, bool partial, bool homes)
{
    struct hed_snap_reader *r = NULL;
    struct hed_snap_writer *w = NULL;
    struct hed_why why = {""};

    if (hed_snap_reader_open(files, 0, partial ? HED_SNAP_OPEN_PARTIAL : 0,
                             homes ? second_file : NULL, NULL, &r, &why) != 0) {
        must(r == NULL && why.text[0]);
        return;
    }
    check_reader(files, r);
    if (partial && hed_snap_reader_about(r)->chunk_size <= CHUNK_MAX &&
        hed_snap_writer_append(files, 0, NULL, NULL, &w, &why) == 0)
        must(hed_snap_writer_finish(w, &why) == 0);
    hed_snap_writer_free(w);
    hed_snap_reader_free(r);
}

void
snap_play(struct snap_input *in, bool repaired)
{
    const struct hed_snap_files files = {.state = in,
                                         .pread = fuzz_pread,
                                         .pwrite = fuzz_pwrite,
                                         .datasync = fuzz_sync,
                                         .size = fuzz_size,
                                         .truncate = fuzz_truncate,
                                         .close = fuzz_sync};

    open_input(&files, true, repaired);
    if (repaired)
        open_input(&files, false, false);
}

/* ---- checksums ------------------------------------------------------------------------------- */

void
snap_repair(uint8_t *p, size_t size)
{
    struct hed_snap_super s;
    struct hed_snap_footer f;

    if (size < sizeof s + sizeof f)
        return;
    memcpy(&s, p, sizeof s);
    s.crc = hed_crc32c(0, &s, offsetof(struct hed_snap_super, crc));
    memcpy(p, &s, sizeof s);
    memcpy(&f, p + size - sizeof f, sizeof f);
    f.at = size - sizeof f;
    memcpy(f.uuid, s.uuid, sizeof f.uuid);
    if (f.tables <= f.at)
        hed_snap_digest(&s, p + f.tables, f.at - f.tables, &f, f.digest);
    f.crc = hed_crc32c(0, &f, offsetof(struct hed_snap_footer, crc));
    memcpy(p + size - sizeof f, &f, sizeof f);
}
