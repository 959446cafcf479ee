/* See normalisation.h. A channel is read in rows of places as floats. Sums are floats within a row,
 * for each of several lanes, and doubles beyond it; the variance is that of the differences from
 * the mean, so no digits are lost if it is small.
 */
#include "fastlibs/normalisation.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/number.h"

#define ROW 1024 /* places at a time: 4 KiB of each tensor */
#define LANES 32 /* partial sums, so that they are vectors */

/* ---- what is asked for ----------------------------------------------------------------------- */

enum hed_normalisation_use
hed_normalisation_uses(enum hed_normalisation_kind kind, enum hed_normalisation_numbers which)
{
    static const unsigned char uses[HED_NORMALISATION_KINDS][HED_NORMALISATION_NUMBERS] = {
        [HED_NORMALISATION_TRAINING] =
            {
                [HED_NORMALISATION_SCALE] = HED_NUMBERS_READ,
                [HED_NORMALISATION_BIAS] = HED_NUMBERS_READ,
                [HED_NORMALISATION_MEAN] = HED_NUMBERS_MAYBE_WRITTEN,
                [HED_NORMALISATION_VARIANCE] = HED_NUMBERS_MAYBE_WRITTEN,
                [HED_NORMALISATION_SAVED_MEAN] = HED_NUMBERS_MAYBE_WRITTEN,
                [HED_NORMALISATION_SAVED_DEVIATION] = HED_NUMBERS_MAYBE_WRITTEN,
            },
        [HED_NORMALISATION_INFERENCE] =
            {
                [HED_NORMALISATION_SCALE] = HED_NUMBERS_READ,
                [HED_NORMALISATION_BIAS] = HED_NUMBERS_READ,
                [HED_NORMALISATION_MEAN] = HED_NUMBERS_READ,
                [HED_NORMALISATION_VARIANCE] = HED_NUMBERS_READ,
            },
        [HED_NORMALISATION_GRADIENTS] =
            {
                [HED_NORMALISATION_SCALE] = HED_NUMBERS_READ,
                [HED_NORMALISATION_SAVED_MEAN] = HED_NUMBERS_READ,
                [HED_NORMALISATION_SAVED_DEVIATION] = HED_NUMBERS_READ,
                [HED_NORMALISATION_SCALE_GRADIENT] = HED_NUMBERS_WRITTEN,
                [HED_NORMALISATION_BIAS_GRADIENT] = HED_NUMBERS_WRITTEN,
            },
    };

    return uses[kind][which];
}

static bool
are_sound_numbers(const struct hed_normalisation *n)
{
    float *const *numbers = n->numbers;

    for (unsigned i = 0; i < HED_NORMALISATION_NUMBERS; i++)
        switch (hed_normalisation_uses(n->kind, i)) {
        case HED_NUMBERS_READ:
        case HED_NUMBERS_WRITTEN:
            if (!numbers[i])
                return false;
            break;
        case HED_NUMBERS_MAYBE_WRITTEN:
        case HED_NUMBERS_UNUSED:
            break;
        }
    for (unsigned i = 0; i < HED_NORMALISATION_NUMBERS; i++)
        if ((uintptr_t)numbers[i] % sizeof(float) != 0)
            return false;
    /* Both or none, as cuDNN wants it. */
    return n->kind != HED_NORMALISATION_TRAINING ||
           (!numbers[HED_NORMALISATION_MEAN] == !numbers[HED_NORMALISATION_VARIANCE] &&
            !numbers[HED_NORMALISATION_SAVED_MEAN] == !numbers[HED_NORMALISATION_SAVED_DEVIATION]);
}

static bool
is_sound_tensor(const struct hed_normalisation *n, const struct hed_tensor *t)
{
    return hed_tensor_is_sound(t, n->type) && hed_tensor_step(t) > 0 &&
           memcmp(t->size, n->x.size, sizeof t->size) == 0;
}

/* Elements of a channel. */
static int64_t
elements_of(const struct hed_normalisation *n)
{
    const int64_t *size = n->x.size;

    return size[0] * size[2] * size[3] * size[4];
}

