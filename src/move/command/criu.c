/* Finding and running CRIU. See criu.h; criu_log.c reads its log. */
#include "move/command/criu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/err.h"
#include "base/io.h"
#include "base/process.h"
#include "base/str.h"
#include "locate/install.h"

#define WORDS_MAX 64
#define WORD_MAX (PATH_MAX + 64)
#define OLDEST 31200   /* 3.12: the first that saves memfds */
#define NO_ROOT 31800  /* 3.18: the first with --unprivileged */
#define NEW_VDSO 40100 /* 4.1: the first that knows [vvar_vclock] */
#define LOG_MAX (4u << 20)
#define DEAD_PATIENCE (HED_NS_PER_S / 2) /* for criu to notice that a process was killed */
#define STREAM_BASE 40 /* where criu finds our standard streams; above what it uses at its start */

#define CAP_CHECKPOINT_RESTORE_BIT 40

/* ---- finding it ------------------------------------------------------------------------------ */

static bool
find_criu_file(char *out, size_t size)
{
    static const char *const folders[] = {"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin",
                                          "/usr/local/bin"};
    const char *path = getenv("PATH");

    for (const char *p = path ? path : ""; *p;) {
        const size_t n = strcspn(p, ":");

        if (n > 0 && (size_t)snprintf(out, size, "%.*s/criu", (int)n, p) < size &&
            access(out, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(out, size, "%s/criu", folders[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

/* Is the text in the file, whose size the kernel does not tell? */
static bool
file_mentions(const char *path, const char *text)
{
    char line[8192]; /* /proc/cpuinfo has long ones */
    FILE *f = fopen(path, "re");
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* What libheddle-criu.so is for. */
static bool
machine_is_newer_than_criu(int version)
{
#ifdef __x86_64__
    const bool is_affected = version < NEW_VDSO;
#else
    const bool is_affected = false;
#endif

    return is_affected && (file_mentions("/proc/self/maps", "[vvar_vclock]") ||
                           file_mentions("/proc/cpuinfo", " amx_tile"));
}

static bool
has_capability(int bit)
{
    char text[4096];
    const char *at = strstr(hed_read_small("/proc/self/status", text, sizeof text), "CapEff:");

    return at && (strtoull(at + 7, NULL, 16) >> bit & 1) != 0;
}

/* Has the process died? Its other threads may still be there, as long as criu traces them. */
static bool
is_dead(pid_t pid)
{
    char text[1024];
    const char *at = hed_process_stat(pid, text, sizeof text);

    return !at || at[2] == 'Z' || at[2] == 'X';
}

/* Waits for criu. If the process that it saves is killed meanwhile, criu waits for ever: for its
 * first thread, which the kernel keeps until criu has looked after all others. So criu is killed
 * then. (Other processes of the same tree are lost too: criu's code is in them.) */
static int
wait_for_criu(pid_t criu, pid_t saved)
{
    /* Without such a descriptor (before Linux 5.3) we look more often. */
    struct pollfd end = {.fd = saved > 0 ? (int)syscall(SYS_pidfd_open, criu, 0) : -1,
                         .events = POLLIN};
    uint64_t dead_since = 0;
    int status = 0;
    int code;

    for (;;) {
        const pid_t r = waitpid(criu, &status, saved > 0 ? WNOHANG : 0);

        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (r < 0 && errno != EINTR)
            code = -errno;
        if (r == criu || code < 0)
            break;
        if (saved <= 0)
            continue;
        if (!is_dead(saved))
            dead_since = 0;
        else if (dead_since == 0)
            dead_since = hed_now_ns();
        else if (hed_now_ns() - dead_since > DEAD_PATIENCE)
            (void)kill(-criu, SIGKILL); /* it is the leader of its session */
        (void)poll(&end, 1, end.fd >= 0 ? 100 : 2);
    }
    if (end.fd >= 0)
        close(end.fd);
    return code;
}

/* Starts a program and waits for it. Its standard output and error go to out_fd; its standard input
 * is empty unless `streams`: then it keeps ours, and finds all three again at STREAM_BASE. `saved`
 * is the process that it saves, or 0. Returns its exit code, 128 + signal, or -errno. */
static int
run_criu(const char *path, char *const *words, char *const *env, int out_fd, bool streams,
         pid_t saved)
{
    fflush(NULL);

    const pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (int i = 0; streams && i < HED_CRIU_STREAMS; i++)
            if (dup2(i, STREAM_BASE + i) < 0)
                (void)dup2(null, STREAM_BASE + i);
        if (!streams) {
            dup2(null, STDIN_FILENO);
            /* Ctrl-C must not end criu while its code is in the program. */
            (void)setsid();
        }
        dup2(out_fd >= 0 ? out_fd : null, STDOUT_FILENO);
        dup2(out_fd >= 0 ? out_fd : null, STDERR_FILENO);
        execve(path, words, env);
        _exit(127);
    }
    return wait_for_criu(pid, saved);
}

/* Asks criu for its version: "Version: 3.17.1". 0 if it does not say. */
static int
ask_criu_version(const char *path)
{
    char *words[] = {(char[]){"criu"}, (char[]){"--version"}, NULL};
    char text[256] = "";
    int pipe_fds[2];
    int major = 0, minor = 0, patch = 0;

    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return 0;

    const int code = run_criu(path, words, environ, pipe_fds[1], false, 0);

    close(pipe_fds[1]);
    if (code == 0) {
        const ssize_t n = read(pipe_fds[0], text, sizeof text - 1);

        text[n > 0 ? n : 0] = '\0';
    }
    close(pipe_fds[0]);

    const char *at = strstr(text, "Version:");

    if (!at || sscanf(at, "Version: %d.%d.%d", &major, &minor, &patch) < 2)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

static int
find_criu_preload(struct hed_criu *out, struct hed_why *why)
{
    struct hed_install install;

    const bool newer = machine_is_newer_than_criu(out->version);

    out->preload[0] = '\0';
    /* 0: the leader of our process group is outside of this PID namespace. */
    if (!newer && getpgrp() != 0)
        return 0;

    const int err = hed_install_find(&install, why);

    if (err != 0)
        return err;
    if (hed_install_plugin(&install, "libheddle-criu", out->preload, sizeof out->preload))
        return 0;
    if (newer)
        hed_why_set(why,
                    "this machine is newer than criu %d.%d supports, and %s, which helps, is "
                    "missing: install heddle again, or criu 4.1",
                    out->version / 10000, out->version / 100 % 100, out->preload);
    else
        hed_why_set(why, "%s, which criu needs in a namespace, is missing: install heddle again",
                    out->preload);
    return HED_ENOTSUP;
}

int
hed_criu_find(struct hed_criu *out, struct hed_why *why)
{
    if (!find_criu_file(out->path, sizeof out->path)) {
        hed_why_set(why, "criu is not installed (apt install criu)");
        return HED_ENOTFOUND;
    }
    out->version = ask_criu_version(out->path);
    if (out->version < OLDEST) {
        hed_why_set(why, "%s is older than 3.12, or does not run", out->path);
        return HED_ENOTSUP;
    }
    out->unprivileged = geteuid() != 0;
    if (out->unprivileged &&
        (out->version < NO_ROOT || !has_capability(CAP_CHECKPOINT_RESTORE_BIT))) {
        hed_why_set(why, out->version < NO_ROOT
                             ? "this criu needs root (3.18 can do with the capability "
                               "CAP_CHECKPOINT_RESTORE)"
                             : "criu needs root, or the capability CAP_CHECKPOINT_RESTORE");
        return HED_EACCESS;
    }
    return find_criu_preload(out, why);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* What a standard stream is, as /proc says: pipes and terminals cannot be found again by a path. */
static void
describe_file(pid_t pid, int number, const char *path, char out[HED_CRIU_STREAM])
{
    char info[64];
    char text[256];
    struct stat st;

    (void)snprintf(info, sizeof info, "/proc/%d/fdinfo/%d", (int)pid, number);

    const char *at = strstr(hed_read_small(info, text, sizeof text), "flags:");
    const unsigned long flags = at ? strtoul(at + 6, NULL, 8) : O_RDONLY;

    if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_APPEND) != 0 || strpbrk(path, "\n\t") ||
        stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        snprintf(out, HED_CRIU_STREAM, "file:%llu:%s", (unsigned long long)st.st_size, path) >=
            HED_CRIU_STREAM)
        out[0] = '\0';
}

static void
describe_stream(pid_t pid, int number, char out[HED_CRIU_STREAM])
{
    char path[64];
    char to[PATH_MAX];

    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, number);

    const ssize_t n = readlink(path, to, sizeof to - 1);

    out[0] = '\0';
    to[n > 0 ? n : 0] = '\0';
    if (strncmp(to, "pipe:[", 6) == 0 && strlen(to) < HED_CRIU_STREAM)
        (void)hed_str_copy(out, HED_CRIU_STREAM, to);
    else if (strncmp(to, "/dev/pts/", 9) == 0 || strncmp(to, "/dev/tty", 8) == 0)
        (void)hed_str_copy(out, HED_CRIU_STREAM, "tty");
    else if (to[0] == '/')
        describe_file(pid, number, to, out);
}

int
hed_criu_describe(pid_t pid, struct hed_criu_process *out, struct hed_why *why)
{
    const pid_t session = getsid(pid);

    if (session < 0) {
        hed_why_set(why, "process %d: %s", (int)pid, strerror(errno));
        return HED_ENOTFOUND;
    }
    *out = (struct hed_criu_process){.pid = pid, .shell_job = session != pid};
    for (int i = 0; i < HED_CRIU_STREAMS; i++)
        describe_stream(pid, i, out->stream[i]);
    return 0;
}

/* ---- running it ------------------------------------------------------------------------------ */

struct criu_words {
    char text[WORDS_MAX][WORD_MAX];
    char *list[WORDS_MAX + 1];
    int count;
};

__attribute__((format(printf, 2, 3))) static void
add_criu_word(struct criu_words *w, const char *fmt, ...)
{
    va_list args;

    if (w->count == WORDS_MAX) {
        hed_bug("more than %d words for criu", WORDS_MAX);
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(w->text[w->count], WORD_MAX, fmt, args);
    va_end(args);
    w->list[w->count] = w->text[w->count];
    w->list[++w->count] = NULL;
}

/* What saving and restoring have in common. */
static void
add_common_words(struct criu_words *w, const struct hed_criu *c, const struct hed_criu_process *p,
                 const char *what, const char *folder)
{
    add_criu_word(w, "criu");
    add_criu_word(w, "%s", what);
    add_criu_word(w, "--images-dir");
    add_criu_word(w, "%s", folder);
    add_criu_word(w, "--log-file");
    add_criu_word(w, "%s.log", what);
    add_criu_word(w, "-v2");
    add_criu_word(w, "--file-locks");
    add_criu_word(w, "--manage-cgroups=ignore");
    if (p->shell_job)
        add_criu_word(w, "--shell-job");
    if (c->unprivileged)
        add_criu_word(w, "--unprivileged");
}

/* Finds the reason in the log. */
static void
read_criu_log(const char *folder, const char *what, int code, struct hed_why *why)
{
    char path[PATH_MAX + 32];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s.log", folder, what);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        const size_t n = st.st_size < LOG_MAX ? (size_t)st.st_size : LOG_MAX;

        text = malloc(n);
        if (text && hed_read_all(fd, text, n) == 0)
            hed_criu_explain(text, n, why);
        else
            hed_why_set(why, "its log cannot be read");
    } else {
        hed_why_set(why, "it ended with code %d before it wrote a log", code);
    }
    free(text);
    if (fd >= 0)
        close(fd);
}

static int
call_criu(const struct hed_criu *c, struct criu_words *w, const char *folder, bool streams,
          pid_t saved, struct hed_why *why)
{
    const char *what = w->list[1];
    struct hed_env env;

    hed_env_init(&env, environ);
    /* Settings of heddle's for the program are not meant for criu. */
    hed_env_unset(&env, "LD_PRELOAD");
    hed_env_unset(&env, "LD_LIBRARY_PATH");
    hed_env_unset(&env, "LD_AUDIT");
    /* criu takes options from files in the home folder, which under sudo may be another user's;
     * one of them names a program to run. The administrator's are in /etc. */
    hed_env_unset(&env, "HOME");
    hed_env_unset(&env, "CRIU_CONFIG_FILE");
    if (c->preload[0])
        hed_env_set(&env, "LD_PRELOAD", c->preload);
    if (env.failed) {
        hed_env_fini(&env);
        hed_why_set(why, "%s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }

    const int code = run_criu(c->path, w->list, env.vars, -1, streams, saved);

    hed_env_fini(&env);
    if (code == 0)
        return 0;
    if (code < 0) {
        hed_why_set(why, "cannot start %s: %s", c->path, strerror(-code));
        return HED_EIO;
    }
    if (code == 128 + SIGKILL && saved > 0 && is_dead(saved)) {
        hed_why_set(why, "process %d was killed while it was saved", (int)saved);
        return HED_ENOTFOUND;
    }
    read_criu_log(folder, what, code, why);
    return HED_ENOTSUP;
}

int
hed_criu_dump(const struct hed_criu *c, const struct hed_criu_process *p, const char *folder,
              enum hed_criu_after after, struct hed_why *why)
{
    struct criu_words w = {.count = 0};

    add_common_words(&w, c, p, "dump", folder);
    add_criu_word(&w, "--tree");
    add_criu_word(&w, "%d", (int)p->pid);
    add_criu_word(&w, after == HED_CRIU_RUN ? "--leave-running" : "--leave-stopped");
    add_criu_word(&w, "--link-remap");
    add_criu_word(&w, "--ghost-limit");
    add_criu_word(&w, "1G");
    return call_criu(c, &w, folder, false, p->pid, why);
}

/* What criu calls a stream that ours takes the place of; NULL: it does not. */
static const char *
stream_to_replace(const char *stream)
{
    unsigned long long size = 0;
    int at = 0;
    struct stat st;

    if (strncmp(stream, "pipe:[", 6) == 0)
        return stream;
    if (sscanf(stream, "file:%llu:/%n", &size, &at) != 1 || at == 0)
        return NULL;
    /* criu's names of files have no slash at the beginning. */
    return stat(stream + at - 1, &st) == 0 && (unsigned long long)st.st_size == size ? NULL
                                                                                     : stream + at;
}

/* Which of our standard streams takes the place of which pipe or file. */
static void
add_stream_words(struct criu_words *w, const struct hed_criu_process *p)
{
    /* Streams that are one pipe or file are given once: as the output, if that is among them. */
    static const int order[HED_CRIU_STREAMS] = {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO};

    for (int i = 0; i < HED_CRIU_STREAMS; i++) {
        const char *stream = p->stream[order[i]];
        const char *name = stream_to_replace(stream);
        bool known = false;

        for (int k = 0; k < i; k++)
            known = known || strcmp(stream, p->stream[order[k]]) == 0;
        if (!name || known)
            continue;
        add_criu_word(w, "--inherit-fd");
        add_criu_word(w, "fd[%d]:%s", STREAM_BASE + order[i], name);
    }
}

int
hed_criu_restore(const struct hed_criu *c, const struct hed_criu_process *p, const char *folder,
                 pid_t *out, struct hed_why *why)
{
    struct criu_words w = {.count = 0};
    char path[PATH_MAX + 32];
    char text[32];
    uint64_t pid;

    if (kill(p->pid, 0) == 0 || errno == EPERM) {
        hed_why_set(why, "another process has its number, %d", (int)p->pid);
        return HED_EEXIST;
    }
    add_common_words(&w, c, p, "restore", folder);
    /* A child of ours, so that we learn how it ends. */
    add_criu_word(&w, "--restore-detached");
    add_criu_word(&w, "--restore-sibling");
    add_criu_word(&w, "--pidfile");
    add_criu_word(&w, "restored.pid");
    add_stream_words(&w, p);

    const int err = call_criu(c, &w, folder, true, 0, why);

    if (err != 0)
        return err;
    (void)snprintf(path, sizeof path, "%s/restored.pid", folder);
    if (hed_parse_u64(hed_str_trim((char *)hed_read_small(path, text, sizeof text)), &pid) != 0 ||
        pid == 0 || pid > INT_MAX) {
        hed_why_set(why, "criu did not say the number of the process that it made");
        return HED_EIO;
    }
    *out = (pid_t)pid;
    return 0;
}

/* ---- folders for images ---------------------------------------------------------------------- */

int
hed_criu_folder_make(const char *near, struct hed_criu_folder *out, struct hed_why *why)
{
    struct stat st;

    out->fd = -1;
    if (snprintf(out->name, sizeof out->name, "%s/.heddle-criu-XXXXXX", near) >=
            (int)sizeof out->name ||
        !mkdtemp(out->name)) {
        hed_why_set(why, "cannot make a folder in %s: %s", near, strerror(errno));
        return HED_EIO;
    }
    out->fd = open(out->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (out->fd < 0 || fstat(out->fd, &st) != 0 || st.st_uid != geteuid() ||
        (st.st_mode & 0777) != 0700) {
        hed_why_set(why, "another process has replaced %s", out->name);
        hed_criu_folder_remove(out);
        return HED_EACCESS;
    }
    (void)snprintf(out->path, sizeof out->path, "/proc/%d/fd/%d", (int)getpid(), out->fd);
    return 0;
}

/* Removes the files in a folder. */
static void
empty_criu_folder(int folder)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

void
hed_criu_folder_remove(struct hed_criu_folder *f)
{
    if (f->fd < 0)
        return;
    empty_criu_folder(f->fd);
    close(f->fd);
    f->fd = -1;
    (void)rmdir(f->name);
}
