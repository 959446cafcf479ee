/* Compiles a kernel with the CPU GPU's compiler, to see what becomes of it. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "cli/cpu/cpu.h"
#include "kernel/ptx.h"
#include "locate/install.h"

#define COMPILER_STACK ((size_t)64 << 20) /* bytes; LLVM recurses deeply in large functions */
#define OBJECT_MAX ((size_t)512 << 20)
#define LEVEL 2 /* as the CPU GPU has it */

static const struct hed_ptx_compiler *
find_ptx_compiler(struct hed_why *why)
{
    static const struct hed_ptx_compiler *compiler;
    struct hed_install install;
    char path[PATH_MAX];
    void *library;

    if (compiler)
        return compiler;
    if (hed_install_find(&install, why) != 0)
        return NULL;
    if (!hed_install_plugin(&install, "compiler-llvm", path, sizeof path)) {
        hed_why_set(why, "there is no compiler (%.200s)", path);
        return NULL;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    compiler = library ? dlsym(library, "hed_ptx_compiler_llvm") : NULL;
    if (compiler && compiler->abi != HED_PTX_ABI)
        compiler = NULL;
    if (!compiler)
        hed_why_set(why, "%.200s cannot be used: install heddle again", path);
    return compiler;
}

struct making {
    const struct hed_ptx_compiler *compiler;
    struct hed_cpu_subject *subject;
};

static void
keep_pass(void *arg, const struct hed_ptx_pass_report *r)
{
    struct hed_cpu_made *made = arg;
    struct hed_cpu_pass *p;

    if (made->npasses == HED_CPU_PASSES_MAX)
        return;
    p = &made->passes[made->npasses++];
    *p = (struct hed_cpu_pass){.name = r->name,
                               .does = r->does,
                               .made = r->made,
                               .depth = r->depth,
                               .ns = r->ns,
                               .err = r->err};
    (void)hed_str_copy(p->did, sizeof p->did, r->did);
}

static void *
make_on_thread(void *arg)
{
    const struct making *m = arg;
    struct hed_cpu_subject *s = m->subject;
    struct hed_cpu_made *made = &s->made;
    const uint64_t begin = hed_now_ns();
    struct hed_ptx_options o = {
        .rows = s->rows,
        .level = LEVEL,
        .check_alignment = true,
        .info = &made->info,
        .on_pass = keep_pass,
        .on_pass_arg = made,
    };
    char features[512];
    struct hed_buf object;

    hed_ptx_features(features, sizeof features);
    o.features = features;
    hed_buf_init(&object, OBJECT_MAX);
    made->is_known = m->compiler->compile(s->module, s->func, &o, &object, &made->why) == 0;
    made->us = (uint32_t)hed_min((hed_now_ns() - begin) / 1000, UINT32_MAX);
    made->bytes = object.size;
    hed_buf_fini(&object);
    return NULL;
}

void
hed_cpu_make(struct hed_cpu_subject *s)
{
    struct making m = {.compiler = find_ptx_compiler(&s->made.why), .subject = s};
    pthread_attr_t attr;
    pthread_t thread;

    if (!m.compiler)
        return;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, COMPILER_STACK);
    if (pthread_create(&thread, &attr, make_on_thread, &m) == 0)
        pthread_join(thread, NULL);
    else
        hed_why_set(&s->made.why, "not enough memory for the compiler");
    pthread_attr_destroy(&attr);
}
