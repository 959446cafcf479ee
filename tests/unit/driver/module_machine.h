/* The fake machine with code that depends on the text: every .entry in it is a kernel, and the
 * words "global_var", "managed_var", "texture_var" and "part_var" in it make variables. */
#pragma once

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "harness/unit.h"
#include "kernel/fatbin/ptx_text.h"
#include "unit/driver/fake.h"

#define ok(call) assert_int_equal((call), CUDA_SUCCESS)

/* A launch of one thread, of a kernel without parameters. */
#define TEXT_LAUNCH(f, k) \
    fake_call(f, cuLaunchKernel, k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, false)

#define KERNELS_MAX 8192

struct text_code {
    struct hed_code code; /* must come first */
    char *text;
    struct hed_code_kernel kernels[KERNELS_MAX];
    struct hed_code_var vars[5];
};

static unsigned text_opens, text_closes; /* tests of loading use one thread */
static unsigned text_overwrites;         /* of managed variables */
static char text_last[4096];             /* the beginning of the last text that was opened */
static enum hed_code_kind text_kind;     /* of what was opened last */
static uint32_t text_arch;

static const struct hed_code_param text_params[] = {{0, 8}, {8, 4}};
static const uint32_t text_first[] = {1, 2, 3};

/* The kernel's name decides its properties. */
static void
text_kernel(struct hed_code_kernel *k, const char *name)
{
    *k = (struct hed_code_kernel){.name = name,
                                  .registers = 4,
                                  .constant = 100,
                                  .ptx_version = 70,
                                  .binary_version = 90,
                                  .has_code = true};
    if (strcmp(name, "k_plain") == 0) {
        k->params = text_params;
        k->param_count = 2;
        k->param_bytes = 12;
    } else if (strcmp(name, "k_static") == 0) {
        k->shared = 4096;
    } else if (strcmp(name, "k_max") == 0) {
        k->max_threads = 128;
    } else if (strcmp(name, "k_req") == 0) {
        k->required[0] = 64;
        k->required[1] = k->required[2] = 1;
    }
}

static int
text_open(void *m, const struct hed_code_source *source, struct hed_code **out, struct hed_buf *log,
          struct hed_why *why)
{
    if (memmem(source->data, source->size, "BAD", 3)) {
        if (log)
            hed_buf_addf(log, "line 4: BAD is no instruction\n");
        hed_why_set(why, "line 4: BAD is no instruction");
        return HED_EFORMAT;
    }
    if (memmem(source->data, source->size, ".version 99", 11))
        return HED_EVERSION;

    struct text_code *c = calloc(1, sizeof *c);
    size_t at = 0;

    assert_non_null(c);
    c->text = strndup(source->data, source->size);
    text_kind = source->kind;
    text_arch = source->arch;
    (void)snprintf(text_last, sizeof text_last, "%s", c->text);
    for (;;) {
        const struct hed_bytes name =
            hed_ptx_next_entry((struct hed_bytes){source->data, source->size}, &at);

        if (!name.size)
            break;
        assert_true(c->code.kernel_count < KERNELS_MAX);
        text_kernel(&c->kernels[c->code.kernel_count++],
                    strndup((const char *)name.data, name.size));
    }
    if (strstr(c->text, "global_var"))
        c->vars[c->code.var_count++] = (struct hed_code_var){
            .name = "global_var", .size = 64, .align = 4, .init = text_first, .init_size = 12};
    if (strstr(c->text, "managed_var"))
        c->vars[c->code.var_count++] = (struct hed_code_var){.name = "managed_var",
                                                             .size = 12,
                                                             .align = 4,
                                                             .managed = true,
                                                             .visible = true,
                                                             .init = text_first,
                                                             .init_size = 12};
    if (strstr(c->text, "texture_var"))
        c->vars[c->code.var_count++] =
            (struct hed_code_var){.name = "texture_var", .visible = true, .texture = true};
    if (strstr(c->text, "part_var")) {
        c->vars[c->code.var_count++] = (struct hed_code_var){
            .name = "", .size = 64, .align = 256, .init = text_first, .init_size = 12};
        c->vars[c->code.var_count] = (struct hed_code_var){
            .name = "part_var", .size = 4, .part_of = c->code.var_count, .at = 8};
        c->code.var_count++;
    }
    c->code.kernels = c->kernels;
    c->code.vars = c->vars;
    text_opens++;
    *out = &c->code;
    return 0;
}

static void
text_close(void *m, struct hed_code *code)
{
    struct text_code *c = (struct text_code *)code;

    for (uint32_t i = 0; i < code->kernel_count; i++)
        free((void *)(uintptr_t)c->kernels[i].name);
    free(c->text);
    free(c);
    text_closes++;
}

static void
text_fill(void *m, struct hed_code *code, const uint64_t *addresses, const uint64_t *where)
{
    for (uint32_t i = 0; i < code->var_count; i++) {
        if (!where[i] || code->vars[i].part_of)
            continue;
        if (code->vars[i].managed && where[i] == addresses[i])
            text_overwrites++;
        memset((void *)(uintptr_t)where[i], 0, code->vars[i].size);
        memcpy((void *)(uintptr_t)where[i], code->vars[i].init, code->vars[i].init_size);
    }
}

static CUresult
text_prepare(void *m, struct hed_code *code, uint32_t kernel, const uint32_t *block,
             struct hed_why *why)
{
    struct fake *f = m;

    atomic_fetch_add_explicit(&f->prepares, 1, memory_order_relaxed);
    if (f->prepare_result != CUDA_SUCCESS)
        hed_why_set(why, "not today");
    return f->prepare_result;
}

static CUresult
text_launch(struct fake *f, const struct hed_launch *l)
{
    return CUDA_SUCCESS;
}

/* An initialised driver on that machine. */
static inline struct fake *
text_started(int devices)
{
    static struct hed_executor executor;
    struct fake *f = fake_create(devices);

    executor = fake_executor;
    executor.open = text_open;
    executor.close = text_close;
    executor.fill_vars = text_fill;
    executor.prepare = text_prepare;
    hed_near_init(&f->near, &executor);
    f->launch = text_launch;
    text_opens = text_closes = text_overwrites = 0;
    text_last[0] = '\0';
    ok(fake_call(f, cuInit, 0));
    return f;
}

/* The same kernels with which NVIDIA's driver was measured. */
#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
static const char text_ptx[] = PTX_HEAD ".visible .global .align 4 .u32 global_var;\n"
                                        ".visible .entry k_plain(.param .u64 a, .param .u32 b){}\n"
                                        ".visible .entry k_none(){}\n"
                                        ".visible .entry k_static(){}\n"
                                        ".visible .entry k_max(){}\n"
                                        ".visible .entry k_req(){}\n";

static inline CUmodule
text_module(struct fake *f)
{
    CUmodule m = NULL;

    ok(fake_call(f, cuModuleLoadData, &m, text_ptx));
    return m;
}

static inline CUfunction
text_function(struct fake *f, CUmodule m, const char *name)
{
    CUfunction out = NULL;

    ok(fake_call(f, cuModuleGetFunction, &out, m, name));
    return out;
}
