/* Tests of snapshots on a disk that fails: at every write, every sync, every rename.
 *
 * A program saves three epochs, removes old ones and compacts. Afterwards, whatever happened, the
 * newest snapshot that can be used is the last one that was published, or the one that was being
 * published, with exactly its content.
 */
#include "unit/snap/made.h"

#include <errno.h>

#define EPOCHS 3
#define SEEDS 8 /* crashes after which chance decides what has survived */

static struct hed_why why;

/* What the program got done. */
struct progress {
    uint64_t published; /* the last epoch that was published */
    uint64_t tried;     /* the last that was begun */
    int err;
};

static int
compact_newest(struct hed_snap_store *s, const struct hed_snap_files *files)
{
    struct hed_snap_reader *r = NULL;
    char name[HED_SNAP_FILE_NAME], made[HED_SNAP_FILE_NAME];
    int fd = -1;
    const int err = hed_snap_store_newest(s, NULL, UINT64_MAX, false, &fd, &r, name, &why);

    if (err)
        return err;
    hed_snap_reader_free(r);
    files->close(files->state, fd);
    return hed_snap_store_compact(s, name, NULL, 0, made, &why);
}

/* The program. It ends at the first error, as after a crash. */
static struct progress
run_program(struct disk *disk)
{
    const struct hed_snap_files *files = disk_files(disk);
    struct hed_snap_store *s = NULL;
    struct progress p = {0};

    assert_int_equal(hed_snap_store_open(files, DISK_FOLDER, &s, &why), 0);
    for (uint64_t e = 1; e <= EPOCHS && p.err == 0; e++) {
        p.tried = e;
        p.err = save_next(s, files, e, &why);
        if (p.err == 0)
            p.published = e;
        if (p.err == 0 && e == 2)
            p.err = hed_snap_store_prune(s, 1, false, false, NULL, NULL, NULL, &why);
    }
    p.err = p.err ? p.err : compact_newest(s, files);
    p.err = p.err ? p.err : hed_snap_store_prune(s, 1, false, false, NULL, NULL, NULL, &why);
    hed_snap_store_close(s);
    return p;
}

/* Nothing that is called a snapshot is damaged. */
static void
check_list(struct hed_snap_store *s)
{
    struct hed_snap_list l;

    assert_int_equal(hed_snap_store_list(s, &l, &why), 0);
    for (size_t i = 0; i < l.count; i++) {
        const struct hed_snap_entry *e = &l.entries[i];

        if (e->err && !(e->err == HED_ENOTFOUND && e->whole))
            fail_msg("%s: %s", e->name, e->why);
    }
    hed_snap_list_fini(&l);
}

/* The newest is the one of `p`, or the one it was about to publish. Returns its epoch; 0: none. */
static uint64_t
check_newest(struct hed_snap_store *s, const struct hed_snap_files *files, const struct progress *p)
{
    struct hed_snap_reader *r = NULL;
    char name[HED_SNAP_FILE_NAME];
    uint64_t epoch = 0;
    int fd = -1;
    const int err = hed_snap_store_newest(s, NULL, UINT64_MAX, true, &fd, &r, name, &why);

    if (err == 0) {
        epoch = hed_snap_reader_about(r)->epoch;

        const struct memory m = memory_at(epoch);

        assert_true(has_memory(r, &m));
        hed_snap_reader_free(r);
        files->close(files->state, fd);
    } else {
        assert_int_equal(err, HED_ENOTFOUND);
    }
    assert_true(epoch >= p->published && epoch <= p->tried);
    return epoch;
}

/* After a restart: what is there is right, and the program can go on. */
static void
check_disk(struct disk *disk, const struct progress *p)
{
    const struct hed_snap_files *files = disk_files(disk);
    struct hed_snap_store *s = NULL;

    assert_int_equal(hed_snap_store_open(files, DISK_FOLDER, &s, &why), 0);
    check_list(s);

    const uint64_t epoch = check_newest(s, files, p);
    const struct progress next = {epoch + 1, epoch + 1, 0};

    assert_int_equal(hed_snap_store_prune(s, 2, false, false, NULL, NULL, NULL, &why), 0);
    assert_int_equal(save_next(s, files, epoch + 1, &why), 0);
    check_newest(s, files, &next);
    hed_snap_store_close(s);
    assert_int_equal(disk_open_files(disk), 0);
}

static uint64_t
operations_of_program(void)
{
    struct disk *disk = disk_create();
    const struct progress p = run_program(disk);

    assert_int_equal(p.err, 0);
    assert_int_equal(p.published, EPOCHS);

    const uint64_t n = disk_operations(disk);

    disk_free(disk);
    return n;
}

static void
crash_everywhere(enum disk_loss loss, unsigned seed)
{
    const uint64_t total = operations_of_program();

    assert_true(total > 50);
    for (uint64_t at = 1; at <= total; at++) {
        struct disk *disk = disk_create();
        const struct disk_faults faults = {.crash_at = at};

        disk_set_faults(disk, &faults);

        const struct progress p = run_program(disk);

        assert_true(disk_crashed(disk));
        disk_restart(disk, loss, seed + (unsigned)at);
        check_disk(disk, &p);
        disk_free(disk);
    }
}

static void
a_crash_that_loses_all_that_was_not_synced(void **state)
{
    crash_everywhere(DISK_LOSE_ALL, 0);
}

