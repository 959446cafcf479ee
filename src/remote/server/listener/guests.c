/* Guests: QEMU's virtual machines that this server serves. See listener.h.
 *
 *   vm:NAME ──> a socket for QEMU's vsock device, and a file for its window
 * QEMU connects ──fork──> bridge (remote/server/vm) ── a pair of sockets for each connection ──>
 * peers
 *
 * A guest has one bridge at a time, as long as its QEMU is connected. The listener never looks into
 * the window; it only says which worker may use which piece.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/server/vm/bridge.h"
#include "remote/wire/link/link.h"
#include "remote/wire/window.h"

#define GUEST_CID 3 /* the first that a guest may have; each bridge knows one guest */
#define TAKE_MAX 64 /* connections of one guest in one round */
#define OPTIONS_MAX 4096

/* What is freed of a window in one round. Pages of 4 MiB take about a millisecond. */
#define CLEAR_BYTES (UINT64_C(4) << 20)
#define CLEAR_RANGES 64

/* ---- the window ------------------------------------------------------------------------------ */

static int
write_window_header(struct hed_guest *g)
{
    struct hed_window_header h = {.version = HED_WINDOW_VERSION, .size = g->size};

    memcpy(h.magic, HED_WINDOW_MAGIC, sizeof h.magic);
    memcpy(h.id, g->id, sizeof h.id);
    (void)hed_str_copy(h.name, sizeof h.name, g->name);
    return pwrite(g->window, &h, sizeof h, 0) == (ssize_t)sizeof h ? 0 : -1;
}

/* A file of the same name is one that a server left when it was killed: the socket is ours now, so
 * no other server uses it. */
static int
make_window(struct hed_guest *g, mode_t mode, struct hed_why *why)
{
    int err = hed_pieces_init(&g->pieces, g->size);

    (void)unlink(g->path);
    if (err || !g->size)
        return err;
    g->window = open(g->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* Others may connect to a socket, and are asked who they are. A file asks nobody. */
    if (g->window >= 0 && fchmod(g->window, mode & 0660) == 0 &&
        ftruncate(g->window, (off_t)g->size) == 0 &&
        getrandom(g->id, sizeof g->id, 0) == (ssize_t)sizeof g->id && write_window_header(g) == 0)
        return 0;
    hed_why_set(why, "cannot make the window %s: %s", g->path, strerror(errno));
    return hed_err_from_errno(errno);
}

/* Whoever starts the server by hand needs them next. */
static void
say_qemu_options(const struct hed_guest *g, const char *socket)
{
    struct hed_buf b;

    hed_buf_init(&b, OPTIONS_MAX);
    if (hed_vm_qemu_options(&b, socket, g->path, g->size, HED_VM_RAM, " ") == 0)
        hed_info(SERVER, "guest %s: QEMU's options (heddle vm qemu-args %s): %s", g->name, g->name,
                 hed_buf_cstr(&b));
    hed_buf_fini(&b);
}

/* A guest can fill its window. If the file system is full before it, the next page that a worker
 * or another guest touches is the end of it. */
static int
check_room_for_windows(const struct hed_server *s, const struct hed_guest *new, struct hed_why *why)
{
    char together[HED_SIZE_TEXT], there[HED_SIZE_TEXT];
    struct statvfs fs;
    uint64_t sum = 0;

    for (const struct hed_guest *g = s->guests; g; g = g->next)
        sum += g->size;
    if (new->window < 0 || fstatvfs(new->window, &fs) != 0 || fs.f_blocks == 0 ||
        sum / fs.f_frsize <= fs.f_blocks)
        return 0;
    hed_why_set(why,
                "the windows of all guests have %s together, and /dev/shm has %s: give them "
                "another size (vm:NAME,size=...), or enlarge /dev/shm",
                hed_size_text(sum, together), hed_size_text(fs.f_blocks * fs.f_frsize, there));
    return HED_ENOMEM;
}

int
hed_guest_create(struct hed_server *s, const struct hed_address *a, struct hed_guest **out,
                 struct hed_why *why)
{
    struct hed_guest *g = calloc(1, sizeof *g);
    char socket[HED_VM_PATH];
    int err = g ? hed_vm_paths(a->host, socket, g->path, why) : HED_ENOMEM;

    if (err) {
        free(g);
        return err;
    }
    g->source.kind = HED_SOURCE_GUEST;
    g->window = g->bridge = g->qemu = g->lines.fd = -1;
    g->size = a->window;
    (void)hed_str_copy(g->name, sizeof g->name, a->host);
    g->next = s->guests;
    s->guests = g; /* hed_guests_close() frees what there is of it */
    *out = g;
    err = make_window(g, (mode_t)s->options->mode, why);
    if (!err)
        err = check_room_for_windows(s, g, why);
    if (!err)
        say_qemu_options(g, socket);
    return err;
}

/* A guest may write everywhere in its window, also into the header, and where no worker has a
 * piece. The next guest finds the window as the first one did; until then the memory is free. */
static void
clean_window(struct hed_guest *g)
{
    if (g->window < 0)
        return;
    (void)fallocate(g->window, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    (off_t)HED_WINDOW_UNIT);
    if (write_window_header(g) != 0)
        hed_error(SERVER, "cannot write the window %s: %s", g->path, strerror(errno));
    hed_pieces_leave_free(&g->pieces);
}

static void
part_from_bridge(struct hed_server *s, struct hed_guest *g)
{
    if (g->bridge < 0)
        return;
    clean_window(g);
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, g->bridge, NULL);
    (void)close(g->bridge);
    (void)close(g->qemu);
    g->bridge = g->qemu = -1;
    /* It ends by itself, unless the guest has taken it over. */
    if (g->pid > 0)
        (void)kill(g->pid, SIGKILL);
    g->pid = 0;
    hed_lines_end(s, &g->lines);
    hed_info(SERVER, "guest %s is gone", g->name);
}

