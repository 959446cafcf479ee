/* A worker whose client is hostile: calls that no client sends, objects that were never created or
 * are already freed, messages that come too early. The worker runs on the null backend; its channel
 * is memory (tests/fuzz/worker_play.h). */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pack.h"
#include "fuzz/worker_play.h"
#include "gen/cuda_calls.h"
#include "gen/cuda_wire.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/memory.h"

static _Alignas(16) uint8_t bytes[HED_MSG_MAX];
static const uint8_t no_bulk[1];

/* Sends a call with an answer. Returns what the handler returns. */
static int
send_call(struct hed_worker_channel *ch, enum hed_cuda_call id, const void *args, uint64_t name,
          uint32_t flags)
{
    struct hed_msg *m = (struct hed_msg *)bytes;
    struct hed_call_body *b = (struct hed_call_body *)(m + 1);
    struct hed_enc e = hed_enc_over(b + 1, sizeof bytes / 2);
    size_t at;

    memset(bytes, 0, sizeof bytes);
    hed_cuda_put_request(&e, id, args);
    assert_int_equal(e.err, 0);
    b->request = (uint32_t)(e.at - (uint8_t *)(b + 1));
    b->names = name ? 1 : 0;
    at = (sizeof *m + sizeof *b + b->request + 7) / 8 * 8;
    memcpy(bytes + at, &name, sizeof name);
    *m = (struct hed_msg){.size = (uint32_t)(at + b->names * sizeof name),
                          .kind = HED_MSG_CALL,
                          .call = (uint16_t)id,
                          .flags = HED_MSG_WANTS_ANSWER | flags,
                          .ticket = 1,
                          .context = play_name(1)};
    return play_message(ch, m);
}

/* The call's answer, or CUDA_ERROR_UNKNOWN if the session ended. */
static int
result_of_call(struct hed_worker_channel *ch, enum hed_cuda_call id, const void *args,
               uint64_t name)
{
    return send_call(ch, id, args, name, 0) == 0 ? play_result : CUDA_ERROR_UNKNOWN;
}

