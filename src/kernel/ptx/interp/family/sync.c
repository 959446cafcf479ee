/* Barriers of a block, and operations among the lanes of a warp.
 *
 * All of them meet first: the running lanes wait for the others that take part. The values of the
 * lanes are in their registers, so nothing else has to be kept while they wait. What they do then
 * is a function of its own (act_on_...), which join.c calls too, for lanes that come to the
 * operation at different steps.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/join.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/run/warp.h"

/* What e says of a step: the operation's variant; that it has a mask, whose place is in imm (the
 * old forms have none, and wait for no lane); and which operation it is. Several steps may do the
 * same one, and addresses of functions with clones are not for comparing: they depend on who asks.
 */
#define VARIANT(e) ((e)&255u)
#define HAS_MASK 256u
#define OPERATION_SHIFT 16

enum operation {
    NO_OPERATION, /* of lanes that can do it together at different steps */
    SYNC,
    SHUFFLE,
    VOTE,
    MATCH,
    REDUCTION,
    ELECTION,
    BARRIER,
    ARRIVAL,
    BARRIER_REDUCTION,
};

/* All lanes that any of the running lanes wants to meet. */
static uint32_t
lanes_wanted(const struct interp_warp *w, const struct interp_step *s)
{
    const uint32_t *masks = interp_at(w, (uint32_t)s->imm);
    uint32_t all = 0;

    if (!(s->e & HAS_MASK))
        return 0;
    MASKED_LANES(w->active, lane)
    all |= masks[lane];
    return all;
}

/* Meets the lanes of the mask. False if the running lanes are parked. */
static inline bool
meet_members(struct interp_warp *w, const struct interp_step *s)
{
    return w->active == w->live || hed_interp_meet(w, s, lanes_wanted(w, s));
}

/* The mask of each lane, or the running lanes. */
static const uint32_t *
member_masks(const struct interp_warp *w, const struct interp_step *s, uint32_t *room)
{
    if (s->e & HAS_MASK)
        return interp_at(w, (uint32_t)s->imm);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        room[i] = w->active;
    return room;
}

static inline __attribute__((always_inline)) void
write_words(const struct interp_warp *w, uint32_t place, const uint32_t *words)
{
    interp_merge(interp_at(w, place), words, w->write, 4);
}

#define WARP_STEP(name, act)           \
    static INTERP_STEP(name)           \
    {                                  \
        if (!meet_members(w, s))       \
            return hed_interp_next(w); \
        act(w, s);                     \
        return s + 1;                  \
    }

#define BARRIER_STEP(name, act)                 \
    static INTERP_STEP(name)                    \
    {                                           \
        if (!hed_interp_meet(w, s, UINT32_MAX)) \
            return hed_interp_next(w);          \
        act(w, s);                              \
        return s + 1;                           \
    }

/* Of `more`: the result is a predicate and not a word. */
static const char predicate_result;

static void
set_result(struct interp_step *s, enum hed_ptx_type t)
{
    s->more = t == HED_PTX_TYPE_PRED ? &predicate_result : NULL;
}

