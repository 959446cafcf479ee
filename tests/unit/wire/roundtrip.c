/* Tests of calls as bytes (docs/wire.md): every call of both APIs with made-up arguments, and some
 * calls with hand-written ones. Requests and replies are decoded and encoded again: the bytes must
 * be the same.
 */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/pack.h"
#include "core/call.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"
#include "harness/fill.h"

#define BYTES (256 << 10) /* enough for any call that is made up here */
#define ROUNDS 24         /* fillings of a call, so that each member of a union occurs */

/* The two APIs behind one set of functions. */
struct api {
    enum hed_api number;
    uint32_t calls;
    void (*fill_args)(struct fill *, uint32_t, void *);
    void (*fill_outs)(struct fill *, uint32_t, void *);
    void (*put)(struct hed_enc *, uint32_t, const void *, bool reply);
    void (*get)(struct hed_dec *, uint32_t, void *, bool reply);
    const struct fill_word *words;
    const size_t *word_count;
};

#define API(api_, API_)                                                              \
    static void api_##_fill_args(struct fill *f, uint32_t id, void *args)            \
    {                                                                                \
        fill_##api_##_args(f, (enum hed_##api_##_call)id, args);                     \
    }                                                                                \
    static void api_##_fill_outs(struct fill *f, uint32_t id, void *args)            \
    {                                                                                \
        fill_##api_##_outs(f, (enum hed_##api_##_call)id, args);                     \
    }                                                                                \
    static void api_##_put(struct hed_enc *e, uint32_t id, const void *args, bool r) \
    {                                                                                \
        if (r)                                                                       \
            hed_##api_##_put_reply(e, (enum hed_##api_##_call)id, args, 0);          \
        else                                                                         \
            hed_##api_##_put_request(e, (enum hed_##api_##_call)id, args);           \
    }                                                                                \
    static void api_##_get(struct hed_dec *d, uint32_t id, void *args, bool r)       \
    {                                                                                \
        if (r)                                                                       \
            hed_##api_##_get_reply(d, (enum hed_##api_##_call)id, args, 0);          \
        else                                                                         \
            hed_##api_##_get_request(d, (enum hed_##api_##_call)id, args);           \
    }                                                                                \
    static const struct api api_ = {                                                 \
        HED_API_##API_, HED_##API_##_CALLS, api_##_fill_args,    api_##_fill_outs,   \
        api_##_put,     api_##_get,         fill_##api_##_words, &fill_##api_##_word_count};

API(cuda, CUDA)
API(nvml, NVML)

union args {
    union hed_cuda_args cuda;
    union hed_nvml_args nvml;
};

static uint8_t first[BYTES];
static uint8_t second[BYTES];

static size_t
encode_args(const struct api *api, uint32_t id, const void *args, bool reply, uint8_t *bytes)
{
    struct hed_enc e = hed_enc_over(bytes, BYTES);

    api->put(&e, id, args, reply);
    if (e.err)
        fail_msg("%s: cannot be put", hed_call_info(api->number, id)->name);
    return (size_t)(e.at - bytes);
}

/* Decodes from memory of exactly n bytes, so that a sanitizer notices a byte too many. */
static int
decode_args(const struct api *api, uint32_t id, void *args, bool reply, const uint8_t *bytes,
            size_t n, struct hed_arena *arena)
{
    uint8_t *exact = malloc(n ? n : 1);
    struct hed_dec d;

    memcpy(exact, bytes, n);
    d = hed_dec_over(exact, n, arena);
    api->get(&d, id, args, reply);

    const int err = d.err ? d.err : d.at != d.end ? HED_EFORMAT : 0;

    free(exact);
    return err;
}

static void
compare(const struct api *api, uint32_t id, size_t n, size_t m, const char *what)
{
    if (n != m || memcmp(first, second, n) != 0)
        fail_msg("%s: the %s changes on its way", hed_call_info(api->number, id)->name, what);
}

static void
must(const struct api *api, uint32_t id, int err, const char *what)
{
    if (err)
        fail_msg("%s: %s: %s", hed_call_info(api->number, id)->name, what, hed_err_text(err));
}

/* A round trip with one filling. */
static void
round_trip(const struct api *api, uint32_t id, uint64_t seed, bool nulls)
{
    union args here = {0};
    union args there = {0};
    struct hed_arena arena;
    struct hed_arena far;
    struct fill f = {seed, &arena, nulls};

    hed_arena_init(&arena, 1 << 20);
    hed_arena_init(&far, 1 << 20);
    api->fill_args(&f, id, &here);

    size_t n = encode_args(api, id, &here, false, first);

    must(api, id, decode_args(api, id, &there, false, first, n, &far), "request");
    compare(api, id, n, encode_args(api, id, &there, false, second), "request");

    /* The other side makes the call; this side takes the outputs into its own memory. */
    api->fill_outs(&f, id, &there);
    n = encode_args(api, id, &there, true, first);
    must(api, id, decode_args(api, id, &here, true, first, n, &arena), "reply");
    compare(api, id, n, encode_args(api, id, &here, true, second), "reply");
    hed_arena_fini(&arena);
    hed_arena_fini(&far);
}

static void
every_call_comes_back(const struct api *api)
{
    for (uint32_t id = 1; id < api->calls; id++)
        for (uint64_t seed = 0; seed < ROUNDS; seed++)
            round_trip(api, id, seed * 1000 + id, seed % 2);
}

static void
every_cuda_call_comes_back(void **state)
{
    every_call_comes_back(&cuda);
}

static void
every_nvml_call_comes_back(void **state)
{
    every_call_comes_back(&nvml);
}

/* ---- nothing is left out --------------------------------------------------------------------- */

/* A changed argument changes the request: no two calls look alike. */
static void
every_word_travels(const struct api *api)
{
    for (size_t i = 0; i < *api->word_count; i++) {
        const struct fill_word *w = &api->words[i];
        union args args = {0};
        struct hed_arena arena;
        struct fill f = {i, &arena, false};
        size_t n;

        hed_arena_init(&arena, 1 << 20);
        api->fill_args(&f, w->call, &args);
        n = encode_args(api, w->call, &args, false, first);
        for (unsigned byte = 0; byte < w->size; byte++) {
            uint8_t *p = (uint8_t *)&args + w->offset + byte;

            *p ^= 0x40;
            assert_int_equal(encode_args(api, w->call, &args, false, second), n);
            if (memcmp(first, second, n) == 0)
                fail_msg("%s: byte %u does not travel", hed_call_info(api->number, w->call)->name,
                         w->offset + byte);
            *p ^= 0x40;
        }
        hed_arena_fini(&arena);
    }
}

static void
every_argument_travels(void **state)
{
    assert_true(*cuda.word_count > 1000 && *nvml.word_count > 200);
    every_word_travels(&cuda);
    every_word_travels(&nvml);
}

/* ---- what is cut ----------------------------------------------------------------------------- */

static void
cut_is_refused(const struct api *api, uint32_t id, bool reply)
{
    union args here = {0};
    struct hed_arena arena;
    struct hed_arena far;
    struct fill f = {id, &arena, false};

    hed_arena_init(&arena, 1 << 20);
    hed_arena_init(&far, 1 << 20);
    api->fill_args(&f, id, &here);

    const size_t n = encode_args(api, id, &here, reply, first);

    for (size_t size = 0; size < n; size++) {
        union args there = here; /* a reply needs memory for outputs */

        if (!reply)
            memset(&there, 0, sizeof there);
        if (decode_args(api, id, &there, reply, first, size, &far) == 0)
            fail_msg("%s: %zu of %zu bytes are enough", hed_call_info(api->number, id)->name, size,
                     n);
        hed_arena_reset(&far);
    }
    hed_arena_fini(&arena);
    hed_arena_fini(&far);
}

static void
every_truncation_is_refused(void **state)
{
    const struct api *const apis[] = {&cuda, &nvml};

    for (int i = 0; i < 2; i++) {
        for (uint32_t id = 1; id < apis[i]->calls; id++) {
            cut_is_refused(apis[i], id, false);
            cut_is_refused(apis[i], id, true);
        }
    }
}

/* An encoder without room reports that and writes nothing outside its buffer. */
static void
every_short_buffer_is_refused(void **state)
{
    for (uint32_t id = 1; id < HED_CUDA_CALLS; id++) {
        union args args = {0};
        struct hed_arena arena;
        struct fill f = {id, &arena, false};
        size_t n;

        hed_arena_init(&arena, 1 << 20);
        fill_cuda_args(&f, (enum hed_cuda_call)id, &args);
        n = encode_args(&cuda, id, &args, false, first);
        for (size_t size = n > 40 ? n - 40 : 0; size < n; size++) {
            uint8_t *p = malloc(size ? size : 1);
            struct hed_enc e = hed_enc_over(p, size);

            hed_cuda_put_request(&e, (enum hed_cuda_call)id, &args);
            assert_int_equal(e.err, HED_ELIMIT);
            assert_true(e.at <= p + size);
            assert_memory_equal(p, first, (size_t)(e.at - p));
            free(p);
        }
        hed_arena_fini(&arena);
    }
}

/* ---- garbage --------------------------------------------------------------------------------- */

/* Valid bytes with some replaced give an error, or something that can be encoded again. */
static void
damage(const struct api *api, uint32_t id, struct fill *f, struct hed_arena *far)
{
    union args here = {0};
    union args there;

    api->fill_args(f, id, &here);

    const size_t n = encode_args(api, id, &here, false, first);

    for (int i = 0; i < 20 && n; i++) {
        struct hed_dec d = hed_dec_over(second, n, far);

        memcpy(second, first, n);
        for (uint32_t k = 0; k <= fill_next(f) % 3; k++)
            second[fill_next(f) % n] = (uint8_t)(fill_next(f) % 3 ? fill_next(f) : 0xff);
        memset(&there, 0, sizeof there);
        api->get(&d, id, &there, false);
        if (d.err == 0) {
            struct hed_enc e = hed_enc_over(second, BYTES);

            api->put(&e, id, &there, false);
        }
        hed_arena_reset(far);
    }
}

static void
damaged_requests_do_no_harm(void **state)
{
    const struct api *const apis[] = {&cuda, &nvml};
    struct hed_arena arena;
    struct hed_arena far;

    hed_arena_init(&arena, 1 << 20);
    hed_arena_init(&far, 1 << 16);
    for (int i = 0; i < 2; i++) {
        for (uint32_t id = 1; id < apis[i]->calls; id++) {
            struct fill f = {id * 7, &arena, false};

            damage(apis[i], id, &f, &far);
            hed_arena_reset(&arena);
        }
    }
    hed_arena_fini(&arena);
    hed_arena_fini(&far);
}

static void
numbers_that_are_no_call_are_refused(void **state)
{
    const uint32_t bad[] = {0, HED_CUDA_CALLS, HED_CUDA_CALLS + 1, 0x7fffffff};
    uint64_t args[64] = {0};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hed_dec d = hed_dec_over(first, 100, NULL);
        struct hed_enc e = hed_enc_over(second, 100);

        cuda.get(&d, bad[i], args, i % 2);
        assert_int_equal(d.err, HED_EFORMAT);
        cuda.put(&e, bad[i], args, i % 2);
        assert_int_not_equal(e.err, 0);
        assert_ptr_equal(e.at, second);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_cuda_call_comes_back),
    cmocka_unit_test(every_nvml_call_comes_back),
    cmocka_unit_test(every_argument_travels),
    cmocka_unit_test(every_truncation_is_refused),
    cmocka_unit_test(every_short_buffer_is_refused),
    cmocka_unit_test(damaged_requests_do_no_harm),
    cmocka_unit_test(numbers_that_are_no_call_are_refused),
};

HED_UNIT_MAIN(tests)
