/* Tries every attack without the sandbox, where it must succeed, so that it proves something, and
 * within it, where it must fail. Those that several steps prevent are also tried without the filter
 * of system calls.
 *
 *     attack [user] [driver]
 *
 * With `user`, root becomes an ordinary user first, as many servers are. With `driver`, workers may
 * do what NVIDIA's driver needs. Status: 0 if all is well,
 * 77 if this machine cannot have a sandbox.
 */
#include "attack/attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/sandbox.h"

#define NOBODY 65534
#define WORKER 70500 /* user of the attacking worker; the next is another worker's */
#define GROUP 70000
#define CANNOT_ENTER 99
#define SKIPPED 77

#define STEP(token) (UINT32_C(1) << HED_STEP_##token)

struct target target;

static char secret[] = "a key in the listener's memory";

static _Noreturn void
give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- the target ------------------------------------------------------------------------------ */

static void
make_file(char *path, size_t size, const char *folder, const char *name, mode_t mode, gid_t group)
{
    (void)snprintf(path, size, "%s/%s", folder, name);

    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, secret, sizeof secret) != (ssize_t)sizeof secret ||
        fchown(fd, (uid_t)-1, group) != 0 || fchmod(fd, mode) != 0)
        give_up(path);
    (void)close(fd);
}

/* A library of the system, under a name that is none of the system's. */
static void
copy_library(void)
{
    static const char *const from[] = {"/lib/aarch64-linux-gnu/libm.so.6",
                                       "/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"};
    char piece[4096];
    int in = -1;
    ssize_t n;

    for (size_t i = 0; in < 0 && i < sizeof from / sizeof *from; i++)
        in = open(from[i], O_RDONLY | O_CLOEXEC);
    (void)snprintf(target.library, sizeof target.library, "%s/evil.so", target.folder);

    const int out = open(target.library, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    while ((n = read(in, piece, sizeof piece)) > 0)
        if (write(out, piece, (size_t)n) != n)
            give_up("copy a library");
    (void)close(in);
    (void)close(out);
}

static void
make_files(bool root)
{
    char path[128];
    const gid_t group = root ? GROUP : (gid_t)-1;

    (void)snprintf(path, sizeof path, "%s/others", target.folder);
    if (mkdir(path, 0770) != 0 && access(path, F_OK) != 0)
        give_up(path);
    make_file(target.key, sizeof target.key, target.folder, "server.key", 0600, (gid_t)-1);
    make_file(target.other, sizeof target.other, path, "image", 0660, group);
    if ((root && chown(path, 0, GROUP) != 0) || chmod(target.folder, 0755) != 0)
        give_up(path);
    (void)snprintf(target.link, sizeof target.link, "%s/where", target.folder);
    if (symlink("somewhere", target.link) != 0 && errno != EEXIST)
        give_up(target.link);
    for (int i = 0; i < 4; i++) {
        static const char *const made[] = {"made", "link", "taken", "new"};

        (void)snprintf(path, sizeof path, "%s/%s", target.folder, made[i]);
        (void)remove(path);
    }
}

/* The descriptor stays open as long as this program. */
static void
open_own_folder(void)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/own", target.folder);
    if (mkdir(path, 0777) != 0 || chmod(path, 0777) != 0)
        give_up(path);
    target.own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target.own < 0)
        give_up(path);
}

