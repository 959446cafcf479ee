/* Tests of the cache on disk: compiled kernels are found again, their size is bounded, and no wrong
 * kernel comes out. */
#include "kernel/cache/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "harness/unit.h"

static char folder[1024];
static struct hed_cache *cache;

static int
setup(void **state)
{
    const char *scratch = getenv("HED_SCRATCH");
    static int number;

    snprintf(folder, sizeof folder, "%s/a/b%d.%d", scratch ? scratch : "/tmp", (int)getpid(),
             number++);
    cache = hed_cache_create(folder, 100000);
    return cache ? 0 : -1;
}

static int
teardown(void **state)
{
    hed_cache_free(cache);
    return 0;
}

static const struct hed_cache_key *
key(uint64_t n)
{
    static struct hed_cache_key k;
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, &n, sizeof n);
    hed_hash_end(&h, k.hash);
    return &k;
}

/* The file of a key. */
static const char *
path_of(uint64_t n)
{
    static char path[2048];
    char text[HED_HASH_TEXT];

    snprintf(path, sizeof path, "%s/%s.kernel", folder, hed_hash_text(key(n)->hash, text));
    return path;
}

/* Under the number n, the tests store n bytes with the value n. */
static void
store_kernel(uint64_t n, size_t size)
{
    const struct hed_cache_about about = {
        .name = "kernel", .features = "+avx2", .version = "1.2.3", .compile_us = (uint32_t)n + 1};
    unsigned char *bytes = malloc(size ? size : 1);

    memset(bytes, (int)n, size);
    hed_cache_put(cache, key(n), &about, bytes, size);
    free(bytes);
}

static bool
find_kernel(uint64_t n, size_t size)
{
    struct hed_buf out;
    uint32_t us = 0;
    bool right;

    hed_buf_init(&out, 1 << 20);
    right = hed_cache_get(cache, key(n), &out, &us);
    if (right) {
        assert_int_equal(out.size, size);
        assert_int_equal(us, (uint32_t)n + 1);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(out.data[i], n & 0xff);
    }
    hed_buf_fini(&out);
    return right;
}

static uint64_t
bytes_in_folder(void)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    uint64_t total = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        struct stat st;

        if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
            total += (uint64_t)st.st_size;
    }
    closedir(d);
    return total;
}

static void
stored_kernels_are_found(void **state)
{
    assert_false(find_kernel(1, 100));
    store_kernel(1, 100);
    store_kernel(2, 0);
    assert_true(find_kernel(1, 100));
    assert_true(find_kernel(2, 0));
    assert_false(find_kernel(3, 100));
    store_kernel(1, 200);
    assert_true(find_kernel(1, 200));
}

static void
the_folder_stays_under_its_limit(void **state)
{
    for (uint64_t n = 0; n < 200; n++)
        store_kernel(n, 2000);
    /* The cache checks its size only now and then, and can grow by that many files in between. */
    assert_true(bytes_in_folder() < 100000 + 64 * 2100);
    assert_true(find_kernel(199, 2000));
    assert_false(find_kernel(0, 2000));
}

static void
files_of_others_are_not_used(void **state)
{
    store_kernel(7, 100);
    assert_int_equal(chmod(path_of(7), 0666), 0);
    assert_false(find_kernel(7, 100));
    store_kernel(7, 100);
    assert_true(find_kernel(7, 100));
}

/* What others of the group may write is not used, unless the group is trusted. */
static void
files_of_the_group_are_used_if_it_is_trusted(void **state)
{
    struct stat st;

    hed_cache_trust_group(cache);
    store_kernel(5, 500);
    assert_int_equal(stat(path_of(5), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    assert_true(find_kernel(5, 500));
    assert_int_equal(chmod(path_of(5), 0666), 0);
    assert_false(find_kernel(5, 500));
    assert_int_equal(chmod(path_of(5), 0660), 0);
    hed_cache_free(cache);
    cache = hed_cache_create(folder, 100000);
    assert_false(find_kernel(5, 500));
}

static void
truncated_files_are_ignored(void **state)
{
    store_kernel(8, 1000);
    for (int size = 0; size < 1040; size += 13) {
        assert_int_equal(truncate(path_of(8), size), 0);
        assert_false(find_kernel(8, 1000));
    }
}

static void
processes_may_store_at_once(void **state)
{
    for (int child = 0; child < 4; child++) {
        if (fork() == 0) {
            for (uint64_t n = 0; n < 300; n++) {
                store_kernel(n % 20, 500 + n % 20);
                (void)find_kernel((n * 7) % 20, 500 + (n * 7) % 20);
            }
            _exit(0);
        }
    }
    for (int child = 0; child < 4; child++) {
        int status = -1;

        wait(&status);
        assert_int_equal(status, 0);
    }
    for (uint64_t n = 0; n < 20; n++)
        assert_true(find_kernel(n, 500 + n));
}

static void
a_folder_that_cannot_be_made_means_no_cache(void **state)
{
    const struct hed_cache_about about = {.name = "k", .features = "", .version = ""};

    assert_null(hed_cache_create(folder, 0));

    struct hed_cache *c = hed_cache_create("/proc/nowhere", 1000);
    struct hed_buf out;
    uint32_t us;

    hed_buf_init(&out, 100);
    hed_cache_put(c, key(1), &about, "x", 1);
    assert_false(hed_cache_get(c, key(1), &out, &us));
    assert_false(hed_cache_get(NULL, key(1), &out, &us));
    hed_cache_put(NULL, key(1), &about, "x", 1);
    hed_cache_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(stored_kernels_are_found, setup, teardown),
    cmocka_unit_test_setup_teardown(the_folder_stays_under_its_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(files_of_others_are_not_used, setup, teardown),
    cmocka_unit_test_setup_teardown(files_of_the_group_are_used_if_it_is_trusted, setup, teardown),
    cmocka_unit_test_setup_teardown(truncated_files_are_ignored, setup, teardown),
    cmocka_unit_test_setup_teardown(processes_may_store_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made_means_no_cache, setup, teardown),
};

HED_UNIT_MAIN(tests)
