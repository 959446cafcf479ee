/* Computes convolutions by the CPU's BLAS. See convolution.h.
 *
 * For each group of channels, the elements of X that meet the filters become a matrix of floats:
 * a row for each element of a filter, a column for each place of Y, in chunks of places that stay
 * in the processor's caches. With W as filters by rows and Y as filters by places,
 *
 *     forward     Y    = W * columns(X)
 *     to data     X   += columns(transposed W * Y)      each element to where it came from
 *     to filter   W   += Y * transposed columns(X)
 *
 * All three are summed up as floats, whatever the tensors' type is, and rounded once.
 */
#include "fastlibs/convolution.h"

#include <string.h>

#include "base/number.h"
#include "fastlibs/blas.h"
#include "fastlibs/columns.h"
#include "fastlibs/scratch.h"

#define COLUMNS_MOST (1 << 20) /* elements of a matrix of columns: 4 MiB */
#define PLACES_LEAST 32        /* places of Y in a chunk, even if filters are large */
#define SCRATCH_MOST (UINT64_C(1) << 34)

/* What one group needs, in elements. */
struct plan {
    int64_t rows, places, filters, groups; /* places: of all images */
    int64_t chunk;                         /* places */
    int64_t images;                        /* to data: how many are summed up at once */
    bool in_place;                         /* filters are floats, row by row: no copy is needed */
    uint64_t filter_floats, column_floats, y_floats, sum_floats;
};

/* Scratch memory of a group. */
struct parts {
    float *filter, *columns, *y, *sums;
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool
are_sound_sizes(const struct hed_convolution_tensor *t)
{
    int64_t elements = 1;

    for (unsigned i = 0; i < HED_CONVOLUTION_DIMS; i++)
        if (t->size[i] < 1 || t->size[i] > INT32_MAX || t->stride[i] < 0 ||
            __builtin_mul_overflow(elements, t->size[i], &elements) || elements > INT64_MAX / 64)
            return false;
    return true;
}

/* Do no two elements lie in the same place? Only what is written must be so. */
static bool
is_apart(const struct hed_convolution_tensor *t)
{
    int64_t behind = 0; /* the farthest element among dimensions with smaller strides */
    bool done[HED_CONVOLUTION_DIMS] = {false};

    for (unsigned n = 0; n < HED_CONVOLUTION_DIMS; n++) {
        int least = -1;

        for (int i = 0; i < HED_CONVOLUTION_DIMS; i++)
            if (!done[i] && (least < 0 || t->stride[i] < t->stride[least]))
                least = i;
        done[least] = true;
        if (t->size[least] == 1)
            continue;
        if (t->stride[least] <= behind)
            return false;
        behind += (t->size[least] - 1) * t->stride[least];
    }
    return true;
}

static const struct hed_convolution_tensor *
written_tensor(const struct hed_convolution *c)
{
    return c->kind == HED_CONVOLUTION_FORWARD   ? &c->y
           : c->kind == HED_CONVOLUTION_TO_DATA ? &c->x
                                                : &c->w;
}

static bool
is_sound_space(const struct hed_convolution *c, unsigned i)
{
    const int64_t reach = c->dilation[i] * (c->w.size[2 + i] - 1) + 1;
    const int64_t all = c->x.size[2 + i] + c->before[i] + c->after[i];

    return all >= reach && c->y.size[2 + i] == (all - reach) / c->step[i] + 1;
}

bool
hed_convolution_is_sound(const struct hed_convolution *c)
{
    const int64_t filters = c->w.size[0], channels = c->w.size[1];

    if ((c->type != HED_PRODUCT_F32 && c->type != HED_PRODUCT_F16 && c->type != HED_PRODUCT_BF16) ||
        c->alpha == 0)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        const struct hed_convolution_tensor *t = (const void *[]){&c->x, &c->y, &c->w}[i];

        if (!t->data || (uintptr_t)t->data % hed_product_size(c->type) || !are_sound_sizes(t) ||
            hed_convolution_extent(t, c->type) == 0)
            return false;
    }
    for (unsigned i = 0; i < HED_CONVOLUTION_SPACE; i++)
        if (c->step[i] < 1 || c->dilation[i] < 1 || c->before[i] < 0 || c->after[i] < 0 ||
            c->step[i] > INT16_MAX || c->dilation[i] > INT16_MAX || c->before[i] > INT16_MAX ||
            c->after[i] > INT16_MAX || !is_sound_space(c, i))
            return false;
    /* They are numbers of a BLAS, which may have 32 bits. */
    if (channels * c->w.size[2] * c->w.size[3] * c->w.size[4] > INT32_MAX)
        return false;
    return c->y.size[0] == c->x.size[0] && c->y.size[1] == filters &&
           c->x.size[1] % channels == 0 && filters % (c->x.size[1] / channels) == 0 &&
           hed_columns_step(&c->x) > 0 && hed_columns_step(&c->y) > 0 &&
           is_apart(written_tensor(c));
}

