/* Tests of a folder of snapshots: list, the newest, prune, compact. */
#include "unit/snap/made.h"

static struct hed_why why;

struct folder {
    struct disk *disk;
    const struct hed_snap_files *files;
    struct hed_snap_store *store;
};

static struct folder
new_folder(void)
{
    struct folder f = {.disk = disk_create()};

    f.files = disk_files(f.disk);
    assert_int_equal(hed_snap_store_open(f.files, DISK_FOLDER, &f.store, &why), 0);
    return f;
}

static void
free_folder(struct folder *f)
{
    hed_snap_store_close(f->store);
    assert_int_equal(disk_open_files(f->disk), 0);
    disk_free(f->disk);
}

static void
save_epochs(struct folder *f, uint64_t from, uint64_t to)
{
    for (uint64_t e = from; e <= to; e++)
        assert_int_equal(save_next(f->store, f->files, e, &why), 0);
}

/* The newest that can be used is this epoch, with the right content. */
static void
assert_newest(struct folder *f, uint64_t epoch)
{
    const struct memory m = memory_at(epoch);
    struct hed_snap_reader *r = NULL;
    char name[HED_SNAP_FILE_NAME];
    int fd = -1;

    assert_int_equal(hed_snap_store_newest(f->store, NULL, UINT64_MAX, true, &fd, &r, name, &why),
                     0);
    assert_int_equal(hed_snap_reader_about(r)->epoch, epoch);
    assert_true(has_memory(r, &m));
    hed_snap_reader_free(r);
    f->files->close(f->files->state, fd);
}

static void
name_of(uint64_t epoch, char out[HED_SNAP_FILE_NAME])
{
    const struct hed_snap_about a = about_of(epoch);

    hed_snap_store_name(epoch, a.uuid, out);
}

static void
an_empty_folder_has_no_newest(void **state)
{
    struct folder f = new_folder();
    struct hed_snap_reader *r = NULL;
    char name[HED_SNAP_FILE_NAME];
    uint64_t epoch = 0;
    int fd = -1;

    assert_int_equal(hed_snap_store_newest(f.store, NULL, UINT64_MAX, true, &fd, &r, name, &why),
                     HED_ENOTFOUND);
    assert_int_equal(hed_snap_store_epoch(f.store, &epoch, &why), 0);
    assert_int_equal(epoch, 1);
    free_folder(&f);
}

static void
snapshots_are_listed_newest_first(void **state)
{
    struct folder f = new_folder();
    struct hed_snap_list l;
    uint64_t epoch = 0;

    save_epochs(&f, 1, 3);
    assert_int_equal(hed_snap_store_list(f.store, &l, &why), 0);
    assert_int_equal(l.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(l.entries[i].about.epoch, 3 - i);
        assert_int_equal(l.entries[i].err, 0);
        assert_int_equal(l.entries[i].head, i == 0);
    }
    assert_string_equal(l.head, l.entries[0].name);
    assert_int_equal(l.unfinished, 0);
    hed_snap_list_fini(&l);
    assert_int_equal(hed_snap_store_epoch(f.store, &epoch, &why), 0);
    assert_int_equal(epoch, 4);
    assert_newest(&f, 3);
    free_folder(&f);
}

static void
a_name_is_used_once(void **state)
{
    struct folder f = new_folder();
    const struct hed_snap_about a = about_of(1);
    struct hed_snap_draft d;
    char name[HED_SNAP_FILE_NAME];

    save_epochs(&f, 1, 1);
    name_of(1, name);
    assert_int_equal(hed_snap_store_begin(f.store, name, a.uuid, &d, &why), HED_EEXIST);
    for (const char *const *bad = (const char *const[]){"", ".x", "a/b", "a.snap.tmp-1", NULL};
         *bad; bad++)
        assert_int_equal(hed_snap_store_begin(f.store, *bad, a.uuid, &d, &why), HED_EINVAL);
    free_folder(&f);
}

