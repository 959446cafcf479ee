/* Builds the chain of core/session.h, and handles fork and exit. */
#include "core/session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/str.h"
#include "core/config.h"
#include "core/dead.h"
#include "core/foreign.h"
#include "core/refusal.h"
#include "core/registry.h"
#include "gen/storeys.h"

#define CHAIN_MAX 16 /* layers in a chain */

struct hed_session hed_session = {.recording = true};

static struct hed_lock start_lock = HED_LOCK_INIT(HED_RANK_SESSION);
static char chain_text[256] = "none";
static struct hed_why failure; /* why there is none; written before top is */
static pid_t session_pid;      /* process that built the chain */
static bool no_driver;         /* the backend found no driver */
static bool stays_here;        /* this process serves others, and uses no host's GPU */
static bool forked_after_init; /* this is a child whose parent had initialised a soft backend */

static const struct hed_config *given; /* settings that were given; NULL: the environment's */

void
hed_session_settings(const struct hed_config *config)
{
    given = config;
}

#define OVERRIDES_MAX 8

static struct override {
    const char *key;
    char value[256];
} overrides[OVERRIDES_MAX];

void
hed_session_override(const char *key, const char *value)
{
    for (size_t i = 0; i < OVERRIDES_MAX; i++) {
        if (overrides[i].key)
            continue;
        if (hed_str_copy(overrides[i].value, sizeof overrides[i].value, value))
            overrides[i].key = key;
        return;
    }
}

static void (*on_give_up)(const char *why); /* set before there are threads */

void
hed_session_on_give_up(void (*handler)(const char *why))
{
    on_give_up = handler;
}

bool
hed_session_give_up(const char *why)
{
    if (on_give_up)
        on_give_up(why);
    return on_give_up != NULL;
}

static uint64_t (*on_others)(int device); /* set before there are threads */

void
hed_session_on_others(uint64_t (*handler)(int device))
{
    on_others = handler;
}

uint64_t
hed_session_others(int device)
{
    return on_others ? on_others(device) : 0;
}

static int compilers[HED_SESSION_COMPILERS_MAX]; /* like compiler_count, set before there are
                                                  * threads */
static unsigned compiler_count;

void
hed_session_give_compilers(const int *sockets, unsigned count)
{
    for (compiler_count = 0; compiler_count < count && compiler_count < HED_SESSION_COMPILERS_MAX;
         compiler_count++)
        compilers[compiler_count] = sockets[compiler_count];
}

unsigned
hed_session_compilers(int *sockets, unsigned room)
{
    const unsigned count = compiler_count < room ? compiler_count : room;

    for (unsigned i = 0; i < count; i++)
        sockets[i] = compilers[i];
    return count;
}

int
hed_session_load(struct hed_config *c, struct hed_why *why)
{
    int err = hed_config_load(c, environ, why);

    for (size_t i = 0; !err && i < OVERRIDES_MAX && overrides[i].key; i++)
        err = hed_config_set(c, overrides[i].key, overrides[i].value, why);
    if (stays_here) {
        (void)hed_str_copy(c->control, sizeof c->control, "no");
        (void)hed_str_copy(c->cpu_after, sizeof c->cpu_after, "off");
    }
    return err;
}

/* Does the setting `sched` ask for mode=record? The layer reports other mistakes in it. */
static bool
asks_for_record(const struct hed_config *c)
{
    char list[HED_CONFIG_TEXT_MAX];
    char *rest = list;
    char *word;
    bool record = false;

    (void)hed_str_copy(list, sizeof list, c->sched);
    while ((word = strsep(&rest, ",")) != NULL) {
        word = hed_str_trim(word);
        if (strncmp(word, "mode=", 5) == 0)
            record = strcmp(word + 5, "record") == 0;
    }
    return record;
}

