/* Tests that the kernel computes the hash of chunks as the CPU does, compiled and interpreted. */
#include "harness/unit.h"

#include <string.h>

#include "move/file/hash.h"
#include "ptx/exec/harness.h"

#define COUNT 10

static const size_t sizes[COUNT] = {0, 1, 15, 4096, 4097, 8191, 16384, 20480, 40960, 100000};
static _Alignas(16) unsigned char memory[131072];
static struct hed_snap_piece pieces[COUNT];

struct hash_arguments {
    const struct hed_snap_piece *pieces;
    struct hed_snap_hash *out;
    uint32_t count;
};

static void
kernel_agrees(enum exec_tier tier, unsigned blocks)
{
    static _Alignas(16) struct hed_snap_hash out[COUNT];
    const struct hash_arguments a = {pieces, out, COUNT};
    const struct exec_launch launch = {.blocks = blocks,
                                       .threads = HED_SNAP_HASH_THREADS,
                                       .params = &a,
                                       .size = sizeof a,
                                       .meets = true};
    struct exec e;

    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)(i * 2654435761 >> 13);
    for (size_t i = 0; i < COUNT; i++)
        pieces[i] = (struct hed_snap_piece){(uintptr_t)(memory + 16 * i), sizes[i]};
    memset(out, 0, sizeof out);
    exec_open(&e, hed_snap_hash_ptx, tier);
    if (exec_run(&e, "hed_snap_hash", &launch) != 0)
        fail_msg("%s, trap %u at line %u", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
    for (size_t i = 0; i < COUNT; i++) {
        struct hed_snap_hash want;

        hed_snap_hash(memory + 16 * i, sizes[i], &want);
        assert_memory_equal(&out[i], &want, sizeof want);
    }
}

static void
compiled_kernel_agrees_with_c(void **state)
{
    kernel_agrees(EXEC_COMPILED, COUNT);
    kernel_agrees(EXEC_COMPILED, 3);
}

static void
interpreted_kernel_agrees_with_c(void **state)
{
    kernel_agrees(EXEC_BASELINE, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(compiled_kernel_agrees_with_c),
    cmocka_unit_test(interpreted_kernel_agrees_with_c),
};

HED_UNIT_MAIN(tests)
