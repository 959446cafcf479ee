/* The CPU GPU: the executor (driver/near/near.h) that is this computer.
 *
 *   cpu.c      the backend's type: settings, devices, the soft driver
 *   memory.c   addresses and what is behind them
 *   code.c     images into code: what is in them, and kernels when they are first launched
 *   lift.c     machine code: what is in it, and its kernels as PTX
 *   tier.c     compiles kernels of the baseline tier that are hot, in the background
 *   trial.c    changes of tier that a test asks for
 *   show.c     what other processes see of kernels
 *   compile.c  one kernel: from the cache (kernel/cache), else by a compiler
 *   compiler.c compilers, which are processes of their own
 *   start.c    starts such a process
 *   launch.c   a launch as the engine wants it
 *   children.c, device.c   what kernels launch, and what else they ask the device runtime for
 *   share.c, physical.c   memory that other processes see
 * What runs is in kernel/engine/.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/compiler.h"
#include "base/lock.h"
#include "driver/driver.h"
#include "kernel/cache.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"

struct hed_board;
struct hed_cpu_kernel;
struct hed_engine;
struct hed_address_sandbox;
struct hed_ptx_func;
struct hed_ptx_module;
struct hed_watch;

#define HED_TIER_THREADS_MAX 8

/* tier.c: the threads that compile hot kernels. */
struct hed_tiers {
    struct hed_lock lock; /* guards the other members */
    pthread_cond_t work;
    pthread_t threads[HED_TIER_THREADS_MAX + 1];
    unsigned most, started, idle;
    unsigned busy;  /* threads that compile kernels which are not huge */
    bool busy_huge; /* a thread compiles a huge one */
    bool stopping;
    struct hed_cpu_kernel *first; /* the queue */
};

/* perf_map.c */
struct hed_perf_map {
    bool is_wanted;       /* constant; if not, the rest is not used */
    struct hed_lock lock; /* guards the rest */
    pid_t pid;            /* whose file it is; 0: none yet */
    int fd;               /* or -1 */
};

struct hed_cpu {
    struct hed_near near;                /* first */
    struct hed_address_sandbox *sandbox; /* kernels are confined; or NULL */
    struct hed_engine *engine;
    struct hed_watch *watch; /* NULL: no limits of time */
    struct hed_cache *cache; /* NULL: none */
    bool claims;             /* no kernel is compiled that another process compiles already */
    bool baseline;           /* kernels start in the baseline tier */
    bool tiered;             /* and are compiled when they are hot */
    struct hed_tiers tiers;
    struct hed_board *board; /* what the process shows of its kernels; NULL: nothing */
    struct hed_perf_map perf_map;
    int device_count;
    char features[512];                               /* of this processor, for LLVM */
    struct hed_heap heaps[HED_PROFILE_DEVICES_MAX];   /* by device */
    struct hed_heap buffers[HED_PROFILE_DEVICES_MAX]; /* parameters of launches by kernels */
    struct hed_compilers compilers;
    _Atomic bool no_compiler;   /* that it was not found has been said */
    uint32_t compile_time;      /* seconds of processor time for a kernel; 0: no limit; constant */
    uint64_t compiler_memory;   /* bytes that a compiler may take; constant */
    uint64_t compiler_identity; /* of the library: changes when it does; constant */
    uint64_t own_identity;      /* the same of the file with this code */
};

extern const struct hed_executor hed_cpu_executor;

/* ---- memory.c -------------------------------------------------------------------------------- */

int hed_cpu_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base);
int hed_cpu_map(void *m, uint64_t at, uint64_t size);
void hed_cpu_unmap(void *m, uint64_t at, uint64_t size);
int hed_cpu_physical_create(void *m, int device, uint64_t size, struct hed_physical_memory **out);
void hed_cpu_physical_free(void *m, struct hed_physical_memory *p);
int hed_cpu_physical_map(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                         uint64_t size);
void hed_cpu_physical_discard(void *m, struct hed_physical_memory *p, uint64_t offset,
                              uint64_t size);
