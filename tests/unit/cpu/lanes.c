/* Tests of lanes of a warp that act together, in the scalar shape. */
#include <math.h>
#include <stdatomic.h>

#include "unit/cpu/make.h"

static void
run_warp(hed_ptx_entry entry, uint32_t threads, void *out)
{
    void *params[] = {out};
    struct hed_job job = make_job(entry, 1, HED_PTX_WAITS, 1, threads);

    run_well(&job, params, 1);
}

static void
shuffles(struct hed_ptx_strand *s)
{
    uint32_t(*out)[6] = param(s, 0);
    uint32_t *o = out[s->tid[0][0]];
    uint32_t inside;

    o[0] = hed_rt_shfl(s, HED_RT_SHFL_UP, s->lane, 3, 0, UINT32_MAX, &inside);
    o[1] = inside;
    o[2] = hed_rt_shfl(s, HED_RT_SHFL_DOWN, s->lane, 3, 0x1f, UINT32_MAX, &inside);
    o[3] = inside;
    o[4] = hed_rt_shfl(s, HED_RT_SHFL_BFLY, s->lane, 5, 0x1f, UINT32_MAX, NULL);
    /* Groups of eight: __shfl_sync(m, v, 9, 8) reads lane 1 of the group. */
    o[5] = hed_rt_shfl(s, HED_RT_SHFL_IDX, s->lane, 9, 0x181f, UINT32_MAX, NULL);
}

static void
shuffles_move_values(void **state)
{
    uint32_t out[64][6];

    run_warp(shuffles, 64, out);
    for (uint32_t t = 0; t < 64; t++) {
        const uint32_t lane = t % 32;

        assert_int_equal(out[t][0], lane < 3 ? lane : lane - 3);
        assert_int_equal(out[t][1], lane >= 3);
        assert_int_equal(out[t][2], lane + 3 < 32 ? lane + 3 : lane);
        assert_int_equal(out[t][3], lane + 3 < 32);
        assert_int_equal(out[t][4], lane ^ 5);
        assert_int_equal(out[t][5], (lane & 24) + 1);
    }
}

static void
votes(struct hed_ptx_strand *s)
{
    uint32_t(*out)[4] = param(s, 0);
    uint32_t *o = out[s->lane];
    const uint32_t mask = s->lane < 16 ? 0xffff : 0xffff0000;

    /* The two halves of the warp vote separately, in different order. */
    o[0] = hed_rt_vote(s, HED_RT_VOTE_BALLOT, s->lane % 2, mask);
    o[1] = hed_rt_vote(s, HED_RT_VOTE_ALL, s->lane < 16, mask);
    o[2] = hed_rt_vote(s, HED_RT_VOTE_ANY, s->lane == 20, mask);
    o[3] = hed_rt_vote(s, HED_RT_VOTE_UNI, s->lane == 20, UINT32_MAX);
}

static void
votes_count_lanes_of_the_mask(void **state)
{
    uint32_t out[32][4];

    run_warp(votes, 32, out);
    for (uint32_t t = 0; t < 32; t++) {
        assert_int_equal(out[t][0], t < 16 ? 0xaaaa : 0xaaaa0000);
        assert_int_equal(out[t][1], t < 16);
        assert_int_equal(out[t][2], t >= 16);
        assert_int_equal(out[t][3], 0);
    }
}

static void
matches(struct hed_ptx_strand *s)
{
    uint32_t(*out)[3] = param(s, 0);
    uint32_t *o = out[s->lane];
    uint32_t same;

    o[0] = hed_rt_match_any(s, s->lane % 4, UINT32_MAX);
    o[1] = hed_rt_match_all(s, s->lane / 32, UINT32_MAX, &same) + same - 1;
    o[2] = hed_rt_match_all(s, s->lane, UINT32_MAX, &same) + same;
}

static void
matches_find_equal_values(void **state)
{
    uint32_t out[32][3];

    run_warp(matches, 32, out);
    for (uint32_t t = 0; t < 32; t++) {
        assert_int_equal(out[t][0], UINT32_C(0x11111111) << t % 4);
        assert_int_equal(out[t][1], UINT32_MAX);
        assert_int_equal(out[t][2], 0);
    }
}

static uint32_t
bits(float f)
{
    uint32_t b;

    memcpy(&b, &f, sizeof b);
    return b;
}

static void
reductions(struct hed_ptx_strand *s)
{
    uint32_t(*out)[6] = param(s, 0);
    uint32_t *o = out[s->lane];
    const uint32_t all = UINT32_MAX;

    o[0] = hed_rt_redux(s, HED_RT_REDUX_ADD, s->lane, all);
    o[1] = hed_rt_redux(s, HED_RT_REDUX_MIN_S, s->lane - 5, all);
    o[2] = hed_rt_redux(s, HED_RT_REDUX_MAX_U, s->lane - 5, all);
    o[3] = hed_rt_redux(s, HED_RT_REDUX_XOR, UINT32_C(1) << s->lane, all);
    o[4] = hed_rt_redux(s, HED_RT_REDUX_MIN_F, bits(s->lane ? (float)s->lane : NAN), all);
    o[5] = hed_rt_redux(s, HED_RT_REDUX_MAX_F_NAN, bits(s->lane ? (float)s->lane : NAN), all);
}

