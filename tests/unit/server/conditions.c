/* A worker's conditional handles and nodes: the graph that is kept for them, and what the worker
 * does not believe of a client. The backend here writes down what it is asked for, and the rest of
 * the worker is replaced by stand-ins. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/graph.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/worker.h"

#define NAME(kind, n) ((uint64_t)(kind) << 56 | UINT64_C(1) << 32 | (n))
#define GRAPH NAME(8, 1)
#define EXEC NAME(10, 1)

static char words[1024];
static uintptr_t handles; /* the last handle that the backend gave out */
static CUresult next;
static CUresult next_handle; /* the result of creating a handle */
static int answered;
static uint64_t answered_handle;
static CUresult noted;

static void
hear(const char *what, const void *graph)
{
    const size_t n = strlen(words);

    (void)snprintf(words + n, sizeof words - n, "%s%s%u", n ? " " : "", what,
                   (unsigned)(uintptr_t)graph);
}

static void
expect(const char *what)
{
    assert_string_equal(words, what);
    words[0] = '\0';
}

/* ---- the rest of a worker -------------------------------------------------------------------- */

int
hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                  const void *body, size_t n)
{
    answered = result;
    return 0;
}

int
hed_worker_answer_with(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                       void *answer, size_t size, uint64_t bulk)
{
    assert_int_equal(size, sizeof(struct hed_graph_condition_answer));
    answered = result;
    answered_handle = ((struct hed_graph_condition_answer *)answer)->handle;
    return 0;
}

void
hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error)
{
    noted = error;
}

struct hed_worker_function *
hed_worker_function(struct hed_worker_code *c, uint64_t name)
{
    return NULL;
}

bool
hed_worker_variable_covers(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return false;
}

static uint64_t mapped; /* bytes at the beginning of the arena */

bool
hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return at - w->base + size <= mapped;
}

/* ---- a backend: graphs are small numbers ----------------------------------------------------- */

#define CALL(call) static CUresult fake_##call(struct hed_layer *self, struct hed_##call *a)
#define NEW(out) (*(out) = (void *)++handles)

CALL(cuGraphCreate)
{
    NEW(a->phGraph);
    hear("graph", *a->phGraph);
    return next;
}

CALL(cuGraphDestroy)
{
    hear("destroy", a->hGraph);
    return CUDA_SUCCESS;
}

CALL(cuGraphAddEmptyNode)
{
    hear("empty", a->hGraph);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddMemsetNode)
{
    hear("memset", a->hGraph);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddMemcpyNode)
{
    hear("memcpy", a->hGraph);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphAddBatchMemOpNode)
{
    hear("values", a->hGraph);
    NEW(a->phGraphNode);
    return next;
}

CALL(cuGraphDestroyNode)
{
    hear("remove", a->hNode);
    return next;
}

CALL(cuGraphConditionalHandleCreate)
{
    hear("handle", a->hGraph);
    *a->pHandle_out = 0xc000 + a->defaultLaunchValue;
    return next_handle;
}

CALL(cuGraphAddNode_v2)
{
    static CUgraph branches[8];

    hear("choice", a->hGraph);
    NEW(a->phGraphNode);
    for (unsigned i = 0; i < a->nodeParams->conditional.size; i++)
        branches[i] = (CUgraph)(uintptr_t)(100 + 10 * handles + i);
    a->nodeParams->conditional.phGraph_out = branches;
    return next;
}

CALL(cuGraphInstantiateWithFlags)
{
    hear("exec", a->hGraph);
    NEW(a->phGraphExec);
    return next;
}

CALL(cuGraphExecUpdate_v2)
{
    hear("update", a->hGraph);
    return next;
}

