/* Tests of fastlibs/normalisation: each kind, type and layout beside sums in double. */
#include "harness/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fastlibs/normalisation.h"

#define CHANNELS 5
#define ELEMENTS_MOST (3 * CHANNELS * 2 * 31 * 37)

enum layout { PACKED, CHANNELS_LAST, WITH_GAPS, LAYOUTS };

/* ---- tensors --------------------------------------------------------------------------------- */

static void
lay_out(struct hed_tensor *t, const int64_t *size, enum layout layout)
{
    static const unsigned char orders[LAYOUTS][HED_TENSOR_DIMS] = {
        [PACKED] = {4, 3, 2, 1, 0},
        [CHANNELS_LAST] = {1, 4, 3, 2, 0},
        [WITH_GAPS] = {4, 3, 2, 1, 0},
    };
    int64_t step = layout == WITH_GAPS ? 2 : 1;

    for (unsigned i = 0; i < HED_TENSOR_DIMS; i++) {
        const unsigned d = orders[layout][i];

        t->size[d] = size[d];
        t->stride[d] = step;
        step *= size[d];
        if (layout == WITH_GAPS && d <= 2)
            step += 3;
    }
}

static int64_t
place_of(const struct hed_tensor *t, const int64_t *at)
{
    int64_t place = 0;

    for (unsigned i = 0; i < HED_TENSOR_DIMS; i++)
        place += at[i] * t->stride[i];
    return place;
}

static double
get(const struct hed_normalisation *n, const struct hed_tensor *t, const int64_t *at)
{
    float f;

    hed_tensor_read(&f, (char *)t->data + place_of(t, at) * hed_product_size(n->type), n->type, 1,
                    1);
    return (double)f;
}

static void
fill(const struct hed_normalisation *n, struct hed_tensor *t, uint32_t *seed, float about)
{
    const size_t bytes = hed_tensor_extent(t, n->type),
                 elements = bytes / hed_product_size(n->type);

    t->data = malloc(bytes);
    assert_non_null(t->data);
    for (size_t i = 0; i < elements; i++) {
        float f;

        *seed = *seed * 1664525 + 1013904223;
        f = (float)(*seed >> 24) / 128 - 1 + about;
        hed_tensor_write((char *)t->data + i * hed_product_size(n->type), n->type, 1, &f, 0, 1);
    }
}