static void
reductions_combine_all_lanes(void **state)
{
    uint32_t out[32][6];

    run_warp(reductions, 32, out);
    for (uint32_t t = 0; t < 32; t++) {
        assert_int_equal(out[t][0], 496);
        assert_int_equal(out[t][1], (uint32_t)-5);
        assert_int_equal(out[t][2], UINT32_MAX);
        assert_int_equal(out[t][3], UINT32_MAX);
        assert_int_equal(out[t][4], bits(1));
        assert_int_equal(out[t][5], 0x7fffffff);
    }
}

static void
ended_lanes(struct hed_ptx_strand *s)
{
    uint32_t *out = param(s, 0);

    if (s->lane < 10)
        return;
    out[s->lane] = hed_rt_vote(s, HED_RT_VOTE_BALLOT, 1, UINT32_MAX);
}

static void
ended_lanes_are_not_waited_for(void **state)
{
    uint32_t out[32] = {0};

    run_warp(ended_lanes, 32, out);
    assert_int_equal(out[9], 0);
    assert_int_equal(out[31], UINT32_C(0xfffffc00));
}

static __attribute__((noinline)) uint32_t
ask_active_lanes(struct hed_ptx_strand *s)
{
    const uint32_t mask = hed_rt_activemask(s);

    __asm__ volatile("" ::: "memory");
    return mask;
}

static __attribute__((noinline)) uint32_t
ask_elsewhere(struct hed_ptx_strand *s)
{
    const uint32_t mask = hed_rt_activemask(s);

    __asm__ volatile("# another place" ::: "memory");
    return mask + 0;
}

static void
active(struct hed_ptx_strand *s)
{
    uint32_t(*out)[2] = param(s, 0);

    out[s->lane][0] = ask_active_lanes(s);
    if (s->lane % 2)
        out[s->lane][1] = ask_active_lanes(s);
    else
        out[s->lane][1] = ask_elsewhere(s);
}

static void
activemask_names_the_lanes_that_are_there(void **state)
{
    uint32_t out[32][2] = {0};

    run_warp(active, 32, out);
    for (uint32_t t = 0; t < 32; t++) {
        assert_int_equal(out[t][0], UINT32_MAX);
        assert_int_equal(out[t][1], t % 2 ? 0xaaaaaaaa : 0x55555555);
    }
}

/* A spin lock between lanes of a warp. The holder asks which lanes are active while others spin. */
static void
locks(struct hed_ptx_strand *s)
{
    _Atomic uint32_t *words = param(s, 0);

    while (atomic_exchange_explicit(&words[0], 1, memory_order_acquire)) {
        if (--s->fuel <= 0)
            hed_rt_yield(s);
    }
    words[1] += hed_rt_activemask(s) != 0;
    atomic_store_explicit(&words[0], 0, memory_order_release);
}

static void
lanes_may_spin_on_each_other(void **state)
{
    _Atomic uint32_t words[2] = {0};
    void *params[] = {words};
    struct hed_job job = make_job(locks, 1, HED_PTX_WAITS | HED_PTX_GRID, 8, 64);

    run_well(&job, params, 1);
    assert_int_equal(words[1], 8 * 64);
}

static void
elects(struct hed_ptx_strand *s)
{
    uint32_t *out = param(s, 0);
    uint32_t mine;

    if (s->lane >= 4)
        out[s->lane] = hed_rt_elect(s, 0xfffffff0, &mine) * 10 + mine;
    hed_rt_warp_sync(s, UINT32_MAX);
}

static void
one_lane_is_elected(void **state)
{
    uint32_t out[32] = {0};

    run_warp(elects, 32, out);
    assert_int_equal(out[4], 41);
    assert_int_equal(out[5], 40);
    assert_int_equal(out[31], 40);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(shuffles_move_values, setup, teardown),
    cmocka_unit_test_setup_teardown(votes_count_lanes_of_the_mask, setup, teardown),
    cmocka_unit_test_setup_teardown(matches_find_equal_values, setup, teardown),
    cmocka_unit_test_setup_teardown(reductions_combine_all_lanes, setup, teardown),
    cmocka_unit_test_setup_teardown(ended_lanes_are_not_waited_for, setup, teardown),
    cmocka_unit_test_setup_teardown(activemask_names_the_lanes_that_are_there, setup, teardown),
    cmocka_unit_test_setup_teardown(lanes_may_spin_on_each_other, setup, teardown),
    cmocka_unit_test_setup_teardown(one_lane_is_elected, setup_alone, teardown),
};

HED_UNIT_MAIN(tests)