void
hed_session_layers(const struct hed_config *c, char *out, size_t size)
{
    const bool control = strcmp(c->control, "yes") == 0;
    const struct {
        bool wanted;
        const char *name;
    } layers[] = {
        {*c->trace || (control && HED_HAVE_SEE), "trace"},
        {*c->fault || control, "fault"},
        {control, "watch"},
        {c->mem || *c->mem_group, "quota"},
        {asks_for_record(c), "record"},
        {*c->sched, "sched"},
        {strcmp(c->lift, "yes") == 0, "lift"},
    };
    size_t n = 0;

    (void)hed_str_copy(out, size, c->layers);
    for (size_t i = 0; !*c->layers && i < sizeof layers / sizeof *layers; i++)
        if (layers[i].wanted)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", layers[i].name);
}

/* Adds the layers of a list to those that were chosen, below them. */
static int
add_layers(char *list, int (*find)(const char *, const struct hed_layer_type **, struct hed_why *),
           const struct hed_layer_type **out, size_t *count, struct hed_why *why)
{
    char *rest = list;
    char *name;

    while (*list && (name = strsep(&rest, ",")) != NULL) {
        if (*count == CHAIN_MAX) {
            hed_why_set(why, "more than %d layers", CHAIN_MAX);
            return HED_ELIMIT;
        }

        const int err = find(name, &out[*count], why);

        if (err)
            return err;
        ++*count;
    }
    return 0;
}

/* Layers of others come first: a trace shows what they let through. A server's worker has none,
 * because they are for the program, which has loaded them on its side. */
static int
choose_layers(const struct hed_config *c, const struct hed_layer_type **out, size_t *count,
              struct hed_why *why)
{
    char list[HED_CONFIG_TEXT_MAX];
    int err;

    *count = 0;
    (void)hed_str_copy(list, sizeof list, stays_here ? "" : c->plugins);
    err = add_layers(list, hed_layer_find_plugin, out, count, why);
    hed_session_layers(c, list, sizeof list);
    return err ? err : add_layers(list, hed_layer_find, out, count, why);
}

/* Layers need the chain's text while they are made, so it is written first. */
static void
name_chain(const struct hed_layer_type *const *layers, size_t count, const char *backend)
{
    size_t n = 0;

    for (size_t i = 0; i < count && n < sizeof chain_text; i++)
        n += (size_t)snprintf(chain_text + n, sizeof chain_text - n, "%s>", layers[i]->name);
    if (n < sizeof chain_text)
        (void)snprintf(chain_text + n, sizeof chain_text - n, "%s", backend);
}

static int
build_chain(const struct hed_config *c, struct hed_layer **top, struct hed_why *why)
{
    const struct hed_layer_type *layers[CHAIN_MAX];
    const struct hed_layer_type *backend;
    size_t count;
    int err = hed_backend_find(c, &backend, why);

    if (!err)
        err = choose_layers(c, layers, &count, why);
    if (err)
        return err;
    name_chain(layers, count, backend->name);
    *top = NULL;
    err = hed_layer_create(backend, NULL, c, top, why);
    /* A soft backend needs no driver: it misses something that a setting names. */
    no_driver = err == HED_ENOTFOUND && !backend->soft;
    for (size_t i = count; !err && i-- > 0;)
        err = hed_layer_create(layers[i], *top, c, top, why);
    while (err && *top) {
        struct hed_layer *l = *top;

        *top = l->next;
        hed_layer_free(l);
    }
    return err;
}

/* Chooses the error that tells the program most. "No device" is only for a machine without one,
 * because programs then continue without a GPU, which a wrong setting must not cause. */
static struct hed_layer *
dead_layer(void)
{
    if (no_driver)
        return hed_dead_layer(CUDA_ERROR_NO_DEVICE, NVML_ERROR_LIBRARY_NOT_FOUND);
    return hed_dead_layer(CUDA_ERROR_SYSTEM_NOT_READY, NVML_ERROR_UNKNOWN);
}

void
hed_session_stay_here(void)
{
    stays_here = true;
}

