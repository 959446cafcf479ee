/* Many threads on many devices do everything at once, for as long as asked.
 *
 *   stress [SECONDS [DEVICES [THREADS [SEED [ACTION...]]]]]
 *
 * Every thread of every device picks actions at random and checks their results. A failed check
 * ends the program with a message. When the time is up, all memory of the devices must be free
 * again. If nothing happens for a minute, the program prints what each thread was doing and aborts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../harness/patience.h"
#include "stress.h"

#define THREADS_MAX 1024

static const struct action {
    const char *name;
    void (*run)(struct worker *w);
} actions[] = {
    {"plain", act_plain},
    {"pitched", act_pitched},
    {"async", act_async},
    {"pool", act_pool},
    {"host", act_host},
    {"managed", act_managed},
    {"virtual", act_virtual},
    {"array", act_array},
    {"peer", act_peer},
    {"barrier", act_barrier},
    {"atomics", act_atomics},
    {"grid_spin", act_grid_spin},
    {"shuffle", act_shuffle},
    {"events", act_events},
    {"streams", act_streams},
    {"defaults", act_defaults},
    {"host_function", act_host_function},
    {"capture", act_capture},
    {"graph", act_graph},
    {"module", act_module},
    {"library", act_library},
    {"context", act_context},
    {"primary", act_primary},
    {"failure", act_failure},
    {"thread", act_thread},
};
#define ACTIONS (sizeof actions / sizeof *actions)

static struct device devices[DEVICES_MAX];
static struct worker workers[THREADS_MAX];
static const struct action *chosen[ACTIONS];
static uint32_t chosen_count;
static _Atomic bool stop;

_Noreturn void
stress_fail(const struct worker *w, const char *file, int line, const char *what, long long got,
            long long expected)
{
    fprintf(stderr, "%s:%d: thread %d on device %d: %s: %lld, not %lld\n", file, line, w->index,
            w->device, what, got, expected);
    _exit(1);
}

void
stress_check(const struct worker *w, const char *file, int line, const uint32_t *words, uint32_t n,
             uint32_t first, uint32_t step)
{
    for (uint32_t i = 0; i < n; i++) {
        if (words[i] != first + i * step) {
            fprintf(stderr, "word %u of %u is wrong\n", i, n);
            stress_fail(w, file, line, "a word", words[i], first + i * step);
        }
    }
}

uint32_t
stress_random(struct worker *w, uint32_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 32) % n;
}

CUstream
stress_stream(struct worker *w)
{
    return w->streams[stress_random(w, STREAMS)];
}

struct device *
stress_device(struct worker *w)
{
    return &w->devices[w->device];
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    void *pinned;

    MUST(w, cuCtxSetCurrent(stress_device(w)->primary));
    for (int i = 0; i < STREAMS; i++)
        MUST(w, cuStreamCreate(&w->streams[i], CU_STREAM_NON_BLOCKING));
    MUST(w, cuMemAllocHost_v2(&pinned, WORDS_MAX * 4));
    w->pinned = pinned;
    w->host = malloc(WORDS_MAX * 4);
    SAME(w, w->host != NULL, true);
    /* Relaxed: main only needs the threads to see it soon, and joins them. */
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        const struct action *a = chosen[stress_random(w, chosen_count)];

        atomic_store_explicit(&w->doing, a->name, memory_order_relaxed);
        a->run(w);
        atomic_fetch_add_explicit(&w->done, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&w->doing, "end", memory_order_relaxed);
    for (int i = 0; i < STREAMS; i++)
        MUST(w, cuStreamDestroy_v2(w->streams[i]));
    MUST(w, cuMemFreeHost(w->pinned));
    free(w->host);
    return NULL;
}

static uint64_t
total(int count)
{
    uint64_t n = 0;

    for (int i = 0; i < count; i++)
        n += atomic_load_explicit(&workers[i].done, memory_order_relaxed);
    return n;
}