void
hed_guests_close(struct hed_server *s)
{
    struct hed_guest *g;

    while ((g = s->guests)) {
        s->guests = g->next;
        part_from_bridge(s, g);
        if (g->window >= 0) {
            (void)close(g->window);
            (void)unlink(g->path);
        }
        hed_pieces_fini(&g->pieces);
        free(g);
    }
}

void
hed_guest_forget(struct hed_guest *g, uint32_t worker)
{
    if (g)
        hed_pieces_leave(&g->pieces, worker);
}

void
hed_guests_reaped(struct hed_server *s, pid_t pid)
{
    for (struct hed_guest *g = s->guests; g; g = g->next)
        if (g->pid == pid)
            g->pid = 0; /* another process may have the number */
}

/* Frees up to so many bytes that nobody has any more. False if there are none. */
static bool
clear_pieces(struct hed_guest *g, uint64_t most, int ranges)
{
    uint64_t offset, bytes, sum = 0;

    for (int i = 0; i < ranges && sum < most && g->pieces.left; i++) {
        bytes = hed_pieces_clear(&g->pieces, most - sum, &offset);
        if (!bytes)
            break;
        sum += bytes;
        (void)fallocate(g->window, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                        (off_t)bytes);
    }
    return sum > 0;
}

bool
hed_guests_clear(struct hed_server *s)
{
    struct hed_guest *g = s->guests;

    while (g && !g->pieces.left)
        g = g->next;
    if (g)
        (void)clear_pieces(g, CLEAR_BYTES, CLEAR_RANGES);
    return g != NULL;
}

/* ---- the bridge ------------------------------------------------------------------------------ */

static _Noreturn void
be_bridge(const struct hed_server *s, int qemu, int socket, int words, pid_t listener)
{
    const struct hed_bridge_start start = {
        .vhost = qemu,
        .listener = socket,
        .cid = GUEST_CID,
        .port = HED_ADDRESS_PORT,
        .silent_ms = s->options->guest_ms,
        .connections = HED_BRIDGE_CONNECTIONS,
    };
    struct hed_sandbox box = s->sandbox;
    struct hed_why why = {""};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        getppid() != (hed_confine_has(s, HED_STEP_PROCESSES) ? 0 : listener))
        _exit(1);
    (void)prctl(PR_SET_NAME, "heddled-bridge");
    /* The server's own may be a file that a guest must not change. */
    if (dup2(words, STDOUT_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0)
        _exit(1);
    hed_child_prepare((int[]){qemu, socket}, 2);
    box.steps &= ~(UINT32_C(1) << HED_STEP_CGROUP); /* it stays in the listener's */
    box.uid = s->options->worker_uids[1];           /* no worker's; see hed_child_start() */
    if (box.steps && hed_bridge_confine(&box, &start, &why) != 0) {
        hed_error(SERVER, "a guest was not served: %s", why.text);
        _exit(1);
    }
    _exit(hed_bridge_run(&start) == 0 ? 0 : 1);
}

