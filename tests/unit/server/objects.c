/* A worker's graphs and arrays: what the backend is asked for, and what handlers do not believe.
 * The backend here counts, and the rest of the worker is replaced by stand-ins. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/worker.h"

#define BASE UINT64_C(0x200000000000)
#define SHARE UINT64_C(0x10000000)
#define VARIABLE UINT64_C(0x7f0000000000) /* of a module, 256 bytes */
#define NAME(kind, n) ((uint64_t)(kind) << 56 | UINT64_C(1) << 32 | (n))
#define EXEC NAME(10, 1)
#define ARRAY NAME(13, 1)
#define MIPMAP NAME(14, 1)

static char words[1024];
static CUresult next;    /* what the backend answers */
static int answered;     /* the last answer; -1 for none */
static CUresult noted;   /* the last failure that nobody waited for */
static uint64_t handles; /* the last handle that the backend gave out */
static struct hed_worker_function function = {.name = 5, .param_bytes = 8};

static uint64_t leased; /* by arrays */

uint64_t
hed_lease_take(struct hed_worker *w, int device, uint64_t want, uint64_t least)
{
    (void)w, (void)device, (void)least;
    if (want > (1 << 20) - leased)
        return 0;
    leased += want;
    return want;
}

void
hed_lease_give(struct hed_worker *w, int device, uint64_t bytes)
{
    (void)w, (void)device;
    leased -= bytes;
}

static void
hear(const char *what, size_t detail)
{
    const size_t n = strlen(words);

    (void)snprintf(words + n, sizeof words - n, "%s%s%zu", n ? " " : "", what, detail);
}

static void
expect(const char *what)
{
    assert_string_equal(words, what);
    words[0] = '\0';
}

/* ---- the rest of a worker -------------------------------------------------------------------- */

int
hed_worker_answer_with(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                       void *answer, size_t size, uint64_t bulk)
{
    (void)ch;
    (void)m;
    (void)answer;
    (void)size;
    (void)bulk;
    answered = result;
    return 0;
}

int
hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                  const void *body, size_t n)
{
    (void)ch;
    (void)m;
    (void)body;
    (void)n;
    answered = result;
    return 0;
}

void
hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error)
{
    (void)w;
    (void)context;
    noted = error;
}

void
hed_ticket_pass(struct hed_worker_channel *ch)
{
    (void)ch;
}

struct hed_worker_function *
hed_worker_function(struct hed_worker_code *c, uint64_t name)
{
    (void)c;
    return name == function.name ? &function : NULL;
}

bool
hed_worker_variable_covers(struct hed_worker *w, uint64_t at, uint64_t size)
{
    (void)w;
    return at >= VARIABLE && at - VARIABLE < 256 && size <= 256 - (at - VARIABLE);
}

bool
hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return true;
}

/* ---- a backend ------------------------------------------------------------------------------- */

#define CALL(call) static CUresult fake_##call(struct hed_layer *self, struct hed_##call *a)
#define NEW(out) (*(out) = (void *)(uintptr_t)(0x1000 + 16 * ++handles))

CALL(cuGraphCreate)
{
    hear("graph", 0);
    NEW(a->phGraph);
    return next;
}

CALL(cuGraphDestroy)
{
    hear("destroy", 0);
    return CUDA_SUCCESS;
}

