/* The fork server: a small process that forks a compiler when a request comes, and says so when one
 * dies. LLVM is in the compilers alone, so no mistake in it reaches the program.
 *
 *   program  ══ socket 0 ══ fork server ── fork ── compiler of socket 0
 *            ══ socket 1 ══             ── fork ── compiler of socket 1
 *               ...
 *
 * Each socket is one end of a pair (message.h). The program has one request at a time on each. The
 * fork server looks at a socket until something comes; then it forks a compiler, which has the
 * socket from then on, reads the request, answers, and waits for the next one. If it dies, the fork
 * server sends an answer in its name, and has the socket again.
 *
 *   in a program    the executable heddle-compiler, which the program starts (main.c)
 *   in a server     a fork of the worker, made before the worker gives up its right to fork
 *
 * Invariants:
 * 1. The fork server reads nothing of what a client sends, except a request that it cannot pass on,
 *    and the list of a program that it works for after the end (after.c); a server's has none.
 * 2. When the program is gone, all sockets are hung up, and the fork server ends, perhaps after it
 *    has worked off the list. A compiler ends when the fork server does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_cache;
struct hed_forkserver_request;
struct hed_forkserver_texts;

#define HED_FORKSERVER_SOCKETS 9 /* the most: as many kernels are compiled at once */

struct hed_forkserver {
    const int *sockets;
    unsigned count;
    const char *library; /* compiler-llvm.so, with its folder */
    /* In a new compiler, before it reads the request: gives up what it does not need. Returns 0 or
     * the compiler ends. May be NULL. */
    int (*confine)(void);
    const struct hed_forkserver_after *after; /* NULL: nothing happens after the program's end */
};

/* What happens when the program has ended with kernels that it wanted compiled. */
struct hed_forkserver_after {
    struct hed_cache *cache; /* where the objects go */
    uint64_t compiler;       /* the identity of its library (struct hed_cache_origin) */
    int list;                /* the socket on which the program tells what it wants */
    unsigned seconds;        /* that it may take in all, by the clock */
    unsigned kernels;        /* that are compiled, besides those that were being compiled */
    pid_t program;
    int process;     /* a descriptor of it, which can be read when it has ended; or -1 */
    bool is_awaited; /* somebody waits for it: it takes all compilers, and its usual priority */
};

#define HED_FORKSERVER_AFTER_MAX 1024 /* kernels on the list; more are forgotten */
#define HED_FORKSERVER_AFTER_TEXTS ((uint64_t)256 << 20) /* bytes of PTX on it, likewise */
#define HED_FORKSERVER_AFTER_MEMORY ((uint64_t)2 << 30)  /* bytes that a compiler may then take */
#define HED_FORKSERVER_AFTER_NICENESS 19

/* Puts an object whose program is gone into the cache. The compiler has checked that r->text is the
 * hash of what it has compiled. */
struct hed_forkserver_keep {
    void (*keep)(const void *arg, const struct hed_forkserver_request *r,
                 const struct hed_forkserver_texts *texts, const void *object, size_t size,
                 uint32_t compile_us);
    const void *arg;
};

/* The function of the library that is called in a compiler: serves a socket until it is hung up.
 * `keep` may be NULL. */
#define HED_FORKSERVER_SERVE "hed_ptx_compiler_serve_socket"
typedef int (*hed_forkserver_serve_fn)(int socket, const struct hed_forkserver_keep *keep);

/* Never returns. The process has one thread, and no children. */
_Noreturn void hed_forkserver_run(const struct hed_forkserver *f);
