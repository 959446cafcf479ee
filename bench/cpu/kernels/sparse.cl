/* Memory that is not in rows: sparse matrices and graphs. */
#include "dialect.cl"

/* One row per thread. */
KERNEL(spmv)(GLOBAL float *y, GLOBAL const int *starts, GLOBAL const int *columns,
             GLOBAL const float *values, GLOBAL const float *x, int rows)
{
    const int i = GLOBAL_X;
    float sum = 0;

    if (i >= rows)
        return;
    for (int j = starts[i]; j < starts[i + 1]; j++)
        sum = FMA(values[j], x[columns[j]], sum);
    y[i] = sum;
}

/* One step of a breadth-first search: marks the new neighbours of the nodes at a level. */
KERNEL(bfs)(GLOBAL int *next, GLOBAL const int *levels, GLOBAL const int *starts,
            GLOBAL const int *edges, int level, int nodes)
{
    const int i = GLOBAL_X;

    if (i >= nodes || levels[i] != level)
        return;
    for (int j = starts[i]; j < starts[i + 1]; j++) {
        if (levels[edges[j]] < 0)
            next[edges[j]] = level + 1;
    }
}
