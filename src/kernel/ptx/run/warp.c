/* The lanes of a warp. See warp.h. */
#include "kernel/ptx/run/warp.h"

#include <stddef.h>
#include <string.h>

#include "base/clones.h"
#include "kernel/ptx/run/small_float.h"

static uint32_t
lowest_pc(const struct hed_warp *w)
{
    uint32_t low = HED_WARP_NONE;

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        low = w->pc[i] < low ? w->pc[i] : low;
    return low;
}

/* Removes the lanes that wait at a pc, and returns them. */
static uint32_t
take_lanes_at(struct hed_warp *w, uint32_t pc)
{
    uint32_t lanes = 0;

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        if (w->pc[i] == pc) {
            w->pc[i] = HED_WARP_NONE;
            lanes |= UINT32_C(1) << i;
        }
    return lanes;
}

static void
put_lanes_at(struct hed_warp *w, uint32_t lanes, uint32_t pc)
{
    for (uint32_t left = lanes, lane; hed_next_lane(&left, &lane);)
        w->pc[lane] = pc;
}

void
hed_warp_init(struct hed_warp *w)
{
    memset(w->pc, 0xff, sizeof w->pc);
    w->next = HED_WARP_NONE;
    w->active = 0;
    w->forced = 0;
}

void
hed_warp_wait(struct hed_warp *w, uint32_t lanes, uint32_t pc)
{
    put_lanes_at(w, lanes, pc);
    if (pc < w->next)
        w->next = pc;
}

uint32_t
hed_warp_next(struct hed_warp *w)
{
    const uint32_t pc = lowest_pc(w);

    if (pc == HED_WARP_NONE) {
        w->active = 0;
        return 0;
    }
    w->active = take_lanes_at(w, pc);
    w->next = lowest_pc(w);
    w->forced = pc >= HED_WARP_PARKED;
    return pc & ~HED_WARP_PARKED;
}

uint32_t
hed_warp_rotate(struct hed_warp *w, uint32_t lanes, uint32_t pc)
{
    uint32_t behind = HED_WARP_NONE;

    put_lanes_at(w, lanes, pc);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        if (w->pc[i] > pc && w->pc[i] < behind)
            behind = w->pc[i];
    if (behind >= HED_WARP_PARKED)
        return hed_warp_next(w);
    w->active = take_lanes_at(w, behind);
    /* They run until they stop, whatever lanes wait further up in the text. */
    w->next = HED_WARP_FAR;
    w->forced = 0;
    return behind;
}

uint32_t
hed_warp_meet(struct hed_warp *w, uint32_t lanes, uint32_t pc, uint32_t required)
{
    uint32_t elsewhere = 0;

    lanes |= take_lanes_at(w, pc | HED_WARP_PARKED);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        elsewhere |= (uint32_t)(w->pc[i] != HED_WARP_NONE) << i;
    if ((required & elsewhere) && !w->forced) {
        put_lanes_at(w, lanes, pc | HED_WARP_PARKED);
        return 0;
    }
    w->forced = 0;
    w->next = lowest_pc(w);
    return lanes;
}

/* "maxLane = (lane[4:0] & segmask[4:0]) | (cval[4:0] & ~segmask[4:0]); minLane = (lane[4:0] &
 * segmask[4:0])" (PTX ISA, shfl.sync) */
static inline __attribute__((always_inline)) bool
source_of_lane(uint32_t mode, unsigned lane, uint32_t b, uint32_t c, unsigned *from)
{
    const int by = (int)(b & 31);
    const int clamp = (int)(c & 31);
    const int segment = (int)(c >> 8 & 31);
    const int own = (int)lane;
    const int low = own & segment;
    const int high = low | (clamp & ~segment);
    const int there = mode == HED_RT_SHFL_UP     ? own - by
                      : mode == HED_RT_SHFL_DOWN ? own + by
                      : mode == HED_RT_SHFL_BFLY ? own ^ by
                                                 : low | (by & ~segment);
    const bool inside = mode == HED_RT_SHFL_UP ? there >= high : there <= high;

    *from = inside ? (unsigned)there & 31 : lane;
    return inside;
}

bool
hed_warp_source(uint32_t mode, unsigned lane, uint32_t b, uint32_t c, unsigned *from)
{
    return source_of_lane(mode, lane, b, c, from);
}

/* The same for all lanes, in a form that becomes vectors if the mode is known. */
static inline __attribute__((always_inline)) uint32_t
shuffle_by(uint32_t mode, const uint32_t *restrict values, const uint32_t *restrict b,
           const uint32_t *restrict c, uint32_t *restrict out)
{
    uint32_t inside = 0;

    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        unsigned from;

        inside |= (uint32_t)source_of_lane(mode, lane, b[lane], c[lane], &from) << lane;
        out[lane] = values[from];
    }
    return inside;
}

