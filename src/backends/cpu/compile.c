/* Gets a kernel from the cache or from the compiler. See cpu.h. */
#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "kernel/cache.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"

#define LEVEL 2                          /* of optimisation */
#define MEMORY_LEAST ((uint64_t)1 << 30) /* bytes, of a compiler */
#define MEMORY_MOST ((uint64_t)8 << 30)
#define TIME_MOST 3600 /* seconds of processor time for a kernel, if the settings have no limit */
/* The engine's threads keep all cores busy while kernels run, so a compiler that ran on idle cores
 * only would never finish. It gets about a quarter of a core then. */
#define NICENESS 5
/* A program that waits for another one's compiler looks so often whether it is done. The other may
 * be stopped, so it is not waited for longer than that. */
#define OTHERS_LOOK_MS 100
#define OTHERS_PATIENCE_MS 120000

/* ---- the compiler ---------------------------------------------------------------------------- */

/* The compiler is beside the library that this code is in. */
static void
find_compiler(struct hed_cpu *c)
{
    char path[PATH_MAX];
    Dl_info info;

    if (!dladdr((const void *)&hed_cpu_compile_init, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, path))
        return;
    c->own_identity = hed_file_identity(path);

    char *slash = strrchr(path, '/');

    if (!slash)
        return;
    slash[1] = 0;

    const size_t size = sizeof c->compilers.path;
    int n = snprintf(c->compilers.path, size, "%scompiler-llvm.so", path);

    if (n > 0 && (size_t)n < size)
        c->compiler_identity = hed_file_identity(c->compilers.path);
    n = snprintf(c->compilers.path, size, "%sheddle-compiler", path);
    if (n < 0 || (size_t)n >= size)
        c->compilers.path[0] = 0;
}

/* The most memory that one compiler may take: half of the machine's, within bounds. */
static uint64_t
compiler_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const uint64_t all = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;

    return hed_clamp(all / 2, MEMORY_LEAST, MEMORY_MOST);
}

void
hed_cpu_compile_init(struct hed_cpu *c)
{
    hed_tier_init(&c->tiers);
    /* One more for a huge kernel. What programs wait for is as urgent as they are. */
    hed_compilers_init(&c->compilers, c->tiers.most + 1, c->tiered ? NICENESS : 0);
    c->compiler_memory = compiler_memory();
    hed_ptx_features(c->features, sizeof c->features);
    find_compiler(c);
}

/* ---- texts ----------------------------------------------------------------------------------- */

bool
hed_cpu_compiles(const struct hed_cpu *c)
{
    return !c->baseline || c->tiered;
}

int
hed_cpu_text_init(struct hed_cpu_text *t, const void *data, size_t size)
{
    t->data = malloc(size + 1);
    if (!t->data)
        return HED_ENOMEM;
    memcpy(t->data, data, size);
    t->data[size] = 0;
    t->size = size;
    hed_hash_of(data, size, t->key.hash);
    return 0;
}

