/* A compiler in a process of its own: takes requests from a socket (kernel/forkserver/message.h),
 * one after another, and answers each. It may die at any moment, and then the fork server answers
 * for it.
 *
 * It has limits: of memory, so that a large kernel does not take the machine's; of processor time,
 * so that one that LLVM never finishes ends; and of the clock, for a compiler that only waits.
 */
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/sanitize.h"
#include "base/sealed.h"
#include "base/thread.h"
#include "kernel/forkserver/forkserver.h"
#include "kernel/forkserver/message.h"
#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/text/parse.h"

#define COMPILER_STACK ((size_t)64 << 20) /* bytes: LLVM recurses deeply in large functions */
#define KEPT_MOST ((long)768 << 10)       /* KiB: a compiler that had more ends, and frees it */
/* A busy machine gives the compiler a part of a core only. */
#define CLOCK_PER_PROCESSOR 20
#define OBJECT "heddle-object" /* the name of the memory */

struct server {
    int socket;
    const struct hed_forkserver_keep *keep; /* or NULL */
    unsigned char packet[HED_FORKSERVER_REQUEST_MAX];
    struct hed_forkserver_request request;
    struct hed_forkserver_texts texts;
    bool has_module;
    struct hed_ptx_module module; /* the one that was read last */
    uint8_t module_text[HED_HASH_SIZE];
    struct hed_buf object;
    uint64_t began; /* the request, by hed_now_ns() */
    struct hed_forkserver_answer answer;
};

/* ---- limits ---------------------------------------------------------------------------------- */

/* Sets the soft limit, as far as the hard one lets it. */
static void
limit_resource(int what, rlim_t most)
{
    struct rlimit r;

    if (getrlimit(what, &r) != 0)
        return;
    r.rlim_cur = most < r.rlim_max ? most : r.rlim_max;
    (void)setrlimit(what, &r);
}

static void
begin_limits(const struct hed_forkserver_request *r)
{
    struct itimerval wall = {.it_value = {.tv_sec = 0}};
    const uint64_t used = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / HED_NS_PER_S;

    /* A sanitizer takes more addresses than any limit allows. */
    if (!HED_SANITIZED)
        limit_resource(RLIMIT_DATA, r->memory ? (rlim_t)r->memory : RLIM_INFINITY);
    limit_resource(RLIMIT_CPU, r->seconds ? (rlim_t)(used + r->seconds + 1) : RLIM_INFINITY);
    wall.it_value.tv_sec = (time_t)r->seconds * CLOCK_PER_PROCESSOR;
    (void)setitimer(ITIMER_REAL, &wall, NULL);
}

/* While it waits for a request, time does not count. */
static void
end_limits(void)
{
    const struct itimerval none = {.it_value = {.tv_sec = 0}};

    (void)setitimer(ITIMER_REAL, &none, NULL);
    limit_resource(RLIMIT_CPU, RLIM_INFINITY);
}

/* ---- a request ------------------------------------------------------------------------------- */

/* Copies the request out of the packet, and checks it. */
static int
read_compile_request(struct server *s, long size, struct hed_why *why)
{
    struct hed_forkserver_request *r = &s->request;
    const size_t head = sizeof *r;

    if (size < (long)head) {
        hed_why_set(why, "a request to the compiler is too short");
        return HED_EFORMAT;
    }
    memcpy(r, s->packet, head);
    if (r->magic != HED_FORKSERVER_MAGIC || r->abi != HED_PTX_ABI) {
        hed_why_set(why, "compiler-llvm.so belongs to another version of heddle: install heddle "
                         "again");
        return HED_EVERSION;
    }
    if (r->name_size > HED_FORKSERVER_NAME_MAX || r->features_size > HED_FORKSERVER_FEATURES_MAX ||
        (size_t)size != head + r->name_size + r->features_size || r->rows >= HED_ROWS_COUNT ||
        r->level > 3 || r->text_size > HED_FORKSERVER_TEXT_MAX) {
        hed_why_set(why, "a request to the compiler is damaged");
        return HED_EFORMAT;
    }
    hed_forkserver_texts(r, s->packet + head, &s->texts);
    return 0;
}

/* Maps the PTX. Its hash is in the key under which the object may be stored, so it must be what the
 * request says. NULL, and `why` is set, otherwise. */
static char *
map_module_text(const struct hed_forkserver_request *r, int fd, struct hed_why *why)
{
    const size_t size = (size_t)r->text_size;
    uint8_t hash[HED_HASH_SIZE];
    void *text = MAP_FAILED;

    if (size && hed_fd_is_final(fd, size))
        text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        hed_why_set(why, "the compiler cannot read the PTX");
        return NULL;
    }
    hed_hash_of(text, size, hash);
    if (memcmp(hash, r->text, sizeof hash) == 0)
        return text;
    hed_why_set(why, "the PTX is not what the request to the compiler says");
    (void)munmap(text, size);
    return NULL;
}

static int
parse_module_text(struct server *s, int fd, struct hed_why *why)
{
    const struct hed_forkserver_request *r = &s->request;
    char *text = map_module_text(r, fd, why);
    int err;

    if (!text)
        return HED_EIO;
    if (s->has_module)
        hed_ptx_module_fini(&s->module);
    hed_ptx_module_init(&s->module, HED_PTX_CEILING);
    err = hed_ptx_parse(&s->module, text, (size_t)r->text_size);
    (void)munmap(text, (size_t)r->text_size);
    s->has_module = err == 0;
    if (err) {
        hed_why_set(why, "the compiler cannot parse the PTX: %s", hed_err_text(err));
        hed_ptx_module_fini(&s->module);
        return err;
    }
    hed_ptx_leave_out_device_runtime(&s->module);
    memcpy(s->module_text, r->text, sizeof s->module_text);
    return 0;
}

