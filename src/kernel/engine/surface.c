/* Surfaces as kernels see them, and queries about textures and surfaces. Both are descriptors
 * (driver/memory/array.h) of plain memory.
 *
 * An object that is not a descriptor ends the kernel; so does an access outside of a surface, if
 * the access says .trap.
 */
#include <math.h>
#include <string.h>

#include "kernel/engine/engine_parts.h"
#include "kernel/engine/rt.h"
#include "kernel/engine/texels.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/small_float.h"
#include "kernel/ptx/words.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* A confined kernel can write where the descriptor lies, so it is copied before it is checked. */
static struct hed_surface
surface_of(struct hed_ptx_warp *s, uint64_t object, uint32_t line)
{
    struct hed_surface f;

    hed_engine_warp_look(s);
    object = hed_engine_object(s, object);
    s->line = line; /* for the report of a fault that a bad object causes */
    if (object == 0 || object % _Alignof(struct hed_surface))
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    memcpy(&f, (const void *)(uintptr_t)hed_ptx_in_sandbox(s->grid, object), sizeof f);
    if (f.magic != HED_SURFACE_MAGIC || !hed_format_is_sound(&f.format) ||
        !hed_texels_are_sound(&f.image))
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    return f;
}

/* Clamps byte, row and plane to the surface; false if they are outside and nothing is to be
 * done. */
static bool
clamp_to_surface(struct hed_ptx_warp *s, const struct hed_surface *f,
                 const struct hed_rt_access *how, uint64_t bytes, int64_t *at, uint32_t line)
{
    const int64_t row = (int64_t)f->image.width * f->format.bytes;
    const int64_t last[3] = {row - (int64_t)bytes, (int64_t)f->image.height - 1,
                             (int64_t)f->image.depth - 1};
    bool is_out = false;

    for (unsigned d = 0; d < 3; d++)
        is_out = is_out || at[d] < 0 || at[d] > last[d];
    if (!is_out)
        return true;
    if (how->clamp != HED_PTX_CLAMP_ZERO && how->clamp != HED_PTX_CLAMP_CLAMP)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    if (how->clamp == HED_PTX_CLAMP_ZERO || last[0] < 0)
        return false;
    for (unsigned d = 0; d < 3; d++)
        at[d] = at[d] < 0 ? 0 : at[d] > last[d] ? last[d] : at[d];
    return true;
}