uint64_t
hed_convolution_extent(const struct hed_convolution_tensor *t, enum hed_product_type type)
{
    uint64_t behind = 1, more;

    for (unsigned i = 0; i < HED_CONVOLUTION_DIMS; i++)
        if (t->size[i] < 1 || t->stride[i] < 0 ||
            __builtin_mul_overflow((uint64_t)t->stride[i], (uint64_t)t->size[i] - 1, &more) ||
            __builtin_add_overflow(behind, more, &behind))
            return 0;
    return __builtin_mul_overflow(behind, (uint64_t)hed_product_size(type), &behind) ? 0 : behind;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Do filters lie as floats, row by row? */
static bool
is_filter_in_place(const struct hed_convolution *c)
{
    int64_t expected = 1;

    if (c->type != HED_PRODUCT_F32)
        return false;
    for (unsigned i = HED_CONVOLUTION_DIMS; i-- > 0; expected *= c->w.size[i])
        if (c->w.size[i] > 1 && c->w.stride[i] != expected)
            return false;
    return true;
}

static struct plan
make_plan(const struct hed_convolution *c)
{
    struct plan p = {.groups = c->x.size[1] / c->w.size[1]};
    const int64_t space = c->y.size[2] * c->y.size[3] * c->y.size[4];
    int64_t image;

    p.rows = c->w.size[1] * c->w.size[2] * c->w.size[3] * c->w.size[4];
    p.filters = c->w.size[0] / p.groups;
    p.places = c->y.size[0] * space;
    p.chunk = (int64_t)hed_max(COLUMNS_MOST / hed_max(p.rows, p.filters), PLACES_LEAST);
    p.chunk = hed_min_signed(p.chunk, p.places);
    image = c->w.size[1] * c->x.size[2] * c->x.size[3] * c->x.size[4];
    p.images = (int64_t)hed_min(p.chunk / space, COLUMNS_MOST / (uint64_t)image);
    p.images = (int64_t)hed_clamp(p.images, 1, c->x.size[0]);
    p.column_floats = (uint64_t)p.chunk * p.rows;
    p.y_floats = (uint64_t)p.chunk * p.filters;
    p.in_place = is_filter_in_place(c);
    if (c->kind == HED_CONVOLUTION_TO_DATA)
        p.sum_floats = p.images * image;
    if (c->kind == HED_CONVOLUTION_TO_FILTER)
        p.sum_floats = p.in_place ? 0 : p.filters * p.rows;
    else
        p.filter_floats = p.in_place ? 0 : p.filters * p.rows;
    return p;
}

/* Bytes; 0: too many. */
static uint64_t
scratch_size(const struct plan *p)
{
    const uint64_t parts[] = {p->filter_floats, p->column_floats, p->y_floats, p->sum_floats};
    uint64_t floats = 0;

    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] > SCRATCH_MOST / sizeof(float))
            return 0;
        floats += parts[i];
    }
    return floats <= SCRATCH_MOST / sizeof(float) ? floats * sizeof(float) : 0;
}

bool
hed_convolution_prepare(const struct hed_convolution *c)
{
    const struct plan p = make_plan(c);
    const uint64_t size = scratch_size(&p);

    return size > 0 && hed_scratch_reserve(size);
}

/* ---- the three kinds ------------------------------------------------------------------------- */

/* Only if they are in place. */
static float *
filters_of_group(const struct hed_convolution *c, const struct plan *p, int64_t group)
{
    return (float *)c->w.data + group * p->filters * c->w.stride[0];
}

static const float *
read_filter(const struct hed_convolution *c, const struct plan *p, int64_t group, float *to)
{
    if (p->in_place)
        return filters_of_group(c, p, group);
    hed_columns_read_filter(c, group * p->filters, p->filters, to);
    return to;
}

