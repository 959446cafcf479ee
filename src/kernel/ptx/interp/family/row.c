/* ld and st of one element per lane, where all lanes run and their addresses are consecutive or
 * equal: most accesses of most kernels. Each step is for one kind of address and one size, so
 * nothing is left to decide but how the addresses lie; what is not like that goes on to memory.c,
 * which does every access.
 */
#include "kernel/ptx/interp/family/memory.h"
#include "kernel/ptx/interp/lanes.h"

/* Lanes that lie in a row or have one address: blocks are often 8 or 16 threads wide, and then a
 * warp has several rows. */
#define GROUP 8
#define GROUPS (HED_PTX_LANES / GROUP)

/* What a group's values are moved by: vectors of at most 32 bytes. */
typedef uint8_t vector_8 __attribute__((vector_size(8)));
typedef uint16_t vector_16 __attribute__((vector_size(16)));
typedef uint32_t vector_32 __attribute__((vector_size(32)));
typedef uint64_t vector_64 __attribute__((vector_size(32)));

typedef uint64_t wide_vector __attribute__((vector_size(32)));
typedef uint32_t word_vector __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) bool
is_all_zero(const wide_vector *v)
{
    return ((*v)[0] | (*v)[1] | (*v)[2] | (*v)[3]) == 0;
}

/* In each group, is every lane's address the first one, or, in a row, `size` more for each lane
 * before it? */
static inline __attribute__((always_inline)) bool
wide_are_rows(const uint64_t *at, bool in_row, unsigned size)
{
    const wide_vector none = {0};
    const wide_vector used = none - (uint64_t)in_row; /* all ones, or 0 */
    const wide_vector low = ((wide_vector){0, 1, 2, 3} * size) & used;
    const wide_vector high = ((wide_vector){4, 5, 6, 7} * size) & used;
    wide_vector here, off = none;

    for (unsigned i = 0; i < HED_PTX_LANES; i += GROUP) {
        memcpy(&here, at + i, sizeof(here));
        off |= here ^ (low + at[i]);
        memcpy(&here, at + i + GROUP / 2, sizeof(here));
        off |= here ^ (high + at[i]);
    }
    return is_all_zero(&off);
}

static inline __attribute__((always_inline)) bool
words_are_rows(const uint32_t *at, bool in_row, unsigned size)
{
    const word_vector none = {0};
    const word_vector used = none - (uint32_t)in_row;
    const word_vector steps = ((word_vector){0, 1, 2, 3, 4, 5, 6, 7} * size) & used;
    word_vector here, off = none;
    wide_vector any;

    for (unsigned i = 0; i < HED_PTX_LANES; i += GROUP) {
        memcpy(&here, at + i, sizeof(here));
        off |= here ^ (steps + at[i]);
    }
    any = (wide_vector)off;
    return is_all_zero(&any);
}

/* The address of a group's first lane. */
static inline __attribute__((always_inline)) uint64_t
group_address(const struct interp_warp *w, const struct interp_step *s, bool is_shared, unsigned g)
{
    const unsigned lane = g * GROUP;

    if (is_shared)
        return (uintptr_t)w->warp->block->shared +
               (((const uint32_t *)interp_at(w, s->a))[lane] + (uint32_t)s->imm);
    return interp_in_sandbox(w, ((const uint64_t *)interp_at(w, s->a))[lane] + (uint64_t)s->imm);
}

/* How the lanes' addresses lie: their distance in a group, if it is `size` or 0. False: in another
 * way, or misaligned. */
static inline __attribute__((always_inline)) bool
rows_of_groups(const struct interp_warp *w, const struct interp_step *s, bool is_shared,
               unsigned size, uint64_t *step)
{
    uint64_t low_bits = 0;

    for (unsigned g = 0; g < GROUPS; g++)
        low_bits |= group_address(w, s, is_shared, g);
    if (is_shared) {
        const uint32_t *a = interp_at(w, s->a);
        bool wraps = false;

        /* Offsets are not to wrap around within a row. */
        for (unsigned g = 0; g < GROUPS; g++)
            wraps |= a[g * GROUP] + (uint32_t)s->imm > UINT32_MAX - (GROUP - 1) * size;
        *step = a[1] - a[0];
        return (*step == 0 || *step == size) && !wraps && (low_bits & (size - 1)) == 0 &&
               words_are_rows(a, *step != 0, size);
    }

    const uint64_t *a = interp_at(w, s->a);

    *step = a[1] - a[0];
    return (*step == 0 || *step == size) && (low_bits & (size - 1)) == 0 &&
           wide_are_rows(a, *step != 0, size);
}

/* Whoever reads a register does it with whole vectors, and waits long for one that was written in
 * pieces: so the vectors have names here. */
