/* Sending, receiving and checking the requests and answers of move/talk/talk.h. Where the sockets
 * are is in talk_place.c. */
#include "move/talk/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define BACKLOG 64     /* connections that may wait for a busy program */
#define ANSWERS_MAX 16 /* to one request */
#define CONNECT_S 3    /* seconds */
#define SCARCE_NS (100 * HED_NS_PER_MS)

/* ---- names ----------------------------------------------------------------------------------- */

const char *
hed_talk_kind_name(unsigned kind)
{
    static const char *const names[] = {"?",   "info", "capture", "stage", "continue", "attach",
                                        "out", "in",   "move",    "pause", "resume",   "rescue"};

    return kind <= HED_TALK_KIND_LAST ? names[kind] : "?";
}

const char *
hed_talk_state_name(unsigned state)
{
    static const char *const names[] = {"running",  "paused",      "parked",
                                        "captured", "swapped out", "lost"};

    return state <= HED_TALK_STATE_LAST ? names[state] : "?";
}

const char *
hed_talk_object_name(unsigned object)
{
    static const char *const names[HED_TALK_OBJECTS] = {
        [HED_TALK_CONTEXTS] = "contexts",   [HED_TALK_STREAMS] = "streams",
        [HED_TALK_EVENTS] = "events",       [HED_TALK_MODULES] = "modules",
        [HED_TALK_FUNCTIONS] = "functions", [HED_TALK_ALLOCATIONS] = "allocations",
        [HED_TALK_PHYSICALS] = "physical",  [HED_TALK_ARRAYS] = "arrays",
        [HED_TALK_TEXTURES] = "textures",   [HED_TALK_POOLS] = "pools",
        [HED_TALK_GRAPHS] = "graphs"};

    return object < HED_TALK_OBJECTS ? names[object] : "?";
}

const char *
hed_talk_part_name(unsigned part)
{
    static const char *const names[HED_TALK_PARTS] = {[HED_TALK_STOP] = "stop",
                                                      [HED_TALK_DRAIN] = "drain",
                                                      [HED_TALK_SETTLE] = "settle",
                                                      [HED_TALK_ADJUST] = "adjust",
                                                      [HED_TALK_HASH] = "hash",
                                                      [HED_TALK_COPY] = "copy",
                                                      [HED_TALK_REST] = "rest",
                                                      [HED_TALK_TOOLS] = "tools",
                                                      [HED_TALK_CONNECTION] = "connection",
                                                      [HED_TALK_REMADE] = "contexts",
                                                      [HED_TALK_MAPPED] = "memory",
                                                      [HED_TALK_CODE] = "code",
                                                      [HED_TALK_QUEUES] = "queues",
                                                      [HED_TALK_IMAGES] = "images",
                                                      [HED_TALK_VERIFIED] = "verify",
                                                      [HED_TALK_LEAVE] = "leave"};

    return part < HED_TALK_PARTS ? names[part] : "?";
}

/* ---- the structs ----------------------------------------------------------------------------- */

void
hed_talk_ask(struct hed_talk_request *q, enum hed_talk_kind kind)
{
    memset(q, 0, sizeof *q);
    q->magic = HED_TALK_MAGIC;
    q->version = HED_TALK_VERSION;
    q->kind = (uint16_t)kind;
    q->bytes = sizeof *q;
}

void
hed_talk_reply(struct hed_talk_answer *a, const struct hed_talk_request *to)
{
    memset(a, 0, sizeof *a);
    a->magic = HED_TALK_MAGIC;
    a->version = HED_TALK_VERSION;
    a->kind = to->kind;
    a->bytes = sizeof *a;
    a->pid = (uint32_t)getpid();
}

/* Both structs begin alike. */
struct talk_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t bytes;
    uint32_t flags;
};

