/* Tests of the snapshot file: what is written is read back, what need not be stored is not, and
 * what cannot be is refused. */
#include "unit/snap/made.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move/file/format.h"

static struct hed_why why;

static int
new_file(void)
{
    const int fd = memfd_create("snapshot", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static struct hed_snap_writer *
begin_file(int fd, const struct hed_snap_reader *parent, const struct hed_snap_how *how,
           uint64_t epoch)
{
    const struct hed_snap_about about = about_of(epoch);
    struct hed_snap_writer *w = NULL;

    assert_int_equal(
        hed_snap_writer_create(&hed_snap_files_real, fd, &about, parent, how, &w, &why), 0);
    return w;
}

static void
end_file(struct hed_snap_writer *w)
{
    assert_int_equal(hed_snap_writer_finish(w, &why), 0);
    hed_snap_writer_free(w);
}

static struct hed_snap_reader *
read_file(int fd)
{
    struct hed_snap_reader *r = NULL;
    const int err = hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why);

    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, 0);
    return r;
}

static void
what_was_put_is_read_back(void **state)
{
    const struct memory m = memory_at(9);
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, NULL, 9);
    const struct hed_snap_extent image = {
        .kind = HED_SNAP_FILE, .size = 10, .mode = 0640, .name = "pages-1.img"};

    assert_int_equal(put_memory(w, &m, false), 0);
    assert_int_equal(hed_snap_extent_put(w, &image, "0123456789"), 0);
    end_file(w);

    struct hed_snap_reader *r = read_file(fd);
    const struct hed_snap_about *a = hed_snap_reader_about(r);
    struct hed_snap_verdict verdict;
    char text[10];
    uint32_t id = 0;

    assert_true(has_memory(r, &m));
    assert_int_equal(hed_snap_extent_count(r), CELLS + 1);
    assert_true(hed_snap_extent_find(r, &image, &id));
    assert_int_equal(hed_snap_extent_at(r, id)->mode, 0640);
    assert_int_equal(hed_snap_chunk_get(r, id, 0, text, 10, &why), 0);
    assert_memory_equal(text, "0123456789", 10);
    assert_true(a->epoch == 9 && a->chunk_size == PIECE && a->pid == 42);
    assert_string_equal(a->program, "./train");
    assert_false(hed_snap_reader_is_partial(r));
    assert_null(hed_snap_extent_at(r, CELLS + 1));
    assert_int_equal(hed_snap_verify(r, 3, &verdict, &why), 0);
    assert_true(verdict.bad == 0 && verdict.blobs > 10);
    hed_snap_reader_free(r);
    close(fd);
}

static void
zeros_and_copies_are_not_stored(void **state)
{
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, NULL, 1);
    static unsigned char same[8 * PIECE], zeros[8 * PIECE];
    const struct hed_snap_extent a = {.kind = HED_SNAP_DEVICE, .key = 1, .size = sizeof same};
    const struct hed_snap_extent b = {.kind = HED_SNAP_DEVICE, .key = 2, .size = sizeof zeros};
    struct hed_snap_sizes sizes;

    for (size_t i = 0; i < 8; i++)
        fill_piece(same + i * PIECE, PIECE, 7);
    assert_int_equal(hed_snap_extent_put(w, &a, same), 0);
    assert_int_equal(hed_snap_extent_put(w, &b, zeros), 0);
    end_file(w);

    struct hed_snap_reader *r = read_file(fd);

    hed_snap_reader_sizes(r, &sizes);
    assert_int_equal(sizes.blobs, 1);
    assert_int_equal(sizes.stored, PIECE);
    assert_int_equal(sizes.zeros, sizeof zeros);
    assert_int_equal(sizes.content, sizeof same + sizeof zeros);
    assert_int_equal(hed_snap_chunk_where(r, 0, 7), HED_SNAP_IN_FILE);
    assert_int_equal(hed_snap_chunk_where(r, 1, 7), HED_SNAP_IS_ZERO);
    assert_int_equal(hed_snap_verify(r, 0, NULL, &why), 0);
    hed_snap_reader_free(r);
    close(fd);
}

static int
open_parent(void *arg, const uint8_t uuid[HED_SNAP_UUID])
{
    (void)uuid;
    return *(int *)arg < 0 ? -1 : dup(*(int *)arg);
}

