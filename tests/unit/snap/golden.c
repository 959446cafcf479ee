/* Tests with the file that is kept of each version of the format: it can be read, and the writer
 * still writes version 1 byte for byte. tests/harness/snap_file.py has made the file. */
#include "unit/snap/made.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct hed_why why;

/* The same content as sample() in snap_file.py. */
static void
put_sample(struct hed_snap_writer *w)
{
    static unsigned char device[3 * 4096 + 1000], zeros[10000], physical[4800], rows[400],
        image[10000];
    const uint32_t counter = 77;

    for (size_t i = 0; i < 4096; i++)
        device[i] = device[2 * 4096 + i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof physical; i++)
        physical[i] = (unsigned char)"physical"[i % 8];
    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (unsigned char)"rows"[i % 4];
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (unsigned char)"image"[i % 5];

    const struct {
        struct hed_snap_extent extent;
        const void *data;
    } table[] = {
        {{.kind = HED_SNAP_DEVICE, .key = 0x200000000000, .size = sizeof device}, device},
        {{.kind = HED_SNAP_DEVICE, .device = 1, .key = 0x200000200000, .size = 10000}, zeros},
        {{.kind = HED_SNAP_PHYSICAL, .key = 7, .size = sizeof physical}, physical},
        {{.kind = HED_SNAP_ARRAY, .key = 9, .context = 3, .size = sizeof rows}, rows},
        {{.kind = HED_SNAP_VARIABLE, .key = 5, .size = 4, .name = "counter"}, &counter},
        {{.kind = HED_SNAP_HOST, .key = 0x7f0000000000, .size = 6}, "pinned"},
        {{.kind = HED_SNAP_FILE, .size = sizeof image, .mode = 0600, .name = "pages-1.img"}, image},
        {{.kind = HED_SNAP_FILE, .name = "empty.img"}, ""},
        {{.kind = HED_SNAP_OBJECTS, .size = 21, .name = "objects"}, "contexts 1\nstreams 2\n"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(hed_snap_extent_put(w, &table[i].extent, table[i].data), 0);
}

static int
open_golden(void)
{
    const int fd = open(getenv("HED_SNAP_GOLDEN"), O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void
version_1_is_read(void **state)
{
    const int fd = open_golden();
    const struct hed_snap_extent counter = {.kind = HED_SNAP_VARIABLE, .key = 5, .name = "counter"};
    struct hed_snap_reader *r = NULL;
    uint32_t value = 0, id = 0;

    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why), 0);
    assert_int_equal(hed_snap_extent_count(r), 9);
    assert_true(hed_snap_extent_find(r, &counter, &id));
    assert_int_equal(hed_snap_chunk_get(r, id, 0, &value, sizeof value, &why), 0);
    assert_int_equal(value, 77);
    assert_int_equal(hed_snap_verify(r, 0, NULL, &why), 0);
    hed_snap_reader_free(r);
    close(fd);
}

static void
version_1_is_written_byte_for_byte(void **state)
{
    const int golden = open_golden(), fd = memfd_create("snapshot", MFD_CLOEXEC);
    struct hed_snap_about about = about_of(1);
    struct hed_snap_writer *w = NULL;

    about.created_ns = UINT64_C(1000000000000000000);
    snprintf(about.address, sizeof about.address, "shm:");
    about.label[0] = '\0';
    assert_int_equal(hed_snap_writer_create(&hed_snap_files_real, fd, &about, NULL, NULL, &w, &why),
                     0);
    put_sample(w);
    assert_int_equal(hed_snap_writer_finish(w, &why), 0);
    hed_snap_writer_free(w);

    const off_t size = lseek(fd, 0, SEEK_END);

    assert_int_equal(size, lseek(golden, 0, SEEK_END));
    for (off_t at = 0; at < size; at += 4096) {
        unsigned char ours[4096], theirs[4096];

        assert_int_equal(pread(fd, ours, sizeof ours, at), sizeof ours);
        assert_int_equal(pread(golden, theirs, sizeof theirs, at), sizeof theirs);
        if (memcmp(ours, theirs, sizeof ours) != 0)
            fail_msg("the block at %lld differs", (long long)at);
    }
    close(golden);
    close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(version_1_is_read),
    cmocka_unit_test(version_1_is_written_byte_for_byte),
};

HED_UNIT_MAIN(tests)
