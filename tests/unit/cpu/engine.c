/* Tests of running grids: every thread runs once and has the right numbers; barriers; blocks that
 * wait for blocks. */
#include <stdatomic.h>

#include "base/number.h"
#include "unit/cpu/make.h"

/* Counts its threads, if the numbers of the warp are right. */
static void
count_warp(struct hed_ptx_warp *s)
{
    _Atomic int *seen = param(s, 0);

    for (uint32_t lane = 0; lane < 32; lane++) {
        if ((s->lanes >> lane & 1) && s->warp == s->tid[0][lane] / 32)
            atomic_fetch_add(&seen[thread_of(s, lane)], 1);
    }
}

static void
check_count(uint32_t flags, uint32_t blocks, uint32_t threads)
{
    _Atomic int *seen = calloc((size_t)blocks * threads, sizeof *seen);
    void *params[] = {seen};
    struct hed_job job = make_job(count_warp, flags, blocks, threads);

    run_well(&job, params, 1);
    for (uint32_t i = 0; i < blocks * threads; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
}

static void
every_thread_runs_once(void **state)
{
    static const uint32_t threads[] = {1, 31, 32, 33, 100, 1024};

    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        for (uint32_t blocks = 1; blocks < 300; blocks += 99) {
            check_count(0, blocks, threads[i]);
            check_count(HED_PTX_WAITS, blocks, threads[i]);
        }
    }
}

/* True after it has been asked often enough. */
static bool
hand_over_soon(void *arg, uint64_t began)
{
    return atomic_fetch_sub((_Atomic int *)arg, 1) <= 0;
}

