/* The cases of kernels/sparse.cl. */
#include "../cases.h"

/* Adds the starts of rows of 4 to 27 elements, then a column for each; returns their number. */
static size_t
add_graph(struct job *job, int rows)
{
    int *starts = job_buffer(job, WORDS, (size_t)rows + 1);

    for (int i = 0; i < rows; i++)
        starts[i + 1] = starts[i] + 4 + (int)(random_word() % 24);
    job_words(job, (size_t)starts[rows], (uint32_t)rows);
    return (size_t)starts[rows];
}

static void
prepare_spmv(struct job *job)
{
    const int rows = 16 << 10;

    job_output(job, FLOATS, (size_t)rows);

    const size_t elements = add_graph(job, rows);

    job_floats(job, elements, -1, 1);
    job_floats(job, (size_t)rows, -1, 1);
    job_int(job, rows);
    job_shape(job, rows, 1, 256, 1);
}

static void
spmv(float *restrict y, const int *restrict starts, const int *restrict columns,
     const float *restrict values, const float *restrict x, int rows)
{
    for (int i = 0; i < rows; i++) {
        float sum = 0;

        for (int j = starts[i]; j < starts[i + 1]; j++)
            sum = __builtin_fmaf(values[j], x[columns[j]], sum);
        y[i] = sum;
    }
}

static void
plain_spmv(const struct job *job)
{
    spmv(data_of(job, 0), data_of(job, 1), data_of(job, 2), data_of(job, 3), data_of(job, 4),
         int_of(job, 5));
}

static void
prepare_bfs(struct job *job)
{
    const int nodes = 64 << 10;

    job_output(job, WORDS, (size_t)nodes);

    int *levels = job_buffer(job, WORDS, (size_t)nodes);

    /* A third of the nodes has been reached, a third of these in the last step. */
    for (int i = 0; i < nodes; i++)
        levels[i] = random_word() % 3 ? -1 : (int)(random_word() % 3) + 2;
    add_graph(job, nodes);
    job_int(job, 4);
    job_int(job, nodes);
    job_shape(job, nodes, 1, 256, 1);
}

static void
bfs(int *restrict next, const int *restrict levels, const int *restrict starts,
    const int *restrict edges, int level, int nodes)
{
    for (int i = 0; i < nodes; i++) {
        if (levels[i] != level)
            continue;
        for (int j = starts[i]; j < starts[i + 1]; j++) {
            if (levels[edges[j]] < 0)
                next[edges[j]] = level + 1;
        }
    }
}

static void
plain_bfs(const struct job *job)
{
    bfs(data_of(job, 0), data_of(job, 1), data_of(job, 2), data_of(job, 3), int_of(job, 4),
        int_of(job, 5));
}

const struct bench_case sparse_cases[] = {
    {"spmv", "sparse", "spmv", prepare_spmv, plain_spmv, 1e-6},
    {"bfs", "sparse", "bfs", prepare_bfs, plain_bfs, 0},
    {0},
};
