/* What a program that emits NVTX ranges and a profiler's injection library say to each other, as
 * far as heddle needs it. tests/e2e/sched/nvtx_facts.c compares the numbers with NVIDIA's headers
 * where those are installed.
 *
 *     program                                    library ($NVTX_INJECTION64_PATH)
 *       InitializeInjectionNvtx2(get_table) ------>
 *       <---- get_table(CALLBACKS)->get_functions(module, &functions, &count)
 *       <---- *functions[number] = its function, for each that it wants
 *       <---- returns 1
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HED_NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define HED_NVTX_INIT "InitializeInjectionNvtx2"
#define HED_NVTX_VERSION 3
#define HED_NVTX_NO_RANGE (-1) /* what ending a range answers that has not begun */

/* Types of messages. */
#define HED_NVTX_ASCII 1
#define HED_NVTX_UNICODE 2    /* wchar_t */
#define HED_NVTX_REGISTERED 3 /* what registering it has returned */

enum hed_nvtx_table {
    HED_NVTX_TABLE_CALLBACKS = 1,
    HED_NVTX_TABLE_VERSION = 3,
};

enum hed_nvtx_module {
    HED_NVTX_CORE = 1,
    HED_NVTX_CUDA = 2,
    HED_NVTX_OPENCL = 3,
    HED_NVTX_CUDART = 4,
    HED_NVTX_CORE2 = 5,
    HED_NVTX_SYNC = 6,
    HED_NVTX_MODULES
};

/* How many functions each module has; number 0 is counted and is none. */
enum {
    HED_NVTX_CORE_COUNT = 16,
    HED_NVTX_CUDA_COUNT = 9,
    HED_NVTX_OPENCL_COUNT = 15,
    HED_NVTX_CUDART_COUNT = 7,
    HED_NVTX_CORE2_COUNT = 16,
    HED_NVTX_SYNC_COUNT = 7,
    HED_NVTX_MOST = 16
};

/* Those that we call, or take. */
enum {
    HED_NVTX_MARK_EX = 1,              /* core: void (const struct hed_nvtx_event *) */
    HED_NVTX_MARK_A = 2,               /* core: void (const char *) */
    HED_NVTX_RANGE_PUSH_EX = 8,        /* core: int (const struct hed_nvtx_event *) */
    HED_NVTX_RANGE_PUSH_A = 9,         /* core: int (const char *) */
    HED_NVTX_RANGE_PUSH_W = 10,        /* core: int (const wchar_t *) */
    HED_NVTX_RANGE_POP = 11,           /* core: int (void) */
    HED_NVTX_DOMAIN_MARK_EX = 1,       /* core2: void (void *, const struct hed_nvtx_event *) */
    HED_NVTX_DOMAIN_RANGE_PUSH_EX = 4, /* core2: int (void *, const struct hed_nvtx_event *) */
    HED_NVTX_DOMAIN_RANGE_POP = 5,     /* core2: int (void *) */
    HED_NVTX_DOMAIN_REGISTER_A = 10,   /* core2: void *(void *, const char *) */
    HED_NVTX_DOMAIN_REGISTER_W = 11,   /* core2: void *(void *, const wchar_t *) */
    HED_NVTX_DOMAIN_CREATE_A = 12,     /* core2: void *(const char *) */
};

struct hed_nvtx_event;

typedef void (*hed_nvtx_function)(void); /* of whatever type its number says */
typedef int (*hed_nvtx_push_a)(const char *text);
typedef int (*hed_nvtx_pop_plain)(void);
typedef int (*hed_nvtx_push_ex)(void *domain, const struct hed_nvtx_event *event);
typedef int (*hed_nvtx_pop_domain)(void *domain);
typedef void *(*hed_nvtx_create_a)(const char *name);

struct hed_nvtx_callbacks {
    size_t size;
    /* 1: found. functions[number] is where the library writes its function's address. */
    int (*get_functions)(uint32_t module, hed_nvtx_function ***functions, unsigned *count);
};

struct hed_nvtx_version {
    size_t size;
    uint32_t version;
    uint32_t reserved;
    void (*set_library_version)(uint32_t version);
};

struct hed_nvtx_event {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};
