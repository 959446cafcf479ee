/* The record layer: drives the record engine (record.h) from above the layer sched. Every call goes
 * through it; those that are deferred return at once, the others are made when their turn is. */
#include "base/err.h"
#include "core/config.h"
#include "layers/sched/record.h"

static CUresult
record_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct hed_record_call call;
    CUresult result;

    if (hed_record_before(self->state, id, args, &call, &result) != HED_RECORD_MAKE)
        return result;
    result = hed_cuda_invoke(self->next, id, args);
    return hed_record_after(self->state, id, args, &call, result);
}

static int
record_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_sched_settings settings;
    struct hed_record *r = NULL;
    int err = hed_sched_parse(*config->sched ? config->sched : "on", &settings, why);

    if (!err)
        err = hed_record_create(self->next, &settings, HED_RECORD_ALL, &r, why);
    self->state = r;
    return err;
}

static void
record_fini(struct hed_layer *self)
{
    hed_record_fini(self->state);
}

static void
record_forked(struct hed_layer *self)
{
    hed_record_forked(self->state);
}

static int
record_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    if (note == HED_NOTE_CLIENT) /* the layers below are told by the session */
        hed_record_set_client(self->state, text, false);
    return 0;
}

const struct hed_layer_type hed_record_layer = {
    .name = "record",
    .cuda_any = record_any,
    .init = record_init,
    .fini = record_fini,
    .forked = record_forked,
    .note = record_note,
};