static void
what_the_parent_has_is_not_stored_again(void **state)
{
    const struct memory before = memory_at(1), after = memory_at(2);
    int first = new_file();
    const int second = new_file();
    struct hed_snap_writer *w = begin_file(first, NULL, NULL, 1);
    struct hed_snap_reader *r = NULL;
    struct hed_snap_sizes sizes;

    assert_int_equal(put_memory(w, &before, false), 0);
    end_file(w);

    struct hed_snap_reader *parent = read_file(first);

    w = begin_file(second, parent, NULL, 2);
    hed_snap_reader_free(parent);
    assert_int_equal(put_memory(w, &after, true), 0);
    end_file(w);
    assert_int_equal(
        hed_snap_reader_open(&hed_snap_files_real, second, 0, open_parent, &first, &r, &why), 0);
    assert_true(has_memory(r, &after));
    hed_snap_reader_sizes(r, &sizes);
    assert_int_equal(sizes.homes, 1);
    assert_true(sizes.blobs <= 2 && sizes.elsewhere > 10 * PIECE);
    assert_int_equal(hed_snap_verify(r, 1, NULL, &why), 0);
    hed_snap_reader_free(r);

    /* Without the parent, its tables can be read, but not its bytes. */
    unsigned char piece[PIECE];

    r = read_file(second);
    assert_false(has_memory(r, &after));
    assert_int_equal(hed_snap_chunk_get(r, 0, 0, piece, PIECE, &why), HED_ENOTFOUND);
    hed_snap_reader_free(r);
    close(first);
    first = -1;
    assert_int_equal(
        hed_snap_reader_open(&hed_snap_files_real, second, 0, open_parent, &first, &r, &why),
        HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "which is not there"));
    close(second);
}

static void
another_parent_is_not_believed(void **state)
{
    const struct memory m = memory_at(1);
    const int first = new_file(), second = new_file();
    int wrong = new_file();
    struct hed_snap_writer *w = begin_file(first, NULL, NULL, 1);
    struct hed_snap_reader *r = NULL;

    assert_int_equal(put_memory(w, &m, false), 0);
    end_file(w);
    w = begin_file(wrong, NULL, NULL, 5);
    end_file(w);

    struct hed_snap_reader *parent = read_file(first);

    w = begin_file(second, parent, NULL, 2);
    hed_snap_reader_free(parent);
    assert_int_equal(put_memory(w, &m, true), 0);
    end_file(w);
    assert_int_equal(
        hed_snap_reader_open(&hed_snap_files_real, second, 0, open_parent, &wrong, &r, &why),
        HED_EFORMAT);
    /* Neither is one that has the UUID, but not the chunks. */
    assert_int_equal(ftruncate(wrong, 0), 0);
    w = begin_file(wrong, NULL, NULL, 1);
    end_file(w);
    assert_int_equal(
        hed_snap_reader_open(&hed_snap_files_real, second, 0, open_parent, &wrong, &r, &why),
        HED_EFORMAT);
    close(first);
    close(second);
    close(wrong);
}

static void
another_writer_continues_a_file(void **state)
{
    const struct hed_snap_how partial = {.partial = true};
    const struct hed_snap_extent image = {.kind = HED_SNAP_FILE, .size = 5, .name = "core.img"};
    const struct memory m = memory_at(3);
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, &partial, 3);
    struct hed_snap_reader *r = NULL;

    assert_int_equal(put_memory(w, &m, false), 0);
    end_file(w);
    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why),
                     HED_ESTATE);
    assert_int_equal(
        hed_snap_reader_open(&hed_snap_files_real, fd, HED_SNAP_OPEN_PARTIAL, NULL, NULL, &r, &why),
        0);
    assert_true(hed_snap_reader_is_partial(r) && has_memory(r, &m));
    hed_snap_reader_free(r);

    const off_t before = lseek(fd, 0, SEEK_END);

    /* A writer that gives up leaves the file as it was. */
    assert_int_equal(hed_snap_writer_append(&hed_snap_files_real, fd, NULL, NULL, &w, &why), 0);
    assert_int_equal(hed_snap_extent_put(w, &image, "image"), 0);
    hed_snap_writer_free(w);
    assert_int_equal(lseek(fd, 0, SEEK_END), before);

    /* One that dies leaves bytes behind, which the next one removes. */
    assert_int_equal(pwrite(fd, &m, sizeof m, before), sizeof m);
    assert_int_equal(hed_snap_writer_append(&hed_snap_files_real, fd, NULL, NULL, &w, &why), 0);
    assert_int_equal(hed_snap_extent_put(w, &image, "image"), 0);
    assert_int_equal(hed_snap_writer_finish(w, &why), 0);
    assert_int_equal(hed_snap_writer_finish(w, &why), HED_ESTATE);
    hed_snap_writer_free(w);
    r = read_file(fd);
    assert_true(has_memory(r, &m));
    assert_int_equal(hed_snap_extent_count(r), CELLS + 1);
    assert_int_equal(hed_snap_verify(r, 2, NULL, &why), 0);
    hed_snap_reader_free(r);

    /* Cut to its first half, it is found to be partial. */
    assert_int_equal(ftruncate(fd, before), 0);
    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why),
                     HED_ESTATE);
    close(fd);
}

