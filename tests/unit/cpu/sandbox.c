/* Confined kernels: each of these tries to reach memory of the process that is not in the address
 * sandbox, in both tiers. Without the address sandbox it succeeds, which shows that the attack is
 * one. */
#include <sys/mman.h>

#include "driver/memory/array.h"
#include "kernel/engine/rt.h"
#include "kernel/engine/sandbox.h"
#include "unit/cpu/compiled.h"
#include "unit/fatbin/make.h"

/* The kernel gets the address to attack, and memory of the device. */
static const char head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
    ".extern .func free(.param .b64 p);\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
    ".param .b64 s);\n"
    ".global .align 4 .b8 format[4] = {37, 115, 10, 0};\n"
    ".shared .align 16 .b8 room[512];\n"
    ".visible .entry attack(.param .u64 address, .param .u64 memory)\n"
    "{\n"
    "  .local .align 16 .b8 depot[64];\n"
    "  .reg .pred %p<4>; .reg .b32 %r<24>; .reg .b64 %rd<24>; .reg .b16 %h<8>;\n"
    "  .reg .f32 %f<24>;\n"
    "  ld.param.u64 %rd1, [address]; ld.param.u64 %rd2, [memory];\n"
    "  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n"
    "  mov.u32 %r2, 0x66666666; mov.u64 %rd5, 0x6666666666666666;\n"
    "  and.b32 %r3, %r1, 15; mul.wide.u32 %rd6, %r3, 4;\n";
static const char tail[] = "  ret;\n}\n";

#define SECRET 0x5ec2e75ec2e75ec2u

#define ILLEGAL CUDA_ERROR_ILLEGAL_ADDRESS

enum outcome { READS, WRITES, OTHER };

struct attack {
    const char *name;
    enum outcome outcome; /* without the address sandbox */
    CUresult result;      /* with it */
    const char *code;
};