static void
a_crash_that_loses_nothing_but_the_last_write(void **state)
{
    crash_everywhere(DISK_LOSE_NONE, 0);
}

static void
a_crash_that_loses_some_sectors(void **state)
{
    for (unsigned i = 0; i < SEEDS; i++)
        crash_everywhere(DISK_LOSE_SOME, 7919 * i);
}

/* An operation fails, the program lives: the same must hold at once, and after a crash. */
static void
fail_everywhere(int error, bool stays)
{
    const uint64_t total = operations_of_program();

    for (uint64_t at = 1; at <= total; at++) {
        struct disk *disk = disk_create();
        const struct disk_faults faults = {.error_at = at, .error = error, .error_stays = stays};

        disk_set_faults(disk, &faults);

        const struct progress p = run_program(disk);

        assert_int_equal(disk_open_files(disk), 0);
        if (at % 2)
            disk_restart(disk, DISK_LOSE_SOME, (unsigned)at);
        else
            disk_set_faults(disk, &(const struct disk_faults){0});
        check_disk(disk, &p);
        disk_free(disk);
    }
}

static void
a_full_disk(void **state)
{
    fail_everywhere(ENOSPC, true);
}

static void
an_operation_that_fails_once(void **state)
{
    fail_everywhere(EIO, false);
}

static void
short_and_interrupted_calls_change_nothing(void **state)
{
    for (unsigned i = 2; i < 9; i++) {
        struct disk *disk = disk_create();
        const struct disk_faults faults = {.interrupts = i, .shorts = i + 1};

        disk_set_faults(disk, &faults);

        const struct progress p = run_program(disk);

        assert_int_equal(p.err, 0);
        disk_restart(disk, DISK_LOSE_ALL, 0);
        check_disk(disk, &p);
        disk_free(disk);
    }
}

/* ---- a file that two processes write --------------------------------------------------------- */

/* The first half, then the second, as a program and the command do; then it is published. */
static int
save_in_halves(struct hed_snap_store *s, const struct hed_snap_files *files)
{
    const struct hed_snap_how partial = {.partial = true};
    const struct hed_snap_extent image = {.kind = HED_SNAP_FILE, .size = 5, .name = "core.img"};
    const struct hed_snap_about about = about_of(2);
    const struct memory m = memory_at(2);
    struct hed_snap_writer *w = NULL;
    struct hed_snap_draft d;
    int err = hed_snap_store_begin(s, "halves", about.uuid, &d, &why);

    if (err)
        return err;
    err = hed_snap_writer_create(files, d.fd, &about, NULL, &partial, &w, &why);
    err = err ? err : put_memory(w, &m, false);
    err = err ? err : hed_snap_writer_finish(w, &why);
    hed_snap_writer_free(w);
    w = NULL;
    err = err ? err : hed_snap_writer_append(files, d.fd, NULL, NULL, &w, &why);
    err = err ? err : hed_snap_extent_put(w, &image, "image");
    err = err ? err : hed_snap_writer_finish(w, &why);
    hed_snap_writer_free(w);
    if (err)
        hed_snap_store_drop(s, &d);
    return err ? err : hed_snap_store_publish(s, &d, true, &why);
}

/* An unfinished file has a footer only if all is there that the footer speaks of. */
static bool
check_draft(void *arg, const char *name)
{
    struct disk *disk = arg;
    const struct hed_snap_files *files = disk_files(disk);
    const int fd = files->open(files->state, DISK_FOLDER, name, 0, 0);
    struct hed_snap_reader *r = NULL;

    assert_true(fd >= 0);
    if (hed_snap_reader_open(files, fd, HED_SNAP_OPEN_PARTIAL, NULL, NULL, &r, &why) == 0)
        assert_int_equal(hed_snap_verify(r, 1, NULL, &why), 0);
    hed_snap_reader_free(r);
    files->close(files->state, fd);
    return true;
}

static void
crash_between_two_writers(unsigned seed)
{
    for (uint64_t at = 1;; at++) {
        struct disk *disk = disk_create();
        const struct hed_snap_files *files = disk_files(disk);
        const struct disk_faults faults = {.crash_at = at};
        struct progress p = {1, 2, 0};
        struct hed_snap_store *s = NULL;

        assert_int_equal(hed_snap_store_open(files, DISK_FOLDER, &s, &why), 0);
        assert_int_equal(save_next(s, files, 1, &why), 0);
        disk_set_faults(disk, &faults);
        if (save_in_halves(s, files) == 0)
            p.published = 2;
        hed_snap_store_close(s);

        const bool crashed = disk_crashed(disk);

        disk_restart(disk, DISK_LOSE_SOME, seed + (unsigned)at);
        files->list(files->state, DISK_FOLDER, check_draft, disk);
        check_disk(disk, &p);
        disk_free(disk);
        if (!crashed)
            break;
    }
}

static void
a_crash_between_two_writers(void **state)
{
    for (unsigned i = 0; i < SEEDS; i++)
        crash_between_two_writers(104729 * i);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_crash_that_loses_all_that_was_not_synced),
    cmocka_unit_test(a_crash_that_loses_nothing_but_the_last_write),
    cmocka_unit_test(a_crash_that_loses_some_sectors),
    cmocka_unit_test(a_full_disk),
    cmocka_unit_test(an_operation_that_fails_once),
    cmocka_unit_test(short_and_interrupted_calls_change_nothing),
    cmocka_unit_test(a_crash_between_two_writers),
};

HED_UNIT_MAIN(tests)
