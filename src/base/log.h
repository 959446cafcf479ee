/* The log: lines on standard error, by component and level. Silent by default.
 *
 * It is not the trace (src/see/trace) and keeps nothing. Each line is one write(2), without a
 * buffer or a lock, so that lines stay intact even when threads and processes share the descriptor.
 */
#pragma once

#include <stdatomic.h>

struct hed_why;

enum hed_log_level {
    HED_LEVEL_OFF,
    HED_LEVEL_ERROR,
    HED_LEVEL_WARN,
    HED_LEVEL_INFO,
    HED_LEVEL_DEBUG,
};

/* X(token, name): the token is what hed_warn(TOKEN, ...) takes, the name what the user types. */
#define HED_LOG_MAP(X)      \
    X(BASE, "base")         \
    X(CORE, "core")         \
    X(FRONT, "front")       \
    X(TRACE, "trace")       \
    X(QUOTA, "quota")       \
    X(SCHED, "sched")       \
    X(CKPT, "ckpt")         \
    X(GPU, "gpu")           \
    X(NULL_BACKEND, "null") \
    X(REMOTE, "remote")     \
    X(CPU, "cpu")           \
    X(WIRE, "wire")         \
    X(SERVER, "server")     \
    X(CLI, "cli")           \
    X(PTX, "ptx")           \
    X(FATBIN, "fatbin")     \
    X(DRIVER, "driver")     \
    X(INJECT, "inject")     \
    X(PLUGIN, "plugin")     \
    X(CUDART, "cudart")     \
    X(FAST_LIBS, "fast-libs")

enum hed_log_comp {
#define HED_LOG_ENUM(token, name) HED_LOG_##token,
    HED_LOG_MAP(HED_LOG_ENUM)
#undef HED_LOG_ENUM
        HED_LOG_COUNT
};

/* Level of each component. Written by hed_log_setup only, read by the macros below. */
extern _Atomic unsigned char hed_log_levels[HED_LOG_COUNT];

/* Sets all levels from a text such as "warn,wire=debug": a level for every component that is not
 * named, and component=level pairs, in any order. NULL or "" is "off". On failure (HED_EINVAL,
 * with the reason) nothing changes. May be called at any time; threads see it soon.
 */
int hed_log_setup(const char *spec, struct hed_why *why);

/* Writes one line, whatever the level; use the macros. Control characters become '?', a long line
 * is cut. Keeps errno.
 */
void hed_log_write(enum hed_log_comp comp, enum hed_log_level level, const char *fmt, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* Would a line of this component and level be written? For guarding work beyond the arguments. */
#define hed_log_on(comp, level) HED_LOG_ON(HED_LOG_##comp, level)

/* hed_warn(GPU, "device %d is gone", n): arguments are evaluated only when the line is written. */
#define hed_error(comp, ...) HED_LOG_AT(HED_LOG_##comp, HED_LEVEL_ERROR, __VA_ARGS__)
#define hed_warn(comp, ...) HED_LOG_AT(HED_LOG_##comp, HED_LEVEL_WARN, __VA_ARGS__)
#define hed_info(comp, ...) HED_LOG_AT(HED_LOG_##comp, HED_LEVEL_INFO, __VA_ARGS__)
#define hed_debug(comp, ...) HED_LOG_AT(HED_LOG_##comp, HED_LEVEL_DEBUG, __VA_ARGS__)

/* Relaxed: the levels order nothing else, and a line more or less while they change is fine. */
#define HED_LOG_ON(comp, level)                                                                    \
    __builtin_expect(atomic_load_explicit(&hed_log_levels[comp], memory_order_relaxed) >= (level), \
                     0)

#define HED_LOG_AT(comp, level, ...)                 \
    do {                                             \
        if (HED_LOG_ON(comp, level))                 \
            hed_log_write(comp, level, __VA_ARGS__); \
    } while (0)
