/* Tests of core/foreign: a call through a stub arrives unchanged, and is counted. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/foreign.h"
#include "core/stats.h"

struct large {
    uint64_t words[9];
};

/* More arguments of every class than fit into registers on any architecture. */
typedef struct large (*wide)(int, double, const char *, float, uint64_t, double, uint8_t, double,
                             uint64_t, double, uint64_t, double, uint64_t, double, uint64_t, double,
                             double, uint64_t, uint16_t, double, struct large);

static struct large
wide_target(int a, double b, const char *c, float d, uint64_t e, double f, uint8_t g, double h,
            uint64_t i, double j, uint64_t k, double l, uint64_t m, double n, uint64_t o, double p,
            double q, uint64_t r, uint16_t s, double t, struct large u)
{
    struct large out = {{(uint64_t)a + g, e + i, k + m, o + r, s, (uint64_t)c[0],
                         (uint64_t)(b + d + f + h), (uint64_t)(j + l + n + p + q + t), u.words[8]}};

    return out;
}

static void
arguments_of_every_kind_survive(void **state)
{
    const struct large u = {.words[8] = 99};
    wide direct = wide_target;
    wide through;

    *(void **)&through = hed_foreign_wrap((void *)wide_target, "wide");
    assert_true((void *)through != (void *)wide_target);

    const uint64_t before = hed_foreign_calls();
    const struct large x =
        direct(1, 2, "x", 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, u);
    const struct large y =
        through(1, 2, "x", 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, u);

    assert_memory_equal(&x, &y, sizeof x);
    assert_true(y.words[8] == 99);
    assert_true(hed_foreign_calls() == before + 1);
}

struct pair {
    double x, y;
};

static struct pair
pair_target(double x, double y)
{
    return (struct pair){y, x};
}

static int
variadic_target(int n, ...)
{
    va_list list;
    double sum = 0;

    va_start(list, n);
    for (int i = 0; i < n; i++)
        sum += i % 2 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return (int)sum;
}

static void
results_and_variadics_survive(void **state)
{
    struct pair (*pair)(double, double);
    int (*variadic)(int, ...);

    *(void **)&pair = hed_foreign_wrap((void *)pair_target, "pair");
    *(void **)&variadic = hed_foreign_wrap((void *)variadic_target, "variadic");

    const struct pair p = pair(1.5, 2.5);

    assert_true(p.x == 2.5 && p.y == 1.5);
    assert_int_equal(variadic(12, 1, 2., 3, 4., 5, 6., 7, 8., 9, 10., 11, 12.), 78);
}

static void
one_function_has_one_stub(void **state)
{
    void *stub = hed_foreign_wrap((void *)pair_target, "pair");
    const uint64_t before = atomic_load(&hed_stats.foreign_pointers);

    assert_ptr_equal(hed_foreign_wrap((void *)pair_target, "again"), stub);
    assert_ptr_equal(hed_foreign_wrap(stub, "a stub of ours"), stub);
    assert_null(hed_foreign_wrap(NULL, "nothing"));
    assert_true(atomic_load(&hed_stats.foreign_pointers) == before);
    assert_ptr_not_equal(hed_foreign_wrap((void *)variadic_target, "other"), stub);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define CALLS 20000

static _Atomic uint64_t arrived;

static int
target_a(int x)
{
    atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
    return x + 1;
}

static int
target_b(int x)
{
    atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
    return x + 2;
}

static void *
call_many(void *p)
{
    int (*a)(int);
    int (*b)(int);
    intptr_t wrong = 0;

    *(void **)&a = hed_foreign_wrap((void *)target_a, "a");
    *(void **)&b = hed_foreign_wrap((void *)target_b, "b");
    for (int i = 0; i < CALLS; i++)
        wrong += a(i) != i + 1 || b(i) != i + 2;
    return (void *)wrong;
}

static void
calls_are_counted_under_threads(void **state)
{
    const uint64_t before = hed_foreign_calls();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_true(atomic_load(&arrived) == 2 * THREADS * CALLS);
    assert_true(hed_foreign_calls() == before + 2 * THREADS * CALLS);
}

static void
without_stubs_the_function_itself_is_given(void **state)
{
    static char functions[HED_FOREIGN_MAX + 8]; /* never called */
    size_t wrapped = 0;

    for (size_t i = 0; i < sizeof functions; i++) {
        void *p = hed_foreign_wrap(&functions[i], "many");

        assert_non_null(p);
        /* Once all stubs are used, no more appear. */
        assert_true(p != &functions[i] ? wrapped == i : 1);
        wrapped += p != &functions[i];
    }
    assert_true(wrapped > HED_FOREIGN_MAX - 16 && wrapped <= HED_FOREIGN_MAX);
    /* Stubs that were handed out still work. */
    assert_ptr_not_equal(hed_foreign_wrap(&functions[0], "known"), &functions[0]);

    const uint64_t before = hed_foreign_calls();
    int (*late)(int);

    *(void **)&late = hed_foreign_wrap((void *)target_a, "too late, or known");
    assert_int_equal(late(1), 2);
    assert_true(hed_foreign_calls() <= before + 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(arguments_of_every_kind_survive),
    cmocka_unit_test(results_and_variadics_survive),
    cmocka_unit_test(one_function_has_one_stub),
    cmocka_unit_test(calls_are_counted_under_threads),
    cmocka_unit_test(without_stubs_the_function_itself_is_given),
};

HED_UNIT_MAIN(tests)
