/* The record layer: calls are kept in a queue and made later. It is an adapter: it passes every
 * call to the engine (src/share/record), which takes it, answers it, or says that it must be made
 * now. */
#include <string.h>

#include "base/err.h"
#include "core/config.h"
#include "share/share.h"

static CUresult
record_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct hed_record_call call;
    CUresult result;

    if (hed_recorder_before(self->state, id, args, &call, &result) != HED_RECORD_MAKE)
        return result;
    result = hed_cuda_invoke(self->next, id, args);
    return hed_recorder_after(self->state, id, args, &call, result);
}

/* The engine of the layer sched if that is the next layer, NULL otherwise. */
static struct hed_sched *
find_sched(const struct hed_layer *next)
{
    return strcmp(next->type->name, "sched") == 0 ? next->state : NULL;
}

static int
record_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_sched_settings settings;
    struct hed_recorder *r = NULL;
    int err = hed_sched_parse(*config->sched ? config->sched : "on", &settings, why);

    if (!err)
        err = hed_recorder_create(self->next, find_sched(self->next), &settings, HED_RECORD_ALL, &r,
                                  why);
    self->state = r;
    return err;
}

static void
record_fini(struct hed_layer *self)
{
    hed_recorder_fini(self->state);
}

static void
record_forked(struct hed_layer *self)
{
    hed_recorder_forked(self->state);
}

static int
record_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    if (note == HED_NOTE_CLIENT) /* the session tells the layers below */
        hed_recorder_set_client(self->state, text, false);
    return 0;
}

extern const struct hed_layer_type hed_record_layer;

const struct hed_layer_type hed_record_layer = {
    .name = "record",
    .cuda_any = record_any,
    .init = record_init,
    .fini = record_fini,
    .forked = record_forked,
    .note = record_note,
};
