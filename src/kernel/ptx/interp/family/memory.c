/* ld and st in all spaces and orders.
 *
 * An access computes the addresses of all lanes. If all lanes run and their addresses are equal or
 * consecutive, it moves a whole register at once; otherwise it goes lane by lane.
 */
#include "kernel/ptx/interp/family/memory.h"
#include "base/whole.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define ELEMENTS_MAX 8

/* Of struct interp_step.e, above the kind of the memory operand. */
#define ORDER_RELEASE 16u
#define ORDER_ACQUIRE 32u
#define PLAIN_16 64u /* hed_has_plain_16() */

/* How the addresses of the lanes lie. */
enum pattern { ROW, ONE_ADDRESS, SCATTERED };

static inline __attribute__((always_inline)) enum pattern
address_pattern(const uint64_t *at, uint64_t step)
{
    uint64_t off = 0;

    if (at[1] - at[0] == step && at[31] - at[0] == 31 * step) {
        EACH_LANE(i)
        off |= (at[i] - at[0]) ^ (i * step);
        return off ? SCATTERED : ROW;
    }
    if (at[1] == at[0] && at[31] == at[0]) {
        EACH_LANE(i)
        off |= at[i] ^ at[0];
        return off ? SCATTERED : ONE_ADDRESS;
    }
    return SCATTERED;
}

/* The same of offsets into shared memory, which are not to wrap around. */
static inline __attribute__((always_inline)) enum pattern
offset_pattern(const uint32_t *at, uint32_t imm, uint32_t step)
{
    uint32_t off = 0;

    if (at[1] - at[0] == step && at[0] + imm <= UINT32_MAX - 31 * step) {
        EACH_LANE(i)
        off |= (at[i] - at[0]) ^ ((uint32_t)i * step);
        return off ? SCATTERED : ROW;
    }
    if (at[1] == at[0]) {
        EACH_LANE(i)
        off |= at[i] ^ at[0];
        return off ? SCATTERED : ONE_ADDRESS;
    }
    return SCATTERED;
}

static __attribute__((noinline)) void
trap_lanes(struct interp_warp *w, const struct interp_step *s, const uint64_t *at)
{
    uint32_t bad = 0;

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        bad |= at[i] & (s->b - 1) ? hed_interp_bits[i] : 0;
    if (bad & w->mask)
        hed_interp_trap(w, s, bad & w->mask, HED_PTX_TRAP_ALIGN);
}

/* Lanes that do not run may have any address, so they are told apart where something is wrong. */
static inline __attribute__((always_inline)) void
check_lanes(struct interp_warp *w, const struct interp_step *s, const uint64_t *at)
{
    uint64_t any = 0;

    EACH_LANE(i)
    any |= at[i];
    if (any & (s->b - 1))
        trap_lanes(w, s, at);
}

/* The addresses of all lanes: in `room`, unless a register holds them. */
static inline __attribute__((always_inline)) const uint64_t *
lane_addresses(const struct interp_warp *w, const struct interp_step *s, uint64_t *room)
{
    if ((s->e & INTERP_KIND_MASK) == INTERP_REGISTER && s->imm == 0 && w->sandbox_outer == 0)
        return interp_at(w, s->a);
    interp_addresses(w, s->e & INTERP_KIND_MASK, s->a, s->imm, room);
    return room;
}

/* How the addresses of the lanes lie, and the first one; without all of them, if a register tells
 * it. */
static inline __attribute__((always_inline)) enum pattern
find_pattern(const struct interp_warp *w, const struct interp_step *s, unsigned step,
             uint64_t *first)
{
    uint64_t room[HED_PTX_LANES];

    switch (s->e & INTERP_KIND_MASK) {
    case INTERP_REGISTER: {
        const uint64_t *a = interp_at(w, s->a);

        *first = interp_in_sandbox(w, a[0] + (uint64_t)s->imm);
        return address_pattern(a, step);
    }
    case INTERP_SHARED_REGISTER: {
        const uint32_t *a = interp_at(w, s->a);

        *first = (uintptr_t)w->warp->block->shared + (uint32_t)(a[0] + (uint32_t)s->imm);
        return offset_pattern(a, (uint32_t)s->imm, step);
    }
    default:
        interp_addresses(w, s->e & INTERP_KIND_MASK, s->a, s->imm, room);
        *first = room[0];
        return address_pattern(room, step);
    }
}

