/* Fuzz target: the machine code of a cubin is found, listed and lifted to PTX; any other bytes are
 * decoded as instructions.
 */
#include "harness/fuzz.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "kernel/fatbin/elf.h"
#include "kernel/sass/lift.h"
#include "kernel/sass/sass.h"
#include "kernel/sass/text.h"

#define CEILING (1u << 20)
#define KERNELS 8 /* that are lifted */

static void
read_line(void *arg, const char *line)
{
    *(volatile size_t *)arg += strlen(line);
}

static void
list_cubin(struct hed_bytes b, struct hed_arena *arena)
{
    struct hed_sass_code *all;
    struct hed_why why = {""};
    volatile size_t sum = 0;
    uint32_t count;

    if (hed_sass_sections(b, arena, &all, &count, &why) != 0) {
        must(why.text[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        (void)hed_sass_list(&all[i], arena, read_line, (void *)&sum);
}

static void
lift_cubin(struct hed_bytes b, struct hed_arena *arena)
{
    struct hed_sass_program *p;
    struct hed_why why = {""};
    struct hed_buf ptx;

    if (hed_sass_open(b, arena, &p, &why) != 0) {
        must(why.text[0] != '\0');
        return;
    }
    hed_buf_init(&ptx, CEILING);
    for (uint32_t i = 0; i < p->cubin.kernel_count && i < KERNELS; i++) {
        hed_buf_reset(&ptx);
        if (hed_sass_lift(p, i, i % 2 ? HED_SASS_FOR_CPU : HED_SASS_FOR_GPU, &ptx, &why) == 0)
            must(ptx.err == 0 && ptx.size > 0);
    }
    for (uint32_t i = 0; p->cubin.kernel_count && i < p->pointer_count && i < KERNELS; i++) {
        hed_buf_reset(&ptx);
        if (p->pointers[i].to == HED_SASS_NUMBER &&
            hed_sass_lift_function(p, 0, (uint64_t)p->pointers[i].addend, &ptx, &why) == 0)
            must(ptx.err == 0 && ptx.size > 0);
    }
    hed_buf_reset(&ptx);
    if (p->cubin.kernel_count <= KERNELS && hed_sass_lift_module(p, NULL, NULL, &ptx, &why) == 0)
        must(ptx.err == 0 && ptx.size > 0);
    hed_buf_fini(&ptx);
}

static void
print_instructions(const uint8_t *data, size_t size, unsigned arch)
{
    struct hed_sass_inst inst;
    struct hed_buf text;

    hed_buf_init(&text, CEILING);
    for (size_t at = 0; at + HED_SASS_BYTES <= size; at += HED_SASS_BYTES) {
        hed_buf_reset(&text);
        if (hed_sass_decode(arch, data + at, &inst) != 0)
            continue;
        must(inst.operand_count <= HED_SASS_OPERANDS);
        must(inst.modifier_count <= HED_SASS_MODIFIERS);
        hed_sass_print(&inst, at, NULL, &text);
        must(text.err == 0 && text.size > 0);
    }
    hed_buf_fini(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned archs[] = {75, 80, 86, 89, 90};
    const struct hed_bytes b = {data, size};
    struct hed_arena arena;

    hed_arena_init(&arena, CEILING);
    if (hed_elf_file_begins(b))
        list_cubin(b, &arena);
    hed_arena_reset(&arena);
    if (hed_elf_file_begins(b))
        lift_cubin(b, &arena);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        print_instructions(data, size, archs[i]);
    hed_arena_fini(&arena);
    return 0;
}