static bool
gives_predicate(const struct interp_step *s)
{
    return s->more == &predicate_result;
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* a is the place of the id, b that of the number of threads. */
static uint32_t
first_word(const struct interp_warp *w, uint32_t place)
{
    const uint32_t *v = interp_at(w, place);

    return v[__builtin_ctz(w->active)];
}

static void
act_on_barrier(struct interp_warp *w, const struct interp_step *s)
{
    w->warp->line = s->line;
    w->warp->grid->host->barrier(w->warp, first_word(w, s->a), first_word(w, s->b),
                                 (uint32_t)__builtin_popcount(w->active));
}

static void
act_on_arrival(struct interp_warp *w, const struct interp_step *s)
{
    w->warp->line = s->line;
    w->warp->grid->host->barrier_arrive(w->warp, first_word(w, s->a), first_word(w, s->b),
                                        (uint32_t)__builtin_popcount(w->active));
}

/* c is the predicate, e the reduction. */
static void
act_on_barrier_reduction(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t r, words[HED_PTX_LANES];

    w->warp->line = s->line;
    r = w->warp->grid->host->barrier_reduce(
        w->warp, first_word(w, s->a), first_word(w, s->b), (uint32_t)__builtin_popcount(w->active),
        (uint32_t)__builtin_popcount(w->active & interp_predicate(w, s->c)), VARIANT(s->e));
    if (gives_predicate(s)) {
        interp_set_predicate(w, s->d, r ? UINT32_MAX : 0);
    } else {
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            words[i] = r;
        write_words(w, s->d, words);
    }
}

BARRIER_STEP(barrier_lanes, act_on_barrier)
BARRIER_STEP(arrive_lanes, act_on_arrival)
BARRIER_STEP(barrier_reduce_lanes, act_on_barrier_reduction)

static uint32_t
sync_word(struct interp_decoder *d, unsigned n)
{
    return hed_interp_operand(d, n, HED_PTX_TYPE_B32);
}

/* The operand with the number of threads; 0, for all of the block, if it is not there. */
static uint32_t
threads_operand(struct interp_decoder *d, unsigned n)
{
    return d->inst->noperands > n ? sync_word(d, n) : hed_interp_constant(d, 0, 4);
}

static struct interp_step *
emit_operation(struct interp_decoder *d, enum operation operation, interp_run run, uint32_t to,
               const uint32_t from[3])
{
    struct interp_step *s = hed_interp_emit3(d, run, to, from[0], from[1], from[2]);

    s->e = (uint32_t)operation << OPERATION_SHIFT;
    return s;
}

static void
emit_barrier(struct interp_decoder *d, enum operation operation, interp_run run, uint32_t id,
             uint32_t threads)
{
    d->program->info.flags |= HED_PTX_WAITS;
    emit_operation(d, operation, run, 0, (const uint32_t[3]){id, threads});
}

void
hed_interp_op_barrier_sync(struct interp_decoder *d)
{
    const uint32_t id = sync_word(d, 0);

    emit_barrier(d, BARRIER, barrier_lanes, id, threads_operand(d, 1));
}

void
hed_interp_op_barrier_arrive(struct interp_decoder *d)
{
    const uint32_t id = sync_word(d, 0);

    emit_barrier(d, ARRIVAL, arrive_lanes, id, threads_operand(d, 1));
}

/* Every block is a cluster of its own. */
void
hed_interp_op_cluster_wait(struct interp_decoder *d)
{
    emit_barrier(d, BARRIER, barrier_lanes, hed_interp_constant(d, HED_PTX_CLUSTER_BARRIER, 4),
                 hed_interp_constant(d, 0, 4));
}

void
hed_interp_op_barrier_red(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const bool counted = i->noperands == 4;
    const uint32_t id = sync_word(d, 1);
    const uint32_t threads = counted ? sync_word(d, 2) : hed_interp_constant(d, 0, 4);
    const uint32_t p = hed_interp_operand(d, counted ? 3 : 2, HED_PTX_TYPE_PRED);
    const uint32_t to = hed_interp_dest(d, &i->operands[0], i->form->types[0]);
    struct interp_step *s;

    d->program->info.flags |= HED_PTX_WAITS;
    s = emit_operation(d, BARRIER_REDUCTION, barrier_reduce_lanes, to,
                       (const uint32_t[3]){id, threads, p});
    s->e |= d->meaning->operation;
    set_result(s, i->form->types[0]);
}

/* ---- warps ----------------------------------------------------------------------------------- */

/* Sets the mask of an operation: operand n, if it is there. */
static void
set_mask(struct interp_step *s, bool there, uint32_t mask)
{
    s->imm = mask;
    s->e |= there ? HAS_MASK : 0;
}

static void
act_on_nothing(struct interp_warp *w, const struct interp_step *s)
{
    (void)w;
    (void)s;
}

WARP_STEP(sync_lanes, act_on_nothing)

void
hed_interp_op_warp_sync(struct interp_decoder *d)
{
    const uint32_t mask = sync_word(d, 0);

    set_mask(emit_operation(d, SYNC, sync_lanes, 0, (const uint32_t[3]){0}), true, mask);
}

/* The places of a destination a or a|p; a temporary register if there is no p. */
struct two_dests {
    uint32_t value, predicate;
};

static struct two_dests
dests_of_pair(struct interp_decoder *d, enum hed_ptx_type t)
{
    const struct hed_ptx_operand *o = &d->inst->operands[0];

    if (o->kind != HED_PTX_OPERAND_PAIR)
        return (struct two_dests){hed_interp_dest(d, o, t), hed_interp_temp(d, 0)};
    return (struct two_dests){hed_interp_dest(d, &o->elems[0], t),
                              hed_interp_dest(d, &o->elems[1], HED_PTX_TYPE_PRED)};
}

/* The place of the predicate that goes with the result: in `more`, since a step has no room. */
static uint32_t
second_dest(const struct interp_step *s)
{
    return (uint32_t)(uintptr_t)s->more;
}

static inline __attribute__((always_inline)) void
act_on_shuffle(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t out[HED_PTX_LANES];
    uint32_t inside;

    inside = hed_warp_shfl(VARIANT(s->e), interp_at(w, s->a), interp_at(w, s->b),
                           interp_at(w, s->c), out);
    write_words(w, s->d, out);
    interp_set_predicate(w, second_dest(s), inside);
}

WARP_STEP(shfl_lanes, act_on_shuffle)

/* Shuffles of whole warps by a number that is known when the kernel is decoded. They are of no use
 * where some lanes keep what they have. */
#define KNOWN_SHUFFLE(name, inside, ...)                           \
    static INTERP_STEP(name)                                       \
    {                                                              \
        if (w->active != w->live || w->write != INTERP_ALL)        \
            return shfl_lanes(w, s);                               \
                                                                   \
        const uint32_t by = *(const uint32_t *)interp_at(w, s->b); \
        const uint32_t *from = interp_at(w, s->a);                 \
        uint32_t *to = interp_at(w, s->d);                         \
                                                                   \
        __VA_ARGS__;                                               \
        *(uint32_t *)interp_at(w, second_dest(s)) = (inside);      \
        INTERP_NEXT(w, s);                                         \
    }

/* Of 8 lanes, so that a vector holds them. */
typedef uint32_t eight_words __attribute__((vector_size(32)));

#ifdef __clang__
#define SWAP_IN_EIGHT(v, n)                                                                      \
    __builtin_shufflevector(v, v, 0 ^ (n), 1 ^ (n), 2 ^ (n), 3 ^ (n), 4 ^ (n), 5 ^ (n), 6 ^ (n), \
                            7 ^ (n))
#else
#define SWAP_IN_EIGHT(v, n) \
    __builtin_shuffle(      \
        v, (eight_words){0 ^ (n), 1 ^ (n), 2 ^ (n), 3 ^ (n), 4 ^ (n), 5 ^ (n), 6 ^ (n), 7 ^ (n)})
#endif

/* Lane i gets the value of lane i ^ n. */
#define SWAP_LANES(n)                                   \
    (void)by;                                           \
    eight_words v[HED_PTX_LANES / 8], out;              \
                                                        \
    memcpy(v, from, sizeof(v));                         \
    for (unsigned i = 0; i < HED_PTX_LANES / 8; i++) {  \
        out = SWAP_IN_EIGHT(v[i ^ ((n) / 8)], (n) % 8); \
        memcpy(to + (size_t)8 * i, &out, sizeof(out));  \
    }

KNOWN_SHUFFLE(swap_1, INTERP_ALL, SWAP_LANES(1))
KNOWN_SHUFFLE(swap_2, INTERP_ALL, SWAP_LANES(2))
KNOWN_SHUFFLE(swap_4, INTERP_ALL, SWAP_LANES(4))
KNOWN_SHUFFLE(swap_8, INTERP_ALL, SWAP_LANES(8))
KNOWN_SHUFFLE(swap_16, INTERP_ALL, SWAP_LANES(16))

/* The lanes at the end have nobody to get a value from, and keep their own. */
KNOWN_SHUFFLE(shift_down, INTERP_ALL >> (by & 31), {
    uint32_t room[2 * HED_PTX_LANES];
    const uint32_t inside = INTERP_ALL >> (by & 31);

    memcpy(room, from, HED_PTX_LANES * sizeof(*from));
    memcpy(room + HED_PTX_LANES, from, HED_PTX_LANES * sizeof(*from));
    EACH_LANE(i)
    to[i] = inside & hed_interp_bits[i] ? room[i + (by & 31)] : room[i];
})

KNOWN_SHUFFLE(shift_up, INTERP_ALL << (by & 31), {
    uint32_t room[2 * HED_PTX_LANES];
    const uint32_t inside = INTERP_ALL << (by & 31);

    memcpy(room, from, HED_PTX_LANES * sizeof(*from));
    memcpy(room + HED_PTX_LANES, from, HED_PTX_LANES * sizeof(*from));
    EACH_LANE(i)
    to[i] = inside & hed_interp_bits[i] ? room[HED_PTX_LANES + i - (by & 31)] : room[i];
})

KNOWN_SHUFFLE(spread_lane, INTERP_ALL, {
    const uint32_t value = from[by & 31];

    EACH_LANE(i)
    to[i] = value;
})

static const interp_run swaps[5] = {swap_1, swap_2, swap_4, swap_8, swap_16};

/* The step for a shuffle by `by`, with the operand c of shfl. */
static interp_run
shuffle_step(const struct interp_decoder *d, uint32_t mode, uint32_t by, uint32_t c)
{
    uint32_t lanes, limits;

    if (!hed_interp_known_word(d, by, &lanes) || !hed_interp_known_word(d, c, &limits))
        return shfl_lanes;
    lanes &= 31;
    /* All 32 lanes are one segment. */
    if ((limits & 0x1f1f) != (mode == HED_RT_SHFL_UP ? 0 : 31))
        return shfl_lanes;
    switch (mode) {
    case HED_RT_SHFL_UP:
        return shift_up;
    case HED_RT_SHFL_DOWN:
        return shift_down;
    case HED_RT_SHFL_IDX:
        return spread_lane;
    default:
        return __builtin_popcount(lanes) == 1 ? swaps[__builtin_ctz(lanes)] : shfl_lanes;
    }
}

void
hed_interp_op_shfl(struct interp_decoder *d)
{
    const bool masked = d->inst->noperands > 4;
    uint32_t from[3];
    struct interp_step *s;

    for (unsigned k = 0; k < 3; k++)
        from[k] = sync_word(d, k + 1);

    const uint32_t mask = masked ? sync_word(d, 4) : 0;
    const struct two_dests to = dests_of_pair(d, HED_PTX_TYPE_B32);

    s = emit_operation(d, SHUFFLE, shuffle_step(d, d->meaning->operation, from[1], from[2]),
                       to.value, from);
    s->e |= d->meaning->operation;
    s->more = (const void *)(uintptr_t)to.predicate;
    set_mask(s, masked, mask);
}

static void
act_on_vote(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t room[HED_PTX_LANES], out[HED_PTX_LANES];
    uint32_t yes, bits = 0;
    const uint32_t *members;

    members = member_masks(w, s, room);
    yes = w->active & interp_predicate(w, s->a);
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        const uint32_t here = members[i] & w->active;
        const uint32_t said = members[i] & yes;
        const unsigned mode = VARIANT(s->e);

        out[i] = mode == HED_RT_VOTE_BALLOT ? said
                 : mode == HED_RT_VOTE_ALL  ? said == here
                 : mode == HED_RT_VOTE_ANY  ? said != 0
                                            : said == here || said == 0;
        bits |= out[i] ? hed_interp_bits[i] : 0;
    }
    if (gives_predicate(s))
        interp_set_predicate(w, s->d, bits);
    else
        write_words(w, s->d, out);
}

