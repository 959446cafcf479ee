/* Arrays, texture objects and executable graphs of a remote machine: what it is told, and when. The
 * peer records what it is told. */
#include <stdio.h>

#include "driver/context/context.h"
#include "driver/graph/node.h"
#include "driver/memory/array.h"
#include "driver/stream/stream.h"
#include "unit/driver/memory_make.h"
#include "unit/remote/peer.h"

struct heard {
    char words[2048];
    CUresult next;        /* the answer to making something */
    uint64_t value;       /* of the next texture or surface */
    struct hed_copy copy; /* the last copy that was put on a stream */
    uint64_t exec;        /* the last executable graph that was launched */
};

static struct heard *
heard(void *m)
{
    return ((struct fake *)m)->data;
}

static void
hear(void *m, const char *what)
{
    struct heard *h = heard(m);
    const size_t n = strlen(h->words);

    (void)snprintf(h->words + n, sizeof h->words - n, "%s%s", n ? " " : "", what);
}

static void
expect(struct heard *h, const char *words)
{
    assert_string_equal(h->words, words);
    h->words[0] = '\0';
}

/* ---- a far side ------------------------------------------------------------------------------ */

static CUresult
context_made(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
    return CUDA_SUCCESS;
}

static void
context_gone(void *m, struct hed_context *c)
{
    (void)c;
    hear(m, "context-gone");
}

static CUresult
context_wait(void *m, struct hed_context *c)
{
    (void)m;
    (void)c;
    return CUDA_SUCCESS;
}

static void
of_stream(void *m, struct hed_stream *s)
{
    (void)m;
    (void)s;
}

static CUresult
wait_stream(void *m, struct hed_stream *s)
{
    (void)s;
    hear(m, "wait");
    return CUDA_SUCCESS;
}

static void
of_event(void *m, struct hed_event *e)
{
    (void)m;
    (void)e;
}

static CUresult
query_event(void *m, struct hed_event *e)
{
    (void)e;
    hear(m, "query");
    return CUDA_ERROR_NOT_READY;
}

static CUresult
put(void *m, struct hed_stream *s, struct hed_work *w)
{
    static const char *const names[HED_WORK_COUNT] = {
        [HED_WORK_COPY] = "copy",        [HED_WORK_FILL] = "fill",
        [HED_WORK_HOST] = "host",        [HED_WORK_EVENT_RECORD] = "record",
        [HED_WORK_EVENT_WAIT] = "await", [HED_WORK_GRAPH] = "graph",
    };

    (void)s;
    hear(m, names[w->kind] ? names[w->kind] : "?");
    if (w->kind == HED_WORK_COPY)
        heard(m)->copy = w->copy;
    if (w->kind == HED_WORK_GRAPH)
        heard(m)->exec = w->exec;
    return CUDA_SUCCESS;
}

static CUresult
copy_host(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host, bool wait)
{
    (void)s;
    (void)wait;
    heard(m)->copy = *c;
    hear(m, to_host ? "copy-out" : "copy-in");
    return CUDA_SUCCESS;
}

static bool
shares(void *m, uint64_t at, uint64_t size)
{
    (void)m;
    (void)at;
    (void)size;
    return false;
}

static CUresult
array_made(void *m, struct hed_context *c, struct hed_array *a)
{
    (void)c;
    assert_int_equal(a->image.at, 0);
    hear(m, "array");
    return heard(m)->next;
}

static CUresult
mipmap_made(void *m, struct hed_context *c, struct hed_mipmap *mm)
{
    (void)c;
    hear(m, mm->levels == 3 ? "mipmap3" : "mipmap");
    return heard(m)->next;
}

static void
array_gone(void *m, uint64_t context, uint64_t handle)
{
    assert_int_equal(hed_handle_kind(context), HED_KIND_CONTEXT);
    hear(m, hed_handle_kind(handle) == HED_KIND_MIPMAP ? "mipmap-gone" : "array-gone");
}

static CUresult
texture_made(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
             const CUDA_TEXTURE_DESC_v1 *tex, const CUDA_RESOURCE_VIEW_DESC_v1 *view,
             uint64_t *value)
{
    (void)c;
    (void)res;
    (void)tex;
    (void)view;
    hear(m, "texture");
    *value = heard(m)->value;
    return heard(m)->next;
}

