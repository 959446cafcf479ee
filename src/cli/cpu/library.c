/* heddle cpu warm --lib: compiles the kernels of files ahead.
 *
 * The files' images are loaded into heddle's driver, as a program would, so that what is compiled
 * is what a program will look for: the same choice among an image's codes, the same text, the same
 * key. Nothing is launched: a kernel is compiled when it is loaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "base/err.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/cpu/warm.h"
#include "gen/cuda_abi.h"
#include "kernel/cache.h"
#include "kernel/fatbin.h"
#include "locate/install.h"

#define THREADS_MAX 9 /* as many kernels are compiled at a time at most */
#define TEXT_MAX ((size_t)1 << 30)

/* The calls that are needed. */
struct calls {
    CUresult (*init)(unsigned);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*current)(CUcontext);
    CUresult (*load)(CUmodule *, const void *);
    CUresult (*unload)(CUmodule);
    CUresult (*count)(unsigned *, CUmodule);
    CUresult (*list)(CUfunction *, unsigned, CUmodule);
    CUresult (*name)(const char **, CUfunction);
    CUresult (*compile)(CUfunction);
};

struct warming {
    const struct hed_warm *asked;
    struct calls cuda;
    CUcontext context;
    uint64_t end;          /* hed_now_ns() */
    CUfunction *functions; /* of the module that is at work */
    unsigned count;
    _Atomic unsigned next;
    _Atomic unsigned begun, done, failed; /* kernels, of all modules */
    unsigned images, refused;             /* images that could be loaded, and could not */
};

/* ---- the driver ------------------------------------------------------------------------------ */

#define ASK(at, library, name) ((*(void **)&(at) = dlsym(library, #name)) != NULL)

static bool
find_calls(struct calls *c, void *library)
{
    return ASK(c->init, library, cuInit) && ASK(c->retain, library, cuDevicePrimaryCtxRetain) &&
           ASK(c->current, library, cuCtxSetCurrent) && ASK(c->load, library, cuModuleLoadData) &&
           ASK(c->unload, library, cuModuleUnload) &&
           ASK(c->count, library, cuModuleGetFunctionCount) &&
           ASK(c->list, library, cuModuleEnumerateFunctions) &&
           ASK(c->name, library, cuFuncGetName) && ASK(c->compile, library, cuFuncLoad);
}