WARP_STEP(vote_lanes, act_on_vote)

void
hed_interp_op_vote(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const uint32_t p = hed_interp_operand(d, 1, HED_PTX_TYPE_PRED);
    const bool masked = d->inst->noperands > 2;
    const uint32_t mask = masked ? sync_word(d, 2) : 0;
    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], f->types[0]);
    struct interp_step *s;

    s = emit_operation(d, VOTE, vote_lanes, to, (const uint32_t[3]){p});
    set_result(s, f->types[0]);
    s->e |= d->meaning->operation;
    set_mask(s, masked, mask);
}

/* e: all lanes must be the same. */
static void
act_on_match(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t room[HED_PTX_LANES], out[HED_PTX_LANES];
    uint32_t same = 0;

    if (VARIANT(s->e))
        same = hed_warp_match_all(interp_at(w, s->a), member_masks(w, s, room), w->active, out);
    else
        hed_warp_match_any(interp_at(w, s->a), member_masks(w, s, room), w->active, out);
    write_words(w, s->d, out);
    interp_set_predicate(w, second_dest(s), same);
}

WARP_STEP(match_lanes, act_on_match)

void
hed_interp_op_match(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned bytes = interp_bytes(f->types[0]);
    uint32_t v = hed_interp_operand(d, 1, f->types[0]);
    const uint32_t mask = sync_word(d, 2);
    const struct two_dests to = dests_of_pair(d, HED_PTX_TYPE_B32);
    struct interp_step *s;

    if (bytes != 8) {
        const uint32_t wide = hed_interp_temp(d, 8);

        hed_interp_resize(d, v, bytes, wide, 8, false);
        v = wide;
    }
    s = emit_operation(d, MATCH, match_lanes, to.value, (const uint32_t[3]){v});
    s->e |= f->mode == HED_PTX_MODE_ALL;
    s->more = (const void *)(uintptr_t)to.predicate;
    set_mask(s, true, mask);
}

