/* Packing chunks with zstd, if it was found at configure time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Memory for packing, which is reused from chunk to chunk. For one thread at a time. */
struct hed_snap_packer {
    struct hed_snap_packer *next; /* the owner's */
    void *context;                /* zstd's */
    unsigned char *data;          /* what was packed last */
    size_t room;                  /* bytes of data */
};

/* NULL: no memory, or no zstd. */
struct hed_snap_packer *hed_snap_packer_create(size_t chunk);
void hed_snap_packer_free(struct hed_snap_packer *p); /* p may be NULL */

/* Packs a chunk into p->data. The size that it has become, or 0 if it is not worth it: not at least
 * an eighth smaller, counted in blocks of the file. */
size_t hed_snap_pack(struct hed_snap_packer *p, int level, const void *data, size_t size);

/* Unpacks to exactly `size` bytes. HED_EFORMAT, HED_ENOMEM; HED_ENOTSUP: no zstd. */
int hed_snap_unpack(const void *data, size_t stored, void *out, size_t size);
