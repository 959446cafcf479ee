/* atom, red and fences. Each lane does its own, in order: an atomic operation of the processor, or
 * a loop around a compare-and-exchange.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

struct atomic_op {
    uint8_t oper; /* enum hed_ptx_oper */
    uint8_t type; /* enum hed_ptx_type, of one element */
    uint8_t size; /* bytes */
    uint8_t sem;  /* enum hed_ptx_sem */
    uint8_t space;
    uint32_t address, value, swap; /* places */
    uint32_t at;                   /* bytes from the address */
    bool has_result;
};

/* ---- values ---------------------------------------------------------------------------------- */

static uint16_t
half_value(const struct atomic_op *a, uint16_t old, uint16_t v)
{
    const struct real_format *f = hed_interp_real(a->type);
    const float x = real_widen16(old, f), y = real_widen16(v, f);
    bool less;

    if (a->oper == HED_PTX_OPER_ADD)
        return real_narrow16(x + y, f);
    /* The smaller or larger one; a NaN loses. -0 is less than +0, as their bits as integers say. */
    if (y != y)
        return old;
    if (x != x)
        return v;
    less = x < y || (x == y && (int16_t)old < (int16_t)v);
    return less == (a->oper == HED_PTX_OPER_MIN) ? old : v;
}

static uint32_t
add_singles(uint32_t old, uint32_t v, bool flushes)
{
    const float sum = hed_from_bits32(flushes ? real_flush32(old) : old) +
                      hed_from_bits32(flushes ? real_flush32(v) : v);
    const uint32_t bits = hed_to_bits32(sum);

    return sum != sum ? 0x7fffffff : flushes ? real_flush32(bits) : bits;
}

static uint64_t
added_value(const struct atomic_op *a, uint64_t old, uint64_t v, bool flushes)
{
    switch (a->type) {
    case HED_PTX_TYPE_F32:
        return add_singles((uint32_t)old, (uint32_t)v, flushes);
    case HED_PTX_TYPE_F64:
        return hed_to_bits64(hed_from_bits64(old) + hed_from_bits64(v));
    default:
        return old + v;
    }
}

static uint64_t
least_value(const struct atomic_op *a, uint64_t old, uint64_t v)
{
    const unsigned up = 64 - 8u * a->size;
    const bool is_min = a->oper == HED_PTX_OPER_MIN;

    if (interp_is_signed(a->type))
        return ((int64_t)(old << up) < (int64_t)(v << up)) == is_min ? old : v;
    return (old < v) == is_min ? old : v;
}

