/* Fuzz target: a cubin, of which every kernel and parameter is read. */
#include "harness/fuzz.h"

#include "base/arena.h"
#include "base/err.h"
#include "kernel/fatbin/cubin.h"

#define CEILING (1u << 20)

static void
read_kernel(const struct hed_cubin *c)
{
    volatile uint64_t sum = 0;

    for (uint32_t i = 0; i < c->kernel_count; i++) {
        const struct hed_cubin_kernel *k = &c->kernels[i];

        for (size_t j = 0; j < k->name.size; j++)
            sum += k->name.data[j];
        must(k->param_count == 0 || k->params);
        for (uint32_t j = 0; j < k->param_count; j++) {
            /* Every parameter was read, and none is larger than its entry can say. */
            must(k->params[j].size < 1u << 16 && k->params[j].offset < 1u << 16);
        }
    }
    (void)sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hed_bytes b = {data, size};
    struct hed_arena arena;
    struct hed_cubin c;
    struct hed_arch arch;
    struct hed_why why = {""};

    hed_arena_init(&arena, CEILING);
    if (hed_cubin_read(b, &arena, &c, &why) == 0) {
        read_kernel(&c);
        must(hed_cubin_arch(b, &arch, &why) == 0 && arch.number == c.arch.number);
    } else {
        must(why.text[0] != '\0');
    }
    hed_arena_fini(&arena);
    return 0;
}
