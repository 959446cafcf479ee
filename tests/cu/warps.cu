/* Lanes of a warp: shuffles, votes, match, redux, elect, the active mask; of all lanes or some. */
#include "run.cuh"

#include <cooperative_groups.h>

#define ALL 0xffffffffu

__device__ static unsigned
mix(unsigned x)
{
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ x >> 15;
}

KERNEL(shuffle)
{
    const unsigned v = mix(ME);

    out[ME] = __shfl_sync(ALL, v, (int)(mix(ME) % 40));
    out[64 + ME] = __shfl_up_sync(ALL, v, 3);
    out[128 + ME] = __shfl_down_sync(ALL, v, 5);
    out[192 + ME] = __shfl_xor_sync(ALL, v, 21);
}

KERNEL(shuffle_parts)
{
    const unsigned v = mix(ME);

    out[ME] = __shfl_sync(ALL, v, 5, 8);
    out[64 + ME] = __shfl_up_sync(ALL, v, 3, 16);
    out[128 + ME] = __shfl_down_sync(ALL, v, 1, 4);
    out[192 + ME] = __shfl_xor_sync(ALL, v, 9, 8);
}

/* The predicate that says whether the source lane was in range; clamps and masks. */
KERNEL(shuffle_predicate)
{
    unsigned v;
    unsigned p;

    asm volatile("{\n\t.reg .pred q;\n\tshfl.sync.down.b32 %0|q, %2, %3, 0x1803, -1;\n\t"
                 "selp.u32 %1, 1, 0, q;\n\t}"
                 : "=r"(v), "=r"(p)
                 : "r"(mix(ME)), "r"(ME % 9));
    out[ME] = v;
    out[64 + ME] = p;
    out[128 + ME] = (unsigned)(__shfl_sync(ALL, (unsigned long long)mix(ME) << 20, 7) >> 16);
    out[192 + ME] = __float_as_uint(__shfl_xor_sync(ALL, 1.5f * (float)ME, 16));
}

KERNEL(vote)
{
    const bool p = mix(ME) % 3 == 0;

    out[ME] = __ballot_sync(ALL, p);
    out[64 + ME] = (unsigned)(__all_sync(ALL, ME < 60) != 0) |
                   (unsigned)(__any_sync(ALL, ME == 40) != 0) << 1;
    out[128 + ME] = 0;
    if (ME % 2) {
        unsigned u;

        out[128 + ME] = __ballot_sync(0xaaaaaaaa, p);
        asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\t"
                     "vote.sync.uni.pred q, p, 0xaaaaaaaa;\n\tselp.u32 %0, 1, 0, q;\n\t}"
                     : "=r"(u)
                     : "r"((unsigned)(ME > 31)));
        out[192 + ME] = u;
    }
}

KERNEL(match)
{
    int same = 0;

    out[ME] = __match_any_sync(ALL, mix(ME) % 5);
    out[64 + ME] = __match_all_sync(ALL, ME / 32, &same);
    out[64 + ME] += (unsigned)same;
    out[128 + ME] = __match_all_sync(ALL, ME / 7, &same);
    out[128 + ME] += (unsigned)same;
    out[192 + ME] = __match_any_sync(ALL, (unsigned long long)(mix(ME) % 3) << 40);
}

KERNEL(redux)
{
    out[ME] = __reduce_add_sync(ALL, mix(ME));
    out[64 + ME] = (unsigned)__reduce_min_sync(ALL, (int)mix(ME)) ^ __reduce_max_sync(ALL, mix(ME));
    out[128 + ME] = __reduce_or_sync(ALL, 1u << (mix(ME) % 32)) ^ __reduce_xor_sync(ALL, mix(ME));
    out[192 + ME] = 1;
    if (ME % 32 < 10)
        out[192 + ME] = __reduce_and_sync(0x3ff, mix(ME) | 0xf0f0);
}

/* One of the lanes that take part is chosen; which one depends on the hardware. */
KERNEL(elect)
{
    unsigned lane;
    unsigned mine;

#if __CUDA_ARCH__ < 900 /* the first one */
    lane = 0;
    mine = lane == ME % 32;
#else
    asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, -1;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                 : "=r"(lane), "=r"(mine));
#endif
    out[ME] = (unsigned)__popc(__ballot_sync(ALL, mine != 0)) |
              (unsigned)(mine == (unsigned)(lane == ME % 32)) << 8;
}

/* The active lanes between two points where all lanes are together. */
KERNEL(active)
{
    __syncwarp();
    out[ME] = 0;
    if (ME % 3 == 0) {
        const unsigned m = __activemask();

        const unsigned such = ME < 32 ? 0x49249249u : 0x92492492u;

        /* Not all lanes need be together, but this one is, and none of the other kind. */
        out[ME] = (m >> (ME % 32) & 1) | (unsigned)((m & ~such) == 0) << 1;
    }
    __syncwarp();
    out[64 + ME] = __popc(__ballot_sync(ALL, 1));
}

/* Sums over a warp, by shuffles and by groups. */
KERNEL(groups)
{
    namespace cg = cooperative_groups;

    const cg::thread_block block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    unsigned v = mix(ME) & 0xff;

    for (int d = 4; d > 0; d /= 2)
        v += tile.shfl_down(v, d);
    out[ME] = tile.shfl(v, 0);
    v = ME;
    if (ME % 4 == 1) {
        const auto some = cg::coalesced_threads();

        v = some.size() <= 8 && some.thread_rank() < some.size() ? 7 : 0;
    }
    block.sync();
    out[64 + ME] = v + tile.meta_group_rank() * 100 + tile.any(ME == 9);
}

/* A lane's number and masks. */
KERNEL(masks)
{
    unsigned eq;
    unsigned lt;
    unsigned le;
    unsigned gt;
    unsigned ge;

    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    out[ME] = eq;
    out[64 + ME] = lt ^ le;
    out[128 + ME] = gt;
    out[192 + ME] = ge ^ gt;
}

RUNS(
    RUN(shuffle, 1, 64, 0, 256),
    RUN(shuffle_parts, 1, 64, 0, 256),
    RUN(shuffle_predicate, 1, 64, 0, 256),
    RUN(vote, 1, 64, 0, 256),
    RUN(match, 1, 64, 0, 256),
    RUN(redux, 1, 64, 0, 256),
    RUN(elect, 1, 64, 0, 64),
    RUN(active, 1, 64, 0, 128),
    RUN(groups, 1, 64, 0, 128),
    RUN(masks, 1, 64, 0, 256))