static void
act_on_reduction(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t room[HED_PTX_LANES], out[HED_PTX_LANES] = {0};

    hed_warp_redux(VARIANT(s->e), interp_at(w, s->a), member_masks(w, s, room), w->active, out);
    write_words(w, s->d, out);
}

WARP_STEP(redux_lanes, act_on_reduction)

void
hed_interp_op_redux(struct interp_decoder *d)
{
    const uint32_t v = sync_word(d, 1);
    const uint32_t mask = sync_word(d, 2);
    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B32);
    struct interp_step *s;

    s = emit_operation(d, REDUCTION, redux_lanes, to, (const uint32_t[3]){v});
    s->e |= d->meaning->operation;
    set_mask(s, true, mask);
}

static void
act_on_election(struct interp_warp *w, const struct interp_step *s)
{
    uint32_t room[HED_PTX_LANES], out[HED_PTX_LANES];
    const uint32_t *members;
    uint32_t elected = 0;

    members = member_masks(w, s, room);
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        const uint32_t here = members[i] & w->active;

        out[i] = here ? (uint32_t)__builtin_ctz(here) : 32;
        elected |= out[i] == i ? hed_interp_bits[i] : 0;
    }
    write_words(w, s->d, out);
    interp_set_predicate(w, second_dest(s), elected);
}