static uint64_t
new_value(const struct atomic_op *a, uint64_t old, uint64_t v, bool flushes)
{
    const bool is_half =
        hed_interp_real(a->type) && a->type != HED_PTX_TYPE_F32 && a->type != HED_PTX_TYPE_F64;

    if (is_half && a->oper != HED_PTX_OPER_EXCH) {
        uint64_t r = half_value(a, (uint16_t)old, (uint16_t)v);

        if (a->size == 4)
            r |= (uint64_t)half_value(a, (uint16_t)(old >> 16), (uint16_t)(v >> 16)) << 16;
        return r;
    }
    switch (a->oper) {
    case HED_PTX_OPER_ADD:
        return added_value(a, old, v, flushes);
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
        return least_value(a, old, v);
    case HED_PTX_OPER_AND:
        return old & v;
    case HED_PTX_OPER_OR:
        return old | v;
    case HED_PTX_OPER_XOR:
        return old ^ v;
    case HED_PTX_OPER_INC:
        return old >= v ? 0 : old + 1;
    case HED_PTX_OPER_DEC:
        return old == 0 || old > v ? v : old - 1;
    default:
        return v;
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The orders are those of the strongest semantics; scopes do not matter, because memory is
 * coherent. Relaxed operations are relaxed: fences before and after order the others. */
static bool
exchange_if_same(void *p, unsigned size, uint64_t *expected, uint64_t wanted)
{
    bool done;

    if (size == 2) {
        uint16_t old = (uint16_t)*expected;

        done = __atomic_compare_exchange_n((uint16_t *)p, &old, (uint16_t)wanted, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        *expected = old;
    } else if (size == 4) {
        uint32_t old = (uint32_t)*expected;

        done = __atomic_compare_exchange_n((uint32_t *)p, &old, (uint32_t)wanted, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        *expected = old;
    } else {
        done = __atomic_compare_exchange_n((uint64_t *)p, expected, wanted, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
    }
    return done;
}

static uint64_t
atomic_value(const void *p, unsigned size)
{
    if (size == 2)
        return __atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED);
    if (size == 4)
        return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
    return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

/* A GPU's atomic units flush subnormal numbers in global memory but not in shared memory. */
static bool
flushes_address(const struct interp_warp *w, const struct atomic_op *a, uint64_t address)
{
    const struct hed_ptx_grid *g = w->warp->grid;

    if (a->type != HED_PTX_TYPE_F32)
        return false;
    if (a->space == HED_PTX_SPACE_GLOBAL)
        return true;
    return a->space == HED_PTX_SPACE_NONE &&
           (address < g->shared_first || address >= g->shared_last);
}

static uint64_t
atomic_lane(const struct interp_warp *w, const struct atomic_op *a, uint64_t address, uint64_t v,
            uint64_t swap)
{
    void *p = (void *)(uintptr_t)(address + a->at);
    uint64_t old;

    if (a->oper == HED_PTX_OPER_CAS) {
        old = v;
        (void)exchange_if_same(p, a->size, &old, swap);
        return old;
    }
    if (a->oper == HED_PTX_OPER_ADD && a->size == 4 && hed_ptx_is_int(a->type))
        return __atomic_fetch_add((uint32_t *)p, (uint32_t)v, __ATOMIC_RELAXED);

    const bool flushes = flushes_address(w, a, address);

    old = atomic_value(p, a->size);
    while (!exchange_if_same(p, a->size, &old, new_value(a, old, v, flushes)))
        continue;
    return old;
}

/* Fences around the operations of a step: acquire and release pair with those of the other threads
 * that use the same memory. */
static void
fence_before(unsigned sem)
{
    if (sem == HED_PTX_SEM_SC)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else if (sem == HED_PTX_SEM_RELEASE || sem == HED_PTX_SEM_ACQ_REL)
        __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void
fence_after(unsigned sem)
{
    if (sem == HED_PTX_SEM_SC)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else if (sem == HED_PTX_SEM_ACQUIRE || sem == HED_PTX_SEM_ACQ_REL)
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static INTERP_STEP(atomic_lanes)
{
    const struct atomic_op *a = s->more;
    const uint64_t *addresses = interp_at(w, a->address);

    w->warp->line = s->line;
    fence_before(a->sem);
    MASKED_LANES(w->mask, lane)
    {
        const uint64_t v = interp_get_lane(w, a->value, a->size, lane);
        const uint64_t swap = interp_get_lane(w, a->swap, a->size, lane);
        const uint64_t old = atomic_lane(w, a, addresses[lane], v, swap);

        if (a->has_result)
            interp_set_lane(w, s->d, a->size, lane, old);
    }
    fence_after(a->sem);
    return s + 1;
}

/* red.add of 32-bit integers, which programs use most. a is the place of the addresses, b that of
 * the values. */
static INTERP_STEP(add_words)
{
    const uint64_t *addresses = interp_at(w, s->a);
    const uint32_t *values = interp_at(w, s->b);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    (void)__atomic_fetch_add((uint32_t *)(uintptr_t)addresses[lane], values[lane],
                             __ATOMIC_RELAXED);
    return s + 1;
}

/* ---- 128 bits -------------------------------------------------------------------------------- */

typedef unsigned __int128 wide_word;

/* A compare-and-exchange of 16 bytes, by the processor's own instruction. Compilers differ in when
 * they make a call to a library of it, which need not be there. */
static wide_word
exchange_wide(wide_word *p, wide_word expected, wide_word wanted)
{
#if defined(__aarch64__)
    uint64_t low, high, a, b, failed;

    __asm__ volatile(
        "1: ldaxp %[low], %[high], [%[p]]\n"
        "cmp %[low], %[old_low]\n"
        "ccmp %[high], %[old_high], #0, eq\n"
        "csel %[a], %[new_low], %[low], eq\n"
        "csel %[b], %[new_high], %[high], eq\n"
        "stlxp %w[failed], %[a], %[b], [%[p]]\n"
        "cbnz %w[failed], 1b\n"
        : [low] "=&r"(low), [high] "=&r"(high), [a] "=&r"(a), [b] "=&r"(b), [failed] "=&r"(failed)
        : [p] "r"(p), [old_low] "r"((uint64_t)expected), [old_high] "r"((uint64_t)(expected >> 64)),
          [new_low] "r"((uint64_t)wanted), [new_high] "r"((uint64_t)(wanted >> 64))
        : "memory", "cc");
    return (wide_word)high << 64 | low;
#elif defined(__x86_64__)
    uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);

    __asm__ volatile("lock cmpxchg16b %[p]"
                     : [p] "+m"(*p), "+a"(low), "+d"(high)
                     : "b"((uint64_t)wanted), "c"((uint64_t)(wanted >> 64))
                     : "memory", "cc");
    return (wide_word)high << 64 | low;
#else
    return __sync_val_compare_and_swap(p, expected, wanted);
#endif
}

static INTERP_STEP(atomic_wide_lanes)
{
    const struct atomic_op *a = s->more;
    const uint64_t *addresses = interp_at(w, a->address);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        wide_word *p = (wide_word *)(uintptr_t)(addresses[lane] + a->at);
        wide_word v, swap, old, seen;

        memcpy(&v, (const unsigned char *)interp_at(w, a->value) + 16 * lane, 16);
        memcpy(&swap, (const unsigned char *)interp_at(w, a->swap) + 16 * lane, 16);
        if (a->oper == HED_PTX_OPER_CAS) {
            old = exchange_wide(p, v, swap);
        } else {
            seen = 0;
            do {
                old = seen;
                seen = exchange_wide(p, old, v);
            } while (seen != old);
        }
        if (a->has_result)
            memcpy((unsigned char *)interp_at(w, s->d) + 16 * lane, &old, 16);
    }
    return s + 1;
}

/* ---- decoding -------------------------------------------------------------------------------- */

void
hed_interp_op_atom(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_atomic *m = &d->meaning->atomic;
    const struct atomic_op form = {
        .oper = f->oper,
        .type = f->types[0],
        .size = (uint8_t)m->bytes,
        .sem = f->sem,
        .space = hed_ptx_first_space(f),
        .has_result = m->to != NULL,
    };
    const uint32_t address = hed_interp_address(d, m->memory, form.space, m->bytes * m->count);

    for (unsigned i = 0; i < m->count && !d->err; i++) {
        const struct hed_ptx_operand in = hed_ptx_nth_element(m->from, i);
        struct atomic_op *a = hed_interp_alloc(d, sizeof(*a));
        struct interp_step *s;
        uint32_t place = 0;

        if (!a)
            return;
        *a = form;
        a->address = address;
        a->at = i * form.size;
        a->value = hed_interp_source(d, &in, form.type);
        a->swap = m->swap ? hed_interp_source(d, m->swap, form.type) : a->value;
        if (m->to) {
            const struct hed_ptx_operand out = hed_ptx_nth_element(m->to, i);

            place = hed_interp_dest(d, &out, form.type);
        }
        if (!m->to && form.oper == HED_PTX_OPER_ADD && form.size == 4 &&
            hed_ptx_is_int(form.type) &&
            (form.sem == HED_PTX_SEM_NONE || form.sem == HED_PTX_SEM_RELAXED) && m->count == 1) {
            hed_interp_emit3(d, add_words, 0, address, a->value, 0);
            return;
        }
        s = hed_interp_emit3(d, form.size == 16 ? atomic_wide_lanes : atomic_lanes, place, 0, 0, 0);
        s->more = a;
    }
}

static INTERP_STEP(fence_step)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return s + 1;
}

void
hed_interp_op_fence(struct interp_decoder *d)
{
    hed_interp_emit(d, fence_step);
}
