/* What the machine allows a snapshot: copies between device and host memory, on the device, hashing
 * on the device, and getting host memory ready.
 *
 *   HED_LIBCUDA=/path/to/libcuda.so.1 limits [GIB]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "library.h"
#include "move/file/hash.h"

#define GIB ((size_t)1 << 30)
#define CHUNK ((size_t)2 << 20)
#define THREADS_MAX 16

static double
now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
report(const char *what, size_t bytes, double seconds)
{
    printf("%-48s %8.3f s %9.2f GB/s\n", what, seconds, (double)bytes / seconds * 1e-9);
    (void)fflush(stdout);
}

/* ---- host memory ----------------------------------------------------------------------------- */

enum job { JOB_TOUCH, JOB_COPY, JOB_PIN };

struct part {
    enum job job;
    char *at;
    const char *from;
    size_t size;
    CUcontext context;
};

static void *
run_part(void *arg)
{
    struct part *p = arg;

    if (p->job == JOB_TOUCH)
        for (size_t i = 0; i < p->size; i += 4096)
            *(volatile char *)(p->at + i) = 1;
    else if (p->job == JOB_COPY)
        memcpy(p->at, p->from, p->size);
    else {
        MUST(CU(cuCtxSetCurrent)(p->context));
        MUST(CU(cuMemHostRegister_v2)(p->at, p->size, CU_MEMHOSTREGISTER_PORTABLE));
    }
    return NULL;
}

static double
in_threads(enum job job, char *at, const char *from, size_t size, int threads)
{
    pthread_t t[THREADS_MAX];
    struct part parts[THREADS_MAX];
    CUcontext c = NULL;
    const double begin = now();

    (void)CU(cuCtxGetCurrent)(&c);
    for (int i = 0; i < threads; i++) {
        const size_t each = size / (size_t)threads;

        parts[i] = (struct part){job, at + each * (size_t)i, from ? from + each * (size_t)i : NULL,
                                 each, c};
        (void)pthread_create(&t[i], NULL, run_part, &parts[i]);
    }
    for (int i = 0; i < threads; i++)
        (void)pthread_join(t[i], NULL);
    return now() - begin;
}

static void
unpin(char *p, size_t size, int threads)
{
    for (int i = 0; i < threads; i++)
        (void)CU(cuMemHostUnregister)(p + size / (size_t)threads * (size_t)i);
}

/* Memory of a kind: 0 private, 1 private huge, 2 memfd, 3 memfd huge. */
static char *
new_memory(int kind, size_t size)
{
    char *p;

    if (kind < 2) {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
        const int fd = memfd_create("bench", 0);

        if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
            return NULL;
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)close(fd);
    }
    if (p == MAP_FAILED)
        return NULL;
    if (kind % 2)
        (void)madvise(p, size, MADV_HUGEPAGE);
    return p;
}

static void
measure_host(size_t size)
{
    static const char *const kinds[] = {"private", "private huge", "memfd", "memfd huge"};
    char what[96];

    for (int kind = 0; kind < 4; kind++)
        for (int threads = 1; threads <= THREADS_MAX; threads *= 4) {
            char *p = new_memory(kind, size);

            if (!p)
                return;
            (void)snprintf(what, sizeof what, "touch %s, %d threads", kinds[kind], threads);
            report(what, size, in_threads(JOB_TOUCH, p, NULL, size, threads));
            (void)snprintf(what, sizeof what, "pin %s, touched, %d threads", kinds[kind], threads);
            report(what, size, in_threads(JOB_PIN, p, NULL, size, threads));
            unpin(p, size, threads);
            (void)munmap(p, size);
        }
}

