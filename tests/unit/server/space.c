/* Tests of the space that all clients' images and kernels take: the oldest go first, whose ever
 * they are, and nothing else goes. */
#include "harness/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "remote/server/listener/listener.h"

#define KIB 1024

static char images[512], kernels[512];

static int
make_folders(void **state)
{
    snprintf(images, sizeof images, "%s/images-XXXXXX", getenv("HED_SCRATCH"));
    snprintf(kernels, sizeof kernels, "%s/kernels-XXXXXX", getenv("HED_SCRATCH"));
    return mkdtemp(images) && mkdtemp(kernels) ? 0 : -1;
}

static const char *
path_of(const char *folder, const char *name)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void
make_inner(const char *folder, const char *name)
{
    assert_int_equal(mkdir(path_of(folder, name), 0700), 0);
}

/* A file of `size` bytes that was last used at `when`. */
static void
make_file(const char *folder, const char *name, size_t size, time_t when)
{
    static char zeros[256 * KIB];
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    const int fd = open(path_of(folder, name), O_CREAT | O_EXCL | O_WRONLY, 0600);

    assert_true(fd >= 0 && size <= sizeof zeros);
    memset(zeros, 'x', sizeof zeros);
    assert_int_equal(write(fd, zeros, size), size);
    assert_int_equal(fsync(fd), 0); /* only now is it known how many blocks it has */
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(close(fd), 0);
}

static bool
is_there(const char *folder, const char *name)
{
    return access(path_of(folder, name), F_OK) == 0;
}

static void
oldest_go_first_of_all_clients(void **state)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    (void)state;
    assert_int_equal(strlen(hash), HED_HASH_TEXT - 1);
    make_inner(images, "uid-1");
    make_inner(images, "cert-ab");
    make_inner(images, "cert-ab/deep");
    make_inner(kernels, "uid-1");
    make_file(images, "uid-1/new", 128 * KIB, 5000);
    make_file(images, "uid-1/any name", 128 * KIB, 1000);
    make_file(images, "cert-ab/deep/hidden", 128 * KIB, 2000);
    make_file(images, "cert-ab/newer", 128 * KIB, 6000);
    make_file(images, hash, 128 * KIB, 3000);
    make_file(kernels, "uid-1/k", 128 * KIB, 4000);
    hed_space_sweep(images, kernels, 1024 * KIB); /* they fit */
    assert_true(is_there(images, "uid-1/any name"));
    hed_space_sweep(images, kernels, 600 * KIB);
    assert_false(is_there(images, "uid-1/any name"));
    assert_false(is_there(images, "cert-ab/deep/hidden"));
    assert_true(is_there(images, hash));
    assert_true(is_there(images, "uid-1/new"));
    hed_space_sweep(images, kernels, 300 * KIB);
    assert_false(is_there(images, hash));
    assert_false(is_there(kernels, "uid-1/k"));
    assert_true(is_there(images, "uid-1/new"));
    assert_true(is_there(images, "cert-ab/newer"));
}

static void
files_of_others_stay(void **state)
{
    (void)state;
    make_inner(images, "mine");
    make_inner(images, "uid-2");
    make_file(images, "notes.txt", 64 * KIB, 10);
    make_file(images, "mine/data", 64 * KIB, 10);
    make_file(kernels, "k", 64 * KIB, 10);
    /* What a client links to is not the client's. */
    assert_int_equal(symlink("../mine", path_of(images, "uid-2/link")), 0);
    assert_int_equal(symlink(images, path_of(images, "uid-3")), 0);
    make_file(images, "uid-2/own", 64 * KIB, 10);
    hed_space_sweep(images, kernels, 1);
    assert_false(is_there(images, "uid-2/own"));
    assert_true(is_there(images, "notes.txt"));
    assert_true(is_there(images, "mine/data"));
    assert_true(is_there(kernels, "k"));
}

static void
missing_folders_do_no_harm(void **state)
{
    (void)state;
    hed_space_sweep("", "", 1);
    hed_space_sweep("/there/is/none", "", 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(oldest_go_first_of_all_clients, make_folders),
    cmocka_unit_test_setup(files_of_others_stay, make_folders),
    cmocka_unit_test(missing_folders_do_no_harm),
};

HED_UNIT_MAIN(tests)
