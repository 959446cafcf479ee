/* Loops over lanes, and steps made from an expression for one lane.
 *
 * Compilers turn these loops into vector instructions. A destination may be one of the sources, but
 * never overlaps one in part, so the elements can be computed in any order: the pragmas say so.
 */
#pragma once

#include <string.h>

#include "kernel/ptx/interp/inside.h"

#if defined(__clang__)
#define LANES_BELOW(i, n) \
    _Pragma("clang loop vectorize(assume_safety)") for (unsigned i = 0; i < (n); i++)
#else
#define LANES_BELOW(i, n) _Pragma("GCC ivdep") for (unsigned i = 0; i < (n); i++)
#endif
#define EACH_LANE(i) LANES_BELOW(i, HED_PTX_LANES)

#define INTERP_ALL UINT32_MAX

/* Bit i in element i. */
extern const uint32_t hed_interp_bits[HED_PTX_LANES];
extern const uint64_t hed_interp_bits64[HED_PTX_LANES];

/* Walks over the lanes of a mask. */
#define MASKED_LANES(mask, lane)                                                                  \
    for (uint32_t left_ = (mask), lane; left_ && ((lane = (uint32_t)__builtin_ctz(left_)), true); \
         left_ &= left_ - 1)

/* Copies the lanes of a mask from a value to a register. */
static inline void
interp_merge(void *to, const void *from, uint32_t mask, size_t bytes)
{
    if (bytes == 4) {
        uint32_t *d = to;
        const uint32_t *s = from;

        EACH_LANE(i)
        d[i] = mask & hed_interp_bits[i] ? s[i] : d[i];
    } else if (bytes == 8) {
        uint64_t *d = to;
        const uint64_t *s = from;

        EACH_LANE(i)
        d[i] = mask & hed_interp_bits64[i] ? s[i] : d[i];
    } else if (bytes == 2) {
        /* The two halves of the mask, so that all elements have 16 bits. */
        for (unsigned h = 0; h < 2; h++) {
            uint16_t *d = (uint16_t *)to + 16 * h;
            const uint16_t *s = (const uint16_t *)from + 16 * h;
            const uint16_t half = (uint16_t)(mask >> (16 * h));

            for (unsigned i = 0; i < 16; i++)
                d[i] = half & (uint16_t)(1u << i) ? s[i] : d[i];
        }
    } else {
        MASKED_LANES(mask, i)
        memcpy((unsigned char *)to + i * bytes, (const unsigned char *)from + i * bytes, bytes);
    }
}

/* Writes a predicate in the lanes that are to be written. */
static inline void
interp_set_predicate(const struct interp_warp *w, uint32_t place, uint32_t bits)
{
    uint32_t *p = interp_at(w, place);

    *p = (*p & ~w->write) | (bits & w->write);
}

static inline uint32_t
interp_predicate(const struct interp_warp *w, uint32_t place)
{
    return *(const uint32_t *)interp_at(w, place);
}

/* The same as COMPUTE_LANES where some lanes keep what they have. */
#define COMPUTE_SOME_LANES(R, ...)                                        \
    if (sizeof(R) < 4) {                                                  \
        R room[HED_PTX_LANES];                                            \
                                                                          \
        EACH_LANE(i)                                                      \
        {                                                                 \
            R r;                                                          \
            __VA_ARGS__;                                                  \
            room[i] = r;                                                  \
        }                                                                 \
        interp_merge(to, room, w->write, sizeof(R));                      \
    } else {                                                              \
        const uint32_t write = w->write;                                  \
                                                                          \
        EACH_LANE(i)                                                      \
        {                                                                 \
            R r;                                                          \
            __VA_ARGS__;                                                  \
            to[i] = (sizeof(R) == 8 ? (write & hed_interp_bits64[i]) != 0 \
                                    : (write & hed_interp_bits[i]) != 0)  \
                        ? r                                               \
                        : to[i];                                          \
        }                                                                 \
    }                                                                     \
    return s + 1

/* The body of a step that computes `r`, a value of type R, for each lane i. Before it, the sources
 * have been declared as pointers. Almost always all lanes are written, and the step is then short:
 * it needs no room of its own. */
