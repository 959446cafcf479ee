/* The sched layer: programs share a GPU by a policy. An adapter: it tells the engine
 * (src/share/sched) what calls do, and the engine holds them. */
#include "layers/sched/sched.h"

#include <unistd.h>

#include "base/process.h"
#include "core/config.h"
#include "share/share.h"

static int
sched_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_sched_settings settings;
    struct hed_sched *s = NULL;
    int err = hed_sched_parse(*config->sched ? config->sched : "on", &settings, why);

    settings.family = config->sched_family ? config->sched_family : hed_process_family(getpid());
    if (!err)
        err = hed_sched_create(&hed_sched_driver, self->next, &settings, &s, why);
    self->state = s;
    return err;
}

static void
sched_fini(struct hed_layer *self)
{
    hed_sched_open_gates(self->state);
}

static void
sched_forked(struct hed_layer *self)
{
    hed_sched_forked(self->state);
}

static int
sched_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    return note == HED_NOTE_CLIENT ? hed_sched_set_client(self->state, text) : 0;
}

static void
sched_away(struct hed_layer *self, bool away, uint64_t copy_ns)
{
    hed_sched_set_out(self->state, away, copy_ns);
}

extern const struct hed_layer_type hed_sched_layer;

const struct hed_layer_type hed_sched_layer = {
    .name = "sched",
    .cuda = &hed_sched_cuda,
    .sees = hed_sched_sees,
    .before = hed_sched_before,
    .after = hed_sched_after,
    .init = sched_init,
    .fini = sched_fini,
    .forked = sched_forked,
    .note = sched_note,
    .away = sched_away,
};