/* Checks a row of elements, which are as large as their alignment, or one address. */
static inline __attribute__((always_inline)) void
check_first(struct interp_warp *w, const struct interp_step *s, uint64_t first)
{
    if (s->b > 1 && (first & (s->b - 1)))
        hed_interp_trap(w, s, w->mask, HED_PTX_TRAP_ALIGN);
}

static inline bool
is_one_place(const struct interp_step *s)
{
    const unsigned kind = s->e & INTERP_KIND_MASK;

    return kind == INTERP_PARAM_VAR || kind == INTERP_GLOBAL_VAR || kind == INTERP_SHARED_VAR;
}

/* ---- loads ----------------------------------------------------------------------------------- */

struct wide_value {
    uint64_t low, high;
};

/* Gives all lanes the same value. */
#define SPREAD(T)                            \
    do {                                     \
        T value, *to = interp_at(w, place);  \
        memcpy(&value, from, sizeof(value)); \
        if (w->write == INTERP_ALL) {        \
            EACH_LANE(i)                     \
            to[i] = value;                   \
        } else {                             \
            MASKED_LANES(w->write, i)        \
            to[i] = value;                   \
        }                                    \
    } while (0)

static inline __attribute__((always_inline)) void
spread_value(const struct interp_warp *w, uint32_t place, const void *from, unsigned size)
{
    if (size == 1)
        SPREAD(uint8_t);
    else if (size == 2)
        SPREAD(uint16_t);
    else if (size == 4)
        SPREAD(uint32_t);
    else if (size == 8)
        SPREAD(uint64_t);
    else
        SPREAD(struct wide_value);
}

static inline uint32_t
element_place(const struct interp_step *s, unsigned count, unsigned k)
{
    return count == 1 ? s->d : ((const uint32_t *)s->more)[k];
}

/* Rows of half a warp, or one address for each half: blocks are often 16 threads wide. False: they
 * are neither. */
static inline __attribute__((always_inline)) bool
load_halves(unsigned char *to, const uint64_t *at, unsigned size)
{
    const unsigned half = HED_PTX_LANES / 2;
    const uint64_t step = at[1] - at[0];
    uint64_t off = 0;

    if ((step != 0 && step != size) || at[half + 1] - at[half] != step)
        return false;
    LANES_BELOW(i, half)
    off |= ((at[i] - at[0]) ^ (i * step)) | ((at[half + i] - at[half]) ^ (i * step));
    if (off)
        return false;
    if (step) {
        memcpy(to, (const void *)(uintptr_t)at[0], (size_t)half * size);
        memcpy(to + (size_t)half * size, (const void *)(uintptr_t)at[half], (size_t)half * size);
        return true;
    }
    for (unsigned h = 0; h < 2; h++) {
        unsigned char value[16];

        memcpy(value, (const void *)(uintptr_t)at[h * half], size);
        for (unsigned i = 0; i < half; i++)
            memcpy(to + ((size_t)h * half + i) * size, value, size);
    }
    return true;
}

/* Lanes that do not run have no address, so only those that run load. The elements of a lane are
 * read at once. */
static inline __attribute__((always_inline)) void
load_lanes(const struct interp_warp *w, const struct interp_step *s, const uint64_t *at,
           unsigned size, unsigned count)
{
    if (count == 1 && w->mask == INTERP_ALL) {
        unsigned char *to = interp_at(w, s->d);

        if (load_halves(to, at, size))
            return;
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            memcpy(to + (size_t)i * size, (const void *)(uintptr_t)at[i], size);
        return;
    }
    MASKED_LANES(w->mask, i)
    {
        unsigned char value[ELEMENTS_MAX * 16];

        memcpy(value, (const void *)(uintptr_t)at[i], (size_t)size * count);
        for (unsigned k = 0; k < count; k++)
            memcpy((unsigned char *)interp_at(w, element_place(s, count, k)) + (size_t)i * size,
                   value + (size_t)k * size, size);
    }
}

