/* Compiles, loads and runs kernels with a stand-in for the runtime. See harness.h. */
#include "ptx/exec/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/run/features.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/run/load.h"
#include "kernel/ptx/run/warp.h"
#include "kernel/ptx/text/parse.h"
#include "ptx/exec/fiber.h"

#define SHARED_BYTES (1u << 20)
#define MEMORY_BYTES (16u << 20) /* of a warp, for the baseline tier */
#define ALIGN 256u

/* The run in progress; tests run one at a time. */
static struct exec *now;

/* ---- the runtime ----------------------------------------------------------------------------- */

static void __attribute__((noreturn))
host_trap(struct hed_ptx_warp *s, uint32_t trap, uint32_t line)
{
    (void)s;
    now->trap = trap;
    now->trap_line = line;
    longjmp(running->trapped, 1);
}

static void
host_yield(struct hed_ptx_warp *s)
{
    s->fuel = 100;
    if (++now->yields > 1000000)
        host_trap(s, HED_PTX_TRAP, 0);
}

static void __attribute__((noreturn))
host_refuse(struct hed_ptx_warp *s, const char *text, uint32_t line)
{
    hed_why_set(&now->why, "%s", text);
    host_trap(s, HED_PTX_TRAP_INSTRUCTION, line);
}

static void
host_nanosleep(struct hed_ptx_warp *s, uint32_t ns)
{
    (void)s;
    (void)ns;
}

static uint64_t
host_clock(struct hed_ptx_warp *s)
{
    static uint64_t ticks = UINT64_C(0x100000000);

    (void)s;
    return ticks++;
}

static uint64_t
host_globaltimer(struct hed_ptx_warp *s)
{
    return host_clock(s) * 32;
}

static void
host_barrier(struct hed_ptx_warp *s, uint32_t id, uint32_t threads, uint32_t arriving)
{
    (void)s;
    (void)id;
    (void)threads;
    (void)arriving;
    fiber_wait();
}

static void
host_barrier_arrive(struct hed_ptx_warp *s, uint32_t id, uint32_t threads, uint32_t arriving)
{
    host_barrier(s, id, threads, arriving);
}

/* All warps of the block have come to a barrier. */
static void
end_round(struct hed_ptx_block *b)
{
    b->came = b->coming;
    b->coming = (struct hed_ptx_votes){0};
}

static uint32_t
host_barrier_reduce(struct hed_ptx_warp *s, uint32_t id, uint32_t threads, uint32_t arriving,
                    uint32_t trues, uint32_t op)
{
    struct hed_ptx_block *b = s->block;

    (void)id;
    (void)threads;
    b->coming.count += arriving;
    b->coming.trues += trues;
    if (running->stack)
        fiber_wait();
    else
        end_round(b);
    return op == HED_RT_POPC ? b->came.trues
           : op == HED_RT_OR ? b->came.trues > 0
                             : b->came.trues == b->came.count;
}

static uint32_t
host_vprintf(struct hed_ptx_warp *s, uint64_t format, uint64_t args)
{
    (void)s;
    snprintf(now->printed, sizeof(now->printed), "%s", (const char *)(uintptr_t)format);
    if (args)
        memcpy(&now->printed_args, (const void *)(uintptr_t)args, sizeof(now->printed_args));
    return 1;
}

static void
host_assertfail(struct hed_ptx_warp *s, uint64_t message, uint64_t file, uint32_t line,
                uint64_t function, uint64_t char_size)
{
    (void)message;
    (void)file;
    (void)function;
    (void)char_size;
    host_trap(s, HED_PTX_TRAP, line);
}

static uint64_t
host_malloc(struct hed_ptx_warp *s, uint64_t size)
{
    (void)s;
    return (uintptr_t)malloc(size);
}

static void
host_free(struct hed_ptx_warp *s, uint64_t p)
{
    (void)s;
    free((void *)(uintptr_t)p);
}

static void
host_set_condition(struct hed_ptx_warp *s, uint64_t handle, uint32_t value)
{
    (void)s;
    *(uint32_t *)(uintptr_t)handle = value;
}

/* Nothing can be launched from here. */
static uint64_t
host_device_call(struct hed_ptx_warp *s, uint32_t which, uint64_t a0, uint64_t a1, uint64_t a2,
                 uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7)
{
    host_trap(s, HED_PTX_TRAP, 0);
}

/* There are no textures here. */
static void
host_texture(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
             uint32_t out[4], uint32_t line)
{
    (void)object;
    (void)access;
    (void)in;
    (void)out;
    host_trap(s, HED_PTX_TRAP, line);
}

