/* Checking every payload of a snapshot, with several threads. See reader.h. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/number.h"
#include "base/thread.h"
#include "move/file/reader_parts.h"

#define THREADS_MOST 64
#define THREADS_USUAL 8

/* One blob to be read. */
struct piece {
    const struct hed_snap_reader *reader;
    uint32_t blob;
    uint32_t home; /* the reader's number, as in a row of the table of chunks */
};

struct inspection {
    const struct hed_snap_reader *reader;
    struct piece *pieces; /* owned */
    size_t count, room;
    atomic_size_t next; /* piece that no thread has taken */

    struct hed_lock lock; /* guards all below */
    struct hed_snap_verdict verdict;
    size_t first_bad; /* piece; SIZE_MAX: none */
    struct hed_why why;
    int err; /* the system failed, which says nothing about the file */
};

/* ---- what there is to read ------------------------------------------------------------------- */

static void
add_blob_piece(struct inspection *v, const struct hed_snap_reader *r, uint32_t home, uint32_t blob)
{
    v->pieces[v->count++] = (struct piece){r, blob, home};
}

/* The blobs of one home that chunks of the snapshot lie in. */
static int
add_pieces_of_home(struct inspection *v, uint32_t home)
{
    const struct hed_snap_reader *r = v->reader;
    const struct hed_snap_reader *from = r->homes[home - 1].reader;
    uint8_t *used = calloc(1, from->footer.blobs ? from->footer.blobs : 1);

    if (!used)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < r->footer.chunks; i++) {
        const struct hed_snap_chunk_row *c = &r->chunks[i];

        if (c->home != home || used[c->blob])
            continue;
        used[c->blob] = 1;
        add_blob_piece(v, from, home, c->blob);
    }
    free(used);
    return 0;
}

static int
list_pieces(struct inspection *v)
{
    const struct hed_snap_reader *r = v->reader;
    int err = 0;

    /* Every blob here, and at most one elsewhere for each chunk. */
    v->room = (size_t)r->footer.blobs + r->footer.chunks;
    v->pieces = calloc(v->room ? v->room : 1, sizeof *v->pieces);
    if (!v->pieces)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < r->footer.blobs; i++)
        add_blob_piece(v, r, HED_SNAP_HERE, i);
    for (uint32_t i = 0; r->homes && i < r->footer.homes && err == 0; i++)
        err = add_pieces_of_home(v, i + 1);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int
read_piece(const struct piece *p, void *buffer, struct hed_why *why)
{
    const struct hed_snap_blob_row *b = &p->reader->blobs[p->blob];
    const int err = hed_snap_blob_get(p->reader, p->blob, buffer, true, why);

    if (err == 0 && b->packing == HED_SNAP_RAW && hed_crc32c(0, buffer, b->size) != b->crc) {
        hed_why_set(why, "the CRC of the bytes at 0x%" PRIx64 " is wrong", b->offset);
        return HED_EFORMAT;
    }
    return err;
}

static void
note_piece(struct inspection *v, size_t i, int err, const struct hed_why *why)
{
    const struct piece *p = &v->pieces[i];

    hed_lock(&v->lock);
    v->verdict.blobs++;
    v->verdict.bytes += p->reader->blobs[p->blob].size;
    v->verdict.bad += err != 0;
    if (err && i < v->first_bad) {
        v->first_bad = i;
        v->why = *why;
    }
    hed_unlock(&v->lock);
}

static void *
read_pieces(void *arg)
{
    struct inspection *v = arg;
    unsigned char *buffer = malloc(HED_SNAP_CHUNK_LEAST);
    size_t room = buffer ? HED_SNAP_CHUNK_LEAST : 0;
    size_t i;

    /* Relaxed: the pieces were made before the threads. */
    while ((i = atomic_fetch_add_explicit(&v->next, 1, memory_order_relaxed)) < v->count) {
        const struct piece *p = &v->pieces[i];
        const size_t size = p->reader->blobs[p->blob].size;
        struct hed_why why = {""};

        if (size > room) {
            free(buffer);
            buffer = malloc(p->reader->super.chunk_size);
            room = buffer ? p->reader->super.chunk_size : 0;
        }
        if (!buffer) {
            hed_lock(&v->lock);
            v->err = HED_ENOMEM;
            hed_unlock(&v->lock);
            break;
        }
        note_piece(v, i, read_piece(p, buffer, &why), &why);
    }
    free(buffer);
    return NULL;
}

