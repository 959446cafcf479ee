/* A graph as a picture: cuGraphDebugDotPrint writes a file for graphviz. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "driver/graph/node.h"
#include "driver/module/module.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

#define DOT_MAX ((size_t)256 << 20) /* bytes in a picture */
#define ALL_FLAGS 0xffffu

static const char *const type_names[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = "KERNEL",
    [CU_GRAPH_NODE_TYPE_MEMCPY] = "MEMCPY",
    [CU_GRAPH_NODE_TYPE_MEMSET] = "MEMSET",
    [CU_GRAPH_NODE_TYPE_HOST] = "HOST",
    [CU_GRAPH_NODE_TYPE_GRAPH] = "GRAPH",
    [CU_GRAPH_NODE_TYPE_EMPTY] = "EMPTY",
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "WAIT_EVENT",
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "EVENT_RECORD",
    [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = "EXT_SEMAS_SIGNAL",
    [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = "EXT_SEMAS_WAIT",
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "MEM_ALLOC",
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = "MEM_FREE",
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "BATCH_MEM_OP",
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "CONDITIONAL",
};

/* The flag that asks for the parameters of a kind of node. */
static const unsigned detail_flags[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEMCPY] = CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEMSET] = CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_HOST] = CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS,
};

/* "CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE: Output all debug data as if every debug flag is enabled"
 * (cuda.h) */
static bool
dot_shows(unsigned flags, unsigned flag)
{
    return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
}

static void
put_launch(struct hed_buf *b, const struct hed_launch *l, unsigned flags)
{
    hed_buf_addf(b, "\\n%s", hed_function_kernel(l->function)->name);
    if (dot_shows(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        hed_buf_addf(b, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>\\n%u bytes of parameters", l->grid[0],
                     l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                     l->dynamic_shared, l->param_bytes);
    if (!dot_shows(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
        return;
    hed_buf_addf(b, "\\ncooperative: %d\\ncluster: (%u,%u,%u)", l->cooperative, l->cluster[0],
                 l->cluster[1], l->cluster[2]);
    for (unsigned i = 0; i < l->attribute_count; i++)
        hed_buf_addf(b, "\\nattribute %d", (int)l->attributes[i].id);
}

/* The parameters of a node that has work and is no kernel. */
static void
dot_work(struct hed_buf *b, CUgraphNodeType type, const struct hed_work *w)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        hed_buf_addf(b, "\\n0x%llx -> 0x%llx\\n%zu x %zu x %zu bytes",
                     (unsigned long long)w->copy.from.at, (unsigned long long)w->copy.to.at,
                     (size_t)w->copy.box.width, (size_t)w->copy.box.height,
                     (size_t)w->copy.box.depth);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        hed_buf_addf(b, "\\n0x%llx = %u\\n%zu x %zu of %u bytes", (unsigned long long)w->fill.to,
                     w->fill.value, w->fill.width, w->fill.height, w->fill.size);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        hed_buf_addf(b, "\\nfunction 0x%llx\\ndata 0x%llx",
                     (unsigned long long)(uintptr_t)w->host.fn,
                     (unsigned long long)(uintptr_t)w->host.data);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        hed_buf_addf(b, "\\nevent 0x%llx", (unsigned long long)w->event.event->object.handle);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        hed_buf_addf(b, "\\n%u operations", w->memops.count);
        break;
    default:
        break;
    }
}

static void
put_details(struct hed_buf *b, const struct hed_node *n, unsigned flags)
{
    if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && n->work)
        put_launch(b, &n->work->kernel, flags);
    else if (!dot_shows(flags, detail_flags[n->type]))
        return;
    else if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->memory)
        hed_buf_addf(b, "\\n0x%llx\\n%llu bytes", (unsigned long long)n->memory->at,
                     (unsigned long long)n->memory->size);
    else if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        hed_buf_addf(b, "\\n0x%llx", (unsigned long long)n->freed);
    else if (n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        hed_buf_addf(b, "\\nhandle 0x%llx\\n%u branches", (unsigned long long)n->condition.handle,
                     n->condition.count);
    else if (n->work)
        dot_work(b, n->type, n->work);
}

/* Writes the nodes and edges of a graph; child graphs become boxes inside it. The lock is held. */
static void
put_graph_locked(struct hed_buf *b, const struct hed_graph *g, unsigned flags)
{
    hed_buf_addf(b, "subgraph cluster_%llx {\nlabel=\"graph_%llx\"\n",
                 (unsigned long long)g->object.handle, (unsigned long long)g->object.handle);
    for (const struct hed_node *n = g->first; n; n = n->next) {
        hed_buf_addf(b, "\"n%llx\" [shape=box label=\"%s", (unsigned long long)n->object.handle,
                     type_names[n->type]);
        if (dot_shows(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
            hed_buf_addf(b, "\\n0x%llx", (unsigned long long)n->object.handle);
        if (dot_shows(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO))
            hed_buf_addf(b, "\\n%zu in, %zu out", n->in.count, n->out.count);
        put_details(b, n, flags);
        hed_buf_addf(b, "\"]\n");
        if (n->child)
            put_graph_locked(b, n->child, flags);
    }
    hed_buf_addf(b, "}\n");
    for (const struct hed_node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->out.count; i++)
            hed_buf_addf(b, "\"n%llx\" -> \"n%llx\"\n", (unsigned long long)n->object.handle,
                         (unsigned long long)n->out.at[i].node->object.handle);
}

static CUresult
write_dot_file(const char *path, const struct hed_buf *b)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    size_t done = 0;

    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    while (done < b->size) {
        const ssize_t n = write(fd, (const char *)b->data + done, b->size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return close(fd) == 0 && done == b->size ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult
soft_cuGraphDebugDotPrint(struct hed_layer *self, struct hed_cuGraphDebugDotPrint *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->hGraph);
    struct hed_buf b;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!g)
        return r;
    if (a->path && !(a->flags & ~ALL_FLAGS)) {
        hed_buf_init(&b, DOT_MAX);
        hed_buf_addf(&b, "digraph dot {\n");
        hed_lock(&hed_graphs_lock);
        put_graph_locked(&b, g, a->flags);
        hed_unlock(&hed_graphs_lock);
        hed_buf_addf(&b, "}\n");
        r = b.err ? CUDA_ERROR_OUT_OF_MEMORY : write_dot_file(a->path, &b);
        hed_buf_fini(&b);
    }
    hed_object_put(&g->object);
    return r;
}

const struct hed_cuda_ops hed_calls_graph_dot = {
    .cuGraphDebugDotPrint = soft_cuGraphDebugDotPrint,
};