static int
start_bridge(struct hed_server *s, struct hed_guest *g, int qemu)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = g};
    const pid_t listener = getpid();
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return HED_ENOMEM;

    const int words = hed_lines_open(&g->lines);
    const pid_t pid = words < 0 ? -1 : hed_sandbox_fork(&s->sandbox);

    if (pid == 0)
        be_bridge(s, qemu, ends[1], words, listener);
    (void)close(ends[1]);
    if (words >= 0)
        (void)close(words);
    if (pid < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, ends[0], &e) != 0) {
        (void)close(ends[0]); /* which ends the bridge */
        hed_lines_end(s, &g->lines);
        return HED_ENOMEM;
    }
    hed_lines_begin(s, &g->lines, pid, g->name);
    g->bridge = ends[0];
    g->pid = pid;
    return 0;
}

/* The bridge notices it a moment later. Nobody shall have to wait for that to restart a guest. */
static bool
is_qemu_gone(const struct hed_guest *g)
{
    struct pollfd p = {g->qemu, POLLRDHUP, 0};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP));
}

void
hed_guest_begin(struct hed_server *s, struct hed_guest *g, int qemu)
{
    struct hed_peer_user user;
    const char *refused = NULL;

    if (g->bridge >= 0 && is_qemu_gone(g))
        part_from_bridge(s, g);
    if (!hed_user_may(s->options, qemu, &user))
        refused = "its user may not use the server (--allow-uid, --allow-gid)";
    else if (g->bridge >= 0)
        refused = "this guest is connected already; each needs a name of its own";
    else if (start_bridge(s, g, qemu) != 0)
        refused = "there is no memory or no process for it";
    if (refused) {
        s->refused++;
        hed_warn(SERVER, "refused QEMU (process %d of user %u) for guest %s: %s", (int)user.pid,
                 user.uid, g->name, refused);
        (void)close(qemu);
    } else {
        clean_window(g); /* QEMU may have been here longer than its bridge */
        g->qemu = qemu;
        g->user = user;
        g->since_ns = hed_now_ns();
        hed_info(SERVER, "guest %s (process %d of user %u) is here", g->name, (int)user.pid,
                 user.uid);
    }
}

void
hed_guest_ready(struct hed_server *s, struct hed_guest *g)
{
    for (int i = 0; i < TAKE_MAX && g->bridge >= 0; i++) {
        struct hed_bridge_hello hello;
        int fd;
        const int err = hed_fd_take(g->bridge, &fd, 1, &hello, sizeof hello);

        if (err == HED_ETIME)
            return;
        if (err == HED_EFORMAT) { /* without its descriptor, for which we may have had no room */
            s->refused++;
            continue;
        }
        if (err) { /* it has ended */
            part_from_bridge(s, g);
            return;
        }
        s->accepted++;
        hed_peer_add(s, fd, &hed_link_vm, NULL, g);
    }
}

/* ---- what workers ask ------------------------------------------------------------------------ */

uint64_t
hed_guest_take_piece(struct hed_guest *g, uint32_t worker, uint64_t bytes)
{
    uint64_t offset = g ? hed_pieces_take(&g->pieces, worker, bytes) : 0;

    /* What programs have left that ended a moment ago counts as free. */
    while (g && !offset && clear_pieces(g, CLEAR_BYTES, CLEAR_RANGES))
        offset = hed_pieces_take(&g->pieces, worker, bytes);
    return offset;
}

void
hed_guest_give_piece(struct hed_guest *g, uint32_t worker, uint64_t offset, uint64_t bytes)
{
    if (g)
        hed_pieces_give(&g->pieces, worker, offset, bytes);
}
