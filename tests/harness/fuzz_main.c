/* Drives a fuzz target without libFuzzer, so that every test run exercises the parsers.
 *
 *     fuzz_x [-n RUNS] [-s SEED] [FILE or FOLDER]...
 *
 * First it runs every file as it is, in the order of their names; then RUNS inputs that it makes
 * from them by flipping, cutting and splicing (HED_FUZZ_RUNS, default 20000). The same seed makes
 * the same inputs. It does not use coverage: to find new mistakes, build with HEDDLE_FUZZ.
 *
 * An input that kills the process, or keeps it busy for PATIENCE_S, is left in HED_SCRATCH/crash.
 */
#include "harness/fuzz.h"
#include "harness/patience.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX (1u << 20) /* bytes; larger files are truncated, larger mutants are not made */
#define FILES_MAX 4096
#define DEFAULT_RUNS 20000

struct input {
    uint8_t *data; /* owned */
    size_t size;
};

static struct input corpus[FILES_MAX];
static size_t corpus_count;

/* The input that is being run, for the handlers. */
static const uint8_t *current;
static size_t current_size;
static char crash_path[PATH_MAX];

/* Exists only in the sanitizers' runtimes. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void
save_current(void)
{
    static const char text[] = "fuzz: the input is in ";
    const int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    /* If this fails, there is no way left to report it. */
    if (fd < 0 || write(fd, current, current_size) != (ssize_t)current_size ||
        write(2, text, sizeof(text) - 1) < 0 || write(2, crash_path, strlen(crash_path)) < 0 ||
        write(2, "\n", 1) < 0)
        return;
    close(fd);
}

static void
on_signal(int sig)
{
    save_current();
    /* SA_RESETHAND has put the default back. */
    raise(sig);
}

static void
watch(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM};
    const char *scratch = getenv("HED_SCRATCH");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    snprintf(crash_path, sizeof(crash_path), "%s/crash", scratch ? scratch : ".");
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_current);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        struct sigaction old;

        /* A sanitizer handles some of these itself, and then calls back. */
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
}

static void
run_one(const uint8_t *data, size_t size)
{
    /* A block of exactly that size, so that reading past its end is noticed. */
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy) {
        perror("fuzz");
        exit(1);
    }
    if (size)
        memcpy(copy, data, size);
    current = copy;
    current_size = size;
    alarm(PATIENCE_S);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

static bool
load_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);

    if (!f || !data || corpus_count == FILES_MAX) {
        fprintf(stderr, "fuzz: cannot load %s\n", path);
        free(data);
        if (f)
            fclose(f);
        return false;
    }

    const size_t size = fread(data, 1, INPUT_MAX, f);
    uint8_t *fitted = realloc(data, size ? size : 1);

    corpus[corpus_count].data = fitted ? fitted : data;
    corpus[corpus_count++].size = size;
    fclose(f);
    return true;
}

static bool
load_inputs(const char *path)
{
    struct stat st;
    struct dirent **entries;
    bool ok = true;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return load_file(path);

    /* Sorted, because the order of a folder differs from machine to machine. */
    const int n = scandir(path, &entries, NULL, alphasort);

    if (n < 0) {
        perror(path);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];

        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && ok)
            ok = load_inputs(file);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static uint64_t rng_state;

/* xorshift64*. */
static uint64_t
rng(void)
{
    rng_state ^= rng_state >> 12;
    rng_state ^= rng_state << 25;
    rng_state ^= rng_state >> 27;
    return rng_state * UINT64_C(0x2545f4914f6cdd1d);
}

static size_t
below(size_t n)
{
    return n ? (size_t)(rng() >> 11) % n : 0;
}

/* Values at which lengths and counts go wrong. */
static const uint64_t edges[] = {0,
                                 1,
                                 0x7f,
                                 0x80,
                                 0xff,
                                 0x7fff,
                                 0xffff,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 UINT64_MAX >> 1,
                                 UINT64_MAX};

static void
write_edge(uint8_t *data, size_t size)
{
    const uint64_t value = edges[below(sizeof(edges) / sizeof(edges[0]))];
    const size_t width = (size_t)1 << below(4);

    if (size >= width)
        memcpy(data + below(size - width + 1), &value, width);
}

/* Replaces the end of data by a piece of another input, and returns the new size. */
static size_t
splice_other(uint8_t *data, size_t size)
{
    const struct input *other = &corpus[below(corpus_count)];
    const size_t from = below(other->size + 1);
    const size_t at = below(size + 1);
    size_t n = below(other->size - from + 1);

    if (n > INPUT_MAX - at)
        n = INPUT_MAX - at;
    if (n)
        memcpy(data + at, other->data + from, n);
    return at + n;
}

static size_t
insert_bytes(uint8_t *data, size_t size)
{
    const size_t at = below(size + 1);
    size_t n = 1 + below(16);

    if (n > INPUT_MAX - size)
        n = INPUT_MAX - size;
    memmove(data + at + n, data + at, size - at);
    memset(data + at, (int)(rng() >> 56), n);
    return size + n;
}

static size_t
remove_bytes(uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;

    const size_t at = below(size);
    const size_t left = size - at;
    const size_t n = 1 + below(left < 16 ? left : 16);

    memmove(data + at, data + at + n, left - n);
    return size - n;
}

static size_t
mutate(uint8_t *data, size_t size)
{
    for (size_t steps = 1 + below(6); steps > 0; steps--) {
        switch (below(8)) {
        case 0:
            size = below(size + 1);
            break;
        case 1:
            size = splice_other(data, size);
            break;
        case 2:
            size = insert_bytes(data, size);
            break;
        case 3:
            size = remove_bytes(data, size);
            break;
        case 4:
            write_edge(data, size);
            break;
        case 5:
            if (size)
                data[below(size)] = (uint8_t)(rng() >> 56);
            break;
        default:
            if (size)
                data[below(size)] ^= (uint8_t)(1u << below(8));
            break;
        }
    }
    return size;
}

static void
run_mutants(unsigned long runs)
{
    static uint8_t work[INPUT_MAX];

    for (unsigned long i = 0; i < runs; i++) {
        const struct input *from = &corpus[below(corpus_count)];

        memcpy(work, from->data, from->size);
        run_one(work, mutate(work, from->size));
    }
}

int
main(int argc, char **argv)
{
    const char *env = getenv("HED_FUZZ_RUNS");
    unsigned long runs = env ? strtoul(env, NULL, 10) : DEFAULT_RUNS;
    uint64_t seed = 1;
    int option;

    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n')
            runs = strtoul(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else
            return 2;
    }
    for (int i = optind; i < argc; i++) {
        if (!load_inputs(argv[i]))
            return 1;
    }
    if (optind < argc && corpus_count == 0) {
        fprintf(stderr, "fuzz: the corpus is empty\n");
        return 1;
    }
    if (corpus_count == 0)
        corpus[corpus_count++] = (struct input){calloc(1, 1), 0};

    watch();
    for (size_t i = 0; i < corpus_count; i++)
        run_one(corpus[i].data, corpus[i].size);
    /* A state of 0 would stay 0. */
    rng_state = seed ? seed : 1;
    run_mutants(runs);

    printf("fuzz: %zu files, %lu mutants\n", corpus_count, runs);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    return 0;
}