void
hed_cpu_text_fini(struct hed_cpu_text *t)
{
    free(t->data);
    *t = (struct hed_cpu_text){.data = NULL};
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* `code` is the hash of the module's PTX or machine code. */
static struct hed_cache_key
kernel_cache_key(const struct hed_cpu *c, const struct hed_cache_key *code, const char *kernel,
                 const struct hed_ptx_options *o)
{
    const struct hed_cache_origin origin = {.code = code->hash,
                                            .kernel = kernel,
                                            .features = c->features,
                                            .compiler = c->compiler_identity,
                                            .abi = HED_PTX_ABI,
                                            .rows = o->rows,
                                            .level = (uint32_t)o->level,
                                            .check_alignment = o->check_alignment,
                                            .confined = o->confined};

    return hed_cache_key_of(&origin);
}

static int
load_object(struct hed_cpu *c, const char *name, const struct hed_buf *object,
            struct hed_ptx_loaded *out, struct hed_why *why)
{
    const int err =
        hed_ptx_load(object->data, object->size, hed_engine_symbols, HED_ENGINE_TABLES, out, why);

    if (!err)
        hed_perf_map_add(&c->perf_map, name, out->base, out->size);
    return err;
}

/* Tells once what becomes of a program whose compiler fails. */
static void
report_compiler_failure(struct hed_cpu *c, const char *name, int err, bool died, const char *why)
{
    char room[HED_DEMANGLED_MAX];

    if (died)
        hed_warn(CPU, "kernel %.300s stays in the baseline tier: %s",
                 hed_demangle(name, room, sizeof room), why);
    /* Any thread may be the first; it is said once. */
    else if (err == HED_ENOTFOUND && c->tiered &&
             !atomic_exchange_explicit(&c->no_compiler, true, memory_order_relaxed))
        hed_warn(CPU, "%s: all kernels stay in the baseline tier, which is slower", why);
}

static int
compile_elsewhere(struct hed_cpu *c, const struct hed_compiler_job *job, const char *name,
                  struct hed_buf *object, uint32_t *us, struct hed_why *why)
{
    const uint64_t begin = hed_now_ns();
    bool died = false;

    hed_why_set(why, "%s", "");
    hed_debug(CPU, "kernel %s: asks the compiler", name);

    const int err = hed_compilers_compile(&c->compilers, job, object, &died, why);

    *us = (uint32_t)hed_min((hed_now_ns() - begin) / 1000, UINT32_MAX);
    if (err)
        report_compiler_failure(c, name, err, died, why->text);
    else if (*why->text)
        hed_info(CPU, "%s: kernel %s has a slower shape", why->text, name);
    if (!err)
        hed_debug(CPU, "kernel %s compiled in %u us", name, *us);
    return err;
}

static struct hed_ptx_options
compile_options(const struct hed_cpu *c, enum hed_rows rows)
{
    return (struct hed_ptx_options){
        .rows = rows,
        .level = LEVEL,
        .check_alignment = true,
        .confined = c->sandbox != NULL,
        .features = c->features,
    };
}

/* Loads the object with this key, and appends its bytes. */
static int
find_object(struct hed_cpu *c, const char *name, const struct hed_cache_key *key,
            struct hed_buf *object, struct hed_cpu_compiled *out)
{
    if (!hed_cache_get(c->cache, key, object, &out->compile_us) ||
        load_object(c, name, object, &out->loaded, NULL) != 0)
        return HED_ENOTFOUND;
    out->is_cached = true;
    hed_debug(CPU, "kernel %s found in the cache", name);
    return 0;
}

int
hed_cpu_find_compiled(struct hed_cpu *c, const char *name, const struct hed_cache_key *image,
                      enum hed_rows rows, struct hed_cpu_compiled *out)
{
    const struct hed_ptx_options o = compile_options(c, rows);
    const struct hed_cache_key key = kernel_cache_key(c, image, name, &o);
    struct hed_buf object;
    int err;

    hed_buf_init(&object, HED_CACHE_OBJECT_MAX);
    err = find_object(c, name, &key, &object, out);
    hed_buf_fini(&object);
    return err;
}

static struct hed_compiler_job
describe_job(const struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
             enum hed_rows rows)
{
    const struct hed_ptx_options o = compile_options(c, rows);

    return (struct hed_compiler_job){
        .text = from->text,
        .entry = from->entry,
        .features = c->features,
        .rows = rows,
        .level = o.level,
        .check_alignment = o.check_alignment,
        .confined = o.confined,
        .seconds = c->compile_time ? c->compile_time : TIME_MOST,
        .memory = c->compiler_memory,
        .key = kernel_cache_key(c, from->image, name, &o),
    };
}

void
hed_cpu_want(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
             enum hed_rows rows)
{
    const struct hed_compiler_job job = describe_job(c, from, name, rows);

    if (from->text->size)
        hed_compilers_want(&c->compilers, &job);
}

static void
store_object(struct hed_cpu *c, const struct hed_compiler_job *job, const char *name,
             const struct hed_buf *object, uint32_t compile_us)
{
    const struct hed_cache_about about = {.name = name,
                                          .features = c->features,
                                          .version = HED_VERSION,
                                          .compiler = c->compiler_identity,
                                          .abi = HED_PTX_ABI,
                                          .rows = job->rows,
                                          .compile_us = compile_us};

    hed_cache_put(c->cache, &job->key, &about, object->data, object->size);
}

/* What was compiled after a program's end has a key of the PTX, also where that was lifted from
 * machine code: the fork server believes only what it sees. From now on it is found without lifting
 * (kernel/forkserver/after.c). */
static int
find_by_text(struct hed_cpu *c, const struct hed_compiler_job *job, const char *name,
             struct hed_cpu_compiled *out)
{
    const struct hed_ptx_options o = compile_options(c, job->rows);
    const struct hed_cache_key key = kernel_cache_key(c, &job->text->key, job->entry, &o);
    struct hed_buf object;
    int err;

    if (!job->text->size || memcmp(&key, &job->key, sizeof key) == 0)
        return HED_ENOTFOUND;
    hed_buf_init(&object, HED_CACHE_OBJECT_MAX);
    err = find_object(c, name, &key, &object, out);
    if (!err)
        store_object(c, job, name, &object, out->compile_us);
    hed_buf_fini(&object);
    return err;
}

/* Compiles the kernel, and stores it. */
static int
compile_and_store(struct hed_cpu *c, const struct hed_compiler_job *job, const char *name,
                  struct hed_cpu_compiled *out, struct hed_why *why)
{
    uint32_t compile_us = 0;
    struct hed_buf object;
    int err;

    hed_buf_init(&object, HED_CACHE_OBJECT_MAX);
    err = compile_elsewhere(c, job, name, &object, &compile_us, why);
    if (!err)
        err = load_object(c, name, &object, &out->loaded, why);
    if (!err) {
        out->compile_us = compile_us;
        store_object(c, job, name, &object, compile_us);
    }
    hed_buf_fini(&object);
    return err;
}

/* Finds what the job is to make in the cache. HED_ENOTFOUND. */
static int
find_stored(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
            const struct hed_compiler_job *job, struct hed_cpu_compiled *out)
{
    return hed_cpu_find_compiled(c, name, from->image, job->rows, out) == 0
               ? 0
               : find_by_text(c, job, name, out);
}

/* Finds the kernel in the cache, or says that this process makes it: 0 and HED_ENOTFOUND. Waits
 * while another process does, or does not wait: HED_ESTATE. */
static int
find_or_claim(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
              const struct hed_compiler_job *job, enum hed_cpu_others others,
              struct hed_cpu_compiled *out, int *claim)
{
    for (unsigned ms = 0;; ms += OTHERS_LOOK_MS) {
        int err = find_stored(c, from, name, job, out);

        if (!err)
            return 0;
        if (!c->claims || others == HED_CPU_OTHERS_IGNORED || ms > OTHERS_PATIENCE_MS)
            return HED_ENOTFOUND;
        err = hed_cache_claim(c->cache, &job->key, claim);
        /* It may have been stored just before that. */
        if (!err)
            return find_stored(c, from, name, job, out);
        if (others == HED_CPU_OTHERS_FIRST)
            return HED_ESTATE;
        (void)poll(NULL, 0, OTHERS_LOOK_MS);
    }
}

int
hed_cpu_compile(struct hed_cpu *c, const struct hed_cpu_source *from, const char *name,
                enum hed_rows rows, enum hed_cpu_others others, struct hed_cpu_compiled *out,
                struct hed_why *why)
{
    const struct hed_compiler_job job = describe_job(c, from, name, rows);
    int claim = -1, err;

    err = find_or_claim(c, from, name, &job, others, out, &claim);
    if (err == HED_ENOTFOUND)
        err = compile_and_store(c, &job, name, out, why);
    if (err != HED_ESTATE)
        hed_compilers_withdraw(&c->compilers, &job.key);
    hed_cache_release(c->cache, &job.key, claim);
    return err;
}