static bool
start_driver(struct warming *x)
{
    struct hed_install install;
    struct hed_why why = {""};
    void *library = NULL;

    /* Kernels are compiled when they are loaded. */
    (void)setenv("HEDDLE_GPU", x->asked->gpu, 1);
    (void)setenv("HEDDLE_CPU_CODEGEN", "warp", 1);
    if (hed_install_find(&install, &why) == 0) {
        library = dlopen(install.lib[HED_INSTALL_CUDA], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            hed_why_set(&why, "%s", dlerror());
    }
    if (!library || !find_calls(&x->cuda, library)) {
        hed_cli_say("cpu warm: heddle's driver cannot be loaded: %s", why.text);
        return false;
    }
    if (x->cuda.init(0) != CUDA_SUCCESS || x->cuda.retain(&x->context, 0) != CUDA_SUCCESS ||
        x->cuda.current(x->context) != CUDA_SUCCESS) {
        hed_cli_say("cpu warm: the CPU GPU cannot be used; heddle devices --gpu cpu says why");
        return false;
    }
    return true;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool
name_matches(const struct warming *x, const char *name)
{
    char room[HED_DEMANGLED_MAX];

    return !x->asked->match || strstr(name, x->asked->match) ||
           strstr(hed_demangle(name, room, sizeof room), x->asked->match);
}

static void
compile_function(struct warming *x, CUfunction f)
{
    char room[HED_DEMANGLED_MAX];
    const char *name = NULL;
    uint64_t began;
    CUresult r;

    if (x->cuda.name(&name, f) != CUDA_SUCCESS || !name || !name_matches(x, name) ||
        hed_now_ns() >= x->end)
        return;
    /* Relaxed, like the other counts: only the numbers matter. */
    if (atomic_fetch_add_explicit(&x->begun, 1, memory_order_relaxed) >= x->asked->most)
        return;
    began = hed_now_ns();
    r = x->cuda.compile(f);
    atomic_fetch_add_explicit(r == CUDA_SUCCESS ? &x->done : &x->failed, 1, memory_order_relaxed);
    /* What cannot be compiled costs little, and does not count. */
    if (r != CUDA_SUCCESS)
        atomic_fetch_sub_explicit(&x->begun, 1, memory_order_relaxed);
    hed_cli_say("cpu warm: %s: %.1f s%s", hed_demangle(name, room, sizeof room),
                (double)(hed_now_ns() - began) / 1e9,
                r == CUDA_SUCCESS ? "" : ", cannot be compiled");
}

static void *
compile_functions(void *arg)
{
    struct warming *x = arg;
    unsigned i;

    (void)x->cuda.current(x->context);
    while ((i = atomic_fetch_add_explicit(&x->next, 1, memory_order_relaxed)) < x->count)
        compile_function(x, x->functions[i]);
    return NULL;
}

/* On several threads, as many as there are compilers. */
static void
compile_module(struct warming *x)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned most =
        (unsigned)hed_clamp(cores > 0 ? (uint64_t)cores / 2 + 1 : 1, 1, THREADS_MAX);
    pthread_t threads[THREADS_MAX];
    unsigned started = 0;

    atomic_store_explicit(&x->next, 0, memory_order_relaxed);
    while (started < most && started + 1 < x->count &&
           pthread_create(&threads[started], NULL, compile_functions, x) == 0)
        started++;
    (void)compile_functions(x);
    for (unsigned i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool
is_over(const struct warming *x)
{
    return hed_now_ns() >= x->end ||
           atomic_load_explicit(&x->begun, memory_order_relaxed) >= x->asked->most;
}

static void
load_image(struct warming *x, const void *image)
{
    CUmodule module;

    /* It may have code for other devices only. */
    if (x->cuda.load(&module, image) != CUDA_SUCCESS) {
        x->refused++;
        return;
    }
    x->images++;
    x->count = 0;
    if (x->cuda.count(&x->count, module) == CUDA_SUCCESS && x->count) {
        x->functions = calloc(x->count, sizeof *x->functions);
        if (x->functions && x->cuda.list(x->functions, x->count, module) == CUDA_SUCCESS)
            compile_module(x);
        free(x->functions);
    }
    (void)x->cuda.unload(module);
}

/* The call takes no size: PTX must end with a NUL, and a truncated fat binary is not for
 * it. */
static void
load_found(struct warming *x, const struct hed_found *found)
{
    struct hed_buf text;

    if (found->cut || found->relocatable)
        return;
    hed_buf_init(&text, TEXT_MAX);
    hed_buf_add(&text, found->bytes.data, found->bytes.size);
    if (!text.err && text.size)
        load_image(x, text.data);
    hed_buf_fini(&text);
}

static int
warm_file(struct warming *x, const char *path)
{
    struct hed_bytes bytes;
    struct hed_find find;
    struct hed_found found;
    struct hed_why why;
    int r = hed_fatbin_map(path, &bytes, &why);

    if (r == 0) {
        hed_find_init(&find, bytes, 0);
        while (!is_over(x) && (r = hed_find_next(&find, &found, &why)) > 0)
            load_found(x, &found);
        hed_fatbin_unmap(bytes);
    }
    if (r < 0)
        hed_cli_say("cpu warm: %s: %s", path, why.text);
    return r < 0 ? HED_EXIT_FAILED : HED_EXIT_OK;
}

/* In the cache. */
static size_t
count_in_cache(const struct hed_warm *w)
{
    struct hed_cache_file *files = NULL;
    size_t count = 0;

    if (hed_cache_list(w->cache, &files, &count) != 0)
        return 0;
    free(files);
    return count;
}

int
hed_warm_files(const struct hed_warm *w)
{
    struct warming x = {.asked = w, .end = hed_now_ns() + w->seconds * HED_NS_PER_S};
    const size_t before = count_in_cache(w);
    int code = HED_EXIT_OK;

    if (!start_driver(&x))
        return HED_EXIT_FAILED;
    for (unsigned i = 0; i < w->file_count; i++)
        if (warm_file(&x, w->files[i]) != HED_EXIT_OK)
            code = HED_EXIT_FAILED;
    if (x.images == 0 && code == HED_EXIT_OK) {
        hed_cli_say("cpu warm: there is no GPU code for this device in %s", w->files[0]);
        code = HED_EXIT_FAILED;
    }
    hed_cli_say("cpu warm: %u kernels were loaded, of which %zu are new in the cache; %u cannot be "
                "compiled%s",
                (unsigned)x.done, count_in_cache(w) - before, (unsigned)x.failed,
                is_over(&x) ? "; a limit was reached (--most, --seconds)" : "");
    return code;
}
