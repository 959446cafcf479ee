/* Textures as kernels see them: descriptors (driver/memory/array.h) sampled in plain C.
 *
 *   coordinates -> face -> level(s) -> texel position(s) by address mode -> texel -> filter
 *
 * The weights of filtering have 8 fractional bits, as in hardware; sums are rounded once. The
 * object 0 reads as 0, as on an H200. Any other object that is not a descriptor ends the kernel, by
 * a check or by the fault that reading it causes.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernel/engine/engine_parts.h"
#include "kernel/engine/rt.h"
#include "kernel/engine/texels.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/small_float.h"
#include "kernel/ptx/words.h"

#define FACES 6

/* Four channels: floats, or integers for textures that return them. */
union texel {
    float f[4];
    uint32_t u[4];
};

struct lookup {
    const struct hed_texture *t;
    const struct hed_ptx_grid *grid;
    struct hed_rt_access how;
    unsigned dimensions; /* 1 or 2 coordinates on a plane, or 3 */
    uint32_t plane;      /* layer or face; 0 if there are 3 dimensions */
    bool is_cube;
    float at[3];     /* x y z; of a cube, x and y on the face from 0 to 1 */
    int32_t cell[3]; /* the same, if the coordinates are integers */
    int32_t offset[3];
    float major; /* of a cube: the largest component of the direction */
};

/* ---- texels ---------------------------------------------------------------------------------- */

static bool
is_integer_texel(const struct hed_texture *t)
{
    return t->as_integer &&
           (t->format.texel == HED_TEXEL_UINT || t->format.texel == HED_TEXEL_SINT);
}

