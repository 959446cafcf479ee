/* Runs random kernels compiled and in the baseline tier, and compares memory.
 *
 *   ptx_random [--seed S] [--count N] [--seconds N] [--show] [--whole]
 *              [--ptxas PTXAS] [--arch sm_80]
 *
 * With PTXAS, a kernel is compared with itself after it was compiled to machine code and lifted;
 * without approximations, which ptxas computes in its own way.
 *
 * Kernel number i is made from seed S + i. On a difference it leaves out what it can, prints the
 * rest of the kernel and exits with 1. With --whole it leaves out nothing: that takes minutes.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ptx/exec/harness.h"
#include "ptx/exec/random_kernel.h"
#include "sass/lifted.h"

/* One way to run a kernel. */
struct tier {
    const char *name;
    enum exec_tier tier;
    bool any_rows; /* compiled as if nothing were known of the block's width */
    bool lifted;   /* from machine code */
    bool changes;  /* the first blocks run in the baseline tier */
    bool tiles;    /* compiled as for processors on which sums are put in order, pass/tiles.h */
};

static const struct tier tiers[] = {
    {"as warps", EXEC_COMPILED, false, false, false, false},
    {"in the baseline tier", EXEC_BASELINE, false, false, false, false},
    {"as warps of any layout", EXEC_COMPILED, true, false, false, false},
    {"first in the baseline tier, then as warps", EXEC_COMPILED, false, false, true, false},
    {"as warps, sums in tiles", EXEC_COMPILED, false, false, false, true},
};
static const struct tier lifted_tiers[] = {
    {"in the baseline tier", EXEC_BASELINE, false, false, false, false},
    {"lifted", EXEC_BASELINE, false, true, false, false},
    {"lifted, as warps", EXEC_COMPILED, false, true, false, false},
    {"first lifted, then lifted as warps", EXEC_COMPILED, false, true, true, false},
};
#define TIERS 4 /* and one more for kernels with sums of products */

struct trial {
    uint64_t seed;
    struct exec_launch launch;
    uint32_t n;
    unsigned char *in, *out[2];
    char reason[800];
    unsigned only;    /* the tier that differed, while a kernel is reduced; or 0: all */
    unsigned refused; /* kernels that have no order of blocks */
    bool has_sums, is_whole;
    const struct tier *tiers;
    struct lifted by;
    struct hed_buf lifted; /* text */
    unsigned unlifted;     /* kernels that cannot be lifted */
};

static struct trial trial;

/* What a signal handler may print. */
static char crash_line[64];

static void
show_crash(int number)
{
    (void)number;
    if (write(1, crash_line, sizeof(crash_line)) < 0)
        _exit(2);
    _exit(1);
}

/* The order of sums is for AVX-512. Nothing else is compiled otherwise: LLVM believes the last word
 * of a feature, and this pass the first. */
static const char *
features_with_tiles(const char *features)
{
    static char all[700];

#if defined(__x86_64__)
    snprintf(all, sizeof(all), "%s,+avx512vl,-avx512vl,-avx512f", features);
#else
    snprintf(all, sizeof(all), "%s", features);
#endif
    return all;
}

/* Runs the blocks of the launch from `first` to before `end`. */
static int
run_part(const struct tier *tier, enum exec_tier as, const char *text, unsigned first, unsigned end)
{
    struct exec_launch launch = trial.launch;
    struct exec e;
    int err;

    launch.any_rows = tier->any_rows;
    launch.first = first;
    launch.end = end;
    exec_open(&e, tier->lifted ? hed_buf_cstr(&trial.lifted) : text, as);
    if (tier->tiles)
        e.options.features = features_with_tiles(e.options.features);
    err = exec_run(&e, "k", &launch);
    if (err != 0)
        snprintf(trial.reason, sizeof(trial.reason), "%s: error %d, %s, trap %u at line %u",
                 tier->name, err, e.why.text, e.trap, e.trap_line);
    else if (as == EXEC_COMPILED && e.why.text[0])
        trial.refused++;
    exec_close(&e);
    return err;
}