static inline __attribute__((always_inline)) const struct interp_step *
load_step(struct interp_warp *w, const struct interp_step *s, unsigned size, unsigned count)
{
    uint64_t room[HED_PTX_LANES];
    const uint64_t *at;

    w->warp->line = s->line;
    if (is_one_place(s) && s->b <= 1) {
        interp_addresses(w, s->e & INTERP_KIND_MASK, s->a, s->imm, room);
        for (unsigned k = 0; k < count; k++)
            spread_value(w, element_place(s, count, k),
                         (const unsigned char *)(uintptr_t)room[0] + k * size, size);
        return s + 1;
    }
    if (w->mask == INTERP_ALL) {
        uint64_t first;

        switch (find_pattern(w, s, size * count, &first)) {
        case ROW:
            if (count == 1) {
                check_first(w, s, first);
                memcpy(interp_at(w, s->d), (const void *)(uintptr_t)first, HED_PTX_LANES * size);
                return s + 1;
            }
            break;
        case ONE_ADDRESS: {
            const unsigned char *from = (const unsigned char *)(uintptr_t)first;
            unsigned char values[ELEMENTS_MAX * 16];

            check_first(w, s, first);
            /* The address may be in one of the registers that are written. */
            memcpy(values, from, size * count);
            for (unsigned k = 0; k < count; k++)
                spread_value(w, element_place(s, count, k), values + k * size, size);
            return s + 1;
        }
        default:
            break;
        }
    }
    at = lane_addresses(w, s, room);
    if (s->b > 1)
        check_lanes(w, s, at);
    if (at != room) {
        memcpy(room, at, sizeof(room));
        at = room;
    }
    load_lanes(w, s, at, size, count);
    return s + 1;
}

/* Ordered accesses go lane by lane, each with all of its elements at once (base/whole.h). Loads
 * begin with the last lane and stores end with it, so whoever finds the end of what a warp stored,
 * finds all of it: NCCL's protocol LL128 has one flag at the end of 128 bytes. */
static inline bool
is_scalar(unsigned size, unsigned count)
{
    return count == 1 && size <= 8;
}

/* One number, which has no order with anything. */
static inline uint64_t
load_relaxed(uint64_t at, unsigned size)
{
    switch (size) {
    case 1:
        return __atomic_load_n((const uint8_t *)(uintptr_t)at, __ATOMIC_RELAXED);
    case 2:
        return __atomic_load_n((const uint16_t *)(uintptr_t)at, __ATOMIC_RELAXED);
    case 4:
        return __atomic_load_n((const uint32_t *)(uintptr_t)at, __ATOMIC_RELAXED);
    default:
        return __atomic_load_n((const uint64_t *)(uintptr_t)at, __ATOMIC_RELAXED);
    }
}

/* c is the size of an element and their number; more has the places of several. */
static INTERP_STEP(load_ordered_lanes)
{
    const unsigned size = s->c & 255, count = s->c >> 8;
    unsigned char value[ELEMENTS_MAX * 16];
    uint64_t at[HED_PTX_LANES];

    w->warp->line = s->line;
    interp_addresses(w, s->e & INTERP_KIND_MASK, s->a, s->imm, at);
    if (s->b > 1)
        check_lanes(w, s, at);
    for (uint32_t left = w->mask, lane; left; left &= ~hed_interp_bits[lane]) {
        lane = 31 - (uint32_t)__builtin_clz(left);
        if (is_scalar(size, count)) {
            const uint64_t v = load_relaxed(at[lane], size);

            memcpy(value, &v, sizeof(v));
        } else {
            hed_load_whole((const void *)(uintptr_t)at[lane], value, (size_t)size * count,
                           s->e & PLAIN_16);
        }
        for (unsigned k = 0; k < count; k++)
            memcpy((unsigned char *)interp_at(w, element_place(s, count, k)) + (size_t)lane * size,
                   value + (size_t)k * size, size);
    }
    /* Acquire: pairs with the release of whatever thread wrote the value. */
    if (s->e & ORDER_ACQUIRE)
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return s + 1;
}

