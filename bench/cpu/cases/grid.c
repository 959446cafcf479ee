/* The cases of kernels/grid.cl. */
#include <math.h>

#include "../cases.h"

static void
prepare_stencil5(struct job *job)
{
    const int n = 512;

    job_output(job, FLOATS, (size_t)n * n);
    job_floats(job, (size_t)n * n, 0, 1);
    job_int(job, n);
    job_shape(job, n, n, 32, 8);
}

static void
stencil5(float *restrict out, const float *restrict in, int n)
{
    for (int y = 1; y < n - 1; y++)
        for (int x = 1; x < n - 1; x++)
            out[y * n + x] = __builtin_fmaf(0.5f, in[y * n + x],
                                            0.125f * (in[y * n + x - 1] + in[y * n + x + 1] +
                                                      in[(y - 1) * n + x] + in[(y + 1) * n + x]));
}

static void
plain_stencil5(const struct job *job)
{
    stencil5(data_of(job, 0), data_of(job, 1), int_of(job, 2));
}

static void
prepare_hotspot(struct job *job)
{
    const int n = 512;

    job_output(job, FLOATS, (size_t)n * n);
    job_floats(job, (size_t)n * n, 60, 100);
    job_floats(job, (size_t)n * n, 0, 1);
    job_int(job, n);
    job_shape(job, n, n, 16, 16);
}

static float
heat(float here, float west, float east, float north, float south, float power)
{
    return __builtin_fmaf(0.1f,
                          __builtin_fmaf(-2.0f, here, north + south) +
                              __builtin_fmaf(-2.0f, here, east + west) + power +
                              0.01f * (80.0f - here),
                          here);
}

static void
hotspot(float *restrict out, const float *restrict in, const float *restrict power, int n)
{
    for (int y = 0; y < n; y++) {
        const float *row = in + y * n, *p = power + y * n;
        const float *north = y > 0 ? row - n : row, *south = y < n - 1 ? row + n : row;
        float *to = out + y * n;

        to[0] = heat(row[0], row[0], row[1], north[0], south[0], p[0]);
        for (int x = 1; x < n - 1; x++)
            to[x] = heat(row[x], row[x - 1], row[x + 1], north[x], south[x], p[x]);
        to[n - 1] = heat(row[n - 1], row[n - 2], row[n - 1], north[n - 1], south[n - 1], p[n - 1]);
    }
}

static void
plain_hotspot(const struct job *job)
{
    hotspot(data_of(job, 0), data_of(job, 1), data_of(job, 2), int_of(job, 3));
}

static void
prepare_cfd(struct job *job)
{
    const int n = 128, size = (n + 2) * (n + 2);

    job_output(job, DOUBLES, (size_t)size * 4);

    double *in = job_buffer(job, DOUBLES, (size_t)size * 4);

    for (int i = 0; i < size; i++) {
        in[i] = (double)random_float(0.8f, 1.2f);
        in[size + i] = (double)random_float(-0.2f, 0.2f);
        in[2 * size + i] = (double)random_float(-0.2f, 0.2f);
        in[3 * size + i] = (double)random_float(2.2f, 2.8f);
    }
    job_int(job, n);
    job_shape(job, n, n, 32, 8);
}

struct cell {
    double u[4], pressure, sound;
};

static struct cell
cell_at(const double *in, int size, int at)
{
    struct cell c = {.u = {in[at], in[size + at], in[2 * size + at], in[3 * size + at]}};

    c.pressure = 0.4 * (c.u[3] - 0.5 * (c.u[1] * c.u[1] + c.u[2] * c.u[2]) / c.u[0]);
    c.sound = sqrt(1.4 * c.pressure / c.u[0]);
    return c;
}

/* Adds the flux to a neighbour: along is -1 or 1, axis 1 for x and 2 for y. */
static void
add_flux(double sum[4], const struct cell *a, const struct cell *b, int axis, int along)
{
    const double na = a->u[axis] / a->u[0], nb = b->u[axis] / b->u[0];
    const double speed = fmax(fabs(na) + a->sound, fabs(nb) + b->sound);

    for (int f = 0; f < 4; f++) {
        double flux = na * a->u[f] + nb * b->u[f];

        if (f == axis)
            flux += a->pressure + b->pressure;
        if (f == 3)
            flux += na * a->pressure + nb * b->pressure;
        sum[f] += 0.5 * (along * flux - speed * (b->u[f] - a->u[f]));
    }
}

static void
cfd(double *restrict out, const double *restrict in, int n)
{
    const int row = n + 2, size = row * row;

    for (int y = 1; y <= n; y++) {
        for (int x = 1; x <= n; x++) {
            const int at = y * row + x;
            const struct cell here = cell_at(in, size, at);
            const struct cell west = cell_at(in, size, at - 1), east = cell_at(in, size, at + 1);
            const struct cell north = cell_at(in, size, at - row);
            const struct cell south = cell_at(in, size, at + row);
            double sum[4] = {0};

            add_flux(sum, &here, &west, 1, -1);
            add_flux(sum, &here, &east, 1, 1);
            add_flux(sum, &here, &north, 2, -1);
            add_flux(sum, &here, &south, 2, 1);
            for (int f = 0; f < 4; f++)
                out[f * size + at] = here.u[f] - 0.01 * sum[f];
        }
    }
}

static void
plain_cfd(const struct job *job)
{
    cfd(data_of(job, 0), data_of(job, 1), int_of(job, 2));
}

const struct bench_case grid_cases[] = {
    {"stencil5", "grid", "stencil5", prepare_stencil5, plain_stencil5, 1e-6},
    {"hotspot", "grid", "hotspot", prepare_hotspot, plain_hotspot, 1e-6},
    {"cfd", "grid", "cfd", prepare_cfd, plain_cfd, 1e-13},
    {0},
};