HED_CLONES uint32_t
hed_warp_shfl(uint32_t mode, const uint32_t *values, const uint32_t *b, const uint32_t *c,
              uint32_t *out)
{
    uint32_t room[HED_PTX_LANES], inside;

    switch (mode) {
    case HED_RT_SHFL_UP:
        inside = shuffle_by(HED_RT_SHFL_UP, values, b, c, room);
        break;
    case HED_RT_SHFL_DOWN:
        inside = shuffle_by(HED_RT_SHFL_DOWN, values, b, c, room);
        break;
    case HED_RT_SHFL_BFLY:
        inside = shuffle_by(HED_RT_SHFL_BFLY, values, b, c, room);
        break;
    default:
        inside = shuffle_by(HED_RT_SHFL_IDX, values, b, c, room);
    }
    memcpy(out, room, sizeof room);
    return inside;
}

void
hed_warp_match_any(const uint64_t *values, const uint32_t *masks, uint32_t lanes, uint32_t *out)
{
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        uint32_t same = 0;

        for (uint32_t left = lanes & masks[i], lane; hed_next_lane(&left, &lane);)
            same |= (uint32_t)(values[lane] == values[i]) << lane;
        out[i] = same;
    }
}

uint32_t
hed_warp_match_all(const uint64_t *values, const uint32_t *masks, uint32_t lanes, uint32_t *out)
{
    uint32_t all = 0;

    hed_warp_match_any(values, masks, lanes, out);
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        const uint32_t group = lanes & masks[i];
        const uint32_t is = out[i] == group;

        all |= is << i;
        out[i] = is ? group : 0;
    }
    return all;
}

/* min and max of floats: a number wins over NaN unless .NaN is given; -0 is less than +0. */
static uint32_t
redux_floats(uint32_t op, uint32_t x, uint32_t y)
{
    const uint32_t kind = op - HED_RT_REDUX_MIN_F;
    const bool is_max = kind & 1, nan = kind >> 1 & 1;

    if (kind >> 2 & 1) {
        x &= 0x7fffffff;
        y &= 0x7fffffff;
    }

    const int x_nan = (x & 0x7fffffff) > 0x7f800000;
    const int y_nan = (y & 0x7fffffff) > 0x7f800000;

    if (x_nan || y_nan)
        return nan || (x_nan && y_nan) ? 0x7fffffff : x_nan ? y : x;

    const int less = hed_from_bits32(x) < hed_from_bits32(y) ||
                     (hed_from_bits32(x) == hed_from_bits32(y) && x > y);

    return less != is_max ? x : y;
}

static uint32_t
redux_words(uint32_t op, uint32_t x, uint32_t y)
{
    switch (op) {
    case HED_RT_REDUX_ADD:
        return x + y;
    case HED_RT_REDUX_MIN_S:
        return (int32_t)x < (int32_t)y ? x : y;
    case HED_RT_REDUX_MAX_S:
        return (int32_t)x > (int32_t)y ? x : y;
    case HED_RT_REDUX_MIN_U:
        return x < y ? x : y;
    case HED_RT_REDUX_MAX_U:
        return x > y ? x : y;
    case HED_RT_REDUX_AND:
        return x & y;
    case HED_RT_REDUX_OR:
        return x | y;
    case HED_RT_REDUX_XOR:
        return x ^ y;
    default:
        return redux_floats(op, x, y);
    }
}

void
hed_warp_redux(uint32_t op, const uint32_t *values, const uint32_t *masks, uint32_t lanes,
               uint32_t *out)
{
    for (uint32_t left = lanes; left;) {
        const uint32_t mask = masks[__builtin_ctz(left)];
        const uint32_t group = (lanes & mask) | (left & -left);
        uint32_t rest = group, lane = 0, sum;

        (void)hed_next_lane(&rest, &lane);
        sum = values[lane];
        /* A single value goes through the operation too: .abs changes it. */
        sum = op >= HED_RT_REDUX_MIN_F ? redux_floats(op, sum, sum) : sum;
        while (hed_next_lane(&rest, &lane))
            sum = redux_words(op, sum, values[lane]);
        rest = group;
        while (hed_next_lane(&rest, &lane))
            out[lane] = sum;
        left &= ~group;
    }
}

#define HELPER(name)                \
    {                               \
#name, (const void *)(name) \
    }

const struct hed_ptx_symbol hed_ptx_warp_helpers[] = {
    HELPER(hed_warp_init),      HELPER(hed_warp_wait),
    HELPER(hed_warp_next),      HELPER(hed_warp_rotate),
    HELPER(hed_warp_meet),      HELPER(hed_warp_shfl),
    HELPER(hed_warp_match_any), HELPER(hed_warp_match_all),
    HELPER(hed_warp_redux),     {NULL, NULL},
};
