/* Settings: only this room reads HEDDLE_* and the settings file.
 *
 * A setting comes from the environment (HEDDLE_TRACE), else from the user's file (trace = ...),
 * else from the machine's file, else from its default. The user's file is $HEDDLE_CONFIG, else
 * $XDG_CONFIG_HOME/heddle/heddle.conf, else ~/.config/heddle/heddle.conf; the machine's file is
 * HED_CONFIG_SYSTEM. Only $HEDDLE_CONFIG must exist and be readable; one of the others that cannot
 * be read is a warning. Unknown keys, unknown HEDDLE_* variables and values that make no sense are
 * refused, with the reason.
 *
 * A program that has more rights than the user who starts it (setuid, setgid, file capabilities:
 * AT_SECURE) takes settings from the machine's file alone. Its environment and the user's file
 * could make it load a library or write a file with rights that the user does not have. Layers of
 * others (`plugins`) are not loaded into it at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The machine's file must belong to root, and nobody else may be able to change it. */
#define HED_CONFIG_SYSTEM "/etc/heddle/heddle.conf"

#define HED_CONFIG_TEXT_MAX 4096    /* bytes of one value, the 0 included */
#define HED_CONFIG_FILE_MAX 1048576 /* bytes of a settings file */

/* X(kind, key, default, help). Kinds: TEXT; SIZE (bytes: 64k, 1M); NUMBER; WORD (one of a few). */
#define HED_SETTINGS(X)                                                                          \
    X(TEXT, gpu, "auto", "where work runs: auto, gpu, cpu[:DEVICES], null or an address")        \
    X(TEXT, layers, "", "layers, top first, instead of those that settings turn on")             \
    X(TEXT, plugins, "", "layers of others: /path/layer.so[:OPTIONS],...")                       \
    X(TEXT, driver, "", "full path of NVIDIA's libcuda.so.1")                                    \
    X(TEXT, nvml, "", "full path of NVIDIA's libnvidia-ml.so.1")                                 \
    X(TEXT, cupti, "", "full path of libcupti.so, for heddle run --inject")                      \
    X(TEXT, log, "", "what to log on standard error: level[,component=level...]")                \
    X(TEXT, trace, "", "file to write a trace to; turns the trace layer on")                     \
    X(SIZE, trace_buffer, "1M", "memory for the trace of each thread: 64k to 16M")               \
    X(WORD, trace_full, "block", "if the disk is too slow for the trace: block or drop")         \
    X(WORD, trace_repeats, "count", "questions asked again: count them, or record all")          \
    X(SIZE, trace_data, "0", "bytes of copied data to keep in each trace record")                \
    X(NUMBER, trace_owner, "0", "process that gets the trace's plain name (set by heddle run)")  \
    X(TEXT, fault, "", "calls that fail: NAME:N:ERROR[,...]; turns the fault layer on")          \
    X(WORD, control, "no", "let the program steer traces and faults (heddle.h): yes or no")      \
    X(TEXT, sched, "", "share GPUs: on, or prio=...,share=... (heddle-sched(1))")                \
    X(NUMBER, sched_family, "0", "programs of one family have one share (set by heddled)")       \
    X(SIZE, mem, "0", "bytes the program can use on each device; 0: no limit")                   \
    X(TEXT, mem_group, "", "programs of the same group share one limit, mem")                    \
    X(TEXT, meet_dir, "", "folder where the programs of a group of users meet")                  \
    X(WORD, lift, "no", "machine code that the GPU does not run becomes PTX: yes or no")         \
    X(WORD, cudart, "auto", "CUDA runtime of programs: auto (heddle's if none), own, nvidia")    \
    X(WORD, fast_libs, "no", "matrix products by OpenBLAS on the CPU GPU: yes or no")            \
    X(WORD, fail_on_refusal, "no", "heddle run fails if heddle refused something: yes or no")    \
    X(TEXT, refusals, "", "file for what heddle refuses (set by heddle run)")                    \
    X(NUMBER, cpu_threads, "0", "threads that run kernels on the CPU GPU; 0: one per core")      \
    X(WORD, cpu_codegen, "tiered", "how the CPU GPU runs kernels: tiered, warp or baseline")     \
    X(WORD, cpu_after, "on", "hot kernels are compiled after the program's end: on or off")      \
    X(NUMBER, cpu_after_time, "600", "seconds that this may take")                               \
    X(NUMBER, cpu_after_most, "200", "kernels that are compiled then, at most")                  \
    X(TEXT, cpu_after_lock, "", "file that is locked until then (set by heddle cpu warm)")       \
    X(WORD, cpu_perf_map, "no", "tell perf the names of compiled kernels: yes or no")            \
    X(WORD, cpu_code, "auto", "code that the CPU GPU runs if there is both: auto, ptx or sass")  \
    X(NUMBER, kernel_time, "0", "seconds that a kernel may run on the CPU GPU; 0: no limit")     \
    X(NUMBER, compile_time, "0", "seconds of processor time to compile one kernel; 0: no limit") \
    X(WORD, cpu_confine, "no", "kernels on the CPU GPU reach the GPU's memory only: yes or no")  \
    X(TEXT, cache, "", "folder for compiled kernels, not ~/.cache/heddle/kernels")               \
    X(WORD, cache_trust, "user", "whose compiled kernels are run: the user's, or the group's")   \
    X(SIZE, cache_size, "1G", "bytes of compiled kernels to keep; 0: no cache")                  \
    X(TEXT, tls_ca, "", "tcp: file with the certificate of the authority (CA)")                  \
    X(TEXT, tls_cert, "", "tcp: file with the client's certificate")                             \
    X(TEXT, tls_key, "", "tcp: file with the key of that certificate")                           \
    X(TEXT, tls_token, "", "tcp: token for a server that accepts tokens, sent over TLS")         \
    X(WORD, insecure, "no", "tcp without TLS, so that others can read it: yes or no")            \
    X(NUMBER, connect_timeout, "5000", "milliseconds to wait for a server: 1 to 600000")         \
    X(NUMBER, server_timeout, "10000", "milliseconds without a sign of life from a server")      \
    X(WORD, orders, "trusted", "move when a server says so: trusted (security.md), on or off")   \
    X(TEXT, perf, "", "optimisations to turn off, separated by commas: no_counter")

