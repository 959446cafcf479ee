/* NVIDIA's private tables, by which its runtime and libraries talk to the driver beside the API.
 *
 * A table is an array of words that never moves. The first word is the table's size in bytes, the
 * others are functions. (CONTEXT_LOCAL_STORAGE has no size and ends with NULL.) Readers check that
 * the size is large enough, so a larger table is safe unless they call what is new in it. The
 * purpose of most slots is unknown: those are counted and logged once by name. In tables that a
 * runtime cannot do without they return 0, in the others NOT_SUPPORTED.
 */
#include "driver/table/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/stats.h"

#define WORDS_MOST 100 /* in one table */

/* The tables that have unknown slots. */
enum table {
    INTERFACE,
    HOOKS,
    TLS,
    CHECKS,
    INTEGRITY,
    LOG,
    TOOLS,
    MODULES,
    LAYOUT,
    PROFILER,
    TABLES
};

static const struct {
    const char *name;
    CUresult unknown; /* the answer of an unknown slot */
} known[TABLES] = {
    [INTERFACE] = {"CUDART_INTERFACE", CUDA_SUCCESS},
    [HOOKS] = {"TOOLS_RUNTIME_CALLBACK_HOOKS", CUDA_SUCCESS},
    [TLS] = {"TOOLS_TLS", CUDA_SUCCESS},
    [CHECKS] = {"CONTEXT_CHECKS", CUDA_SUCCESS},
    [INTEGRITY] = {"INTEGRITY_CHECK", CUDA_SUCCESS},
    [LOG] = {"ERROR_LOG", CUDA_SUCCESS},
    [TOOLS] = {"21318C60", CUDA_SUCCESS},
    [MODULES] = {"6E163FBE", CUDA_SUCCESS},
    [LAYOUT] = {"1734DC26", CUDA_ERROR_NOT_SUPPORTED},
    [PROFILER] = {"7CB63F9B", CUDA_ERROR_NOT_SUPPORTED},
};

static uintptr_t
unknown_table(enum table table, unsigned slot, uintptr_t a, uintptr_t b, uintptr_t c)
{
    static _Atomic bool named[TABLES][WORDS_MOST];

    hed_stats_add(&hed_stats.unsupported_calls, 1);
    /* Relaxed: at worst a line is logged twice. */
    if (!atomic_exchange_explicit(&named[table][slot], true, memory_order_relaxed))
        hed_warn(DRIVER, "slot %u of export table %s is not known: (%#llx, %#llx, %#llx)", slot,
                 known[table].name, (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)c);
    return known[table].unknown;
}

/* One function for each unknown slot, so that the log can name it. */
#define UNKNOWN(table, n)                                               \
    static uintptr_t table##_##n(uintptr_t a, uintptr_t b, uintptr_t c) \
    {                                                                   \
        return unknown_table(table, n, a, b, c);                        \
    }
#define SLOT(table, n) (hed_slot) table##_##n,