static void
host_surface(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
             void *data, uint32_t line)
{
    (void)object;
    (void)access;
    (void)in;
    (void)data;
    host_trap(s, HED_PTX_TRAP, line);
}

static void
host_surface_reduce(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                    const void *data, uint32_t line)
{
    (void)object;
    (void)access;
    (void)in;
    (void)data;
    host_trap(s, HED_PTX_TRAP, line);
}

static uint32_t
host_texture_query(struct hed_ptx_warp *s, uint64_t object, uint32_t query, uint32_t level,
                   uint32_t line)
{
    (void)object;
    (void)query;
    (void)level;
    host_trap(s, HED_PTX_TRAP, line);
}

#define SYMBOL(name)                               \
    {                                              \
        "hed_rt_" #name, (const void *)host_##name \
    }

static const struct hed_ptx_symbol runtime[] = {
    SYMBOL(yield),         SYMBOL(trap),        SYMBOL(nanosleep),      SYMBOL(clock),
    SYMBOL(globaltimer),   SYMBOL(barrier),     SYMBOL(barrier_arrive), SYMBOL(barrier_reduce),
    SYMBOL(vprintf),       SYMBOL(assertfail),  SYMBOL(malloc),         SYMBOL(free),
    SYMBOL(set_condition), SYMBOL(device_call), {NULL, NULL},
};

static const struct hed_ptx_host host = {
    .yield = host_yield,
    .trap = host_trap,
    .refuse = host_refuse,
    .nanosleep = host_nanosleep,
    .clock = host_clock,
    .globaltimer = host_globaltimer,
    .barrier = host_barrier,
    .barrier_arrive = host_barrier_arrive,
    .barrier_reduce = host_barrier_reduce,
    .vprintf = host_vprintf,
    .assertfail = host_assertfail,
    .malloc = host_malloc,
    .free = host_free,
    .set_condition = host_set_condition,
    .device_call = host_device_call,
    .texture = host_texture,
    .surface = host_surface,
    .surface_reduce = host_surface_reduce,
    .texture_query = host_texture_query,
};

/* ---- modules --------------------------------------------------------------------------------- */

struct placing {
    struct exec *e;
    size_t at;
    const char *name; /* sought, or NULL */
    void *found;
};

static void
place_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct placing *p = arg;

    if (p->e->memory) {
        unsigned char *at = (unsigned char *)p->e->memory + p->at;

        p->e->vars[index] = (uintptr_t)at;
        if (v->init_size)
            memcpy(at, v->init, v->init_size);
    }
    p->at += (v->size + ALIGN) & ~(size_t)(ALIGN - 1);
}

static void
relocate_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct exec *e = arg;

    for (const struct hed_ptx_reloc *r = v->relocs; r; r = r->next) {
        uint64_t value = r->func ? hed_ptx_func_address(&e->module, r->func)
                                 : e->vars[hed_ptx_var_index(&e->module, r->var)];

        value += (uint64_t)r->addend;
        memcpy((void *)(uintptr_t)(e->vars[index] + r->at), &value, r->bytes);
    }
}

static void
find_var(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct placing *p = arg;

    if (strcmp(v->name, p->name) == 0)
        p->found = (void *)(uintptr_t)p->e->vars[index];
}

void
exec_open(struct exec *e, const char *text, enum exec_tier tier)
{
    struct placing p = {.e = e};

    memset(e, 0, sizeof(*e));
    e->tier = tier;
    e->options = (struct hed_ptx_options){.level = 2, .check_alignment = true};
    /* Others than this machine's, such as "+avx2,+fma", as LLVM calls them. */
    e->options.features = getenv("HED_FEATURES");
    if (!e->options.features) {
        hed_ptx_features(e->features, sizeof(e->features));
        e->options.features = e->features;
    }
    hed_ptx_module_init(&e->module, HED_PTX_CEILING);
    if (hed_ptx_parse(&e->module, text, strlen(text)) != 0) {
        struct hed_buf log;

        hed_buf_init(&log, 1 << 16);
        hed_ptx_log(&e->module, &log);
        fail_msg("%s", hed_buf_cstr(&log));
    }
    hed_ptx_each_var(&e->module, place_var, &p);
    e->memory = aligned_alloc(ALIGN, p.at + ALIGN);
    e->vars = calloc((size_t)hed_ptx_var_count(&e->module) + 1, sizeof(*e->vars));
    assert_non_null(e->memory);
    assert_non_null(e->vars);
    memset(e->memory, 0, p.at + ALIGN);
    p.at = 0;
    hed_ptx_each_var(&e->module, place_var, &p);
    hed_ptx_each_var(&e->module, relocate_var, e);
}

