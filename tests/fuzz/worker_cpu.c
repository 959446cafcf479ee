/* The CPU GPU for worker_play.h: memory has addresses and is checked, and work is done.
 *
 * A context, a stream and an event exist before the input; the input has to make everything else.
 * What would wait for ever for a client, or for memory that nobody writes, is left out.
 */
#include "worker_play.h"

#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "gen/cuda_calls.h"
#include "remote/server/worker/memory.h"

#define LEASE (UINT64_C(256) << 20) /* bytes that an input may map */

enum { KIND_CONTEXT = 1, KIND_STREAM, KIND_EVENT };

const struct hed_layer_type *hed_plugin_type(void); /* backends/cpu/cpu.c */

static uint64_t made[KIND_EVENT + 1]; /* the backend's handles */

/* The client agrees to the first base that it is offered. */
static void
agree_on_base(struct hed_worker_channel *ch)
{
    struct hed_arena_offer o = {.head = {.size = sizeof o, .kind = HED_MSG_ARENA}};

    must(hed_worker_handle(ch, &o.head) == 0 && ch->worker->offered);
    o.base = ch->worker->offered;
    must(hed_worker_handle(ch, &o.head) == 0 && ch->worker->memory);
}

void
play_backend_start(struct hed_worker_channel *ch)
{
    static struct hed_config config; /* large */
    struct hed_worker *w = ch->worker;
    struct hed_why why = {""};

    hed_config_init(&config);
    must(hed_config_set(&config, "gpu", "cpu", &why) == 0 &&
         hed_config_set(&config, "cpu_codegen", "baseline", &why) == 0 &&
         hed_config_set(&config, "cpu_threads", "1", &why) == 0 &&
         hed_config_set(&config, "kernel_time", "2", &why) == 0 &&
         hed_config_set(&config, "cache_size", "0", &why) == 0);
    w->backend = HED_BACKEND_CPU;
    must(hed_layer_create(hed_plugin_type(), NULL, &config, &w->top, &why) == 0);
    must(hed_worker_do(w, cuInit, 0) == CUDA_SUCCESS);
    hed_arena_init_sizes(w);
    agree_on_base(ch);
}

/* The handle stays as it is for as long as the object lives. */
static void
keep_objects(struct hed_worker *w)
{
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;

    must(hed_worker_do(w, cuDevicePrimaryCtxRetain, &context, 0) == CUDA_SUCCESS);
    must(hed_worker_do(w, cuCtxSetCurrent, context) == CUDA_SUCCESS);
    /* The input may have failed the context for good. */
    if (hed_worker_do(w, cuCtxSynchronize) != CUDA_SUCCESS) {
        (void)hed_worker_do(w, cuDevicePrimaryCtxReset_v2, 0);
        must(hed_worker_do(w, cuDevicePrimaryCtxRetain, &context, 0) == CUDA_SUCCESS);
        must(hed_worker_do(w, cuCtxSetCurrent, context) == CUDA_SUCCESS);
    }
    made[KIND_CONTEXT] = (uintptr_t)context;
    stream = (CUstream)(uintptr_t)made[KIND_STREAM];
    if (!stream || hed_worker_do(w, cuStreamSynchronize, .hStream = stream) != CUDA_SUCCESS)
        must(hed_worker_do(w, cuStreamCreate, &stream, 0) == CUDA_SUCCESS);
    made[KIND_STREAM] = (uintptr_t)stream;
    event = (CUevent)(uintptr_t)made[KIND_EVENT];
    if (!event || hed_worker_do(w, cuEventSynchronize, .hEvent = event) != CUDA_SUCCESS)
        must(hed_worker_do(w, cuEventCreate, &event, 0) == CUDA_SUCCESS);
    made[KIND_EVENT] = (uintptr_t)event;
}

void
play_backend_names(struct hed_worker *w)
{
    keep_objects(w);
    for (unsigned kind = KIND_CONTEXT; kind <= KIND_EVENT; kind++) {
        (void)hed_name_unbind(w->names, play_name(kind), NULL);
        must(hed_name_bind(w->names, play_name(kind), made[kind]) == 0);
    }
    w->memory->left[0] = LEASE;
}

bool
play_backend_takes(const struct hed_msg *m)
{
    const struct hed_graph_body *g = (const struct hed_graph_body *)m;

    if (m->kind == HED_MSG_CALL)
        return m->call != HED_cuStreamWaitValue32_v2 && m->call != HED_cuStreamWaitValue64_v2 &&
               m->call != HED_cuStreamBatchMemOp_v2;
    if (m->kind == HED_MSG_GRAPH && m->size >= sizeof *g)
        return g->type != CU_GRAPH_NODE_TYPE_HOST && g->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP &&
               g->type != CU_GRAPH_NODE_TYPE_CONDITIONAL;
    return m->kind != HED_MSG_HOST && m->kind != HED_MSG_ARENA;
}
