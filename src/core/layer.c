/* Makes layers, and answers the calls that no layer can answer. */
#include "core/layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/stats.h"

typedef void (*op)(void);

/* Fills the NULL entries of `own` from `rest`. An operation table has the layout of an array of
 * function pointers, see hed_cuda_ops. */
static void
complete_type(void *table, const void *own, const void *rest, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(op)) {
        op mine = NULL;

        if (own)
            memcpy(&mine, (const char *)own + at, sizeof mine);
        memcpy((char *)table + at, mine ? (const void *)&mine : (const char *)rest + at,
               sizeof mine);
    }
}

void
hed_layer_place(struct hed_layer_room *room, const struct hed_layer_type *type,
                struct hed_layer *next)
{
    const struct hed_cuda_ops *cuda = type->cuda_rest ? type->cuda_rest : &hed_cuda_forward;
    const struct hed_nvml_ops *nvml = type->nvml_rest ? type->nvml_rest : &hed_nvml_forward;

    complete_type(&room->cuda, type->cuda, type->cuda_any ? &hed_cuda_any : cuda,
                  sizeof room->cuda);
    complete_type(&room->nvml, type->nvml, type->nvml_any ? &hed_nvml_any : nvml,
                  sizeof room->nvml);
    room->layer = (struct hed_layer){&room->cuda, &room->nvml, next, type, NULL};
}

int
hed_layer_create(const struct hed_layer_type *type, struct hed_layer *next,
                 const struct hed_config *config, struct hed_layer **out, struct hed_why *why)
{
    struct hed_layer_room *room = malloc(sizeof *room);

    if (!room) {
        hed_why_set(why, "%s: %s", type->name, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    hed_layer_place(room, type, next);

    const int err = type->init ? type->init(&room->layer, config, why) : 0;

    if (err) {
        free(room);
        return err;
    }
    *out = &room->layer;
    return 0;
}

void
hed_layer_free(struct hed_layer *layer)
{
    if (!layer)
        return;
    if (layer->type->fini)
        layer->type->fini(layer);
    free((struct hed_layer_room *)layer);
}

CUresult
hed_cuda_no_such_call(enum hed_cuda_call id)
{
    hed_bug("cuda call %d does not exist", (int)id);
    return CUDA_ERROR_INVALID_VALUE;
}

nvmlReturn_t
hed_nvml_no_such_call(enum hed_nvml_call id)
{
    hed_bug("nvml call %d does not exist", (int)id);
    return NVML_ERROR_INVALID_ARGUMENT;
}

CUresult
hed_cuda_not_in_driver(struct hed_layer *self, enum hed_cuda_call id)
{
    hed_stats_unsupported(HED_API_CUDA, id, self->type->name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t
hed_nvml_not_in_driver(struct hed_layer *self, enum hed_nvml_call id)
{
    hed_stats_unsupported(HED_API_NVML, id, self->type->name);
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}