void *
exec_var(struct exec *e, const char *name)
{
    struct placing p = {.e = e, .name = name};

    hed_ptx_each_var(&e->module, find_var, &p);
    if (!p.found)
        fail_msg("no variable %s", name);
    return p.found;
}

void
exec_close(struct exec *e)
{
    free(e->memory);
    free(e->vars);
    hed_ptx_module_fini(&e->module);
}

/* ---- running --------------------------------------------------------------------------------- */

static void
set_warp(struct hed_ptx_warp *s, unsigned warp, unsigned threads)
{
    const unsigned width = s->grid->ntid[0], first = warp * HED_PTX_LANES;

    s->fuel = 100;
    s->warp = warp;
    for (unsigned i = 0; i < HED_PTX_LANES && first + i < threads; i++) {
        s->lanes |= 1u << i;
        s->tid[0][i] = (first + i) % width;
        s->tid[1][i] = (first + i) / width;
    }
}

static int
run_block(const struct hed_ptx_loaded *k, struct hed_ptx_block *b, unsigned char *memory,
          unsigned threads, bool meets)
{
    const unsigned count = (threads + HED_PTX_LANES - 1) / HED_PTX_LANES;
    const size_t frame = (k->info.frame + 63) & ~63u;
    const uint32_t piece = meets ? MEMORY_BYTES / count & ~1023u : MEMORY_BYTES;
    struct hed_ptx_warp *warps = calloc(count, sizeof(*warps));
    struct fiber *fibers = calloc(count, sizeof(*fibers));
    const uint32_t go_on = 0;
    struct hed_ptx_run run = {.block = b,
                              .warps = warps,
                              .stride = sizeof(*warps),
                              .count = count,
                              .blocks = 1,
                              .stop = &go_on};
    bool any = true;
    int err = 0;

    assert_true(warps && fibers && frame * count <= MEMORY_BYTES);
    for (unsigned i = 0; i < count; i++) {
        warps[i] = (struct hed_ptx_warp){.grid = b->grid,
                                         .block = b,
                                         .memory = memory + (meets ? i * piece : 0),
                                         .memory_size = piece,
                                         .frame = memory + i * frame};
        set_warp(&warps[i], i, threads);
        fibers[i].entry = k->entry;
        fibers[i].warp = &warps[i];
        fibers[i].run = k->info.flags & HED_PTX_BLOCKS ? &run : NULL;
        fibers[i].done = fibers[i].run && i > 0;
        assert_true(!meets || fiber_begin(&fibers[i]));
    }
    while (any && err == 0) {
        any = false;
        for (unsigned i = 0; i < count && err == 0; i++) {
            if (fibers[i].done)
                continue;
            fiber_go_on(&fibers[i]);
            err = fibers[i].err;
            any = any || !fibers[i].done;
        }
        end_round(b);
    }
    for (unsigned i = 0; i < count; i++)
        free(fibers[i].stack);
    free(fibers);
    free(warps);
    return err;
}

static int
run_loaded(struct exec *e, const struct hed_ptx_loaded *k, const void *program,
           const struct exec_launch *launch)
{
    unsigned char *shared = aligned_alloc(1024, SHARED_BYTES);
    unsigned char *memory = aligned_alloc(1024, MEMORY_BYTES);
    const unsigned blocks = launch->blocks ? launch->blocks : 1;
    const unsigned threads = launch->threads ? launch->threads : 1;
    const unsigned width = launch->width ? launch->width : threads;
    /* Where variables in local memory lie: else on the stack. */
    const bool in_memory = program || (k->info.flags & HED_PTX_CUT);
    struct hed_ptx_grid g = {
        .ntid = {width, threads / width, 1},
        .nctaid = {blocks, 1, 1},
        .ncluster = {1, 1, 1},
        .dynamic_shared = launch->dynamic_shared,
        .total_shared = k->info.shared + launch->dynamic_shared,
        .nsm = 4,
        .id = 77,
        .params = launch->params,
        .vars = e->vars,
        .workspace = UINT64_C(0x1122334455667788),
        .shared_first = (uintptr_t)shared,
        .shared_last = (uintptr_t)shared + SHARED_BYTES,
        .local_first =
            in_memory ? (uintptr_t)memory : (uintptr_t)__builtin_frame_address(0) - (1 << 20),
        .local_last =
            in_memory ? (uintptr_t)memory + MEMORY_BYTES : (uintptr_t)__builtin_frame_address(0),
        .program = program,
        .host = &host,
    };
    int err = 0;

    assert_non_null(shared);
    assert_non_null(memory);
    for (unsigned i = launch->first; i < (launch->end ? launch->end : blocks) && err == 0; i++) {
        struct hed_ptx_block b = {.grid = &g, .shared = shared, .ctaid = {i, 0, 0}, .smid = i & 3};

        memset(shared, 0xee, SHARED_BYTES);
        err = run_block(k, &b, memory, threads, launch->meets);
    }
    free(shared);
    free(memory);
    return err;
}

