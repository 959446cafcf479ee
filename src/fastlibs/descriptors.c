/* See descriptors.h. Each kind of descriptor has attributes of its own, so the first attribute says
 * which kind it is. What is not known makes a descriptor `odd`, and its convolution cuDNN's to
 * compute.
 */
#include "fastlibs/descriptors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "fastlibs/cudnn.h"

#define DIMS 8      /* of a tensor; more are odd */
#define TENSORS 8   /* of a variant pack; more are odd */
#define BUCKETS 512 /* a power of two */

struct tensor {
    bool odd;
    int type, dims;
    int64_t id, size[DIMS], stride[DIMS];
};

struct space {
    bool odd;
    int64_t dims, before[DIMS], after[DIMS], step[DIMS], dilation[DIMS];
};

/* Tensors of an operation. */
enum { X, Y, W, OPERANDS };

struct operation {
    bool odd;
    enum hed_convolution_kind kind;
    struct tensor tensors[OPERANDS];
    struct space space;
    double alpha, beta;
};

/* Graph, engine, its choice, configuration, plan: what it will do. */
struct runs {
    enum hed_described what;
    bool odd; /* also if it gets a convolution later */
    struct operation operation;
};

struct pack {
    bool odd;
    int64_t ids, addresses, id[TENSORS];
    void *address[TENSORS];
};

enum kind { TENSOR, SPACE, OPERATION, RUNS, PACK, KINDS };

struct descriptor {
    const void *is;
    struct descriptor *next;
    enum kind kind;
    uint32_t told; /* attributes, a bit for each, by their last two digits */
    union {
        struct tensor tensor;
        struct space space;
        struct operation operation;
        struct runs runs;
        struct pack pack;
    };
};

static struct hed_lock lock = HED_LOCK_INIT(HED_RANK_DESCRIPTORS);
static struct descriptor *buckets[BUCKETS]; /* guarded by the lock, with all that hangs on them */

/* ---- the table ------------------------------------------------------------------------------- */

static struct descriptor **
find_descriptor(const void *is)
{
    struct descriptor **at =
        &buckets[(uintptr_t)is * (uintptr_t)0x9e3779b97f4a7c15u >> 32 & (BUCKETS - 1)];

    while (*at && (*at)->is != is)
        at = &(*at)->next;
    return at;
}

static struct descriptor *
find_kind(const void *is, enum kind kind)
{
    struct descriptor *d = *find_descriptor(is);

    return d && d->kind == kind ? d : NULL;
}

/* NULL: there is no memory, or it is of another kind. Both make what it is put into unknown. */
static struct descriptor *
make_descriptor(const void *is, enum kind kind)
{
    struct descriptor **at = find_descriptor(is);

    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return NULL;
        (*at)->is = is;
        (*at)->kind = kind;
    }
    return (*at)->kind == kind ? *at : NULL;
}

void
hed_descriptors_forget(const void *is)
{
    struct descriptor **at, *d;

    hed_lock(&lock);
    at = find_descriptor(is);
    d = *at;
    if (d)
        *at = d->next;
    hed_unlock(&lock);
    free(d);
}