/* %rd1 is the target, %rd4 the lane's own word, %rd6 at most 60. */
static const struct attack attacks[] = {
    {"load", READS, ILLEGAL, "  ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd4], %r4;\n"},
    {"generic load", READS, ILLEGAL, "  ld.u64 %rd7, [%rd1]; st.u32 [%rd4], %rd7;\n"},
    {"load of a row", READS, ILLEGAL,
     "  add.s64 %rd7, %rd1, %rd3; ld.global.u32 %r4, [%rd7]; st.global.u32 [%rd4], %r4;\n"},
    {"scattered load", READS, ILLEGAL,
     "  add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r4, [%rd7]; st.global.u32 [%rd4], %r4;\n"},
    {"vector load", READS, ILLEGAL,
     "  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1]; st.global.u32 [%rd4], %r7;\n"},
    {"load of a row of vectors", READS, ILLEGAL,
     "  mul.wide.u32 %rd7, %r1, 16; add.s64 %rd7, %rd7, %rd1;\n"
     "  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd7]; st.global.u32 [%rd4], %r5;\n"},
    {"load by some lanes", READS, ILLEGAL,
     "  setp.gt.u32 %p1, %r1, 20; add.s64 %rd7, %rd1, %rd3;\n"
     "  @%p1 ld.global.u32 %r4, [%rd7]; st.global.u32 [%rd4], %r4;\n"},
    {"load by offset", READS, ILLEGAL,
     "  sub.s64 %rd7, %rd1, 0x7ffffff0; ld.global.u32 %r4, [%rd7+0x7ffffff0];\n"
     "  st.global.u32 [%rd4], %r4;\n"},
    {"load by negative offset", READS, ILLEGAL,
     "  add.s64 %rd7, %rd1, 0x40000000; ld.global.u32 %r4, [%rd7+-0x40000000];\n"
     "  st.global.u32 [%rd4], %r4;\n"},
    {"volatile load", READS, ILLEGAL,
     "  ld.volatile.global.u32 %r4, [%rd1]; st.u32 [%rd4], %r4;\n"},
    {"acquire load", READS, ILLEGAL,
     "  ld.acquire.gpu.global.u32 %r4, [%rd1]; st.u32 [%rd4], %r4;\n"},
    {"constant load", READS, ILLEGAL, "  ld.const.u32 %r4, [%rd1]; st.u32 [%rd4], %r4;\n"},
    {"local load", READS, ILLEGAL, "  ld.local.u32 %r4, [%rd1]; st.u32 [%rd4], %r4;\n"},
    {"load from a parameter", READS, ILLEGAL,
     "  mov.u64 %rd7, address; sub.s64 %rd8, %rd1, %rd7; add.s64 %rd7, %rd7, %rd8;\n"
     "  ld.param.u32 %r4, [%rd7]; st.u32 [%rd4], %r4;\n"},
    {"load from an array", READS, ILLEGAL,
     "  mov.u64 %rd7, depot; sub.s64 %rd8, %rd1, %rd7; add.s64 %rd7, %rd7, %rd8;\n"
     "  ld.local.u32 %r4, [%rd7]; st.u32 [%rd4], %r4;\n"},
    {"load from shared memory", READS, ILLEGAL,
     "  mov.u64 %rd7, room; cvta.shared.u64 %rd7, %rd7; sub.s64 %rd8, %rd1, %rd7;\n"
     "  add.s64 %rd7, %rd7, %rd8; ld.u32 %r4, [%rd7]; st.u32 [%rd4], %r4;\n"},
    {"load in a loop", READS, ILLEGAL,
     "  mov.u32 %r4, 0; mov.u64 %rd7, %rd1;\n"
     "again: ld.global.u32 %r5, [%rd7]; or.b32 %r4, %r4, %r5; add.s64 %rd7, %rd7, 8;\n"
     "  sub.s64 %rd8, %rd7, %rd1; setp.lt.u64 %p1, %rd8, 64; @%p1 bra again;\n"
     "  st.u32 [%rd4], %r4;\n"},
    {"copy from", READS, ILLEGAL,
     "  mov.u32 %r4, room; cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.wait_all;\n"
     "  ld.shared.u32 %r5, [%r4]; st.u32 [%rd4], %r5;\n"},
    {"bulk copy from", READS, ILLEGAL,
     "  mov.u32 %r4, room;\n  mov.u32 %r6, room; add.u32 %r6, %r6, 256; mov.u32 %r7, 64;\n"
     "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], %r7, "
     "[%r6];\n"
     "  ld.shared.u32 %r5, [%r4]; st.u32 [%rd4], %r5;\n"},
    {"matrix load", READS, ILLEGAL,
     "  wmma.load.c.sync.aligned.row.m16n16k16.global.f32 "
     "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd1];\n  st.f32 [%rd4], %f0;\n"},
    {"store", WRITES, ILLEGAL, "  st.global.u32 [%rd1], %r2;\n"},
    {"store of a row", WRITES, ILLEGAL, "  add.s64 %rd7, %rd1, %rd3; st.global.u32 [%rd7], %r2;\n"},
    {"scattered store", WRITES, ILLEGAL,
     "  add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r2;\n"},
    {"vector store", WRITES, ILLEGAL, "  st.global.v4.u32 [%rd1], {%r2, %r2, %r2, %r2};\n"},
    {"byte store", WRITES, ILLEGAL, "  cvt.u16.u32 %h1, %r2; st.global.u8 [%rd1], %h1;\n"},
    {"store by some lanes", WRITES, ILLEGAL,
     "  setp.gt.u32 %p1, %r1, 20; add.s64 %rd7, %rd1, %rd6; @%p1 st.global.u32 [%rd7], %r2;\n"},
    {"release store", WRITES, ILLEGAL, "  st.release.gpu.global.u32 [%rd1], %r2;\n"},
    {"local store", WRITES, ILLEGAL, "  st.local.u32 [%rd1], %r2;\n"},
    {"store to an array", WRITES, ILLEGAL,
     "  mov.u64 %rd7, depot; sub.s64 %rd8, %rd1, %rd7; add.s64 %rd7, %rd7, %rd8;\n"
     "  st.local.u32 [%rd7], %r2;\n"},
    {"atom", WRITES, ILLEGAL, "  atom.global.exch.b32 %r4, [%rd1], %r2;\n"},
    {"atom 64", WRITES, ILLEGAL, "  atom.exch.b64 %rd7, [%rd1], %rd5;\n"},
    {"red", WRITES, ILLEGAL, "  red.global.add.u32 [%rd1], %r2;\n"},
    {"red of floats", WRITES, ILLEGAL, "  mov.b32 %f1, %r2; red.global.add.f32 [%rd1], %f1;\n"},
    {"cas", WRITES, ILLEGAL,
     "  ld.global.u32 %r5, [%rd2]; mov.u32 %r5, 0xec2e75ec; mov.u32 %r4, 0x75ec2e7;\n"
     "  mov.u64 %rd7, 0x5ec2e75ec2e75ec2; atom.global.cas.b64 %rd8, [%rd1], %rd7, %rd5;\n"},
    {"scattered atom", WRITES, ILLEGAL,
     "  add.s64 %rd7, %rd1, %rd6; atom.global.exch.b32 %r4, [%rd7], %r2;\n"},
    {"bulk copy to", WRITES, ILLEGAL,
     "  mov.u32 %r4, room; st.shared.v2.u64 [%r4], {%rd5, %rd5}; mov.u32 %r7, 16;\n"
     "  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], %r7;\n"},
    {"matrix store", WRITES, ILLEGAL,
     "  mov.b32 %f0, %r2;\n  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], "
     "{%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};\n"},
    {"text of printf", OTHER, ILLEGAL,
     "  .param .b64 f; .param .b64 a; .param .b32 r;\n"
     "  st.local.u64 [depot], %rd1; mov.u64 %rd7, depot; cvta.local.u64 %rd7, %rd7;\n"
     "  mov.u64 %rd8, format; cvta.global.u64 %rd8, %rd8;\n"
     "  st.param.b64 [f], %rd8; st.param.b64 [a], %rd7; call (r), vprintf, (f, a);\n"},
    {"format of printf", OTHER, ILLEGAL,
     "  .param .b64 f; .param .b64 a; .param .b32 r;\n"
     "  st.param.b64 [f], %rd1; st.param.b64 [a], %rd2; call (r), vprintf, (f, a);\n"},
    {"arguments of printf", OTHER, ILLEGAL,
     "  .param .b64 f; .param .b64 a; .param .b32 r;\n"
     "  mov.u64 %rd8, format; cvta.global.u64 %rd8, %rd8;\n"
     "  st.param.b64 [f], %rd8; st.param.b64 [a], %rd1; call (r), vprintf, (f, a);\n"},
    {"assertion", OTHER, ILLEGAL,
     "  .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
     "  st.param.b64 [m], %rd1; st.param.b64 [f], %rd1; st.param.b32 [l], %r1;\n"
     "  st.param.b64 [n], %rd1; st.param.b64 [s], 1; call __assertfail, (m, f, l, n, s);\n"},
    {"condition", OTHER, ILLEGAL,
     "  .param .b64 h; .param .b32 v;\n"
     "  st.param.b64 [h], %rd1; st.param.b32 [v], %r2; call cudaGraphSetConditional, (h, v);\n"},
    {"texture object", OTHER, ILLEGAL,
     "  tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd1, {%r1}]; st.f32 [%rd4], %f0;\n"},
    {"surface object", OTHER, ILLEGAL, "  sust.b.1d.b32.zero [%rd1, {%r1}], %r2;\n"},
    {"forged texture", READS, ILLEGAL,
     "  add.s64 %rd7, %rd2, 8192; tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd7, {%r3}];\n"
     "  st.u32 [%rd4], %r4;\n"},
    {"forged surface", WRITES, ILLEGAL,
     "  add.s64 %rd7, %rd2, 12288; sust.b.1d.b32.zero [%rd7, {%r3}], %r2;\n"},
    {"end of shared memory", OTHER, ILLEGAL,
     "  mov.u32 %r4, 0xfffffff0; st.shared.u32 [%r4], %r2;\n"},
    {"row at the end of shared memory", OTHER, ILLEGAL,
     "  shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, 0x7fffffc0; st.shared.u32 [%r4], %r2;\n"},
    {"atom at the end of shared memory", OTHER, ILLEGAL,
     "  mov.u32 %r4, 0xfffffff0; atom.shared.add.u32 %r5, [%r4], %r2;\n"},
    {"far from a shared array", OTHER, ILLEGAL, "  st.shared.u32 [room+0x7ffffff0], %r2;\n"},
    {"far from a local array", OTHER, ILLEGAL, "  st.local.u32 [depot+0x7ffffff0], %r2;\n"},
    {"very far from a local array", OTHER, ILLEGAL,
     "  st.local.u32 [depot+0x123456789abc0], %r2;\n"},
    {"index of a local array", OTHER, ILLEGAL,
     "  mov.u64 %rd7, depot; and.b64 %rd8, %rd1, 0; add.s64 %rd8, %rd8, 0x4000000000;\n"
     "  add.s64 %rd7, %rd7, %rd8; st.local.u32 [%rd7], %r2; ld.local.u32 %r4, [depot];\n"},
    {"far from a parameter", OTHER, ILLEGAL,
     "  ld.param.u32 %r4, [address+0x7ffffff0]; st.u32 [%rd4], %r4;\n"},
    {"rows of a matrix", OTHER, ILLEGAL,
     "  mov.u32 %r4, 0xfffffff0; wmma.load.c.sync.aligned.row.m16n16k16.global.f32 "
     "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd2], %r4;\n  st.f32 [%rd4], %f0;\n"},
    {"long copy", OTHER, ILLEGAL,
     "  mov.u32 %r4, room; mov.u32 %r7, 0xfffffff0;\n"
     "  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], %r7;\n"},
    {"long clear", OTHER, ILLEGAL,
     "  mov.u64 %rd7, room; mov.u64 %rd8, 0x7ffffffffffffff8;\n"
     "  st.bulk.weak.shared::cta [%rd7], %rd8, 0;\n"},
    {"free", OTHER, CUDA_SUCCESS, "  .param .b64 p; st.param.b64 [p], %rd1; call free, (p);\n"},
    {"call", OTHER, CUDA_ERROR_INVALID_PC,
     "  prototype: .callprototype _ ();\n  call %rd1, (), prototype;\n"},
};

