/* Tests of fastlibs/convolution: each kind, type and layout beside sums that go through every
 * element. */
#include "harness/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fastlibs/blas.h"
#include "fastlibs/convert.h"
#include "fastlibs/convolution.h"

#define DIMS HED_CONVOLUTION_DIMS

static void
play_sgemm(int order, int op_a, int op_b, int m, int n, int k, float alpha, const void *a_, int lda,
           const void *b_, int ldb, float beta, void *c_, int ldc)
{
    const float *a = a_, *b = b_;
    float *c = c_;

    assert_int_equal(order, 102);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            float *at = c + i + (int64_t)j * ldc;

            for (int l = 0; l < k; l++)
                sum += (double)a[op_a == 111 ? i + (int64_t)l * lda : l + (int64_t)i * lda] *
                       (double)b[op_b == 111 ? l + (int64_t)j * ldb : j + (int64_t)l * ldb];
            *at = (float)((double)alpha * sum + (beta != 0 ? (double)(beta * *at) : 0));
        }
}

static const struct hed_blas blas = {"played", false, {(void *)play_sgemm}};

/* ---- tensors --------------------------------------------------------------------------------- */

enum layout { PACKED, CHANNELS_LAST, WITH_GAPS, LAYOUTS };

static void
lay_out(struct hed_convolution_tensor *t, enum layout layout)
{
    static const unsigned char orders[LAYOUTS][DIMS] = {[PACKED] = {4, 3, 2, 1, 0},
                                                        [CHANNELS_LAST] = {1, 4, 3, 2, 0},
                                                        [WITH_GAPS] = {4, 3, 2, 1, 0}};
    int64_t step = layout == WITH_GAPS ? 2 : 1;

    for (unsigned i = 0; i < DIMS; i++) {
        const unsigned d = orders[layout][i];

        t->stride[d] = step;
        step *= t->size[d];
        /* Space has to be even. */
        if (layout == WITH_GAPS && d <= 2)
            step += 3;
    }
}

static double
get(const struct hed_convolution_tensor *t, enum hed_product_type type, const int64_t *at)
{
    int64_t place = 0;
    float f;

    for (unsigned i = 0; i < DIMS; i++)
        place += at[i] * t->stride[i];
    if (type == HED_PRODUCT_F32)
        return (double)((const float *)t->data)[place];
    if (type == HED_PRODUCT_F16)
        hed_convert_from_f16(&f, (const uint16_t *)t->data + place, 1);
    else
        hed_convert_from_bf16(&f, (const uint16_t *)t->data + place, 1);
    return (double)f;
}

/* All bytes, those between elements included. */
static size_t
bytes_of(const struct hed_convolution *c, const struct hed_convolution_tensor *t)
{
    const size_t bytes = hed_convolution_extent(t, c->type);

    assert_true(bytes > 0);
    return bytes;
}

static void
fill(const struct hed_convolution *c, struct hed_convolution_tensor *t, uint32_t *seed)
{
    const size_t n = bytes_of(c, t) / hed_product_size(c->type);

    t->data = malloc(bytes_of(c, t));
    assert_non_null(t->data);
    for (size_t i = 0; i < n; i++) {
        float f;

        *seed = *seed * 1664525 + 1013904223;
        f = (float)(*seed >> 24) / 128 - 1;
        if (c->type == HED_PRODUCT_F32)
            ((float *)t->data)[i] = f;
        else if (c->type == HED_PRODUCT_F16)
            hed_convert_to_f16((uint16_t *)t->data + i, &f, 1);
        else
            hed_convert_to_bf16((uint16_t *)t->data + i, &f, 1);
    }
}