void
hed_descriptors_forked(void)
{
    if (hed_lock_try(&lock)) {
        hed_unlock(&lock);
        return;
    }
    /* What the other thread was changing is half done. */
    memset(buckets, 0, sizeof buckets);
    hed_lock_init(&lock, HED_RANK_DESCRIPTORS);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* An attribute as it was set. */
struct value {
    int attribute, type;
    int64_t count;
    const void *elements;
};

/* False if it is not one number of 64 bits, or of the type of that size. */
static bool
read_int64(const struct value *v, int64_t *out)
{
    if (v->type != CUDNN_TYPE_INT64 || v->count != 1)
        return false;
    memcpy(out, v->elements, sizeof *out);
    return true;
}

static bool
is_enum(const struct value *v, int type, int expected)
{
    int32_t is;

    if (v->type != type || v->count != 1)
        return false;
    memcpy(&is, v->elements, sizeof is);
    return is == expected;
}

static bool
is_false(const struct value *v)
{
    return v->type == CUDNN_TYPE_BOOLEAN && v->count == 1 && !*(const bool *)v->elements;
}

/* Returns how many; -1: they are none, or too many. */
static int
read_numbers(const struct value *v, int64_t out[DIMS])
{
    if (v->type != CUDNN_TYPE_INT64 || v->count < 1 || v->count > DIMS)
        return -1;
    memcpy(out, v->elements, (size_t)v->count * sizeof *out);
    return (int)v->count;
}

static bool
read_real(const struct value *v, double *out)
{
    float f;

    if (v->count != 1)
        return false;
    if (v->type == CUDNN_TYPE_DOUBLE) {
        memcpy(out, v->elements, sizeof *out);
        return true;
    }
    memcpy(&f, v->elements, sizeof f);
    *out = (double)f;
    return v->type == CUDNN_TYPE_FLOAT;
}

#define BIT(attribute) (UINT32_C(1) << (attribute) % 100)

/* Has everything been told of it that is needed? Of an operation: one of the three groups. */
static bool
is_complete(const struct descriptor *d)
{
    static const uint32_t tensor =
        BIT(CUDNN_ATTR_TENSOR_DATA_TYPE) | BIT(CUDNN_ATTR_TENSOR_DIMENSIONS) |
        BIT(CUDNN_ATTR_TENSOR_STRIDES) | BIT(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    static const uint32_t space = 0x7f, operation = 0x3f;

    switch (d->kind) {
    case TENSOR:
        return (d->told & tensor) == tensor;
    case SPACE:
        return (d->told & space) == space;
    case OPERATION:
        return d->told == operation || d->told == operation << 6 || d->told == operation << 12;
    default:
        return true;
    }
}

/* The descriptor at this place, if it is of that kind and complete. */
static struct descriptor *
read_descriptor(const struct value *v, int64_t i, enum kind kind)
{
    struct descriptor *d;

    if (v->type != CUDNN_TYPE_BACKEND_DESCRIPTOR || i >= v->count)
        return NULL;
    d = find_kind(((void *const *)v->elements)[i], kind);
    return d && is_complete(d) ? d : NULL;
}

static void
set_tensor(struct tensor *t, const struct value *v)
{
    int64_t number = 0;
    int32_t type;
    bool known = true;

    switch (v->attribute) {
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION: /* matters only where the count is not 1 */
        break;
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
        known = v->type == CUDNN_TYPE_DATA_TYPE && v->count == 1;
        if (known)
            memcpy(&type, v->elements, sizeof type);
        t->type = known ? type : -1;
        break;
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
        t->dims = read_numbers(v, t->size);
        break;
    case CUDNN_ATTR_TENSOR_STRIDES:
        known = read_numbers(v, t->stride) > 0;
        break;
    case CUDNN_ATTR_TENSOR_VECTOR_COUNT:
        known = read_int64(v, &number) && number == 1;
        break;
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
        known = read_int64(v, &t->id);
        break;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
        known = is_false(v);
        break;
    case CUDNN_ATTR_TENSOR_REORDERING_MODE:
        known = is_enum(v, CUDNN_TYPE_TENSOR_REORDERING_MODE, CUDNN_TENSOR_REORDERING_NONE);
        break;
    default:
        known = false;
    }
    t->odd = t->odd || !known;
}

static void
set_space(struct space *s, const struct value *v)
{
    bool known = true;

    switch (v->attribute) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
        known = is_enum(v, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
        break;
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
        known = is_enum(v, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
        break;
    case CUDNN_ATTR_CONVOLUTION_DILATIONS:
        known = read_numbers(v, s->dilation) > 0;
        break;
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES:
        known = read_numbers(v, s->step) > 0;
        break;
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
        known = read_numbers(v, s->after) > 0;
        break;
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
        known = read_numbers(v, s->before) > 0;
        break;
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
        known = read_int64(v, &s->dims);
        break;
    default:
        known = false;
    }
    s->odd = s->odd || !known;
}

static void
set_operand(struct operation *o, unsigned which, const struct value *v)
{
    const struct descriptor *d = read_descriptor(v, 0, TENSOR);

    if (d)
        o->tensors[which] = d->tensor;
    else
        o->odd = true;
}

static void
set_operation(struct operation *o, const struct value *v)
{
    const struct descriptor *d;
    bool known = true;

    switch (v->attribute) {
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA:
        known = read_real(v, &o->alpha);
        break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA:
        known = read_real(v, &o->beta);
        break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC:
        d = read_descriptor(v, 0, SPACE);
        known = d != NULL;
        if (d)
            o->space = d->space;
        break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X:
        set_operand(o, X, v);
        break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY:
        set_operand(o, Y, v);
        break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW:
        set_operand(o, W, v);
        break;
    default:
        known = false;
    }
    o->kind = v->attribute >= CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA
                  ? HED_CONVOLUTION_TO_FILTER
              : v->attribute >= CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                  ? HED_CONVOLUTION_TO_DATA
                  : HED_CONVOLUTION_FORWARD;
    o->odd = o->odd || !known;
}

/* A graph's operations. */
static void
set_operations(struct runs *r, const struct value *v)
{
    r->what = HED_DESCRIBED_NOT;
    for (int64_t i = 0; v->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < v->count; i++) {
        const struct descriptor *d = find_kind(((void *const *)v->elements)[i], OPERATION);

        if (!d)
            continue;
        r->operation = d->operation;
        r->what = v->count == 1 && !d->operation.odd && is_complete(d) ? HED_DESCRIBED_PLAIN
                                                                       : HED_DESCRIBED_OTHER;
    }
}

static void
set_runs(struct runs *r, const struct value *v)
{
    const struct descriptor *d;

    switch (v->attribute) {
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
        break;
    case CUDNN_ATTR_OPERATIONGRAPH_OPS:
        set_operations(r, v);
        break;
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
        d = read_descriptor(v, 0, RUNS);
        if (d)
            *r = d->runs;
        else
            r->what = HED_DESCRIBED_NOT;
        break;
    default:
        /* A graph whose shapes are told later, or what comes with a new version. */
        if (v->attribute / 100 == CUDNN_ATTR_OPERATIONGRAPH_HANDLE / 100 && !is_false(v))
            r->odd = true;
    }
}

static void
set_pack(struct pack *p, const struct value *v)
{
    switch (v->attribute) {
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
        p->ids = v->type == CUDNN_TYPE_INT64 ? v->count : 0;
        if (p->ids > 0 && p->ids <= TENSORS)
            memcpy(p->id, v->elements, (size_t)p->ids * sizeof p->id[0]);
        break;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
        p->addresses = v->type == CUDNN_TYPE_VOID_PTR ? v->count : 0;
        if (p->addresses > 0 && p->addresses <= TENSORS)
            memcpy(p->address, v->elements, (size_t)p->addresses * sizeof p->address[0]);
        break;
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
        break;
    default:
        p->odd = true;
    }
}

/* Attributes are numbered by hundreds, a hundred for each kind. Plans, engines and so on tell what
 * they will do by one attribute; their others do not matter. */
static enum kind
kind_of(int attribute)
{
    switch (attribute / 100) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE / 100:
        return SPACE;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA / 100:
        return attribute <= CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY ? OPERATION : KINDS;
    case CUDNN_ATTR_TENSOR_DATA_TYPE / 100:
        return TENSOR;
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS / 100:
        return PACK;
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH / 100:
    case CUDNN_ATTR_ENGINECFG_ENGINE / 100:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG / 100:
    case CUDNN_ATTR_OPERATIONGRAPH_OPS / 100:
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH / 100:
        return RUNS;
    default:
        return KINDS;
    }
}

void
hed_descriptors_set(const void *descriptor, int attribute, int type, int64_t count,
                    const void *elements)
{
    const struct value v = {attribute, type, count, elements};
    const enum kind kind = kind_of(attribute);
    struct descriptor *d;

    if (kind == KINDS || !elements || count < 1)
        return;
    hed_lock(&lock);
    d = make_descriptor(descriptor, kind);
    if (d)
        d->told |= BIT(attribute);
    if (d && kind == TENSOR)
        set_tensor(&d->tensor, &v);
    else if (d && kind == SPACE)
        set_space(&d->space, &v);
    else if (d && kind == OPERATION)
        set_operation(&d->operation, &v);
    else if (d && kind == RUNS)
        set_runs(&d->runs, &v);
    else if (d)
        set_pack(&d->pack, &v);
    hed_unlock(&lock);
}

void
hed_descriptors_filled(const void *descriptor, int attribute, int64_t count, const void *elements)
{
    const struct descriptor *from;
    struct descriptor *to;

    if (attribute != CUDNN_ATTR_ENGINEHEUR_RESULTS && attribute != CUDNN_ATTR_ENGINECFG_ENGINE &&
        attribute != CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG &&
        attribute != CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
        return;
    hed_lock(&lock);
    from = find_kind(descriptor, RUNS);
    for (int64_t i = 0; from && i < count; i++) {
        to = make_descriptor(((void *const *)elements)[i], RUNS);
        if (to && to != from)
            to->runs = from->runs;
    }
    hed_unlock(&lock);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static bool
find_type(int type, enum hed_product_type *out)
{
    switch (type) {
    case CUDNN_DATA_FLOAT:
        *out = HED_PRODUCT_F32;
        return true;
    case CUDNN_DATA_HALF:
        *out = HED_PRODUCT_F16;
        return true;
    case CUDNN_DATA_BFLOAT16:
        *out = HED_PRODUCT_BF16;
        return true;
    default:
        return false;
    }
}

/* Missing dimensions of space are in front of those that there are. */
static bool
find_tensor(const struct tensor *from, const struct pack *pack, int64_t space,
            struct hed_convolution_tensor *out)
{
    if (from->odd || from->dims != space + 2)
        return false;
    for (unsigned i = 0; i < HED_CONVOLUTION_DIMS; i++) {
        out->size[i] = 1;
        out->stride[i] = 0;
    }
    for (int i = 0; i < from->dims; i++) {
        const int64_t at = i < 2 ? i : i + HED_CONVOLUTION_SPACE - space;

        out->size[at] = from->size[i];
        out->stride[at] = from->stride[i];
    }
    for (int64_t i = 0; i < pack->ids; i++)
        if (pack->id[i] == from->id) {
            out->data = pack->address[i];
            return true;
        }
    return false;
}

static bool
read_operation(const struct operation *o, const struct pack *pack, struct hed_convolution *out)
{
    const int64_t space = o->space.dims;

    *out = (struct hed_convolution){.kind = o->kind, .alpha = o->alpha, .beta = o->beta};
    if (o->space.odd || space < 1 || space > HED_CONVOLUTION_SPACE || pack->odd ||
        pack->ids != pack->addresses || pack->ids > TENSORS ||
        o->tensors[Y].type != o->tensors[X].type || o->tensors[W].type != o->tensors[X].type ||
        !find_type(o->tensors[X].type, &out->type) ||
        !find_tensor(&o->tensors[X], pack, space, &out->x) ||
        !find_tensor(&o->tensors[Y], pack, space, &out->y) ||
        !find_tensor(&o->tensors[W], pack, space, &out->w))
        return false;
    for (int64_t i = 0; i < HED_CONVOLUTION_SPACE; i++) {
        const int64_t from = i - (HED_CONVOLUTION_SPACE - space);

        out->before[i] = from < 0 ? 0 : o->space.before[from];
        out->after[i] = from < 0 ? 0 : o->space.after[from];
        out->step[i] = from < 0 ? 1 : o->space.step[from];
        out->dilation[i] = from < 0 ? 1 : o->space.dilation[from];
    }
    return true;
}

enum hed_described
hed_descriptors_find(const void *plan, const void *pack, struct hed_convolution *out)
{
    const struct descriptor *p, *with;
    enum hed_described what;

    hed_lock(&lock);
    p = find_kind(plan, RUNS);
    with = find_kind(pack, PACK);
    what = p ? p->runs.what : HED_DESCRIBED_NOT;
    if (what == HED_DESCRIBED_PLAIN &&
        (p->runs.odd || !with || !read_operation(&p->runs.operation, &with->pack, out)))
        what = HED_DESCRIBED_OTHER;
    hed_unlock(&lock);
    return what;
}