static int
check_talk_head(const void *bytes, size_t n, size_t wanted, struct hed_why *why)
{
    struct talk_head h;

    if (n < sizeof h) {
        hed_why_set(why, "a message of %zu bytes is too short", n);
        return HED_EFORMAT;
    }
    memcpy(&h, bytes, sizeof h);
    if (h.magic != HED_TALK_MAGIC) {
        hed_why_set(why, "the other side does not speak heddle's protocol for snapshots");
        return HED_EFORMAT;
    }
    if (h.version != HED_TALK_VERSION || h.bytes != wanted) {
        hed_why_set(why,
                    "the program and the command have different versions of heddle (protocol %u, "
                    "not %u): use the command of the version that the program was started with",
                    h.version, HED_TALK_VERSION);
        return HED_EVERSION;
    }
    if (n != wanted) {
        hed_why_set(why, "a message has %zu bytes, but says that it has %zu", n, wanted);
        return HED_EFORMAT;
    }
    if (h.kind < HED_TALK_INFO || h.kind > HED_TALK_KIND_LAST ||
        (h.flags & ~(uint32_t)HED_TALK_FLAGS_KNOWN) != 0) {
        hed_why_set(why, "unknown kind %u or flags 0x%x of a message", h.kind, h.flags);
        return HED_EFORMAT;
    }
    return 0;
}

static bool
talk_text_ends(const char *s, size_t size)
{
    return memchr(s, 0, size) != NULL;
}

int
hed_talk_check_request(const void *bytes, size_t n, size_t fds, struct hed_talk_request *out,
                       struct hed_why *why)
{
    struct hed_talk_request q;
    const int err = check_talk_head(bytes, n, sizeof q, why);

    if (err != 0)
        return err;
    memcpy(&q, bytes, sizeof q);
    if (q.fds != fds || fds > HED_TALK_FDS_MAX) {
        hed_why_set(why, "%zu descriptors came with a request that announces %u", fds, q.fds);
        return HED_EFORMAT;
    }
    if ((q.flags & HED_TALK_MORE) != 0 || !talk_text_ends(q.address, sizeof q.address) ||
        !talk_text_ends(q.label, sizeof q.label)) {
        hed_why_set(why, "a request has a text that does not end, or a flag of answers");
        return HED_EFORMAT;
    }
    *out = q;
    return 0;
}

int
hed_talk_check_answer(const void *bytes, size_t n, struct hed_talk_answer *out, struct hed_why *why)
{
    struct hed_talk_answer a;
    const int err = check_talk_head(bytes, n, sizeof a, why);

    if (err != 0)
        return err;
    memcpy(&a, bytes, sizeof a);
    if (a.err > 0 || a.state > HED_TALK_STATE_LAST ||
        !talk_text_ends(a.address, sizeof a.address) ||
        !talk_text_ends(a.program, sizeof a.program) ||
        !talk_text_ends(a.device, sizeof a.device) || !talk_text_ends(a.why, sizeof a.why)) {
        hed_why_set(why, "an answer has a text that does not end, or an unknown state");
        return HED_EFORMAT;
    }
    *out = a;
    return 0;
}

/* ---- waiting, sending, receiving ------------------------------------------------------------- */

/* Waits until fd can be read. timeout_ms: -1 for ever. */
static int
wait_for_talk(int fd, int timeout_ms)
{
    const uint64_t end = hed_now_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0) * HED_NS_PER_MS;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        const uint64_t now = hed_now_ns();
        const uint64_t left = now < end ? (end - now) / HED_NS_PER_MS + 1 : 0;
        const int n = poll(&p, 1, timeout_ms < 0 ? -1 : (int)left);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return HED_EIO;
        if (n == 0)
            return HED_ETIME;
    }
}

union talk_fds_room {
    char bytes[CMSG_SPACE(HED_TALK_FDS_MAX * sizeof(int))];
    struct cmsghdr align;
};

static int
send_talk(int fd, const void *p, size_t n, const int *fds, size_t count)
{
    union talk_fds_room room;
    struct iovec part = {.iov_base = (void *)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (count > 0) {
        memset(&room, 0, sizeof room);
        m.msg_control = room.bytes;
        m.msg_controllen = CMSG_SPACE(count * sizeof(int));

        struct cmsghdr *h = CMSG_FIRSTHDR(&m);

        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(h), fds, count * sizeof(int));
    }
    do
        sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n ? 0 : HED_EIO;
}

/* Collects the descriptors of a message; closes those beyond `most`. Says how many there were. */
static size_t
collect_talk_fds(struct msghdr *m, int *fds, size_t most)
{
    size_t n = 0;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;

        const size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < count; i++, n++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (n < most)
                fds[n] = fd;
            else
                close(fd);
        }
    }
    return n;
}