WARP_STEP(elect_lanes, act_on_election)

void
hed_interp_op_elect(struct interp_decoder *d)
{
    const uint32_t mask = sync_word(d, 1);
    const struct two_dests to = dests_of_pair(d, HED_PTX_TYPE_B32);
    struct interp_step *s =
        emit_operation(d, ELECTION, elect_lanes, to.value, (const uint32_t[3]){0});

    s->more = (const void *)(uintptr_t)to.predicate;
    set_mask(s, true, mask);
}

/* ---- lanes at different steps ---------------------------------------------------------------- */

static const struct interp_joint joints[] = {
    [SYNC] = {act_on_nothing, {0}, INTERP_NO_RESULT, false},
    [SHUFFLE] = {act_on_shuffle, {4, 4, 4}, INTERP_WORD_AND_BIT, false},
    [VOTE] = {act_on_vote, {INTERP_BIT}, INTERP_WORD_OR_BIT, false},
    [MATCH] = {act_on_match, {8}, INTERP_WORD_AND_BIT, false},
    [REDUCTION] = {act_on_reduction, {4}, INTERP_WORD_OR_BIT, false},
    [ELECTION] = {act_on_election, {0}, INTERP_WORD_AND_BIT, false},
    [BARRIER] = {act_on_barrier, {4, 4}, INTERP_NO_RESULT, true},
    [ARRIVAL] = {act_on_arrival, {4, 4}, INTERP_NO_RESULT, true},
    [BARRIER_REDUCTION] = {act_on_barrier_reduction, {4, 4, INTERP_BIT}, INTERP_WORD_OR_BIT, true},
};

const struct interp_joint *
hed_interp_joint(const struct interp_step *s)
{
    const uint32_t operation = s->e >> OPERATION_SHIFT;

    return operation == NO_OPERATION ? NULL : &joints[operation];
}