static void
an_unfinished_file_is_not_published(void **state)
{
    struct folder f = new_folder();
    const struct hed_snap_about a = about_of(1);
    struct hed_snap_writer *w = NULL;
    struct hed_snap_draft d;
    struct hed_snap_list l;

    assert_int_equal(hed_snap_store_begin(f.store, "x", a.uuid, &d, &why), 0);
    assert_string_equal(d.name, "x.snap");
    assert_int_equal(hed_snap_writer_create(f.files, d.fd, &a, NULL, NULL, &w, &why), 0);
    hed_snap_writer_free(w);
    assert_int_equal(hed_snap_store_publish(f.store, &d, true, &why), HED_ETRUNC);
    assert_int_equal(hed_snap_store_list(f.store, &l, &why), 0);
    assert_true(l.count == 0 && l.unfinished == 0);
    hed_snap_list_fini(&l);
    free_folder(&f);
}

static void
a_chain_of_fifty_equals_a_full_snapshot(void **state)
{
    struct folder f = new_folder();
    char name[HED_SNAP_FILE_NAME], full[HED_SNAP_FILE_NAME];
    struct hed_snap_reader *r = NULL;
    struct hed_snap_sizes sizes;
    int fd = -1;

    save_epochs(&f, 1, 50);
    for (uint64_t e = 1; e <= 50; e++) {
        const struct memory m = memory_at(e);

        name_of(e, name);
        assert_int_equal(hed_snap_store_get(f.store, name, 0, &fd, &r, &why), 0);
        assert_true(has_memory(r, &m));
        hed_snap_reader_sizes(r, &sizes);
        assert_int_equal(sizes.homes > 0, e > 1);
        hed_snap_reader_free(r);
        f.files->close(f.files->state, fd);
    }

    /* Written again in one piece, it needs none of the others. */
    const struct memory m = memory_at(50);
    struct hed_snap_pruned pruned;

    assert_int_equal(hed_snap_store_compact(f.store, name, NULL, 0, full, &why), 0);
    assert_newest(&f, 50);
    assert_int_equal(hed_snap_store_prune(f.store, 1, false, false, NULL, NULL, &pruned, &why), 0);
    assert_true(pruned.removed == 50 && pruned.kept == 1 && pruned.needed == 0);
    assert_int_equal(hed_snap_store_get(f.store, full, 0, &fd, &r, &why), 0);
    assert_true(has_memory(r, &m));
    hed_snap_reader_sizes(r, &sizes);
    assert_int_equal(sizes.homes, 0);
    hed_snap_reader_free(r);
    f.files->close(f.files->state, fd);
    free_folder(&f);
}

static void
a_damaged_newest_one_is_passed_over(void **state)
{
    struct folder f = new_folder();
    char name[HED_SNAP_FILE_NAME];
    uint64_t size;
    unsigned char *bytes;

    save_epochs(&f, 1, 4);
    name_of(4, name);
    bytes = disk_bytes(f.disk, name, &size);
    bytes[size - 1] ^= 1;
    assert_newest(&f, 3);
    assert_non_null(strstr(why.text, name));
    /* One whose payload is damaged is found only by reading all. */
    name_of(3, name);
    bytes = disk_bytes(f.disk, name, &size);
    bytes[4096] ^= 1;
    assert_newest(&f, 2);
    /* One that is a home takes those with it that need it. */
    name_of(1, name);
    disk_cut(f.disk, name, 8192);

    struct hed_snap_reader *r = NULL;
    struct hed_snap_list l;
    int fd = -1;

    assert_int_equal(hed_snap_store_newest(f.store, NULL, UINT64_MAX, true, &fd, &r, name, &why),
                     HED_ENOTFOUND);
    assert_int_equal(hed_snap_store_list(f.store, &l, &why), 0);
    for (size_t i = 0; i < l.count; i++)
        assert_int_not_equal(l.entries[i].err, 0);
    hed_snap_list_fini(&l);
    free_folder(&f);
}