static void
files_are_put_from_descriptors(void **state)
{
    const int fd = new_file(), from = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, NULL, 1);
    struct hed_snap_extent image = {.kind = HED_SNAP_FILE, .size = PIECE + 9, .name = "a.img"};
    unsigned char piece[PIECE + 9], back[PIECE];

    fill_piece(piece, sizeof piece, 77);
    assert_int_equal(write(from, piece, sizeof piece), sizeof piece);
    assert_int_equal(hed_snap_extent_put_file(w, &image, from), 0);
    end_file(w);

    struct hed_snap_reader *r = read_file(fd);

    assert_int_equal(hed_snap_chunk_get(r, 0, 1, back, 9, &why), 0);
    assert_memory_equal(back, piece + PIECE, 9);
    hed_snap_reader_free(r);

    /* A file that is shorter than it was said to be spoils the snapshot. */
    assert_int_equal(ftruncate(fd, 0), 0);
    w = begin_file(fd, NULL, NULL, 1);
    image.size = 3 * PIECE;
    assert_string_equal(hed_snap_writer_reason(w), "");
    assert_int_equal(hed_snap_extent_put_file(w, &image, from), HED_ETRUNC);
    assert_non_null(strstr(hed_snap_writer_reason(w), "cannot read a file"));
    assert_int_equal(hed_snap_writer_finish(w, &why), HED_ETRUNC);
    hed_snap_writer_free(w);
    close(fd);
    close(from);
}

static void
packed_chunks_are_smaller_and_read_back(void **state)
{
    const struct hed_snap_how how = {.zstd = 1};
    struct hed_snap_about about = about_of(1);
    const int fd = new_file();
    struct hed_snap_writer *w = NULL;
    static unsigned char text[300000], back[1 << 16];
    const struct hed_snap_extent e = {.kind = HED_SNAP_DEVICE, .key = 1, .size = sizeof text};
    struct hed_snap_sizes sizes;

    about.chunk_size = 1 << 16;
    if (!hed_snap_has_zstd()) {
        assert_int_equal(
            hed_snap_writer_create(&hed_snap_files_real, fd, &about, NULL, &how, &w, &why),
            HED_ENOTSUP);
        close(fd);
        skip();
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i / 1000);
    assert_int_equal(hed_snap_writer_create(&hed_snap_files_real, fd, &about, NULL, &how, &w, &why),
                     0);
    assert_int_equal(hed_snap_extent_put(w, &e, text), 0);
    end_file(w);

    struct hed_snap_reader *r = read_file(fd);

    hed_snap_reader_sizes(r, &sizes);
    assert_true(sizes.stored < sizeof text / 10);
    for (uint32_t i = 0; i < hed_snap_chunk_count(r, 0); i++) {
        const size_t n = hed_snap_chunk_length(r, 0, i);

        assert_int_equal(hed_snap_chunk_get(r, 0, i, back, n, &why), 0);
        assert_memory_equal(back, text + ((size_t)i << 16), n);
    }
    assert_int_equal(hed_snap_verify(r, 0, NULL, &why), 0);
    hed_snap_reader_free(r);
    close(fd);
}

/* ---- many threads ---------------------------------------------------------------------------- */

#define PUTTERS 4
#define PUTS 400

struct putter {
    struct hed_snap_writer *writer;
    uint32_t first;
};

static void *
put_some(void *arg)
{
    const struct putter *p = arg;
    unsigned char piece[PIECE];

    for (uint32_t i = p->first; i < PUTS; i += PUTTERS) {
        fill_piece(piece, PIECE, 1 + i % 300); /* some are the same */
        if (hed_snap_chunk_put(p->writer, 0, i, piece, PIECE, NULL) != 0)
            return arg;
    }
    return NULL;
}

