/* Unpacking images: LZ4 blocks and zstd frames. The only file that knows these libraries; each is
 * used if it was found at configure time (HED_FATBIN_HAS_LZ4, HED_FATBIN_HAS_ZSTD).
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#ifdef HED_FATBIN_HAS_LZ4
#include <lz4.h>
#endif
#ifdef HED_FATBIN_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "base/arena.h"
#include "base/err.h"
#include "kernel/fatbin/fatbin.h"

/* An entry may claim too small a size: its image is tried again with twice the room, this often. */
#define TRIES 3

bool
hed_fatbin_can_unpack(enum hed_fatbin_packing packing)
{
    switch (packing) {
    case HED_PACKING_NONE:
        return true;
#ifdef HED_FATBIN_HAS_LZ4
    case HED_PACKING_LZ4:
        return true;
#endif
#ifdef HED_FATBIN_HAS_ZSTD
    case HED_PACKING_ZSTD:
        return true;
#endif
    default:
        return false;
    }
}

const char *
hed_fatbin_packing_name(enum hed_fatbin_packing packing)
{
    switch (packing) {
    case HED_PACKING_NONE:
        return "none";
    case HED_PACKING_LZ4:
        return "LZ4";
    case HED_PACKING_ZSTD:
        return "zstd";
    case HED_PACKING_SEALED:
        return "sealed";
    default:
        return "unknown";
    }
}

static int
cannot(const struct hed_fatbin_entry *e, struct hed_why *why)
{
    if (e->packing == HED_PACKING_LZ4 || e->packing == HED_PACKING_ZSTD)
        hed_why_set(why, "needs %s support, which this heddle was built without",
                    hed_fatbin_packing_name(e->packing));
    else if (e->packing == HED_PACKING_SEALED)
        hed_why_set(why, "is scrambled; only NVIDIA's own tools read it");
    else
        hed_why_set(why, "is compressed in an unknown way (flags 0x%" PRIx64 ")", e->flags);
    return HED_ENOTSUP;
}

#ifdef HED_FATBIN_HAS_LZ4
static int
unpack_lz4(struct hed_bytes from, void *out, size_t room, size_t *size)
{
    if (from.size > INT_MAX)
        return HED_ELIMIT;

    const int limit = room < INT_MAX ? (int)room : INT_MAX;
    const int n = LZ4_decompress_safe((const char *)from.data, out, (int)from.size, limit);

    if (n < 0)
        return HED_EFORMAT;
    *size = (size_t)n;
    return 0;
}
#endif

#ifdef HED_FATBIN_HAS_ZSTD
static int
unpack_zstd(struct hed_bytes from, void *out, size_t room, size_t *size)
{
    const size_t n = ZSTD_decompress(out, room, from.data, from.size);

    if (ZSTD_isError(n))
        return ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall ? HED_ELIMIT : HED_EFORMAT;
    *size = n;
    return 0;
}
#endif

/* PTX is stored with its NUL and padded with more NULs. */
static size_t
without_nuls(const struct hed_fatbin_entry *e, const uint8_t *p, size_t n)
{
    while (e->kind == HED_FATBIN_PTX && n > 0 && p[n - 1] == 0)
        n--;
    return n;
}

static int
unpack_none(struct hed_bytes from, void *out, size_t room, size_t *size)
{
    if (from.size > room)
        return HED_ELIMIT;
    if (from.size)
        memcpy(out, from.data, from.size);
    *size = from.size;
    return 0;
}

int
hed_fatbin_unpack(const struct hed_fatbin_entry *e, void *out, size_t room, size_t *size,
                  struct hed_why *why)
{
    size_t n = 0;
    int err;

    switch (e->packing) {
    case HED_PACKING_NONE:
        err = unpack_none(e->stored, out, room, &n);
        break;
#ifdef HED_FATBIN_HAS_LZ4
    case HED_PACKING_LZ4:
        err = unpack_lz4(e->stored, out, room, &n);
        /* LZ4 does not tell whether the room was too small or the data bad. */
        if (err == HED_EFORMAT && room < e->size)
            err = HED_ELIMIT;
        break;
#endif
#ifdef HED_FATBIN_HAS_ZSTD
    case HED_PACKING_ZSTD:
        err = unpack_zstd(e->stored, out, room, &n);
        break;
#endif
    default:
        return cannot(e, why);
    }
    if (err == 0)
        *size = without_nuls(e, out, n);
    else if (err == HED_ELIMIT)
        hed_why_set(why, "unpacks to more than %zu bytes", room);
    else
        hed_why_set(why, "does not unpack: not %s data", hed_fatbin_packing_name(e->packing));
    return err;
}

int
hed_fatbin_image(const struct hed_fatbin_entry *e, struct hed_arena *arena, struct hed_bytes *out,
                 struct hed_why *why)
{
    uint64_t room = e->size ? e->size : (uint64_t)e->stored.size * 4;
    int err = HED_ENOTSUP;

    if (e->packing == HED_PACKING_NONE) {
        *out = e->stored;
        out->size = without_nuls(e, e->stored.data, e->stored.size);
        return 0;
    }
    if (!hed_fatbin_can_unpack(e->packing))
        return cannot(e, why);
    for (int i = 0; i < TRIES; i++, room *= 2) {
        size_t n;
        uint8_t *p = NULL;

        /* Only the ceiling depends on the entry; an empty heap does not. */
        if (room > arena->ceiling - arena->used || room > SIZE_MAX / 2) {
            hed_why_set(why, "claims %" PRIu64 " bytes unpacked, over the limit of %zu", room,
                        arena->ceiling);
            return HED_ELIMIT;
        }
        p = hed_arena_alloc(arena, (size_t)room, 16);
        if (!p) {
            hed_why_set(why, "%s", hed_err_text(HED_ENOMEM));
            return HED_ENOMEM;
        }
        err = hed_fatbin_unpack(e, p, (size_t)room, &n, why);
        if (err == 0) {
            *out = (struct hed_bytes){p, n};
            return 0;
        }
        if (err != HED_ELIMIT && e->packing != HED_PACKING_LZ4)
            break;
    }
    return err;
}
