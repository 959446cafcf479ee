/* Tests of base/io: reading and writing whole ranges of bytes. */
#include "base/io.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/unit.h"

static void
written_bytes_are_read_back(void **state)
{
    char out[6] = "";
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(hed_write_all(fds[1], "abc", 3), 0);
    assert_int_equal(hed_write_all(fds[1], "de", 2), 0);
    assert_int_equal(hed_read_all(fds[0], out, 5), 0);
    assert_string_equal(out, "abcde");
    assert_int_equal(hed_write_all(fds[1], "xy", 2), 0);
    close(fds[1]);
    assert_int_equal(hed_read_all(fds[0], out, 0), 0);
    assert_int_equal(hed_read_all(fds[0], out, 3), HED_ETRUNC);
    close(fds[0]);
}

static void
errors_are_reported(void **state)
{
    char out[4];

    assert_true(hed_read_all(-1, out, 4) < 0);
    assert_true(hed_write_all(-1, out, 4) < 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(written_bytes_are_read_back),
    cmocka_unit_test(errors_are_reported),
};

HED_UNIT_MAIN(tests)
