/* Snapshots for tests: small ones, whose content follows from a number. Included by one file of
 * each program. */
#pragma once

#include "harness/unit.h"

#include <stdlib.h>

#include "base/err.h"
#include "move/file/reader.h"
#include "move/file/store.h"
#include "move/file/writer.h"
#include "unit/snap/disk.h"

#define PIECE 4096u /* bytes of a chunk */

/* Device memory in a test: some extents, whose chunks each have a value; 0: zeros. */
#define CELLS 6
#define CELL_CHUNKS 5
#define TAIL 100 /* bytes of an extent's last chunk */
#define CELL_BYTES ((CELL_CHUNKS - 1) * PIECE + TAIL)

struct memory {
    uint32_t values[CELLS][CELL_CHUNKS];
};

static inline void
fill_piece(unsigned char *p, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        p[i] = value ? (unsigned char)((i ^ value * 2654435761u >> (i % 3 * 8)) | 1) : 0;
}

static inline size_t
piece_size(uint32_t chunk)
{
    return chunk == CELL_CHUNKS - 1 ? TAIL : PIECE;
}

static inline struct hed_snap_about
about_of(uint64_t epoch)
{
    struct hed_snap_about a = {.epoch = epoch,
                               .created_ns = 1000 + epoch,
                               .chunk_size = PIECE,
                               .heap_base = 0x200000000000,
                               .heap_size = 1 << 30,
                               .pid = 42,
                               .backend = "cpu",
                               .arch = "x86_64",
                               .device = "a device",
                               .address = "shm:test",
                               .program = "./train",
                               .label = "made"};

    memset(a.uuid, 0xa0, sizeof a.uuid);
    memcpy(a.uuid, &epoch, sizeof epoch);
    memset(a.session, 0x55, sizeof a.session);
    return a;
}

static inline struct hed_snap_extent
cell_of(uint32_t i)
{
    return (struct hed_snap_extent){
        .kind = HED_SNAP_DEVICE, .key = 0x200000000000 + i * 0x200000, .size = CELL_BYTES};
}

/* Puts all of the memory; what the parent has is only named. */
static inline int
put_memory(struct hed_snap_writer *w, const struct memory *m, bool try_same)
{
    unsigned char piece[PIECE];
    int err = 0;

    for (uint32_t i = 0; i < CELLS && err == 0; i++) {
        const struct hed_snap_extent e = cell_of(i);
        uint32_t id;

        err = hed_snap_extent_begin(w, &e, &id);
        for (uint32_t k = 0; k < CELL_CHUNKS && err == 0; k++) {
            struct hed_snap_hash hash;

            fill_piece(piece, piece_size(k), m->values[i][k]);
            hed_snap_hash(piece, piece_size(k), &hash);
            err = try_same ? hed_snap_chunk_same(w, id, k, &hash) : HED_ENOTFOUND;
            if (err == HED_ENOTFOUND)
                err = hed_snap_chunk_put(w, id, k, piece, piece_size(k), &hash);
        }
    }
    return err;
}

/* Does the snapshot have exactly this memory? */
static inline bool
has_memory(const struct hed_snap_reader *r, const struct memory *m)
{
    unsigned char piece[PIECE], expected[PIECE];

    for (uint32_t i = 0; i < CELLS; i++) {
        const struct hed_snap_extent e = cell_of(i);
        uint32_t id;

        if (!hed_snap_extent_find(r, &e, &id) || hed_snap_extent_at(r, id)->size != CELL_BYTES ||
            hed_snap_chunk_count(r, id) != CELL_CHUNKS)
            return false;
        for (uint32_t k = 0; k < CELL_CHUNKS; k++) {
            fill_piece(expected, piece_size(k), m->values[i][k]);
            if (hed_snap_chunk_get(r, id, k, piece, piece_size(k), NULL) != 0 ||
                memcmp(piece, expected, piece_size(k)) != 0)
                return false;
        }
    }
    return true;
}

/* A first memory, and the one of the next epoch: a few chunks change. */
static inline struct memory
memory_at(uint64_t epoch)
{
    struct memory m;

    for (uint32_t i = 0; i < CELLS * CELL_CHUNKS; i++)
        m.values[i / CELL_CHUNKS][i % CELL_CHUNKS] = i % 7 == 3 ? 0 : i + 1;
    for (uint64_t e = 1; e <= epoch; e++) {
        m.values[e % CELLS][e % CELL_CHUNKS] = (uint32_t)(1000 + e);
        m.values[e * 5 % CELLS][e * 3 % CELL_CHUNKS] = e % 4 ? (uint32_t)(2000 + e / 2) : 0;
    }
    return m;
}

/* Writes and publishes the memory of an epoch in a store, after a parent (NULL: in full). */
static inline int
save_epoch(struct hed_snap_store *s, const struct hed_snap_files *files, uint64_t epoch,
           const struct hed_snap_reader *parent, struct hed_why *why)
{
    const struct hed_snap_about about = about_of(epoch);
    const struct memory m = memory_at(epoch);
    struct hed_snap_writer *w = NULL;
    struct hed_snap_draft d;
    char name[HED_SNAP_FILE_NAME];

    hed_snap_store_name(epoch, about.uuid, name);

    int err = hed_snap_store_begin(s, name, about.uuid, &d, why);

    if (err)
        return err;
    err = hed_snap_writer_create(files, d.fd, &about, parent, NULL, &w, why);
    err = err ? err : put_memory(w, &m, parent != NULL);
    err = err ? err : hed_snap_writer_finish(w, why);
    hed_snap_writer_free(w);
    if (err)
        hed_snap_store_drop(s, &d);
    else
        err = hed_snap_store_publish(s, &d, true, why);
    return err;
}

/* The same after the newest one of the store, if there is one. */
static inline int
save_next(struct hed_snap_store *s, const struct hed_snap_files *files, uint64_t epoch,
          struct hed_why *why)
{
    struct hed_snap_reader *parent = NULL;
    char name[HED_SNAP_FILE_NAME];
    int fd = -1;
    int err = hed_snap_store_newest(s, NULL, UINT64_MAX, false, &fd, &parent, name, why);

    if (err && err != HED_ENOTFOUND)
        return err;
    err = save_epoch(s, files, epoch, parent, why);
    hed_snap_reader_free(parent);
    if (fd >= 0)
        (void)files->close(files->state, fd);
    return err;
}
