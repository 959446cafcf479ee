/* The guest's side of guest.py: the first program of the guest runs jobs for the host.
 *
 *     agent PORT
 *
 * It speaks over a virtio-serial port, which nothing else writes to (the console has the kernel's
 * messages):
 *
 *     host -> guest   run JOB UID LENGTH\n + shell text of LENGTH bytes;   kill JOB SIGNAL\n
 *     guest -> host   ready\n;   out JOB LENGTH\n + bytes;   end JOB STATUS\n
 *
 * A job is a process group of its own. It has ended when its shell has and nobody can write its
 * output any more. STATUS is the shell's, or 128 and the signal. Any number of jobs run at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS 128          /* at once */
#define TEXT (256 * 1024) /* longest job */

struct job {
    bool used;
    unsigned id;
    pid_t pid;  /* 0: its shell has ended */
    int output; /* -1: nobody can write it any more */
    int status;
};

static struct job jobs[JOBS];
static int port = -1;

static _Noreturn void
die(const char *what)
{
    fprintf(stderr, "agent: %s: %s\n", what, strerror(errno));
    exit(1); /* the kernel panics, and QEMU ends */
}

static void
port_write(const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        const ssize_t n = write(port, at, size);

        if (n < 0 && errno != EINTR)
            die("writing to the port");
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
}

static void
port_read(void *data, size_t size)
{
    char *at = data;

    while (size > 0) {
        const ssize_t n = read(port, at, size);

        if (n == 0 || (n < 0 && errno != EINTR))
            die("reading from the port");
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
}

__attribute__((format(printf, 1, 2))) static void
port_say(const char *format, ...)
{
    char line[64];
    va_list args;

    va_start(args, format);

    const int n = vsnprintf(line, sizeof line, format, args);

    va_end(args);
    port_write(line, (size_t)n);
}

static _Noreturn void
job_become(const char *text, unsigned uid, int output)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        die("dup2");
    if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
        die("setuid");
    execl("/bin/sh", "sh", "-c", text, (char *)NULL);
    die("/bin/sh");
}

static void
job_run(unsigned id, unsigned uid, const char *text)
{
    struct job *j = jobs;
    int ends[2];

    while (j < jobs + JOBS && j->used)
        j++;
    if (j == jobs + JOBS || pipe2(ends, O_CLOEXEC)) {
        port_say("end %u 126\n", id);
        return;
    }
    *j = (struct job){.used = true, .id = id, .output = ends[0]};
    j->pid = fork();
    if (j->pid == 0)
        job_become(text, uid, ends[1]);
    close(ends[1]);
    if (j->pid < 0) {
        j->pid = 0;
        j->status = 126;
    }
}

static void
job_settle(struct job *j)
{
    if (!j->used || j->pid || j->output >= 0)
        return;
    j->used = false;
    port_say("end %u %d\n", j->id, j->status);
}

static void
job_forward(struct job *j)
{
    char data[65536];
    const ssize_t n = read(j->output, data, sizeof data);

    if (n > 0) {
        port_say("out %u %zd\n", j->id, n);
        port_write(data, (size_t)n);
        return;
    }
    close(j->output);
    j->output = -1;
    job_settle(j);
}

/* The first program also inherits the orphans of all jobs. */
static void
reap_children(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (struct job *j = jobs; j < jobs + JOBS; j++) {
            if (!j->used || j->pid != pid)
                continue;
            j->pid = 0;
            j->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            job_settle(j);
        }
    }
}

static void
obey_host(void)
{
    static char text[TEXT + 1];
    char line[64];
    size_t n = 0;
    unsigned id, uid, signal;
    size_t length;

    do {
        if (n == sizeof line - 1)
            die("a line of the host");
        port_read(line + n, 1);
    } while (line[n++] != '\n');
    line[n] = '\0';
    if (sscanf(line, "run %u %u %zu", &id, &uid, &length) == 3 && length <= TEXT) {
        port_read(text, length);
        text[length] = '\0';
        job_run(id, uid, text);
    } else if (sscanf(line, "kill %u %u", &id, &signal) == 2) {
        for (struct job *j = jobs; j < jobs + JOBS; j++)
            if (j->used && j->id == id && j->pid)
                kill(-j->pid, (int)signal);
    } else {
        die("a word of the host");
    }
}

int
main(int argc, char **argv)
{
    sigset_t children;

    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);

    const int ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);

    port = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    if (port < 0 || ended < 0)
        die(argc == 2 ? argv[1] : "agent PORT");
    port_say("ready\n");
    for (;;) {
        struct pollfd fds[2 + JOBS] = {{port, POLLIN, 0}, {ended, POLLIN, 0}};

        for (int i = 0; i < JOBS; i++)
            fds[2 + i] = (struct pollfd){jobs[i].used ? jobs[i].output : -1, POLLIN, 0};
        if (poll(fds, 2 + JOBS, -1) < 0 && errno != EINTR)
            die("poll");
        for (int i = 0; i < JOBS; i++)
            if (fds[2 + i].revents)
                job_forward(&jobs[i]);
        if (fds[1].revents) {
            struct signalfd_siginfo info[16];

            while (read(ended, info, sizeof info) > 0) {
            }
            reap_children();
        }
        if (fds[0].revents)
            obey_host();
    }
}
