/* Textures and surfaces as kernels see them: descriptors (driver/array.h) sampled in plain C.
 *
 *   coordinates -> level(s) -> texel position(s) by address mode -> texel -> filter -> result
 *
 * Filtering has weights of 8 bits behind the point, as the hardware has. An object that is no
 * descriptor, and an access outside of a surface that asks for it, end the kernel.
 */
#include <math.h>
#include <string.h>

#include "driver/array.h"
#include "ptx/abi.h"
#include "ptx/small_float.h"
#include "ptx/words.h"

/* Four channels: floats, or integers for textures that return them. */
union texel {
    float f[4];
    uint32_t u[4];
};

struct lookup {
    const struct hed_texture *t;
    struct hed_rt_access how;
    unsigned dimensions; /* coordinates without the layer */
    uint32_t layer;
    float at[3];     /* x y z */
    int32_t cell[3]; /* the same where coordinates are integers */
};

/* ---- texels ---------------------------------------------------------------------------------- */

static bool
is_whole(const struct hed_texture *t)
{
    return t->as_integer &&
           (t->format.texel == HED_TEXEL_UINT || t->format.texel == HED_TEXEL_SINT);
}

static float
linear_of_srgb(float v)
{
    return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

/* One channel of so many bits, as a float. */
static float
channel_value(const struct hed_format *f, uint32_t bits)
{
    const float top = f->bits == 32 ? 4294967295.0f : (float)((UINT32_C(1) << f->bits) - 1);

    switch (f->texel) {
    case HED_TEXEL_FLOAT:
        return f->bits == 16 ? hed_from_f16((uint16_t)bits) : hed_from_bits32(bits);
    case HED_TEXEL_SINT:
    case HED_TEXEL_SNORM: {
        const int32_t v = (int32_t)(bits << (32 - f->bits)) >> (32 - f->bits);

        return fmaxf((float)v / floorf(top / 2), -1);
    }
    default:
        return (float)bits / top;
    }
}

static union texel
read_texel(const struct hed_texture *t, const unsigned char *p)
{
    union texel v = {.u = {0}};

    if (!is_whole(t))
        v.f[3] = 1;
    else
        v.u[3] = 1;
    for (unsigned c = 0; c < t->format.channels; c++) {
        const unsigned bytes = t->format.bits / 8;
        uint32_t bits = 0;

        memcpy(&bits, p + (size_t)c * bytes, bytes);
        if (is_whole(t))
            v.u[c] =
                t->format.texel == HED_TEXEL_SINT
                    ? (uint32_t)((int32_t)(bits << (32 - t->format.bits)) >> (32 - t->format.bits))
                    : bits;
        else
            v.f[c] = channel_value(&t->format, bits);
        if (t->srgb && c < 3 && !is_whole(t))
            v.f[c] = linear_of_srgb(v.f[c]);
    }
    return v;
}

static union texel
border(const struct hed_texture *t)
{
    union texel v;

    memcpy(v.f, t->border, sizeof(v.f));
    return v;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Brings a texel position into the image by the address mode; false: the border. Wrapping and
 * mirroring are for normalised coordinates only; the others clamp then. */
static bool
settle(const struct hed_texture *t, unsigned d, uint32_t size, int64_t *i)
{
    const int64_t n = size;
    const unsigned mode = t->normalized || t->address[d] == CU_TR_ADDRESS_MODE_BORDER
                              ? t->address[d]
                              : CU_TR_ADDRESS_MODE_CLAMP;

    switch (mode) {
    case CU_TR_ADDRESS_MODE_BORDER:
        return *i >= 0 && *i < n;
    case CU_TR_ADDRESS_MODE_WRAP:
        *i = (*i % n + n) % n;
        return true;
    case CU_TR_ADDRESS_MODE_MIRROR: {
        const int64_t m = (*i % (2 * n) + 2 * n) % (2 * n);

        *i = m < n ? m : 2 * n - 1 - m;
        return true;
    }
    default:
        *i = *i < 0 ? 0 : *i >= n ? n - 1 : *i;
        return true;
    }
}

static uint32_t
size_of(const struct hed_image *g, unsigned d)
{
    return d == 0 ? g->width : d == 1 ? g->height : g->depth;
}

static union texel
fetch(const struct lookup *k, const struct hed_image *g, const int64_t *cell)
{
    const struct hed_texture *t = k->t;
    int64_t i[3] = {0, 0, 0};

    for (unsigned d = 0; d < k->dimensions; d++) {
        i[d] = cell[d];
        if (!settle(t, d, size_of(g, d), &i[d]))
            return border(t);
    }
    if (k->dimensions < 3) {
        const uint32_t layers = t->layers ? t->layers : 1;

        i[2] = t->first_layer + (int64_t)(k->layer < layers ? k->layer : layers - 1);
        if (i[2] >= g->depth)
            i[2] = g->depth - 1;
    }
    return read_texel(t, (const unsigned char *)(uintptr_t)(g->at + (uint64_t)i[2] * g->slice +
                                                            (uint64_t)i[1] * g->pitch +
                                                            (uint64_t)i[0] * t->format.bytes));
}

/* Coordinate d in texels. Far out it would leave the range of integers. */
static float
scaled(const struct lookup *k, const struct hed_image *g, unsigned d)
{
    const float v = k->t->normalized ? k->at[d] * (float)size_of(g, d) : k->at[d];

    return isnan(v) ? 0 : fminf(fmaxf(v, -0x1p40f), 0x1p40f);
}

/* ---- filters --------------------------------------------------------------------------------- */

static union texel
sample_nearest(const struct lookup *k, const struct hed_image *g)
{
    int64_t cell[3] = {0, 0, 0};

    for (unsigned d = 0; d < k->dimensions; d++)
        cell[d] = (int64_t)floorf(scaled(k, g, d));
    return fetch(k, g, cell);
}

/* The cell to the lower left and the weights of its neighbours, to 8 bits. */
static void
split(const struct lookup *k, const struct hed_image *g, int64_t *cell, float *weight)
{
    for (unsigned d = 0; d < k->dimensions; d++) {
        const float v = scaled(k, g, d) - 0.5f;
        const float low = floorf(v);

        cell[d] = (int64_t)low;
        weight[d] = floorf((v - low) * 256 + 0.5f) / 256;
    }
}

static union texel
sample_linear(const struct lookup *k, const struct hed_image *g)
{
    int64_t low[3] = {0, 0, 0};
    float weight[3] = {0, 0, 0};
    union texel sum = {.f = {0}};

    split(k, g, low, weight);
    for (unsigned corner = 0; corner < 1u << k->dimensions; corner++) {
        int64_t cell[3];
        float w = 1;

        for (unsigned d = 0; d < 3; d++) {
            const bool is_high = corner >> d & 1;

            cell[d] = low[d] + is_high;
            w *= d >= k->dimensions ? 1 : is_high ? weight[d] : 1 - weight[d];
        }
        if (w == 0)
            continue;

        const union texel v = fetch(k, g, cell);

        for (unsigned c = 0; c < 4; c++)
            sum.f[c] += w * v.f[c];
    }
    return sum;
}

/* tld4: one channel of the four texels around, in the order the manual says. */
static union texel
gather(const struct lookup *k, const struct hed_image *g)
{
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    int64_t low[3] = {0, 0, 0};
    float weight[3];
    union texel all;

    split(k, g, low, weight);
    for (unsigned i = 0; i < 4; i++) {
        const int64_t cell[3] = {low[0] + order[i][0], low[1] + order[i][1], 0};

        all.u[i] = fetch(k, g, cell).u[k->how.channel - HED_PTX_CHANNEL_R];
    }
    return all;
}

static union texel
sample_level(const struct lookup *k, unsigned level)
{
    const struct hed_texture *t = k->t;
    const struct hed_image *g = &t->level[level];

    if (k->how.is_integer) {
        const int64_t cell[3] = {k->cell[0], k->cell[1], k->cell[2]};

        /* Memory: what is outside reads as 0. */
        if (t->shape == HED_SHAPE_LINEAR && (cell[0] < 0 || cell[0] >= g->width))
            return (union texel){.u = {0}};
        return fetch(k, g, cell);
    }
    if (k->how.channel)
        return gather(k, g);
    if (t->filter == CU_TR_FILTER_MODE_LINEAR && !is_whole(t))
        return sample_linear(k, g);
    return sample_nearest(k, g);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The level a pair of gradients asks for: the logarithm of the longer one, in texels. */
static float
level_of(const struct lookup *k, const uint32_t *gradients)
{
    float longest = 0;

    for (unsigned i = 0; i < 2; i++) {
        float sum = 0;

        for (unsigned d = 0; d < k->dimensions; d++) {
            float v = hed_from_bits32(gradients[3 * i + d]);

            if (k->t->normalized)
                v *= (float)size_of(&k->t->level[0], d);
            sum += v * v;
        }
        longest = fmaxf(longest, sum);
    }
    return longest > 0 ? 0.5f * log2f(longest) : 0;
}

static union texel
sample(const struct lookup *k, const uint32_t *in)
{
    const struct hed_texture *t = k->t;
    const unsigned last = t->levels ? t->levels - 1u : 0;
    float level = 0;

    if (k->how.fetch == HED_PTX_FETCH_LEVEL)
        level = k->how.is_integer ? (float)(int32_t)in[4] : hed_from_bits32(in[4]);
    else if (k->how.fetch == HED_PTX_FETCH_GRAD)
        level = level_of(k, in + 5);
    if (last == 0)
        return sample_level(k, 0);
    level = fmaxf(t->level_min, fminf(level + t->bias, t->level_max));
    level = isnan(level) ? 0 : fmaxf(0, fminf(level, (float)last));
    if (t->mipmap_filter != CU_TR_FILTER_MODE_LINEAR || is_whole(t))
        return sample_level(k, (unsigned)floorf(level + 0.5f));

    const unsigned low = (unsigned)floorf(level);
    const float weight = floorf((level - (float)low) * 256 + 0.5f) / 256;
    union texel v = sample_level(k, low);

    if (weight > 0) {
        const union texel w = sample_level(k, low + 1);

        for (unsigned c = 0; c < 4; c++)
            v.f[c] = (1 - weight) * v.f[c] + weight * w.f[c];
    }
    return v;
}

/* Cube maps: the face, and where on it. */
static void
project(struct lookup *k)
{
    const float x = k->at[0];
    const float y = k->at[1];
    const float z = k->at[2];
    const float ax = fabsf(x);
    const float ay = fabsf(y);
    const float az = fabsf(z);
    float s, t, m;
    unsigned face;

    if (ax >= ay && ax >= az) {
        face = x >= 0 ? 0 : 1;
        m = ax;
        s = x >= 0 ? -z : z;
        t = -y;
    } else if (ay >= az) {
        face = y >= 0 ? 2 : 3;
        m = ay;
        s = x;
        t = y >= 0 ? z : -z;
    } else {
        face = z >= 0 ? 4 : 5;
        m = az;
        s = z >= 0 ? x : -x;
        t = -y;
    }
    k->at[0] = (s / m + 1) / 2;
    k->at[1] = (t / m + 1) / 2;
    k->layer = 6 * k->layer + face;
    k->dimensions = 2;
}

static unsigned
dimensions_of(unsigned geom)
{
    switch (geom) {
    case HED_PTX_GEOM_1D:
    case HED_PTX_GEOM_A1D:
        return 1;
    case HED_PTX_GEOM_2D:
    case HED_PTX_GEOM_A2D:
        return 2;
    default:
        return 3;
    }
}

void
hed_rt_texture(struct hed_ptx_strand *s, uint64_t object, uint64_t access, const uint32_t *in,
               uint32_t out[4], uint32_t line)
{
    struct lookup k = {.t = (const struct hed_texture *)(uintptr_t)object, .layer = in[0]};
    union texel v;

    memcpy(&k.how, &access, sizeof(k.how));
    if (object == 0 || object % _Alignof(struct hed_texture) || k.t->magic != HED_TEXTURE_MAGIC)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    k.dimensions = dimensions_of(k.how.geom);
    for (unsigned d = 0; d < k.dimensions; d++) {
        k.at[d] = hed_from_bits32(in[1 + d]);
        k.cell[d] = (int32_t)in[1 + d];
    }
    if (k.how.geom == HED_PTX_GEOM_CUBE || k.how.geom == HED_PTX_GEOM_ACUBE)
        project(&k);
    v = sample(&k, in);
    memcpy(out, v.u, sizeof(v.u));
}

/* ---- surfaces -------------------------------------------------------------------------------- */

/* Element x (in bytes), row and plane within a surface; false: outside, and nothing is to be done.
 */
static bool
place(struct hed_ptx_strand *s, const struct hed_image *g, const struct hed_rt_access *how,
      uint64_t row_bytes, uint64_t bytes, int64_t *at, uint32_t line)
{
    const int64_t last[3] = {(int64_t)(row_bytes - bytes), (int64_t)g->height - 1,
                             (int64_t)g->depth - 1};
    bool is_out = row_bytes < bytes;

    for (unsigned d = 0; d < 3; d++)
        is_out = is_out || at[d] < 0 || at[d] > last[d];
    if (!is_out)
        return true;
    if (how->clamp == HED_PTX_CLAMP_ZERO || row_bytes < bytes)
        return false;
    if (how->clamp != HED_PTX_CLAMP_CLAMP)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    for (unsigned d = 0; d < 3; d++)
        at[d] = at[d] < 0 ? 0 : at[d] > last[d] ? last[d] : at[d];
    return true;
}

void
hed_rt_surface(struct hed_ptx_strand *s, uint64_t object, uint64_t access, const uint32_t *in,
               void *data, uint32_t line)
{
    const struct hed_surface *f = (const struct hed_surface *)(uintptr_t)object;
    struct hed_rt_access how;

    memcpy(&how, &access, sizeof(how));
    if (object == 0 || object % _Alignof(struct hed_surface) || f->magic != HED_SURFACE_MAGIC)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);

    const uint64_t bytes = (uint64_t)how.count * hed_ptx_types[how.type].bits / 8;
    const unsigned dimensions = dimensions_of(how.geom);
    int64_t at[3] = {(int32_t)in[1], dimensions > 1 ? (int32_t)in[2] : 0,
                     dimensions > 2 ? (int32_t)in[3] : (int32_t)in[0]};

    if (how.fetch == HED_PTX_FETCH_P)
        at[0] *= f->format.bytes;
    if (!place(s, &f->image, &how, (uint64_t)f->image.width * f->format.bytes, bytes, at, line)) {
        if (!how.is_store)
            memset(data, 0, bytes);
        return;
    }

    unsigned char *p =
        (unsigned char *)(uintptr_t)(f->image.at + (uint64_t)at[2] * f->image.slice +
                                     (uint64_t)at[1] * f->image.pitch + (uint64_t)at[0]);

    if (how.is_store)
        memcpy(p, data, bytes);
    else
        memcpy(data, p, bytes);
}

/* ---- questions ------------------------------------------------------------------------------- */

static uint32_t
size_asked(const struct hed_image *g, uint32_t query)
{
    switch (query) {
    case HED_PTX_QUERY_WIDTH:
        return g->width;
    case HED_PTX_QUERY_HEIGHT:
        return g->height;
    case HED_PTX_QUERY_DEPTH:
    case HED_PTX_QUERY_ARRAY_SIZE:
        return g->depth;
    default:
        return 0;
    }
}

uint32_t
hed_rt_texture_query(struct hed_ptx_strand *s, uint64_t object, uint32_t query, uint32_t line)
{
    const struct hed_texture *t = (const struct hed_texture *)(uintptr_t)object;

    if (object == 0 || object % _Alignof(struct hed_texture))
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    if (t->magic == HED_SURFACE_MAGIC)
        return size_asked(&((const struct hed_surface *)(const void *)t)->image, query);
    if (t->magic != HED_TEXTURE_MAGIC)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    switch (query) {
    case HED_PTX_QUERY_NORMALIZED_COORDS:
        return t->normalized;
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
        return size_asked(&t->level[0], query);
    }
}

const struct hed_ptx_symbol hed_rt_textures[] = {
    {"hed_rt_texture", (const void *)hed_rt_texture},
    {"hed_rt_surface", (const void *)hed_rt_surface},
    {"hed_rt_texture_query", (const void *)hed_rt_texture_query},
    {NULL, NULL},
};
