/* Tests of server/worker/images: images are stored by their contents, and by nothing else. */
#include "remote/server/worker/images.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/unit.h"

static void
hash_of(const void *p, size_t n, uint8_t out[HED_HASH_SIZE])
{
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, p, n);
    hed_hash_end(&h, out);
}

static char folder[64];

static int
make_folder(void **state)
{
    memcpy(folder, "/tmp/heddle-images-XXXXXX", sizeof "/tmp/heddle-images-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
files(bool remove)
{
    DIR *d = opendir(folder);
    int n = 0;

    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (remove)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    (void)closedir(d);
    return n;
}

static int
remove_folder(void **state)
{
    (void)files(true);
    return rmdir(folder);
}

static const char text[] = "an image that comes in three pieces";

static int
piece(struct hed_images *i, const uint8_t *hash, size_t from, size_t to, bool *complete)
{
    return hed_images_add(i, &folder, hash, sizeof text, from, text + from, to - from, complete);
}

static void
send_and_use(struct hed_images *i)
{
    uint8_t hash[HED_HASH_SIZE];
    void *p;
    bool complete;

    hash_of(text, sizeof text, hash);
    assert_false(hed_images_has(i, hash, sizeof text));
    assert_int_equal(hed_images_map(i, hash, sizeof text, &p), HED_ENOTFOUND);
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_false(complete);
    assert_int_equal(piece(i, hash, 10, 20, &complete), 0);
    assert_false(hed_images_has(i, hash, sizeof text));
    assert_int_equal(piece(i, hash, 20, sizeof text, &complete), 0);
    assert_true(complete);
    assert_true(hed_images_has(i, hash, sizeof text));
    assert_false(hed_images_has(i, hash, sizeof text - 1));
    assert_int_equal(hed_images_map(i, hash, sizeof text, &p), 0);
    assert_memory_equal(p, text, sizeof text);
    assert_int_equal(((char *)p)[sizeof text], 0);
    hed_images_unmap(p, sizeof text);
}

static void
kept_in_memory(void **state)
{
    struct hed_images *i = hed_images_create("");

    send_and_use(i);
    hed_images_free(i);
}

/* A second worker of the same server finds what was sent to the first. */
static void
kept_in_a_folder_for_all(void **state)
{
    struct hed_images *first = hed_images_create(folder), *second = hed_images_create(folder);
    uint8_t hash[HED_HASH_SIZE];

    send_and_use(first);
    hash_of(text, sizeof text, hash);
    assert_true(hed_images_has(second, hash, sizeof text));
    assert_int_equal(files(false), 1);
    hed_images_free(first);
    hed_images_free(second);
}

/* A client that claims that its bytes are another client's code is not believed, and nothing stays
 * behind. */
static void
a_wrong_name_is_refused(void **state)
{
    struct hed_images *i = hed_images_create(folder);
    uint8_t hash[HED_HASH_SIZE];
    bool complete;

    hash_of("something else", 14, hash);
    assert_int_equal(piece(i, hash, 0, sizeof text, &complete), HED_EINVAL);
    assert_false(complete);
    assert_false(hed_images_has(i, hash, sizeof text));
    assert_int_equal(files(false), 0);
    hed_images_free(i);
}

static void
pieces_that_make_no_sense(void **state)
{
    struct hed_images *i = hed_images_create(folder);
    uint8_t hash[HED_HASH_SIZE], other[HED_HASH_SIZE] = {1};
    bool complete;

    hash_of(text, sizeof text, hash);
    /* not from the beginning; with a gap; beyond the end; another image in between; no image at
     * all */
    assert_int_equal(piece(i, hash, 5, 10, &complete), HED_EFORMAT);
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_int_equal(piece(i, hash, 11, 20, &complete), HED_EFORMAT);
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_int_equal(
        hed_images_add(i, &folder, hash, sizeof text, 10, text, sizeof text, &complete),
        HED_EFORMAT);
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_int_equal(piece(i, other, 10, 20, &complete), HED_EFORMAT);
    assert_int_equal(hed_images_add(i, &folder, hash, 0, 0, text, 0, &complete), HED_EFORMAT);
    assert_int_equal(hed_images_add(i, &folder, hash, UINT64_MAX, 0, text, 10, &complete),
                     HED_EFORMAT);
    assert_int_equal(files(false), 0);
    /* begun again, it is accepted; what is still arriving at the end disappears */
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_int_equal(piece(i, hash, 0, 10, &complete), 0);
    assert_in_range(files(false), 0, 1); /* it may not have a name yet */
    hed_images_free(i);
    assert_int_equal(files(false), 0);
}

/* A client that ends in the middle, again and again, does not fill the disk. */
static void
a_worker_that_dies_leaves_nothing(void **state)
{
    uint8_t hash[HED_HASH_SIZE];
    bool complete;
    int how;

    (void)state;
    hash_of(text, sizeof text, hash);

    const pid_t child = fork();

    if (child == 0)
        _exit(piece(hed_images_create(folder), hash, 0, 10, &complete) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(files(false), 0);
}

/* Many small images do not use up the descriptors: the oldest are removed. */
static void
many_small_ones_make_room(void **state)
{
    struct hed_images *i = hed_images_create("");
    struct rlimit old, few;
    uint8_t hash[HED_HASH_SIZE];
    bool complete;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (uint32_t k = 0; k < 1000; k++) {
        hash_of(&k, sizeof k, hash);
        assert_int_equal(hed_images_add(i, &folder, hash, sizeof k, 0, &k, sizeof k, &complete), 0);
        assert_true(complete);
    }
    assert_true(hed_images_has(i, hash, sizeof(uint32_t)));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    hed_images_free(i);
}

static void
a_folder_of_everybody_is_not_used(void **state)
{
    struct hed_images *i;

    assert_int_equal(chmod(folder, 0777), 0);
    i = hed_images_create(folder);
    send_and_use(i);
    assert_int_equal(files(false), 0);
    hed_images_free(i);
}

static uint64_t charged;

static bool
take_up_to_a_hundred(void *arg, uint64_t bytes)
{
    if (bytes > 100 - charged)
        return false;
    charged += bytes;
    return true;
}

static void
give_back(void *arg, uint64_t bytes)
{
    assert_true(bytes <= charged);
    charged -= bytes;
}

/* What finds no room on the disk stays in memory, within the client's limit. */
static void
a_reserve_stays_free(void **state)
{
    const struct hed_images_limits limits = {
        .reserve = UINT64_MAX / 2, .take = take_up_to_a_hundred, .give = give_back};
    struct hed_images *i = hed_images_create(folder);
    uint8_t hash[HED_HASH_SIZE];
    char large[128] = "x";
    bool complete;

    charged = 0;
    hed_images_limit(i, &limits);
    send_and_use(i);
    assert_int_equal(files(false), 0);
    assert_int_equal(charged, sizeof text);
    hash_of(large, sizeof large, hash);
    assert_int_equal(
        hed_images_add(i, &folder, hash, sizeof large, 0, large, sizeof large, &complete),
        HED_ENOMEM);
    assert_false(complete);
    assert_int_equal(charged, sizeof text);
    hed_images_free(i);
    assert_int_equal(charged, 0);
}

/* An image that is larger than the disk goes on in memory. Needs a disk that is full: a file system
 * of its own, in a process of its own. */
static void
use_a_full_disk(void)
{
    enum { SIZE = 1 << 20, PIECE = 1 << 16 };
    struct hed_images *i = hed_images_create(folder);
    unsigned char *image = malloc(SIZE);
    uint8_t hash[HED_HASH_SIZE];
    bool complete = false;
    void *p = NULL;

    for (size_t k = 0; k < SIZE; k++)
        image[k] = (unsigned char)(k * 7 + k / 251);
    hash_of(image, SIZE, hash);
    for (size_t at = 0; at < SIZE; at += PIECE)
        if (hed_images_add(i, &folder, hash, SIZE, at, image + at, PIECE, &complete) != 0)
            _exit(2);
    if (!complete || hed_images_map(i, hash, SIZE, &p) != 0 || memcmp(p, image, SIZE) != 0)
        _exit(3);
    send_and_use(i);
    hed_images_free(i);
    free(image);
    _exit(0);
}

static void
a_full_disk_does_not_matter(void **state)
{
    const pid_t pid = fork();
    int how;

    if (pid == 0) {
        if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) != 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", folder, "tmpfs", 0, "size=256k,mode=700") != 0)
            _exit(77);
        use_a_full_disk();
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == 77)
        skip(); /* no file system of our own here */
    assert_int_equal(WEXITSTATUS(how), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kept_in_memory),
    cmocka_unit_test_setup_teardown(kept_in_a_folder_for_all, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_wrong_name_is_refused, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(pieces_that_make_no_sense, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_worker_that_dies_leaves_nothing, make_folder, remove_folder),
    cmocka_unit_test(many_small_ones_make_room),
    cmocka_unit_test_setup_teardown(a_folder_of_everybody_is_not_used, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_reserve_stays_free, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_full_disk_does_not_matter, make_folder, remove_folder),
};

HED_UNIT_MAIN(tests)
