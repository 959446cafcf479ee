/* InitializeInjection, which the driver calls inside the program's cuInit: settings, CUPTI, the
 * chain, in an order in which each step can still be given up without leaving a trace. */
#include "see/inject/inject.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/str.h"
#include "core/config.h"
#include "core/session.h"
#include "share/share.h"

struct hed_inject hed_inject;

/* Called by the driver; 1 is success. */
HED_EXPORT int InitializeInjection(void);

/* Loads the settings and drops what is not possible from here. */
static int
load_settings(struct hed_config *c, struct hed_why *why)
{
    int err = hed_config_load(c, environ, why);
    const int log_err = hed_log_setup(c->log, err ? NULL : why);

    if (c->warning.text[0])
        hed_warn(INJECT, "%s", c->warning.text);
    if (err || log_err)
        return err ? err : log_err;
    if (strcmp(c->gpu, "auto") != 0 && strcmp(c->gpu, "gpu") != 0) {
        hed_why_set(why, "gpu = %s: an injected library can only use the program's own GPU",
                    c->gpu);
        return HED_EINVAL;
    }
    if (c->mem || *c->mem_group || *c->fault || *c->layers || strcmp(c->lift, "yes") == 0)
        hed_warn(INJECT, "mem, fault, lift and layers have no effect with --inject, which only "
                         "observes calls");
    hed_meeting_choose(c->meet_dir);
    c->mem = 0;
    c->mem_group[0] = c->fault[0] = '\0';
    (void)hed_str_copy(c->gpu, sizeof c->gpu, "gpu");
    /* Never the layer `record`: calls do not come through the chain, so the recorder is driven from
     * here. */
    (void)snprintf(c->layers, sizeof c->layers, "%s%s%s", *c->trace ? "trace" : "",
                   *c->trace && *c->sched ? "," : "", *c->sched ? "sched" : "");
    return 0;
}

/* Finds the driver that has loaded us. Another copy of the file would be another driver. */
static void
find_driver(struct hed_config *c)
{
    struct link_map *map = NULL;
    void *library = *c->driver ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    if (!library)
        return;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '/')
        (void)hed_str_copy(c->driver, sizeof c->driver, map->l_name);
    (void)dlclose(library);
}

/* Finds the layers of the chain. False if it could not be built; the log says why. */
static bool
find_layers(struct hed_inject *i, struct hed_layer *top)
{
    for (; top->next; top = top->next) {
        if (strcmp(top->type->name, "trace") == 0)
            i->writer = top->state;
        else if (strcmp(top->type->name, "sched") == 0)
            i->sched = top;
    }
    return strcmp(top->type->name, "gpu") == 0;
}

static int
start_record(struct hed_inject *i, const struct hed_config *c, struct hed_why *why)
{
    struct hed_sched_settings settings;
    const int err = *c->sched ? hed_sched_parse(c->sched, &settings, why) : 0;

    if (err || !*c->sched || !settings.record)
        return err;
    if (settings.own_stream)
        hed_warn(INJECT, "stream=own has no effect with --inject: launches stay on their streams");
    settings.own_stream = false;
    /* A call that is made inside a callback has a correlation id that no record names. */
    return hed_recorder_create(i->sched, i->sched->state, &settings,
                               HED_RECORD_LAUNCHES | HED_RECORD_ASIDE, &i->record, why);
}

static void
injection_forked(void)
{
    /* Relaxed: there is only one thread. */
    atomic_store_explicit(&hed_inject.off, true, memory_order_relaxed);
    if (hed_inject.record)
        hed_recorder_forked(hed_inject.record);
}

/* The process ends. The chain's layers are told later, when the library is unloaded. */
static void
injection_ended(void)
{
    if (atomic_load_explicit(&hed_inject.off, memory_order_relaxed))
        return;
    if (hed_inject.record)
        hed_recorder_fini(hed_inject.record);
    hed_inject_flush();
}

/* Enables the callbacks that are wanted. */
static void
enable_callbacks(const struct hed_inject *i, void *subscriber)
{
    unsigned failed = 0;
    int last = 0;

    for (uint32_t id = 1; id < HED_CUPTI_CALLS_MAX; id++) {
        if (!i->calls[id].wants)
            continue;

        const int err = hed_cupti.cuptiEnableCallback(1, subscriber, HED_CUPTI_DRIVER_API, id);

        last = err ? err : last;
        failed += err != 0;
    }
    if (failed)
        hed_warn(INJECT, "heddle does not see %u kinds of calls: %s", failed, hed_cupti_text(last));
}

/* Builds the chain, and the list of calls to see. */
static int
build_injected_chain(const struct hed_config *c, struct hed_why *why)
{
    hed_session_settings(c);
    if (!find_layers(&hed_inject, hed_session_start())) {
        hed_why_set(why,
                    "the driver cannot be used, or the trace cannot be written; the log says why");
        return HED_ESTATE;
    }

    const int err = start_record(&hed_inject, c, why);

    if (err)
        return err;

    const unsigned count = hed_inject_list(&hed_inject);

    hed_info(INJECT, "%u kinds of calls are observed", count);
    return 0;
}

static int
start_injection(const struct hed_config *c, struct hed_why *why)
{
    void *subscriber = NULL;
    int err = hed_cupti_open(c->cupti, why);

    if (err)
        return err;

    const int refused = hed_cupti.cuptiSubscribe(&subscriber, hed_inject_callback, NULL);

    if (refused) {
        hed_why_set(why, "CUPTI refuses a subscription: %s", hed_cupti_text(refused));
        return HED_ESTATE;
    }
    err = build_injected_chain(c, why);
    if (err) {
        (void)hed_cupti.cuptiUnsubscribe(subscriber);
        return err;
    }

    const int blind = hed_inject.writer ? hed_inject_watch() : 0;

    if (blind)
        hed_warn(INJECT, "the trace will contain no kernels and copies: %s", hed_cupti_text(blind));
    (void)pthread_atfork(NULL, NULL, injection_forked);
    (void)atexit(injection_ended);
    enable_callbacks(&hed_inject, subscriber);
    return 0;
}

int
InitializeInjection(void)
{
    static struct hed_config config; /* large, and the chain may read it again */
    static atomic_flag started = ATOMIC_FLAG_INIT;
    struct hed_why why = {""};

    if (atomic_flag_test_and_set(&started))
        return 1;

    int err = load_settings(&config, &why);

    if (!err && !*config.layers)
        return 1;
    if (!err) {
        find_driver(&config);
        err = start_injection(&config, &why);
    }
    if (err)
        hed_error(INJECT, "the program runs without heddle: %s", why.text);
    return 1;
}