bool
hed_normalisation_is_sound(const struct hed_normalisation *n)
{
    if (n->type != HED_PRODUCT_F32 && n->type != HED_PRODUCT_F16 && n->type != HED_PRODUCT_BF16)
        return false;
    /* A NaN is refused, too. */
    if (!(n->epsilon >= 0 && n->factor >= 0 && n->factor <= 1))
        return false;
    /* One element has no variance. */
    return is_sound_tensor(n, &n->x) && is_sound_tensor(n, &n->y) && hed_tensor_is_apart(&n->y) &&
           (n->kind != HED_NORMALISATION_GRADIENTS || is_sound_tensor(n, &n->dy)) &&
           elements_of(n) > 1 && are_sound_numbers(n);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Some places of a channel in one image. */
struct row {
    int64_t image, channel, place, places;
};

static int64_t
places_of(const struct hed_normalisation *n)
{
    return n->x.size[2] * n->x.size[3] * n->x.size[4];
}

/* The next row of a channel. False: there is none. Begins with no places. */
static bool
next_row(const struct hed_normalisation *n, struct row *r)
{
    const int64_t space = places_of(n);

    r->place += r->places;
    if (r->place == space) {
        r->place = 0;
        r->image++;
    }
    r->places = hed_min(space - r->place, ROW);
    return r->image < n->x.size[0];
}

static char *
row_at(const struct hed_normalisation *n, const struct hed_tensor *t, const struct row *r)
{
    return (char *)t->data +
           (r->image * t->stride[0] + r->channel * t->stride[1] + r->place * hed_tensor_step(t)) *
               (int64_t)hed_product_size(n->type);
}

static void
read_row(const struct hed_normalisation *n, const struct hed_tensor *t, const struct row *r,
         float *to)
{
    hed_tensor_read(to, row_at(n, t, r), n->type, hed_tensor_step(t), r->places);
}

static void
write_row(const struct hed_normalisation *n, const struct row *r, const float *from)
{
    hed_tensor_write(row_at(n, &n->y, r), n->type, hed_tensor_step(&n->y), from, 0, r->places);
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct sums {
    double a, b;
};

static struct sums
sum_lanes(const float *a, const float *b)
{
    struct sums s = {0, 0};

    for (unsigned l = 0; l < LANES; l++) {
        s.a += (double)a[l];
        s.b += (double)b[l];
    }
    return s;
}

/* Of differences from the mean, and of their products with y. Both are filled up to LANES with
 * elements whose terms are 0. */
HED_CLONES static void
add_row(float *sum, float *products, const float *y, const float *x, float mean, int64_t count)
{
    for (int64_t i = 0; i < count; i += LANES)
        for (int64_t l = 0; l < LANES; l++) {
            sum[l] += y[i + l];
            products[l] += y[i + l] * (x[i + l] - mean);
        }
}

/* a * y + b * (x - mean) + c, in place of y */
HED_CLONES static void
combine_row(float *y, const float *x, float mean, float a, float b, float c, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = a * y[i] + b * (x[i] - mean) + c;
}

HED_CLONES static void
scale_row(float *x, float mean, float by, float plus, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - mean) * by + plus;
}

HED_CLONES static void
subtract_from_row(float *to, const float *x, float mean, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = x[i] - mean;
}

static void
fill_up(float *row, int64_t count, float with)
{
    while (count % LANES != 0)
        row[count++] = with;
}

/* a: the sum of X - mean; b: of its squares. */
static struct sums
sum_differences(const struct hed_normalisation *n, int64_t channel, float mean)
{
    struct row r = {.channel = channel};
    struct sums all = {0, 0};
    float x[ROW], y[ROW];

    while (next_row(n, &r)) {
        float sum[LANES] = {0}, products[LANES] = {0};
        struct sums s;

        read_row(n, &n->x, &r, x);
        subtract_from_row(y, x, mean, r.places);
        fill_up(x, r.places, mean);
        fill_up(y, r.places, 0);
        add_row(sum, products, y, x, mean, r.places);
        s = sum_lanes(sum, products);
        all.a += s.a;
        all.b += s.b;
    }
    return all;
}

/* a: the sum of DY; b: of DY * (X - mean). */
static struct sums
sum_gradients(const struct hed_normalisation *n, int64_t channel, float mean)
{
    struct row r = {.channel = channel};
    struct sums all = {0, 0};
    float x[ROW], dy[ROW];

    while (next_row(n, &r)) {
        float sum[LANES] = {0}, products[LANES] = {0};
        struct sums s;

        read_row(n, &n->x, &r, x);
        read_row(n, &n->dy, &r, dy);
        fill_up(x, r.places, mean);
        fill_up(dy, r.places, 0);
        add_row(sum, products, dy, x, mean, r.places);
        s = sum_lanes(sum, products);
        all.a += s.a;
        all.b += s.b;
    }
    return all;
}

/* ---- a channel ------------------------------------------------------------------------------- */

static void
write_y(const struct hed_normalisation *n, int64_t channel, double mean, double deviation)
{
    const double scale = deviation * (double)n->numbers[HED_NORMALISATION_SCALE][channel];
    const float about = (float)mean;
    /* What the rounded mean leaves is a part of what is added. */
    const float plus = (float)((double)n->numbers[HED_NORMALISATION_BIAS][channel] -
                               (mean - (double)about) * scale);
    struct row r = {.channel = channel};
    float x[ROW];

    while (next_row(n, &r)) {
        read_row(n, &n->x, &r, x);
        scale_row(x, about, (float)scale, plus, r.places);
        write_row(n, &r, x);
    }
}

/* Nothing is read of old numbers that count for nothing. */
static void
move_number(float *at, double to, double factor)
{
    if (factor == 1)
        *at = (float)to;
    else
        *at = (float)((1 - factor) * (double)*at + factor * to);
}

static void
train(const struct hed_normalisation *n, int64_t channel)
{
    float *const *numbers = n->numbers;
    const double count = (double)elements_of(n);
    const double about = sum_differences(n, channel, 0).a / count;
    const struct sums s = sum_differences(n, channel, (float)about);
    /* What was lost by rounding the mean. */
    const double off = s.a / count, mean = (double)(float)about + off;
    const double variance = fmax(s.b / count - off * off, 0);
    /* fmax() takes the other one for a NaN. */
    const double known = isnan(s.b) ? (double)NAN : variance;
    const double deviation = 1 / sqrt(known + n->epsilon);

    write_y(n, channel, mean, deviation);
    if (numbers[HED_NORMALISATION_MEAN]) {
        move_number(&numbers[HED_NORMALISATION_MEAN][channel], mean, n->factor);
        move_number(&numbers[HED_NORMALISATION_VARIANCE][channel], known * count / (count - 1),
                    n->factor);
    }
    if (numbers[HED_NORMALISATION_SAVED_MEAN]) {
        numbers[HED_NORMALISATION_SAVED_MEAN][channel] = (float)mean;
        numbers[HED_NORMALISATION_SAVED_DEVIATION][channel] = (float)deviation;
    }
}

static void
infer(const struct hed_normalisation *n, int64_t channel)
{
    const double variance = (double)n->numbers[HED_NORMALISATION_VARIANCE][channel];

    write_y(n, channel, (double)n->numbers[HED_NORMALISATION_MEAN][channel],
            1 / sqrt(variance + n->epsilon));
}

static void
find_gradients(const struct hed_normalisation *n, int64_t channel)
{
    float *const *numbers = n->numbers;
    const double count = (double)elements_of(n);
    const float mean = numbers[HED_NORMALISATION_SAVED_MEAN][channel];
    const double deviation = (double)numbers[HED_NORMALISATION_SAVED_DEVIATION][channel];
    const double by = deviation * (double)numbers[HED_NORMALISATION_SCALE][channel];
    const struct sums s = sum_gradients(n, channel, mean);
    const float of_x = (float)(-by * deviation * deviation * s.b / count);
    const float plus = (float)(-by * s.a / count);
    struct row r = {.channel = channel};
    float x[ROW], dy[ROW];

    while (next_row(n, &r)) {
        read_row(n, &n->x, &r, x);
        read_row(n, &n->dy, &r, dy);
        combine_row(dy, x, mean, (float)by, of_x, plus, r.places);
        write_row(n, &r, dy);
    }
    numbers[HED_NORMALISATION_SCALE_GRADIENT][channel] = (float)(s.b * deviation);
    numbers[HED_NORMALISATION_BIAS_GRADIENT][channel] = (float)s.a;
}

void
hed_normalisation_run(const struct hed_normalisation *n)
{
    static void (*const run[HED_NORMALISATION_KINDS])(const struct hed_normalisation *, int64_t) = {
        [HED_NORMALISATION_TRAINING] = train,
        [HED_NORMALISATION_INFERENCE] = infer,
        [HED_NORMALISATION_GRADIENTS] = find_gradients,
    };

    for (int64_t c = 0; c < n->x.size[1]; c++)
        run[n->kind](n, c);
}