CALL(cuCtxGetCurrent)
{
    *a->pctx = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops ops = {
    .cuGraphCreate = fake_cuGraphCreate,
    .cuGraphDestroy = fake_cuGraphDestroy,
    .cuGraphAddEmptyNode = fake_cuGraphAddEmptyNode,
    .cuGraphAddMemsetNode = fake_cuGraphAddMemsetNode,
    .cuGraphAddMemcpyNode = fake_cuGraphAddMemcpyNode,
    .cuGraphAddBatchMemOpNode = fake_cuGraphAddBatchMemOpNode,
    .cuGraphDestroyNode = fake_cuGraphDestroyNode,
    .cuGraphConditionalHandleCreate = fake_cuGraphConditionalHandleCreate,
    .cuGraphAddNode_v2 = fake_cuGraphAddNode_v2,
    .cuGraphInstantiateWithFlags = fake_cuGraphInstantiateWithFlags,
    .cuGraphExecUpdate_v2 = fake_cuGraphExecUpdate_v2,
    .cuCtxGetCurrent = fake_cuCtxGetCurrent,
};

struct scene {
    struct hed_layer layer;
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
    s->worker = (struct hed_worker){.top = &s->layer, .names = held[held_count++]};
    s->channel.worker = &s->worker;
    hed_arena_init(&s->channel.arena, 1 << 20);
    words[0] = '\0';
    handles = 0;
    next = next_handle = noted = CUDA_SUCCESS;
    answered = -1;
    *state = s;
    return 0;
}

static int
teardown(void **state)
{
    struct scene *s = *state;

    hed_arena_fini(&s->channel.arena);
    free(s->channel.drafts);
    free(s);
    return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int
tell(struct scene *s, enum hed_graph_op op, uint64_t name, uint64_t flags, uint32_t type,
     const void *own, uint32_t size)
{
    static _Alignas(16) char room[4096];
    struct hed_graph_body *b = (struct hed_graph_body *)(void *)room;

    memset(room, 0, sizeof room);
    b->op = op;
    b->exec = name;
    b->flags = flags;
    b->type = type;
    b->size = size;
    if (size)
        memcpy(b + 1, own, size);
    b->head.size = (uint32_t)sizeof *b + size;
    if (op == HED_GRAPH_CONDITION)
        b->head.flags = HED_MSG_WANTS_ANSWER;
    hed_arena_reset(&s->channel.arena);
    return hed_do_graph(&s->channel, &b->head);
}

static int
condition(struct scene *s, uint64_t name, uint32_t value)
{
    const struct hed_graph_condition c = {.value = value};

    return tell(s, HED_GRAPH_CONDITION, name, 0, 0, &c, sizeof c);
}

static int
choice(struct scene *s, uint64_t handle, uint32_t branches)
{
    const struct hed_graph_choice c = {.handle = handle, .branches = branches};

    return tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_CONDITIONAL, &c, sizeof c);
}

#define STEP(s, op, name) tell(s, op, name, 0, 0, NULL, 0)
#define BRANCH(s, n) tell(s, HED_GRAPH_BRANCH, 0, n, 0, NULL, 0)
#define EMPTY(s) tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0)

static void
a_graph_is_kept_for_its_handles(void **state)
{
    struct scene *s = *state;

    assert_int_equal(condition(s, GRAPH, 7), 0);
    assert_int_equal(answered, CUDA_SUCCESS);
    assert_int_equal(answered_handle, 0xc007);
    assert_int_equal(condition(s, GRAPH, 8), 0);
    expect("graph1 handle1 handle1");
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN, GRAPH), 0);
    assert_int_equal(EMPTY(s), 0);
    assert_int_equal(choice(s, 0xc007, 2), 0);
    assert_int_equal(BRANCH(s, 1), 0);
    assert_int_equal(EMPTY(s), 0);
    assert_int_equal(choice(s, 0xc008, 1), 0); /* inside the branch */
    assert_int_equal(BRANCH(s, 0), 0);
    assert_int_equal(EMPTY(s), 0);
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), 0);
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), 0);
    assert_int_equal(EMPTY(s), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    assert_int_equal(noted, CUDA_SUCCESS);
    /* The branches belong to nodes, and nothing is destroyed. */
    expect("empty1 choice1 empty131 choice131 empty150 empty1 exec1");
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0);
    expect("destroy1");
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0); /* once more does no harm */
    expect("");
}

static void
told_again_it_loses_its_nodes_first(void **state)
{
    struct scene *s = *state;

    assert_int_equal(condition(s, GRAPH, 1), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(STEP(s, HED_GRAPH_BEGIN, GRAPH), 0);
        assert_int_equal(EMPTY(s), 0);
        assert_int_equal(choice(s, 0xc001, 1), 0);
        assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    }
    expect("graph1 handle1 empty1 choice1 exec1 remove3 remove2 empty1 choice1 update1");
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0);
}

static void
a_failure_is_told_at_the_end(void **state)
{
    struct scene *s = *state;

    next_handle = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(condition(s, GRAPH, 1), 0);
    assert_int_equal(answered, CUDA_ERROR_NOT_SUPPORTED);
    next_handle = CUDA_SUCCESS;
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN, GRAPH), 0); /* there is no graph of that name */
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    assert_int_equal(noted, CUDA_ERROR_INVALID_HANDLE);

    assert_int_equal(condition(s, GRAPH, 1), 0);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN, GRAPH), 0);
    next = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(choice(s, 0xc001, 1), 0);
    next = CUDA_SUCCESS;
    assert_int_equal(BRANCH(s, 0), 0); /* what follows is counted and not done */
    assert_int_equal(EMPTY(s), 0);
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    assert_int_equal(noted, CUDA_ERROR_INVALID_VALUE);
    expect("graph1 handle1 destroy1 graph2 handle2 choice2");
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0);
}