static int
run_tier(const struct tier *tier, const char *text, unsigned char *out)
{
    const struct {
        void *in, *out;
        uint32_t n;
    } params = {trial.in + RANDOM_IN, out, trial.n};
    /* Every block but the first may be the first that is compiled. */
    const unsigned change = tier->changes && trial.launch.blocks > 1
                                ? 1 + (unsigned)(trial.seed / 8 % (trial.launch.blocks - 1))
                                : 0;
    int err = 0;

    memset(out, 0xcc, RANDOM_OUT);
    trial.launch.params = &params;
    trial.launch.size = sizeof(params);
    if (change)
        err = run_part(tier, EXEC_BASELINE, text, 0, change);
    if (err == 0 && change < trial.launch.blocks)
        err = run_part(tier, tier->tier, text, change, trial.launch.blocks);
    return err;
}

/* Makes the lifted text. False if that cannot be done, which is counted. */
static bool
lift_kernel(const char *text)
{
    struct hed_buf said;
    struct hed_why why = {""};
    bool fine;

    hed_buf_reset(&trial.lifted);
    hed_buf_init(&said, 1 << 20);
    fine = lifted_assemble(&trial.by, text, &said);
    if (!fine)
        printf("seed %llu: %s", (unsigned long long)trial.seed, hed_buf_cstr(&said));
    hed_buf_fini(&said);
    fine = fine && lifted_text(&trial.by, HED_SASS_FOR_CPU, &trial.lifted, &why) == 0;
    if (!fine && !trial.only) {
        printf("seed %llu: not lifted: %s\n", (unsigned long long)trial.seed, why.text);
        trial.unlifted++;
    }
    return fine;
}

