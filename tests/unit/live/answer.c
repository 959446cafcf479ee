/* Reading what a server answers about itself: its numbers, and whatever else may come. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "see/live/parts.h"

static const char good[] =
    "{\"version\":\"0.3.0\",\"pid\":71,\"uptime_seconds\":3.250,\"addresses\":[\"shm:/a\"],"
    "\"gpu\":\"cpu:a100\",\"limits\":{\"clients\":512,\"memory\":4096},\"devices\":[],"
    "\"refused\":2,\"clients_ever\":9,\"stopping\":false,\"clients\":[\n"
    "{\"worker\":5,\"worker_uid\":0,\"pid\":77,\"uid\":1000,\"program\":\"a\\u001b[31mb\","
    "\"peer\":\"p\",\"certificate\":\"\",\"idle_seconds\":0.500,\"parked\":false,\"launches\":12,"
    "\"leased_total_bytes\":99,\"failure\":0},\n"
    "{\"worker\":6,\"pid\":null,\"uid\":null,\"program\":\"x\",\"peer\":\"10.0.0.7\","
    "\"certificate\":\"bob\",\"parked\":true,\"new_key\":{\"a\":[1]}}]}\n";

/* A number of 33 bits would be root's if its upper bit were cut off. */
static void
numbers_that_nobody_has_are_nobodys(void **state)
{
    static const char text[] = "{\"pid\":71,\"clients\":[{\"uid\":4294967296,\"pid\":4294967297}]}";
    static const char server[] = "{\"pid\":4294967367,\"clients\":[]}";
    struct hed_live_answer a = {0}, b = {0};

    assert_true(hed_live_read_answer(text, strlen(text), &a));
    assert_int_equal(a.count, 1);
    assert_false(a.clients[0].has_user);
    assert_int_equal(a.clients[0].pid, 0);
    assert_false(hed_live_read_answer(server, strlen(server), &b));
    free(a.clients);
}

static void
an_answer_is_read(void **state)
{
    struct hed_live_answer a = {0};

    assert_true(hed_live_read_answer(good, strlen(good), &a));
    assert_int_equal(a.server.pid, 71);
    assert_string_equal(a.server.gpu, "cpu:a100");
    assert_int_equal(a.limit, 4096);
    assert_int_equal(a.server.refused, 2);
    assert_int_equal(a.count, 2);
    assert_true(a.clients[0].has_user && a.clients[0].user == 1000 && a.clients[0].pid == 77);
    assert_int_equal(a.clients[0].launches, 12);
    assert_int_equal(a.clients[0].leased, 99);
    assert_false(a.clients[1].has_user);
    assert_int_equal(a.clients[1].pid, 0);
    assert_string_equal(a.clients[1].certificate, "bob");
    assert_true(a.clients[1].parked);
    free(a.clients);
}

/* Every beginning of the text but all of it. */
static void
a_part_of_an_answer_is_none(void **state)
{
    for (size_t n = 0; n + 2 < strlen(good); n++) {
        struct hed_live_answer a = {0};

        assert_false(hed_live_read_answer(good, n, &a));
        free(a.clients);
    }
}

static void
numbers_that_cannot_be_are_none(void **state)
{
    static const char text[] = "{\"pid\":1,\"clients\":[{\"worker\":1,\"pid\":99999999999},"
                               "{\"worker\":-3,\"pid\":\"12\",\"program\":17}]}";
    struct hed_live_answer a = {0};

    assert_true(hed_live_read_answer(text, strlen(text), &a));
    assert_int_equal(a.count, 2);
    assert_int_equal(a.clients[0].pid, 0);
    assert_int_equal(a.clients[1].pid, 0);
    assert_string_equal(a.clients[1].program, "");
    free(a.clients);
}

/* JSON has no word for what is too large for a real number. */
static void
a_time_without_end_is_none(void **state)
{
    struct hed_live_answer a = {0};
    struct hed_live_view v = {.server_count = 1};
    struct hed_buf b;
    char text[512];

    (void)snprintf(text, sizeof text, "{\"pid\":1,\"uptime_seconds\":%0400d,\"clients\":[]}", 0);
    memset(strchr(text, '0'), '9', 400);
    assert_true(hed_live_read_answer(text, strlen(text), &a));
    v.servers[0] = a.server;
    hed_buf_init(&b, 1 << 16);
    hed_live_json(&v, &b);
    assert_non_null(strstr(hed_buf_cstr(&b), "\"uptime_seconds\":null"));
    hed_buf_fini(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_is_read),
    cmocka_unit_test(numbers_that_nobody_has_are_nobodys),
    cmocka_unit_test(a_part_of_an_answer_is_none),
    cmocka_unit_test(numbers_that_cannot_be_are_none),
    cmocka_unit_test(a_time_without_end_is_none),
};

HED_UNIT_MAIN(tests)