static void
prune_keeps_what_others_need(void **state)
{
    struct folder f = new_folder();
    struct hed_snap_pruned pruned;
    struct hed_snap_list l;

    save_epochs(&f, 1, 10);
    assert_int_equal(hed_snap_store_prune(f.store, 2, false, true, NULL, NULL, &pruned, &why), 0);
    assert_true(pruned.removed + pruned.kept == 10 && pruned.needed >= 1);
    assert_int_equal(hed_snap_store_list(f.store, &l, &why), 0);
    assert_int_equal(l.count, 10); /* dry */
    hed_snap_list_fini(&l);
    for (uint64_t e = 11; e <= 60; e++) {
        assert_int_equal(save_next(f.store, f.files, e, &why), 0);
        assert_int_equal(hed_snap_store_prune(f.store, 2, false, false, NULL, NULL, &pruned, &why),
                         0);
        assert_true(pruned.kept >= 2);
        assert_newest(&f, e);
    }
    assert_int_equal(hed_snap_store_list(f.store, &l, &why), 0);
    assert_true(l.count < 40);
    assert_true(l.entries[0].err == 0 && l.entries[1].err == 0);
    hed_snap_list_fini(&l);
    free_folder(&f);
}

static void
prune_removes_what_dead_writers_left(void **state)
{
    struct folder f = new_folder();
    const struct hed_snap_about a = about_of(7);
    struct hed_snap_pruned pruned;
    struct hed_snap_draft d;

    save_epochs(&f, 1, 1);
    assert_int_equal(hed_snap_store_begin(f.store, "dead", a.uuid, &d, &why), 0);
    f.files->close(f.files->state, d.fd);
    f.files->close(f.files->state, d.lock);
    assert_int_equal(hed_snap_store_prune(f.store, 3, false, false, NULL, NULL, &pruned, &why), 0);
    assert_true(pruned.unfinished == 1 && pruned.removed == 0 && pruned.kept == 1);
    assert_newest(&f, 1);
    free_folder(&f);
}

static void
damaged_snapshots_stay_unless_asked(void **state)
{
    struct folder f = new_folder();
    struct hed_snap_pruned pruned;
    char name[HED_SNAP_FILE_NAME];

    save_epochs(&f, 1, 3);
    name_of(3, name);
    disk_cut(f.disk, name, 10000);
    assert_int_equal(hed_snap_store_prune(f.store, 5, false, false, NULL, NULL, &pruned, &why), 0);
    assert_true(pruned.removed == 0 && pruned.kept == 3);
    assert_int_equal(hed_snap_store_prune(f.store, 5, true, false, NULL, NULL, &pruned, &why), 0);
    assert_true(pruned.removed == 1 && pruned.kept == 2);
    assert_newest(&f, 2);
    free_folder(&f);
}

static void
sessions_are_kept_apart(void **state)
{
    struct folder f = new_folder();
    struct hed_snap_reader *r = NULL;
    const uint8_t other[HED_SNAP_UUID] = {9};
    char name[HED_SNAP_FILE_NAME];
    int fd = -1;

    save_epochs(&f, 1, 2);
    assert_int_equal(hed_snap_store_newest(f.store, other, UINT64_MAX, false, &fd, &r, name, &why),
                     HED_ENOTFOUND);
    assert_int_equal(
        hed_snap_store_newest(f.store, about_of(1).session, 2, false, &fd, &r, name, &why), 0);
    assert_int_equal(hed_snap_reader_about(r)->epoch, 1);
    hed_snap_reader_free(r);
    f.files->close(f.files->state, fd);
    free_folder(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_empty_folder_has_no_newest),
    cmocka_unit_test(snapshots_are_listed_newest_first),
    cmocka_unit_test(a_name_is_used_once),
    cmocka_unit_test(an_unfinished_file_is_not_published),
    cmocka_unit_test(a_chain_of_fifty_equals_a_full_snapshot),
    cmocka_unit_test(a_damaged_newest_one_is_passed_over),
    cmocka_unit_test(prune_keeps_what_others_need),
    cmocka_unit_test(prune_removes_what_dead_writers_left),
    cmocka_unit_test(damaged_snapshots_stay_unless_asked),
    cmocka_unit_test(sessions_are_kept_apart),
};

HED_UNIT_MAIN(tests)
