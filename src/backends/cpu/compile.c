/* Gets a kernel from the cache or from the compiler. See cpu.h. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/engine.h"
#include "backends/cpu/watch.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "ptx/ptx.h"
#include "ptx/run/features.h"
#include "ptx/run/warp.h"

#define OBJECT_MAX ((size_t)512 << 20)    /* bytes */
#define COMPILER_STACK ((size_t)64 << 20) /* bytes */
#define LEVEL 2                           /* of optimisation */

/* ---- the compiler ---------------------------------------------------------------------------- */

static uint64_t
file_identity(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * HED_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec +
           (uint64_t)st->st_size * 31;
}

/* The plug-in is beside the library that this code is in. */
static void
find_compiler(struct hed_cpu *c)
{
    char path[PATH_MAX];
    struct stat st;
    Dl_info info;

    if (!dladdr((const void *)&hed_cpu_compile_init, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, path))
        return;
    if (stat(path, &st) == 0)
        c->own_identity = file_identity(&st);

    char *slash = strrchr(path, '/');

    if (!slash)
        return;
    slash[1] = 0;

    const int n = snprintf(c->compiler_path, sizeof c->compiler_path, "%scompiler-llvm.so", path);

    if (n < 0 || (size_t)n >= sizeof c->compiler_path || stat(c->compiler_path, &st) != 0)
        return;
    c->compiler_identity = file_identity(&st);
}

void
hed_cpu_compile_init(struct hed_cpu *c)
{
    hed_lock_init(&c->compiler_lock, HED_RANK_CODE);
    hed_tier_init(&c->tiers);
    hed_compiler_watch_exit();
    hed_ptx_features(c->features, sizeof c->features);
    find_compiler(c);
}

static const struct hed_ptx_compiler *
open_compiler(const struct hed_cpu *c, struct hed_why *why)
{
    void *library = dlopen(c->compiler_path, RTLD_NOW | RTLD_LOCAL);
    const struct hed_ptx_compiler *compiler =
        library ? dlsym(library, "hed_ptx_compiler_llvm") : NULL;

    if (!compiler) {
        const char *text = dlerror();

        hed_why_set(why, "the PTX compiler cannot be loaded: %s", text ? text : "no reason given");
        return NULL;
    }
    if (compiler->abi != HED_PTX_ABI) {
        hed_why_set(why, "%s belongs to another version of heddle: install heddle again",
                    c->compiler_path);
        return NULL;
    }
    hed_debug(CPU, "loaded %s: %s", c->compiler_path, compiler->version);
    return compiler;
}

static const struct hed_ptx_compiler *
load_compiler(const struct hed_cpu *c, struct hed_why *why)
{
    const struct hed_ptx_compiler *compiler;

    if (!hed_compiler_load_begin(c->tiered)) {
        hed_why_set(why, "the process is ending");
        return NULL;
    }
    compiler = open_compiler(c, why);
    if (!compiler && c->tiered)
        hed_warn(CPU, "%s: all kernels stay in the baseline tier, which is slower", why->text);
    if (compiler && !hed_compiler_guard(compiler)) {
        hed_why_set(why, "the process is ending");
        compiler = NULL;
    }
    hed_compiler_load_end();
    return compiler;
}

static const struct hed_ptx_compiler *
get_compiler(struct hed_cpu *c, struct hed_why *why)
{
    hed_lock(&c->compiler_lock);
    if (!c->compiler && !(c->no_compiler && c->tiered)) {
        c->compiler = load_compiler(c, why);
        c->no_compiler = !c->compiler;
    }

    const struct hed_ptx_compiler *compiler = c->no_compiler ? NULL : c->compiler;

    hed_unlock(&c->compiler_lock);
    return compiler;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* Everything that the object of a kernel depends on. `text` is the hash of its module's PTX. */
static struct hed_cache_key
kernel_cache_key(const struct hed_cpu *c, const struct hed_cache_key *text, const char *kernel,
                 const struct hed_ptx_options *o)
{
    const uint64_t numbers[] = {HED_PTX_ABI,        (uint64_t)o->rows, (uint64_t)o->level,
                                o->check_alignment, o->confined,       c->compiler_identity};
    struct hed_cache_key key;
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, text, sizeof *text);
    hed_hash_add_text(&h, kernel);
    hed_hash_add_text(&h, HED_VERSION);
    hed_hash_add_text(&h, c->features);
    hed_hash_add(&h, numbers, sizeof numbers);
    hed_hash_end(&h, key.hash);
    return key;
}