static void
run_forward(const struct hed_convolution *c, const struct plan *p, const struct hed_blas *blas,
            const struct parts *at, int64_t group)
{
    const float *filter = read_filter(c, p, group, at->filter);

    for (int64_t first = 0; first < p->places; first += p->chunk) {
        const struct hed_columns_part part = {group, group * p->filters, p->filters, first,
                                              hed_min_signed(p->places - first, p->chunk)};

        hed_columns_read(c, &part, at->columns);
        hed_blas_gemm(blas, &(struct hed_blas_gemm){
                                .type = HED_PRODUCT_F32,
                                .op_a = 'N',
                                .op_b = 'N',
                                .m = part.places,
                                .n = p->filters,
                                .k = p->rows,
                                .alpha = {c->alpha, 0},
                                .a = at->columns,
                                .b = filter,
                                .c = at->y,
                                .lda = part.places,
                                .ldb = p->rows,
                                .ldc = part.places,
                            });
        hed_columns_write_y(c, &part, at->y);
    }
}

static void
run_to_data(const struct hed_convolution *c, const struct plan *p, const struct hed_blas *blas,
            const struct parts *at, int64_t group)
{
    const float *filter = read_filter(c, p, group, at->filter);
    const int64_t space = p->places / c->y.size[0];

    for (int64_t image = 0; image < c->x.size[0]; image += p->images) {
        const int64_t images = hed_min_signed(c->x.size[0] - image, p->images);
        const int64_t end = (image + images) * space;
        const struct hed_columns_images of = {group, image, images};

        memset(at->sums, 0, p->sum_floats * sizeof(float));
        for (int64_t first = image * space; first < end; first += p->chunk) {
            const struct hed_columns_part part = {group, group * p->filters, p->filters, first,
                                                  hed_min_signed(end - first, p->chunk)};

            hed_columns_read_y(c, &part, at->y);
            hed_blas_gemm(blas, &(struct hed_blas_gemm){
                                    .type = HED_PRODUCT_F32,
                                    .op_a = 'N',
                                    .op_b = 'T',
                                    .m = part.places,
                                    .n = p->rows,
                                    .k = p->filters,
                                    .alpha = {c->alpha, 0},
                                    .a = at->y,
                                    .b = filter,
                                    .c = at->columns,
                                    .lda = part.places,
                                    .ldb = p->rows,
                                    .ldc = part.places,
                                });
            hed_columns_add(c, &part, at->columns, image, at->sums);
        }
        hed_columns_write_x(c, &of, at->sums);
    }
}

static void
run_to_filter(const struct hed_convolution *c, const struct plan *p, const struct hed_blas *blas,
              const struct parts *at, int64_t group)
{
    float *sums = p->in_place ? filters_of_group(c, p, group) : at->sums;

    for (int64_t first = 0; first < p->places; first += p->chunk) {
        const struct hed_columns_part part = {group, group * p->filters, p->filters, first,
                                              hed_min_signed(p->places - first, p->chunk)};

        hed_columns_read(c, &part, at->columns);
        hed_columns_read_y(c, &part, at->y);
        hed_blas_gemm(blas, &(struct hed_blas_gemm){
                                .type = HED_PRODUCT_F32,
                                .op_a = 'T',
                                .op_b = 'N',
                                .m = p->rows,
                                .n = p->filters,
                                .k = part.places,
                                .alpha = {c->alpha, 0},
                                .beta = {first         ? 1
                                         : p->in_place ? c->beta
                                                       : 0,
                                         0},
                                .a = at->columns,
                                .b = at->y,
                                .c = sums,
                                .lda = part.places,
                                .ldb = part.places,
                                .ldc = p->rows,
                            });
    }
    if (!p->in_place)
        hed_columns_write_filter(c, group * p->filters, p->filters, sums);
}

void
hed_convolution_run(const struct hed_convolution *c, const struct hed_blas *blas)
{
    static void (*const runs[])(const struct hed_convolution *, const struct plan *,
                                const struct hed_blas *, const struct parts *, int64_t) = {
        [HED_CONVOLUTION_FORWARD] = run_forward,
        [HED_CONVOLUTION_TO_DATA] = run_to_data,
        [HED_CONVOLUTION_TO_FILTER] = run_to_filter,
    };
    const struct plan p = make_plan(c);
    float *scratch = hed_scratch_take(scratch_size(&p));
    struct parts at;

    at.filter = scratch;
    at.columns = at.filter + p.filter_floats;
    at.y = at.columns + p.column_floats;
    at.sums = at.y + p.y_floats;
    for (int64_t group = 0; group < p.groups; group++)
        runs[c->kind](c, &p, blas, &at, group);
    hed_scratch_put(scratch);
}