/* The address of that many bytes; NULL if they are outside. */
static unsigned char *
surface_address(struct hed_ptx_warp *s, const struct hed_surface *f,
                const struct hed_rt_access *how, const uint32_t *in, uint64_t bytes, uint32_t line)
{
    const unsigned dimensions = hed_ptx_geom_coordinates(how->geom);
    int64_t at[3] = {(int32_t)in[1], dimensions > 1 ? (int32_t)in[2] : 0,
                     dimensions > 2 ? (int32_t)in[3] : (int64_t)in[0]}; /* layers: unsigned */

    if (how->fetch == HED_PTX_FETCH_P)
        at[0] *= f->format.bytes;
    if (!clamp_to_surface(s, f, how, bytes, at, line))
        return NULL;
    return (unsigned char *)(uintptr_t)hed_ptx_in_sandbox(
        s->grid, f->image.at + (uint64_t)at[2] * f->image.slice + (uint64_t)at[1] * f->image.pitch +
                     (uint64_t)at[0]);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* Converts a word to a channel. The word is a float if the format holds floats or normalised
 * numbers, else an integer; it is clamped to what the channel holds. */
static uint32_t
channel_bits(const struct hed_format *f, uint32_t word)
{
    const int64_t top = INT64_C(1) << f->bits;
    const int64_t half = top / 2;
    int64_t v;

    switch (f->texel) {
    case HED_TEXEL_FLOAT:
        return f->bits == 16 ? hed_to_f16(hed_from_bits32(word)) : word;
    case HED_TEXEL_UNORM: /* "not above 0" includes NaN */
        return (uint32_t)(hed_from_bits32(word) > 0
                              ? rint(fmin(hed_from_bits32(word), 1) * (double)(top - 1))
                              : 0);
    case HED_TEXEL_SNORM:
        if (isnan(hed_from_bits32(word)))
            return 0;
        v = (int64_t)rint(fmax(fmin(hed_from_bits32(word), 1), -1) * (double)(half - 1));
        return (uint32_t)v;
    case HED_TEXEL_SINT:
        v = (int32_t)word;
        return (uint32_t)(v < -half ? -half : v >= half ? half - 1 : v);
    default:
        v = word;
        return (uint32_t)(v >= top ? top - 1 : v);
    }
}

static void
store_formatted(const struct hed_format *f, unsigned char *p, const uint32_t *words, unsigned count)
{
    const unsigned bytes = f->bits / 8;

    for (unsigned c = 0; c < f->channels && c < count; c++) {
        const uint32_t bits = channel_bits(f, words[c]);

        memcpy(p + (size_t)c * bytes, &bits, bytes);
    }
}

void
hed_rt_surface(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
               void *data, uint32_t line)
{
    const struct hed_surface own = surface_of(s, object, line), *f = &own;
    struct hed_rt_access how;

    memcpy(&how, &access, sizeof(how));

    const bool is_formatted = how.fetch == HED_PTX_FETCH_P;
    const uint64_t bytes =
        is_formatted ? f->format.bytes : (uint64_t)how.count * hed_ptx_types[how.type].bits / 8;
    unsigned char *p = surface_address(s, f, &how, in, bytes, line);

    if (!p && !how.is_store)
        memset(data, 0, bytes);
    else if (p && !how.is_store)
        memcpy(data, p, bytes);
    else if (p && is_formatted)
        store_formatted(&f->format, p, data, how.count);
    else if (p)
        memcpy(p, data, bytes);
    s->line = 0;
}

/* ---- reductions ------------------------------------------------------------------------------ */

static uint64_t
reduce_values(const struct hed_rt_access *how, uint64_t a, uint64_t b)
{
    const bool is_wide = hed_ptx_types[how->type].bits == 64;
    bool is_less = a < b;

    if (hed_ptx_types[how->type].kind == HED_PTX_KIND_S)
        is_less = is_wide ? (int64_t)a < (int64_t)b : (int32_t)a < (int32_t)b;
    switch (how->channel) {
    case HED_PTX_OPER_ADD:
        return a + b;
    case HED_PTX_OPER_MIN:
        return is_less ? a : b;
    case HED_PTX_OPER_MAX:
        return is_less ? b : a;
    case HED_PTX_OPER_AND:
        return a & b;
    default:
        return a | b;
    }
}

/* Relaxed: pairs with the reductions of other threads. Like atomics on global memory, they order
 * nothing else. */
static void
reduce32(const struct hed_rt_access *how, uint32_t *p, uint32_t v)
{
    uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(p, &old, (uint32_t)reduce_values(how, old, v), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void
reduce64(const struct hed_rt_access *how, uint64_t *p, uint64_t v)
{
    uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(p, &old, reduce_values(how, old, v), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

void
hed_rt_surface_reduce(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                      const void *data, uint32_t line)
{
    const struct hed_surface own = surface_of(s, object, line), *f = &own;
    struct hed_rt_access how;
    uint64_t v = 0;

    memcpy(&how, &access, sizeof(how));

    const unsigned bytes = hed_ptx_types[how.type].bits / 8;
    unsigned char *p = surface_address(s, f, &how, in, bytes, line);

    if ((uintptr_t)p % bytes)
        hed_rt_trap(s, HED_PTX_TRAP_ALIGN, line);
    memcpy(&v, data, bytes);
    if (p && bytes == 8)
        reduce64(&how, (uint64_t *)(void *)p, v);
    else if (p)
        reduce32(&how, (uint32_t *)(void *)p, (uint32_t)v);
    s->line = 0;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The numbers of channel types in PTX, which are those of OpenCL. */
static uint32_t
type_number(const struct hed_format *f, bool is_share)
{
    const uint32_t size = f->bits == 8 ? 0 : f->bits == 16 ? 1 : 2;

    switch (f->texel) {
    case HED_TEXEL_FLOAT:
        return f->bits == 16 ? 0x10dd : 0x10de;
    case HED_TEXEL_SNORM:
        return 0x10d0 + size;
    case HED_TEXEL_UNORM:
        return 0x10d2 + size;
    case HED_TEXEL_SINT:
        return is_share ? 0x10d0 + size : 0x10d7 + size;
    default:
        return is_share ? 0x10d2 + size : 0x10da + size;
    }
}

static uint32_t
order_number(const struct hed_format *f)
{
    return f->channels == 1 ? 0x10b0 : f->channels == 2 ? 0x10b2 : 0x10b5;
}

static uint32_t
size_asked(const struct hed_texels *g, unsigned shape, uint32_t layers, uint32_t query)
{
    const bool is_cube = shape == HED_SHAPE_CUBE || shape == HED_SHAPE_CUBE_LAYERED;

    switch (query) {
    case HED_PTX_QUERY_WIDTH:
        return g->width;
    case HED_PTX_QUERY_HEIGHT:
        return g->height;
    case HED_PTX_QUERY_DEPTH:
        return shape == HED_SHAPE_3D ? g->depth : 1;
    case HED_PTX_QUERY_ARRAY_SIZE:
        return is_cube ? layers / 6 : layers;
    default:
        return 0;
    }
}

static uint32_t
ask_surface(const struct hed_surface *f, uint32_t query)
{
    switch (query) {
    case HED_PTX_QUERY_CHANNEL_DATA_TYPE:
        return type_number(&f->format, false);
    case HED_PTX_QUERY_CHANNEL_ORDER:
        return order_number(&f->format);
    default:
        return size_asked(&f->image, f->shape,
                          f->shape >= HED_SHAPE_1D_LAYERED ? f->image.depth : 1, query);
    }
}

static uint32_t
ask_texture(const struct hed_texture *t, uint32_t query, uint32_t level)
{
    switch (query) {
    case HED_PTX_QUERY_CHANNEL_DATA_TYPE:
        return type_number(&t->format, !t->as_integer);
    case HED_PTX_QUERY_CHANNEL_ORDER:
        return order_number(&t->format);
    case HED_PTX_QUERY_NORMALIZED_COORDS:
        return t->normalized;
    case HED_PTX_QUERY_FORCE_UNNORMALIZED:
        return 0;
    case HED_PTX_QUERY_FILTER_MODE:
        return t->filter;
    case HED_PTX_QUERY_ADDR_MODE_0:
    case HED_PTX_QUERY_ADDR_MODE_1:
    case HED_PTX_QUERY_ADDR_MODE_2:
        return t->address[query - HED_PTX_QUERY_ADDR_MODE_0];
    case HED_PTX_QUERY_NUM_MIPMAP_LEVELS:
        return t->levels;
    case HED_PTX_QUERY_NUM_SAMPLES:
        return 1;
    default:
        return level < t->levels ? size_asked(&t->level[level], t->shape, t->layers, query) : 0;
    }
}

uint32_t
hed_rt_texture_query(struct hed_ptx_warp *s, uint64_t object, uint32_t query, uint32_t level,
                     uint32_t line)
{
    struct hed_surface surface;
    struct hed_texture own;
    const struct hed_texture *t;
    uint32_t answer = 0, magic;

    hed_engine_warp_look(s);
    s->line = line;
    if (hed_engine_object(s, object) == 0 ||
        hed_engine_object(s, object) % _Alignof(struct hed_texture))
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    memcpy(&magic,
           (const void *)(uintptr_t)hed_ptx_in_sandbox(s->grid, hed_engine_object(s, object)),
           sizeof magic);
    if (magic == HED_SURFACE_MAGIC) {
        surface = surface_of(s, object, line);
        answer = ask_surface(&surface, query);
    } else {
        t = hed_engine_texture_of(s, hed_engine_object(s, object), &own);
        if (!t)
            hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
        answer = ask_texture(t, query, level);
    }
    s->line = 0;
    return answer;
}