static CUresult
surface_made(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res, uint64_t *value)
{
    (void)c;
    (void)res;
    hear(m, "surface");
    *value = heard(m)->value;
    return heard(m)->next;
}

static void
object_gone(void *m, struct hed_context *c, bool surface, uint64_t value)
{
    (void)c;
    assert_int_equal(value, heard(m)->value);
    hear(m, surface ? "surface-gone" : "texture-gone");
}

static CUresult
exec_made(void *m, struct hed_context *c, struct hed_exec *e, struct hed_graph_exec *body,
          bool first)
{
    (void)c;
    assert_ptr_equal(e->body, body);
    hear(m, first ? "exec" : "exec-again");
    return heard(m)->next;
}

static void
exec_gone(void *m, uint64_t handle)
{
    assert_int_equal(hed_handle_kind(handle), HED_KIND_GRAPH_EXEC);
    hear(m, "exec-gone");
}

static const struct peer peer = {
    .context_made = context_made,
    .context_gone = context_gone,
    .context_wait = context_wait,
    .stream_made = of_stream,
    .stream_gone = of_stream,
    .stream_wait = wait_stream,
    .stream_query = wait_stream,
    .stream_look = of_stream,
    .event_made = of_event,
    .event_gone = of_event,
    .event_query = query_event,
    .put = put,
    .copy_host = copy_host,
    .shares = shares,
    .array_made = array_made,
    .mipmap_made = mipmap_made,
    .array_gone = array_gone,
    .texture_made = texture_made,
    .surface_made = surface_made,
    .object_gone = object_gone,
    .exec_made = exec_made,
    .exec_gone = exec_gone,
};

static struct fake *
begin(struct heard *h)
{
    struct fake *f;

    memset(h, 0, sizeof *h);
    f = peer_create(1, &peer, h);
    (void)fake_use_primary(f, 0);
    return f;
}