static int
load_object(const struct hed_buf *object, struct hed_ptx_loaded *out, struct hed_why *why)
{
    static const struct hed_ptx_symbol *const tables[] = {
        hed_cpu_runtime,  hed_ptx_helpers,       hed_ptx_warp_helpers,
        hed_cpu_together, hed_ptx_group_helpers, hed_rt_textures,
    };

    return hed_ptx_load(object->data, object->size, tables, sizeof tables / sizeof *tables, out,
                        why);
}

/* A compilation: its inputs and results, for the thread that does it. */
struct compilation {
    const struct hed_ptx_compiler *compiler;
    const struct hed_ptx_module *module;
    const struct hed_ptx_func *kernel;
    struct hed_ptx_options *options;
    struct hed_buf *object;
    struct hed_why *why;
    struct hed_watch *watch;
    uint32_t us; /* that it took */
    int err;
};

static void *
compile_main(void *arg)
{
    struct compilation *n = arg;
    const uint64_t begin = hed_now_ns();
    sigset_t mask;
    const int slot = hed_compiler_enter(&mask);
    struct hed_watched watched;

    if (slot < 0) {
        hed_why_set(n->why, "the process is ending");
        n->err = HED_ESTATE;
        return NULL;
    }
    hed_watch_compilation(n->watch, &watched, n->kernel->name);
    n->err = n->compiler->compile(n->module, n->kernel, n->options, n->object, n->why);
    hed_watch_end(n->watch, &watched);
    hed_compiler_leave(slot, &mask);
    if (!n->err && *n->why->text)
        hed_info(CPU, "%s: kernel %s has a slower shape", n->why->text, n->kernel->name);
    if (!n->err)
        n->err = n->object->err;
    n->us = (uint32_t)hed_min((hed_now_ns() - begin) / 1000, UINT32_MAX);
    hed_debug(CPU, "kernel %s compiled in %u us", n->kernel->name, n->us);
    return NULL;
}

/* Compiles on a thread with a large stack: LLVM recurses deeply in large functions, and the
 * program's threads may have small stacks. */
static int
compile_on_thread(struct compilation *n)
{
    const struct hed_thread_how how = {.name = "heddle-llvm", .stack = COMPILER_STACK};

    if (hed_thread_wait(&how, compile_main, n) != 0)
        compile_main(n);
    return n->err;
}

static struct hed_ptx_options
compile_options(const struct hed_cpu *c, enum hed_rows rows)
{
    return (struct hed_ptx_options){
        .rows = rows,
        .level = LEVEL,
        .check_alignment = true,
        .confined = c->pen != NULL,
        .features = c->features,
    };
}

int
hed_cpu_find_compiled(struct hed_cpu *c, const char *name, const struct hed_cache_key *text,
                      enum hed_rows rows, struct hed_cpu_compiled *out)
{
    const struct hed_ptx_options o = compile_options(c, rows);
    const struct hed_cache_key key = kernel_cache_key(c, text, name, &o);
    struct hed_buf object;
    int err = HED_ENOTFOUND;

    hed_buf_init(&object, OBJECT_MAX);
    if (hed_cache_get(c->cache, &key, &object, &out->compile_us) &&
        load_object(&object, &out->loaded, NULL) == 0) {
        out->is_cached = true;
        hed_debug(CPU, "kernel %s found in the cache", name);
        err = 0;
    }
    hed_buf_fini(&object);
    return err;
}

int
hed_cpu_compile(struct hed_cpu *c, const struct hed_ptx_module *module,
                const struct hed_ptx_func *kernel, const char *name,
                const struct hed_cache_key *text, enum hed_rows rows, struct hed_cpu_compiled *out,
                struct hed_why *why)
{
    struct hed_ptx_options o = compile_options(c, rows);
    const struct hed_cache_key key = kernel_cache_key(c, text, name, &o);
    struct hed_buf object;
    int err;

    if (hed_cpu_find_compiled(c, name, text, rows, out) == 0)
        return 0;
    hed_buf_init(&object, OBJECT_MAX);

    struct compilation n = {
        .compiler = get_compiler(c, why),
        .module = module,
        .kernel = kernel,
        .options = &o,
        .object = &object,
        .why = why,
        .watch = c->watch,
    };

    err = n.compiler ? compile_on_thread(&n) : HED_ENOTFOUND;
    if (!err)
        err = load_object(&object, &out->loaded, why);
    if (!err) {
        out->compile_us = n.us;
        hed_cache_put(c->cache, &key, object.data, object.size, n.us);
    }
    hed_buf_fini(&object);
    return err;
}
