/* Archives of a cache: what goes in comes out, and a damaged one is refused. */
#include "kernel/cache/archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "unit/cache/store.h"

static bool
wants_all(void *arg, const struct hed_cache_entry *e)
{
    return true;
}

static bool
wants_avx2(void *arg, const struct hed_cache_entry *e)
{
    return strcmp(e->about.features, "+avx2") == 0;
}

static int
keep_entry(void *arg, const struct hed_cache_entry *e, const void *bytes, size_t size)
{
    return hed_archive_keep(arg, e, bytes, size);
}

/* An archive of two or three entries, in memory. */
static int
make_archive(hed_archive_want_fn want, size_t expected)
{
    struct hed_cache *c = make_cache(100000);
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    struct hed_why why;
    size_t count = 99;

    assert_true(fd >= 0);
    store_named(c, "first", "+avx2");
    store_named(c, "second", "+avx2");
    store_named(c, "third", "+neon");
    assert_int_equal(hed_archive_write(c, fd, want, NULL, &count, &why), 0);
    assert_int_equal(count, expected);
    hed_cache_free(c);
    return fd;
}

static int
read_archive(int fd, struct hed_cache *into)
{
    struct hed_why why = {""};
    int err;

    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    err = hed_archive_read(fd, into ? keep_entry : NULL, into, &why);
    assert_int_equal(err != 0, why.text[0] != 0);
    return err;
}

static void
what_goes_in_comes_out(void **state)
{
    struct hed_cache *c = make_cache(100000);
    const int fd = make_archive(wants_avx2, 2);

    assert_int_equal(read_archive(fd, NULL), 0);
    assert_int_equal(read_archive(fd, c), 0);
    assert_true(has_named(c, "first"));
    assert_true(has_named(c, "second"));
    assert_false(has_named(c, "third"));
    close(fd);
    hed_cache_free(c);
}

static void
a_cut_archive_is_refused(void **state)
{
    const int fd = make_archive(wants_all, 3);
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    for (off_t size = st.st_size - 1; size >= 0; size--) {
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_not_equal(read_archive(fd, NULL), 0);
    }
    close(fd);
}

static void
a_changed_archive_is_refused(void **state)
{
    const int fd = make_archive(wants_all, 3);
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        unsigned char byte;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x41;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_int_not_equal(read_archive(fd, NULL), 0);
        byte ^= 0x41;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(read_archive(fd, NULL), 0);
    assert_int_equal(pwrite(fd, "x", 1, st.st_size), 1);
    assert_int_equal(read_archive(fd, NULL), HED_EFORMAT);
    close(fd);
}

static void
another_version_is_named(void **state)
{
    const int fd = make_archive(wants_all, 3);
    const uint32_t version = 9;
    struct hed_why why;

    assert_int_equal(pwrite(fd, &version, sizeof version, 8), (int)sizeof version);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(hed_archive_read(fd, NULL, NULL, &why), HED_EVERSION);
    assert_non_null(strstr(why.text, "version 9"));
    close(fd);
}

static void
a_length_is_not_believed(void **state)
{
    const int fd = make_archive(wants_all, 3);
    const uint64_t sizes[] = {UINT64_MAX, HED_CACHE_ENTRY_MAX + 1, HED_CACHE_ENTRY_MAX, 1, 1000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(pwrite(fd, &sizes[i], sizeof sizes[i], 12), (int)sizeof sizes[i]);
        assert_int_not_equal(read_archive(fd, NULL), 0);
    }
    close(fd);
}

static void
listed_files_are_what_was_stored(void **state)
{
    struct hed_cache *c = make_cache(100000);
    struct hed_cache_file *files;
    struct hed_buf bytes;
    struct hed_cache_entry e;
    size_t count = 0;

    store_named(c, "first", "+avx2");
    assert_int_equal(hed_cache_list(c, &files, &count), 0);
    assert_int_equal(count, 1);
    hed_buf_init(&bytes, 1 << 20);
    assert_int_equal(hed_cache_look(c, files[0].name, false, &bytes, &e), 0);
    assert_string_equal(e.about.name, "first");
    assert_string_equal(e.about.features, "+avx2");
    assert_string_equal(e.about.version, "1.2.3");
    assert_int_equal(e.about.compiler, 77);
    assert_int_equal(e.about.abi, 3);
    assert_int_equal(e.size, 5);
    assert_true(hed_cache_remove(c, files[0].name));
    assert_false(has_named(c, "first"));
    assert_int_not_equal(hed_cache_look(c, files[0].name, false, &bytes, &e), 0);
    hed_buf_fini(&bytes);
    free(files);
    hed_cache_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_goes_in_comes_out),
    cmocka_unit_test(a_cut_archive_is_refused),
    cmocka_unit_test(a_changed_archive_is_refused),
    cmocka_unit_test(another_version_is_named),
    cmocka_unit_test(a_length_is_not_believed),
    cmocka_unit_test(listed_files_are_what_was_stored),
};

HED_UNIT_MAIN(tests)
