/* Tests of the worker's handlers for code and launches: bodies that make no sense. */
#include "remote/server/worker/code.h"

#include <stdlib.h>

#include "base/err.h"
#include "harness/unit.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/code.h"

static int launches;
static size_t launched_bytes;

static CUresult
fake_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    launches++;
    launched_bytes = a->extra ? *(size_t *)a->extra[3] : 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLaunchKernelEx(struct hed_layer *self, struct hed_cuLaunchKernelEx *a)
{
    launches++;
    launched_bytes = a->extra ? *(size_t *)a->extra[3] : 0;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops fake = {.cuLaunchKernel = fake_cuLaunchKernel,
                                         .cuLaunchKernelEx = fake_cuLaunchKernelEx};

struct fixture {
    struct hed_worker_start start;
    struct hed_layer top;
    struct hed_worker worker;
    struct hed_worker_channel channel;
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct hed_why why;

    f->start.images = "";
    f->top.cuda = &fake;
    f->worker.start = &f->start;
    f->worker.top = &f->top;
    f->worker.device_count = 1;
    f->worker.names = hed_names_create();
    hed_lock_init(&f->worker.lock, HED_RANK_WORKER);
    f->channel.worker = &f->worker;
    hed_arena_init(&f->channel.arena, 1 << 20);
    launches = 0;
    *state = f;
    return hed_worker_code_init(&f->worker, &why);
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    hed_arena_fini(&f->channel.arena);
    free(f);
    return 0;
}

#define NAME ((UINT64_C(6) << 56) | 5) /* a function's name, as the client makes them */

/* Adds a function, as HED_MSG_KERNEL would. */
static void
add_function(struct fixture *f, uint32_t param_bytes)
{
    assert_int_equal(
        hed_worker_function_add(&f->worker, NAME, (CUfunction)(uintptr_t)77, param_bytes), 0);
}

union message {
    struct hed_launch_body launch;
    struct hed_open_body open;
    struct hed_kernel_body kernel;
    struct hed_image_body image;
    unsigned char bytes[8192];
};

static struct hed_launch_body *
launch_of(union message *m, uint32_t params, uint32_t attributes)
{
    memset(m, 0, sizeof *m);
    m->launch.head.kind = HED_MSG_LAUNCH;
    m->launch.head.size = (uint32_t)sizeof m->launch + attributes * 72 + params;
    m->launch.head.stream = 1;
    m->launch.function = NAME;
    m->launch.params = params;
    m->launch.attributes = attributes;
    return &m->launch;
}

static void
a_launch_goes_on(void **state)
{
    struct fixture *f = *state;
    union message m;

    add_function(f, 24);
    assert_int_equal(hed_do_launch(&f->channel, &launch_of(&m, 24, 0)->head), 0);
    assert_int_equal(launches, 1);
    assert_int_equal(launched_bytes, 24);
    assert_int_equal(hed_do_launch(&f->channel, &launch_of(&m, 24, 3)->head), 0);
    assert_int_equal(launches, 2);
}

static void
sizes_that_lie(void **state)
{
    struct fixture *f = *state;
    union message m;

    add_function(f, 24);
    launch_of(&m, 24, 0)->head.size--;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), HED_EFORMAT);
    launch_of(&m, 24, 1)->head.size -= 8;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), HED_EFORMAT);
    launch_of(&m, 24, 0)->params = UINT32_MAX - 60;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), HED_EFORMAT);
    launch_of(&m, 24, 0)->attributes = UINT32_MAX / 72 + 1;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), HED_EFORMAT);
    launch_of(&m, 24, 0)->head.bulk = 1;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), HED_EFORMAT);
    /* sizes that are not the kernel's do not reach the driver */
    assert_int_equal(hed_do_launch(&f->channel, &launch_of(&m, 23, 0)->head), HED_EFORMAT);
    assert_int_equal(hed_do_launch(&f->channel, &launch_of(&m, 32, 0)->head), HED_EFORMAT);
    assert_int_equal(hed_do_launch(&f->channel, &launch_of(&m, 0, 0)->head), HED_EFORMAT);
    assert_int_equal(launches, 0);
}

/* The client may not put handles into attributes. */
static void
attributes_with_handles_fail(void **state)
{
    static const CUlaunchAttributeID ids[] = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                                              CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                                              CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE};
    struct fixture *f = *state;
    union message m;

    add_function(f, 0);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        launch_of(&m, 0, 1);
        memcpy(&m.launch + 1, &ids[i], sizeof ids[i]);
        assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), 0);
        assert_int_equal(launches, 0);
    }
    assert_int_equal(f->worker.failed, CUDA_ERROR_NOT_SUPPORTED);
}

