/* Handles: valid ones are found, all others are refused, and objects live as long as their
 * users. */
#include "driver/handle.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "harness/unit.h"

struct thing {
    struct hed_object object;
    _Atomic int *destroyed;
};

static void
destroy(struct hed_object *o)
{
    struct thing *t = (struct thing *)o;

    atomic_fetch_add(t->destroyed, 1);
    free(t);
}

static struct thing *
make(_Atomic int *destroyed)
{
    struct thing *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->object.destroy = destroy;
    t->destroyed = destroyed;
    return t;
}

static uint64_t
add(struct hed_handles *h, enum hed_kind kind, _Atomic int *destroyed)
{
    struct thing *t = make(destroyed);

    assert_int_equal(hed_handles_add(h, kind, &t->object), 0);
    return t->object.handle;
}

static void
only_the_right_handle_finds(void **state)
{
    _Atomic int destroyed = 0;
    struct hed_handles *h = hed_handles_create();
    const uint64_t stream = add(h, HED_KIND_STREAM, &destroyed);
    struct hed_object *o = hed_handles_get(h, HED_KIND_STREAM, stream);

    assert_non_null(o);
    assert_int_equal(hed_handle_kind(stream), HED_KIND_STREAM);
    hed_object_put(o);
    assert_null(hed_handles_get(h, HED_KIND_EVENT, stream));
    assert_null(hed_handles_get(h, HED_KIND_STREAM, stream + 1));
    assert_null(hed_handles_get(h, HED_KIND_STREAM, stream ^ (1ull << 32)));
    assert_null(hed_handles_get(h, HED_KIND_STREAM, stream ^ (1ull << 63)));
    for (uint64_t small = 0; small < 8; small++)
        assert_null(hed_handles_get(h, HED_KIND_STREAM, small));
    assert_null(hed_handles_get(h, HED_KIND_STREAM, UINT64_MAX));
    hed_handles_free(h);
    assert_int_equal(destroyed, 1);
}

static void
handles_are_multiples_of_16(void **state)
{
    _Atomic int destroyed = 0;
    struct hed_handles *h = hed_handles_create();

    for (int i = 0; i < 40; i++) {
        const uint64_t handle = add(h, HED_KIND_STREAM, &destroyed);

        assert_int_equal(handle % 16, 0);
        for (uint64_t flag = 1; flag < 16; flag++)
            assert_null(hed_handles_get(h, HED_KIND_STREAM, handle | flag));
        if (i % 3 == 0)
            hed_object_put(hed_handles_remove(h, HED_KIND_STREAM, handle));
    }
    hed_handles_free(h);
    assert_int_equal(destroyed, 40);
}

static void
a_freed_handle_stays_dead(void **state)
{
    _Atomic int destroyed = 0;
    struct hed_handles *h = hed_handles_create();
    const uint64_t first = add(h, HED_KIND_EVENT, &destroyed);

    hed_object_put(hed_handles_remove(h, HED_KIND_EVENT, first));
    assert_int_equal(destroyed, 1);
    assert_null(hed_handles_remove(h, HED_KIND_EVENT, first));
    for (int i = 0; i < 1000; i++) {
        const uint64_t next = add(h, HED_KIND_EVENT, &destroyed);

        assert_int_not_equal(next, first);
        assert_null(hed_handles_get(h, HED_KIND_EVENT, first));
        hed_object_put(hed_handles_remove(h, HED_KIND_EVENT, next));
    }
    assert_int_equal(destroyed, 1001);
    hed_handles_free(h);
}

static void
an_object_outlives_its_name_while_used(void **state)
{
    _Atomic int destroyed = 0;
    struct hed_handles *h = hed_handles_create();
    const uint64_t handle = add(h, HED_KIND_MODULE, &destroyed);
    struct hed_object *user = hed_handles_get(h, HED_KIND_MODULE, handle);

    hed_object_put(hed_handles_remove(h, HED_KIND_MODULE, handle));
    assert_int_equal(destroyed, 0);
    assert_int_equal(user->handle, handle);
    hed_object_put(user);
    assert_int_equal(destroyed, 1);
    hed_handles_free(h);
}

static void
there_is_a_ceiling(void **state)
{
    static struct hed_object objects[HED_HANDLES_MAX + 1];
    struct hed_handles *h = hed_handles_create();

    for (uint32_t i = 0; i < HED_HANDLES_MAX; i++)
        assert_int_equal(hed_handles_add(h, HED_KIND_STREAM, &objects[i]), 0);
    assert_int_equal(hed_handles_add(h, HED_KIND_STREAM, &objects[HED_HANDLES_MAX]), HED_ELIMIT);
    for (uint32_t i = 0; i < HED_HANDLES_MAX; i++)
        assert_ptr_equal(hed_handles_remove(h, HED_KIND_STREAM, objects[i].handle), &objects[i]);
    hed_handles_free(h);
}

struct race {
    struct hed_handles *table;
    _Atomic int destroyed;
    _Atomic uint64_t current;
    _Atomic int made;
};

static void *
maker(void *p)
{
    struct race *r = p;

    for (int i = 0; i < 5000; i++) {
        struct thing *t = calloc(1, sizeof *t);

        if (!t)
            return NULL;
        t->object.destroy = destroy;
        t->destroyed = &r->destroyed;
        if (hed_handles_add(r->table, HED_KIND_EVENT, &t->object)) {
            free(t);
            continue;
        }
        atomic_fetch_add(&r->made, 1);

        const uint64_t old = atomic_exchange(&r->current, t->object.handle);
        struct hed_object *o = hed_handles_remove(r->table, HED_KIND_EVENT, old);

        if (o)
            hed_object_put(o);
    }
    return NULL;
}

static void *
user(void *p)
{
    struct race *r = p;

    for (int i = 0; i < 20000; i++) {
        struct hed_object *o = hed_handles_get(r->table, HED_KIND_EVENT, atomic_load(&r->current));

        if (o)
            hed_object_put(o);
    }
    return NULL;
}

static void
threads_never_meet_a_dead_object(void **state)
{
    struct race r = {.table = hed_handles_create()};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? maker : user, &r), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    hed_handles_free(r.table);
    assert_int_equal(r.destroyed, r.made);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_right_handle_finds),
    cmocka_unit_test(handles_are_multiples_of_16),
    cmocka_unit_test(a_freed_handle_stays_dead),
    cmocka_unit_test(an_object_outlives_its_name_while_used),
    cmocka_unit_test(there_is_a_ceiling),
    cmocka_unit_test(threads_never_meet_a_dead_object),
};

HED_UNIT_MAIN(tests)
