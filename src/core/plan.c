/* What the settings ask for, without doing it. See session.h. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "core/config.h"
#include "core/registry.h"
#include "core/session.h"

int
hed_session_look(struct hed_session_plan *out, struct hed_why *why)
{
    static const char *const sharing[] = {"trace", "record", "sched"};
    struct hed_config *c = calloc(1, sizeof *c);
    char list[HED_CONFIG_TEXT_MAX];
    char *rest = list;
    const char *name;
    const int err = c ? hed_session_load(c, why) : HED_ENOMEM;

    *out = (struct hed_session_plan){.driver = !err && hed_backend_is_driver(c)};
    if (!err) {
        out->cpu = !out->driver && strcmp(c->gpu, "null") != 0;
        out->no_cache = c->cache_size == 0;
        (void)hed_str_copy(out->cache, sizeof out->cache, c->cache);
        hed_session_layers(c, list, sizeof list);
        out->shares = c->mem_group[0] != '\0'; /* a limit of one process needs no file */
        while ((name = strsep(&rest, ",")) != NULL)
            for (size_t i = 0; i < sizeof sharing / sizeof *sharing; i++)
                out->shares = out->shares || strcmp(name, sharing[i]) == 0;
    }
    free(c);
    return err;
}
