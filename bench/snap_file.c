/* How fast are snapshot files written, read and verified, beside plain write() and read()?
 *
 *     bench_snap_file [FOLDER] [MIB] [THREADS]
 *
 * Prints `name value unit` lines; `x` rows are ratios to the plain way of the same run. Rates count
 * the bytes of content. Nothing is synced in the plain way, and the snapshot's syncs are outside of
 * the measured time, except in the row that says so. The file stays in the page cache.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "move/file/files.h"
#include "move/file/writer.h"

#define CHUNK ((size_t)HED_SNAP_CHUNK)
#define THREADS_MAX 64
#define ROUNDS 5 /* the best counts, because these machines are noisy */

static unsigned char *content; /* of the "device" */
static uint64_t total;         /* bytes */
static unsigned threads = 1;
static struct hed_why why;

static void
must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", what, why.text);
        exit(1);
    }
}

/* ---- the same work by several threads -------------------------------------------------------- */

struct job {
    void (*work)(struct job *j, uint32_t chunk, unsigned char *piece);
    struct hed_snap_writer *writer;
    struct hed_snap_reader *reader;
    const struct hed_snap_hash *hashes;
    int fd;
    unsigned thread; /* in copies of the job */
};

static void *
do_share(void *arg)
{
    struct job *j = arg;
    unsigned char *piece = aligned_alloc(4096, CHUNK);

    memset(piece, 1, CHUNK);
    for (uint32_t i = j->thread; i < total / CHUNK; i += threads)
        j->work(j, i, piece);
    free(piece);
    return NULL;
}