static void
close_talk_fds(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

/* Takes one message, cut to size; *got is its length as it was sent. */
static int
take_talk(int fd, int timeout_ms, void *p, size_t size, size_t *got, int *fds, size_t *count)
{
    union talk_fds_room room;
    struct iovec part = {.iov_base = p, .iov_len = size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = sizeof room.bytes};
    const int err = wait_for_talk(fd, timeout_ms);
    ssize_t n;

    if (err != 0)
        return err;
    do
        n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n == 0 || errno == ECONNRESET ? HED_ETRUNC : HED_EIO;
    *got = (size_t)n;
    *count = collect_talk_fds(&m, fds, HED_TALK_FDS_MAX);
    if (*count > HED_TALK_FDS_MAX || (m.msg_flags & MSG_CTRUNC) != 0) {
        close_talk_fds(fds, *count < HED_TALK_FDS_MAX ? *count : HED_TALK_FDS_MAX);
        return HED_EFORMAT;
    }
    return 0;
}

/* ---- the program's side ---------------------------------------------------------------------- */

static int
fill_talk_address(const char *path, struct sockaddr_un *out, struct hed_why *why)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof out->sun_path) {
        hed_why_set(why,
                    "%.200s: too long for a socket (at most %zu characters): use a shorter "
                    "meet_dir",
                    path, sizeof out->sun_path - 1);
        return HED_ERANGE;
    }
    memcpy(out->sun_path, path, strlen(path) + 1);
    return 0;
}

static int
connect_talk(const struct sockaddr_un *to, int *out)
{
    /* A program that is stopped, or does not want to, accepts nobody; the queue is soon full. */
    const struct timeval patience = {.tv_sec = CONNECT_S};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    do
        rc = connect(fd, (const struct sockaddr *)to, sizeof *to);
    while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        const int e = errno;

        close(fd);
        return -e;
    }
    *out = fd;
    return 0;
}

/* Binds, and replaces a socket that nobody listens on any more. */
static int
bind_talk(int fd, const struct sockaddr_un *to)
{
    int other;

    if (bind(fd, (const struct sockaddr *)to, sizeof *to) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -errno;

    const int rc = connect_talk(to, &other);

    if (rc == 0)
        close(other);
    if (rc != -ECONNREFUSED)
        return rc == 0 ? -EADDRINUSE : rc;
    (void)unlink(to->sun_path);
    return bind(fd, (const struct sockaddr *)to, sizeof *to) == 0 ? 0 : -errno;
}

int
hed_talk_listen_at(const char *path, int *listener, struct hed_why *why)
{
    struct sockaddr_un to;
    int err = fill_talk_address(path, &to, why);

    if (err != 0)
        return err;

    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    err = fd < 0 ? -errno : bind_talk(fd, &to);
    if (err == 0 && (chmod(path, 0600) != 0 || listen(fd, BACKLOG) != 0)) {
        err = -errno;
        (void)unlink(path);
    }
    if (err != 0) {
        hed_why_set(why, "%s: %s", path,
                    err == -EADDRINUSE ? "another process listens there" : strerror(-err));
        if (fd >= 0)
            close(fd);
        return err == -EADDRINUSE ? HED_EEXIST : hed_err_from_errno(-err);
    }
    *listener = fd;
    return 0;
}

int
hed_talk_accept(int listener, int timeout_ms, int *out, pid_t *peer)
{
    for (;;) {
        struct ucred c;
        socklen_t size = sizeof c;
        const int err = wait_for_talk(listener, timeout_ms);

        if (err != 0)
            return err;

        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                /* The program has used up what it may have. That may pass. */
                hed_sleep_ns(SCARCE_NS);
                continue;
            }
            if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN)
                continue;
            return HED_EIO;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) == 0 &&
            (c.uid == 0 || c.uid == geteuid())) {
            *out = fd;
            if (peer)
                *peer = c.pid;
            return 0;
        }
        close(fd);
    }
}

int
hed_talk_receive(int fd, int timeout_ms, struct hed_talk_request *q, int fds[HED_TALK_FDS_MAX],
                 struct hed_why *why)
{
    struct hed_talk_request raw;
    size_t got = 0;
    size_t count = 0;
    int err = take_talk(fd, timeout_ms, &raw, sizeof raw, &got, fds, &count);