CALL(cuGraphAddKernelNode_v2)
{
    hear("kernel", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphKernelNodeSetAttribute)
{
    hear("attribute", (size_t)a->attr);
    return next;
}

CALL(cuGraphAddMemcpyNode)
{
    hear(a->copyParams->dstArray ? "to-array" : "copy", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddMemsetNode)
{
    hear("fill", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddEmptyNode)
{
    hear("empty", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddBatchMemOpNode)
{
    hear("values", a->nodeParams->count);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddEventRecordNode)
{
    hear("record", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddChildGraphNode)
{
    hear("child", a->numDependencies);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphInstantiateWithFlags)
{
    hear("exec", 0);
    NEW(a->phGraphExec);
    return next;
}

CALL(cuGraphExecUpdate_v2)
{
    hear("update", 0);
    return a->resultInfo ? next : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphExecDestroy)
{
    hear("exec-destroy", 0);
    return CUDA_SUCCESS;
}

CALL(cuCtxGetCurrent)
{
    *a->pctx = NULL;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetDevice)
{
    *a->device = 0;
    return CUDA_SUCCESS;
}

CALL(cuArray3DCreate_v2)
{
    hear("array", a->pAllocateArray->Width);
    NEW(a->pHandle);
    return next;
}

CALL(cuArrayDestroy)
{
    hear("array-destroy", 0);
    return CUDA_SUCCESS;
}

CALL(cuMipmappedArrayCreate)
{
    hear("mipmap", a->numMipmapLevels);
    NEW(a->pHandle);
    return next;
}

CALL(cuMipmappedArrayGetLevel)
{
    NEW(a->pLevelArray);
    return next;
}

CALL(cuMipmappedArrayDestroy)
{
    hear("mipmap-destroy", 0);
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops ops = {
    .cuGraphCreate = fake_cuGraphCreate,
    .cuGraphDestroy = fake_cuGraphDestroy,
    .cuGraphAddKernelNode_v2 = fake_cuGraphAddKernelNode_v2,
    .cuGraphKernelNodeSetAttribute = fake_cuGraphKernelNodeSetAttribute,
    .cuGraphAddMemcpyNode = fake_cuGraphAddMemcpyNode,
    .cuGraphAddMemsetNode = fake_cuGraphAddMemsetNode,
    .cuGraphAddEmptyNode = fake_cuGraphAddEmptyNode,
    .cuGraphAddBatchMemOpNode = fake_cuGraphAddBatchMemOpNode,
    .cuGraphAddEventRecordNode = fake_cuGraphAddEventRecordNode,
    .cuGraphAddChildGraphNode = fake_cuGraphAddChildGraphNode,
    .cuGraphInstantiateWithFlags = fake_cuGraphInstantiateWithFlags,
    .cuGraphExecUpdate_v2 = fake_cuGraphExecUpdate_v2,
    .cuGraphExecDestroy = fake_cuGraphExecDestroy,
    .cuCtxGetCurrent = fake_cuCtxGetCurrent,
    .cuCtxGetDevice = fake_cuCtxGetDevice,
    .cuArray3DCreate_v2 = fake_cuArray3DCreate_v2,
    .cuArrayDestroy = fake_cuArrayDestroy,
    .cuMipmappedArrayCreate = fake_cuMipmappedArrayCreate,
    .cuMipmappedArrayGetLevel = fake_cuMipmappedArrayGetLevel,
    .cuMipmappedArrayDestroy = fake_cuMipmappedArrayDestroy,
};

struct scene {
    struct hed_layer layer;
    struct hed_worker_start start;
    struct hed_worker worker;
    struct hed_worker_channel channel;
};

/* Names live as long as their worker, which is a process. They are kept here so that they do not
 * count as leaks. */
static struct hed_names *held[16];
static size_t held_count;

static int
setup(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_in_range(held_count, 0, sizeof held / sizeof held[0] - 1);
    held[held_count] = hed_names_create();

    s->layer.cuda = &ops;
    leased = 0;
    s->worker = (struct hed_worker){.start = &s->start,
                                    .top = &s->layer,
                                    .base = BASE,
                                    .stride = 2 * SHARE,
                                    .usable = SHARE,
                                    .device_count = 1,
                                    .device_shares = 1,
                                    .names = held[held_count++]};
    s->channel.worker = &s->worker;
    hed_arena_init(&s->channel.arena, 1 << 20);
    words[0] = '\0';
    next = CUDA_SUCCESS;
    noted = CUDA_SUCCESS;
    answered = -1;
    *state = s;
    return 0;
}

static int
teardown(void **state)
{
    struct scene *s = *state;

    hed_arena_fini(&s->channel.arena);
    free(s);
    return 0;
}

/* A message about graphs: positions (as many as `after`), then the node's own part. */
static int
graph(struct scene *s, uint32_t op, uint32_t type, const uint32_t *at, uint32_t after,
      const void *own, uint32_t size)
{
    static _Alignas(16) char room[4096];
    struct hed_graph_body *b = (struct hed_graph_body *)(void *)room;
    const size_t in = (after * sizeof *at + 7) / 8 * 8;

    memset(room, 0, sizeof room);
    b->op = op;
    b->type = type;
    b->after = after;
    b->size = size;
    b->exec = op == HED_GRAPH_BEGIN ? 0 : EXEC;
    if (after)
        memcpy(b + 1, at, after * sizeof *at);
    if (size)
        memcpy((char *)(b + 1) + in, own, size);
    b->head.size = (uint32_t)(sizeof *b + in + size);
    hed_arena_reset(&s->channel.arena);
    return hed_do_graph(&s->channel, &b->head);
}

#define STEP(s, op) graph(s, op, 0, NULL, 0, NULL, 0)
#define EMPTY(s, at, n) graph(s, HED_GRAPH_NODE, CU_GRAPH_NODE_TYPE_EMPTY, at, n, NULL, 0)

/* ---- graphs ---------------------------------------------------------------------------------- */

struct kernel {
    struct hed_graph_kernel k;
    CUlaunchAttribute attribute;
    uint64_t params;
};

static void
a_graph_is_made_updated_and_dropped(void **state)
{
    struct scene *s = *state;
    const uint32_t first[] = {0, 1};
    const struct kernel k = {.k = {.function = 5, .attributes = 1, .params = 8},
                             .attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
    const struct hed_graph_fill f = {.to = BASE, .width = 4, .height = 1, .element = 4};
    uint64_t real;

    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    assert_int_equal(EMPTY(s, NULL, 0), 0);
    assert_int_equal(graph(s, HED_GRAPH_NODE, CU_GRAPH_NODE_TYPE_KERNEL, first, 1, &k, sizeof k),
                     0);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    assert_int_equal(graph(s, HED_GRAPH_NODE, CU_GRAPH_NODE_TYPE_MEMSET, NULL, 0, &f, sizeof f), 0);
    assert_int_equal(graph(s, HED_GRAPH_CHILD, 0, first, 2, NULL, 0), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    expect("graph0 empty0 kernel1 attribute2 graph0 fill0 child2 destroy0 exec0 destroy0");
    assert_int_equal(noted, CUDA_SUCCESS);
    assert_int_equal(hed_name_real(s->worker.names, EXEC, &real), 0);

    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    expect("graph0 update0 destroy0");
    assert_int_equal(STEP(s, HED_GRAPH_DROP), 0);
    assert_int_equal(STEP(s, HED_GRAPH_DROP), 0); /* dropping nothing does no harm */
    expect("exec-destroy0");
    assert_int_equal(hed_name_real(s->worker.names, EXEC, &real), HED_ENOTFOUND);
    free(s->channel.drafts);
}

static void
a_graphs_first_failure_is_told_at_its_end(void **state)
{
    struct scene *s = *state;

    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    next = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(EMPTY(s, NULL, 0), 0);
    next = CUDA_SUCCESS;
    assert_int_equal(EMPTY(s, &(uint32_t){0}, 1), 0);
    assert_int_equal(noted, CUDA_SUCCESS);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    assert_int_equal(noted, CUDA_ERROR_OUT_OF_MEMORY);
    expect("graph0 empty0 destroy0");
    free(s->channel.drafts);
}

static void
graphs_that_make_no_sense_end_the_session(void **state)
{
    struct scene *s = *state;
    struct kernel k = {.k = {.function = 5, .params = 8}};
    struct hed_graph_fill f = {.to = BASE + SHARE - 8, .width = 16, .height = 1, .element = 1};
    struct hed_copy c = {.from = {.at = BASE, .pitch = 16, .slice = 16},
                         .to = {.at = 0x1000, .pitch = 16, .slice = 16},
                         .box = {16, 1, 1}};
    struct hed_graph_value v = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .at = 0x1000};

    assert_int_equal(EMPTY(s, NULL, 0), HED_EFORMAT); /* no graph was begun */
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_CHILD), HED_EFORMAT);
    assert_int_equal(STEP(s, 77), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    assert_int_equal(STEP(s, HED_GRAPH_CHILD), HED_EFORMAT); /* there is no outer graph */
    assert_int_equal(EMPTY(s, &(uint32_t){0}, 1), HED_EFORMAT);
#define NODE(type, own, size) \
    graph(s, HED_GRAPH_NODE, CU_GRAPH_NODE_TYPE_##type, NULL, 0, own, (uint32_t)(size))
    assert_int_equal(NODE(CONDITIONAL, NULL, 0), HED_EFORMAT);
    assert_int_equal(NODE(KERNEL, &k, sizeof k.k - 1), HED_EFORMAT);
    assert_int_equal(NODE(KERNEL, &k, sizeof k.k + 7), HED_EFORMAT); /* truncated parameters */
    k.k.attributes = UINT32_MAX;
    assert_int_equal(NODE(KERNEL, &k, sizeof k), HED_EFORMAT);
    k.k.attributes = 0;
    k.k.params = 4; /* not the size of the kernel's parameters */
    assert_int_equal(NODE(KERNEL, &k, sizeof k), HED_EFORMAT);
    assert_int_equal(NODE(MEMSET, &f, sizeof f), HED_EFORMAT); /* beyond the end of the share */
    f.to = BASE;
    f.height = 3; /* rows that overlap */
    assert_int_equal(NODE(MEMSET, &f, sizeof f), HED_EFORMAT);
    f.pitch = 16;
    f.element = 3;
    assert_int_equal(NODE(MEMSET, &f, sizeof f), HED_EFORMAT);
    f.element = 1;
    f.to = VARIABLE + 256 - 40; /* beyond the end of the variable */
    assert_int_equal(NODE(MEMSET, &f, sizeof f), HED_EFORMAT);
    f.to = BASE;
    f.pitch = UINT64_MAX;
    assert_int_equal(NODE(MEMSET, &f, sizeof f), HED_EFORMAT);
    assert_int_equal(NODE(MEMCPY, &c, sizeof c), HED_EFORMAT); /* memory of the worker */
    c.to.at = BASE + SHARE + 4096;                             /* between two shares */
    assert_int_equal(NODE(MEMCPY, &c, sizeof c), HED_EFORMAT);
    c.to.at = BASE;
    c.box.depth = 2;
    c.to.slice = UINT64_MAX - 15; /* more bytes than a 64-bit size can hold */
    assert_int_equal(NODE(MEMCPY, &c, sizeof c), HED_EFORMAT);
    c.to.slice = 24; /* not a multiple of the pitch */
    assert_int_equal(NODE(MEMCPY, &c, sizeof c), HED_EFORMAT);
    assert_int_equal(NODE(BATCH_MEM_OP, &v, sizeof v), HED_EFORMAT);
    expect("graph0");
    /* A handle that is not there may be one that could not be created. */
    k.k.function = 6;
    k.k.params = 8;
    assert_int_equal(NODE(KERNEL, &k, sizeof k), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    assert_int_equal(noted, CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < 16; i++)
        assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), HED_EFORMAT); /* too deep */
    for (int i = 0; i < 15; i++)
        assert_int_equal(STEP(s, HED_GRAPH_CHILD), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    free(s->channel.drafts);
}

static void
a_message_that_says_it_is_longer_than_it_is(void **state)
{
    struct scene *s = *state;
    _Alignas(16) char room[256] = {0};
    struct hed_graph_body *b = (struct hed_graph_body *)(void *)room;

    assert_int_equal(STEP(s, HED_GRAPH_BEGIN), 0);
    b->op = HED_GRAPH_NODE;
    b->type = CU_GRAPH_NODE_TYPE_EMPTY;
    b->head.size = sizeof *b + 8;
    b->after = UINT32_MAX;
    assert_int_equal(hed_do_graph(&s->channel, &b->head), HED_EFORMAT);
    b->after = 3;
    assert_int_equal(hed_do_graph(&s->channel, &b->head), HED_EFORMAT);
    b->after = 0;
    b->size = 9;
    assert_int_equal(hed_do_graph(&s->channel, &b->head), HED_EFORMAT);
    b->size = UINT32_MAX;
    assert_int_equal(hed_do_graph(&s->channel, &b->head), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE), 0);
    free(s->channel.drafts);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static int
array(struct scene *s, uint32_t op, uint64_t name, uint64_t width, uint32_t levels,
      const uint64_t *names, uint32_t there)
{
    static _Alignas(16) char room[1024];
    struct hed_array_body *b = (struct hed_array_body *)(void *)room;

    memset(room, 0, sizeof room);
    b->op = op;
    b->name = name;
    b->width = width;
    b->height = 16;
    b->format = CU_AD_FORMAT_FLOAT;
    b->channels = 1;
    b->levels = levels;
    if (there)
        memcpy(b + 1, names, there * sizeof *names);
    b->head.size = (uint32_t)(sizeof *b + there * sizeof *names);
    return hed_do_array(&s->channel, &b->head);
}

static void
arrays_are_named_and_paid_for(void **state)
{
    struct scene *s = *state;
    const uint64_t levels[] = {NAME(13, 7), NAME(13, 8)};
    uint64_t real;

    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, 16, 0, NULL, 0), 0);
    assert_int_equal(answered, CUDA_SUCCESS);
    assert_int_equal(leased, 4096); /* still the same amount */
    assert_int_equal(array(s, HED_ARRAY_CREATE, MIPMAP, 16, 2, levels, 2), 0);
    assert_int_equal(hed_name_real(s->worker.names, levels[1], &real), 0);
    assert_int_equal(array(s, HED_ARRAY_DESTROY, MIPMAP, 0, 0, NULL, 0), 0);
    assert_int_equal(hed_name_real(s->worker.names, levels[1], &real), HED_ENOTFOUND);
    assert_int_equal(array(s, HED_ARRAY_DESTROY, ARRAY, 0, 0, NULL, 0), 0);
    assert_int_equal(leased, 0);
    expect("array16 mipmap2 mipmap-destroy0 array-destroy0");
    free(s->worker.arrays);
}

static void
an_array_that_cannot_be_leaves_nothing(void **state)
{
    struct scene *s = *state;
    uint64_t real;

    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, 1 << 20, 0, NULL, 0), 0);
    assert_int_equal(answered, CUDA_ERROR_OUT_OF_MEMORY); /* more than can be leased */
    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, UINT64_MAX / 2, 0, NULL, 0), 0);
    assert_int_equal(answered, CUDA_ERROR_OUT_OF_MEMORY);
    expect("");
    next = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, 16, 0, NULL, 0), 0);
    assert_int_equal(answered, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(leased, 0);
    assert_int_equal(hed_name_real(s->worker.names, ARRAY, &real), HED_ENOTFOUND);
    free(s->worker.arrays);
}

