/* Only memory that cannot shrink is sealed. */
#include "harness/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sealed.h"

static int
make_file(unsigned flags, int seals)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    if (fd >= 0)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void
memory_grows_and_never_shrinks(void **state)
{
    const int fd = make_file(0, F_SEAL_SHRINK);

    (void)state;
    assert_true(hed_fd_is_sealed(fd, 0));
    assert_false(hed_fd_is_sealed(fd, 1));
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_true(hed_fd_is_sealed(fd, 1000));
    assert_true(hed_fd_has(fd, 1000));
    assert_false(hed_fd_is_sealed(fd, 1001));
    assert_false(hed_fd_has(fd, 1001));
    assert_int_not_equal(ftruncate(fd, 999), 0);
    (void)close(fd);
}

static void
memory_that_could_shrink_is_not_sealed(void **state)
{
    const int fd = make_file(0, F_SEAL_GROW);

    (void)state;
    assert_false(hed_fd_is_sealed(fd, 0));
    (void)close(fd);
}

/* Touching a page may kill, because there may be no large page. */
static void
large_pages_are_not_sealed(void **state)
{
    const int fd = make_file(MFD_HUGETLB, F_SEAL_SHRINK);

    (void)state;
    if (fd < 0)
        skip();
    assert_false(hed_fd_is_sealed(fd, 0));
    (void)close(fd);
}

static void
other_files_are_not_sealed(void **state)
{
    char name[] = "/tmp/sealed.XXXXXX";
    const int file = mkstemp(name);
    const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(file >= 0 && zero >= 0);
    assert_int_equal(unlink(name), 0);
    assert_false(hed_fd_is_sealed(file, 0));
    assert_false(hed_fd_is_sealed(zero, 0));
    assert_false(hed_fd_has(zero, 0));
    assert_false(hed_fd_is_sealed(ends[0], 0));
    assert_false(hed_fd_is_sealed(-1, 0));
    (void)close(file);
    (void)close(zero);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void
small_files_have_their_bytes_for_good(void **state)
{
    char read[6] = "";
    int fd = -1;

    (void)state;
    assert_int_equal(hed_fd_write_sealed("small", "bytes", 6, &fd), 0);
    assert_int_equal(hed_fd_read_whole(fd, read, 6), 0);
    assert_string_equal(read, "bytes");
    assert_int_equal(hed_fd_read_whole(fd, read, 5), HED_EINVAL);
    assert_true(pwrite(fd, "B", 1, 0) < 0);
    assert_true(ftruncate(fd, 3) < 0);
    assert_true(hed_fd_is_final(fd, 6));
    assert_false(hed_fd_is_final(fd, 5));
    close(fd);
}

static void
memory_that_can_be_written_is_not_final(void **state)
{
    const int fd = make_file(0, F_SEAL_SHRINK | F_SEAL_GROW);
    uint64_t size, taken;

    (void)state;
    assert_true(hed_fd_is_fixed(fd, &size, &taken));
    assert_false(hed_fd_is_final(fd, size));
    (void)close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_grows_and_never_shrinks),
    cmocka_unit_test(memory_that_could_shrink_is_not_sealed),
    cmocka_unit_test(large_pages_are_not_sealed),
    cmocka_unit_test(other_files_are_not_sealed),
    cmocka_unit_test(small_files_have_their_bytes_for_good),
    cmocka_unit_test(memory_that_can_be_written_is_not_final),
};

HED_UNIT_MAIN(tests)