static struct hed_layer *
start_session_locked(void)
{
    static struct hed_config config; /* large; built under the lock, once */
    struct hed_layer *top = NULL;
    struct hed_why why = {""};
    int err = 0;

    if (given)
        config = *given;
    else
        err = hed_session_load(&config, &why);

    /* Also when the settings were refused: the reason goes to the log. */
    const int log_err = hed_log_setup(config.log, err ? NULL : &why);

    err = err ? err : log_err;
    if (config.warning.text[0])
        hed_warn(CORE, "%s", config.warning.text);
    failure.text[0] = '\0';
    if (!err && forked_after_init)
        hed_why_set(&failure,
                    "this process was forked from one that had initialised CUDA; start it "
                    "anew (spawn)");
    if (!err && forked_after_init)
        return hed_dead_layer(CUDA_ERROR_NOT_INITIALIZED, NVML_ERROR_UNINITIALIZED);
    hed_meeting_choose(config.meet_dir);
    hed_refusals_choose(config.refusals);
    if (!err && !stays_here)
        hed_backend_ask_host(&config);
    if (!err)
        err = build_chain(&config, &top, &why);
    if (err) {
        hed_error(CORE, "%s", why.text);
        failure = why;
        top = dead_layer();
    }
    return top;
}

static void
after_fork_in_child(void)
{
    struct hed_layer *top = atomic_load_explicit(&hed_session.top, memory_order_relaxed);

    hed_lock_init(&start_lock, HED_RANK_SESSION);
    hed_foreign_forked();
    hed_problems_forked();
    if (!top)
        return;
    if (hed_session_backend()->type->soft &&
        atomic_load_explicit(&hed_session.soft_initialized, memory_order_relaxed))
        forked_after_init = true;
    for (struct hed_layer *l = top; l; l = l->next)
        if (l->type->forked)
            l->type->forked(l);
    atomic_store_explicit(&hed_session.top, NULL, memory_order_relaxed);
}

/* The process ends. Calls may still come from exit handlers that run after this one. */
__attribute__((destructor)) static void
finish_layers(void)
{
    /* A child that was made without our knowledge (_Fork, clone) has the parent's chain but not its
     * threads. */
    if (session_pid != getpid())
        return;
    for (struct hed_layer *l = atomic_load_explicit(&hed_session.top, memory_order_acquire); l;
         l = l->next)
        if (l->type->fini)
            l->type->fini(l);
}

static void
watch_the_process(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
    (void)at_quick_exit(finish_layers); /* exit() runs it as the library's destructor */
}

struct hed_layer *
hed_session_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    /* Before the lock is taken: a fork while it is held must be noticed. */
    (void)pthread_once(&once, watch_the_process);
    hed_lock(&start_lock);

    struct hed_layer *top = atomic_load_explicit(&hed_session.top, memory_order_relaxed);

    if (!top) {
        session_pid = getpid();
        top = start_session_locked();
        /* Release: pairs with the acquire in hed_top. */
        atomic_store_explicit(&hed_session.top, top, memory_order_release);
    }
    hed_unlock(&start_lock);
    return top;
}

struct hed_layer *
hed_session_backend(void)
{
    struct hed_layer *l = hed_top();

    while (l->next)
        l = l->next;
    return l;
}

const char *
hed_session_chain(void)
{
    return chain_text;
}

const char *
hed_session_failure(void)
{
    return failure.text;
}

int
hed_session_note(enum hed_note note, const char *text)
{
    int err = 0;

    for (struct hed_layer *l = hed_top(); l; l = l->next) {
        const int refused = l->type->note ? l->type->note(l, note, text) : 0;

        err = err ? err : refused;
    }
    return err;
}

int
hed_session_control(struct hed_control *c, struct hed_why *why)
{
    for (struct hed_layer *l = hed_top(); l; l = l->next) {
        const int err = l->type->control ? l->type->control(l, c, why) : HED_ENOTSUP;

        if (err != HED_ENOTSUP)
            return err;
    }
    if (failure.text[0]) {
        *why = failure;
        return HED_ESTATE;
    }
    hed_why_set(why, "this process has no layer for that; it needs the setting control=yes "
                     "(HEDDLE_CONTROL) from its start");
    return HED_ENOTSUP;
}

void
hed_session_tell_away(bool away, uint64_t copy_ns)
{
    /* Acquire: pairs with the release in hed_session_start. */
    struct hed_layer *l = atomic_load_explicit(&hed_session.top, memory_order_acquire);

    for (; l; l = l->next)
        if (l->type->away)
            l->type->away(l, away, copy_ns);
}
