/* How long the driver's own checkpoint takes: cuCheckpointProcessLock, Checkpoint, Restore and
 * Unlock of a process that has some device memory.
 *
 *   HED_LIBCUDA=/path/to/libcuda.so.1 driver_checkpoint GIB...
 */
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define GIB ((size_t)1 << 30)

static double
now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Has memory with something in it, says so, and checks it when it is told to. */
static int
hold_memory(size_t size, int ready, int go)
{
    unsigned char some[4096], got[4096];
    CUdeviceptr d;
    char c;

    open_library();
    open_context();
    MUST(CU(cuMemAlloc_v2)(&d, size));
    for (size_t i = 0; i < sizeof some; i++)
        some[i] = (unsigned char)(i * 2654435761u >> 13);
    MUST(CU(cuMemcpyHtoD_v2)(d, some, sizeof some));
    for (size_t done = sizeof some; done < size; done *= 2)
        MUST(CU(cuMemcpyDtoD_v2)(d + done, d, done));
    MUST(CU(cuCtxSynchronize)());
    if (write(ready, "r", 1) != 1 || read(go, &c, 1) != 1)
        return 1;
    MUST(CU(cuMemcpyDtoH_v2)(got, d + size - sizeof got, sizeof got));
    return memcmp(some, got, sizeof some) != 0;
}

static void
step(const char *what, size_t gib, CUresult r, double seconds)
{
    printf("%3zu GiB  driver %-12s result %3d %8.3f s %7.2f GB/s\n", gib, what, (int)r, seconds,
           (double)(gib * GIB) / seconds * 1e-9);
    (void)fflush(stdout);
}

static void
measure_size(size_t gib)
{
    int ready[2], go[2], status = 0;
    char c;

    if (pipe(ready) != 0 || pipe(go) != 0)
        return;

    const pid_t pid = fork();

    if (pid == 0)
        _exit(hold_memory(gib * GIB, ready[1], go[0]));
    (void)close(ready[1]);
    open_library();
    MUST(CU(cuInit)(0));
    if (read(ready[0], &c, 1) == 1) {
        CUcheckpointLockArgs lock = {0};
        CUcheckpointCheckpointArgs checkpoint = {{0}};
        CUcheckpointRestoreArgs restore = {0};
        CUcheckpointUnlockArgs unlock = {{0}};
        double begin = now();

        step("lock", gib, CU(cuCheckpointProcessLock)(pid, &lock), now() - begin);
        begin = now();

        CUresult r = CU(cuCheckpointProcessCheckpoint)(pid, &checkpoint);

        step("checkpoint", gib, r, now() - begin);
        begin = now();
        r = CU(cuCheckpointProcessRestore)(pid, &restore);
        step("restore", gib, r, now() - begin);
        begin = now();
        r = CU(cuCheckpointProcessUnlock)(pid, &unlock);
        step("unlock", gib, r, now() - begin);
    }
    if (write(go[1], "g", 1) != 1)
        printf("the program is gone\n");
    (void)waitpid(pid, &status, 0);
    printf("%3zu GiB  memory %s\n", gib, status ? "IS WRONG" : "as before");
    (void)close(ready[0]);
    (void)close(go[0]);
    (void)close(go[1]);
}

int
main(int argc, char **argv)
{
    /* A process with a driver must not fork, hence one for each size. */
    for (int i = 1; i < argc; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            measure_size(strtoul(argv[i], NULL, 10));
            return 0;
        }
        (void)waitpid(pid, NULL, 0);
    }
    return 0;
}
