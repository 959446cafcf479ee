/* The machine's table on top of an executor. See near.h. */
#include "driver/near/near.h"

#include <string.h>

#include "driver/parts.h"

/* ---- objects that need nothing from this machine --------------------------------------------- */

static CUresult
context_made(void *m, struct hed_context *c)
{
    return CUDA_SUCCESS;
}

/* The memory of the descriptors is gone already. */
static void
context_gone(void *m, struct hed_context *c)
{
    hed_numbers_fini(&hed_near_context(c)->objects);
}

static CUresult
context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value)
{
    return CUDA_SUCCESS;
}

static void
stream_made(void *m, struct hed_stream *s)
{
}

static void
stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
           const CUlaunchAttributeValue *value)
{
}

static void
event_changed(void *m, struct hed_event *e)
{
}

static void
graph_upload(void *m, struct hed_exec *e, struct hed_stream *s)
{
}

static void
graph_gone(void *m, struct hed_exec *e)
{
}

static CUresult
near_describe(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel)
{
    return CUDA_SUCCESS;
}

/* All variables are listed, so there are no others. */
static CUresult
near_variable(void *m, struct hed_context *c, struct hed_code *code, bool managed, const char *name,
              uint64_t *at, uint64_t *size)
{
    return CUDA_ERROR_NOT_FOUND;
}

static void
function_changed(void *m, struct hed_function *f)
{
}

static CUresult
function_set(void *m, struct hed_function *f, CUfunction_attribute a, int value)
{
    return CUDA_SUCCESS;
}

/* There is no linker, so the other operations of linkers are never called. */
static CUresult
link_made(void *m, struct hed_device *dev, const struct hed_jit_how *how, struct hed_linker **out)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* The memory goes with the entry in the index. */
static void
array_gone(void *m, const struct hed_allocation *a, uint64_t handle)
{
}

static CUresult
near_tell(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    return CUDA_SUCCESS;
}

static CUresult
near_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
near_unknown(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static size_t
memory_left(void *m, struct hed_context *c)
{
    return SIZE_MAX;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void
init_numbers(struct hed_near *n)
{
    memset(&n->conditions, 0, sizeof n->conditions);
    hed_lock_init(&n->conditions_lock, HED_RANK_CONDITIONS);
    hed_lock_init(&n->objects_lock, HED_RANK_CONDITIONS);
}

void
hed_near_init(struct hed_near *n, const struct hed_executor *executor)
{
    n->executor = executor;
    init_numbers(n);
    n->machine = (struct hed_machine){
        .memory = executor->memory,
        .clusters = executor->clusters,
        .registered = true,
        .context_bytes = sizeof(struct hed_near_context),
        .stream_bytes = sizeof(struct hed_near_stream),
        .context_made = context_made,
        .context_gone = context_gone,
        .context_limit = context_limit,
        .context_wait = hed_near_context_wait,
        .stream_init = hed_near_stream_init,
        .stream_made = stream_made,
        .stream_gone = hed_near_stream_gone,
        .stream_set = stream_set,
        .stream_query = hed_near_stream_query,
        .stream_wait = hed_near_stream_wait,
        .point_reached = hed_near_point_reached,
        .point_wait = hed_near_point_wait,
        .event_made = event_changed,
        .event_gone = event_changed,
        .event_query = hed_near_event_query,
        .event_wait = hed_near_event_wait,
        .event_time = hed_near_event_time,
        .submit = hed_near_submit,
        .launch = hed_near_launch,
        .copy = hed_near_copy,
        .graph_launch = hed_near_graph_launch,
        .graph_upload = graph_upload,
        .graph_gone = graph_gone,
        .graph_condition = hed_near_graph_condition,
        .graph_conditions_gone = hed_near_graph_conditions_gone,
        .open = hed_near_open,
        .close = hed_near_close,
        .describe = near_describe,
        .fill_vars = hed_near_fill_vars,
        .variable = near_variable,
        .function_made = function_changed,
        .function_gone = function_changed,
        .function_set = function_set,
        .function_load = hed_near_function_load,
        .module_load = hed_near_module_load,
        .link_made = link_made,
        .array_made = hed_near_array_made,
        .mipmap_made = hed_near_mipmap_made,
        .array_quiesce = hed_near_array_quiesce,
        .array_gone = array_gone,
        .texture_made = hed_near_texture_made,
        .surface_made = hed_near_surface_made,
        .object_key = hed_near_object_key,
        .object_gone = hed_near_object_gone,
        .tell = near_tell,
        .call = near_call,
        .unknown = near_unknown,
        .memory_left = memory_left,
        .forked = executor->forked,
        .fini = executor->fini,
    };
}
