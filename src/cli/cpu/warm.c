/* heddle cpu warm: fills the cache with compiled kernels, before they are needed.
 *
 *   heddle cpu warm -- PROGRAM     runs the program ── its fork servers hold a lock, and work its
 *                                  list off (kernel/forkserver/after.c) ── nobody holds the lock
 *   heddle cpu warm --lib FILE     library.c
 */
#include "cli/cpu/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/demangle.h"
#include "base/env.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "core/config.h"
#include "kernel/cache.h"

#define FILES_MAX 256
#define MOST_MAX 1000
#define SECONDS_MAX 86400
#define LOOK_MS 200

static const char usage[] =
    "usage: heddle cpu warm [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "       heddle cpu warm [OPTION...] --lib FILE...\n"
    "\n"
    "Compiles kernels for the CPU GPU before they are needed, and keeps them in the\n"
    "cache. With a program: runs it, waits until all of its kernels that were hot are\n"
    "compiled, and says which. With --lib: compiles the kernels of PTX, programs and\n"
    "libraries, without running them, for blocks that are a multiple of 32 threads\n"
    "wide.\n"
    "\n"
    "  --lib FILE     compile the kernels of this file; more files may follow\n"
    "  --match NAME   --lib: only kernels with this in their name\n"
    "  --most N       compile at most N kernels (1000)\n"
    "  --seconds N    compile for at most N seconds (3600)\n"
    "  --gpu WHERE    the device: cpu, or cpu:DEVICES\n"
    "  -h, --help     show this help\n"
    "\n"
    "The exit code is the program's; with --lib, 0 on success, 1 if a file or the\n"
    "device cannot be used, 2 if an option is wrong.\n";

enum { OPT_LIB, OPT_MATCH, OPT_MOST, OPT_SECONDS, OPT_GPU, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_LIB] = {"lib", true},
    [OPT_MATCH] = {"match", true},
    [OPT_MOST] = {"most", true},
    [OPT_SECONDS] = {"seconds", true},
    [OPT_GPU] = {"gpu", true},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool
read_limit(const char *option, const char *value, unsigned most, unsigned *out)
{
    uint64_t n;

    if (hed_parse_u64(value, &n) != 0 || n == 0 || n > most) {
        hed_cli_say("cpu warm: --%s '%s' is not 1 to %u", option, value, most);
        return false;
    }
    *out = (unsigned)n;
    return true;
}

/* Returns -1 to go on, else an exit code. */
static int
read_warm_words(int argc, char **argv, struct hed_warm *w, const char **files)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    int option;

    o.command = "cpu warm";
    while ((option = hed_cli_opts_next(&o)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == OPT_LIB && w->file_count < FILES_MAX)
            files[w->file_count++] = o.value;
        if (option == OPT_MATCH)
            w->match = o.value;
        if (option == OPT_GPU)
            w->gpu = o.value;
        if ((option == OPT_MOST && !read_limit("most", o.value, MOST_MAX, &w->most)) ||
            (option == OPT_SECONDS && !read_limit("seconds", o.value, SECONDS_MAX, &w->seconds)))
            return HED_EXIT_USAGE;
    }
    for (; w->file_count && argv[o.at] && w->file_count < FILES_MAX; o.at++)
        files[w->file_count++] = argv[o.at];
    w->files = files;
    w->program = w->file_count ? NULL : argv + o.at;
    if (!w->file_count && !w->program[0])
        hed_cli_say("cpu warm: no program and no file given; see heddle cpu warm --help");
    else if (w->program && w->match)
        hed_cli_say("cpu warm: --match is for --lib");
    else if (!hed_config_gpu_is(w->gpu, "cpu"))
        hed_cli_say("cpu warm: --gpu '%s' is not the CPU: cpu, or cpu:DEVICES", w->gpu);
    else
        return -1;
    return HED_EXIT_USAGE;
}

static bool
open_cache(struct hed_warm *w, struct hed_why *why)
{
    struct hed_config config;
    struct hed_env env;
    int err;

    hed_env_init(&env, environ);
    hed_config_init(&config);
    err = hed_cli_settings(&config, &env, why);
    hed_env_fini(&env);
    if (err)
        return false;
    w->cache = hed_cache_create(config.cache, config.cache_size);
    if (!w->cache)
        hed_why_set(why, "there is no cache: cache_size is 0, or there is no folder for it");
    return w->cache != NULL;
}

/* ---- a program ------------------------------------------------------------------------------- */

/* What was in the cache before, by name. */
struct known {
    struct hed_cache_file *files;
    size_t count;
};

static int
compare_names(const void *x, const void *y)
{
    return strcmp(((const struct hed_cache_file *)x)->name,
                  ((const struct hed_cache_file *)y)->name);
}