/* clang-format off */
#define TEN(X, t, d)                                            \
    X(t, d##0) X(t, d##1) X(t, d##2) X(t, d##3) X(t, d##4)      \
    X(t, d##5) X(t, d##6) X(t, d##7) X(t, d##8) X(t, d##9)
#define INTERFACE_UNKNOWN(X)                                    \
    X(INTERFACE, 4) X(INTERFACE, 5) X(INTERFACE, 9) X(INTERFACE, 11)
#define HOOKS_UNKNOWN(X)                                        \
    X(HOOKS, 1) X(HOOKS, 3) X(HOOKS, 4) X(HOOKS, 5)
#define CHECKS_LAST(X)                                          \
    X(CHECKS, 4) X(CHECKS, 5) X(CHECKS, 6) X(CHECKS, 7)         \
    X(CHECKS, 8) X(CHECKS, 9) X(CHECKS, 10) X(CHECKS, 11)       \
    X(CHECKS, 12) X(CHECKS, 13) X(CHECKS, 14)
#define TOOLS_FIRST(X)                                          \
    X(TOOLS, 5) X(TOOLS, 6) X(TOOLS, 7) X(TOOLS, 8) X(TOOLS, 9) \
    TEN(X, TOOLS, 1) TEN(X, TOOLS, 2)                           \
    X(TOOLS, 30) X(TOOLS, 31) X(TOOLS, 32) X(TOOLS, 33)         \
    X(TOOLS, 34) X(TOOLS, 35) X(TOOLS, 36) X(TOOLS, 37)         \
    X(TOOLS, 38)
#define TOOLS_BETWEEN(X)                                        \
    TEN(X, TOOLS, 4) X(TOOLS, 50)
#define TOOLS_LAST(X)                                           \
    X(TOOLS, 52) X(TOOLS, 53) X(TOOLS, 54) X(TOOLS, 55)         \
    X(TOOLS, 56) X(TOOLS, 57) X(TOOLS, 58) X(TOOLS, 59)         \
    TEN(X, TOOLS, 6) TEN(X, TOOLS, 7) TEN(X, TOOLS, 8)          \
    X(TOOLS, 90) X(TOOLS, 91) X(TOOLS, 92) X(TOOLS, 93)         \
    X(TOOLS, 94)
#define MODULES_FIRST(X)                                        \
    X(MODULES, 1) X(MODULES, 2) X(MODULES, 3) X(MODULES, 4)     \
    X(MODULES, 5) X(MODULES, 6)
#define MODULES_LAST(X)                                         \
    X(MODULES, 8) X(MODULES, 9) TEN(X, MODULES, 1)              \
    TEN(X, MODULES, 2) TEN(X, MODULES, 3) TEN(X, MODULES, 4)    \
    TEN(X, MODULES, 5) TEN(X, MODULES, 6) TEN(X, MODULES, 7)    \
    TEN(X, MODULES, 8) TEN(X, MODULES, 9)
#define LAYOUT_LAST(X)                                           \
    X(LAYOUT, 5) X(LAYOUT, 6) X(LAYOUT, 7) X(LAYOUT, 8)         \
    X(LAYOUT, 9) TEN(X, LAYOUT, 1) TEN(X, LAYOUT, 2) TEN(X, LAYOUT, 3)
#define PROFILER_ALL(X)                                         \
    X(PROFILER, 1) X(PROFILER, 2) X(PROFILER, 3)                \
    X(PROFILER, 4) X(PROFILER, 5) X(PROFILER, 6)                \
    X(PROFILER, 7) X(PROFILER, 8) X(PROFILER, 9)                \
    TEN(X, PROFILER, 1) TEN(X, PROFILER, 2)                     \
    TEN(X, PROFILER, 3) TEN(X, PROFILER, 4)                     \
    TEN(X, PROFILER, 5) X(PROFILER, 60) X(PROFILER, 61)         \
    X(PROFILER, 62) X(PROFILER, 63) X(PROFILER, 64)             \
    X(PROFILER, 65) X(PROFILER, 66)
/* clang-format on */

INTERFACE_UNKNOWN(UNKNOWN)
HOOKS_UNKNOWN(UNKNOWN)
UNKNOWN(TLS, 1)
UNKNOWN(CHECKS, 1)
CHECKS_LAST(UNKNOWN)
UNKNOWN(INTEGRITY, 2)
UNKNOWN(TOOLS, 1)
UNKNOWN(TOOLS, 2)
UNKNOWN(TOOLS, 3)
TOOLS_FIRST(UNKNOWN)
TOOLS_BETWEEN(UNKNOWN)
TOOLS_LAST(UNKNOWN)
MODULES_FIRST(UNKNOWN)
MODULES_LAST(UNKNOWN)
UNKNOWN(LAYOUT, 1)
UNKNOWN(LAYOUT, 2)
UNKNOWN(LAYOUT, 3)
LAYOUT_LAST(UNKNOWN)
PROFILER_ALL(UNKNOWN)

/* The first word: the size in bytes of a table of `words` words. */
#define SIZE(words) (hed_slot)(uintptr_t)((words) * sizeof(hed_slot))

const hed_slot hed_table_interface[13] = {
    SIZE(13),
    (hed_slot)hed_slot_load_wrapper,
    (hed_slot)hed_slot_primary,
    (hed_slot)hed_slot_graphics_device,
    (hed_slot)INTERFACE_4,
    (hed_slot)INTERFACE_5,
    (hed_slot)hed_slot_load_wrapper_with,
    (hed_slot)hed_slot_module_gone,
    (hed_slot)hed_slot_load_header_with,
    (hed_slot)INTERFACE_9,
    NULL,
    (hed_slot)INTERFACE_11,
    (hed_slot)hed_slot_load_compilers,
};

static const hed_slot hooks[7] = {
    SIZE(7),           (hed_slot)HOOKS_1, (hed_slot)hed_slot_hook_calls,  (hed_slot)HOOKS_3,
    (hed_slot)HOOKS_4, (hed_slot)HOOKS_5, (hed_slot)hed_slot_hook_events,
};

static const hed_slot tls[4] = {SIZE(4), (hed_slot)TLS_1, (hed_slot)hed_slot_current, NULL};

static const hed_slot storage[4] = {
    (hed_slot)hed_slot_storage_put,
    (hed_slot)hed_slot_storage_remove,
    (hed_slot)hed_slot_storage_get,
    NULL,
};

static const hed_slot checks[15] = {SIZE(15), (hed_slot)CHECKS_1, (hed_slot)hed_slot_check_context,
                                    (hed_slot)hed_slot_check_nothing, CHECKS_LAST(SLOT)};

const hed_slot hed_table_integrity[3] = {
    SIZE(3),
    (hed_slot)hed_slot_integrity,
    (hed_slot)INTEGRITY_2,
};

static const hed_slot error_log[3] = {SIZE(3), (hed_slot)hed_slot_log,
                                      (hed_slot)hed_slot_log_device};

/* clang-format off */
static const hed_slot tools[95] = {
    SIZE(95),
    (hed_slot)TOOLS_1,
    (hed_slot)TOOLS_2,
    (hed_slot)TOOLS_3,
    (hed_slot)hed_slot_context_id,
    TOOLS_FIRST(SLOT)
    (hed_slot)hed_slot_stream_id,
    TOOLS_BETWEEN(SLOT)
    (hed_slot)hed_slot_stream,
    TOOLS_LAST(SLOT)
};
/* clang-format on */

static const hed_slot modules[100] = {
    SIZE(100), MODULES_FIRST(SLOT)(hed_slot) hed_slot_each_function, MODULES_LAST(SLOT)};

static const hed_slot creation[2] = {SIZE(2), (hed_slot)hed_slot_create_context};

static const hed_slot layout[40] = {
    SIZE(40),           (hed_slot)LAYOUT_1,        (hed_slot)LAYOUT_2,
    (hed_slot)LAYOUT_3, (hed_slot)hed_slot_layout, LAYOUT_LAST(SLOT)};

/* CUPTI cannot even say its version without this table, and JAX refuses to start without that
 * version. CUPTI's other tables are not here, so that it refuses whoever subscribes to it. The size
 * is that of NVIDIA's driver 580: CUPTI 13.2 calls slot 67 if there is one, and crashes if that
 * fails. */
static const hed_slot profiler[67] = {SIZE(67), PROFILER_ALL(SLOT)};

/* Tables by the bytes of their ids, as they are in memory. An id that is not here is unknown. */
static const struct {
    unsigned char id[16];
    const hed_slot *table;
} tables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     hed_table_interface},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     hooks},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     tls},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     storage},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     checks},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
      0xf2},
     hed_table_integrity},
    {{0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d,
      0xd9},
     error_log},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     tools},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     modules},
    {{0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72,
      0x86},
     creation},
    {{0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b,
      0xca},
     layout},
    {{0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42, 0xa4, 0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed,
      0x7f},
     profiler},
};

/* "CUDA_ERROR_INVALID_VALUE" for an unknown id: measured. NVIDIA's runtime asks for the first table
 * before cuInit. */
static CUresult
soft_cuGetExportTable(struct hed_layer *self, struct hed_cuGetExportTable *a)
{
    (void)self;
    if (!a->ppExportTable || !a->pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (memcmp(tables[i].id, a->pExportTableId, sizeof tables[i].id) == 0) {
            *a->ppExportTable = tables[i].table;
            return CUDA_SUCCESS;
        }

    const unsigned char *id = (const unsigned char *)a->pExportTableId;
    char text[33] = "";

    for (int i = 0; i < 16; i++)
        (void)snprintf(text + (ptrdiff_t)2 * i, 3, "%02x", id[i]);
    hed_info(DRIVER, "a library asks for an unknown export table: %s", text);
    return CUDA_ERROR_INVALID_VALUE;
}

const struct hed_cuda_ops hed_calls_table = {
    .cuGetExportTable = soft_cuGetExportTable,
};