static void
arrays_that_make_no_sense_end_the_session(void **state)
{
    struct scene *s = *state;
    const uint64_t twice[] = {NAME(13, 7), NAME(13, 7)};

    assert_int_equal(array(s, 77, ARRAY, 16, 0, NULL, 0), HED_EFORMAT);
    assert_int_equal(array(s, HED_ARRAY_DESTROY, ARRAY, 16, 0, NULL, 0), HED_EFORMAT);
    assert_int_equal(array(s, HED_ARRAY_CREATE, MIPMAP, 16, 2, twice, 1), HED_EFORMAT);
    assert_int_equal(array(s, HED_ARRAY_CREATE, MIPMAP, 16, UINT32_MAX, twice, 2), HED_EFORMAT);
    expect("");
    assert_int_equal(array(s, HED_ARRAY_CREATE, MIPMAP, 16, 2, twice, 2), HED_EFORMAT);
    assert_int_equal(leased, 0);
    expect("mipmap2 mipmap-destroy0");
    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, 16, 0, NULL, 0), 0);
    assert_int_equal(array(s, HED_ARRAY_CREATE, ARRAY, 16, 0, NULL, 0), HED_EFORMAT);
    assert_int_equal(array(s, HED_ARRAY_DESTROY, ARRAY, 0, 0, NULL, 0), 0);
    free(s->worker.arrays);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_graph_is_made_updated_and_dropped, setup, teardown),
    cmocka_unit_test_setup_teardown(a_graphs_first_failure_is_told_at_its_end, setup, teardown),
    cmocka_unit_test_setup_teardown(graphs_that_make_no_sense_end_the_session, setup, teardown),
    cmocka_unit_test_setup_teardown(a_message_that_says_it_is_longer_than_it_is, setup, teardown),
    cmocka_unit_test_setup_teardown(arrays_are_named_and_paid_for, setup, teardown),
    cmocka_unit_test_setup_teardown(an_array_that_cannot_be_leaves_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(arrays_that_make_no_sense_end_the_session, setup, teardown),
};

HED_UNIT_MAIN(tests)
