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
 * 1. The fork server reads nothing of what a client sends, except a request that it cannot pass on.
 * 2. When the program is gone, all sockets are hung up, and the fork server ends. A compiler ends
 *    when the fork server does.
 */
#pragma once

#define HED_FORKSERVER_SOCKETS 9 /* the most: as many kernels are compiled at once */

struct hed_forkserver {
    const int *sockets;
    unsigned count;
    const char *library; /* compiler-llvm.so, with its folder */
    /* In a new compiler, before it reads the request: gives up what it does not need. Returns 0 or
     * the compiler ends. May be NULL. */
    int (*confine)(void);
};

/* The function of the library that is called in a compiler: serves a socket until it is hung up. */
#define HED_FORKSERVER_SERVE "hed_ptx_compiler_serve"
typedef int (*hed_forkserver_serve_fn)(int socket);

/* Never returns. The process has one thread, and no children. */
_Noreturn void hed_forkserver_run(const struct hed_forkserver *f);
