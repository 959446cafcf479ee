/* Tests of functions in machine code that are lifted when a kernel calls them: once each, whichever
 * thread comes first.
 */
#include "backends/cpu/code.h"

#include <pthread.h>

#include "backends/cpu/cpu.h"
#include "kernel/sass/lift.h"
#include "unit/sass/cubin_make.h"

#define THREADS 8
#define FUNCTIONS 4
#define ROUNDS 1000
#define R_CUDA_64 2

static struct hed_cpu cpu;

/* A cubin with an empty kernel, and a variable that holds the addresses of functions. */
static void
make_cubin_of_functions(struct make_cubin *cubin)
{
    const uint64_t words[FUNCTIONS] = {0};
    Elf64_Rela all[FUNCTIONS] = {{0}};
    struct hed_buf code;

    hed_buf_init(&code, MAKE_CEILING);
    make_exit(&code);
    (void)make_kernel(cubin, "k", &code, NULL);
    hed_buf_reset(&code);
    make_inst(&code, 0x7950 | 20 << 24, 0x000fea0003e00000); /* RET.ABS.NODEC R20 0x0 */
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        const uint32_t section =
            make_section(cubin, ".text.f", SHT_PROGBITS, 0, code.data, code.size);
        const Elf64_Sym f = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                             .st_shndx = (uint16_t)section,
                             .st_size = code.size};

        all[i] = (Elf64_Rela){
            .r_offset = i * 8,
            .r_info = ELF64_R_INFO((uint64_t)make_symbol(cubin, "f", f), (uint64_t)R_CUDA_64)};
    }
    (void)make_section(cubin, ".rela", SHT_RELA,
                       make_section(cubin, ".nv.global.init", SHT_PROGBITS, 0, words, sizeof words),
                       all, sizeof all);
    hed_buf_fini(&code);
}

static struct hed_cpu_code *
open_functions(struct make_cubin *cubin)
{
    struct hed_code_source source = {.kind = HED_CODE_CUBIN, .device = 80, .arch = 80};
    struct hed_code *code = NULL;
    struct hed_why why = {""};
    struct hed_bytes b;

    make_cubin_begin(cubin);
    make_cubin_of_functions(cubin);
    b = make_cubin_end(cubin);
    source.data = b.data;
    source.size = b.size;
    cpu.baseline = true;
    if (hed_cpu_open(&cpu, &source, &code, NULL, &why) != 0 ||
        hed_cpu_prepare(&cpu, code, 0, NULL, &why) != CUDA_SUCCESS)
        fail_msg("%s", why.text);
    return (struct hed_cpu_code *)code;
}

static void
close_functions(struct hed_cpu_code *code, struct make_cubin *cubin)
{
    hed_cpu_close(&cpu, &code->pub);
    make_cubin_fini(cubin);
}

static unsigned
count_of_functions(struct hed_cpu_code *code)
{
    unsigned n = 0;

    for (const struct hed_cpu_function *f = code->lifted[0].functions; f; f = f->next)
        n++;
    return n;
}

struct caller {
    struct hed_cpu_kernel *kernel;
    const struct hed_sass_pointer *addresses;
    unsigned number;
    const struct hed_interp *found[FUNCTIONS];
    bool is_same;
};

static void *
call_functions(void *arg)
{
    struct caller *c = arg;

    c->is_same = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = (round + c->number) % FUNCTIONS;
        const struct hed_interp *f =
            hed_code_find_function(c->kernel, (uint64_t)c->addresses[i].addend);

        c->is_same = c->is_same && (!c->found[i] || c->found[i] == f);
        c->found[i] = f;
    }
    return NULL;
}

static void
all_threads_find_the_same_functions(void **state)
{
    struct caller callers[THREADS];
    pthread_t threads[THREADS];
    struct make_cubin cubin;
    struct hed_cpu_code *code = open_functions(&cubin);

    assert_int_equal(code->sass->pointer_count, FUNCTIONS);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.kernel = hed_cpu_kernel_of(&cpu, &code->pub, 0, NULL),
                                     .addresses = code->sass->pointers,
                                     .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, call_functions, &callers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_true(callers[i].is_same);
        for (unsigned k = 0; k < FUNCTIONS; k++) {
            assert_non_null(callers[i].found[k]);
            assert_ptr_equal(callers[i].found[k], callers[0].found[k]);
        }
    }
    assert_int_equal(count_of_functions(code), FUNCTIONS);
    close_functions(code, &cubin);
}

static void
an_address_of_nothing_is_looked_for_once(void **state)
{
    struct make_cubin cubin;
    struct hed_cpu_code *code = open_functions(&cubin);
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, &code->pub, 0, NULL);

    assert_null(hed_code_find_function(k, 16));
    assert_null(hed_code_find_function(k, 16));
    assert_int_equal(count_of_functions(code), 1);
    close_functions(code, &cubin);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_threads_find_the_same_functions),
    cmocka_unit_test(an_address_of_nothing_is_looked_for_once),
};

HED_UNIT_MAIN(tests)
