/* A layer for heddle that counts the bytes a program copies to the device, and refuses to copy more
 * than a limit, which is given as its option: plugins=/path/copies.so:1048576
 *
 * Invariant: used is the number of bytes of all copies that succeeded or are being made.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <heddle/layer.h>

struct copies {
    uint64_t limit;        /* bytes; constant after init */
    _Atomic uint64_t used; /* bytes */
};

/* Makes a copy of n bytes, or refuses it. */
static CUresult
count_copy(struct heddle_layer *self, enum hed_cuda_call call, void *args, uint64_t n)
{
    struct copies *c = self->state;
    CUresult r = CUDA_ERROR_NOT_PERMITTED;

    /* Count first: two threads together must not pass the limit that neither passes alone. */
    if (atomic_fetch_add(&c->used, n) + n <= c->limit)
        r = self->host->next(self, call, args);
    else
        self->host->log(self, HEDDLE_LOG_WARN, "a copy would go over the limit");
    if (r != CUDA_SUCCESS)
        atomic_fetch_sub(&c->used, n);
    return r;
}

static CUresult
copy_now(struct heddle_layer *self, void *args)
{
    struct hed_cuMemcpyHtoD_v2 *a = args;

    return count_copy(self, HED_cuMemcpyHtoD_v2, a, a->ByteCount);
}

static CUresult
copy_later(struct heddle_layer *self, void *args)
{
    struct hed_cuMemcpyHtoDAsync_v2 *a = args;

    return count_copy(self, HED_cuMemcpyHtoDAsync_v2, a, a->ByteCount);
}

static int
start(struct heddle_layer *self, char *why, size_t size)
{
    struct copies *c = calloc(1, sizeof *c);
    char *end;

    c->limit = *self->options ? strtoull(self->options, &end, 10) : UINT64_MAX;
    if (*self->options && *end) {
        snprintf(why, size, "the limit '%s' is not a number of bytes", self->options);
        free(c);
        return -1;
    }
    self->state = c;
    return 0;
}

static void
finish(struct heddle_layer *self)
{
    struct copies *c = self->state;
    char text[64];

    snprintf(text, sizeof text, "%llu bytes went to the device",
             (unsigned long long)atomic_load(&c->used));
    self->host->log(self, HEDDLE_LOG_INFO, text);
}

/* A real layer also has the 2D and 3D copies, and those of older versions (cuMemcpyHtoD). */
static const struct heddle_layer_override overrides[] = {
    {HED_cuMemcpyHtoD_v2, copy_now},
    {HED_cuMemcpyHtoDAsync_v2, copy_later},
    {0},
};

const struct heddle_layer_plugin heddle_layer_plugin = {
    .abi = HEDDLE_LAYER_ABI,
    .size = sizeof heddle_layer_plugin,
    .name = "copies",
    .overrides = overrides,
    .init = start,
    .fini = finish,
};