struct hed_config {
#define HED_CONFIG_TEXT(key) char key[HED_CONFIG_TEXT_MAX];
#define HED_CONFIG_WORD(key) char key[32];
#define HED_CONFIG_SIZE(key) uint64_t key;
#define HED_CONFIG_NUMBER(key) uint64_t key;
#define HED_CONFIG_FIELD(kind, key, value, help) HED_CONFIG_##kind(key)
    HED_SETTINGS(HED_CONFIG_FIELD)
#undef HED_CONFIG_FIELD
#undef HED_CONFIG_TEXT
#undef HED_CONFIG_WORD
#undef HED_CONFIG_SIZE
#undef HED_CONFIG_NUMBER
    struct hed_why warning; /* what hed_config_load ignored, for people; empty: nothing */
};

/* The names that `gpu` and `layers` can have, NULL at the end: those in src/registry.c, which only
 * the library has, "auto", and those of plug-ins ("cpu"). A test keeps the two lists equal. After
 * the name of a plug-in there can be ':' and something that the plug-in understands. */
extern const char *const hed_config_gpus[];
extern const char *const hed_config_layers[];

/* The names that `perf` may have, NULL at the end: each turns one optimisation off. */
extern const char *const hed_config_perfs[];

/* Is `name` in the list of `perf`? */
bool hed_config_perf_has(const struct hed_config *c, const char *name);

/* Does `gpu` name this place, with or without something after it? "cpu:h100" names "cpu". */
bool hed_config_gpu_is(const char *gpu, const char *name);

/* Is it the address of a server: "unix:PATH", "shm:PATH", "tcp://HOST:PORT" or "vm:"? */
bool hed_config_gpu_is_address(const char *gpu);

/* Sets all defaults. */
void hed_config_init(struct hed_config *c);

/* Loads the defaults, then the files, then the environment `env` ("NAME=value" strings, NULL at the
 * end). The caller must show c->warning. */
int hed_config_load(struct hed_config *c, char *const *env, struct hed_why *why);

/* The same with other places than this machine's, for tests. */
struct hed_config_places {
    const char *system; /* path of the machine's file */
    uid_t owner;        /* whose file it must be */
    bool secure;        /* read nothing but that file */
};

int hed_config_load_from(struct hed_config *c, const struct hed_config_places *p, char *const *env,
                         struct hed_why *why);

/* Sets one setting from text. HED_ENOTFOUND: no such key; HED_EINVAL, HED_ERANGE: bad value. */
int hed_config_set(struct hed_config *c, const char *key, const char *value, struct hed_why *why);

/* Reads the text of a settings file: `key = value` lines, `#` comments, blank lines. Messages
 * contain `name` and the line's number. */
int hed_config_parse(struct hed_config *c, const char *text, size_t size, const char *name,
                     struct hed_why *why);

/* The key, default and help of setting i; false after the last. */
bool hed_config_describe(size_t i, const char **key, const char **value, const char **help);
