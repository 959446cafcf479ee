/* Runs one test, and ends everything that the test has started.
 *
 *     launch PROGRAM [ARGUMENT...]
 *
 * The test gets an empty scratch folder, HED_SCRATCH. The status is the test's, or launch dies of
 * the signal that the test died of.
 *
 *     ctest -> launch -> keeper -> test -> ...
 *
 * The keeper is a subreaper: a process that the test has started and whose parent is gone becomes
 * the keeper's child, whatever session it has put itself into. When the test has ended, the keeper
 * kills its children until there are none left. It does so, too, when it is told to end, and when
 * launch has died: ctest kills launch when a test takes too long.
 *
 * If HED_TEST_COSTS names a file, a line with the processor time of the test and of all that it
 * started, and its name, is appended to it: tools/test_costs.py shows what a run of all tests
 * costs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const int endings[] = {SIGTERM, SIGINT, SIGHUP};

#define ENDINGS (sizeof endings / sizeof *endings)

static _Noreturn void
die(const char *what)
{
    fprintf(stderr, "launch: %s: %s\n", what, strerror(errno));
    _exit(126);
}

/* ---- the scratch folder ---------------------------------------------------------------------- */

static int
remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void
make_folders(char *path)
{
    for (char *slash = path; (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            die(path);
    }
    if (mkdir(path, 0777) != 0)
        die(path);
}

static void
empty_scratch(void)
{
    char *path = getenv("HED_SCRATCH");
    const char *below = path ? strstr(path, "/scratch/") : NULL;

    if (!below || below[strlen("/scratch/")] == '\0') {
        fprintf(stderr, "launch: HED_SCRATCH must be below a folder called scratch, but is '%s'\n",
                path ? path : "");
        _exit(126);
    }
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        die(path);
    make_folders(path);
}

/* ---- children -------------------------------------------------------------------------------- */

static pid_t
parent_of(const char *pid, char name[32])
{
    char path[300];
    char text[512];
    size_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);

    FILE *f = fopen(path, "r");

    if (f) {
        n = fread(text, 1, sizeof text - 1, f);
        (void)fclose(f);
    }
    text[n] = '\0';

    /* PID (NAME) STATE PARENT ...; the name may hold anything. */
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    int parent = -1;

    if (!open || !close || sscanf(close + 1, " %*c %d", &parent) != 1)
        return -1;
    (void)snprintf(name, 32, "%.*s", (int)(close - open - 1), open + 1);
    return parent;
}

/* Returns how many were killed. They are named once, because no test should rely on this. */
static int
kill_children(bool say)
{
    DIR *proc = opendir("/proc");
    int count = 0;

    if (!proc)
        die("/proc");
    for (const struct dirent *e; (e = readdir(proc)) != NULL;) {
        char name[32];

        if (e->d_name[0] < '0' || e->d_name[0] > '9' || parent_of(e->d_name, name) != getpid())
            continue;
        if (say)
            fprintf(stderr, "launch: killed %s (%s), which the test has left running\n", e->d_name,
                    name);
        count += kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL) == 0;
    }
    (void)closedir(proc);
    return count;
}

/* Children of a child that dies become ours, so this ends only when all descendants are dead. */
static void
end_all(void)
{
    bool first = true;
    pid_t pid;

    for (;;) {
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        if (kill_children(first) > 0)
            (void)waitpid(-1, NULL, 0);
        first = false;
    }
}

/* All descendants have been waited for. One write: other tests append to the same file. */
static void
note_cost(void)
{
    const char *path = getenv("HED_TEST_COSTS");
    const char *scratch = getenv("HED_SCRATCH");
    struct rusage used;
    char line[300];

    if (!path || !scratch || getrusage(RUSAGE_CHILDREN, &used) != 0)
        return;

    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    const int n = snprintf(line, sizeof line, "%.2f %s\n", seconds,
                           strstr(scratch, "/scratch/") + strlen("/scratch/"));

    if (fd < 0 || n < 0 || n >= (int)sizeof line || write(fd, line, (size_t)n) != n)
        fprintf(stderr, "launch: %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Ends this process in the way in which another one has ended. */
static _Noreturn void
end_like(int status)
{
    if (WIFSIGNALED(status)) {
        const int sig = WTERMSIG(status);
        const struct rlimit no_core = {0, 0};
        sigset_t set;

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(sig, SIG_DFL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, sig);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void)raise(sig);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 126);
}

/* A signal when the parent dies, or at once if it already has. */
static void
follow_parent(pid_t parent, int sig)
{
    (void)prctl(PR_SET_PDEATHSIG, sig);
    if (getppid() != parent)
        (void)raise(sig);
}

static _Noreturn void
run_test(char **argv, pid_t keeper, const sigset_t *before)
{
    /* A group of its own: a test that signals its group means its own processes. */
    (void)setpgid(0, 0);
    (void)sigprocmask(SIG_SETMASK, before, NULL);
    follow_parent(keeper, SIGKILL);
    execvp(argv[0], argv);
    die(argv[0]);
}

static _Noreturn void
keep_test(char **argv, pid_t launch, const sigset_t *before, const sigset_t *waited)
{
    int status = 0;
    bool ended = false;
    int sig;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    follow_parent(launch, SIGTERM);

    const pid_t keeper = getpid();
    const pid_t test = fork();

    if (test < 0)
        die("fork");
    if (test == 0)
        run_test(argv, keeper, before);
    while (!ended && sigwait(waited, &sig) == 0) {
        int s;

        if (sig != SIGCHLD) {
            status = sig; /* a wait status: died of this signal */
            break;
        }
        for (pid_t pid; (pid = waitpid(-1, &s, WNOHANG)) > 0;) {
            if (pid == test) {
                status = s;
                ended = true;
            }
        }
    }
    end_all();
    note_cost();
    end_like(status);
}

int
main(int argc, char **argv)
{
    sigset_t waited, before;
    pid_t parent = getppid();
    int status;
    int sig;

    if (argc < 2) {
        fprintf(stderr, "usage: launch PROGRAM [ARGUMENT...]\n");
        return 126;
    }
    empty_scratch();
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, SIGCHLD);
    for (size_t i = 0; i < ENDINGS; i++)
        (void)sigaddset(&waited, endings[i]);
    (void)sigprocmask(SIG_BLOCK, &waited, &before);
    follow_parent(parent, SIGTERM);

    const pid_t launch = getpid();
    const pid_t keeper = fork();

    if (keeper < 0)
        die("fork");
    if (keeper == 0)
        keep_test(argv + 1, launch, &before, &waited);
    while (sigwait(&waited, &sig) == 0)
        if (sig != SIGCHLD)
            (void)kill(keeper, SIGTERM);
        else if (waitpid(keeper, &status, WNOHANG) == keeper)
            end_like(status);
    die("sigwait");
}
