/* Packing chunks with zstd: the only file of the room that knows the library. See pack.h. */
#include "move/file/pack.h"

#include <stdlib.h>

#ifdef HED_SNAP_HAS_ZSTD
#include <zstd.h>
#endif

#include "base/err.h"
#include "base/number.h"
#include "move/file/format.h"
#include "move/file/writer.h"

#ifdef HED_SNAP_HAS_ZSTD

bool
hed_snap_has_zstd(void)
{
    return true;
}

struct hed_snap_packer *
hed_snap_packer_create(size_t chunk)
{
    struct hed_snap_packer *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->room = ZSTD_compressBound(chunk);
    p->data = malloc(p->room);
    p->context = ZSTD_createCCtx();
    if (p->data && p->context)
        return p;
    hed_snap_packer_free(p);
    return NULL;
}

void
hed_snap_packer_free(struct hed_snap_packer *p)
{
    if (!p)
        return;
    ZSTD_freeCCtx(p->context);
    free(p->data);
    free(p);
}

size_t
hed_snap_pack(struct hed_snap_packer *p, int level, const void *data, size_t size)
{
    const size_t n = ZSTD_compressCCtx(p->context, p->data, p->room, data, size, level);

    if (ZSTD_isError(n))
        return 0;
    return hed_round_up(n, HED_SNAP_BLOCK) <= size - size / 8 ? n : 0;
}

int
hed_snap_unpack(const void *data, size_t stored, void *out, size_t size)
{
    const size_t n = ZSTD_decompress(out, size, data, stored);

    return !ZSTD_isError(n) && n == size ? 0 : HED_EFORMAT;
}

#else

bool
hed_snap_has_zstd(void)
{
    return false;
}

struct hed_snap_packer *
hed_snap_packer_create(size_t chunk)
{
    (void)chunk;
    return NULL;
}

void
hed_snap_packer_free(struct hed_snap_packer *p)
{
    (void)p; /* there is none */
}

size_t
hed_snap_pack(struct hed_snap_packer *p, int level, const void *data, size_t size)
{
    (void)p;
    (void)level;
    (void)data;
    (void)size;
    return 0;
}

int
hed_snap_unpack(const void *data, size_t stored, void *out, size_t size)
{
    (void)data;
    (void)stored;
    (void)out;
    (void)size;
    return HED_ENOTSUP;
}

#endif