/* ptxas makes x of min(x, x), and so keeps a NaN that PTX replaces. */
static bool
both_nan(uint32_t a, uint32_t b)
{
    return (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000;
}

/* Does the kernel do different things in different tiers? */
static bool
differs(const char *text)
{
    if (trial.tiers == lifted_tiers && !lift_kernel(text))
        return false;
    if (run_tier(&trial.tiers[0], text, trial.out[0]) != 0)
        return true;
    for (unsigned i = 1; i < (trial.has_sums ? TIERS + 1 : TIERS); i++) {
        /* Compiling takes most of the time, and the baseline tier needs none. */
        if (trial.only ? i != trial.only : i > 1 && i < TIERS && trial.seed % 8 != i)
            continue;
        if (run_tier(&trial.tiers[i], text, trial.out[1]) != 0)
            return true;
        for (unsigned at = 0; at < RANDOM_OUT; at += 4) {
            uint32_t a, b;

            memcpy(&a, trial.out[0] + at, 4);
            memcpy(&b, trial.out[1] + at, 4);
            if (a == b || (trial.tiers[i].lifted && both_nan(a, b)))
                continue;
            snprintf(trial.reason, sizeof(trial.reason),
                     "byte %u (thread %u, byte %u): %08x %s, %08x %s", at, at / RANDOM_OWN,
                     at % RANDOM_OWN, a, trial.tiers[0].name, b, trial.tiers[i].name);
            trial.only = i;
            return true;
        }
    }
    return false;
}

/* Leaves out pieces as long as the tiers differ. */
static void
reduce(struct random_kernel *k)
{
    bool again = true;

    while (again) {
        again = false;
        for (unsigned i = k->npieces; i-- > 0;) {
            bool before[RANDOM_LINES], any = false;
            char *text;

            memcpy(before, k->dropped, sizeof(before));
            for (unsigned l = k->pieces[i].first; l <= k->pieces[i].last; l++) {
                any = any || !k->dropped[l];
                k->dropped[l] = true;
            }
            text = any ? random_kernel_text(k) : NULL;
            if (any && !differs(text))
                memcpy(k->dropped, before, sizeof(before));
            else
                again = again || any;
            free(text);
        }
    }
}

/* Leaves out what ptxas computes otherwise, within what PTX allows, what sm_80 does not have, and
 * set.f32.s32 and testp, whose guards ptxas forgets for half of what it makes of them. */
static void
drop_odd_lines(struct random_kernel *k)
{
    static const char *const odd[] = {".approx",    "div.full",   ".u16x2",      ".s16x2",
                                      "mul.bf16x2", "set.ge.f32", "testp.normal"};

    for (unsigned i = 0; i < k->nlines; i++)
        for (unsigned o = 0; o < sizeof(odd) / sizeof(odd[0]); o++)
            k->dropped[i] |= strstr(k->lines[i], odd[o]) != NULL;
}

static int
try_seed(uint64_t seed, bool show)
{
    static struct random_kernel k;
    struct random_shape shape;
    char *text;
    bool bad;

    trial.seed = seed;
    snprintf(crash_line, sizeof(crash_line), "crash with seed %llu\n", (unsigned long long)seed);
    trial.only = 0;
    random_kernel_make(&k, seed);
    if (trial.tiers == lifted_tiers)
        drop_odd_lines(&k);
    trial.has_sums = k.sums && trial.tiers == tiers;
    random_shape(&k, seed, &shape);
    trial.launch = (struct exec_launch){
        .blocks = shape.blocks, .threads = shape.threads, .width = shape.width};
    if (trial.launch.blocks == 1 && tiers[seed % 8 % TIERS].changes)
        trial.launch.blocks = 2; /* one has no moment of change */
    trial.n = shape.n;
    trial.launch.meets = k.meets;
    text = random_kernel_text(&k);
    if (show)
        printf("%s", text);
    fflush(stdout);
    bad = differs(text);
    free(text);
    if (bad) {
        printf("seed %llu: %s\n", (unsigned long long)seed, trial.reason);
        fflush(stdout);
        if (!trial.is_whole)
            reduce(&k);
        text = random_kernel_text(&k);
        (void)differs(text); /* for the reason; a difference that comes and goes is one, too */
        printf("%u threads of width %u, %u blocks, n %u: %s\n%s\n", trial.launch.threads,
               trial.launch.width, trial.launch.blocks, trial.n, trial.reason, text);
        free(text);
    }
    random_kernel_free(&k);
    return bad;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},    {"count", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 't'}, {"show", no_argument, NULL, 'v'},
        {"whole", no_argument, NULL, 'w'},         {"ptxas", required_argument, NULL, 'p'},
        {"arch", required_argument, NULL, 'a'},    {0}};
    const char *ptxas = NULL, *arch = "sm_80";
    uint64_t seed = 1, count = UINT64_MAX, done = 0;
    const time_t start = time(NULL);
    long seconds = 0;
    bool show = false;
    int c;

    trial.tiers = tiers;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (c == 't')
            seconds = strtol(optarg, NULL, 10);
        else if (c == 'v')
            show = true;
        else if (c == 'w')
            trial.is_whole = true;
        else if (c == 'p')
            ptxas = optarg;
        else if (c == 'a')
            arch = optarg;
        else
            return 2;
    }
    if (ptxas)
        trial.tiers = lifted_init(&trial.by, ptxas, arch) ? lifted_tiers : NULL;
    if (!trial.tiers) {
        printf("no ptxas: skipped\n");
        return 77;
    }
    hed_buf_init(&trial.lifted, 16 << 20);
    signal(SIGSEGV, show_crash);
    signal(SIGBUS, show_crash);
    signal(SIGABRT, show_crash);
    trial.in = calloc(2, RANDOM_IN);
    trial.out[0] = malloc(RANDOM_OUT);
    trial.out[1] = malloc(RANDOM_OUT);
    if (!trial.in || !trial.out[0] || !trial.out[1])
        return 2;
    random_fill(trial.in);
    while (done < count && (!seconds || time(NULL) - start < seconds)) {
        if (try_seed(seed + done++, show) != 0)
            return 1;
    }
    printf("%llu kernels agree; %u runs had another shape, %u kernels were not lifted\n",
           (unsigned long long)done - trial.unlifted, trial.refused, trial.unlifted);
    hed_buf_fini(&trial.lifted);
    free(trial.in);
    free(trial.out[0]);
    free(trial.out[1]);
    return 0;
}