/* Calls f for each element of a channel. */
static bool
next_place(const struct hed_tensor *t, int64_t *at)
{
    for (unsigned i = HED_TENSOR_DIMS; i-- > 0;) {
        if (i == 1)
            continue;
        if (++at[i] < t->size[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* ---- what is expected ------------------------------------------------------------------------ */

struct expected {
    double mean, variance, sum_dy, sum_dy_x;
};

static struct expected
expect(const struct hed_normalisation *n, int64_t channel)
{
    int64_t at[HED_TENSOR_DIMS] = {0, channel};
    struct expected e = {0};
    double count = 0;

    do {
        e.mean += get(n, &n->x, at);
        count++;
    } while (next_place(&n->x, at));
    e.mean /= count;
    do {
        const double x = get(n, &n->x, at) - e.mean;

        e.variance += x * x / count;
        if (n->kind == HED_NORMALISATION_GRADIENTS) {
            e.sum_dy += get(n, &n->dy, at);
            e.sum_dy_x += get(n, &n->dy, at) * x;
        }
    } while (next_place(&n->x, at));
    return e;
}

/* Of results that are about 1 in size. */
static void
check_near(const struct hed_normalisation *n, double is, double should)
{
    const double error = n->type == HED_PRODUCT_F32   ? 1e-5
                         : n->type == HED_PRODUCT_F16 ? 2e-3
                                                      : 1.6e-2;

    if (!(fabs(is - should) <= error * (1 + fabs(should))))
        fail_msg("%g is not %g", is, should);
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define EPSILON 1e-3

struct numbers {
    float all[HED_NORMALISATION_NUMBERS][CHANNELS];
};

static void
set_numbers(struct hed_normalisation *n, struct numbers *to)
{
    for (unsigned i = 0; i < HED_NORMALISATION_NUMBERS; i++) {
        for (unsigned c = 0; c < CHANNELS; c++)
            to->all[i][c] = 0.5f + 0.25f * (float)c + 0.125f * (float)i;
        n->numbers[i] = to->all[i];
    }
}

static void
check_forward(const struct hed_normalisation *n, const struct numbers *old,
              const struct numbers *now, int64_t c)
{
    const struct expected e = expect(n, c);
    const bool trains = n->kind == HED_NORMALISATION_TRAINING;
    const double elements = (double)(n->x.size[0] * n->x.size[2] * n->x.size[3] * n->x.size[4]);
    const double mean = trains ? e.mean : (double)old->all[HED_NORMALISATION_MEAN][c];
    const double variance = trains ? e.variance : (double)old->all[HED_NORMALISATION_VARIANCE][c];
    int64_t at[HED_TENSOR_DIMS] = {0, c};

    do
        check_near(n, get(n, &n->y, at),
                   (get(n, &n->x, at) - mean) / sqrt(variance + EPSILON) *
                           (double)old->all[HED_NORMALISATION_SCALE][c] +
                       (double)old->all[HED_NORMALISATION_BIAS][c]);
    while (next_place(&n->y, at));
    if (!trains)
        return;
    check_near(n, (double)now->all[HED_NORMALISATION_SAVED_MEAN][c], mean);
    check_near(n, (double)now->all[HED_NORMALISATION_SAVED_DEVIATION][c],
               1 / sqrt(variance + EPSILON));
    check_near(n, (double)now->all[HED_NORMALISATION_MEAN][c],
               0.75 * (double)old->all[HED_NORMALISATION_MEAN][c] + 0.25 * mean);
    check_near(n, (double)now->all[HED_NORMALISATION_VARIANCE][c],
               0.75 * (double)old->all[HED_NORMALISATION_VARIANCE][c] +
                   0.25 * variance * elements / (elements - 1));
}

static void
check_gradients(const struct hed_normalisation *n, const struct numbers *now, int64_t c)
{
    const struct expected e = expect(n, c);
    const double elements = (double)(n->x.size[0] * n->x.size[2] * n->x.size[3] * n->x.size[4]);
    const double deviation = (double)now->all[HED_NORMALISATION_SAVED_DEVIATION][c];
    const double scale = (double)now->all[HED_NORMALISATION_SCALE][c];
    int64_t at[HED_TENSOR_DIMS] = {0, c};

    check_near(n, (double)now->all[HED_NORMALISATION_BIAS_GRADIENT][c] / elements,
               e.sum_dy / elements);
    check_near(n, (double)now->all[HED_NORMALISATION_SCALE_GRADIENT][c] / elements,
               e.sum_dy_x * deviation / elements);
    do {
        const double x = (get(n, &n->x, at) - e.mean) * deviation;

        check_near(
            n, get(n, &n->y, at),
            scale * deviation *
                (get(n, &n->dy, at) - e.sum_dy / elements - x * e.sum_dy_x * deviation / elements));
    } while (next_place(&n->y, at));
}

/* Far from 0, so that squares would lose the variance. */
static void
check_case(enum hed_normalisation_kind kind, enum hed_product_type type, const int64_t *size,
           enum layout x, enum layout y, float about)
{
    struct hed_normalisation n = {.kind = kind, .type = type, .epsilon = EPSILON, .factor = 0.25};
    struct numbers numbers, old;
    uint32_t seed = 7;

    lay_out(&n.x, size, x);
    lay_out(&n.y, size, y);
    lay_out(&n.dy, size, y);
    fill(&n, &n.x, &seed, about);
    fill(&n, &n.y, &seed, 0);
    fill(&n, &n.dy, &seed, 0);
    set_numbers(&n, &numbers);
    if (kind == HED_NORMALISATION_GRADIENTS)
        for (int64_t c = 0; c < CHANNELS; c++) {
            const struct expected e = expect(&n, c);

            numbers.all[HED_NORMALISATION_SAVED_MEAN][c] = (float)e.mean;
            numbers.all[HED_NORMALISATION_SAVED_DEVIATION][c] =
                (float)(1 / sqrt(e.variance + EPSILON));
        }
    old = numbers;
    assert_true(hed_normalisation_is_sound(&n));
    hed_normalisation_run(&n);
    for (int64_t c = 0; c < CHANNELS; c++)
        if (kind == HED_NORMALISATION_GRADIENTS)
            check_gradients(&n, &numbers, c);
        else
            check_forward(&n, &old, &numbers, c);
    free(n.x.data);
    free(n.y.data);
    free(n.dy.data);
}

static void
kinds(void **state)
{
    static const int64_t sizes[][HED_TENSOR_DIMS] = {
        {3, CHANNELS, 1, 4, 7}, {2, CHANNELS, 2, 31, 37}, {2, CHANNELS, 1, 1, 1}};
    static const enum hed_product_type types[] = {HED_PRODUCT_F32, HED_PRODUCT_F16,
                                                  HED_PRODUCT_BF16};

    (void)state;
    for (unsigned kind = 0; kind < HED_NORMALISATION_KINDS; kind++)
        for (unsigned type = 0; type < 3; type++)
            for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (unsigned x = 0; x < LAYOUTS; x++)
                    for (unsigned y = 0; y < LAYOUTS; y++)
                        check_case(kind, types[type], sizes[s], x, y, 0.25f);
}

static void
small_variance(void **state)
{
    static const int64_t size[] = {2, CHANNELS, 2, 31, 37};

    (void)state;
    check_case(HED_NORMALISATION_TRAINING, HED_PRODUCT_F32, size, PACKED, PACKED, 3000);
}

/* In place, and without the numbers that may be missing. */
static void
in_place(void **state)
{
    static const int64_t size[] = {2, CHANNELS, 1, 31, 37};
    struct hed_normalisation n = {.kind = HED_NORMALISATION_TRAINING,
                                  .type = HED_PRODUCT_F32,
                                  .epsilon = EPSILON,
                                  .factor = 1},
                             m;
    struct numbers numbers;
    uint32_t seed = 1, again = 1;
    size_t bytes;

    (void)state;
    lay_out(&n.x, size, PACKED);
    lay_out(&n.y, size, PACKED);
    fill(&n, &n.x, &seed, 0);
    fill(&n, &n.y, &seed, 0);
    set_numbers(&n, &numbers);
    for (unsigned i = HED_NORMALISATION_MEAN; i < HED_NORMALISATION_NUMBERS; i++)
        n.numbers[i] = NULL;
    m = n;
    fill(&m, &m.x, &again, 0);
    m.y.data = m.x.data;
    assert_true(hed_normalisation_is_sound(&n) && hed_normalisation_is_sound(&m));
    hed_normalisation_run(&n);
    hed_normalisation_run(&m);
    bytes = hed_tensor_extent(&n.y, n.type);
    assert_memory_equal(n.y.data, m.y.data, bytes);
    free(n.x.data);
    free(n.y.data);
    free(m.x.data);
}

/* What old numbers are does not matter if they count for nothing, and a NaN is not lost. */
static void
not_numbers(void **state)
{
    static const int64_t size[] = {1, CHANNELS, 1, 4, 4};
    struct hed_normalisation n = {.kind = HED_NORMALISATION_TRAINING,
                                  .type = HED_PRODUCT_F32,
                                  .epsilon = EPSILON,
                                  .factor = 1};
    struct numbers numbers;
    uint32_t seed = 1;

    (void)state;
    lay_out(&n.x, size, PACKED);
    lay_out(&n.y, size, PACKED);
    fill(&n, &n.x, &seed, 0);
    fill(&n, &n.y, &seed, 0);
    set_numbers(&n, &numbers);
    numbers.all[HED_NORMALISATION_MEAN][0] = NAN;
    ((float *)n.x.data)[16] = NAN;
    hed_normalisation_run(&n);
    assert_false(isnan(numbers.all[HED_NORMALISATION_MEAN][0]));
    assert_true(isnan(numbers.all[HED_NORMALISATION_MEAN][1]));
    assert_true(isnan(numbers.all[HED_NORMALISATION_VARIANCE][1]));
    assert_true(isnan(((float *)n.y.data)[31]));
    assert_false(isnan(((float *)n.y.data)[15]) || isnan(((float *)n.y.data)[32]));
    free(n.x.data);
    free(n.y.data);
}

static void
refused(void **state)
{
    static const int64_t size[] = {1, CHANNELS, 1, 2, 2};
    static float data[ELEMENTS_MOST];
    struct hed_normalisation good = {.kind = HED_NORMALISATION_GRADIENTS,
                                     .type = HED_PRODUCT_F32,
                                     .epsilon = EPSILON,
                                     .factor = 0.5};
    struct numbers numbers;
    struct hed_normalisation bad[12];
    unsigned n = 0;

    (void)state;
    lay_out(&good.x, size, PACKED);
    lay_out(&good.y, size, PACKED);
    lay_out(&good.dy, size, PACKED);
    good.x.data = good.y.data = good.dy.data = data;
    set_numbers(&good, &numbers);
    assert_true(hed_normalisation_is_sound(&good));
    for (unsigned i = 0; i < 12; i++)
        bad[i] = good;
    bad[n++].type = HED_PRODUCT_F64;
    bad[n++].epsilon = -1;
    bad[n++].epsilon = (double)NAN;
    bad[n++].factor = 2;
    bad[n++].x.data = NULL;
    bad[n++].y.size[1]--;
    bad[n++].dy.size[4]--;
    bad[n++].y.stride[1] = 0;
    bad[n++].x.stride[3] = 5;
    bad[n++].numbers[HED_NORMALISATION_SAVED_MEAN] = NULL;
    bad[n++].numbers[HED_NORMALISATION_SCALE] = (float *)((uintptr_t)data + 1);
    bad[n].x.size[3] = bad[n].y.size[3] = bad[n].dy.size[3] = 1;
    bad[n].x.size[4] = bad[n].y.size[4] = bad[n].dy.size[4] = 1;
    n++;
    for (unsigned i = 0; i < n; i++)
        if (hed_normalisation_is_sound(&bad[i]))
            fail_msg("bad one %u is taken", i);
    /* Only what is used matters. */
    good.kind = HED_NORMALISATION_TRAINING;
    good.numbers[HED_NORMALISATION_SAVED_MEAN] = NULL;
    assert_false(hed_normalisation_is_sound(&good));
    good.numbers[HED_NORMALISATION_SAVED_DEVIATION] = NULL;
    good.dy.data = NULL;
    assert_true(hed_normalisation_is_sound(&good));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),       cmocka_unit_test(small_variance), cmocka_unit_test(in_place),
        cmocka_unit_test(not_numbers), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