static unsigned char *heap;   /* a page of secrets */
static uint64_t device;       /* memory of the device */
static struct hed_why reason; /* of the last launch */
static bool was_compiled;     /* the kernel of the last launch */

#define DEVICE_BYTES ((size_t)1 << 20)

static int
setup_with(bool confined)
{
    struct hed_why why = {""};

    heap = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (heap == MAP_FAILED || setup_cpu(NULL) != 0)
        return -1;
    if (confined) {
        hed_engine_free(cpu.engine);
        if (hed_address_sandbox_create(HED_SPACE_BASE, &cpu.sandbox, &why) != 0 ||
            hed_engine_create_confined(2, cpu.sandbox, &cpu.engine, &why) != 0)
            return -1;
    }
    hed_heap_init(&cpu.heaps[0], confined ? &cpu.sandbox->open : NULL);
    return hed_cpu_reserve(&cpu, 0, (uint64_t)1 << 40, &device) == 0 &&
                   hed_cpu_map(&cpu, device, DEVICE_BYTES) == 0
               ? 0
               : -1;
}

static int
setup_confined(void **state)
{
    return setup_with(true);
}

static int
setup_free(void **state)
{
    return setup_with(false);
}

static int
teardown_sandbox(void **state)
{
    const int err = teardown_cpu(state);

    hed_heap_fini(&cpu.heaps[0]);
    if (!cpu.sandbox)
        munmap((void *)(uintptr_t)device, (size_t)1 << 40);
    hed_address_sandbox_free(cpu.sandbox);
    munmap(heap, 4096);
    return err;
}

