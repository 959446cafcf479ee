/* The foreman: a small process that forks a compiler when a request comes, and says so when one
 * dies. LLVM is in the compilers alone, so no mistake in it reaches the program.
 *
 *   program  ══ seat 0 ══ foreman ── fork ── compiler of seat 0
 *            ══ seat 1 ══         ── fork ── compiler of seat 1
 *               ...
 *
 * A seat is a pair of connected sockets (message.h). The program has one request at a time on each.
 * The foreman looks at a seat until something comes; then it forks a compiler, which has the seat
 * from then on, reads the request, answers, and waits for the next one. If it dies, the foreman
 * sends an answer in its name, and has the seat again.
 *
 *   in a program    the executable heddle-compiler, which the program starts (main.c)
 *   in a server     a fork of the worker, made before the worker gives up its right to fork
 *
 * Invariants:
 * 1. The foreman reads nothing of what a client sends, except a request that it cannot pass on.
 * 2. When the program is gone, all seats are hung up, and the foreman ends. A compiler ends when
 *    the foreman does.
 */
#pragma once

#define HED_FOREMAN_SEATS 9 /* the most: as many kernels are compiled at once */

struct hed_foreman {
    const int *seats;
    unsigned count;
    const char *library; /* compiler-llvm.so, with its folder */
    /* In a new compiler, before it reads the request: gives up what it does not need. Returns 0 or
     * the compiler ends. May be NULL. */
    int (*confine)(void);
};

/* The function of the library that is called in a compiler: serves a seat until it is hung up. */
#define HED_FOREMAN_SERVE "hed_ptx_compiler_serve"
typedef int (*hed_foreman_serve_fn)(int seat);

/* Never returns. The process has one thread, and no children. */
_Noreturn void hed_foreman_run(const struct hed_foreman *f);
