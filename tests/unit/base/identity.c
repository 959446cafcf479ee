/* A file's identity follows from its content, not from when it was installed. */
#include "base/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/unit.h"

static const char *
path_of(const char *name)
{
    static char path[1024];
    const char *scratch = getenv("HED_SCRATCH");

    snprintf(path, sizeof path, "%s/%s", scratch ? scratch : "/tmp", name);
    return path;
}

/* Copies this program, cut to `most` bytes; returns the copy's identity. */
static uint64_t
identity_of_copy(size_t most)
{
    static char bytes[1 << 16];
    FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(path_of("copy"), "wb");
    size_t n;

    assert_non_null(from);
    assert_non_null(to);
    while (most && (n = fread(bytes, 1, most < sizeof bytes ? most : sizeof bytes, from)) > 0) {
        assert_int_equal(fwrite(bytes, 1, n, to), n);
        most -= n;
    }
    fclose(from);
    fclose(to);
    return hed_file_identity(path_of("copy"));
}

static void
a_copy_has_the_same_identity(void **state)
{
    const uint64_t own = hed_file_identity("/proc/self/exe");

    assert_int_not_equal(own, 0);
    assert_true(identity_of_copy(SIZE_MAX) == own);
}

/* Without a build id, all bytes count. */
static void
files_that_differ_have_other_identities(void **state)
{
    const uint64_t one = identity_of_copy(100), two = identity_of_copy(101);

    assert_int_not_equal(one, 0);
    assert_true(one != two);
    assert_true(identity_of_copy(100) == one);
    assert_int_equal(hed_file_identity("/nowhere"), 0);
}

/* Whatever the headers say, nothing outside of the file is read. */
static void
damaged_headers_are_harmless(void **state)
{
    assert_int_not_equal(identity_of_copy(4096), 0);
    for (long at = 0; at < 1024; at++) {
        FILE *f = fopen(path_of("copy"), "r+b");

        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        assert_int_equal(fputc(0xff, f), 0xff);
        fclose(f);
        assert_int_not_equal(hed_file_identity(path_of("copy")), 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_copy_has_the_same_identity),
    cmocka_unit_test(files_that_differ_have_other_identities),
    cmocka_unit_test(damaged_headers_are_harmless),
};

HED_UNIT_MAIN(tests)