/* Descriptors that a kernel could have written itself. */
static void
forge_descriptors(uint64_t target)
{
    const struct hed_format words = {HED_TEXEL_UINT, 32, 1, 4};
    const struct hed_texels image = {
        .at = target, .pitch = 64, .slice = 64, .width = 16, .height = 1, .depth = 1};
    const struct hed_texture t = {.magic = HED_TEXTURE_MAGIC,
                                  .shape = HED_SHAPE_1D,
                                  .format = words,
                                  .as_integer = true,
                                  .levels = 1,
                                  .layers = 1,
                                  .level = {image}};
    const struct hed_surface f = {
        .magic = HED_SURFACE_MAGIC, .shape = HED_SHAPE_1D, .format = words, .image = image};

    memcpy((void *)(uintptr_t)(device + 8192), &t, sizeof t);
    memcpy((void *)(uintptr_t)(device + 12288), &f, sizeof f);
}

static void
hide_secrets(uint64_t target)
{
    const uint64_t secret = SECRET;

    for (size_t i = 0; i < 4096; i += sizeof secret)
        memcpy(heap + i, &secret, sizeof secret);
    memset((void *)(uintptr_t)device, 0, DEVICE_BYTES);
    forge_descriptors(target);
}

static bool
was_read(void)
{
    const uint32_t *words = (const uint32_t *)(uintptr_t)device;
    const uint64_t secret = SECRET;
    uint32_t halves[2];
    bool found = false;

    memcpy(halves, &secret, sizeof halves);
    for (unsigned i = 0; i < 32; i++)
        found = found || words[i] == halves[0] || words[i] == halves[1];
    return found;
}

