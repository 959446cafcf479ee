/* The end of the process while the compiler is loaded or kernels are compiled.
 *
 * LLVM's library takes itself down at exit(), and LLVM must not run while it does. Waiting for it
 * could take seconds, so threads that compile are stopped where they are, for good:
 *
 *   exit() ─> stop_at_exit, before LLVM's own exit handlers
 *               for each thread that compiles: a signal ─> on_stop: inside LLVM's code: it waits
 *                                                          for ever; elsewhere: it is asked again
 *               until every one is stopped or has finished
 *
 * LLVM registers more of them while it compiles, and while it is loaded. Those call stop_at_exit
 * first; before that, they wait until LLVM is loaded (ptx/lower/loading.c).
 *
 *   exit() ─> stop_loading: waits until LLVM is loaded, or keeps our threads from loading it
 *
 * Nothing here needs the dynamic loader's lock while a call is made, except to load LLVM: a thread
 * that unloads a plug-in of the program has that lock while it waits for other threads' calls.
 *
 * A thread whose next instruction is LLVM's is not inside malloc, the dynamic linker or stdio, so
 * it holds no lock that the end of the process needs.
 *
 * Invariants:
 * 1. A thread calls the compiler only while it has a slot.
 * 2. After `ending` is set, no slot is taken.
 * 3. After stop_loading, the compiler is not loaded in the background any more.
 */
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "base/log.h"

#define SLOTS 64 /* threads that compile at the same time; others wait */
#define STOP_SIGNAL (SIGRTMAX - 1)
#define ASK_AGAIN_NS 50000

static struct hed_lock lock = HED_LOCK_INIT(HED_RANK_CODE);
static pthread_cond_t slot_given = PTHREAD_COND_INITIALIZER;
static bool ending;                    /* guarded by lock */
static _Atomic pid_t slots[SLOTS];     /* threads; 0 if free. Written under lock, read by on_stop */
static _Atomic bool stopped[SLOTS];    /* the thread waits forever */
static uintptr_t code_first, code_end; /* LLVM's code; constant once there are slots */
static pid_t process;                  /* in which the exit handler was installed */

/* ---- while the compiler is loaded ------------------------------------------------------------ */

enum { NOT_LOADING, LOADING, NO_MORE_LOADING };

static _Atomic int loading;
static _Atomic pid_t loading_process;

static void
stop_loading(void)
{
    int expected = NOT_LOADING;

    /* Acquire: pairs with the release in hed_compiler_load_end() and, while the compiler is loaded,
     * with that in hed_compiler_load_begin(), which makes loading_process visible. A child that was
     * made without our knowledge does not have the thread that was loading. */
    while (!atomic_compare_exchange_weak_explicit(&loading, &expected, NO_MORE_LOADING,
                                                  memory_order_acquire, memory_order_acquire)) {
        if (expected == NO_MORE_LOADING ||
            (expected == LOADING &&
             atomic_load_explicit(&loading_process, memory_order_relaxed) != getpid()))
            return;
        if (expected == LOADING)
            hed_sleep_ns(ASK_AGAIN_NS);
        expected = NOT_LOADING;
    }
}

static void
register_stop_loading(void)
{
    if (atexit(stop_loading) != 0)
        hed_debug(CPU, "no memory for an exit handler");
}

void
hed_compiler_watch_exit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, register_stop_loading);
}

bool
hed_compiler_load_begin(bool in_background)
{
    int expected = NOT_LOADING;

    atomic_store_explicit(&loading_process, getpid(), memory_order_relaxed);
    /* Release: pairs with the acquire in stop_loading(), which reads loading_process. */
    return atomic_compare_exchange_strong_explicit(&loading, &expected, LOADING,
                                                   memory_order_release, memory_order_relaxed) ||
           !in_background;
}

void
hed_compiler_load_end(void)
{
    int expected = LOADING;

    /* Release: pairs with the acquire in stop_loading(). */
    (void)atomic_compare_exchange_strong_explicit(&loading, &expected, NOT_LOADING,
                                                  memory_order_release, memory_order_relaxed);
}

/* ---- while kernels are compiled -------------------------------------------------------------- */

static uintptr_t
interrupted_pc(const void *context)
{
    const ucontext_t *uc = context;

#if defined(__aarch64__)
    return uc->uc_mcontext.pc;
#else
    return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#endif
}

