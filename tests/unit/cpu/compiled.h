/* For tests of PTX through the compiler, which HED_COMPILER names: a CPU GPU with a cache in the
 * test's scratch folder. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/str.h"
#include "harness/unit.h"
#include "kernel/engine/engine_parts.h"

static struct hed_cpu cpu;

static inline void
cache_folder(char *path, size_t size)
{
    const char *scratch = getenv("HED_SCRATCH");

    snprintf(path, size, "%s/kernels", scratch ? scratch : "/tmp");
}

static inline int
setup_cpu(void **state)
{
    char folder[1024];
    struct hed_why why;

    memset(&cpu, 0, sizeof cpu);
    cache_folder(folder, sizeof folder);
    cpu.cache = hed_cache_create(folder, 1 << 30);
    hed_cpu_compile_init(&cpu);
    (void)hed_str_copy(cpu.compilers.path, sizeof cpu.compilers.path, HED_COMPILER);
    return hed_engine_create(2, &cpu.engine, &why);
}

static inline int
teardown_cpu(void **state)
{
    hed_tier_stop(&cpu);
    hed_compilers_fini(&cpu.compilers);
    hed_engine_free(cpu.engine);
    hed_cache_free(cpu.cache);
    return 0;
}

static inline struct hed_code *
open_source(const struct hed_code_source *source)
{
    struct hed_code *code = NULL;
    struct hed_why why = {""};

    if (hed_cpu_open(&cpu, source, &code, NULL, &why) != 0)
        print_error("%s\n", why.text);
    assert_non_null(code);
    return code;
}

/* Compiles before the first launch, as near/ does. */
static inline CUresult
prepare_and_launch(const struct hed_launch *l, struct hed_why *why)
{
    const CUresult r = hed_cpu_prepare(&cpu, l->code, l->kernel, l->block, why);

    return r == CUDA_SUCCESS ? hed_cpu_launch(&cpu, l, why) : r;
}