static bool
was_written(void)
{
    const uint64_t secret = SECRET;
    bool changed = false;

    for (size_t i = 0; i < 4096; i += sizeof secret)
        changed = changed || memcmp(heap + i, &secret, sizeof secret) != 0;
    return changed;
}

static CUresult
launch_code(const char *code, uint64_t target, bool in_baseline)
{
    static char text[16384];
    static uint64_t variables[4];
    const uint64_t params[] = {target, device};
    struct hed_code_source source = {.data = text, .device = 90, .arch = 90};
    struct hed_launch l = {.variables = variables,
                           .grid = {2, 1, 1},
                           .block = {64, 1, 1},
                           .param_bytes = sizeof params,
                           .params = (const unsigned char *)params,
                           .heap_limit = 1 << 20};
    CUresult r;

    source.size = (size_t)snprintf(text, sizeof text, "%s%s%s", head, code, tail);
    cpu.baseline = in_baseline;
    l.code = open_source(&source);
    variables[0] = device + 65536;
    hed_cpu_fill_vars(&cpu, l.code, variables, variables);
    reason.text[0] = 0;
    r = prepare_and_launch(&l, &reason);
    was_compiled = hed_cpu_kernel_of(&cpu, l.code, 0, l.block)->program == NULL;
    hed_cpu_close(&cpu, l.code);
    return r;
}

static uint32_t
engine_word(void)
{
    return cpu.engine->threads;
}

/* The compiler refuses these. */
static bool
is_left_to_baseline(const struct attack *a)
{
    return strcmp(a->name, "call") == 0 || strcmp(a->name, "very far from a local array") == 0;
}