static void
calls_that_nobody_sends_are_not_made(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    CUdeviceptr p = 0;
    CUmemoryPool pool;
    CUgraph graph;
    CUstream stream = (CUstream)(uintptr_t)play_name(2);

    (void)state;
    assert_int_equal(result_of_call(ch, HED_cuMemAlloc_v2,
                                    &(struct hed_cuMemAlloc_v2){.dptr = &p, .bytesize = 16}, 0),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(
        result_of_call(ch, HED_cuMemsetD8_v2,
                       &(struct hed_cuMemsetD8_v2){.dstDevice = 4096, .uc = 1, .N = 16}, 0),
        CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(
        result_of_call(ch, HED_cuStreamWriteValue64_v2,
                       &(struct hed_cuStreamWriteValue64_v2){.stream = stream, .addr = 4096}, 0),
        CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(result_of_call(ch, HED_cuMemPoolCreate,
                                    &(struct hed_cuMemPoolCreate){
                                        .pool = &pool, .poolProps = &(CUmemPoolProps_v1){0}},
                                    play_name(11) + 1),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(result_of_call(ch, HED_cuGraphCreate,
                                    &(struct hed_cuGraphCreate){.phGraph = &graph},
                                    play_name(8) + 1),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(result_of_call(ch, HED_cuCtxSynchronize, &(struct hed_cuCtxSynchronize){0}, 0),
                     CUDA_SUCCESS);
}

static void
what_was_freed_is_not_freed_again(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    CUevent event = (CUevent)(uintptr_t)(play_name(3) + 5);
    const struct hed_cuEventCreate create = {.phEvent = &event};
    const struct hed_cuEventDestroy_v2 destroy = {.hEvent = event};

    (void)state;
    assert_int_equal(result_of_call(ch, HED_cuEventCreate, &create, play_name(3) + 5),
                     CUDA_SUCCESS);
    /* Also if it claims to block, so that the next ticket proceeds before the call is made. */
    assert_int_equal(send_call(ch, HED_cuEventDestroy_v2, &destroy, 0, HED_MSG_BLOCKS), 0);
    assert_int_equal(play_result, CUDA_SUCCESS);
    assert_int_equal(result_of_call(ch, HED_cuEventDestroy_v2, &destroy, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(
        result_of_call(ch, HED_cuEventQuery, &(struct hed_cuEventQuery){.hEvent = event}, 0),
        CUDA_ERROR_INVALID_HANDLE);
}

/* An object that could not be created in a failed context has no name. Calls with it answer with
 * the failure. */
static void
a_failed_context_answers_its_failure(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    const struct hed_cuEventQuery query = {.hEvent = (CUevent)(uintptr_t)(play_name(3) + 5)};

    (void)state;
    hed_worker_failed(ch->worker, play_name(1), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(result_of_call(ch, HED_cuEventQuery, &query, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    ch->worker->failed_context = play_name(1) + 1;
    assert_int_equal(result_of_call(ch, HED_cuEventQuery, &query, 0), CUDA_ERROR_INVALID_HANDLE);
}

/* A client could create objects without a name for ever, and nobody would count them. */
static void
a_new_object_needs_a_name_of_its_own(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    CUevent event = NULL;
    const struct hed_cuEventCreate create = {.phEvent = &event};

    (void)state;
    assert_int_equal(send_call(ch, HED_cuEventCreate, &create, 0, 0), HED_EFORMAT);
    assert_int_equal(send_call(ch, HED_cuEventCreate, &create, play_name(3), 0), HED_EFORMAT);
    assert_int_equal(send_call(ch, HED_cuEventCreate, &create, play_name(2) + 9, 0), HED_EFORMAT);
}

static void
textures_are_those_that_were_made(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    CUtexObject texture = 0;
    const CUDA_RESOURCE_DESC_v1 res = {
        .resType = CU_RESOURCE_TYPE_ARRAY,
        .res.array.hArray = (CUarray)(uintptr_t)play_name(13),
    };
    const CUDA_TEXTURE_DESC_v1 tex = {0};
    const struct hed_cuTexObjectCreate create = {
        .pTexObject = &texture, .pResDesc = &res, .pTexDesc = &tex};
    struct hed_cuTexObjectDestroy destroy = {.texObject = 0x1234567890};

    (void)state;
    assert_int_equal(result_of_call(ch, HED_cuTexObjectDestroy, &destroy, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(result_of_call(ch, HED_cuTexObjectCreate, &create, 0), CUDA_SUCCESS);

    struct hed_values *v = ch->worker->values;

    assert_int_equal(hed_value_add(v, false, 77), 0);
    assert_false(hed_value_has(v, true, 77));
    destroy.texObject = 77;
    assert_int_equal(result_of_call(ch, HED_cuSurfObjectDestroy,
                                    &(struct hed_cuSurfObjectDestroy){.surfObject = 77}, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(result_of_call(ch, HED_cuTexObjectDestroy, &destroy, 0), CUDA_SUCCESS);
    assert_int_equal(result_of_call(ch, HED_cuTexObjectDestroy, &destroy, 0),
                     CUDA_ERROR_INVALID_HANDLE);
}

/* What the guard thinks of memory that is not the client's. A worker without memory does not check
 * it. */
static void
addresses_are_the_clients_own(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    struct hed_worker *w = ch->worker;
    const struct hed_mapping mapped = {
        .at = 0x200000, .size = 0x200000, .kind = HED_MAPPING_BLOCK, .device = 0};
    CUDA_RESOURCE_DESC_v1 res = {.resType = CU_RESOURCE_TYPE_LINEAR,
                                 .res.linear = {.devPtr = 0x200000, .sizeInBytes = 0x200001}};
    struct hed_cuTexObjectCreate texture = {.pResDesc = &res};
    struct hed_cuMemsetD2D8Async fill = {
        .dstDevice = 0x200000, .dstPitch = 0, .Width = 64, .Height = 1u << 30};
    CUstreamBatchMemOpParams_v1 op = {.operation = (CUstreamBatchMemOpType)77};
    const struct hed_cuStreamBatchMemOp_v2 values = {.count = 1, .paramArray = &op};
    struct hed_mapping out;

    (void)state;
    assert_int_equal(hed_mapping_enter(w->memory, &mapped), 0);
    w->no_memory = false;
    assert_int_equal(hed_memory_guard(w, HED_cuTexObjectCreate, &texture),
                     CUDA_ERROR_INVALID_VALUE);
    res.res.linear.sizeInBytes = 0x200000;
    assert_int_equal(hed_memory_guard(w, HED_cuTexObjectCreate, &texture), CUDA_SUCCESS);
    res = (CUDA_RESOURCE_DESC_v1){
        .resType = CU_RESOURCE_TYPE_PITCH2D,
        .res.pitch2D = {.devPtr = 0x200000, .height = 3, .pitchInBytes = UINT64_C(1) << 63}};
    assert_int_equal(hed_memory_guard(w, HED_cuTexObjectCreate, &texture),
                     CUDA_ERROR_INVALID_VALUE);
    /* A pitch of 0 may be taken for the width, which would be 64 GiB. */
    assert_int_equal(hed_memory_guard(w, HED_cuMemsetD2D8Async, &fill), CUDA_ERROR_INVALID_VALUE);
    fill.dstPitch = 64;
    fill.Height = 32768;
    assert_int_equal(hed_memory_guard(w, HED_cuMemsetD2D8Async, &fill), CUDA_SUCCESS);
    assert_int_equal(hed_memory_guard(w, HED_cuStreamBatchMemOp_v2, &values),
                     CUDA_ERROR_INVALID_VALUE);
    w->no_memory = true;
    assert_int_equal(hed_mapping_leave(w->memory, mapped.at, mapped.size, HED_MAPPING_BLOCK, &out),
                     0);
}

static void
nothing_comes_before_the_arena(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    struct hed_worker *w = ch->worker;
    struct hed_worker_memory *memory = w->memory;

    (void)state;
    w->memory = NULL;
    assert_int_equal(send_call(ch, HED_cuCtxSynchronize, &(struct hed_cuCtxSynchronize){0}, 0, 0),
                     HED_EFORMAT);
    w->memory = memory;
}

/* Functions of a closed library, or of a context that is gone, cannot be launched. */
static void
functions_go_with_what_they_are_of(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    struct hed_worker *w = ch->worker;
    const uint64_t one = play_name(6) + 20, two = play_name(6) + 21;
    uint64_t real;
    int library;

    (void)state;
    assert_int_equal(hed_worker_function_add(w, one, (CUfunction)(uintptr_t)0x10, 0), 0);
    assert_int_equal(hed_worker_function_add(w, two, (CUfunction)(uintptr_t)0x20, 0), 0);
    hed_worker_function(w->code, one)->library = &library;
    hed_worker_function(w->code, two)->context = 55;
    hed_worker_functions_forget(w, 0, &library);
    assert_null(hed_worker_function(w->code, one));
    assert_int_equal(hed_name_real(w->names, one, &real), HED_ENOTFOUND);
    assert_non_null(hed_worker_function(w->code, two));
    hed_worker_functions_forget(w, 55, NULL);
    assert_null(hed_worker_function(w->code, two));
}

static void
names_that_wait_for_a_place_are_few(void **state)
{
    struct hed_names *n = hed_names_create();
    int err = 0;
    uint64_t i;

    (void)state;
    for (i = 1; i < 1u << 16 && !err; i++)
        err = hed_name_bind(n, UINT64_C(3) << 56 | i << 32 | 9, i);
    assert_int_equal(err, HED_ELIMIT);
    assert_true(i > 1000);
    hed_names_free(n);
}

/* Names of older clients have their index in the low half, those of newer ones 16 times that. */
static void
names_of_both_forms_have_places(void **state)
{
    struct hed_names *n = hed_names_create();
    uint64_t real = 0;

    (void)state;
    for (uint64_t i = 1; i < 10000; i++)
        assert_int_equal(hed_name_bind(n, UINT64_C(3) << 56 | i, i), 0);
    for (uint64_t i = 10000; i < 20000; i++)
        assert_int_equal(hed_name_bind(n, UINT64_C(3) << 56 | i * 16, i), 0);
    for (uint64_t i = 1; i < 20000; i++) {
        assert_int_equal(hed_name_real(n, UINT64_C(3) << 56 | (i < 10000 ? i : i * 16), &real), 0);
        assert_int_equal(real, i);
    }
    assert_int_equal(hed_name_bind(n, UINT64_C(3) << 56 | ((16ull << 22) - 16), 1), 0);
    assert_int_equal(hed_name_bind(n, UINT64_C(3) << 56 | 0xfffffff0, 1), HED_ELIMIT);
    assert_int_equal(hed_name_bind(n, UINT64_C(3) << 56 | 0xffffffff, 1), HED_ELIMIT);
    hed_names_free(n);
}

static void
other_processes_are_not_told_of(void **state)
{
    struct hed_worker_channel *ch = play_begin(no_bulk, 0);
    struct {
        struct hed_msg head;
        struct hed_call_body b;
    } m = {.head = {.size = sizeof m,
                    .kind = HED_MSG_NVML,
                    .call = HED_nvmlDeviceGetComputeRunningProcesses_v3,
                    .flags = HED_MSG_WANTS_ANSWER,
                    .ticket = 1}};

    (void)state;
    memcpy(bytes, &m, sizeof m);
    assert_int_equal(play_message(ch, (struct hed_msg *)bytes), 0);
    assert_int_equal(play_result, NVML_ERROR_NOT_SUPPORTED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(calls_that_nobody_sends_are_not_made),
    cmocka_unit_test(what_was_freed_is_not_freed_again),
    cmocka_unit_test(a_failed_context_answers_its_failure),
    cmocka_unit_test(a_new_object_needs_a_name_of_its_own),
    cmocka_unit_test(textures_are_those_that_were_made),
    cmocka_unit_test(addresses_are_the_clients_own),
    cmocka_unit_test(nothing_comes_before_the_arena),
    cmocka_unit_test(functions_go_with_what_they_are_of),
    cmocka_unit_test(names_that_wait_for_a_place_are_few),
    cmocka_unit_test(names_of_both_forms_have_places),
    cmocka_unit_test(other_processes_are_not_told_of),
};

HED_UNIT_MAIN(tests)