/* The end that programs have; the other stays open as long as this program. */
static void
open_terminal(void)
{
    const int other = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    target.terminal = -1;
    if (other >= 0 && unlockpt(other) == 0)
        target.terminal = open(ptsname(other), O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* A worker has the socket of its client. */
static void
open_connection(void)
{
    int ends[2] = {-1, -1};

    (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    target.connected = ends[0];
}

static int
listen_at(const void *address, size_t size)
{
    const struct sockaddr *a = address;
    const int fd = socket(a->sa_family, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, a, (socklen_t)size) != 0 || listen(fd, 64) != 0)
        give_up("listen");
    return fd;
}

/* The descriptors stay open as long as this program. */
static void
make_sockets(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t size = sizeof in;
    const int fd = listen_at(&in, sizeof in);

    if (getsockname(fd, (struct sockaddr *)&in, &size) != 0)
        give_up("getsockname");
    target.port = ntohs(in.sin_port);
    (void)snprintf(target.socket, sizeof target.socket, "%s/socket", target.folder);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%.100s", target.socket);
    (void)listen_at(&un, sizeof un);
    if (chmod(target.socket, 0666) != 0)
        give_up("chmod");
    (void)snprintf(target.abstract, sizeof target.abstract, "hedattack%d", (int)getpid());
    memset(un.sun_path, 0, sizeof un.sun_path);
    memcpy(un.sun_path + 1, target.abstract, strlen(target.abstract));
    (void)listen_at(&un, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(target.abstract));
}

/* ---- tries ----------------------------------------------------------------------------------- */

/* A process that only waits; with a sandbox, as another worker does. */
static pid_t
make_process(const struct hed_sandbox *box)
{
    int ready[2];
    char byte = 0;

    if (pipe(ready) != 0)
        give_up("pipe");

    const pid_t pid = hed_sandbox_fork(box);

    if (pid == 0) {
        struct hed_why why = {""};

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (box->steps && hed_sandbox_enter(box, &why) != 0)
            _exit(CANNOT_ENTER);
        (void)!write(ready[1], &byte, 1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        give_up("a process to attack");
    (void)close(ready[0]);
    return pid;
}

static void
end_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Does the attack succeed in this sandbox? */
static bool
try_attack(const struct attack *a, const struct hed_sandbox *box, bool root)
{
    const struct hed_sandbox none = {.steps = 0};
    struct hed_sandbox other = *box;
    int how = 0;

    make_files(root);
    target.secret = secret;
    target.listener = make_process(&none);
    other.uid++;
    target.worker = make_process(&other);

    const pid_t pid = hed_sandbox_fork(box);

    if (pid == 0) {
        struct hed_why why = {""};

        if (box->steps && hed_sandbox_enter(box, &why) != 0) {
            (void)fprintf(stderr, "%s\n", why.text);
            _exit(CANNOT_ENTER);
        }
        _exit(a->succeeds() ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &how, 0) != pid)
        give_up("fork");
    end_process(target.listener);
    end_process(target.worker);
    if (WIFEXITED(how) && WEXITSTATUS(how) == CANNOT_ENTER)
        exit(1);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* Returns the number of complaints. */
static int
try_all(const struct attack *a, const struct hed_sandbox *box, bool root)
{
    const struct hed_sandbox none = {.steps = 0};
    struct hed_sandbox unfiltered = *box;
    int wrong = 0;

    unfiltered.steps &= ~STEP(CALLS);
    for (; a->name; a++) {
        if ((a->needs == ROOT && !root) || (a->needs == ROOTED && !(box->steps & STEP(ROOT))))
            continue;

        const bool possible = try_attack(a, &none, root);
        const char *said = "fails in the sandbox";

        if (!possible && a->needs == KERNEL)
            said = "is not possible on this machine anyway";
        else if (!possible)
            said = "WRONG: fails without the sandbox, so this test proves nothing", wrong++;
        else if (try_attack(a, box, root))
            said = "WRONG: succeeds in the sandbox", wrong++;
        else if (a->twice && try_attack(a, &unfiltered, root))
            said = "WRONG: succeeds without the filter of system calls", wrong++;
        (void)printf("%-32s %s\n", a->name, said);
    }
    return wrong;
}

static void
become_nobody(void)
{
    if (chown(target.folder, NOBODY, NOBODY) != 0 || setgroups(0, NULL) != 0 ||
        setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0 ||
        prctl(PR_SET_DUMPABLE, 1) != 0)
        give_up("become an ordinary user");
}

static void
remove_folder(void)
{
    char command[128];
    const pid_t pid = fork();

    (void)snprintf(command, sizeof command, "%s", target.folder);
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", command, NULL);
        _exit(1);
    }
    (void)waitpid(pid, NULL, 0);
}

int
main(int argc, char **argv)
{
    struct hed_why missing[HED_STEP_COUNT] = {{""}};
    struct hed_sandbox box = {.uid = WORKER,
                              .gid = GROUP,
                              .threads = THREADS,
                              .memory = MEMORY,
                              .libraries = "/usr/lib",
                              .folders = {-1, -1}};
    int wrong = 0;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)snprintf(target.folder, sizeof target.folder, "/tmp/hedXXXXXX");
    if (!mkdtemp(target.folder) || setenv("HEDDLE_TLS_TOKEN", "secret", 1) != 0)
        give_up("prepare");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "driver") == 0)
            box.driver = true;
        else if (geteuid() == 0)
            become_nobody();
    }
    copy_library();
    make_files(geteuid() == 0);
    (void)close(STDIN_FILENO);
    if (open(target.key, O_RDONLY) != STDIN_FILENO)
        give_up(target.key);
    make_sockets();
    open_own_folder();
    open_terminal();
    open_connection();
    box.folders[0] = target.own;
    box.steps = hed_sandbox_wanted();
    if (hed_sandbox_probe(&box, missing) != 0)
        give_up("probe");
    for (int i = 0; i < HED_STEP_COUNT; i++)
        if (missing[i].text[0])
            (void)printf("no %s: %s\n", hed_sandbox_step_name(i), missing[i].text);
    if (hed_sandbox_needed() & ~box.steps) {
        remove_folder();
        return SKIPPED;
    }
    wrong += try_all(file_attacks, &box, geteuid() == 0);
    wrong += try_all(process_attacks, &box, geteuid() == 0);
    wrong += try_all(machine_attacks, &box, geteuid() == 0);
    remove_folder();
    return wrong ? 1 : 0;
}
