/* Stencils over grids. */
#include "dialect.cl"

KERNEL(stencil5)(GLOBAL float *out, GLOBAL const float *in, int n)
{
    const int x = GLOBAL_X, y = GLOBAL_Y;

    if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
        out[y * n + x] = FMA(0.5f, in[y * n + x],
                             0.125f * (in[y * n + x - 1] + in[y * n + x + 1] +
                                       in[(y - 1) * n + x] + in[(y + 1) * n + x]));
}

/* Heat on a chip: a tile of 16 by 16 in shared memory; what lies outside comes from global. */
KERNEL(hotspot)(GLOBAL float *out, GLOBAL const float *in, GLOBAL const float *power, int n)
{
    SHARED float tile[16][16];
    const int x = GLOBAL_X, y = GLOBAL_Y, i = y * n + x;
    const float here = in[i];

    tile[LOCAL_Y][LOCAL_X] = here;
    BARRIER();

    const float west = x == 0 ? here : LOCAL_X > 0 ? tile[LOCAL_Y][LOCAL_X - 1] : in[i - 1];
    const float east = x == n - 1 ? here : LOCAL_X < 15 ? tile[LOCAL_Y][LOCAL_X + 1] : in[i + 1];
    const float north = y == 0 ? here : LOCAL_Y > 0 ? tile[LOCAL_Y - 1][LOCAL_X] : in[i - n];
    const float south = y == n - 1 ? here : LOCAL_Y < 15 ? tile[LOCAL_Y + 1][LOCAL_X] : in[i + n];

    out[i] = FMA(0.1f,
                 FMA(-2.0f, here, north + south) + FMA(-2.0f, here, east + west) + power[i] +
                     0.01f * (80.0f - here),
                 here);
}

DEVICE double pressure(double rho, double mx, double my, double energy)
{
    return 0.4 * (energy - 0.5 * (mx * mx + my * my) / rho);
}

/* One step of the 2-D Euler equations in doubles (Rusanov's flux). The four fields have a border
 * of 1 cell. */
KERNEL(cfd)(GLOBAL double *out, GLOBAL const double *in, int n)
{
    const int x = GLOBAL_X + 1, y = GLOBAL_Y + 1, row = n + 2, size = row * row;
    const int here = y * row + x;
    double sum[4] = {0, 0, 0, 0}, u[4];

    for (int f = 0; f < 4; f++)
        u[f] = in[f * size + here];

    const double p = pressure(u[0], u[1], u[2], u[3]);

    for (int side = 0; side < 4; side++) {
        const int along = side & 1 ? 1 : -1;
        const int there = here + (side < 2 ? along : along * row);
        double v[4];

        for (int f = 0; f < 4; f++)
            v[f] = in[f * size + there];

        const double r = pressure(v[0], v[1], v[2], v[3]);
        const double nu = (side < 2 ? u[1] : u[2]) / u[0], nv = (side < 2 ? v[1] : v[2]) / v[0];
        const double cu = FABS64(nu) + SQRT64(1.4 * p / u[0]);
        const double cv = FABS64(nv) + SQRT64(1.4 * r / v[0]);
        const double speed = FMAX64(cu, cv);

        for (int f = 0; f < 4; f++) {
            double flux = nu * u[f] + nv * v[f];

            if (f == (side < 2 ? 1 : 2))
                flux += p + r;
            if (f == 3)
                flux += nu * p + nv * r;
            sum[f] += 0.5 * (along * flux - speed * (v[f] - u[f]));
        }
    }
    for (int f = 0; f < 4; f++)
        out[f * size + here] = u[f] - 0.01 * sum[f];
}