static void
attacks_fail_in_the_sandbox(void **state)
{
    uint64_t on_stack[16];

    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        const struct attack *a = &attacks[i];
        const uint64_t targets[] = {(uintptr_t)heap,
                                    (uintptr_t)on_stack & ~UINT64_C(15),
                                    (uintptr_t)cpu.engine,
                                    (uintptr_t)&hed_engine_run & ~UINT64_C(15),
                                    (uintptr_t)cpu.engine->stacks.base + (1 << 20) - 64,
                                    0x100,
                                    UINT64_C(0x8000000000000000),
                                    UINT64_MAX - 15,
                                    cpu.sandbox->base - 4096,
                                    cpu.sandbox->base + HED_PTX_SANDBOX_SIZE};
        const uint32_t before = engine_word();

        for (size_t t = 0; t < sizeof targets / sizeof *targets * 2; t++) {
            const bool in_baseline = t % 2 != 0;
            CUresult r;

            hide_secrets(targets[t / 2]);
            r = launch_code(a->code, targets[t / 2], in_baseline);
            if (r != a->result)
                print_error("%s, target %zu, %s: %d %s\n", a->name, t / 2,
                            in_baseline ? "baseline" : "compiled", r, reason.text);
            assert_int_equal(r, a->result);
            assert_int_equal(was_compiled, !in_baseline && !is_left_to_baseline(a));
            assert_false(was_read());
            assert_false(was_written());
            assert_int_equal(before, engine_word());
        }
    }
}

static void
attacks_succeed_without_it(void **state)
{
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        for (int in_baseline = 0; in_baseline < 2; in_baseline++) {
            const struct attack *a = &attacks[i];
            CUresult r;

            if (a->outcome == OTHER)
                continue;
            hide_secrets((uintptr_t)heap);
            r = launch_code(a->code, (uintptr_t)heap, in_baseline);
            if (r != CUDA_SUCCESS || (a->outcome == READS ? !was_read() : !was_written()))
                print_error("%s, %s: %d %s\n", a->name, in_baseline ? "baseline" : "compiled", r,
                            reason.text);
            assert_int_equal(r, CUDA_SUCCESS);
            assert_true(a->outcome == READS ? was_read() : was_written());
        }
    }
}

/* `sum` of machine_code.cu writes to an address. */
static CUresult
launch_machine_code(uint64_t to, bool in_baseline)
{
    const struct hed_bytes cubin = fixture("cubin/sm_80");
    const struct hed_code_source source = {
        .kind = HED_CODE_CUBIN, .data = cubin.data, .size = cubin.size, .device = 80, .arch = 80};
    const struct {
        uint64_t out;
        int n;
    } params = {to, 64};
    uint64_t variables[16] = {0};
    struct hed_launch l = {.variables = variables,
                           .grid = {1, 1, 1},
                           .block = {64, 1, 1},
                           .param_bytes = 12,
                           .params = (const unsigned char *)&params};
    CUresult r;

    cpu.baseline = in_baseline;
    l.code = open_source(&source);
    assert_true(l.code->var_count <= 16);
    for (uint32_t i = 0; i < l.code->var_count; i++)
        variables[i] = l.code->vars[i].part_of
                           ? variables[l.code->vars[i].part_of - 1] + l.code->vars[i].at
                           : device + 65536 + i * UINT64_C(4096);
    hed_cpu_fill_vars(&cpu, l.code, variables, variables);
    while (strcmp(l.code->kernels[l.kernel].name, "sum") != 0)
        l.kernel++;
    r = prepare_and_launch(&l, &reason);
    hed_cpu_close(&cpu, l.code);
    return r;
}

static void
machine_code_stays_in_the_sandbox(void **state)
{
    for (int in_baseline = 0; in_baseline < 2; in_baseline++) {
        const int *out = (const int *)(uintptr_t)device;

        hide_secrets(0);
        assert_int_equal(launch_machine_code((uintptr_t)heap, in_baseline), ILLEGAL);
        assert_false(was_written());
        assert_int_equal(launch_machine_code(0, in_baseline), ILLEGAL);
        assert_int_equal(launch_machine_code(device, in_baseline), CUDA_SUCCESS);
        assert_int_equal(out[0], 10 * 4 + 30 + 3 + 5);
        assert_int_equal(out[63], 40 * 4 + 30 + 3 + 5);
    }
}