/* A second mapping of a part, anywhere, to be unmapped by munmap(); NULL if there is no memory. */
void *hed_cpu_physical_view(struct hed_physical_memory *p, uint64_t offset, uint64_t size);
int hed_cpu_share(void *m, uint64_t at, uint64_t size, struct hed_physical_memory **out);
int hed_cpu_physical_export(void *m, struct hed_physical_memory *p, const uint8_t *owner, int *fd);
int hed_cpu_physical_import(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out);
int hed_cpu_protect(void *m, uint64_t at, uint64_t size, bool readable, bool writable);
void hed_cpu_copy(void *m, uint64_t to, uint64_t from, size_t size);
void hed_cpu_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t count);

/* ---- code.c ---------------------------------------------------------------------------------- */

int hed_cpu_open(void *m, const struct hed_code_source *source, struct hed_code **out,
                 struct hed_buf *log, struct hed_why *why);
void hed_cpu_close(void *m, struct hed_code *code);
void hed_cpu_fill_vars(void *m, struct hed_code *code, const uint64_t *addresses,
                       const uint64_t *where);
CUresult hed_cpu_prepare(void *m, struct hed_code *code, uint32_t kernel, const uint32_t *block,
                         struct hed_why *why);

/* A kernel that is prepared. */
struct hed_cpu_kernel *hed_cpu_kernel_of(void *m, const struct hed_code *code, uint32_t kernel,
                                         const uint32_t *block);

/* ---- tier.c ---------------------------------------------------------------------------------- */

void hed_tier_init(struct hed_tiers *t);
/* Ends the threads; waits for kernels that are being compiled. */
void hed_tier_stop(struct hed_cpu *c);
/* In the child of a fork, where the threads do not exist. */
void hed_tier_forked(struct hed_cpu *c);

/* ---- compile.c ------------------------------------------------------------------------------- */

/* Notes the processor's features and the compiler's file, and makes the queue of hot kernels. After
 * `tiered` is set. */
void hed_cpu_compile_init(struct hed_cpu *c);

/* Compiled code, and where it comes from. */
struct hed_cpu_compiled {
    struct hed_ptx_loaded loaded;
    uint32_t compile_us; /* now, or when it was put into the cache */
    bool is_cached;
};

/* PTX as the compiler gets it: of a module, or what was lifted from a kernel's machine code. */
struct hed_cpu_text {
    char *data; /* owned */
    size_t size;
    struct hed_cache_key key; /* the hash of the text */
};
/* May a kernel be compiled? If not, nobody needs the texts. */
bool hed_cpu_compiles(const struct hed_cpu *c);
/* Copies the text. HED_ENOMEM. */
int hed_cpu_text_init(struct hed_cpu_text *t, const void *data, size_t size);
void hed_cpu_text_fini(struct hed_cpu_text *t);

/* Where a kernel comes from. */
struct hed_cpu_source {
    const struct hed_cpu_text *text;
    const char *entry;                 /* its name in the text */
    const struct hed_cache_key *image; /* the hash of the module's image, PTX or machine code */
};

/* What to do about another process that compiles the same kernel. */
enum hed_cpu_others {
    HED_CPU_OTHERS_WAITED,  /* wait for it, but not for ever */
    HED_CPU_OTHERS_FIRST,   /* HED_ESTATE: ask again later */
    HED_CPU_OTHERS_IGNORED, /* compile it, too */
};

/* A kernel, loaded. HED_ENOTSUP: it uses what cannot be compiled, or the compiler died of it;
 * HED_ENOTFOUND: there is no compiler. */
int hed_cpu_compile(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
                    enum hed_rows rows, enum hed_cpu_others others, struct hed_cpu_compiled *out,
                    struct hed_why *why);
/* If the program ends before it is compiled, it is compiled afterwards. */
void hed_cpu_want(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
                  enum hed_rows rows);

/* The same from the cache alone. HED_ENOTFOUND if it is not there. */
int hed_cpu_find_compiled(struct hed_cpu *c, const char *name, const struct hed_cache_key *image,
                          enum hed_rows rows, struct hed_cpu_compiled *out);

/* ---- perf_map.c ------------------------------------------------------------------------------ */

void hed_perf_map_init(struct hed_perf_map *m);
void hed_perf_map_fini(struct hed_perf_map *m);
/* Names the code at `base`, if the setting asks for it. */
void hed_perf_map_add(struct hed_perf_map *m, const char *name, const void *base, size_t size);

/* ---- launch.c -------------------------------------------------------------------------------- */

CUresult hed_cpu_launch(void *m, const struct hed_launch *l, struct hed_why *why);