static void
measure_memcpy(size_t size)
{
    char *a = new_memory(1, size), *b = new_memory(1, size);
    char what[96];

    (void)in_threads(JOB_TOUCH, a, NULL, size, THREADS_MAX);
    (void)in_threads(JOB_TOUCH, b, NULL, size, THREADS_MAX);
    for (int threads = 1; threads <= THREADS_MAX; threads *= 2) {
        (void)snprintf(what, sizeof what, "memcpy, %d threads", threads);
        report(what, size, in_threads(JOB_COPY, a, b, size, threads));
    }

    struct hed_snap_hash h;
    const double begin = now();

    for (size_t at = 0; at < GIB; at += CHUNK)
        hed_snap_hash(a + at, CHUNK, &h);
    report("hash in C, 1 thread", GIB, now() - begin);
    (void)munmap(a, size);
    (void)munmap(b, size);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void
measure_copy(const char *what, bool in, CUdeviceptr d, char *p, size_t size, size_t piece)
{
    double best = 1e9;
    CUstream s;

    MUST(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++) {
        const double begin = now();

        for (size_t at = 0; at < size; at += piece)
            MUST(in ? CU(cuMemcpyHtoDAsync_v2)(d + at, p + at, piece, s)
                    : CU(cuMemcpyDtoHAsync_v2)(p + at, d + at, piece, s));
        MUST(CU(cuStreamSynchronize)(s));
        if (now() - begin < best)
            best = now() - begin;
    }
    report(what, size, best);
    MUST(CU(cuStreamDestroy_v2)(s));
}

/* Memory as heddle's worker makes it. */
static CUdeviceptr
map_device(size_t size)
{
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc_v1 access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr at;
    const double begin = now();

    MUST(CU(cuMemAddressReserve)(&at, size, 0, 0, 0));
    MUST(CU(cuMemCreate)(&h, size, &prop, 0));
    MUST(CU(cuMemMap)(at, size, 0, h, 0));
    MUST(CU(cuMemSetAccess)(at, size, &access, 1));
    report("create and map device memory", size, now() - begin);
    return at;
}

static void
measure_copies(CUdeviceptr d, size_t size)
{
    char *pinned = NULL;
    double begin = now();

    MUST(CU(cuMemHostAlloc)((void **)&pinned, size, CU_MEMHOSTALLOC_PORTABLE));
    report("cuMemHostAlloc", size, now() - begin);
    measure_copy("to host, cuMemHostAlloc", false, d, pinned, size, size);
    measure_copy("to device, cuMemHostAlloc", true, d, pinned, size, size);
    measure_copy("to host, cuMemHostAlloc, pieces of 2 MiB", false, d, pinned, size, CHUNK);
    measure_copy("to host, cuMemHostAlloc, pieces of 32 MiB", false, d, pinned, size, 16 * CHUNK);
    MUST(CU(cuMemFreeHost)(pinned));
    for (int kind = 2; kind < 4; kind++) {
        char *p = new_memory(kind, size);

        (void)in_threads(JOB_TOUCH, p, NULL, size, THREADS_MAX);
        (void)in_threads(JOB_PIN, p, NULL, size, 1);
        measure_copy(kind == 2 ? "to host, registered memfd" : "to host, registered memfd, huge",
                     false, d, p, size, size);
        measure_copy("to device, the same", true, d, p, size, size);
        unpin(p, size, 1);
        (void)munmap(p, size);
    }
}

static void
measure_device_copy(CUdeviceptr d, size_t size)
{
    const size_t half = size / 2;
    double best = 1e9;

    for (int i = 0; i < 3; i++) {
        const double begin = now();

        MUST(CU(cuMemcpyDtoDAsync_v2)(d + half, d, half, NULL));
        MUST(CU(cuStreamSynchronize)(NULL));
        if (now() - begin < best)
            best = now() - begin;
    }
    report("device to device", half, best);
}

/* ---- the hash -------------------------------------------------------------------------------- */

static void
fill_device(CUdeviceptr d, size_t size)
{
    unsigned char *p = malloc(CHUNK);
    uint64_t x = 88172645463325252;

    for (size_t i = 0; i < CHUNK; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (unsigned char)x;
    }
    MUST(CU(cuMemcpyHtoD_v2)(d, p, CHUNK));
    for (size_t done = CHUNK; done < size; done *= 2)
        MUST(CU(cuMemcpyDtoD_v2)(d + done, d, done < size - done ? done : size - done));
    free(p);
}

static void
launch_hash(CUfunction f, CUdeviceptr pieces, CUdeviceptr out, uint32_t count)
{
    void *params[] = {&pieces, &out, &count};

    MUST(CU(cuLaunchKernel)(f, count < 2112 ? count : 2112, 1, 1, HED_SNAP_HASH_THREADS, 1, 1, 0,
                            NULL, params, NULL));
    MUST(CU(cuStreamSynchronize)(NULL));
}

static void
measure_hash(CUdeviceptr d, size_t size)
{
    const uint32_t count = (uint32_t)(size / CHUNK);
    struct hed_snap_piece *pieces = calloc(count, sizeof *pieces);
    struct hed_snap_hash *got = calloc(count, sizeof *got), want;
    CUdeviceptr table, out;
    unsigned bad = 0;
    CUfunction f;
    CUmodule m;
    double begin = now(), best = 1e9;

    fill_device(d, size);
    begin = now();
    MUST(CU(cuModuleLoadData)(&m, hed_snap_hash_ptx));
    MUST(CU(cuModuleGetFunction)(&f, m, "hed_snap_hash"));
    printf("%-48s %8.3f s\n", "load the hash kernel", now() - begin);
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = (struct hed_snap_piece){d + CHUNK * i, CHUNK};
    pieces[1].size = 12345; /* odd sizes, too */
    pieces[2].size = 4096;
    MUST(CU(cuMemAlloc_v2)(&table, count * sizeof *pieces));
    MUST(CU(cuMemAlloc_v2)(&out, count * sizeof *got));
    MUST(CU(cuMemcpyHtoD_v2)(table, pieces, count * sizeof *pieces));
    for (int i = 0; i < 4; i++) {
        begin = now();
        launch_hash(f, table, out, count);
        if (now() - begin < best)
            best = now() - begin;
    }
    report("hash kernel", size, best);
    MUST(CU(cuMemcpyDtoH_v2)(got, out, count * sizeof *got));

    unsigned char *p = malloc(CHUNK);

    MUST(CU(cuMemcpyDtoH_v2)(p, d, CHUNK));
    for (uint32_t i = 0; i < count; i++) {
        if (i < 4)
            hed_snap_hash(p, pieces[i].size, &want);
        bad += !hed_snap_hash_same(&got[i], &want);
    }
    printf("hash kernel and C: %s\n", bad ? "DIFFER" : "agree");
    free(p);
    free(pieces);
    free(got);
}

int
main(int argc, char **argv)
{
    const size_t size = (argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 8) * GIB;

    open_library();
    open_context();

    const CUdeviceptr d = map_device(size);

    measure_hash(d, size);
    measure_device_copy(d, size);
    measure_copies(d, size / 2);
    measure_memcpy(size);
    measure_host(size);
    return 0;
}