    if (err != 0) {
        hed_why_set(why, "no request came: %s", hed_err_text(err));
        return err;
    }
    err = hed_talk_check_request(&raw, got, count, q, why);
    if (err != 0)
        close_talk_fds(fds, count);
    return err;
}

int
hed_talk_answer(int fd, const struct hed_talk_answer *a)
{
    return send_talk(fd, a, sizeof *a, NULL, 0);
}

/* ---- the command's side ---------------------------------------------------------------------- */

int
hed_talk_open_at(const char *path, int *out, struct hed_why *why)
{
    struct sockaddr_un to;
    int err = fill_talk_address(path, &to, why);

    if (err != 0)
        return err;
    err = connect_talk(&to, out);
    if (err == 0)
        return 0;
    if (err == -EAGAIN) {
        hed_why_set(why, "%s: the program does not accept connections: is it stopped?", path);
        return HED_ETIME;
    }
    hed_why_set(why, "%s: %s", path, strerror(-err));
    return err == -ENOENT || err == -ECONNREFUSED ? HED_ENOTFOUND : hed_err_from_errno(-err);
}

int
hed_talk_send(int fd, const struct hed_talk_request *q, const int *fds, size_t count,
              struct hed_why *why)
{
    struct hed_talk_request out = *q;

    if (count > HED_TALK_FDS_MAX) {
        hed_why_set(why, "%zu files are too many for one request (at most %d)", count,
                    HED_TALK_FDS_MAX);
        return HED_ELIMIT;
    }
    out.fds = (uint32_t)count;

    const int err = send_talk(fd, &out, sizeof out, fds, count);

    if (err != 0)
        hed_why_set(why, "the program did not take the request: %s", strerror(errno));
    return err;
}

int
hed_talk_wait(int fd, int timeout_ms, unsigned kind, struct hed_talk_answer *a, struct hed_why *why)
{
    struct hed_talk_answer raw;
    int fds[HED_TALK_FDS_MAX];
    size_t got = 0;
    size_t count = 0;
    const int err = take_talk(fd, timeout_ms, &raw, sizeof raw, &got, fds, &count);

    if (err != 0) {
        hed_why_set(why, err == HED_ETIME    ? "the program did not answer in time"
                         : err == HED_ETRUNC ? "the program hung up; has it ended?"
                                             : "the program's answer cannot be read");
        return err;
    }
    close_talk_fds(fds, count);

    const int bad = hed_talk_check_answer(&raw, got, a, why);

    if (bad == 0 && a->kind != kind) {
        hed_why_set(why, "the program answered another request (%s, not %s)",
                    hed_talk_kind_name(a->kind), hed_talk_kind_name(kind));
        return HED_EFORMAT;
    }
    return bad;
}

int
hed_talk_rest(int fd, int timeout_ms, struct hed_talk_answer *a, struct hed_why *why)
{
    int err = 0;

    for (int i = 1; err == 0 && a->flags & HED_TALK_MORE; i++) {
        if (i == ANSWERS_MAX) {
            hed_why_set(why, "the program sends more answers than it should");
            return HED_EFORMAT;
        }
        err = hed_talk_wait(fd, timeout_ms, a->kind, a, why);
    }
    if (err == 0 && a->err != 0) {
        hed_why_set(why, "%s", a->why[0] ? a->why : hed_err_text(a->err));
        err = a->err;
    }
    return err;
}

int
hed_talk_exchange(int fd, const struct hed_talk_request *q, const int *fds, size_t count,
                  int timeout_ms, struct hed_talk_answer *a, struct hed_why *why)
{
    int err = hed_talk_send(fd, q, fds, count, why);

    if (err == 0)
        err = hed_talk_wait(fd, timeout_ms, q->kind, a, why);
    return err ? err : hed_talk_rest(fd, timeout_ms, a, why);
}

int
hed_talk_call(pid_t pid, const struct hed_talk_request *q, const int *fds, size_t count,
              int timeout_ms, struct hed_talk_answer *a, struct hed_why *why)
{
    int fd;
    int err = hed_talk_open(pid, &fd, why);

    if (err != 0)
        return err;
    err = hed_talk_exchange(fd, q, fds, count, timeout_ms, a, why);
    close(fd);
    return err;
}
