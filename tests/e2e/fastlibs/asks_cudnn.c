/* Asks cuDNN for convolutions in every way that heddle run --fast-libs tells apart. The numbers are
 * those of cuDNN's backend interface (src/fastlibs/cudnn.h). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "played.h"

enum { X = 1, W, Y }; /* names of the tensors */

static void *
create(void)
{
    void *d = NULL;

    if (cudnnBackendCreateDescriptor(0, &d) != 0)
        exit(1);
    return d;
}

static void
set(void *d, int attribute, int type, int64_t count, const void *elements)
{
    if (cudnnBackendSetAttribute(d, attribute, type, count, elements) != 0)
        exit(1);
}

/* Of one image. */
static void *
create_tensor(int64_t id, int64_t first, int64_t channels, int64_t size)
{
    const int64_t sizes[] = {first, channels, size, size};
    const int64_t strides[] = {channels * size * size, size * size, size, 1};
    const int type = 0;
    const bool no = false;
    void *t = create();

    set(t, 901, 1, 1, &type);
    set(t, 902, 3, 4, sizes);
    set(t, 903, 3, 4, strides);
    set(t, 906, 3, 1, &id);
    set(t, 907, 2, 1, &no);
    return t;
}

static void *
create_space(int mode)
{
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0}, dims = 2;
    const int type = 0;
    void *s = create();

    set(s, 100, 1, 1, &type);
    set(s, 101, 7, 1, &mode);
    set(s, 102, 3, 2, ones);
    set(s, 103, 3, 2, ones);
    set(s, 104, 3, 2, zeros);
    set(s, 105, 3, 2, zeros);
    set(s, 106, 3, 1, &dims);
    return s;
}

/* A filter of one element on 2 by 2 places, of one channel. */
static void *
create_operation(int kind, int mode)
{
    /* alpha, beta, convolution, W, X, Y in the order of their numbers */
    static const int first[] = {700, 706, 712}, x[] = {704, 710, 716}, w[] = {703, 709, 715};
    const float one = 1, zero = 0;
    void *operation = create(), *space = create_space(mode);
    void *tensors[] = {create_tensor(X, 1, 1, 2), create_tensor(W, 1, 1, 1),
                       create_tensor(Y, 1, 1, 2)};

    set(operation, first[kind], 4, 1, &one);
    set(operation, first[kind] + 1, 4, 1, &zero);
    set(operation, first[kind] + 2, 15, 1, &space);
    set(operation, x[kind], 15, 1, &tensors[0]);
    set(operation, w[kind], 15, 1, &tensors[1]);
    set(operation, first[kind] + 5, 15, 1, &tensors[2]);
    /* What they say is in the operation now. */
    for (unsigned i = 0; i < 3; i++)
        cudnnBackendDestroyDescriptor(tensors[i]);
    cudnnBackendDestroyDescriptor(space);
    return operation;
}

/* By the way that programs take: cuDNN chooses a configuration. */
static void *
create_plan(void *const *operations, int64_t count)
{
    void *graph = create(), *chooser = create(), *configuration = create(), *plan = create();
    int64_t found = 0;

    set(graph, 801, 15, count, operations);
    set(chooser, 201, 15, 1, &graph);
    if (cudnnBackendGetAttribute(chooser, 202, 15, 1, &found, &configuration) != 0 || found != 1)
        exit(1);
    set(plan, 401, 15, 1, &configuration);
    cudnnBackendDestroyDescriptor(graph);
    cudnnBackendDestroyDescriptor(chooser);
    cudnnBackendDestroyDescriptor(configuration);
    return plan;
}

static int
execute(struct played_handle *h, void *plan, float *x, float *w, float *y)
{
    const int64_t names[] = {Y, X, W};
    void *const addresses[] = {y, x, w};
    void *pack = create();
    int status;

    set(pack, 1000, 3, 3, names);
    set(pack, 1001, 6, 3, addresses);
    status = cudnnBackendExecute(h, plan, pack);
    cudnnBackendDestroyDescriptor(pack);
    return status;
}

void
played_convolve(struct played_handle *h, float *x, float *w, float *y)
{
    void *operations[] = {create_operation(0, 1), create_operation(0, 1)};
    void *plan = create_plan(operations, 1), *other;

    played_say("convolution", execute(h, plan, x, w, y), y);
    other = create_operation(0, 0);
    other = create_plan(&other, 1);
    played_say("convolution, turned around", execute(h, other, x, w, y), y);
    other = create_plan(operations, 2);
    played_say("convolution, two operations", execute(h, other, x, w, y), y);
    played_say("convolution, unknown plan", execute(h, create(), x, w, y), y);
    /* A plan of another library would lie where this one did. */
    cudnnBackendDestroyDescriptor(plan);
    played_say("convolution, another one's place", execute(h, plan, x, w, y), y);
    plan = create_plan(operations, 1);
    played_say("convolution, behind the allocation", execute(h, plan, x + 1, w, y), y);
    other = create_operation(1, 1);
    played_say("to data", execute(h, create_plan(&other, 1), x, w, y), x);
    other = create_operation(2, 1);
    played_say("to filter", execute(h, create_plan(&other, 1), x, w, y), w);
}