static void
on_stop(int signo, siginfo_t *info, void *context)
{
    const uintptr_t pc = interrupted_pc(context);
    const pid_t me = (pid_t)syscall(SYS_gettid);
    sigset_t all;

    (void)signo;
    (void)info;
    if (pc < code_first || pc >= code_end)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load_explicit(&slots[i], memory_order_relaxed) != me)
            continue;
        /* Release: pairs with the acquire in stop_threads(); LLVM's memory does not change now. */
        atomic_store_explicit(&stopped[i], true, memory_order_release);
        sigfillset(&all);
        for (;;)
            sigsuspend(&all);
    }
}

/* True if a thread may still be inside the compiler. Asks it to stop. */
static bool
is_slot_running(int i)
{
    const pid_t thread = atomic_load_explicit(&slots[i], memory_order_relaxed);

    /* Acquire: pairs with the release in on_stop(). */
    if (!thread || atomic_load_explicit(&stopped[i], memory_order_acquire))
        return false;
    return syscall(SYS_tgkill, (long)process, (long)thread, (long)STOP_SIGNAL) == 0;
}

static void
stop_at_exit(void)
{
    struct sigaction action = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO | SA_RESTART};
    bool again;

    /* A child that was made without our knowledge has none of the threads. */
    if (getpid() != process)
        return;
    hed_lock(&lock);
    ending = true;
    hed_unlock(&lock);
#if defined(__SANITIZE_THREAD__)
    /* ThreadSanitizer delivers signals late, at another place: wait instead. */
    action.sa_sigaction = NULL;
    action.sa_handler = SIG_IGN;
#endif
    sigfillset(&action.sa_mask);
    if (sigaction(STOP_SIGNAL, &action, NULL) != 0)
        return;
    do {
        again = false;
        for (int i = 0; i < SLOTS; i++)
            again = is_slot_running(i) || again;
        if (again)
            hed_sleep_ns(ASK_AGAIN_NS);
    } while (again);
}

/* Notes the code of the library that `arg` points into. */
static int
find_llvm(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t first = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && (uintptr_t)arg >= first &&
            (uintptr_t)arg < first + p->p_memsz) {
            code_first = first;
            code_end = first + p->p_memsz;
            return 1;
        }
    }
    return 0;
}

bool
hed_compiler_guard(const struct hed_ptx_compiler *compiler)
{
    if (process != getpid()) {
        process = getpid();
        (void)dl_iterate_phdr(find_llvm, (void *)compiler->inside);
        if (atexit(stop_at_exit) != 0) {
            hed_warn(CPU, "no memory for the end of the process: kernels are not compiled");
            return false;
        }
    }
    return compiler->guard(stop_at_exit);
}

int
hed_compiler_enter(sigset_t *mask)
{
    const pid_t me = (pid_t)syscall(SYS_gettid);
    sigset_t stop;
    int slot = -1;

    hed_lock(&lock);
    while (!ending && slot < 0) {
        for (int i = 0; i < SLOTS && slot < 0; i++)
            slot = atomic_load_explicit(&slots[i], memory_order_relaxed) ? -1 : i;
        if (slot < 0)
            (void)hed_lock_wait(&lock, &slot_given, UINT64_MAX);
    }
    if (slot >= 0)
        atomic_store_explicit(&slots[slot], me, memory_order_relaxed);
    hed_unlock(&lock);
    sigemptyset(&stop);
    sigaddset(&stop, STOP_SIGNAL);
    if (slot >= 0)
        pthread_sigmask(SIG_UNBLOCK, &stop, mask);
    return slot;
}

void
hed_compiler_leave(int slot, const sigset_t *mask)
{
    pthread_sigmask(SIG_SETMASK, mask, NULL);
    hed_lock(&lock);
    atomic_store_explicit(&slots[slot], 0, memory_order_relaxed);
    pthread_cond_signal(&slot_given);
    hed_unlock(&lock);
}

bool
hed_compiler_forked(void)
{
    bool any = atomic_load_explicit(&loading, memory_order_relaxed) == LOADING;

    atomic_store_explicit(&loading, NOT_LOADING, memory_order_relaxed);
    hed_lock_init(&lock, HED_RANK_CODE);
    pthread_cond_init(&slot_given, NULL);
    for (int i = 0; i < SLOTS; i++) {
        any = any || atomic_load_explicit(&slots[i], memory_order_relaxed);
        atomic_store_explicit(&slots[i], 0, memory_order_relaxed);
    }
    return any;
}
