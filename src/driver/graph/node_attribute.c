/* Attributes of kernel nodes. They are those of a launch. */
#include <stdlib.h>

#include "driver/graph/node.h"
#include "driver/module/launch.h"
#include "driver/parts.h"

static struct hed_node *
kernel_node(struct hed_layer *self, CUgraphNode handle)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), handle);

    if (n && (n->type != CU_GRAPH_NODE_TYPE_KERNEL || !n->work)) {
        hed_object_put(&n->object);
        return NULL;
    }
    return n;
}

static CUresult
soft_cuGraphKernelNodeGetAttribute(struct hed_layer *self,
                                   struct hed_cuGraphKernelNodeGetAttribute *a)
{
    struct hed_node *n = kernel_node(self, a->hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->value_out) {
        const struct hed_launch *k = &n->work->kernel;

        *a->value_out = (CUlaunchAttributeValue){0};
        for (unsigned i = 0; i < k->attribute_count; i++)
            if (k->attributes[i].id == a->attr)
                *a->value_out = k->attributes[i].value;
    }
    hed_object_put(&n->object);
    return a->value_out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Replaces the attributes of a node: keeps all but `id`, and adds `more`. */
static CUresult
change_attributes(struct hed_launch *k, const CUlaunchAttribute *more, unsigned count)
{
    CUlaunchAttribute *all = calloc(k->attribute_count + count + 1, sizeof *all);
    unsigned n = 0;

    if (!all)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < k->attribute_count; i++) {
        bool replaced = false;

        for (unsigned j = 0; j < count; j++)
            replaced = replaced || more[j].id == k->attributes[i].id;
        if (!replaced)
            all[n++] = k->attributes[i];
    }
    for (unsigned j = 0; j < count; j++)
        all[n++] = more[j];

    CUlaunchAttribute *old = k->attributes;
    CUresult r = hed_launch_attributes(k->function, k, all, n);

    if (r == CUDA_SUCCESS)
        r = hed_launch_keep(k, all, n);
    if (r == CUDA_SUCCESS && k->attributes != old)
        free(old);
    free(all);
    return r;
}

static CUresult
soft_cuGraphKernelNodeSetAttribute(struct hed_layer *self,
                                   struct hed_cuGraphKernelNodeSetAttribute *a)
{
    struct hed_node *n = kernel_node(self, a->hNode);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!n)
        return r;
    if (a->value)
        r = change_attributes(&n->work->kernel,
                              &(CUlaunchAttribute){.id = a->attr, .value = *a->value}, 1);
    hed_object_put(&n->object);
    return r;
}

static CUresult
soft_cuGraphKernelNodeCopyAttributes(struct hed_layer *self,
                                     struct hed_cuGraphKernelNodeCopyAttributes *a)
{
    struct hed_node *to = kernel_node(self, a->dst);
    struct hed_node *from = kernel_node(self, a->src);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (to && from)
        r = change_attributes(&to->work->kernel, from->work->kernel.attributes,
                              from->work->kernel.attribute_count);
    if (to)
        hed_object_put(&to->object);
    if (from)
        hed_object_put(&from->object);
    return r;
}

const struct hed_cuda_ops hed_calls_node_attribute = {
    .cuGraphKernelNodeGetAttribute = soft_cuGraphKernelNodeGetAttribute,
    .cuGraphKernelNodeSetAttribute = soft_cuGraphKernelNodeSetAttribute,
    .cuGraphKernelNodeCopyAttributes = soft_cuGraphKernelNodeCopyAttributes,
};