static void
threads_put_chunks_at_once(void **state)
{
    const struct hed_snap_how how = {.zstd = hed_snap_has_zstd()};
    const struct hed_snap_extent e = {
        .kind = HED_SNAP_DEVICE, .key = 1, .size = (uint64_t)PUTS * PIECE};
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, &how, 1);
    struct putter putters[PUTTERS];
    pthread_t threads[PUTTERS];
    unsigned char piece[PIECE], expected[PIECE];
    uint32_t id;

    assert_int_equal(hed_snap_extent_begin(w, &e, &id), 0);
    for (uint32_t i = 0; i < PUTTERS; i++) {
        putters[i] = (struct putter){w, i};
        assert_int_equal(pthread_create(&threads[i], NULL, put_some, &putters[i]), 0);
    }
    for (uint32_t i = 0; i < PUTTERS; i++) {
        void *failed = NULL;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    end_file(w);

    struct hed_snap_reader *r = read_file(fd);

    for (uint32_t i = 0; i < PUTS; i++) {
        fill_piece(expected, PIECE, 1 + i % 300);
        assert_int_equal(hed_snap_chunk_get(r, 0, i, piece, PIECE, &why), 0);
        assert_memory_equal(piece, expected, PIECE);
    }
    assert_int_equal(hed_snap_verify(r, 4, NULL, &why), 0);
    hed_snap_reader_free(r);
    close(fd);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void
a_writer_refuses_what_cannot_be(void **state)
{
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, NULL, 1);
    struct hed_snap_extent e = {.kind = HED_SNAP_DEVICE, .key = 1, .size = PIECE};
    const struct hed_snap_hash unknown = {{1, 2}};
    unsigned char piece[PIECE] = {1};
    uint32_t id;

    assert_int_equal(hed_snap_extent_begin(w, &e, &id), 0);
    assert_int_equal(hed_snap_extent_begin(w, &e, &id), HED_EEXIST);
    e.key = 2;
    e.size = HED_SNAP_EXTENT_MAX + 1;
    assert_int_equal(hed_snap_extent_begin(w, &e, &id), HED_ELIMIT);
    for (const char *const *name = (const char *const[]){"", ".", "..", "a/b", NULL}; *name;
         name++) {
        e = (struct hed_snap_extent){.kind = HED_SNAP_FILE, .size = 1, .name = *name};
        assert_int_equal(hed_snap_extent_begin(w, &e, &id), HED_EINVAL);
    }
    e = (struct hed_snap_extent){.kind = 99, .size = 1};
    assert_int_equal(hed_snap_extent_begin(w, &e, &id), HED_EINVAL);
    assert_int_equal(hed_snap_chunk_put(w, 0, 0, piece, PIECE - 1, NULL), HED_EINVAL);
    assert_int_equal(hed_snap_chunk_put(w, 0, 1, piece, PIECE, NULL), HED_EINVAL);
    assert_int_equal(hed_snap_chunk_put(w, 1, 0, piece, PIECE, NULL), HED_EINVAL);
    assert_int_equal(hed_snap_chunk_same(w, 0, 0, &unknown), HED_ENOTFOUND);
    assert_false(hed_snap_writer_has(w, &unknown, PIECE));
    assert_int_equal(hed_snap_chunk_put(w, 0, 0, piece, PIECE, NULL), 0);
    assert_int_equal(hed_snap_chunk_put(w, 0, 0, piece, PIECE, NULL), HED_EEXIST);
    end_file(w);
    close(fd);
}

static void
a_chunk_that_was_not_put_is_missed(void **state)
{
    const int fd = new_file();
    struct hed_snap_writer *w = begin_file(fd, NULL, NULL, 1);
    const struct hed_snap_extent e = {.kind = HED_SNAP_DEVICE, .key = 1, .size = 2 * PIECE};
    unsigned char piece[PIECE] = {1};
    struct hed_snap_reader *r = NULL;
    uint32_t id;

    assert_int_equal(hed_snap_extent_begin(w, &e, &id), 0);
    assert_int_equal(hed_snap_chunk_put(w, id, 0, piece, PIECE, NULL), 0);
    assert_int_equal(hed_snap_writer_finish(w, &why), HED_ESTATE);
    assert_non_null(strstr(why.text, "chunk 1 of extent 0 was not written"));
    hed_snap_writer_free(w);
    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why),
                     HED_ETRUNC);
    close(fd);
}

static void
files_that_are_no_snapshots_are_refused(void **state)
{
    const int fd = new_file();
    struct hed_snap_reader *r = NULL;

    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why),
                     HED_ETRUNC);
    assert_int_equal(ftruncate(fd, 3 * PIECE), 0);
    assert_int_equal(hed_snap_reader_open(&hed_snap_files_real, fd, 0, NULL, NULL, &r, &why),
                     HED_EFORMAT);
    assert_non_null(strstr(why.text, "not a snapshot"));
    close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_put_is_read_back),
    cmocka_unit_test(zeros_and_copies_are_not_stored),
    cmocka_unit_test(what_the_parent_has_is_not_stored_again),
    cmocka_unit_test(another_parent_is_not_believed),
    cmocka_unit_test(another_writer_continues_a_file),
    cmocka_unit_test(files_are_put_from_descriptors),
    cmocka_unit_test(packed_chunks_are_smaller_and_read_back),
    cmocka_unit_test(threads_put_chunks_at_once),
    cmocka_unit_test(a_writer_refuses_what_cannot_be),
    cmocka_unit_test(a_chunk_that_was_not_put_is_missed),
    cmocka_unit_test(files_that_are_no_snapshots_are_refused),
};

HED_UNIT_MAIN(tests)
