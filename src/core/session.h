/* The session: this process's chain of layers, built by its first call.
 *
 *     (no chain) --first call--> running --exit--> running, layers told to finish
 *          ^                        |
 *          +----- fork, in the child+
 *
 * Invariants:
 * 1. top is NULL until the chain is complete, and then never changes in this process. It is never
 *    freed: other threads may be anywhere in it.
 * 2. When the chain cannot be built, top is a layer that answers every call with one error and the
 *    reason is in the log; the program is never ended.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/layer.h"

struct hed_session {
    _Atomic(struct hed_layer *) top;
    _Atomic bool recording;        /* switched by heddle_record(); on at first */
    _Atomic bool soft_initialized; /* a soft backend's cuInit has succeeded */
};

HED_EXPORT extern struct hed_session hed_session;

/* Settings for building the chain, instead of those of the environment. They must stay valid, and
 * be given before the first call. */
void hed_session_settings(const struct hed_config *config);

/* Builds the chain once, and returns its top layer. */
HED_EXPORT struct hed_layer *hed_session_start(void);

/* The top layer. */
static inline struct hed_layer *
hed_top(void)
{
    /* Acquire: pairs with the release in hed_session_start, so the chain is seen complete. */
    struct hed_layer *top = atomic_load_explicit(&hed_session.top, memory_order_acquire);

    return __builtin_expect(top != NULL, 1) ? top : hed_session_start();
}

/* What the settings ask for, for a process that starts others and makes no call itself. */
struct hed_session_plan {
    bool driver;   /* the calls go to NVIDIA's driver */
    bool cpu;      /* they go to the CPU GPU */
    bool shares;   /* a layer works with files or with other processes (trace, sched, ...) */
    bool no_cache; /* compiled kernels are not kept */
    char cache[HED_CONFIG_TEXT_MAX]; /* the folder for them; "" for the user's */
};
/* Reads the settings without loading anything. HED_E... and the reason if they are wrong. */
HED_EXPORT int hed_session_look(struct hed_session_plan *out, struct hed_why *why);

/* The settings of this process, and the layers that they ask for: top first, separated by commas.
 * The list is at most HED_CONFIG_TEXT_MAX bytes long. */
int hed_session_load(struct hed_config *c, struct hed_why *why);
void hed_session_layers(const struct hed_config *c, char *out, size_t size);

/* Gives a setting a value, whatever the environment and the file say. Before the first call. */
HED_EXPORT void hed_session_override(const char *key, const char *value);

/* Before the first call, and before the settings are read: for a process that serves others. With
 * gpu = auto, a guest's host is not asked for a GPU, because clients can ask it themselves.
 * `control` is not looked at: it is for the program, which has these layers on its own side. Nor is
 * `cpu_after`: such a process leaves none behind, also where nothing confines it. */
HED_EXPORT void hed_session_stay_here(void);

/* Who ends this process if a backend asks for it. Set before the first call. */
HED_EXPORT void hed_session_on_give_up(void (*handler)(const char *why));
/* A backend cannot keep within its limits: asks for the end of the process. False if nobody ends
 * it, as in a program of the user. */
HED_EXPORT bool hed_session_give_up(const char *why);

/* Who knows how many bytes of a device other processes use, if this one cannot find out about them.
 * Set before the first call. */
HED_EXPORT void hed_session_on_others(uint64_t (*handler)(int device));
/* For a backend: the answer to that, or 0. May wait for another process. */
HED_EXPORT uint64_t hed_session_others(int device);

/* For a process that cannot start others: sockets at which kernels are compiled
 * (kernel/forkserver/forkserver.h). Given before a kernel is compiled. */
#define HED_SESSION_COMPILERS_MAX 16
HED_EXPORT void hed_session_give_compilers(const int *sockets, unsigned count);
/* For a backend: writes them to `sockets`, at most `room`, and returns how many there are. */
HED_EXPORT unsigned hed_session_compilers(int *sockets, unsigned room);

/* The lowest layer of the chain. */
HED_EXPORT struct hed_layer *hed_session_backend(void);

/* "trace>gpu" */
HED_EXPORT const char *hed_session_chain(void);

/* Why the chain could not be built, after the first call; "" if it was. */
const char *hed_session_failure(void);

/* Passes a note to every layer. text may be NULL. 0, or the error (HED_E...) of the first layer
 * that refuses it; the others have got it, too. */
int hed_session_note(enum hed_note note, const char *text);

/* Asks the layers, top first, for something that the program wants of one of them. With the reason:
 * HED_ENOTSUP if no layer does that, HED_ESTATE if there is no chain. */
int hed_session_control(struct hed_control *c, struct hed_why *why);

/* For a backend: tells every layer that the program has left its GPUs, or is back (layer.h). */
HED_EXPORT void hed_session_tell_away(bool away, uint64_t copy_ns);

/* Is the program's recording on? */
static inline bool
hed_session_recording(void)
{
    /* Relaxed: switching is a request, not a barrier. */
    return atomic_load_explicit(&hed_session.recording, memory_order_relaxed);
}
