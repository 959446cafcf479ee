/* A program that works as lines on standard input tell it. bench/share measures time slices,
 * priorities and shares with it, without PyTorch.
 *
 *     loops rate GRID BLOCK               prints how many steps of the kernel take a microsecond
 *     loops serve GRID BLOCK STEPS DEPTH  says {"ready": 1}, then answers each line with JSON:
 *         closed S            DEPTH launches and a wait, again and again
 *         flow S              launches without a wait; the one DEPTH before has ended
 *         open S PERIOD       a launch and a wait at each arrival; the latency counts from the
 *                             arrival; the first few do not count, since a policy may have to learn
 *         quit
 *
 * An arrival waits while the previous one is served, and that wait counts. */
#include "gpu.h"

#define MARKS 64
#define SAMPLES ((size_t)1 << 20)
#define FIRST 6
#define SPIN_NS \
    (2 * HED_NS_PER_MS) /* a thread that sleeps to the last moment finds a cold processor */

static struct bench_gpu gpu;
static CUstream stream;
static CUevent marks[MARKS];
static unsigned grid, block;
static double latency[SAMPLES]; /* us */

static void
launch_spin(unsigned steps)
{
    void *params[] = {&gpu.out, &steps};

    MUST(gpu.launch(gpu.spin, grid, 1, 1, block, 1, 1, 0, stream, params, NULL));
}

/* The time of the shortest of some launches, in microseconds. */
static double
shortest_us(unsigned steps)
{
    double best = 1e18;

    for (int i = 0; i < 12; i++) {
        const uint64_t start = hed_now_ns();

        launch_spin(steps);
        MUST(gpu.wait(stream));

        const double us = (double)(hed_now_ns() - start) / 1e3;

        best = us < best ? us : best;
    }
    return best;
}

static void
answer(uint64_t start, uint64_t cpu, uint64_t launches, size_t n)
{
    const double s = (double)(hed_now_ns() - start) / 1e9;
    const double used = (double)(hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e9;

    qsort(latency, n, sizeof *latency, bench_order);
    printf("{\"n\": %llu, \"seconds\": %.4f, \"rate\": %.3f, \"cpu\": %.4f, \"p50\": %.2f, "
           "\"p90\": %.2f, \"p99\": %.2f, \"max\": %.2f}\n",
           (unsigned long long)launches, s, (double)launches / s, used / s,
           bench_at(latency, n, 0.5), bench_at(latency, n, 0.9), bench_at(latency, n, 0.99),
           bench_at(latency, n, 1));
    fflush(stdout);
}

static void
closed(double seconds, unsigned steps, unsigned depth)
{
    const uint64_t start = hed_now_ns();
    const uint64_t cpu = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t end = start + (uint64_t)(seconds * 1e9);
    uint64_t launches = 0;
    size_t n = 0;

    for (uint64_t now = start; now < end; now = hed_now_ns()) {
        for (unsigned i = 0; i < depth; i++, launches++)
            launch_spin(steps);
        MUST(gpu.wait(stream));
        if (n < SAMPLES)
            latency[n++] = (double)(hed_now_ns() - now) / 1e3;
    }
    answer(start, cpu, launches, n);
}

/* There is a mark after every quarter of the depth, and no more is launched until the oldest mark
 * has passed. Work that is still in flight at the end does not count. */
static void
flow(double seconds, unsigned steps, unsigned depth)
{
    const uint64_t start = hed_now_ns();
    const uint64_t cpu = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t end = start + (uint64_t)(seconds * 1e9);
    const unsigned part = depth < 4 ? 1 : depth / 4;
    uint64_t passed = 0;

    for (uint64_t k = 0; hed_now_ns() < end; k++) {
        if (k >= 4) {
            MUST(CU(cuEventSynchronize)(marks[k % 4]));
            passed += part;
        }
        for (unsigned i = 0; i < part; i++)
            launch_spin(steps);
        MUST(CU(cuEventRecord)(marks[k % 4], stream));
    }
    answer(start, cpu, passed, 0);
    MUST(gpu.wait(stream));
}

static void
open_loop(double seconds, double period, unsigned steps)
{
    const uint64_t start = hed_now_ns();
    const uint64_t cpu = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t end = start + (uint64_t)(seconds * 1e9);
    unsigned first = FIRST;
    size_t n = 0;

    for (uint64_t next = start; next < end; next += (uint64_t)(period * 1e9)) {
        const uint64_t now = hed_now_ns();

        if (next > now + SPIN_NS)
            hed_sleep_ns(next - now - SPIN_NS);
        while (hed_now_ns() < next)
            ;
        launch_spin(steps);
        MUST(gpu.wait(stream));
        if (first)
            first--;
        else if (n < SAMPLES)
            latency[n++] = (double)(hed_now_ns() - next) / 1e3;
    }
    answer(start, cpu, n, n);
}

static int
serve(unsigned steps, unsigned depth)
{
    char line[128];

    for (int i = 0; i < 8; i++) {
        launch_spin(steps);
        MUST(gpu.wait(stream));
    }
    printf("{\"ready\": 1}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        char word[16] = "";
        double seconds = 0;
        double period = 0;

        if (sscanf(line, "%15s %lf %lf", word, &seconds, &period) < 1 || strcmp(word, "quit") == 0)
            break;
        if (strcmp(word, "closed") == 0)
            closed(seconds, steps, depth);
        else if (strcmp(word, "flow") == 0)
            flow(seconds, steps, depth);
        else if (strcmp(word, "open") == 0 && period > 0)
            open_loop(seconds, period, steps);
        else
            return 2;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    grid = (unsigned)strtoul(argv[2], NULL, 10);
    block = (unsigned)strtoul(argv[3], NULL, 10);
    gpu = bench_begin();
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < MARKS; i++)
        MUST(CU(cuEventCreate)(&marks[i], CU_EVENT_DISABLE_TIMING));
    if (strcmp(argv[1], "rate") == 0) {
        /* A GPU that was idle is slow at first. */
        for (const uint64_t end = hed_now_ns() + 300 * HED_NS_PER_MS; hed_now_ns() < end;)
            (void)shortest_us(20000);

        const double few = shortest_us(20000);
        const double many = shortest_us(220000);

        printf("%.3f\n", 200000 / (many - few > 0.1 ? many - few : 0.1));
        return 0;
    }
    if (argc < 6)
        return 2;
    return serve((unsigned)strtoul(argv[4], NULL, 10), (unsigned)strtoul(argv[5], NULL, 10));
}