static double
seconds_of(const struct job *job)
{
    struct job jobs[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    const uint64_t began = hed_now_ns();

    for (unsigned i = 0; i < threads; i++) {
        jobs[i] = *job;
        jobs[i].thread = i;
        must(pthread_create(&ids[i], NULL, do_share, &jobs[i]) == 0, "thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return (double)(hed_now_ns() - began) * 1e-9;
}

static void
plain_write(struct job *j, uint32_t i, unsigned char *piece)
{
    must(pwrite(j->fd, content + i * CHUNK, CHUNK, (off_t)(i * CHUNK)) == (ssize_t)CHUNK, "write");
}

static void
plain_read(struct job *j, uint32_t i, unsigned char *piece)
{
    must(pread(j->fd, piece, CHUNK, (off_t)(i * CHUNK)) == (ssize_t)CHUNK, "read");
}

static void
snap_write(struct job *j, uint32_t i, unsigned char *piece)
{
    const struct hed_snap_hash *hash = j->hashes ? &j->hashes[i] : NULL;

    must(hed_snap_chunk_put(j->writer, 0, i, content + i * CHUNK, CHUNK, hash) == 0, "put");
}

static void
snap_same(struct job *j, uint32_t i, unsigned char *piece)
{
    must(hed_snap_chunk_same(j->writer, 0, i, &j->hashes[i]) == 0, "same");
}

static void
snap_get(struct job *j, uint32_t i, unsigned char *piece)
{
    must(hed_snap_chunk_get(j->reader, 0, i, piece, CHUNK, &why) == 0, "get");
}

static void
snap_read(struct job *j, uint32_t i, unsigned char *piece)
{
    must(hed_snap_chunk_read(j->reader, 0, i, piece, CHUNK, &why) == 0, "read");
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
scratch_file(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/bench-snap-XXXXXX", folder);

    const int fd = mkstemp(path);

    must(fd >= 0, path);
    unlink(path);
    return fd;
}

/* Writes a snapshot. Returns the seconds for its chunks; *finish for its end. */
static double
write_snapshot(int fd, const struct hed_snap_reader *parent, int zstd,
               const struct hed_snap_hash *hashes, bool same, double *finish)
{
    const struct hed_snap_about about = {.epoch = 1};
    const struct hed_snap_how how = {.zstd = zstd};
    const struct hed_snap_extent e = {.kind = HED_SNAP_DEVICE, .key = 1, .size = total};
    struct job j = {.work = same ? snap_same : snap_write, .hashes = hashes};
    uint32_t id;

    must(ftruncate(fd, 0) == 0, "truncate");
    must(hed_snap_writer_create(&hed_snap_files_real, fd, &about, parent, &how, &j.writer, &why) ==
                 0 &&
             hed_snap_extent_begin(j.writer, &e, &id) == 0,
         "create");

    const double seconds = seconds_of(&j);
    const uint64_t began = hed_now_ns();

    must(hed_snap_writer_finish(j.writer, &why) == 0, "finish");
    *finish = (double)(hed_now_ns() - began) * 1e-9;
    hed_snap_writer_free(j.writer);
    return seconds;
}

static void
keep_best(double *best, double seconds)
{
    if (*best == 0 || seconds < *best)
        *best = seconds;
}

static void
print_rate(const char *name, double seconds, double plain)
{
    printf("%s %.2f GB/s\n", name, (double)total / seconds * 1e-9);
    if (plain > 0)
        printf("%s_vs_plain %.2f x\n", name, seconds / plain);
}

static void
run_rounds(const char *folder)
{
    const int plain = scratch_file(folder), snap = scratch_file(folder),
              next = scratch_file(folder);
    struct hed_snap_hash *hashes = calloc(total / CHUNK, sizeof *hashes);
    double w = 0, r = 0, put = 0, given = 0, packed = 0, same = 0, sync = 0, get = 0, raw = 0,
           verify = 0, finish, hashed = 0;

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t began = hed_now_ns();

        for (uint64_t i = 0; i < total / CHUNK; i++)
            hed_snap_hash(content + i * CHUNK, CHUNK, &hashes[i]);
        keep_best(&hashed, (double)(hed_now_ns() - began) * 1e-9);
        must(ftruncate(plain, 0) == 0, "truncate");
        keep_best(&w, seconds_of(&(struct job){.work = plain_write, .fd = plain}));
        keep_best(&r, seconds_of(&(struct job){.work = plain_read, .fd = plain}));
        keep_best(&put, write_snapshot(snap, NULL, 0, NULL, false, &finish));
        if (hed_snap_has_zstd() && round == 0)
            keep_best(&packed, write_snapshot(snap, NULL, 1, hashes, false, &finish));
        keep_best(&given, write_snapshot(snap, NULL, 0, hashes, false, &finish));
        keep_best(&sync, finish);

        struct job j = {.work = snap_get};

        must(hed_snap_reader_open(&hed_snap_files_real, snap, 0, NULL, NULL, &j.reader, &why) == 0,
             "open");
        keep_best(&get, seconds_of(&j));
        j.work = snap_read;
        keep_best(&raw, seconds_of(&j));

        const uint64_t verifying = hed_now_ns();

        must(hed_snap_verify(j.reader, threads, NULL, &why) == 0, "verify");
        keep_best(&verify, (double)(hed_now_ns() - verifying) * 1e-9);
        keep_best(&same, write_snapshot(next, j.reader, 0, hashes, true, &finish));
        hed_snap_reader_free(j.reader);
    }
    print_rate("hash_one_thread", hashed, 0);
    print_rate("plain_write", w, 0);
    print_rate("put_hash_here", put, w);
    print_rate("put_hash_given", given, w);
    if (packed > 0)
        print_rate("put_zstd_1", packed, w);
    printf("sync_and_end %.3f s\n", sync);
    printf("put_same %.2f us/chunk\n", same * 1e6 / (double)(total / CHUNK));
    print_rate("plain_read", r, 0);
    print_rate("get_checked", get, r);
    print_rate("get_unchecked", raw, r);
    print_rate("verify", verify, r);
    free(hashes);
}

int
main(int argc, char **argv)
{
    uint64_t mib = 512, n = 1, x = 88172645463325252;

    if ((argc > 2 && hed_parse_u64(argv[2], &mib) != 0) ||
        (argc > 3 && hed_parse_u64(argv[3], &n) != 0) || mib < 2 || n < 1 || n > THREADS_MAX) {
        fprintf(stderr, "usage: bench_snap_file [FOLDER] [MIB] [THREADS]\n");
        return 2;
    }
    threads = (unsigned)n;
    total = mib << 20 & ~(uint64_t)(CHUNK - 1);
    content = malloc(total);
    must(content != NULL, "memory");
    for (uint64_t i = 0; i < total / 8; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(content + 8 * i, &x, 8);
    }
    run_rounds(argc > 1 ? argv[1] : "/tmp");
    free(content);
    return 0;
}