static bool
next(const struct hed_convolution_tensor *t, int64_t *at)
{
    for (unsigned i = DIMS; i-- > 0;) {
        if (++at[i] < t->size[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* ---- what is expected ------------------------------------------------------------------------ */

/* Adds every product of an element of W and one of X to what the kind asks for. */
static void
sum_up(const struct hed_convolution *c, double *sums, const int64_t *size)
{
    const int64_t channels = c->w.size[1], groups = c->x.size[1] / channels;
    const int64_t filters = c->w.size[0] / groups;
    int64_t y[DIMS] = {0};

    do {
        int64_t tap[DIMS] = {0};

        do {
            int64_t x[DIMS] = {y[0], y[1] / filters * channels + tap[1]};
            int64_t w[DIMS] = {y[1], tap[1], tap[2], tap[3], tap[4]};
            const int64_t *at = c->kind == HED_CONVOLUTION_FORWARD   ? y
                                : c->kind == HED_CONVOLUTION_TO_DATA ? x
                                                                     : w;
            bool inside = tap[0] == 0; /* the filter is y's */
            int64_t place = 0;

            for (unsigned i = 0; i < HED_CONVOLUTION_SPACE; i++) {
                x[2 + i] = y[2 + i] * c->step[i] - c->before[i] + tap[2 + i] * c->dilation[i];
                inside = inside && x[2 + i] >= 0 && x[2 + i] < c->x.size[2 + i];
            }
            if (!inside)
                continue;
            for (unsigned i = 0; i < DIMS; i++)
                place = place * size[i] + at[i];
            sums[place] += (c->kind == HED_CONVOLUTION_FORWARD ? 1 : get(&c->y, c->type, y)) *
                           (c->kind == HED_CONVOLUTION_TO_DATA ? 1 : get(&c->x, c->type, x)) *
                           (c->kind == HED_CONVOLUTION_TO_FILTER ? 1 : get(&c->w, c->type, w));
        } while (next(&c->w, tap));
    } while (next(&c->y, y));
}

static void
check(struct hed_convolution *c, double error)
{
    struct hed_convolution_tensor *t = c->kind == HED_CONVOLUTION_FORWARD   ? &c->y
                                       : c->kind == HED_CONVOLUTION_TO_DATA ? &c->x
                                                                            : &c->w;
    struct hed_convolution_tensor before = *t;
    int64_t n = 1, at[DIMS] = {0}, i = 0;
    double *sums;

    for (unsigned d = 0; d < DIMS; d++)
        n *= t->size[d];
    sums = calloc((size_t)n, sizeof *sums);
    before.data = malloc(bytes_of(c, t));
    assert_true(sums && before.data);
    memcpy(before.data, t->data, bytes_of(c, t));
    sum_up(c, sums, t->size);
    assert_true(hed_convolution_is_sound(c));
    assert_true(hed_convolution_prepare(c));
    hed_convolution_run(c, &blas);
    do {
        const double want = c->alpha * sums[i++] + c->beta * get(&before, c->type, at);

        if (!(fabs(get(t, c->type, at) - want) <= error * (1 + fabs(want))))
            fail_msg("kind %u type %u: element %ld is %g, not %g", c->kind, c->type, (long)i - 1,
                     get(t, c->type, at), want);
    } while (next(t, at));
    free(before.data);
    free(sums);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shape {
    int64_t images, groups, channels, filters; /* channels and filters of a group */
    int64_t x[3], w[3], before[3], after[3], step[3], dilation[3];
};

static struct hed_convolution
make(const struct shape *s, enum hed_product_type type, enum layout layout)
{
    struct hed_convolution c = {.type = type, .alpha = 1};

    c.x.size[0] = c.y.size[0] = s->images;
    c.x.size[1] = s->groups * s->channels;
    c.w.size[0] = c.y.size[1] = s->groups * s->filters;
    c.w.size[1] = s->channels;
    for (unsigned i = 0; i < HED_CONVOLUTION_SPACE; i++) {
        c.before[i] = s->before[i];
        c.after[i] = s->after[i];
        c.step[i] = s->step[i];
        c.dilation[i] = s->dilation[i];
        c.x.size[2 + i] = s->x[i];
        c.w.size[2 + i] = s->w[i];
        c.y.size[2 + i] =
            (s->x[i] + s->before[i] + s->after[i] - s->dilation[i] * (s->w[i] - 1) - 1) /
                s->step[i] +
            1;
    }
    lay_out(&c.x, layout);
    lay_out(&c.y, layout);
    lay_out(&c.w, layout == WITH_GAPS ? PACKED : layout);
    return c;
}

static void
check_shape(const struct shape *s, enum hed_product_type type, double error)
{
    uint32_t seed = 1;

    for (unsigned i = 0; i < HED_CONVOLUTION_KINDS * LAYOUTS; i++) {
        struct hed_convolution c = make(s, type, i % LAYOUTS);

        c.kind = i / LAYOUTS;
        fill(&c, &c.x, &seed);
        fill(&c, &c.y, &seed);
        fill(&c, &c.w, &seed);
        check(&c, error);
        c.alpha = 0.5;
        c.beta = 2;
        check(&c, error);
        free(c.x.data);
        free(c.y.data);
        free(c.w.data);
    }
}

static const struct shape plain = {2,         1,         3,         5,         {1, 7, 6},
                                   {1, 3, 3}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}};

static void
all_types(void **state)
{
    (void)state;
    check_shape(&plain, HED_PRODUCT_F32, 1e-5);
    check_shape(&plain, HED_PRODUCT_F16, 5e-3);
    check_shape(&plain, HED_PRODUCT_BF16, 4e-2);
}

static void
all_shapes(void **state)
{
    static const struct shape shapes[] = {
        /* one place, one filter, one channel */
        {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {0}, {0}, {1, 1, 1}, {1, 1, 1}},
        /* steps, uneven zeros */
        {3, 1, 2, 4, {1, 9, 8}, {1, 3, 2}, {0, 2, 0}, {0, 1, 3}, {1, 2, 3}, {1, 1, 1}},
        /* dilation, groups */
        {2, 3, 2, 2, {1, 8, 9}, {1, 3, 3}, {0, 2, 2}, {0, 2, 2}, {1, 1, 2}, {1, 2, 2}},
        /* one channel and one filter for each group */
        {2, 4, 1, 1, {1, 5, 5}, {1, 3, 3}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
        /* three dimensions */
        {2, 1, 2, 3, {4, 5, 3}, {2, 3, 3}, {1, 1, 1}, {0, 1, 1}, {2, 1, 1}, {1, 1, 1}},
        /* more zeros than elements: some taps meet nothing */
        {1, 1, 1, 2, {1, 1, 2}, {1, 5, 5}, {0, 4, 4}, {0, 4, 4}, {1, 1, 1}, {1, 1, 1}},
        /* places that no filter reaches */
        {1, 1, 2, 2, {1, 6, 7}, {1, 1, 1}, {0}, {0}, {1, 3, 3}, {1, 1, 1}},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(&shapes[i], HED_PRODUCT_F32, 1e-5);
}

/* So many elements in a filter that a chunk has 32 places: chunks begin and end within a line, and
 * images have several chunks. */
static void
chunks(void **state)
{
    static const struct shape s = {3,         1,         1310,      1,         {1, 7, 9},
                                   {1, 5, 5}, {0, 2, 2}, {0, 2, 2}, {1, 1, 1}, {1, 1, 1}};

    (void)state;
    check_shape(&s, HED_PRODUCT_F32, 1e-4);
}

static void
unsound(void **state)
{
    struct hed_convolution good = make(&plain, HED_PRODUCT_F32, PACKED), c;
    float data[1];

    (void)state;
    good.x.data = good.y.data = good.w.data = data;
    assert_true(hed_convolution_is_sound(&good));
#define UNSOUND(change)                             \
    do {                                            \
        c = good;                                   \
        change;                                     \
        assert_false(hed_convolution_is_sound(&c)); \
    } while (0)
    UNSOUND(c.type = HED_PRODUCT_F64);
    UNSOUND(c.x.data = NULL);
    UNSOUND(c.y.data = (char *)data + 1);
    UNSOUND(c.y.size[4]++);
    UNSOUND(c.y.size[1]++);
    UNSOUND(c.y.size[0]++);
    UNSOUND(c.x.size[1]++);
    UNSOUND(c.w.size[1]++);
    UNSOUND(c.w.size[2] = 0);
    UNSOUND(c.step[1] = 0);
    UNSOUND(c.dilation[2] = -1);
    UNSOUND(c.before[0] = -1);
    UNSOUND(c.x.stride[0] = -1);
    UNSOUND(c.alpha = 0);                       /* then nothing is multiplied, not even NaN */
    UNSOUND(c.x.stride[4] = c.x.stride[3] = 0); /* places that are one */
    UNSOUND(c.y.stride[4] = 0);                 /* elements of a result in one place */
    UNSOUND(c.y.stride[1] = 2);                 /* or in each other */
    UNSOUND(c.x.stride[3] += 1);                /* lines farther apart than space */
    UNSOUND(c.x.stride[0] = INT64_MAX);         /* ends behind all memory */
    UNSOUND(c.x.size[0] = INT64_MAX);
    UNSOUND(c.after[2] = INT64_MAX);
    c = good;
    c.x.stride[0] = 0; /* an image for all of Y's is read only */
    assert_true(hed_convolution_is_sound(&c));
    c.kind = HED_CONVOLUTION_TO_DATA;
    assert_false(hed_convolution_is_sound(&c));
}

/* More scratch memory than anybody has. */
static void
too_large(void **state)
{
    struct shape s = plain;
    struct hed_convolution c;
    float data[1];

    (void)state;
    s.channels = 1 << 27;
    c = make(&s, HED_PRODUCT_F32, PACKED);
    c.x.data = c.y.data = c.w.data = data;
    assert_true(hed_convolution_is_sound(&c));
    assert_false(hed_convolution_prepare(&c));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types), cmocka_unit_test(all_shapes), cmocka_unit_test(chunks),
        cmocka_unit_test(unsound),   cmocka_unit_test(too_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