#ifdef HED_DEBUG
/* For tests: kernels with these names show what becomes of a program whose compiler fails. */
static void
fail_on_purpose(const char *name)
{
    if (strstr(name, "heddle_test_compiler_crashes"))
        (void)raise(SIGSEGV);
    while (strstr(name, "heddle_test_compiler_spins"))
        ;
    while (strstr(name, "heddle_test_compiler_eats")) {
        void *volatile p = malloc((size_t)16 << 20);

        if (!p)
            (void)raise(SIGABRT);
        memset(p, 1, (size_t)16 << 20);
    }
}
#endif

static const struct hed_ptx_func *
find_kernel_named(const struct hed_ptx_module *m, const char *name)
{
    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next)
        if (f->is_entry && f->has_body && strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static int
compile_request(struct server *s, struct hed_why *why)
{
    const struct hed_forkserver_request *r = &s->request;
    const struct hed_ptx_func *kernel = find_kernel_named(&s->module, s->texts.name);
    const struct hed_ptx_options o = {
        .rows = (enum hed_rows)r->rows,
        .level = (int)r->level,
        .check_alignment = r->flags & HED_FORKSERVER_CHECK_ALIGNMENT,
        .confined = r->flags & HED_FORKSERVER_CONFINED,
        .features = s->texts.features,
    };
    int err;

    if (!kernel) {
        hed_why_set(why, "the compiler finds no kernel of this name");
        return HED_ENOTFOUND;
    }
#ifdef HED_DEBUG
    fail_on_purpose(s->texts.name);
#endif
    err = hed_ptx_compile(&s->module, kernel, &o, &s->object, why);
    return err ? err : s->object.err;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void
answer_compile_request(struct server *s, long size, int fd)
{
    struct hed_forkserver_answer *a = &s->answer;

    a->err = read_compile_request(s, size, &a->why);
    a->number = s->request.number;
    if (a->err)
        return;
    begin_limits(&s->request);
    if (!s->has_module || memcmp(s->module_text, s->request.text, sizeof s->module_text) != 0) {
        if (fd < 0)
            a->kind = HED_FORKSERVER_NEEDS_TEXT;
        else
            a->err = parse_module_text(s, fd, &a->why);
    }
    if (a->kind == HED_FORKSERVER_DONE && !a->err)
        a->err = compile_request(s, &a->why);
    end_limits();
}

/* LLVM keeps what it has freed. */
static bool
has_grown(void)
{
    struct rusage used;

    return getrusage(RUSAGE_SELF, &used) != 0 || used.ru_maxrss > KEPT_MOST;
}

/* A program that just reads no answers has not ended. */
static bool
is_hung_up(int socket)
{
    struct pollfd p = {.fd = socket};

    return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* The program has ended. Its next run wants what was made. */
static void
keep_compiled(const struct server *s)
{
    const uint64_t us = (hed_now_ns() - s->began) / 1000;

    if (s->keep && s->request.flags & HED_FORKSERVER_KEEP && is_hung_up(s->socket))
        s->keep->keep(s->keep->arg, &s->request, &s->texts, s->object.data, s->object.size,
                      (uint32_t)hed_min(us, UINT32_MAX));
}

static int
send_compiled(struct server *s)
{
    struct hed_forkserver_answer *a = &s->answer;
    int fd = -1, err;

    if (a->kind == HED_FORKSERVER_DONE && !a->err) {
        a->size = s->object.size;
        if (hed_fd_write_sealed(OBJECT, s->object.data, s->object.size, &fd) != 0) {
            a->err = HED_ENOMEM;
            hed_why_set(&a->why, "not enough memory for compiled code");
        }
    }
    a->leaves = has_grown() || hed_ptx_compiler_is_damaged();
    err = hed_forkserver_send(s->socket, a, sizeof *a, NULL, 0, fd);
    if (fd >= 0)
        (void)close(fd);
    if (err && a->kind == HED_FORKSERVER_DONE && !a->err)
        keep_compiled(s);
    return err || a->leaves;
}

static void *
serve_socket(void *arg)
{
    struct server *s = arg;
    int end = 0;

    hed_buf_init(&s->object, HED_FORKSERVER_OBJECT_MAX);
    while (!end) {
        int fd = -1;
        const long n = hed_forkserver_receive(s->socket, s->packet, sizeof s->packet, 0, &fd);

        if (n == 0)
            break;
        s->answer = (struct hed_forkserver_answer){.magic = HED_FORKSERVER_MAGIC,
                                                   .kind = HED_FORKSERVER_DONE};
        s->began = hed_now_ns();
        answer_compile_request(s, n, fd);
        if (fd >= 0)
            (void)close(fd);
        end = send_compiled(s);
        hed_buf_fini(&s->object);
        (void)malloc_trim(0);
    }
    return NULL;
}

__attribute__((visibility("default"))) int
hed_ptx_compiler_serve_socket(int socket, const struct hed_forkserver_keep *keep);

int
hed_ptx_compiler_serve_socket(int socket, const struct hed_forkserver_keep *keep)
{
    const struct hed_thread_how how = {
        .name = "heddle-llvm", .stack = COMPILER_STACK, .faults = true};
    struct server *s = calloc(1, sizeof *s);

    if (!s)
        return HED_ENOMEM;
    s->socket = socket;
    s->keep = keep;
    return hed_thread_wait(&how, serve_socket, s);
}