static CUresult
make_array(struct fake *f, CUarray *out)
{
    return fake_call(f, cuArray3DCreate_v2, out,
                     &(CUDA_ARRAY3D_DESCRIPTOR_v2){64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0});
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void
an_array_is_elsewhere_and_paid_for(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray m = NULL;
    CUarray a = NULL, level = NULL;

    ok(make_array(f, &a));
    assert_int_equal(used(f), 64 * 32 * 4);
    assert_int_equal(f->maps, 0);
    ok(fake_call(f, cuMipmappedArrayCreate, &m, &d, 3));
    ok(fake_call(f, cuMipmappedArrayGetLevel, &level, m, 2));
    ok(fake_call(f, cuArray3DGetDescriptor_v2, &d, level));
    assert_int_equal(d.Width, 16);
    ok(fake_call(f, cuArrayDestroy, level)); /* belongs to the mipmap */
    ok(fake_call(f, cuArrayDestroy, a));
    ok(fake_call(f, cuMipmappedArrayDestroy, m));
    expect(&h, "array mipmap3 array-gone mipmap-gone");
    assert_int_equal(used(f), 0);
    assert_int_equal(fake_call(f, cuArrayDestroy, a), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuArrayDestroy, level), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

static void
an_array_that_is_refused_leaves_nothing(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray m = NULL;
    CUarray a = NULL;

    h.next = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(make_array(f, &a), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fake_call(f, cuMipmappedArrayCreate, &m, &d, 3), CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(a);
    assert_null(m);
    assert_int_equal(used(f), 0);
    expect(&h, "array mipmap3");
    fake_free(f);
    expect(&h, "context-gone");
}

static void
a_context_that_dies_takes_its_arrays_along(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUcontext c = NULL;
    CUarray a = NULL;

    ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    ok(make_array(f, &a));
    ok(fake_call(f, cuCtxDestroy_v2, c));
    expect(&h, "array array-gone context-gone");
    assert_int_equal(used(f), 0);
    fake_free(f);
}

static void
a_copy_names_the_array_and_the_place(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUdeviceptr p = 0;
    CUarray a = NULL;
    char bytes[256] = "";
    CUDA_MEMCPY2D_v2 c = {.dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstXInBytes = 8,
                          .dstY = 3,
                          .WidthInBytes = 16,
                          .Height = 2};

    ok(make_array(f, &a));
    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));
    h.words[0] = '\0';
    c.dstArray = a;
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    ok(fake_call(f, cuMemcpy2DAsync_v2, &c, NULL));
    expect(&h, "copy");
    assert_int_equal(h.copy.to.array, (uint64_t)(uintptr_t)a);
    assert_int_equal(h.copy.to.at, 0);
    assert_int_equal(h.copy.to.x, 8);
    assert_int_equal(h.copy.to.y, 3);
    assert_int_equal(h.copy.from.array, 0);
    assert_int_equal(h.copy.from.at, p);
    ok(fake_call(f, cuMemcpyHtoA_v2, a, 32, bytes, sizeof bytes - 32));
    expect(&h, "copy-in");
    assert_int_equal(h.copy.to.x, 32);
    bad(fake_call(f, cuMemcpyHtoA_v2, a, 128, bytes, sizeof bytes)); /* beyond the end of the row */
    ok(fake_call(f, cuMemcpyAtoH_v2, bytes, a, 0, sizeof bytes));
    expect(&h, "copy-out");
    fake_free(f);
}

/* ---- textures -------------------------------------------------------------------------------- */

static void
a_texture_has_the_value_it_has_there(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_ARRAY}, told = {0};
    const CUDA_TEXTURE_DESC_v1 t = {.filterMode = CU_TR_FILTER_MODE_LINEAR};
    CUtexObject texture = 0, other = 0;
    CUsurfObject surface = 0;
    CUcontext c = NULL;
    CUarray a = NULL;

    ok(make_array(f, &a));
    r.res.array.hArray = a;
    h.value = 1; /* as on a GPU: small, and separate for each kind and context */
    ok(fake_call(f, cuTexObjectCreate, &texture, &r, &t, NULL));
    ok(fake_call(f, cuSurfObjectCreate, &surface, &r));
    ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    ok(fake_call(f, cuTexObjectCreate, &other, &r, &t, NULL));
    assert_int_equal(texture, 1);
    assert_int_equal(surface, 1);
    assert_int_equal(other, 1);
    ok(fake_call(f, cuTexObjectGetResourceDesc, &told, other));
    assert_ptr_equal(told.res.array.hArray, a);
    bad(fake_call(f, cuSurfObjectGetResourceDesc, &told, 1)); /* of the other context */
    ok(fake_call(f, cuCtxDestroy_v2, c));
    ok(fake_call(f, cuTexObjectGetResourceDesc, &told, texture));
    ok(fake_call(f, cuTexObjectDestroy, texture));
    ok(fake_call(f, cuTexObjectDestroy, texture)); /* accepted, and nothing is sent */
    bad(fake_call(f, cuTexObjectGetResourceDesc, &told, texture));
    ok(fake_call(f, cuSurfObjectDestroy, surface));
    expect(&h, "array texture surface texture context-gone texture-gone surface-gone");
    h.next = CUDA_ERROR_INVALID_VALUE;
    bad(fake_call(f, cuTexObjectCreate, &texture, &r, &t, NULL));
    fake_free(f);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A graph of one fill. */
static CUgraph
make_graph(struct fake *f, CUdeviceptr at, CUgraphNode *node)
{
    const CUDA_MEMSET_NODE_PARAMS_v1 fill = {
        .dst = at, .value = 7, .elementSize = 1, .width = 16, .height = 1};
    CUgraph g = NULL;

    ok(fake_call(f, cuGraphCreate, &g, 0));
    ok(fake_call(f, cuGraphAddMemsetNode, node, g, NULL, 0, &fill, NULL));
    return g;
}

static void
a_mirror_is_made_when_it_is_launched(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUDA_MEMSET_NODE_PARAMS_v1 fill = {.value = 8, .elementSize = 1, .width = 16, .height = 1};
    CUgraphExecUpdateResultInfo_v1 info;
    CUgraphExec e = NULL;
    CUgraphNode n = NULL;
    CUdeviceptr p = 0;

    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));

    CUgraph g = make_graph(f, p, &n);

    h.words[0] = '\0';
    ok(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    expect(&h, "");
    ok(fake_call(f, cuGraphLaunch, e, NULL));
    ok(fake_call(f, cuGraphLaunch, e, NULL));
    expect(&h, "exec graph graph");
    assert_int_equal(h.exec, (uint64_t)(uintptr_t)e);
    fill.dst = p;
    ok(fake_call(f, cuGraphExecMemsetNodeSetParams, e, n, &fill, NULL));
    ok(fake_call(f, cuGraphExecMemsetNodeSetParams, e, n, &fill, NULL));
    expect(&h, "");
    ok(fake_call(f, cuGraphUpload, e, NULL));
    ok(fake_call(f, cuGraphLaunch, e, NULL));
    expect(&h, "exec-again graph");
    ok(fake_call(f, cuGraphExecUpdate_v2, e, g, &info));
    ok(fake_call(f, cuGraphLaunch, e, NULL));
    expect(&h, "exec-again graph");
    ok(fake_call(f, cuGraphExecDestroy, e));
    expect(&h, "exec-gone");
    ok(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    ok(fake_call(f, cuGraphExecDestroy, e)); /* never launched: the worker does not know it */
    expect(&h, "");
    fake_free(f);
}

static void
function(void *data)
{
    (void)data;
}

static void
without_a_mirror_nodes_go_one_by_one(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    const CUDA_HOST_NODE_PARAMS_v1 call = {.fn = function};
    CUgraph g, outer = NULL;
    CUgraphNode n = NULL, child = NULL, last = NULL, after = NULL;
    CUstream s = NULL, other = NULL;
    CUgraphExec e = NULL;
    CUevent event = NULL;
    CUdeviceptr p = 0;
    char bytes[64] = "";
    const CUDA_MEMCPY3D_v2 copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                   .srcHost = bytes,
                                   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .dstDevice = 0,
                                   .WidthInBytes = 64,
                                   .Height = 1,
                                   .Depth = 1};
    CUDA_MEMCPY3D_v2 in = copy;

    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));
    ok(fake_call(f, cuStreamCreate, &s, 0));
    ok(fake_call(f, cuStreamCreate, &other, 0));
    ok(fake_call(f, cuEventCreate, &event, 0));
    in.dstDevice = p;
    g = make_graph(f, p, &n);
    ok(fake_call(f, cuGraphAddMemcpyNode, &after, g, &n, 1, &in, NULL));
    ok(fake_call(f, cuGraphCreate, &outer, 0));
    ok(fake_call(f, cuGraphAddChildGraphNode, &child, outer, NULL, 0, g));
    ok(fake_call(f, cuGraphAddHostNode, &last, outer, &child, 1, &call));
    ok(fake_call(f, cuGraphAddEventRecordNode, &after, outer, &last, 1, event));
    ok(fake_call(f, cuGraphInstantiateWithFlags, &e, outer, 0));
    h.words[0] = '\0';
    h.next = CUDA_ERROR_NOT_SUPPORTED;
    ok(fake_call(f, cuGraphLaunch, e, s));
    expect(&h, "exec fill copy-in host record");
    ok(fake_call(f, cuGraphLaunch, e, s));
    expect(&h, "fill copy-in host record");
    ok(fake_call(f, cuGraphLaunch, e, other)); /* behind the launch on the first stream */
    expect(&h, "wait fill copy-in host record");
    ok(fake_call(f, cuGraphExecDestroy, e));
    expect(&h, "");
    fake_free(f);
}

