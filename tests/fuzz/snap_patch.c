/* Fuzz target: a good snapshot, the one that it needs, and a few bytes of both that are changed.
 *
 * The input is a list of changes: where (u16), how many bytes (u8), the bytes. "Where" counts the
 * bytes of superblocks, tables and footers only: everything that a reader has to check. So an input
 * is short, most changes matter, and checksums are correct.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "move/file/files.h"
#include "move/file/format.h"
#include "move/file/reader.h"
#include "move/file/writer.h"
#include "snap_play.h"

#define FILE_MAX (256u << 10) /* bytes */
#define CHUNK 4096u           /* bytes */
#define SUPER_USED 908u       /* bytes before the zeros */
#define FOOTER_USED 88u       /* bytes before the zeros */

/* The good files, as they were written. */
static uint8_t made[2][FILE_MAX];
static size_t made_size[2];

/* What is changed: the same for every input. */
static struct {
    uint8_t file;
    uint32_t at, size;
} parts[6];
static uint32_t parts_bytes;

/* ---- the good files -------------------------------------------------------------------------- */

static ssize_t
made_pread(void *state, int fd, void *p, size_t n, uint64_t at)
{
    (void)state;
    if (at >= made_size[fd])
        return 0;
    n = hed_min(n, made_size[fd] - at);
    memcpy(p, made[fd] + at, n);
    return (ssize_t)n;
}

static ssize_t
made_pwrite(void *state, int fd, const void *p, size_t n, uint64_t at)
{
    (void)state;
    must(at + n <= FILE_MAX);
    memcpy(made[fd] + at, p, n);
    made_size[fd] = hed_max(made_size[fd], at + n);
    return (ssize_t)n;
}

static int
made_sync(void *state, int fd)
{
    (void)state;
    (void)fd;
    return 0;
}

static int
made_length(void *state, int fd, uint64_t *out)
{
    (void)state;
    *out = made_size[fd];
    return 0;
}

static int
made_truncate(void *state, int fd, uint64_t size)
{
    (void)state;
    made_size[fd] = size;
    return 0;
}

static const struct hed_snap_files made_files = {.pread = made_pread,
                                                 .pwrite = made_pwrite,
                                                 .datasync = made_sync,
                                                 .size = made_length,
                                                 .truncate = made_truncate,
                                                 .close = made_sync};

static void
put_extents(struct hed_snap_writer *w, unsigned char seed)
{
    static unsigned char bytes[3 * CHUNK];
    static const struct hed_snap_extent all[] = {
        {.kind = HED_SNAP_DEVICE, .key = 0x201000000000, .size = 3 * CHUNK},
        {.kind = HED_SNAP_PHYSICAL, .key = 7, .size = CHUNK + 1},
        {.kind = HED_SNAP_ARRAY, .key = 9, .context = 5, .size = 17},
        {.kind = HED_SNAP_VARIABLE, .key = 11, .name = "counter", .size = 4},
        {.kind = HED_SNAP_FILE, .mode = 0600, .name = "core-12.img", .size = 2 * CHUNK},
        {.kind = HED_SNAP_OBJECTS, .name = "process", .size = 100},
    };

    for (size_t i = 0; i < sizeof bytes; i++) /* one chunk is zeros, one can be packed */
        bytes[i] = i < CHUNK ? 0 : (unsigned char)(i < 2 * CHUNK ? i / 64 + seed : i * i / 251);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        must(hed_snap_extent_put(w, &all[i], bytes) == 0);
}

static void
make_file(int fd, const struct hed_snap_reader *parent)
{
    struct hed_snap_about about = {.uuid = {(uint8_t)(fd + 1)},
                                   .session = {3},
                                   .epoch = (uint64_t)(2 - fd),
                                   .created_ns = 1,
                                   .chunk_size = CHUNK,
                                   .program = "program"};
    const struct hed_snap_how how = {.zstd = 1};
    struct hed_snap_writer *w = NULL;

    must(hed_snap_writer_create(&made_files, fd, &about, parent, &how, &w, NULL) == 0);
    put_extents(w, (unsigned char)fd);
    must(hed_snap_writer_finish(w, NULL) == 0);
    hed_snap_writer_free(w);
}

static void
add_part(unsigned *count, int fd, uint64_t at, uint64_t size)
{
    parts[*count].file = (uint8_t)fd;
    parts[*count].at = (uint32_t)at;
    parts[(*count)++].size = (uint32_t)size;
    parts_bytes += (uint32_t)size;
}

static void
make_files(void)
{
    struct hed_snap_reader *parent = NULL;
    unsigned count = 0;

    make_file(1, NULL);
    must(hed_snap_reader_open(&made_files, 1, 0, NULL, NULL, &parent, NULL) == 0);
    make_file(0, parent);
    hed_snap_reader_free(parent);
    for (int fd = 0; fd < 2; fd++) {
        const uint64_t end = made_size[fd] - sizeof(struct hed_snap_footer);
        struct hed_snap_footer f;

        memcpy(&f, made[fd] + end, sizeof f);
        add_part(&count, fd, f.tables, end - f.tables);
        add_part(&count, fd, end, FOOTER_USED);
        add_part(&count, fd, 0, SUPER_USED);
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static void
change_byte(uint8_t *files[2], uint32_t where, uint8_t byte)
{
    where %= parts_bytes;
    for (unsigned i = 0;; i++) {
        if (where < parts[i].size) {
            files[parts[i].file][parts[i].at + where] = byte;
            return;
        }
        where -= parts[i].size;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *files[2];

    if (made_size[0] == 0)
        make_files();
    for (int i = 0; i < 2; i++) {
        files[i] = malloc(made_size[i]);
        must(files[i] != NULL);
        memcpy(files[i], made[i], made_size[i]);
    }
    for (size_t at = 0; at + 3 <= size;) {
        const uint32_t where = (uint32_t)data[at] | (uint32_t)data[at + 1] << 8;
        const size_t n = hed_min(data[at + 2], size - at - 3);

        for (size_t i = 0; i < n; i++)
            change_byte(files, where + (uint32_t)i, data[at + 3 + i]);
        at += 3 + n;
    }

    struct snap_input in = {{files[0], files[1]}, {made_size[0], made_size[1]}};

    for (int i = 0; i < 2; i++)
        snap_repair(files[i], made_size[i]);
    snap_play(&in, true);
    free(files[0]);
    free(files[1]);
    return 0;
}