static struct known
list_known(const struct hed_cache *c)
{
    struct known k = {.files = NULL};

    if (hed_cache_list(c, &k.files, &k.count) != 0)
        return (struct known){.files = NULL};
    if (k.count)
        qsort(k.files, k.count, sizeof *k.files, compare_names);
    return k;
}

/* Says which kernels have come, and knows them from then on. Returns how many. */
static unsigned
say_new_kernels(const struct hed_cache *c, struct known *known)
{
    struct known now = list_known(c);
    struct hed_buf bytes;
    unsigned count = 0;

    hed_buf_init(&bytes, HED_CACHE_HEAD_MAX);
    for (size_t i = 0; i < now.count; i++) {
        char room[HED_DEMANGLED_MAX];
        struct hed_cache_entry e;

        if ((known->count && bsearch(&now.files[i], known->files, known->count, sizeof *now.files,
                                     compare_names)) ||
            hed_cache_look(c, now.files[i].name, false, &bytes, &e) != 0)
            continue;
        hed_cli_say("cpu warm: compiled %s in %.1f s",
                    hed_demangle(e.about.name, room, sizeof room),
                    (double)e.about.compile_us / 1e6);
        count++;
    }
    hed_buf_fini(&bytes);
    free(known->files);
    *known = now;
    return count;
}

/* Waits until nobody holds the lock any more. */
static unsigned
wait_for_compilers(const struct hed_warm *w, int lock, struct known *known)
{
    unsigned count = say_new_kernels(w->cache, known);

    while (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        (void)poll(NULL, 0, LOOK_MS);
        count += say_new_kernels(w->cache, known);
    }
    return count + say_new_kernels(w->cache, known);
}

/* In a child: becomes the program. */
static int
become_program(const struct hed_warm *w, const char *lock)
{
    char time[64], most[64], path[4200];
    const char *const first[] = {"run",   "--gpu",        w->gpu,  "--set", "cpu_codegen=tiered",
                                 "--set", "cpu_after=on", "--set", time,    "--set",
                                 most,    "--set",        path,    "--"};
    const size_t count = sizeof first / sizeof *first;
    size_t words = 0;
    char **argv;

    (void)snprintf(time, sizeof time, "cpu_after_time=%u", w->seconds);
    (void)snprintf(most, sizeof most, "cpu_after_most=%u", w->most);
    (void)snprintf(path, sizeof path, "cpu_after_lock=%s", lock);
    while (w->program[words])
        words++;
    argv = calloc(count + words + 1, sizeof *argv);
    if (!argv)
        return HED_EXIT_BROKEN;
    memcpy(argv, first, sizeof first);
    memcpy(argv + count, w->program, words * sizeof *argv);
    return hed_cli_run((int)(count + words), argv);
}

/* Its exit code, as a shell has it. */
static int
wait_for_program(pid_t pid)
{
    /* Both get Ctrl-C. The program decides. */
    void (*const old)(int) = signal(SIGINT, SIG_IGN);
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)signal(SIGINT, old);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
warm_program(const struct hed_warm *w)
{
    char path[4096];
    struct known known = list_known(w->cache);
    unsigned count;
    pid_t pid;
    int lock, code;

    (void)snprintf(path, sizeof path, "%s/warm.%d.XXXXXX", P_tmpdir, (int)getpid());
    lock = mkostemp(path, O_CLOEXEC);
    if (lock < 0) {
        hed_cli_say("cpu warm: %s: %s", path, strerror(errno));
        free(known.files);
        return HED_EXIT_FAILED;
    }
    pid = fork();
    if (pid == 0)
        exit(become_program(w, path));
    code = pid < 0 ? HED_EXIT_BROKEN : wait_for_program(pid);
    count = wait_for_compilers(w, lock, &known);
    if (count == 0)
        hed_cli_say("cpu warm: there is no new kernel in %s", hed_cache_path(w->cache));
    else
        hed_cli_say("cpu warm: %u kernel%s compiled; the next run finds %s in %s", count,
                    count == 1 ? " was" : "s were", count == 1 ? "it" : "them",
                    hed_cache_path(w->cache));
    (void)unlink(path);
    (void)close(lock);
    free(known.files);
    return code;
}

int
hed_cli_cpu_warm(int argc, char **argv)
{
    struct hed_warm w = {.gpu = "cpu", .most = MOST_MAX, .seconds = 3600};
    const char *files[FILES_MAX];
    struct hed_why why;
    int code = read_warm_words(argc, argv, &w, files);

    if (code >= 0)
        return code;
    if (!open_cache(&w, &why)) {
        hed_cli_say("cpu warm: %s", why.text);
        return HED_EXIT_FAILED;
    }
    code = w.program ? warm_program(&w) : hed_warm_files(&w);
    hed_cache_free(w.cache);
    return code;
}
