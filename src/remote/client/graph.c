/* Executable graphs of a worker, as messages: sent node by node, and launched by name. See wire.h.
 *
 * A body is checked first. If it has something that cannot be sent (memory that only this process
 * has, functions of the program), the result is NOT_SUPPORTED before anything is sent, and exec.c
 * puts the nodes on the stream one by one instead.
 */
#include <string.h>

#include "driver/driver.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

#define DEPTH_MAX 16               /* graphs inside graphs; the worker has the same limit */
#define LARGEST (HED_MSG_MAX - 64) /* bytes in one of these messages */

_Static_assert(sizeof(CUlaunchAttribute) == 72, "as wire.h has it");

/* The graph inside a node; NULL if the node has work. */
static const struct hed_graph_exec *
inner_graph(const struct hed_exec_node *n)
{
    if (n->child)
        return n->child;
    return n->work && n->work->kind == HED_WORK_GRAPH ? n->work->graph : NULL;
}

/* Nodes that only order others, including those whose memory the client handles. */
static bool
is_empty(const struct hed_exec_node *n)
{
    if (n->condition.count)
        return false;
    return n->disabled || !n->work || n->work->kind == HED_WORK_NONE ||
           (n->work->kind == HED_WORK_COPY && n->work->copy.box.width == 0) ||
           (n->work->kind == HED_WORK_FILL &&
            (n->work->fill.width == 0 || n->work->fill.height == 0));
}

/* ---- can the worker run it as one graph? ----------------------------------------------------- */