/* NVIDIA's driver would take it for memory of this process, and crash when the graph is
 * launched. */
static void
memory_of_nodes_must_be_there(void **state)
{
    struct scene *s = *state;
    const struct hed_graph_fill fill = {
        .to = 0x1000, .pitch = 64, .width = 16, .height = 1, .element = 4};
    const struct hed_copy copy = {.from = {.at = 0x1000},
                                  .to = {.at = 0x1040},
                                  .box = {.width = 64, .height = 1, .depth = 1}};

    const struct hed_graph_value word = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                         .at = 0x1008};

    s->worker.base = 0x1000;
    s->worker.stride = s->worker.usable = 0x1000;
    s->worker.device_shares = 1;
    for (mapped = 0; mapped <= 128; mapped += 64) {
        noted = CUDA_SUCCESS;
        assert_int_equal(STEP(s, HED_GRAPH_BEGIN, 0), 0);
        assert_int_equal(
            tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_MEMSET, &fill, sizeof fill), 0);
        assert_int_equal(
            tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_MEMCPY, &copy, sizeof copy), 0);
        assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
        assert_int_equal(noted != CUDA_SUCCESS, mapped < 128);
    }
    expect("graph1 destroy1 graph2 memset2 destroy2 graph4 memset4 memcpy4 exec4 destroy4");

    /* A value of 32 bits needs no more than its own bytes. */
    for (mapped = 8; mapped <= 16; mapped += 4) {
        noted = CUDA_SUCCESS;
        assert_int_equal(STEP(s, HED_GRAPH_BEGIN, 0), 0);
        assert_int_equal(
            tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &word, sizeof word), 0);
        assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
        assert_int_equal(noted != CUDA_SUCCESS, mapped < 12);
    }
    words[0] = 0;
}

static void
what_makes_no_sense_ends_the_session(void **state)
{
    struct scene *s = *state;
    const struct hed_graph_choice c = {.handle = 0xc001, .branches = 1};

    assert_int_equal(condition(s, 0, 1), HED_EFORMAT);
    assert_int_equal(tell(s, HED_GRAPH_CONDITION, GRAPH, 0, 0, NULL, 0), HED_EFORMAT);
    assert_int_equal(condition(s, EXEC, 1), 0); /* a name of another kind */
    assert_int_equal(answered, CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(condition(s, GRAPH, 1), 0);
    assert_int_equal(BRANCH(s, 0), HED_EFORMAT); /* no graph was begun */
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN, GRAPH), 0);
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), HED_EFORMAT); /* it is lent */
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), HED_EFORMAT);        /* there is no branch to end */
    assert_int_equal(BRANCH(s, 0), HED_EFORMAT);                     /* there is no such node */
    assert_int_equal(choice(s, 0xc002, 1), HED_EFORMAT);             /* no such handle */
    assert_int_equal(choice(s, 0xc001, 0), HED_EFORMAT);
    assert_int_equal(choice(s, 0xc001, UINT32_MAX), HED_EFORMAT);
    assert_int_equal(
        tell(s, HED_GRAPH_NODE, 0, 0, CU_GRAPH_NODE_TYPE_CONDITIONAL, &c, sizeof c - 1),
        HED_EFORMAT);
    assert_int_equal(choice(s, 0xc001, 1), 0);
    assert_int_equal(BRANCH(s, 1), HED_EFORMAT);
    assert_int_equal(BRANCH(s, 0), 0);
    assert_int_equal(STEP(s, HED_GRAPH_CHILD, 0), HED_EFORMAT); /* a branch is not a child */
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_END, 0), 0);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0);
}

static void
a_handle_is_its_graphs_own(void **state)
{
    struct scene *s = *state;

    assert_int_equal(condition(s, GRAPH, 1), 0);
    assert_int_equal(STEP(s, HED_GRAPH_BEGIN, 0), 0); /* another graph, which is not kept */
    assert_int_equal(choice(s, 0xc001, 1), HED_EFORMAT);
    assert_int_equal(STEP(s, HED_GRAPH_MAKE, EXEC), 0);
    assert_int_equal(STEP(s, HED_GRAPH_FORGET, GRAPH), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_graph_is_kept_for_its_handles, setup, teardown),
    cmocka_unit_test_setup_teardown(told_again_it_loses_its_nodes_first, setup, teardown),
    cmocka_unit_test_setup_teardown(a_failure_is_told_at_the_end, setup, teardown),
    cmocka_unit_test_setup_teardown(memory_of_nodes_must_be_there, setup, teardown),
    cmocka_unit_test_setup_teardown(what_makes_no_sense_ends_the_session, setup, teardown),
    cmocka_unit_test_setup_teardown(a_handle_is_its_graphs_own, setup, teardown),
};

HED_UNIT_MAIN(tests)