static void
machine_code_leaves_without_it(void **state)
{
    for (int in_baseline = 0; in_baseline < 2; in_baseline++) {
        hide_secrets(0);
        assert_int_equal(launch_machine_code((uintptr_t)heap, in_baseline), CUDA_SUCCESS);
        assert_true(was_written());
    }
}

static void
count_runs(struct hed_ptx_warp *s)
{
    hed_rt_yield(s);
}

static void
code_of_the_other_kind_is_refused(void **state)
{
    struct hed_job job = {.entry = count_runs,
                          .info = {.abi = HED_PTX_ABI, .stack = 4096},
                          .name = "test",
                          .grid = {1, 1, 1},
                          .block = {32, 1, 1}};
    struct hed_why why = {""};

    assert_int_equal(hed_engine_run(cpu.engine, &job, &why), CUDA_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "not compiled for an address sandbox"));
    job.info.flags = HED_PTX_CONFINED;
    assert_int_equal(hed_engine_run(cpu.engine, &job, &why), CUDA_SUCCESS);
}

/* Writes where a function of C with a large frame would, if little of the stack is left. */
static void
skip_a_frame(struct hed_ptx_warp *s)
{
    volatile unsigned char *stack = ((struct hed_engine_warp *)s)->stack;

    stack[200 << 10] = 1;
}

static void
large_frames_cannot_skip_the_guard(void **state)
{
    for (uint32_t flags = HED_PTX_CONFINED; flags <= (HED_PTX_CONFINED | HED_PTX_WAITS);
         flags += HED_PTX_WAITS) {
        const struct hed_job job = {.entry = skip_a_frame,
                                    .info = {.abi = HED_PTX_ABI, .flags = flags, .stack = 4096},
                                    .name = "test",
                                    .grid = {1, 1, 1},
                                    .block = {1024, 1, 1}};
        struct hed_why why = {""};

        assert_int_equal(hed_engine_run(cpu.engine, &job, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

static void
memory_of_malloc_is_in_the_sandbox(void **state)
{
    static const size_t sizes[] = {1, 16, 17, 100, 4096, 32768, 32769, 65536, 200000};
    struct hed_heap *h = &cpu.heaps[0];

    for (int round = 0; round < 3; round++) {
        void *all[sizeof sizes / sizeof *sizes];

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            all[i] = hed_heap_take(h, sizes[i], 1 << 20);
            assert_non_null(all[i]);
            assert_true((uintptr_t)all[i] - cpu.sandbox->base < HED_PTX_SANDBOX_SIZE);
            assert_int_equal((uintptr_t)all[i] % 16, 0);
            memset(all[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const unsigned char *p = all[i];

            assert_int_equal(p[0], i + 1);
            assert_int_equal(p[sizes[i] - 1], i + 1);
            assert_int_equal(hed_heap_give(h, all[i]), 0);
        }
        assert_int_equal(h->used, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(attacks_succeed_without_it, setup_free, teardown_sandbox),
    cmocka_unit_test_setup_teardown(attacks_fail_in_the_sandbox, setup_confined, teardown_sandbox),
    cmocka_unit_test_setup_teardown(machine_code_leaves_without_it, setup_free, teardown_sandbox),
    cmocka_unit_test_setup_teardown(machine_code_stays_in_the_sandbox, setup_confined,
                                    teardown_sandbox),
    cmocka_unit_test_setup_teardown(code_of_the_other_kind_is_refused, setup_confined,
                                    teardown_sandbox),
    cmocka_unit_test_setup_teardown(large_frames_cannot_skip_the_guard, setup_confined,
                                    teardown_sandbox),
    cmocka_unit_test_setup_teardown(memory_of_malloc_is_in_the_sandbox, setup_confined,
                                    teardown_sandbox),
};

HED_UNIT_MAIN(tests)
