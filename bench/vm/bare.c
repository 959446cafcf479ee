/* What can a guest do at best? The primitives under `vm:`, with nothing of heddle in between.
 *
 *     bare ram MEGABYTES                  memcpy from memory to memory
 *     bare window FILE OFFSET MEGABYTES   memcpy into the window, and out of it
 *     bare ping FILE OFFSET               round trips of a word, both sides polling; guest's side
 *     bare pong FILE OFFSET               the host's side, until the other side has enough
 *
 * FILE is the window: on the host a file, in the guest resource2_wc of the device. Prints
 * `bare/name value unit` as remote_calls does, with as many batches.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define BATCHES 200
#define TRIPS 200
#define COPIES 7
#define PIECE ((size_t)64 << 10)
#define ENOUGH UINT32_MAX

struct words {
    _Alignas(128) _Atomic uint32_t there;
    _Alignas(128) _Atomic uint32_t back;
};

static _Noreturn void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void *
map_file(const char *path, const char *offset, size_t size)
{
    const int fd = open(path, O_RDWR);

    if (fd < 0)
        die(path);

    void *p =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)strtoull(offset, NULL, 10));

    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

static int
by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
ping(struct words *w)
{
    double us[BATCHES];
    uint32_t n = 0;

    for (int b = 0; b < BATCHES; b++) {
        const uint64_t begin = hed_now_ns();

        for (int i = 0; i < TRIPS; i++) {
            n++;
            /* release and acquire: pong() on the other side, as if the word had data with it */
            atomic_store_explicit(&w->there, n, memory_order_release);
            while (atomic_load_explicit(&w->back, memory_order_acquire) != n) {
            }
        }
        us[b] = (double)(hed_now_ns() - begin) / 1e3 / TRIPS;
    }
    atomic_store_explicit(&w->there, ENOUGH, memory_order_release);
    qsort(us, BATCHES, sizeof us[0], by_size);
    printf("bare/ping %.3f us\nbare/ping_best %.3f us\n", us[BATCHES / 2], us[0]);
}

static void
pong(struct words *w)
{
    uint32_t seen = 0, n;

    atomic_store_explicit(&w->back, 0, memory_order_relaxed); /* before "here", below */
    atomic_store_explicit(&w->there, 0, memory_order_seq_cst);
    puts("here");
    fflush(stdout);
    do {
        /* release and acquire: ping() */
        n = atomic_load_explicit(&w->there, memory_order_acquire);
        if (n == seen || n == ENOUGH)
            continue;
        seen = n;
        atomic_store_explicit(&w->back, n, memory_order_release);
    } while (n != ENOUGH);
}

static void
time_memcpy(const char *name, void *to, const void *from, size_t bytes)
{
    double best = 0;

    for (int i = 0; i < COPIES; i++) {
        const uint64_t begin = hed_now_ns();

        memcpy(to, from, bytes);

        const double speed = (double)bytes / (double)(hed_now_ns() - begin);

        best = speed > best ? speed : best;
    }
    printf("bare/%s %.2f GB/s\n", name, best);
}

static char *
make_memory(size_t bytes)
{
    char *p = malloc(bytes);

    if (!p)
        die("malloc");
    memset(p, 1, bytes);
    return p;
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const size_t bytes = (size_t)strtoull(argv[argc - 1], NULL, 10) << 20;

    if (argc == 3 && strcmp(what, "ram") == 0) {
        char *from = make_memory(bytes), *to = make_memory(bytes);

        time_memcpy("ram", to, from, bytes);
    } else if (argc == 5 && strcmp(what, "window") == 0) {
        char *window = map_file(argv[2], argv[3], bytes), *memory = make_memory(bytes);

        time_memcpy("window_in", window, memory, bytes);
        time_memcpy("window_out", memory, window, bytes);
    } else if (argc == 4 && strcmp(what, "ping") == 0) {
        ping(map_file(argv[2], argv[3], PIECE));
    } else if (argc == 4 && strcmp(what, "pong") == 0) {
        pong(map_file(argv[2], argv[3], PIECE));
    } else {
        return 2;
    }
    return 0;
}
