/* See columns.h. Everything is a sequence of runs: elements of a tensor that are a fixed distance
 * apart, and neighbours in a matrix. */
#include "fastlibs/columns.h"

#include <string.h>

#include "base/number.h"
#include "fastlibs/convert.h"

#define PIECE 256 /* numbers of 16 bits, or old values, at a time */

/* ---- runs ------------------------------------------------------------------------------------ */

static void
read_halves(float *to, const uint16_t *from, enum hed_product_type type, int64_t n)
{
    if (type == HED_PRODUCT_F16)
        hed_convert_from_f16(to, from, n);
    else
        hed_convert_from_bf16(to, from, n);
}

static void
read_run(float *to, const void *from, enum hed_product_type type, int64_t stride, int64_t n)
{
    const float *floats = from;
    const uint16_t *halves = from;
    uint16_t piece[PIECE];

    if (type == HED_PRODUCT_F32 && stride == 1) {
        memcpy(to, floats, (size_t)n * sizeof *to);
    } else if (type == HED_PRODUCT_F32) {
        for (int64_t i = 0; i < n; i++)
            to[i] = floats[i * stride];
    } else if (stride == 1) {
        read_halves(to, halves, type, n);
    } else {
        for (int64_t at = 0; at < n; at += PIECE) {
            const int64_t count = hed_min_signed(n - at, PIECE);

            for (int64_t i = 0; i < count; i++)
                piece[i] = halves[(at + i) * stride];
            read_halves(to + at, piece, type, count);
        }
    }
}

static void
store_run(void *to, enum hed_product_type type, int64_t stride, const float *from, int64_t n)
{
    float *floats = to;
    uint16_t *halves = to, piece[PIECE];

    if (type == HED_PRODUCT_F32) {
        for (int64_t i = 0; i < n; i++)
            floats[i * stride] = from[i];
        return;
    }
    if (type == HED_PRODUCT_F16)
        hed_convert_to_f16(piece, from, n);
    else
        hed_convert_to_bf16(piece, from, n);
    for (int64_t i = 0; i < n; i++)
        halves[i * stride] = piece[i];
}

