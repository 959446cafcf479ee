/* Tests of the trace layer: which questions are counted, and which are timed. */
#include "harness/unit.h"

#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/session.h"
#include "layers/layers.h"
#include "see/trace/format.h"
#include "see/trace/read.h"
#include "see/trace/writer.h"

static struct hed_config config; /* large */
static struct hed_layer *top;
static struct hed_trace_writer *writer; /* its state */

/* ---- a layer below that misbehaves ----------------------------------------------------------- */

static CUresult answer;   /* of cuCtxGetDevice */
static bool makes_a_call; /* in the middle of it */

static CUresult
ask_flags(void)
{
    unsigned flags;

    return top->cuda->cuCtxGetFlags(top, &(struct hed_cuCtxGetFlags){&flags});
}

static CUresult
odd_cuCtxGetDevice(struct hed_layer *self, struct hed_cuCtxGetDevice *a)
{
    (void)self;
    if (makes_a_call) {
        assert_int_equal(top->cuda->cuInit(top, &(struct hed_cuInit){0}), CUDA_SUCCESS);
        ask_flags();
    }
    *a->device = 0;
    return answer;
}

static CUresult
odd_cuCtxGetFlags(struct hed_layer *self, struct hed_cuCtxGetFlags *a)
{
    (void)self;
    *a->flags = 0;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops odd_ops = {
    .cuCtxGetDevice = odd_cuCtxGetDevice,
    .cuCtxGetFlags = odd_cuCtxGetFlags,
};

static const struct hed_layer_type odd = {.name = "odd", .cuda = &odd_ops};

/* ---- the chain and its trace ----------------------------------------------------------------- */

static void
open_chain(const char *name, const char *repeats)
{
    static struct hed_layer_room bottom;
    static struct hed_layer_room middle;
    struct hed_why why = {""};
    char path[1024];

    answer = CUDA_SUCCESS;
    makes_a_call = false;
    snprintf(path, sizeof path, "%s/%s.hed", getenv("HED_SCRATCH"), name);
    hed_config_init(&config);
    assert_int_equal(hed_config_set(&config, "trace", path, NULL), 0);
    assert_int_equal(hed_config_set(&config, "trace_repeats", repeats, NULL), 0);
    hed_layer_place(&bottom, &hed_null_backend, NULL);
    hed_layer_place(&middle, &odd, &bottom.layer);
    if (hed_layer_create(&hed_trace_layer, &middle.layer, &config, &top, &why) != 0)
        fail_msg("%s", why.text);
    writer = top->state;
    hed_lock(&writer->file_lock); /* no record is written, however long the test takes */
}

static CUresult
ask_device(void)
{
    CUdevice device;

    return top->cuda->cuCtxGetDevice(top, &(struct hed_cuCtxGetDevice){&device});
}

static void
ask_attribute(CUdevice_attribute attribute)
{
    int value;
    struct hed_cuDeviceGetAttribute a = {&value, attribute, 0};

    assert_int_equal(top->cuda->cuDeviceGetAttribute(top, &a), CUDA_SUCCESS);
}

static void
change_something(void)
{
    assert_int_equal(top->cuda->cuInit(top, &(struct hed_cuInit){0}), CUDA_SUCCESS);
}

struct row {
    uint32_t count;
    uint16_t call;
    bool untimed;
};

/* Compares the trace's records with `expected`, which ends with a count of 0, and ends the chain.
 */
static void
check_trace(const struct row *expected)
{
    struct hed_trace_record r;
    struct hed_trace *t;
    struct hed_why why = {""};

    hed_unlock(&writer->file_lock);
    hed_trace_writer_close(writer);
    if (hed_trace_open(hed_trace_writer_path(writer), &t, &why) != 0)
        fail_msg("%s", why.text);

    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    for (; expected->count; expected++) {
        assert_true(hed_trace_next(&c, &r));
        assert_int_equal(r.call, expected->call);
        assert_int_equal(r.calls, expected->count);
        assert_int_equal((r.flags & HED_TRACE_UNTIMED) != 0, expected->untimed);
    }
    assert_false(hed_trace_next(&c, &r));
    hed_trace_close(t);
    hed_layer_free(top);
    hed_trace_writer_free(writer); /* the layer leaves it to the end of the process */
}

static void
equal_questions_are_counted(void **state)
{
    open_chain("equal_questions", "count");
    for (int i = 0; i < 5; i++) {
        ask_device();
        ask_flags();
    }
    change_something();
    ask_device();
    check_trace((struct row[]){{5, HED_cuCtxGetDevice, false},
                               {5, HED_cuCtxGetFlags, false},
                               {1, HED_cuInit, false},
                               {1, HED_cuCtxGetDevice, false},
                               {0}});
}

static void
all_questions_have_records_if_asked_for(void **state)
{
    open_chain("all_questions", "all");
    ask_device();
    ask_device();
    check_trace(
        (struct row[]){{1, HED_cuCtxGetDevice, false}, {1, HED_cuCtxGetDevice, false}, {0}});
}

static void
other_questions_are_timed(void **state)
{
    open_chain("other_questions", "count");
    ask_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    ask_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    ask_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    check_trace((struct row[]){
        {1, HED_cuDeviceGetAttribute, false}, {2, HED_cuDeviceGetAttribute, false}, {0}});
}

static void
a_question_that_fails_unexpectedly_is_not_timed(void **state)
{
    open_chain("fails_unexpectedly", "count");
    ask_device();
    answer = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(ask_device(), CUDA_ERROR_LAUNCH_FAILED);
    check_trace((struct row[]){{1, HED_cuCtxGetDevice, false}, {1, HED_cuCtxGetDevice, true}, {0}});
}

/* cuCtxGetFlags has the same answer as cuCtxGetDevice, and takes the place of its open record. */
static void
calls_in_the_middle_of_a_question_have_counts_of_their_own(void **state)
{
    open_chain("middle_of_a_question", "count");
    ask_device();
    makes_a_call = true;
    ask_device();
    check_trace((struct row[]){{1, HED_cuCtxGetDevice, false},
                               {1, HED_cuInit, false},
                               {1, HED_cuCtxGetFlags, false},
                               {1, HED_cuCtxGetDevice, true},
                               {0}});
}

static void
changes_that_are_not_recorded_end_counting(void **state)
{
    open_chain("not_recorded", "count");
    ask_device();
    atomic_store(&hed_session.recording, false);
    change_something();
    atomic_store(&hed_session.recording, true);
    ask_device();
    check_trace(
        (struct row[]){{1, HED_cuCtxGetDevice, false}, {1, HED_cuCtxGetDevice, false}, {0}});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_questions_are_counted),
    cmocka_unit_test(all_questions_have_records_if_asked_for),
    cmocka_unit_test(other_questions_are_timed),
    cmocka_unit_test(a_question_that_fails_unexpectedly_is_not_timed),
    cmocka_unit_test(calls_in_the_middle_of_a_question_have_counts_of_their_own),
    cmocka_unit_test(changes_that_are_not_recorded_end_counting),
};

HED_UNIT_MAIN(tests)
