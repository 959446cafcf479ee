/* Tests of the context that a spare worker has before its client: what becomes of it. */
#include "harness/unit.h"
#include "remote/server/worker/worker.h"

static struct {
    int refs; /* of the primary context of device 0 */
    int released;
} driver;

static CUresult
count_release(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRelease_v2 *a)
{
    assert_int_equal(a->dev, 0);
    driver.refs--;
    driver.released++;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops driver_ops = {.cuDevicePrimaryCtxRelease_v2 = count_release};
static struct hed_layer driver_layer = {.cuda = &driver_ops};

static struct hed_worker
warm_worker(void)
{
    driver.refs = 1;
    driver.released = 0;
    return (struct hed_worker){.top = &driver_layer, .warm = true};
}

/* The call itself comes between the two. */
static void
retain(struct hed_worker *w, CUdevice device)
{
    const struct hed_cuDevicePrimaryCtxRetain a = {.dev = device};
    const struct hed_msg m = {.call = HED_cuDevicePrimaryCtxRetain};

    hed_warm_before(w, &m, true, &a);
    driver.refs += device == 0;
    hed_warm_after(w, &m);
}

static void
spare_context_becomes_the_clients(void **state)
{
    struct hed_worker w = warm_worker();

    retain(&w, 0);
    assert_int_equal(driver.refs, 1); /* as in a new worker, and never 0 in between */
    assert_int_equal(driver.released, 1);
    assert_false(w.warm);
    retain(&w, 0);
    assert_int_equal(driver.refs, 2);
}

static void
spare_context_is_given_up_before_another(void **state)
{
    static const enum hed_cuda_call others[] = {HED_cuCtxCreate_v2,
                                                HED_cuDevicePrimaryCtxSetFlags_v2};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct hed_worker w = warm_worker();
        const struct hed_msg m = {.call = others[i]};
        union {
            struct hed_cuCtxCreate_v2 create;
            struct hed_cuDevicePrimaryCtxSetFlags_v2 flags;
        } a = {{0}};

        hed_warm_before(&w, &m, false, &a);
        assert_int_equal(driver.refs, 0);
        hed_warm_after(&w, &m);
        assert_int_equal(driver.released, 1);
    }

    struct hed_worker w = warm_worker();

    retain(&w, 1);
    assert_int_equal(driver.refs, 0);
}

static void
spare_context_stays_while_there_is_none(void **state)
{
    struct hed_worker w = warm_worker();
    const struct hed_msg m = {.call = HED_cuMemGetInfo_v2};
    struct hed_cuMemGetInfo_v2 a = {0};

    hed_warm_before(&w, &m, false, &a);
    hed_warm_after(&w, &m);
    assert_int_equal(driver.refs, 1);
    assert_true(w.warm);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(spare_context_becomes_the_clients),
    cmocka_unit_test(spare_context_is_given_up_before_another),
    cmocka_unit_test(spare_context_stays_while_there_is_none),
};

HED_UNIT_MAIN(tests)