/* Hands a grid over after some blocks, then runs the rest. */
static void
check_hand_over(uint32_t flags, uint32_t flags_after)
{
    enum { BLOCKS = 400, THREADS = 40 };
    _Atomic int *seen = calloc(BLOCKS * THREADS, sizeof *seen);
    void *params[] = {seen};
    struct hed_job job = make_job(count_warp, flags, BLOCKS, THREADS);
    _Atomic int questions = 5;
    uint64_t ran = 0;

    job.hands_over = hand_over_soon;
    job.hands_over_arg = &questions;
    job.ran = &ran;
    run_well(&job, params, 1);
    assert_in_range(ran, 1, BLOCKS - 1);
    for (uint64_t i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(seen[i], i < ran * THREADS);
    job = make_job(count_warp, flags_after, BLOCKS, THREADS);
    job.first = ran;
    run_well(&job, params, 1);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
}

static void
a_grid_can_be_handed_over_between_blocks(void **state)
{
    check_hand_over(0, HED_PTX_WAITS);
    check_hand_over(HED_PTX_WAITS, 0);
}

static bool
hand_over_at(void *arg, uint64_t began)
{
    return began >= *(uint64_t *)arg;
}

/* Blocks that are handed out one by one stop at the block that is asked for, unless they began at
 * the same time. */
static void
a_grid_can_be_handed_over_at_every_block(void **state)
{
    enum { BLOCKS = 12, THREADS = 40 };

    for (uint64_t at = 1; at <= BLOCKS + 1; at++) {
        for (uint32_t flags = 0; flags <= HED_PTX_WAITS; flags += HED_PTX_WAITS) {
            _Atomic int seen[BLOCKS * THREADS] = {0};
            void *params[] = {seen};
            struct hed_job job = make_job(count_warp, flags, BLOCKS, THREADS);
            uint64_t ran = 0;

            job.hands_over = hand_over_at;
            job.hands_over_arg = &at;
            job.ran = &ran;
            job.chunk_most = 1;
            run_well(&job, params, 1);
            assert_in_range(ran, hed_min(at, BLOCKS), BLOCKS);
            for (uint64_t i = 0; i < BLOCKS * THREADS; i++)
                assert_int_equal(seen[i], i < ran * THREADS);
        }
    }
}

static void
places(struct hed_ptx_warp *s)
{
    const struct hed_ptx_grid *g = s->grid;
    const uint32_t *c = s->block->ctaid;
    uint32_t(*out)[6] = param(s, 0);
    const uint32_t block = (c[2] * g->nctaid[1] + c[1]) * g->nctaid[0] + c[0];

    for (uint32_t lane = 0; lane < 32; lane++) {
        const uint32_t thread =
            (s->tid[2][lane] * g->ntid[1] + s->tid[1][lane]) * g->ntid[0] + s->tid[0][lane];
        uint32_t *o = out[block * g->ntid[0] * g->ntid[1] * g->ntid[2] + thread];

        for (int d = 0; d < 3 && (s->lanes >> lane & 1); d++) {
            o[d] = c[d] + 1;
            o[3 + d] = s->tid[d][lane] + 1;
        }
    }
}

static void
blocks_and_threads_have_three_dimensions(void **state)
{
    uint32_t(*out)[6] = calloc(2 * 3 * 4 * 5 * 2 * 3, sizeof *out);
    void *params[] = {out};
    struct hed_job job = make_job(places, 0, 2, 5);

    job.grid[1] = 3;
    job.grid[2] = 4;
    job.block[1] = 2;
    job.block[2] = 3;
    run_well(&job, params, 1);
    for (uint32_t i = 0; i < 2 * 3 * 4 * 5 * 2 * 3; i++) {
        const uint32_t t = i % 30, b = i / 30;

        assert_int_equal(out[i][0], b % 2 + 1);
        assert_int_equal(out[i][1], b / 2 % 3 + 1);
        assert_int_equal(out[i][2], b / 6 + 1);
        assert_int_equal(out[i][3], t % 5 + 1);
        assert_int_equal(out[i][4], t / 5 % 2 + 1);
        assert_int_equal(out[i][5], t / 10 + 1);
    }
    free(out);
}

/* Adds up the numbers of a block's warps by halving, with a barrier after each step. */
static void
sum_block(struct hed_ptx_warp *s)
{
    uint32_t *shared = (uint32_t *)s->block->shared;
    uint32_t *out = param(s, 0);
    const uint32_t w = s->warp, warps = s->grid->ntid[0] / 32;

    shared[w] = s->block->ctaid[0] * warps + w;
    hed_rt_barrier(s, 0, 0, 32);
    for (uint32_t half = warps / 2; half > 0; half /= 2) {
        if (w < half)
            shared[w] += shared[w + half];
        hed_rt_barrier(s, 0, 0, 32);
    }
    if (w == 0)
        out[s->block->ctaid[0]] = shared[0];
}

static void
barriers_hold_a_block_together(void **state)
{
    uint32_t out[50] = {0};
    void *params[] = {out};
    struct hed_job job = make_job(sum_block, HED_PTX_WAITS, 50, 1024);

    job.info.shared = 1024;
    run_well(&job, params, 1);
    for (uint32_t b = 0; b < 50; b++)
        assert_int_equal(out[b], 32 * 32 * b + 31 * 16);
}

/* Warps that have ended do not hold up a barrier. */
static void
early_end(struct hed_ptx_warp *s)
{
    uint32_t *out = param(s, 0);

    if (s->warp % 3 == 0)
        return;
    hed_rt_barrier(s, 0, 0, 32);
    __atomic_fetch_add(out, 1, __ATOMIC_RELAXED);
}

/* The same with lanes: warps themselves know how many are left. */
static void
early_lanes(struct hed_ptx_warp *s)
{
    uint32_t *out = param(s, 0);

    hed_rt_barrier(s, 0, 0, 7);
    __atomic_fetch_add(out, 1, __ATOMIC_RELAXED);
}

static void
ended_threads_count_as_arrived(void **state)
{
    uint32_t out = 0;
    void *params[] = {&out};
    struct hed_job job = make_job(early_end, HED_PTX_WAITS, 1, 960);

    run_well(&job, params, 1);
    assert_int_equal(out, 20);
    out = 0;
    job = make_job(early_lanes, HED_PTX_WAITS, 1, 256);
    run_well(&job, params, 1);
    assert_int_equal(out, 8);
}

/* Half of the block produces and the other half consumes, through barriers 1 and 2. */
static void
produce(struct hed_ptx_warp *s)
{
    uint32_t *shared = (uint32_t *)s->block->shared;
    uint32_t *out = param(s, 0);
    const uint32_t w = s->warp;

    for (uint32_t round = 0; round < 10; round++) {
        if (w < 16) {
            shared[w] = round * 100 + w;
            hed_rt_barrier_arrive(s, 1, 1024, 32);
            hed_rt_barrier(s, 2, 1024, 32);
        } else {
            hed_rt_barrier(s, 1, 1024, 32);
            out[w - 16] += shared[w - 16];
            hed_rt_barrier_arrive(s, 2, 1024, 32);
        }
    }
}

static void
named_barriers_connect_halves(void **state)
{
    uint32_t out[16] = {0};
    void *params[] = {out};
    struct hed_job job = make_job(produce, HED_PTX_WAITS, 1, 1024);

    job.info.shared = 1024;
    run_well(&job, params, 1);
    for (uint32_t w = 0; w < 16; w++)
        assert_int_equal(out[w], 4500 + 10 * w);
}

static void
reduce(struct hed_ptx_warp *s)
{
    uint32_t *out = param(s, 0);
    const uint32_t w = s->warp;
    const uint32_t some = hed_rt_barrier_reduce(s, 0, 0, 32, w % 4 == 0, HED_RT_POPC);
    const uint32_t any = hed_rt_barrier_reduce(s, 0, 0, 32, w == 5, HED_RT_OR);
    const uint32_t all = hed_rt_barrier_reduce(s, 0, 0, 32, w == 5 ? 31 : 32, HED_RT_AND);
    const uint32_t each = hed_rt_barrier_reduce(s, 0, 0, 32, 32, HED_RT_AND);

    out[w] = some * 1000 + any * 100 + all * 10 + each;
}

static void
barriers_reduce(void **state)
{
    uint32_t out[25] = {0};
    void *params[] = {out};
    struct hed_job job = make_job(reduce, HED_PTX_WAITS, 1, 800);

    run_well(&job, params, 1);
    for (uint32_t w = 0; w < 25; w++)
        assert_int_equal(out[w], 7101);
}

static void
spend(struct hed_ptx_warp *s)
{
    if (--s->fuel <= 0)
        hed_rt_yield(s);
}

/* Each block adds to the result of the block before it: the simplest decoupled look-back. */
static void
look_back(struct hed_ptx_warp *s)
{
    _Atomic uint32_t *done = param(s, 0);
    const uint32_t b = s->block->ctaid[0];

    if (s->tid[0][0] == 0 && b > 0) {
        while (atomic_load_explicit(&done[b - 1], memory_order_acquire) == 0)
            spend(s);
    }
    hed_rt_barrier(s, 0, 0, 32);
    if (s->tid[0][0] == 0)
        atomic_store_explicit(&done[b], (b ? done[b - 1] : 0) + 1, memory_order_release);
}

static void
blocks_may_wait_for_earlier_ones(void **state)
{
    _Atomic uint32_t *done = calloc(500, sizeof *done);
    void *params[] = {done};
    struct hed_job job = make_job(look_back, HED_PTX_WAITS | HED_PTX_GRID, 500, 64);

    run_well(&job, params, 1);
    for (uint32_t b = 0; b < 500; b++)
        assert_int_equal(done[b], b + 1);
    free(done);
}

/* All blocks meet several times, which works only if all of them are running at once. */
static void
meet_all(struct hed_ptx_warp *s)
{
    _Atomic uint32_t *words = param(s, 0);
    const uint32_t n = s->grid->nctaid[0];

    for (uint32_t round = 1; round <= 5; round++) {
        hed_rt_barrier(s, 0, 0, 32);
        if (s->tid[0][0] == 0) {
            atomic_fetch_add(&words[0], 1);
            while (atomic_load(&words[0]) < n * round)
                spend(s);
        }
        hed_rt_barrier(s, 0, 0, 32);
    }
    atomic_fetch_add(&words[1], 1);
}

static void
all_blocks_of_a_cooperative_grid_run_at_once(void **state)
{
    _Atomic uint32_t words[2] = {0};
    void *params[] = {words};
    struct hed_job job = make_job(meet_all, HED_PTX_WAITS | HED_PTX_GRID, 200, 64);

    job.cooperative = true;
    run_well(&job, params, 1);
    assert_int_equal(words[1], 200 * 2);
}

static void
resident_blocks_may_wait_for_each_other(void **state)
{
    _Atomic uint32_t words[2] = {0};
    void *params[] = {words};
    struct hed_job job = make_job(meet_all, HED_PTX_WAITS | HED_PTX_GRID, 16, 32);

    run_well(&job, params, 1);
    assert_int_equal(words[1], 16);
}

struct launcher {
    pthread_t thread;
    uint32_t out[50];
};

static void *
launch_often(void *arg)
{
    struct launcher *l = arg;
    void *params[] = {l->out};

    for (int i = 0; i < 20; i++) {
        struct hed_job job = make_job(sum_block, HED_PTX_WAITS, 50, 512);
        struct hed_why why;

        job.info.shared = 1024;
        job.params = params;
        if (hed_engine_run(engine, &job, &why) != CUDA_SUCCESS)
            return arg;
    }
    return NULL;
}

static void
grids_run_side_by_side(void **state)
{
    struct launcher launchers[4] = {0};

    for (int i = 0; i < 4; i++)
        pthread_create(&launchers[i].thread, NULL, launch_often, &launchers[i]);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(launchers[i].thread, &failed);
        assert_null(failed);
        for (uint32_t b = 0; b < 50; b++)
            assert_int_equal(launchers[i].out[b], 16 * 16 * b + 15 * 8);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_thread_runs_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_grid_can_be_handed_over_between_blocks, setup, teardown),
    cmocka_unit_test_setup_teardown(a_grid_can_be_handed_over_at_every_block, setup, teardown),
    cmocka_unit_test_setup_teardown(blocks_and_threads_have_three_dimensions, setup, teardown),
    cmocka_unit_test_setup_teardown(barriers_hold_a_block_together, setup, teardown),
    cmocka_unit_test_setup_teardown(ended_threads_count_as_arrived, setup, teardown),
    cmocka_unit_test_setup_teardown(named_barriers_connect_halves, setup, teardown),
    cmocka_unit_test_setup_teardown(barriers_reduce, setup_alone, teardown),
    cmocka_unit_test_setup_teardown(blocks_may_wait_for_earlier_ones, setup, teardown),
    cmocka_unit_test_setup_teardown(all_blocks_of_a_cooperative_grid_run_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(resident_blocks_may_wait_for_each_other, setup_alone, teardown),
    cmocka_unit_test_setup_teardown(grids_run_side_by_side, setup, teardown),
};

HED_UNIT_MAIN(tests)