static void
an_event_that_a_mirror_records_is_recorded(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUgraph g = NULL;
    CUgraphNode n = NULL;
    CUgraphExec e = NULL;
    CUevent event = NULL;

    ok(fake_call(f, cuEventCreate, &event, 0));
    ok(fake_call(f, cuEventQuery, event));
    ok(fake_call(f, cuGraphCreate, &g, 0));
    ok(fake_call(f, cuGraphAddEventRecordNode, &n, g, NULL, 0, event));
    ok(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    ok(fake_call(f, cuGraphLaunch, e, NULL));
    assert_int_equal(fake_call(f, cuEventQuery, event), CUDA_ERROR_NOT_READY);
    expect(&h, "exec graph query");
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_array_is_elsewhere_and_paid_for),
    cmocka_unit_test(an_array_that_is_refused_leaves_nothing),
    cmocka_unit_test(a_context_that_dies_takes_its_arrays_along),
    cmocka_unit_test(a_copy_names_the_array_and_the_place),
    cmocka_unit_test(a_texture_has_the_value_it_has_there),
    cmocka_unit_test(a_mirror_is_made_when_it_is_launched),
    cmocka_unit_test(without_a_mirror_nodes_go_one_by_one),
    cmocka_unit_test(an_event_that_a_mirror_records_is_recorded),
};

HED_UNIT_MAIN(tests)