/* to = from + beta * to */
static void
write_run(char *to, enum hed_product_type type, int64_t stride, const float *from, double beta,
          int64_t n)
{
    const int64_t bytes = stride * (int64_t)hed_product_size(type);
    float sum[PIECE];

    if (beta == 0 && type == HED_PRODUCT_F32 && stride == 1) {
        memcpy(to, from, (size_t)n * sizeof *from);
        return;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = hed_min_signed(n - at, PIECE);

        if (beta == 0) {
            store_run(to + at * bytes, type, stride, from + at, count);
            continue;
        }
        read_run(sum, to + at * bytes, type, stride, count);
        for (int64_t i = 0; i < count; i++)
            sum[i] = from[at + i] + (float)beta * sum[i];
        store_run(to + at * bytes, type, stride, sum, count);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static int64_t
space_of(const struct hed_convolution_tensor *t)
{
    return t->size[2] * t->size[3] * t->size[4];
}

int64_t
hed_columns_step(const struct hed_convolution_tensor *t)
{
    int64_t step = 0, expected = 0;

    for (unsigned i = HED_CONVOLUTION_DIMS; i-- > 2;) {
        if (t->size[i] == 1)
            continue;
        if (t->stride[i] == 0)
            return 0; /* all places are one */
        if (step == 0)
            step = expected = t->stride[i];
        if (t->stride[i] != expected)
            return 0;
        expected *= t->size[i];
    }
    return step ? step : 1;
}

static char *
tensor_at(const struct hed_convolution *c, const struct hed_convolution_tensor *t, int64_t first,
          int64_t second)
{
    return (char *)t->data +
           (first * t->stride[0] + second * t->stride[1]) * (int64_t)hed_product_size(c->type);
}

/* The places of one image that belong to a part. */
struct within {
    int64_t image, place, places; /* place: within the image */
};

static struct within
next_image(const struct hed_convolution *c, const struct hed_columns_part *of, int64_t done)
{
    const int64_t space = space_of(&c->y), at = of->place + done;
    const int64_t place = at % space;

    return (struct within){at / space, place, hed_min_signed(of->places - done, space - place)};
}

void
hed_columns_read_y(const struct hed_convolution *c, const struct hed_columns_part *of, float *to)
{
    const int64_t step = hed_columns_step(&c->y), size = hed_product_size(c->type);

    for (int64_t f = 0; f < of->filters; f++)
        for (int64_t done = 0; done < of->places;) {
            const struct within w = next_image(c, of, done);

            read_run(to + f * of->places + done,
                     tensor_at(c, &c->y, w.image, of->filter + f) + w.place * step * size, c->type,
                     step, w.places);
            done += w.places;
        }
}

void
hed_columns_write_y(const struct hed_convolution *c, const struct hed_columns_part *of,
                    const float *from)
{
    const int64_t step = hed_columns_step(&c->y), size = hed_product_size(c->type);

    for (int64_t f = 0; f < of->filters; f++)
        for (int64_t done = 0; done < of->places;) {
            const struct within w = next_image(c, of, done);

            write_run(tensor_at(c, &c->y, w.image, of->filter + f) + w.place * step * size, c->type,
                      step, from + f * of->places + done, c->beta, w.places);
            done += w.places;
        }
}

void
hed_columns_write_x(const struct hed_convolution *c, const struct hed_columns_images *of,
                    const float *sums)
{
    const int64_t step = hed_columns_step(&c->x), space = space_of(&c->x);
    const int64_t channels = c->w.size[1];

    for (int64_t i = 0; i < of->images; i++)
        for (int64_t j = 0; j < channels; j++)
            write_run(tensor_at(c, &c->x, of->image + i, of->group * channels + j), c->type, step,
                      sums + (i * channels + j) * space, c->beta, space);
}

/* ---- filters --------------------------------------------------------------------------------- */

/* Rows of columns that are a fixed distance apart in a filter: as many dimensions as possible, the
 * last one first. */
struct filter_runs {
    int64_t rows, step; /* of a run */
    unsigned dims;      /* the first dimension that a run has whole */
};

static struct filter_runs
find_filter_runs(const struct hed_convolution_tensor *w)
{
    struct filter_runs r = {w->size[4], w->stride[4], 4};

    while (r.dims > 1) {
        const unsigned i = r.dims - 1;

        if (r.rows == 1)
            r.step = w->stride[i];
        else if (w->size[i] > 1 && w->stride[i] != r.rows * r.step)
            break;
        r.rows *= w->size[i];
        r.dims = i;
    }
    return r;
}

/* Where the run is that begins at this row. */
static char *
filter_run(const struct hed_convolution *c, const struct filter_runs *r, int64_t filter,
           int64_t row)
{
    int64_t at = row / r->rows, elements = filter * c->w.stride[0];

    for (unsigned i = r->dims - 1; i > 0; i--) {
        elements += at % c->w.size[i] * c->w.stride[i];
        at /= c->w.size[i];
    }
    return (char *)c->w.data + elements * (int64_t)hed_product_size(c->type);
}

void
hed_columns_read_filter(const struct hed_convolution *c, int64_t filter, int64_t filters, float *to)
{
    const struct filter_runs r = find_filter_runs(&c->w);
    const int64_t rows = c->w.size[1] * space_of(&c->w);

    for (int64_t f = 0; f < filters; f++)
        for (int64_t row = 0; row < rows; row += r.rows)
            read_run(to + f * rows + row, filter_run(c, &r, filter + f, row), c->type, r.step,
                     r.rows);
}

void
hed_columns_write_filter(const struct hed_convolution *c, int64_t filter, int64_t filters,
                         const float *from)
{
    const struct filter_runs r = find_filter_runs(&c->w);
    const int64_t rows = c->w.size[1] * space_of(&c->w);

    for (int64_t f = 0; f < filters; f++)
        for (int64_t row = 0; row < rows; row += r.rows)
            write_run(filter_run(c, &r, filter + f, row), c->type, r.step, from + f * rows + row,
                      c->beta, r.rows);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* An element of a filter, and which places of the last dimension do not meet the zeros around X. */
struct tap {
    int64_t channel, d, h; /* d, h: where place 0 meets X, perhaps before its start */
    int64_t w, begin, end;
};

static struct tap
make_tap(const struct hed_convolution *c, int64_t row)
{
    const int64_t *size = c->w.size;
    const int64_t w = row % size[4], h = row / size[4], d = h / size[3];
    struct tap t = {.channel = d / size[2]};
    int64_t behind;

    t.w = w * c->dilation[2] - c->before[2];
    t.h = h % size[3] * c->dilation[1] - c->before[1];
    t.d = d % size[2] * c->dilation[0] - c->before[0];
    t.begin = t.w < 0 ? (-t.w + c->step[2] - 1) / c->step[2] : 0;
    behind = c->x.size[4] - t.w; /* places from here on meet what is behind X */
    t.end = behind <= 0 ? 0 : (behind + c->step[2] - 1) / c->step[2];
    return t;
}

/* Neighbouring places of Y's last dimension. */
struct line {
    int64_t image, d, h, w, places;
};

static struct line
first_line(const struct hed_convolution *c, const struct hed_columns_part *of)
{
    const int64_t *size = c->y.size, at = of->place;
    const int64_t h = at / size[4], d = h / size[3], w = at % size[4];

    return (struct line){d / size[2], d % size[2], h % size[3], w,
                         hed_min_signed(of->places, size[4] - w)};
}

/* The line behind this one, of which `left` places belong to the part. */
static void
next_line(const struct hed_convolution *c, struct line *l, int64_t left)
{
    l->w = 0;
    l->places = hed_min_signed(left, c->y.size[4]);
    if (++l->h < c->y.size[3])
        return;
    l->h = 0;
    if (++l->d < c->y.size[2])
        return;
    l->d = 0;
    l->image++;
}

/* Where a line meets X through a tap: `from` is the first of `count` places that do, counted from
 * the line's first one, and meets X at d, h, w. */
struct meeting {
    int64_t from, count;
    int64_t d, h, w;
};

static struct meeting
meet(const struct hed_convolution *c, const struct tap *t, const struct line *l)
{
    const int64_t begin = (int64_t)hed_max(t->begin, l->w);
    const int64_t end = hed_min_signed(t->end, l->w + l->places);
    const int64_t d = t->d + l->d * c->step[0], h = t->h + l->h * c->step[1];

    if (d < 0 || d >= c->x.size[2] || h < 0 || h >= c->x.size[3] || begin >= end)
        return (struct meeting){0, 0, 0, 0, 0};
    return (struct meeting){begin - l->w, end - begin, d, h, t->w + begin * c->step[2]};
}

void
hed_columns_read(const struct hed_convolution *c, const struct hed_columns_part *of, float *to)
{
    const int64_t *stride = c->x.stride, channels = c->w.size[1], rows = channels * space_of(&c->w);
    const int64_t size = hed_product_size(c->type);
    const struct line first = first_line(c, of);

    for (int64_t row = 0; row < rows; row++) {
        const struct tap t = make_tap(c, row);
        const int64_t channel = of->group * channels + t.channel;
        struct line l = first;

        for (int64_t left = of->places; left > 0; next_line(c, &l, left)) {
            const struct meeting m = meet(c, &t, &l);
            const int64_t at = m.d * stride[2] + m.h * stride[3] + m.w * stride[4];

            memset(to, 0, (size_t)m.from * sizeof *to);
            read_run(to + m.from, tensor_at(c, &c->x, l.image, channel) + at * size, c->type,
                     c->step[2] * stride[4], m.count);
            memset(to + m.from + m.count, 0, (size_t)(l.places - m.from - m.count) * sizeof *to);
            to += l.places;
            left -= l.places;
        }
    }
}

void
hed_columns_add(const struct hed_convolution *c, const struct hed_columns_part *of,
                const float *from, int64_t image, float *sums)
{
    const int64_t channels = c->w.size[1], rows = channels * space_of(&c->w);
    const int64_t *size = c->x.size, step = c->step[2];
    const struct line first = first_line(c, of);

    for (int64_t row = 0; row < rows; row++) {
        const struct tap t = make_tap(c, row);
        struct line l = first;

        for (int64_t left = of->places; left > 0; next_line(c, &l, left)) {
            const struct meeting m = meet(c, &t, &l);
            const int64_t plane = (l.image - image) * channels + t.channel;
            float *x = sums + ((plane * size[2] + m.d) * size[3] + m.h) * size[4] + m.w;

            for (int64_t i = 0; i < m.count; i++)
                x[i * step] += from[m.from + i];
            from += l.places;
            left -= l.places;
        }
    }
}