static void
run_readers(struct inspection *v, unsigned threads)
{
    pthread_t others[THREADS_MOST];
    unsigned started = 0;

    if (threads == 0) {
        const long processors = sysconf(_SC_NPROCESSORS_ONLN);

        threads = (unsigned)hed_clamp(processors > 0 ? (uint64_t)processors : 1, 1, THREADS_USUAL);
    }
    threads = (unsigned)hed_min(hed_min(threads, THREADS_MOST), v->count);
    /* This thread reads, too; so none of the others is necessary. */
    while (started + 1 < threads && hed_thread_start(NULL, read_pieces, v, &others[started]) == 0)
        started++;
    (void)read_pieces(v);
    while (started > 0)
        (void)pthread_join(others[--started], NULL);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Says which chunk of the snapshot the first damaged blob is. */
static void
name_bad_piece(const struct inspection *v, struct hed_why *why)
{
    const struct hed_snap_reader *r = v->reader;
    const struct piece *p = &v->pieces[v->first_bad];
    char uuid[HED_SNAP_UUID_TEXT], text[256];

    (void)snprintf(text, sizeof text, "bytes that no chunk needs");
    for (uint32_t id = 0; id < r->footer.extents; id++) {
        const struct hed_snap_chunk_row *c = r->chunks + r->extent_rows[id].first;
        const uint32_t n = hed_snap_chunk_count(r, id);
        uint32_t i = 0;

        while (i < n && (c[i].home != p->home || c[i].blob != p->blob))
            i++;
        if (i == n)
            continue;

        const int at = snprintf(text, sizeof text, "chunk %" PRIu32 " of ", i);

        (void)hed_snap_extent_text(&r->extents[id], text + at, sizeof text - (size_t)at);
        break;
    }
    hed_why_set(why, "%" PRIu64 " damaged; the first is %s in snapshot %s: %s", v->verdict.bad,
                text, hed_snap_uuid_text(p->reader->super.uuid, uuid), v->why.text);
}

/* Zeros are not stored; that their hash is the one of zeros is all there is to check. */
static int
check_zeros(const struct hed_snap_reader *r, struct hed_why *why)
{
    struct hed_snap_hash hash = {{0, 0}};
    uint32_t hashed = 0;

    for (uint32_t id = 0; id < r->footer.extents; id++) {
        const uint32_t n = hed_snap_chunk_count(r, id);

        for (uint32_t i = 0; i < n; i++) {
            const uint32_t length = hed_snap_length(&r->extents[id], r->super.chunk_size, i);
            char text[256];

            if (hed_snap_chunk_where(r, id, i) != HED_SNAP_IS_ZERO)
                continue;
            if (length != hashed)
                hed_snap_hash_zeros(length, &hash);
            hashed = length;
            if (hed_snap_hash_same(&hash, hed_snap_chunk_hash(r, id, i)))
                continue;
            hed_why_set(why, "chunk %" PRIu32 " of %s is called zeros, but has another hash", i,
                        hed_snap_extent_text(&r->extents[id], text, sizeof text));
            return HED_EFORMAT;
        }
    }
    return 0;
}

int
hed_snap_verify(const struct hed_snap_reader *r, unsigned threads, struct hed_snap_verdict *out,
                struct hed_why *why)
{
    struct inspection v = {.reader = r, .first_bad = SIZE_MAX};
    int err = list_pieces(&v);

    hed_lock_init(&v.lock, HED_RANK_SNAP);
    if (err)
        hed_why_set(why, "no memory");
    else
        run_readers(&v, threads);
    if (err == 0 && v.err) {
        hed_why_set(why, "%s", hed_err_text(v.err));
        err = v.err;
    }
    if (err == 0 && v.verdict.bad) {
        name_bad_piece(&v, why);
        err = HED_EFORMAT;
    }
    err = err ? err : check_zeros(r, why);
    if (out)
        *out = v.verdict;
    free(v.pieces);
    hed_lock_fini(&v.lock);
    return err;
}
