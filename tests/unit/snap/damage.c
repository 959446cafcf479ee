/* Tests of damage: whatever byte of a snapshot changes, and wherever it is cut, it is found. */
#include "unit/snap/made.h"

#include "move/file/format.h"

static struct hed_why why;

struct damaged {
    struct disk *disk;
    const struct hed_snap_files *files;
    char name[HED_SNAP_FILE_NAME];
    int fd;
    unsigned char *bytes; /* the disk's */
    uint64_t size;
    uint64_t tables; /* where they begin */
};

static struct damaged
make_snapshot(void)
{
    struct damaged d = {.disk = disk_create()};
    const struct hed_snap_about about = about_of(1);
    struct hed_snap_store *s = NULL;
    struct hed_snap_footer f;

    d.files = disk_files(d.disk);
    assert_int_equal(hed_snap_store_open(d.files, DISK_FOLDER, &s, &why), 0);
    assert_int_equal(save_epoch(s, d.files, 1, NULL, &why), 0);
    hed_snap_store_close(s);
    hed_snap_store_name(1, about.uuid, d.name);
    d.bytes = disk_bytes(d.disk, d.name, &d.size);
    memcpy(&f, d.bytes + d.size - sizeof f, sizeof f);
    d.tables = f.tables;
    d.fd = d.files->open(d.files->state, DISK_FOLDER, d.name, 0, 0);
    assert_true(d.fd >= 0);
    return d;
}

static int
open_damaged(const struct damaged *d, unsigned flags)
{
    struct hed_snap_reader *r = NULL;
    const int err = hed_snap_reader_open(d->files, d->fd, flags, NULL, NULL, &r, &why);

    hed_snap_reader_free(r);
    return err;
}

static void
free_damaged(struct damaged *d)
{
    d->files->close(d->files->state, d->fd);
    disk_free(d->disk);
}

static void
a_flipped_bit_in_a_table_is_found(void **state)
{
    struct damaged d = make_snapshot();

    assert_int_equal(open_damaged(&d, 0), 0);
    for (uint64_t at = 0; at < d.size; at++) {
        if (at >= HED_SNAP_BLOCK && at < d.tables)
            continue; /* payloads */
        d.bytes[at] ^= (unsigned char)(1 << at % 8);
        if (open_damaged(&d, 0) == 0)
            fail_msg("byte %llu", (unsigned long long)at);
        d.bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    assert_int_equal(open_damaged(&d, 0), 0);
    free_damaged(&d);
}

static void
a_flipped_bit_in_a_payload_is_found(void **state)
{
    struct damaged d = make_snapshot();
    struct hed_snap_reader *r = NULL;
    const struct memory m = memory_at(1);

    assert_int_equal(hed_snap_reader_open(d.files, d.fd, 0, NULL, NULL, &r, &why), 0);
    assert_int_equal(hed_snap_verify(r, 1, NULL, &why), 0);
    /* The first bytes of a block are never filling. */
    for (uint64_t at = HED_SNAP_BLOCK; at < d.tables;
         at += at % HED_SNAP_BLOCK < TAIL - 7 ? 7 : 1) {
        struct hed_snap_verdict v;

        if (at % HED_SNAP_BLOCK >= TAIL)
            at += HED_SNAP_BLOCK - at % HED_SNAP_BLOCK;
        if (at >= d.tables)
            break;
        d.bytes[at] ^= 0x10;
        assert_int_equal(hed_snap_verify(r, 1, &v, &why), HED_EFORMAT);
        assert_int_equal(v.bad, 1);
        assert_false(has_memory(r, &m));
        d.bytes[at] ^= 0x10;
    }
    assert_int_equal(hed_snap_verify(r, 1, NULL, &why), 0);
    hed_snap_reader_free(r);
    free_damaged(&d);
}

static void
a_block_of_zeros_is_found(void **state)
{
    struct damaged d = make_snapshot();

    for (uint64_t at = 0; at < d.size; at += HED_SNAP_BLOCK) {
        unsigned char saved[HED_SNAP_BLOCK];
        struct hed_snap_reader *r = NULL;

        memcpy(saved, d.bytes + at, sizeof saved);
        memset(d.bytes + at, 0, sizeof saved);

        int err = hed_snap_reader_open(d.files, d.fd, 0, NULL, NULL, &r, &why);

        err = err ? err : hed_snap_verify(r, 1, NULL, &why);
        assert_int_not_equal(err, 0);
        hed_snap_reader_free(r);
        memcpy(d.bytes + at, saved, sizeof saved);
    }
    free_damaged(&d);
}

static void
a_cut_is_found(void **state)
{
    struct damaged d = make_snapshot();
    unsigned char *all = malloc(d.size);
    const uint64_t size = d.size;

    memcpy(all, d.bytes, size);
    for (uint64_t at = 0; at < size; at += HED_SNAP_BLOCK / 2) {
        disk_cut(d.disk, d.name, at);
        assert_int_not_equal(open_damaged(&d, 0), 0);
        assert_int_not_equal(open_damaged(&d, HED_SNAP_OPEN_PARTIAL), 0);
        disk_cut(d.disk, d.name, size);
        memcpy(disk_bytes(d.disk, d.name, &d.size), all, size);
    }
    assert_int_equal(open_damaged(&d, 0), 0);
    /* So is something behind the end, unless the caller says that it may be there. */
    disk_cut(d.disk, d.name, size + HED_SNAP_BLOCK);
    assert_int_equal(open_damaged(&d, 0), HED_ETRUNC);
    assert_int_equal(open_damaged(&d, HED_SNAP_OPEN_PARTIAL), 0);
    disk_cut(d.disk, d.name, size + 1);
    assert_int_equal(open_damaged(&d, 0), HED_ETRUNC);
    free(all);
    free_damaged(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_flipped_bit_in_a_table_is_found),
    cmocka_unit_test(a_flipped_bit_in_a_payload_is_found),
    cmocka_unit_test(a_block_of_zeros_is_found),
    cmocka_unit_test(a_cut_is_found),
};

HED_UNIT_MAIN(tests)