#define LOAD_STEPS(size)                 \
    static INTERP_STEP(load_##size)      \
    {                                    \
        return load_step(w, s, size, 1); \
    }                                    \
    static INTERP_STEP(load_##size##_x2) \
    {                                    \
        return load_step(w, s, size, 2); \
    }                                    \
    static INTERP_STEP(load_##size##_x4) \
    {                                    \
        return load_step(w, s, size, 4); \
    }                                    \
    static INTERP_STEP(load_##size##_x8) \
    {                                    \
        return load_step(w, s, size, 8); \
    }

LOAD_STEPS(1)
LOAD_STEPS(2)
LOAD_STEPS(4)
LOAD_STEPS(8)
LOAD_STEPS(16)

#define SIZE_ROW(op, size)                                                \
    {                                                                     \
        op##_##size, op##_##size##_x2, op##_##size##_x4, op##_##size##_x8 \
    }

/* By log2 of the size, and of the number of elements. */
static const interp_run loads[5][4] = {SIZE_ROW(load, 1), SIZE_ROW(load, 2), SIZE_ROW(load, 4),
                                       SIZE_ROW(load, 8), SIZE_ROW(load, 16)};

INTERP_SHARED_STEP(hed_interp_load)
{
    return loads[__builtin_ctz(s->c & 255)][0](w, s);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) const struct interp_step *
store_step(struct interp_warp *w, const struct interp_step *s, unsigned size, unsigned count)
{
    uint64_t room[HED_PTX_LANES];
    const uint64_t *at;
    uint64_t first;

    w->warp->line = s->line;
    if (count == 1 && w->mask == INTERP_ALL && find_pattern(w, s, size, &first) == ROW) {
        check_first(w, s, first);
        memcpy((void *)(uintptr_t)first, interp_at(w, s->d), HED_PTX_LANES * size);
        return s + 1;
    }
    at = lane_addresses(w, s, room);
    if (s->b > 1)
        check_lanes(w, s, at);
    /* Lanes in order: of those that write to one address, the last one wins. */
    MASKED_LANES(w->mask, i)
    {
        unsigned char value[ELEMENTS_MAX * 16];

        for (unsigned k = 0; k < count; k++)
            memcpy(value + (size_t)k * size,
                   (const unsigned char *)interp_at(w, element_place(s, count, k)) +
                       (size_t)i * size,
                   size);
        memcpy((void *)(uintptr_t)at[i], value, (size_t)size * count);
    }
    return s + 1;
}

static inline void
store_relaxed(uint64_t at, uint64_t v, unsigned size)
{
    switch (size) {
    case 1:
        __atomic_store_n((uint8_t *)(uintptr_t)at, (uint8_t)v, __ATOMIC_RELAXED);
        break;
    case 2:
        __atomic_store_n((uint16_t *)(uintptr_t)at, (uint16_t)v, __ATOMIC_RELAXED);
        break;
    case 4:
        __atomic_store_n((uint32_t *)(uintptr_t)at, (uint32_t)v, __ATOMIC_RELAXED);
        break;
    default:
        __atomic_store_n((uint64_t *)(uintptr_t)at, v, __ATOMIC_RELAXED);
        break;
    }
}

static INTERP_STEP(store_ordered_lanes)
{
    const unsigned size = s->c & 255, count = s->c >> 8;
    unsigned char value[ELEMENTS_MAX * 16] = {0};
    uint64_t at[HED_PTX_LANES];

    w->warp->line = s->line;
    interp_addresses(w, s->e & INTERP_KIND_MASK, s->a, s->imm, at);
    if (s->b > 1)
        check_lanes(w, s, at);
    /* Release: pairs with the acquire of whatever thread reads the value. */
    if (s->e & ORDER_RELEASE)
        __atomic_thread_fence(__ATOMIC_RELEASE);
    MASKED_LANES(w->mask, lane)
    {
        for (unsigned k = 0; k < count; k++)
            memcpy(value + (size_t)k * size,
                   (const unsigned char *)interp_at(w, element_place(s, count, k)) +
                       (size_t)lane * size,
                   size);
        if (is_scalar(size, count)) {
            uint64_t v;

            memcpy(&v, value, sizeof(v));
            store_relaxed(at[lane], v, size);
        } else {
            hed_store_whole((void *)(uintptr_t)at[lane], value, (size_t)size * count,
                            s->e & PLAIN_16);
        }
    }
    return s + 1;
}

#define STORE_STEPS(size)                 \
    static INTERP_STEP(store_##size)      \
    {                                     \
        return store_step(w, s, size, 1); \
    }                                     \
    static INTERP_STEP(store_##size##_x2) \
    {                                     \
        return store_step(w, s, size, 2); \
    }                                     \
    static INTERP_STEP(store_##size##_x4) \
    {                                     \
        return store_step(w, s, size, 4); \
    }                                     \
    static INTERP_STEP(store_##size##_x8) \
    {                                     \
        return store_step(w, s, size, 8); \
    }

STORE_STEPS(1)
STORE_STEPS(2)
STORE_STEPS(4)
STORE_STEPS(8)
STORE_STEPS(16)

static const interp_run stores[5][4] = {SIZE_ROW(store, 1), SIZE_ROW(store, 2), SIZE_ROW(store, 4),
                                        SIZE_ROW(store, 8), SIZE_ROW(store, 16)};

INTERP_SHARED_STEP(hed_interp_store)
{
    return stores[__builtin_ctz(s->c & 255)][0](w, s);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* .cv means "don't cache and fetch again": programs wait for the host with it. */
static bool
is_ordered_form(const struct hed_ptx_form *f)
{
    const unsigned space = f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;

    if (space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC ||
        space == HED_PTX_SPACE_LOCAL)
        return false; /* no other thread sees this memory */
    return f->sem == HED_PTX_SEM_VOLATILE || f->sem == HED_PTX_SEM_RELAXED ||
           f->sem == HED_PTX_SEM_ACQUIRE || f->sem == HED_PTX_SEM_RELEASE ||
           f->cop == HED_PTX_COP_CV || INTERP_HAS(f, MMIO) ||
           (hed_ptx_publishes_pair(f) && hed_has_plain_16());
}

/* An access to `count` elements in the given places. */
static void
emit_access(struct interp_decoder *d, const struct interp_memory *m, const uint32_t *places,
            unsigned count, bool is_load)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned size = interp_bytes(f->types[0]);
    const bool ordered = is_ordered_form(f);
    uint32_t *more = NULL;
    struct interp_step *s;
    interp_run run;

    if (size == 0 || size > 16 || (count & (count - 1)) != 0 || count > ELEMENTS_MAX) {
        hed_interp_refuse(d, "an access of this size is not supported");
        return;
    }
    if (count > 1) {
        more = hed_interp_alloc(d, count * sizeof(*more));
        for (unsigned k = 0; more && k < count; k++)
            more[k] = places[k];
    }
    run = count == 1 ? hed_interp_row_access(m, size, is_load) : NULL;
    if (!run)
        run = (is_load ? loads : stores)[__builtin_ctz(size)][__builtin_ctz(count)];
    if (ordered)
        run = is_load ? load_ordered_lanes : store_ordered_lanes;
    s = hed_interp_emit3(d, run, places[0], m->place, m->aligned ? 0 : size * count,
                         size | count << 8);
    s->e = m->kind | (f->sem == HED_PTX_SEM_ACQUIRE ? ORDER_ACQUIRE : 0) |
           (f->sem == HED_PTX_SEM_RELEASE ? ORDER_RELEASE : 0) |
           (ordered && hed_has_plain_16() ? PLAIN_16 : 0);
    s->imm = m->imm;
    s->more = more;
}

static struct interp_memory
access_memory(struct interp_decoder *d, unsigned n, unsigned count)
{
    const struct hed_ptx_form *f = d->inst->form;

    return hed_interp_memory(d, &d->inst->operands[n],
                             f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE,
                             interp_bytes(f->types[0]) * count);
}

void
hed_interp_op_load(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned count = f->vec ? f->vec : 1;
    const struct interp_memory m = access_memory(d, 1, count);
    uint32_t places[ELEMENTS_MAX];

    for (unsigned k = 0; k < count && k < ELEMENTS_MAX; k++) {
        const struct hed_ptx_operand e = hed_ptx_nth_element(&d->inst->operands[0], k);

        places[k] = hed_interp_dest(d, &e, f->types[0]);
    }
    emit_access(d, &m, places, count, true);
}

void
hed_interp_op_store(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned count = f->vec ? f->vec : 1;
    const struct interp_memory m = access_memory(d, 0, count);
    uint32_t places[ELEMENTS_MAX];

    for (unsigned k = 0; k < count && k < ELEMENTS_MAX; k++) {
        const struct hed_ptx_operand e = hed_ptx_nth_element(&d->inst->operands[1], k);

        places[k] = hed_interp_source(d, &e, f->types[0]);
    }
    emit_access(d, &m, places, count, false);
}