#define COMPUTE_LANES(R, ...)                          \
    R *const to = interp_at(w, s->d);                  \
                                                       \
    if (__builtin_expect(w->write != INTERP_ALL, 0)) { \
        COMPUTE_SOME_LANES(R, __VA_ARGS__);            \
    }                                                  \
    EACH_LANE(i)                                       \
    {                                                  \
        R r;                                           \
        __VA_ARGS__;                                   \
        to[i] = r;                                     \
    }                                                  \
    INTERP_NEXT(w, s)

#define STEP_UNARY(name, R, A, expr)                        \
    static INTERP_STEP(name)                                \
    {                                                       \
        const A *pa = interp_at(w, s->a);                   \
        COMPUTE_LANES(R, const A a = pa[i]; r = (R)(expr)); \
    }

#define STEP_BINARY(name, R, A, B, expr)                                       \
    static INTERP_STEP(name)                                                   \
    {                                                                          \
        const A *pa = interp_at(w, s->a);                                      \
        const B *pb = interp_at(w, s->b);                                      \
        COMPUTE_LANES(R, const A a = pa[i]; const B b = pb[i]; r = (R)(expr)); \
    }

#define STEP_TERNARY(name, R, A, B, C, expr)                                                      \
    static INTERP_STEP(name)                                                                      \
    {                                                                                             \
        const A *pa = interp_at(w, s->a);                                                         \
        const B *pb = interp_at(w, s->b);                                                         \
        const C *pc = interp_at(w, s->c);                                                         \
        COMPUTE_LANES(R, const A a = pa[i]; const B b = pb[i]; const C c = pc[i]; r = (R)(expr)); \
    }

/* A comparison: its result is a predicate. */
#define STEP_COMPARE(name, A, expr)                  \
    static INTERP_STEP(name)                         \
    {                                                \
        const A *pa = interp_at(w, s->a);            \
        const A *pb = interp_at(w, s->b);            \
        uint32_t bits = 0;                           \
                                                     \
        EACH_LANE(i)                                 \
        {                                            \
            const A a = pa[i];                       \
            const A b = pb[i];                       \
                                                     \
            bits |= (expr) ? hed_interp_bits[i] : 0; \
        }                                            \
        interp_set_predicate(w, s->d, bits);         \
        INTERP_NEXT(w, s);                           \
    }

/* ---- lane by lane: for what is rare ---------------------------------------------------------- */

/* Computes one lane's result from up to four sources; all are bits. */
typedef uint64_t (*interp_scalar_fn)(const struct hed_ptx_form *f, const uint64_t *in);

/* Adds a step that calls fn for each lane. types[0] is the destination's, the others are those of
 * the n sources, operands 1 to n of the instruction. */
void hed_interp_scalar(struct interp_decoder *d, interp_scalar_fn fn, const uint8_t *types,
                       unsigned n);
/* The same with places instead of operands; bytes[0] is the destination's width, 0 for a predicate.
 */
void hed_interp_scalar_at(struct interp_decoder *d, interp_scalar_fn fn, uint32_t to,
                          const uint32_t *from, const uint8_t *bytes, unsigned n);

/* One lane of a register. */
static inline uint64_t
interp_get_lane(const struct interp_warp *w, uint32_t place, unsigned bytes, unsigned lane)
{
    const unsigned char *at = interp_at(w, place);

    switch (bytes) {
    case 0:
        return *(const uint32_t *)at >> lane & 1;
    case 1:
        return at[lane];
    case 2:
        return ((const uint16_t *)at)[lane];
    case 4:
        return ((const uint32_t *)at)[lane];
    case 8:
        return ((const uint64_t *)at)[lane];
    default: /* the lower half of 128 bits */
        return ((const uint64_t *)at)[2 * lane];
    }
}

static inline void
interp_set_lane(const struct interp_warp *w, uint32_t place, unsigned bytes, unsigned lane,
                uint64_t v)
{
    unsigned char *at = interp_at(w, place);

    uint32_t *p = (uint32_t *)at;

    switch (bytes) {
    case 0:
        *p = (*p & ~(UINT32_C(1) << lane)) | (uint32_t)(v & 1) << lane;
        break;
    case 1:
        at[lane] = (uint8_t)v;
        break;
    case 2:
        ((uint16_t *)at)[lane] = (uint16_t)v;
        break;
    case 4:
        p[lane] = (uint32_t)v;
        break;
    case 8:
        ((uint64_t *)at)[lane] = v;
        break;
    default:
        ((uint64_t *)at)[2 * lane] = v;
        break;
    }
}