#define LOAD_STEP(name, T, V, is_shared)                                                 \
    static INTERP_STEP(name)                                                             \
    {                                                                                    \
        uint64_t step;                                                                   \
                                                                                         \
        if (w->mask != INTERP_ALL || !rows_of_groups(w, s, is_shared, sizeof(T), &step)) \
            return hed_interp_load(w, s);                                                \
        w->warp->line = s->line;                                                         \
                                                                                         \
        unsigned char *to = interp_at(w, s->d);                                          \
        V v;                                                                             \
                                                                                         \
        for (unsigned g = 0; g < GROUPS; g++) {                                          \
            const unsigned char *from =                                                  \
                (const unsigned char *)(uintptr_t)group_address(w, s, is_shared, g);     \
                                                                                         \
            for (unsigned k = 0; k < GROUP * sizeof(T); k += sizeof(V)) {                \
                if (step)                                                                \
                    memcpy(&v, from + k, sizeof(v));                                     \
                else                                                                     \
                    v = (V){0} + *(const T *)from;                                       \
                memcpy(to + g * GROUP * sizeof(T) + k, &v, sizeof(v));                   \
            }                                                                            \
        }                                                                                \
        INTERP_NEXT(w, s);                                                               \
    }

/* Lanes in order: where rows overlap, the last lane wins. */
#define STORE_STEP(name, T, V, is_shared)                                                      \
    static INTERP_STEP(name)                                                                   \
    {                                                                                          \
        uint64_t step;                                                                         \
                                                                                               \
        if (w->mask != INTERP_ALL || !rows_of_groups(w, s, is_shared, sizeof(T), &step) ||     \
            step == 0)                                                                         \
            return hed_interp_store(w, s);                                                     \
        w->warp->line = s->line;                                                               \
                                                                                               \
        const unsigned char *from = interp_at(w, s->d);                                        \
        V v;                                                                                   \
                                                                                               \
        for (unsigned g = 0; g < GROUPS; g++) {                                                \
            unsigned char *to = (unsigned char *)(uintptr_t)group_address(w, s, is_shared, g); \
                                                                                               \
            for (unsigned k = 0; k < GROUP * sizeof(T); k += sizeof(V)) {                      \
                memcpy(&v, from + g * GROUP * sizeof(T) + k, sizeof(v));                       \
                memcpy(to + k, &v, sizeof(v));                                                 \
            }                                                                                  \
        }                                                                                      \
        INTERP_NEXT(w, s);                                                                     \
    }

#define STEPS(n, T)                                 \
    LOAD_STEP(load_##n, T, vector_##n, false)       \
    LOAD_STEP(load_shared_##n, T, vector_##n, true) \
    STORE_STEP(store_##n, T, vector_##n, false)     \
    STORE_STEP(store_shared_##n, T, vector_##n, true)

STEPS(8, uint8_t)
STEPS(16, uint16_t)
STEPS(32, uint32_t)
STEPS(64, uint64_t)

#define SIZES(op)                         \
    {                                     \
        op##_8, op##_16, op##_32, op##_64 \
    }

/* By "is in shared memory", and by log2 of the size. */
static const interp_run loads[2][4] = {SIZES(load), SIZES(load_shared)};
static const interp_run stores[2][4] = {SIZES(store), SIZES(store_shared)};

/* ---- one address, known without looking ------------------------------------------------------ */

/* Parameters and variables. */
static inline __attribute__((always_inline)) const void *
known_address(const struct interp_warp *w, const struct interp_step *s)
{
    const uint64_t base = interp_variable_base(w, s->e & INTERP_KIND_MASK, s->a);

    return (const void *)(uintptr_t)interp_in_sandbox(w, base + (uint64_t)s->imm);
}

#define VARIABLE_STEP(name, T)                              \
    static INTERP_STEP(name)                                \
    {                                                       \
        T value;                                            \
                                                            \
        w->warp->line = s->line;                            \
        memcpy(&value, known_address(w, s), sizeof(value)); \
        COMPUTE_LANES(T, r = value);                        \
    }

VARIABLE_STEP(load_variable_8, uint8_t)
VARIABLE_STEP(load_variable_16, uint16_t)
VARIABLE_STEP(load_variable_32, uint32_t)
VARIABLE_STEP(load_variable_64, uint64_t)

static const interp_run variable_loads[4] = SIZES(load_variable);

interp_run
hed_interp_row_access(const struct interp_memory *m, unsigned size, bool is_load)
{
    const bool is_shared = m->kind == INTERP_SHARED_REGISTER;
    const unsigned column = (unsigned)__builtin_ctz(size);

    if (size > 8)
        return NULL;
    if (is_shared || m->kind == INTERP_REGISTER)
        return (is_load ? loads : stores)[is_shared][column];
    return is_load && m->aligned && m->kind != INTERP_LOCAL_VAR ? variable_loads[column] : NULL;
}