static const struct hed_ptx_func *
find_kernel(struct exec *e, const char *name)
{
    for (const struct hed_ptx_func *f = e->module.funcs; f; f = f->next) {
        if (f->is_entry && strcmp(f->name, name) == 0)
            return f;
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

static void
begin_run(struct exec *e, const struct hed_ptx_info *info)
{
    now = e;
    e->trap = e->trap_line = 0;
    e->yields = 0;
    e->info = *info;
}

static int
run_compiled(struct exec *e, const struct hed_ptx_func *kernel, const struct exec_launch *launch)
{
    const struct hed_ptx_symbol *const tables[] = {runtime, hed_ptx_helpers, hed_ptx_group_helpers,
                                                   hed_ptx_warp_helpers};
    struct hed_ptx_loaded loaded;
    struct hed_buf object;
    const uint32_t width = launch->width ? launch->width : launch->threads ? launch->threads : 1;
    const uint32_t ntid[3] = {width, (launch->threads ? launch->threads : 1) / width, 1};
    int err;

    hed_buf_init(&object, 64 << 20);
    e->options.rows = launch->any_rows ? HED_ROWS_ANY : hed_rows_of(ntid);
    err = hed_ptx_compile(&e->module, kernel, &e->options, &object, &e->why);
    if (err == 0)
        err = hed_ptx_load(object.data, object.size, tables, 4, &loaded, &e->why);
    hed_buf_fini(&object);
    if (err != 0)
        return err;
    begin_run(e, &loaded.info);
    err = run_loaded(e, &loaded, NULL, launch);
    hed_ptx_unload(&loaded);
    return err;
}

int
exec_run(struct exec *e, const char *kernel, const struct exec_launch *launch)
{
    const struct hed_ptx_func *f = find_kernel(e, kernel);
    struct hed_ptx_loaded loaded = {.entry = e->entry ? e->entry : hed_interp_entry};
    struct hed_interp *program;
    int err;

    /* The baseline tier also runs what the compiler refuses. */
    if (e->tier != EXEC_BASELINE) {
        err = run_compiled(e, f, launch);
        if (err != HED_ENOTSUP)
            return err;
    }
    err = hed_interp_create(&e->module, f, &program, &e->why);
    if (err != 0)
        return err;
    loaded.info = *hed_interp_info(program);
    begin_run(e, &loaded.info);
    err = run_loaded(e, &loaded, program, launch);
    hed_interp_free(program);
    return err;
}

void
exec_code_as(enum exec_tier tier, const char *before, const char *code, const void *in, void *out)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n%s\n"
        ".visible .entry kernel(.param .u64 pin, .param .u64 pout) {\n"
        ".reg .b64 %%in, %%out; .reg .pred %%p<10>; .reg .b16 %%h<20>; .reg .b32 %%r<40>;\n"
        ".reg .b64 %%d<40>; .reg .b128 %%q<4>; .reg .f32 %%f<20>; .reg .f64 %%g<20>;\n"
        ".reg .b8 %%c<8>;\n"
        "ld.param.u64 %%in, [pin]; ld.param.u64 %%out, [pout];\n%s\nret;\n}\n";
    const void *params[2] = {in, out};
    const struct exec_launch launch = {.params = params, .size = sizeof(params)};
    char *text = NULL;
    struct exec e;

    if (asprintf(&text, form, before ? before : "", code) < 0)
        fail();
    exec_open(&e, text, tier);
    if (exec_run(&e, "kernel", &launch) != 0)
        fail_msg("%s: %s, trap %u at line %u", code, e.why.text, e.trap, e.trap_line);
    exec_close(&e);
    free(text);
}

void
exec_code(const char *before, const char *code, const void *in, void *out)
{
    exec_code_as(EXEC_COMPILED, before, code, in, out);
    exec_code_as(EXEC_BASELINE, before, code, in, out);
}
