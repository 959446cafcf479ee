/* Sections of quota.c: many threads, and processes that share one limit and are killed. */
#include "quota_case.h"

#include <pthread.h>
#include <signal.h>

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic size_t held, most;

static void *
churn(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    CUdeviceptr own[8] = {0};
    size_t size[8];

    OK(CU(cuCtxSetCurrent)(primary));
    for (int i = 0; i < 400; i++) {
        const unsigned k = (seed = seed * 1664525u + 1013904223u) >> 29;

        if (own[k]) {
            held -= size[k];
            OK(CU(cuMemFree_v2)(own[k]));
            own[k] = 0;
            continue;
        }
        size[k] = ((seed = seed * 1664525u + 1013904223u) >> 28) * 2 * MIB + 2 * MIB;

        const CUresult r = CU(cuMemAlloc_v2)(&own[k], size[k]);

        CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY, "%d", (int)r);
        if (r == CUDA_SUCCESS) {
            const size_t now = atomic_fetch_add(&held, size[k]) + size[k];

            if (now > most)
                most = now;
        } else {
            own[k] = 0;
        }
    }
    for (unsigned k = 0; k < 8; k++) {
        if (own[k]) {
            held -= size[k];
            OK(CU(cuMemFree_v2)(own[k]));
        }
    }
    return NULL;
}

void
threads_hold_the_limit(void)
{
    const size_t base = free_bytes();
    pthread_t threads[8];

    for (uintptr_t i = 0; i < 8; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    EXPECT(most <= LIMIT, "%zu were had together", (size_t)most);
    all_is_back("threads", base);
}

/* ---- the group ------------------------------------------------------------------------------- */

/* Starts this program again as a member of the group. It writes 'y' when it is ready. */
static pid_t
start_member(const char *section)
{
    int ends[2];
    char c = 0;

    CHECK_IS(pipe(ends), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "quota", no_memory ? "no_memory" : "all", section, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    CHECK_IS(read(ends[0], &c, 1), 1);
    CHECK_IS(c, 'y');
    close(ends[0]);
    return pid;
}

void
hold(void)
{
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, PART + PART / 2));
    CHECK_IS(CU(cuMemAlloc_v2)(&p, PART), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(write(STDOUT_FILENO, "y", 1), 1);
    for (;;)
        pause();
}

/* Allocates whatever it can get, in several ways, until it is killed. */
void
struggle(void)
{
    CUdeviceptr p[4] = {0};
    uint32_t seed = (uint32_t)getpid();

    CHECK_IS(write(STDOUT_FILENO, "y", 1), 1);
    for (;;) {
        const unsigned k = (seed = seed * 1664525u + 1013904223u) >> 30;

        if (p[k] && k < 2)
            OK(CU(cuMemFree_v2)(p[k]));
        else if (p[k])
            OK(CU(cuMemFreeAsync)(p[k], stream));
        if (p[k] || (k < 2 ? CU(cuMemAlloc_v2)(&p[k], 24 * MIB)
                           : CU(cuMemAllocAsync)(&p[k], 10 * MIB, stream)) != CUDA_SUCCESS)
            p[k] = 0;
    }
}

static void
end_member(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_IS(waitpid(pid, NULL, 0), pid);
}

void
a_group_shares_and_loses_nothing(void)
{
    const size_t base = free_bytes();
    CUdeviceptr p;

    for (int round = 0; round < 3; round++) {
        const pid_t pid = start_member("hold");

        EXPECT_IS(free_bytes(), base - PART - PART / 2);
        EXPECT_IS(CU(cuMemAlloc_v2)(&p, PART), CUDA_ERROR_OUT_OF_MEMORY);
        OK(CU(cuMemAlloc_v2)(&p, base - PART - PART / 2));
        OK(CU(cuMemFree_v2)(p));
        end_member(pid);
        all_is_back("a killed process", base);
    }
}

void
killed_in_the_middle_nothing_is_lost(void)
{
    const size_t base = free_bytes();
    uint32_t seed = 5;

    for (int round = 0; round < 3; round++) {
        pid_t pids[8];

        for (int i = 0; i < 8; i++)
            pids[i] = start_member("struggle");
        for (int i = 0; i < 8; i++) {
            usleep((seed = seed * 1664525u + 1013904223u) >> 18);
            end_member(pids[i]);
        }
        all_is_back("eight killed processes", base);
    }
}