static float
linear_of_srgb(float v)
{
    return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

static int32_t
extend_channel(uint32_t bits, unsigned width)
{
    return (int32_t)(bits << (32 - width)) >> (32 - width);
}

/* One channel as a float. */
static float
channel_value(const struct hed_format *f, uint32_t bits)
{
    const float top = f->bits == 32 ? 4294967295.0f : (float)((UINT32_C(1) << f->bits) - 1);

    switch (f->texel) {
    case HED_TEXEL_FLOAT:
        return f->bits == 16 ? hed_from_f16((uint16_t)bits) : hed_from_bits32(bits);
    case HED_TEXEL_SINT:
    case HED_TEXEL_SNORM:
        return fmaxf((float)extend_channel(bits, f->bits) / floorf(top / 2), -1);
    default:
        return (float)bits / top;
    }
}

static union texel
read_texel(const struct hed_texture *t, const unsigned char *p)
{
    const unsigned bytes = t->format.bits / 8;
    const bool whole = is_integer_texel(t);
    const bool srgb = t->srgb && !whole && bytes == 1 && t->format.texel != HED_TEXEL_SINT;
    union texel v = {.u = {0, 0, 0, 0}}; /* missing channels are 0, as on an H200 */

    for (unsigned c = 0; c < t->format.channels; c++) {
        uint32_t bits = 0;

        memcpy(&bits, p + (size_t)c * bytes, bytes);
        if (whole && t->format.texel == HED_TEXEL_SINT)
            v.u[c] = (uint32_t)extend_channel(bits, t->format.bits);
        else if (whole)
            v.u[c] = bits;
        else
            v.f[c] = channel_value(&t->format, bits);
        if (srgb && c < 3)
            v.f[c] = linear_of_srgb(v.f[c]);
    }
    return v;
}

static union texel
border_texel(const struct hed_texture *t)
{
    union texel v;

    memcpy(v.f, t->border, sizeof(v.f));
    return v;
}

/* ---- cubes ----------------------------------------------------------------------------------- */

/* The face that a direction points to, and the position on it, from -1 to 1, before the division by
 * major. */
static unsigned
find_face(const float *at, float *s, float *t, float *major)
{
    const float x = at[0];
    const float y = at[1];
    const float z = at[2];

    if (fabsf(x) >= fabsf(y) && fabsf(x) >= fabsf(z)) {
        *major = fabsf(x);
        *s = x >= 0 ? -z : z;
        *t = -y;
        return x >= 0 ? 0 : 1;
    }
    if (fabsf(y) >= fabsf(z)) {
        *major = fabsf(y);
        *s = x;
        *t = y >= 0 ? z : -z;
        return y >= 0 ? 2 : 3;
    }
    *major = fabsf(z);
    *s = z >= 0 ? x : -x;
    *t = -y;
    return z >= 0 ? 4 : 5;
}

static void
project_on_face(struct lookup *k)
{
    float s, t;
    const unsigned face = find_face(k->at, &s, &t, &k->major);

    k->at[0] = (s / k->major + 1) / 2;
    k->at[1] = (t / k->major + 1) / 2;
    k->plane = k->plane / FACES * FACES + face;
    k->is_cube = true;
    k->dimensions = 2;
}

/* A cell beyond an edge of a face belongs to the next face; the direction to its centre says
 * which. */
static void
cross_edge(uint32_t size, uint32_t *plane, int64_t *cell)
{
    const float s = (2 * (float)cell[0] + 1) / (float)size - 1;
    const float t = (2 * (float)cell[1] + 1) / (float)size - 1;
    const float to[FACES][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
    float at[2], major;
    const unsigned face = find_face(to[*plane % FACES], &at[0], &at[1], &major);

    *plane = *plane / FACES * FACES + face;
    for (unsigned d = 0; d < 2; d++)
        cell[d] = (int64_t)floorf((at[d] / major + 1) / 2 * (float)size);
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Brings a texel position into the image as the address mode says; false if the border is read.
 * Wrapping and mirroring are for normalised coordinates only; without those, they clamp. */
static bool
apply_address_mode(const struct lookup *k, unsigned d, uint32_t size, int64_t *i)
{
    const int64_t n = size;
    unsigned mode = k->is_cube ? CU_TR_ADDRESS_MODE_CLAMP : k->t->address[d];

    if (!k->t->normalized && mode != CU_TR_ADDRESS_MODE_BORDER)
        mode = CU_TR_ADDRESS_MODE_CLAMP;
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
image_size(const struct hed_texels *g, unsigned d)
{
    return d == 0 ? g->width : d == 1 ? g->height : g->depth;
}

static union texel
fetch_texel(const struct lookup *k, const struct hed_texels *g, const int64_t *cell)
{
    const struct hed_texture *t = k->t;
    uint32_t plane = k->plane;
    int64_t i[3] = {0, 0, 0};

    for (unsigned d = 0; d < k->dimensions; d++)
        i[d] = cell[d] + k->offset[d];
    /* Linear memory reads as 0 outside. */
    if (t->shape == HED_SHAPE_LINEAR && (i[0] < 0 || i[0] >= g->width))
        return (union texel){.u = {0}};
    if (k->is_cube && t->seamless &&
        (i[0] < 0 || i[0] >= g->width || i[1] < 0 || i[1] >= g->height))
        cross_edge(g->width, &plane, i);
    for (unsigned d = 0; d < k->dimensions; d++)
        if (!apply_address_mode(k, d, image_size(g, d), &i[d]))
            return border_texel(t);
    if (k->dimensions < 3)
        i[2] = plane < g->depth ? plane : g->depth - 1;
    return read_texel(t,
                      (const unsigned char *)(uintptr_t)hed_ptx_in_sandbox(
                          k->grid, g->at + (uint64_t)i[2] * g->slice + (uint64_t)i[1] * g->pitch +
                                       (uint64_t)i[0] * t->format.bytes));
}

/* Coordinate d in texels, limited to the range of integers. */
static float
scaled(const struct lookup *k, const struct hed_texels *g, unsigned d)
{
    const bool is_share = k->t->normalized || k->is_cube;
    const float v = is_share ? k->at[d] * (float)image_size(g, d) : k->at[d];

    return isnan(v) ? 0 : fminf(fmaxf(v, -0x1p40f), 0x1p40f);
}

/* ---- filters --------------------------------------------------------------------------------- */

static union texel
sample_nearest(const struct lookup *k, const struct hed_texels *g)
{
    int64_t cell[3] = {0, 0, 0};

    for (unsigned d = 0; d < k->dimensions; d++)
        cell[d] = (int64_t)floorf(scaled(k, g, d));
    return fetch_texel(k, g, cell);
}

/* The cell to the lower left, and the weights of its neighbours with 8 bits. */
static void
split_coordinates(const struct lookup *k, const struct hed_texels *g, int64_t *cell, double *weight)
{
    for (unsigned d = 0; d < k->dimensions; d++) {
        const double v = (double)scaled(k, g, d) - 0.5;
        const double low = floor(v);

        cell[d] = (int64_t)low;
        weight[d] = floor((v - low) * 256 + 0.5) / 256;
    }
}

/* At a corner of a cube three faces meet: the fourth texel is the mean of the three others. */
static union texel
fetch_corner(const struct lookup *k, const struct hed_texels *g, const int64_t *cell)
{
    const int64_t x = cell[0] < 0 ? 0 : g->width - 1;
    const int64_t y = cell[1] < 0 ? 0 : g->height - 1;
    const int64_t at[3][3] = {{x, y, 0}, {cell[0], y, 0}, {x, cell[1], 0}};
    union texel mean = {.f = {0}};

    for (unsigned i = 0; i < 3; i++) {
        const union texel v = fetch_texel(k, g, at[i]);

        for (unsigned c = 0; c < 4; c++)
            mean.f[c] += v.f[c] / 3;
    }
    return mean;
}

static bool
is_corner(const struct lookup *k, const struct hed_texels *g, const int64_t *cell)
{
    return k->is_cube && k->t->seamless && (cell[0] < 0 || cell[0] >= g->width) &&
           (cell[1] < 0 || cell[1] >= g->height);
}

static union texel
sample_linear(const struct lookup *k, const struct hed_texels *g)
{
    int64_t low[3] = {0, 0, 0};
    double weight[3] = {0, 0, 0};
    double sum[4] = {0, 0, 0, 0};
    union texel out;

    split_coordinates(k, g, low, weight);
    for (unsigned corner = 0; corner < 1u << k->dimensions; corner++) {
        int64_t cell[3];
        double w = 1;

        for (unsigned d = 0; d < 3; d++) {
            const bool is_high = corner >> d & 1;

            cell[d] = low[d] + is_high;
            w *= d >= k->dimensions ? 1 : is_high ? weight[d] : 1 - weight[d];
        }
        if (w == 0)
            continue;

        const union texel v =
            is_corner(k, g, cell) ? fetch_corner(k, g, cell) : fetch_texel(k, g, cell);

        for (unsigned c = 0; c < 4; c++)
            sum[c] += w * (double)v.f[c];
    }
    for (unsigned c = 0; c < 4; c++)
        out.f[c] = (float)sum[c];
    return out;
}

/* tld4: one channel of the four surrounding texels, in the order of the PTX manual. */
static union texel
gather_texels(const struct lookup *k, const struct hed_texels *g)
{
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    int64_t low[3] = {0, 0, 0};
    double weight[3];
    union texel all;

    split_coordinates(k, g, low, weight);
    for (unsigned i = 0; i < 4; i++) {
        const int64_t cell[3] = {low[0] + order[i][0], low[1] + order[i][1], 0};

        all.u[i] = fetch_texel(k, g, cell).u[(k->how.channel - HED_PTX_CHANNEL_R) & 3];
    }
    return all;
}

static union texel
sample_level(const struct lookup *k, unsigned level)
{
    const struct hed_texture *t = k->t;
    const struct hed_texels *g = &t->level[level];

    if (k->how.is_integer) {
        const int64_t cell[3] = {k->cell[0], k->cell[1], k->cell[2]};

        return fetch_texel(k, g, cell);
    }
    if (k->how.channel)
        return gather_texels(k, g);
    if (t->filter == CU_TR_FILTER_MODE_LINEAR && !is_integer_texel(t))
        return sample_linear(k, g);
    return sample_nearest(k, g);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The level that a pair of gradients selects: the logarithm of the longer one, in texels. On a cube
 * the gradients are those of the direction; a face is twice as wide as the direction's largest
 * component. */
static float
level_of(const struct lookup *k, const uint32_t *gradients)
{
    const struct hed_texels *g = &k->t->level[0];
    const unsigned count = k->is_cube ? 3 : k->dimensions;
    float longest = 0;

    for (unsigned i = 0; i < 2; i++) {
        float sum = 0;

        for (unsigned d = 0; d < count; d++) {
            float v = hed_from_bits32(gradients[3 * i + d]);

            if (k->is_cube)
                v *= (float)g->width / (2 * k->major);
            else if (k->t->normalized)
                v *= (float)image_size(g, d);
            sum += v * v;
        }
        longest = fmaxf(longest, sum);
    }
    return 0.5f * log2f(longest);
}

static union texel
sample_texture(const struct lookup *k, const uint32_t *in)
{
    const struct hed_texture *t = k->t;
    const unsigned last = t->levels ? t->levels - 1u : 0;
    float level = 0;

    if (last == 0)
        return sample_level(k, 0);
    if (k->how.fetch == HED_PTX_FETCH_LEVEL)
        level = k->how.is_integer ? (float)(int32_t)in[4] : hed_from_bits32(in[4]);
    else if (k->how.fetch == HED_PTX_FETCH_GRAD)
        level = level_of(k, in + 5);
    level = isnan(level) ? 0 : fmaxf(t->level_min, fminf(level + t->bias, t->level_max));
    level = fmaxf(0, fminf(level, (float)last));
    if (t->mipmap_filter != CU_TR_FILTER_MODE_LINEAR || is_integer_texel(t))
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

/* ---- the instruction ------------------------------------------------------------------------- */

/* The plane of a layer; layers beyond the last are the last. */
static uint32_t
plane_of(const struct hed_texture *t, unsigned geom, uint32_t layer)
{
    const uint32_t each = geom == HED_PTX_GEOM_ACUBE ? FACES : 1;
    const uint32_t count = t->layers / each;

    if (geom != HED_PTX_GEOM_A1D && geom != HED_PTX_GEOM_A2D && geom != HED_PTX_GEOM_ACUBE)
        return t->first_layer;
    return t->first_layer + (layer < count ? layer : count ? count - 1 : 0) * each;
}

/* How many coordinates count. ptxas makes of one float two of which the second is 0, so on an H200
 * linear filtering mixes the only row with the border above it. */
static unsigned
dimensions_of(const struct hed_rt_access *how)
{
    return how->geom == HED_PTX_GEOM_1D && !how->is_integer ? 2
                                                            : hed_ptx_geom_coordinates(how->geom);
}

/* Halves are 16 bits in a word, or pairs. */
static void
put_result(const union texel *v, unsigned type, uint32_t out[4])
{
    uint32_t half[4];

    memcpy(out, v->u, sizeof(v->u));
    if (type != HED_PTX_TYPE_F16 && type != HED_PTX_TYPE_F16X2)
        return;
    for (unsigned c = 0; c < 4; c++)
        half[c] = hed_to_f16(v->f[c]);
    if (type == HED_PTX_TYPE_F16) {
        memcpy(out, half, sizeof(half));
    } else {
        out[0] = half[0] | half[1] << 16;
        out[1] = half[2] | half[3] << 16;
    }
}

bool
hed_format_is_sound(const struct hed_format *f)
{
    return (f->bits == 8 || f->bits == 16 || f->bits == 32) && f->channels >= 1 &&
           f->channels <= 4 && f->bytes == f->bits / 8 * f->channels;
}

bool
hed_texels_are_sound(const struct hed_texels *g)
{
    return g->width != 0 && g->height != 0 && g->depth != 0;
}

const struct hed_texture *
hed_engine_texture_of(const struct hed_ptx_warp *s, uint64_t object, struct hed_texture *own)
{
    const struct hed_texture *t = (const struct hed_texture *)(uintptr_t)object;
    const size_t head = offsetof(struct hed_texture, level);

    if (object % _Alignof(struct hed_texture))
        return NULL;
    if (s->grid->sandbox_outer == 0)
        return t->magic == HED_TEXTURE_MAGIC ? t : NULL;
    t = (const struct hed_texture *)(uintptr_t)hed_ptx_in_sandbox(s->grid, object);
    memcpy(own, t, head);
    if (own->magic != HED_TEXTURE_MAGIC || own->levels < 1 || own->levels > HED_MIPMAP_LEVELS ||
        !hed_format_is_sound(&own->format))
        return NULL;
    memcpy(own->level, t->level, own->levels * sizeof own->level[0]);
    for (unsigned i = 0; i < own->levels; i++)
        if (!hed_texels_are_sound(&own->level[i]))
            return NULL;
    return own;
}

/* A reference by name that is bound to nothing; it reads as 0, too. */
static bool
is_unbound(const struct hed_ptx_warp *s, uint64_t object)
{
    const union hed_reference_room *r;

    if (object % _Alignof(union hed_reference_room))
        return false;
    r = (const union hed_reference_room *)(uintptr_t)hed_ptx_in_sandbox(s->grid, object);
    return r->magic == HED_UNBOUND_MAGIC;
}

void
hed_rt_texture(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
               uint32_t out[4], uint32_t line)
{
    struct hed_texture own;
    struct lookup k = {.grid = s->grid};
    union texel v;

    hed_engine_warp_look(s);
    object = hed_engine_object(s, object);
    memcpy(&k.how, &access, sizeof(k.how));
    if (object == 0) {
        memset(out, 0, 4 * sizeof(*out));
        return;
    }
    s->line = line; /* for the report of a fault that a bad object causes */
    k.t = hed_engine_texture_of(s, object, &own);
    if (!k.t && is_unbound(s, object)) {
        memset(out, 0, 4 * sizeof(*out));
        return;
    }
    if (!k.t)
        hed_rt_trap(s, HED_PTX_TRAP_ADDRESS, line);
    k.dimensions = dimensions_of(&k.how);
    k.plane = plane_of(k.t, k.how.geom, in[0]);
    for (unsigned d = 0; d < k.dimensions; d++) {
        k.at[d] = hed_from_bits32(in[1 + d]);
        k.cell[d] = (int32_t)in[1 + d];
        k.offset[d] = (int32_t)in[11 + d];
    }
    if (k.how.geom == HED_PTX_GEOM_CUBE || k.how.geom == HED_PTX_GEOM_ACUBE)
        project_on_face(&k);
    v = sample_texture(&k, in);
    put_result(&v, k.how.type, out);
    s->line = 0;
}