static void
a_function_that_is_not_there_fails_its_context(void **state)
{
    struct fixture *f = *state;
    union message m;

    launch_of(&m, 0, 0)->head.context = 99;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), 0);
    assert_int_equal(launches, 0);
    assert_int_equal(f->worker.failed, CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(f->worker.failed_context, 99);
    /* names that no client could make */
    launch_of(&m, 0, 0)->function = UINT64_MAX;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), 0);
    launch_of(&m, 0, 0)->function = 0;
    assert_int_equal(hed_do_launch(&f->channel, &m.launch.head), 0);
    assert_int_equal(launches, 0);
}

static void
libraries_that_are_not_there(void **state)
{
    struct fixture *f = *state;
    union message m;

    for (uint32_t op = HED_OPEN_MORE; op <= HED_OPEN_LINK + 1; op++) {
        if (op == HED_OPEN_LINK)
            continue; /* creates one */
        memset(&m, 0, sizeof m);
        m.open.head.size = sizeof m.open + 8;
        m.open.head.flags = op == HED_OPEN_CLOSE ? 0 : HED_MSG_WANTS_ANSWER;
        m.open.op = op;
        m.open.code = 3;
        assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
        m.open.code = UINT32_MAX;
        assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
    }
    memset(&m, 0, sizeof m);
    m.kernel.head.size = sizeof m.kernel;
    assert_int_equal(hed_do_kernel(&f->channel, &m.kernel.head), HED_EFORMAT);
    m.kernel.forget = 1; /* forgetting what was never created does no harm */
    assert_int_equal(hed_do_kernel(&f->channel, &m.kernel.head), 0);
}

static void
bodies_that_make_no_sense(void **state)
{
    struct fixture *f = *state;
    union message m;

    memset(&m, 0, sizeof m);
    m.open.head.size = sizeof m.open - 1;
    m.open.head.flags = HED_MSG_WANTS_ANSWER;
    assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
    m.open.head.size = sizeof m.open;
    m.open.device = 1; /* there is only device 0 */
    assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
    m.open.device = -1;
    assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
    m.open.device = 0;
    m.open.code = HED_CODES_MAX;
    assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);
    m.open.code = 0;
    m.open.head.flags = 0; /* no answer is wanted */
    assert_int_equal(hed_do_open(&f->channel, &m.open.head), HED_EFORMAT);

    memset(&m, 0, sizeof m);
    m.image.head.size = sizeof m.image; /* no bulk */
    assert_int_equal(hed_do_image(&f->channel, &m.image.head), HED_EFORMAT);
    m.image.head.bulk = HED_BULK_CHUNK + 1;
    assert_int_equal(hed_do_image(&f->channel, &m.image.head), HED_EFORMAT);
    m.image.head.bulk = 1;
    m.image.head.size = sizeof m.image - 1;
    assert_int_equal(hed_do_image(&f->channel, &m.image.head), HED_EFORMAT);
}

static void
a_name_is_given_once(void **state)
{
    struct fixture *f = *state;
    union message m;

    add_function(f, 0);
    assert_int_equal(hed_worker_function_add(&f->worker, NAME, (CUfunction)(uintptr_t)78, 0),
                     HED_EFORMAT);
    assert_int_equal(hed_worker_function_add(&f->worker, UINT64_MAX, (CUfunction)(uintptr_t)78, 0),
                     HED_EFORMAT);
    assert_int_equal(hed_worker_function_add(&f->worker, 0, (CUfunction)(uintptr_t)78, 0),
                     HED_EFORMAT);
    memset(&m, 0, sizeof m);
    m.kernel.head.size = sizeof m.kernel;
    m.kernel.function = NAME;
    m.kernel.forget = 1;
    assert_int_equal(hed_do_kernel(&f->channel, &m.kernel.head), 0);
    assert_null(hed_worker_function(f->worker.code, NAME));
    add_function(f, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_launch_goes_on, setup, teardown),
    cmocka_unit_test_setup_teardown(sizes_that_lie, setup, teardown),
    cmocka_unit_test_setup_teardown(attributes_with_handles_fail, setup, teardown),
    cmocka_unit_test_setup_teardown(a_function_that_is_not_there_fails_its_context, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(libraries_that_are_not_there, setup, teardown),
    cmocka_unit_test_setup_teardown(bodies_that_make_no_sense, setup, teardown),
    cmocka_unit_test_setup_teardown(a_name_is_given_once, setup, teardown),
};

HED_UNIT_MAIN(tests)