static long
resident_kib(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f && fscanf(f, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static _Noreturn void
give_up(int count)
{
    for (int i = 0; i < count; i++)
        fprintf(stderr, "thread %d on device %d has done %llu, and is at %s\n", i,
                workers[i].device, (unsigned long long)workers[i].done, workers[i].doing);
    fprintf(stderr, "nothing happens any more\n");
    abort();
}

/* Watches the threads until the time is up. */
static void
watch(int count, long seconds)
{
    uint64_t before = 0;
    int quiet = 0;

    for (long t = 1; t <= seconds; t++) {
        sleep(1);

        const uint64_t now = total(count);

        quiet = now == before ? quiet + 1 : 0;
        before = now;
        if (quiet >= PATIENCE_S)
            give_up(count);
        if (t % 10 == 0)
            printf("%ld s: %llu actions, %ld KiB\n", t, (unsigned long long)now, resident_kib());
        fflush(stdout);
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
}

static void
open_device(struct worker *w, int i)
{
    struct device *d = &devices[i];
    size_t all;

    MUST(w, cuDeviceGet(&d->device, i));
    MUST(w, cuDevicePrimaryCtxRetain(&d->primary, d->device));
    MUST(w, cuCtxSetCurrent(d->primary));
    MUST(w, cuModuleLoadData(&d->module, stress_ptx));
    MUST(w, cuMemGetInfo_v2(&d->free_before, &all));
}

static void
close_device(struct worker *w, int i)
{
    struct device *d = &devices[i];
    size_t all, left;
    CUmemoryPool pool;

    MUST(w, cuCtxSetCurrent(d->primary));
    MUST(w, cuCtxSynchronize());
    MUST(w, cuDeviceGetDefaultMemPool(&pool, d->device));
    MUST(w, cuMemPoolTrimTo(pool, 0));
    MUST(w, cuMemGetInfo_v2(&left, &all));
    w->device = i;
    SAME(w, left, d->free_before);
    MUST(w, cuModuleUnload(d->module));
    MUST(w, cuDevicePrimaryCtxRelease_v2(d->device));
}

static void
choose_actions(int argc, char **argv)
{
    for (size_t i = 0; i < ACTIONS; i++) {
        bool wanted = argc <= 5;

        for (int a = 5; a < argc; a++)
            wanted = wanted || strcmp(argv[a], actions[i].name) == 0;
        if (wanted)
            chosen[chosen_count++] = &actions[i];
    }
}

static long
argument(int argc, char **argv, int i, long otherwise)
{
    return argc > i ? strtol(argv[i], NULL, 10) : otherwise;
}

int
main(int argc, char **argv)
{
    const long seconds = argument(argc, argv, 1, 5), seed = argument(argc, argv, 4, time(NULL));
    const int wanted = (int)argument(argc, argv, 2, 8), each = (int)argument(argc, argv, 3, 8);
    struct worker self = {.index = -1};
    int count = 0;

    choose_actions(argc, argv);
    MUST(&self, cuInit(0));
    MUST(&self, cuDeviceGetCount(&count));
    SAME(&self,
         wanted >= 1 && wanted <= count && wanted <= DEVICES_MAX && each >= 1 &&
             wanted * each <= THREADS_MAX && chosen_count > 0,
         true);
    printf("seed %ld\n", seed);
    for (int i = 0; i < wanted; i++)
        open_device(&self, i);
    for (int i = 0; i < wanted * each; i++) {
        struct worker *w = &workers[i];

        w->devices = devices;
        w->device_count = wanted;
        w->device = i % wanted;
        w->index = i;
        w->random = ((uint64_t)seed << 32) + (uint64_t)i * 2654435761u + 1;
        SAME(w, pthread_create(&w->thread, NULL, worker_main, w), 0);
    }
    watch(wanted * each, seconds);
    for (int i = 0; i < wanted * each; i++)
        SAME(&self, pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < wanted; i++)
        close_device(&self, i);
    printf("%llu actions by %d threads, all right\n", (unsigned long long)total(wanted * each),
           wanted * each);
    return 0;
}