/* Is it an attribute that a node has? The others allow overlap, which edges do not. */
static bool
is_told(const CUlaunchAttribute *a)
{
    return a->id != CU_LAUNCH_ATTRIBUTE_IGNORE &&
           a->id != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
           a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
           a->id != CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

static bool
can_tell_kernel(const struct hed_launch *k)
{
    for (unsigned i = 0; i < k->attribute_count; i++)
        if (k->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            k->attributes[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
            k->attributes[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
            return false;
    return k->function != NULL;
}

static bool
can_tell_copy(struct hed_driver *d, const struct hed_copy *c)
{
    return !hed_remote_is_private(d->machine_state, &c->from, &c->box) &&
           !hed_remote_is_private(d->machine_state, &c->to, &c->box);
}

static bool
is_known_address(const struct hed_remote *r, uint64_t at)
{
    return at >= r->base && at - r->base < r->size;
}

static bool
can_tell_fill(struct hed_driver *d, const struct hed_fill *f)
{
    return !hed_remote_fill_is_private(d->machine_state, d, f);
}

static bool
can_tell_values(const struct hed_remote *r, const struct hed_memops *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if ((m->ops[i].operation != CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
             m->ops[i].operation != CU_STREAM_MEM_OP_WAIT_VALUE_64 &&
             m->ops[i].operation != CU_STREAM_MEM_OP_WRITE_VALUE_32 &&
             m->ops[i].operation != CU_STREAM_MEM_OP_WRITE_VALUE_64) ||
            !is_known_address(r, m->ops[i].waitValue.address) ||
            !is_known_address(r, m->ops[i].waitValue.address + 7))
            return false;
    return true;
}

static bool
can_tell_work(struct hed_remote *r, const struct hed_work *w)
{
    struct hed_driver *d = w->ctx->device->driver;

    switch (w->kind) {
    case HED_WORK_KERNEL:
        return can_tell_kernel(&w->kernel);
    case HED_WORK_COPY:
        return can_tell_copy(d, &w->copy);
    case HED_WORK_FILL:
        return can_tell_fill(d, &w->fill);
    case HED_WORK_MEMOP:
        return can_tell_values(r, &w->memops);
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        return !hed_remote_event_is_shared(w->event.event);
    default:
        return false;
    }
}

/* How many bytes describe a node. */
static size_t
node_size(const struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_KERNEL:
        return sizeof(struct hed_graph_kernel) +
               (w->kernel.attribute_count + 1) * sizeof(CUlaunchAttribute) + w->kernel.param_bytes;
    case HED_WORK_MEMOP:
        return w->memops.count * sizeof(struct hed_graph_value);
    default:
        return sizeof(struct hed_copy); /* the largest of the others */
    }
}

static bool
can_tell(struct hed_remote *r, const struct hed_graph_exec *g, unsigned depth)
{
    /* Conditional handles are made for the outermost graph. */
    if (depth == DEPTH_MAX || (depth > 0 && g->root))
        return false;
    for (size_t i = 0; i < g->count; i++) {
        const struct hed_exec_node *n = &g->nodes[i];
        size_t size = sizeof(struct hed_graph_body) + n->in_count * sizeof(uint32_t) + 8;

        if (n->condition.count) {
            size += sizeof(struct hed_graph_choice);
            for (uint32_t k = 0; k < n->condition.count; k++)
                if (!can_tell(r, n->branches[k], depth + 1))
                    return false;
        } else if (!n->disabled && inner_graph(n)) {
            if (!can_tell(r, inner_graph(n), depth + 1))
                return false;
        } else if (!is_empty(n)) {
            if (!can_tell_work(r, n->work))
                return false;
            size += node_size(n->work);
        }
        if (size > LARGEST)
            return false;
    }
    return true;
}

/* ---- building the worker's copy -------------------------------------------------------------- */

/* Writes the description of a node to `to`, which has node_size() zeroed bytes. Returns how many
 * bytes it used. */
static uint32_t
put_kernel_node(const struct hed_launch *k, struct hed_graph_kernel *to)
{
    CUlaunchAttribute *a = (CUlaunchAttribute *)(void *)(to + 1);
    bool cooperative = false;

    to->function = k->function->object.handle;
    memcpy(to->grid, k->grid, sizeof to->grid);
    memcpy(to->block, k->block, sizeof to->block);
    to->dynamic_shared = k->dynamic_shared;
    to->params = k->param_bytes;
    for (unsigned i = 0; i < k->attribute_count; i++) {
        if (!is_told(&k->attributes[i]))
            continue;
        cooperative |= k->attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        a[to->attributes++] = k->attributes[i];
    }
    if (k->cooperative && !cooperative)
        a[to->attributes++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    if (to->params)
        memcpy(a + to->attributes, k->params, to->params);
    return (uint32_t)(sizeof *to + to->attributes * sizeof *a + to->params);
}

static uint32_t
put_values(const struct hed_memops *m, struct hed_graph_value *to)
{
    for (unsigned i = 0; i < m->count; i++) {
        const CUstreamBatchMemOpParams_v1 *op = &m->ops[i];
        const bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                          op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;

        /* Waits and writes have the same fields. */
        to[i] =
            (struct hed_graph_value){.operation = (uint32_t)op->operation,
                                     .flags = op->waitValue.flags,
                                     .at = op->waitValue.address,
                                     .value = wide ? op->waitValue.value64 : op->waitValue.value};
    }
    return (uint32_t)(m->count * sizeof *to);
}

static uint32_t
put_own(const struct hed_work *w, void *to, uint32_t *type)
{
    switch (w->kind) {
    case HED_WORK_KERNEL:
        *type = CU_GRAPH_NODE_TYPE_KERNEL;
        return put_kernel_node(&w->kernel, to);
    case HED_WORK_COPY:
        *type = CU_GRAPH_NODE_TYPE_MEMCPY;
        *(struct hed_copy *)to = w->copy;
        return sizeof w->copy;
    case HED_WORK_FILL:
        *type = CU_GRAPH_NODE_TYPE_MEMSET;
        *(struct hed_graph_fill *)to = (struct hed_graph_fill){.to = w->fill.to,
                                                               .pitch = w->fill.pitch,
                                                               .width = w->fill.width,
                                                               .height = w->fill.height,
                                                               .value = w->fill.value,
                                                               .element = w->fill.size};
        return sizeof(struct hed_graph_fill);
    case HED_WORK_MEMOP:
        *type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
        return put_values(&w->memops, to);
    default:
        *type = w->kind == HED_WORK_EVENT_RECORD ? CU_GRAPH_NODE_TYPE_EVENT_RECORD
                                                 : CU_GRAPH_NODE_TYPE_WAIT_EVENT;
        ((struct hed_graph_event *)to)->event = w->event.event->object.handle;
        return sizeof(struct hed_graph_event);
    }
}

static uint32_t
put_choice(const struct hed_condition *c, void *to, uint32_t *type)
{
    *type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    *(struct hed_graph_choice *)to = (struct hed_graph_choice){
        .handle = c->handle, .type = (uint32_t)c->type, .branches = c->count};
    return sizeof(struct hed_graph_choice);
}

/* A step that is not a node; NULL if the session is lost. */
static struct hed_graph_body *
graph_step(struct hed_remote *r, uint64_t context, enum hed_graph_op op, size_t more,
           struct hed_remote_channel **channel)
{
    struct hed_graph_body *b =
        hed_remote_begin(r, HED_MSG_GRAPH, (uint32_t)(sizeof *b + more), context, 0, 0, channel);

    if (b)
        b->op = (uint32_t)op;
    return b;
}

/* Begins a graph. `graph` is its name if the worker keeps it, else 0. */
static bool
send_graph_begin(struct hed_remote *r, uint64_t context, uint64_t graph)
{
    struct hed_remote_channel *channel;
    struct hed_graph_body *b = graph_step(r, context, HED_GRAPH_BEGIN, 0, &channel);

    if (b)
        b->exec = graph;
    return b && hed_remote_end(channel, &b->head, sizeof *b) == 0;
}

/* Begins a branch of the last node, or ends it. */
static bool
tell_branch(struct hed_remote *r, uint64_t context, enum hed_graph_op op, uint32_t number)
{
    struct hed_remote_channel *channel;
    struct hed_graph_body *b = graph_step(r, context, op, 0, &channel);

    if (b)
        b->flags = number;
    return b && hed_remote_end(channel, &b->head, sizeof *b) == 0;
}

static bool
tell_node(struct hed_remote *r, uint64_t context, const struct hed_exec_node *n, bool child)
{
    const size_t in = (n->in_count * sizeof(uint32_t) + 7) / 8 * 8;
    const bool choice = n->condition.count > 0;
    const bool empty = child || choice || is_empty(n);
    const uint64_t where = empty ? context : n->work->ctx->object.handle;
    const size_t own = choice ? sizeof(struct hed_graph_choice) : empty ? 0 : node_size(n->work);
    struct hed_remote_channel *channel;

    if (!empty && (n->work->kind == HED_WORK_EVENT_RECORD || n->work->kind == HED_WORK_EVENT_WAIT))
        hed_remote_need_event(r, n->work->event.event);

    struct hed_graph_body *b =
        graph_step(r, where, child ? HED_GRAPH_CHILD : HED_GRAPH_NODE, in + own, &channel);

    if (!b)
        return false;
    b->type = CU_GRAPH_NODE_TYPE_EMPTY;
    b->after = (uint32_t)n->in_count;
    for (size_t i = 0; i < n->in_count; i++)
        ((uint32_t *)(void *)(b + 1))[i] = (uint32_t)n->in[i];
    if (choice)
        b->size = put_choice(&n->condition, (char *)(b + 1) + in, &b->type);
    else if (!empty)
        b->size = put_own(n->work, (char *)(b + 1) + in, &b->type);
    return hed_remote_end(channel, &b->head, (uint32_t)(sizeof *b + in + b->size)) == 0;
}

static bool
send_nodes(struct hed_remote *r, uint64_t context, const struct hed_graph_exec *g)
{
    bool good = true;

    for (size_t i = 0; i < g->count && good; i++) {
        const struct hed_exec_node *n = &g->nodes[i];
        const bool child = !n->disabled && inner_graph(n);

        if (child)
            good = send_graph_begin(r, context, 0) && send_nodes(r, context, inner_graph(n));
        good = good && tell_node(r, context, n, child);
        for (uint32_t k = 0; k < n->condition.count && good; k++)
            good = tell_branch(r, context, HED_GRAPH_BRANCH, k) &&
                   send_nodes(r, context, n->branches[k]) &&
                   tell_branch(r, context, HED_GRAPH_END, k);
    }
    return good;
}

/* The first time the worker may refuse for reasons of its own, so this waits for the answer.
 * Updates do not wait. */
CUresult
hed_remote_mirror_exec(void *m, struct hed_context *c, struct hed_exec *e,
                       struct hed_graph_exec *body, bool first)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_remote_channel *channel;
    struct hed_graph_body *b;

    if (!can_tell(r, body, 0))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!send_graph_begin(r, c->object.handle, body->root) ||
        !send_nodes(r, c->object.handle, body) ||
        !(b = graph_step(r, c->object.handle, HED_GRAPH_MAKE, 0, &channel)))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    b->exec = e->object.handle;
    b->flags = e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (first)
        b->head.flags |= HED_MSG_WANTS_ANSWER;
    if (hed_remote_end(channel, &b->head, sizeof *b) != 0)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (!first)
        return CUDA_SUCCESS;

    const struct hed_answer *a = hed_remote_answer(channel);

    return a ? (CUresult)a->result : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/* Tells the worker that something with this handle is gone. */
static void
send_graph_gone(void *m, enum hed_graph_op op, uint64_t handle)
{
    struct hed_remote_channel *channel;
    struct hed_graph_body *b = graph_step(hed_remote_of(m), 0, op, 0, &channel);

    if (!b)
        return;
    b->exec = handle;
    (void)hed_remote_end(channel, &b->head, sizeof *b);
}

void
hed_remote_drop_exec(void *m, uint64_t handle)
{
    send_graph_gone(m, HED_GRAPH_DROP, handle);
}

/* ---- conditional handles --------------------------------------------------------------------- */

CUresult
hed_remote_graph_condition(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                           unsigned flags, uint64_t *out)
{
    struct hed_remote_channel *channel;
    struct hed_graph_body *b = graph_step(hed_remote_of(m), c->object.handle, HED_GRAPH_CONDITION,
                                          sizeof(struct hed_graph_condition), &channel);
    const struct hed_graph_condition_answer *a;

    if (!b)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    b->exec = graph;
    b->size = sizeof(struct hed_graph_condition);
    *(struct hed_graph_condition *)(b + 1) =
        (struct hed_graph_condition){.value = value, .flags = flags};
    b->head.flags |= HED_MSG_WANTS_ANSWER;
    if (hed_remote_end(channel, &b->head, (uint32_t)sizeof *b + b->size) != 0)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    a = (const struct hed_graph_condition_answer *)hed_remote_answer(channel);
    if (!a)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (a->head.result == CUDA_SUCCESS && a->head.head.size >= sizeof *a)
        *out = a->handle;
    return a->head.result == CUDA_SUCCESS && a->head.head.size < sizeof *a
               ? CUDA_ERROR_DEVICE_UNAVAILABLE
               : (CUresult)a->head.result;
}

void
hed_remote_graph_conditions_gone(void *m, uint64_t graph)
{
    send_graph_gone(m, HED_GRAPH_FORGET, graph);
}

CUresult
hed_remote_put_graph(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    const uint64_t stream = hed_stream_name(s);

    hed_remote_sync_out(r);
    hed_remote_send(r, s->ctx->object.handle, stream, w->number, cuGraphLaunch,
                    .hGraph = (CUgraphExec)(uintptr_t)w->exec,
                    .hStream = (CUstream)(uintptr_t)stream);
    return CUDA_SUCCESS;
}
