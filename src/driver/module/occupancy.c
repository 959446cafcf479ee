/* Occupancy. See occupancy.h.
 *
 * Registers are allocated to warps, in units, on one of the four partitions of a multiprocessor.
 * Shared memory is allocated to blocks, in units; from compute capability 8.0 on the system keeps
 * some for itself. The rules are those of NVIDIA's occupancy calculator.
 */
#include "driver/module/occupancy.h"

#include <stdbool.h>

#include "base/number.h"
#include "gen/cuda_abi.h"

#define PARTITIONS 4
#define REGISTER_PIECE 256 /* a warp's registers are rounded up to a multiple of this */
#define REGISTERS_MAX 255  /* per thread */
#define SHARED_PIECE 128   /* bytes; from compute capability 8.0 on */
#define SHARED_PIECE_BEFORE 256

uint32_t
hed_profile_number(const struct hed_profile *p, unsigned attribute, uint32_t otherwise)
{
    if (attribute >= HED_PROFILE_ATTRIBUTES ||
        !(p->has_attribute[attribute / 64] >> (attribute % 64) & 1) || p->attributes[attribute] < 0)
        return otherwise;
    return (uint32_t)p->attributes[attribute];
}

struct limits {
    uint32_t warp, threads, threads_block, blocks, registers, registers_block;
    uint64_t shared, shared_block, reserved, piece;
};

static struct limits
limits_of(const struct hed_profile *p)
{
    const uint32_t warp = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);

    return (struct limits){
        .warp = warp ? warp : 32,
        .threads = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024),
        .threads_block = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        .blocks = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
        .registers =
            hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
        .registers_block =
            hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536),
        .shared =
            hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 65536),
        .shared_block =
            hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 49152),
        .reserved = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
        .piece = p->major >= 8 ? SHARED_PIECE : SHARED_PIECE_BEFORE,
    };
}

static uint64_t
blocks_by_registers(const struct limits *l, uint32_t warps, uint32_t registers)
{
    const uint64_t warp = hed_round_up((uint64_t)registers * l->warp, REGISTER_PIECE);

    if (registers > REGISTERS_MAX || warp * hed_round_up(warps, PARTITIONS) > l->registers_block)
        return 0;
    return warp ? l->registers / PARTITIONS / warp * PARTITIONS / warps : UINT32_MAX;
}

static uint64_t
blocks_by_shared(const struct limits *l, uint64_t bytes)
{
    const uint64_t block = hed_round_up(bytes + l->reserved, l->piece);

    if (bytes > l->shared_block || block > l->shared)
        return 0;
    return block ? l->shared / block : UINT32_MAX;
}

uint32_t
hed_occupancy_blocks(const struct hed_profile *p, const struct hed_need *need)
{
    const struct limits l = limits_of(p);

    if (need->threads == 0 || need->threads > l.threads_block)
        return 0;

    const uint32_t warps = (need->threads + l.warp - 1) / l.warp;
    uint64_t n = hed_min(l.blocks, l.threads / l.warp / warps);

    n = hed_min(n, blocks_by_registers(&l, warps, need->registers));
    n = hed_min(n, blocks_by_shared(&l, need->static_shared + need->dynamic_shared));
    return (uint32_t)n;
}

uint64_t
hed_occupancy_shared(const struct hed_profile *p, const struct hed_need *need, uint32_t blocks)
{
    const struct limits l = limits_of(p);
    const struct hed_need without = {need->threads, need->registers, need->static_shared, 0};

    if (blocks == 0 || blocks > hed_occupancy_blocks(p, &without))
        return 0;

    const uint64_t each = l.shared / blocks / l.piece * l.piece;
    /* The part that the system keeps is not subtracted, as on NVIDIA's drivers (measured on
     * 580). */
    const uint64_t left = each > need->static_shared ? each - need->static_shared : 0;

    return hed_min(left, l.shared_block - need->static_shared);
}
