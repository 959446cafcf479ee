/* Faults inside kernels: signals become the launch's error, and the process lives on.
 *
 *   kernel --fault--> handler notes it and lets the thread go on in hed_fiber_jump(worker's stack)
 *   anything else --fault--> the handler that was there before
 *
 * The handlers are installed with the first launch, and again when the program has replaced one: a
 * kernel's fault must not reach a handler that knows nothing of it.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "backends/cpu/engine.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define SIGNALS (sizeof signals / sizeof *signals)

static struct hed_lock install_lock = HED_LOCK_INIT(HED_RANK_WORKERS);
/* What was there before. Replaced as a whole, and never freed: a handler may be reading it. */
struct earlier {
    struct sigaction action;
    struct earlier *older;
};
static _Atomic(struct earlier *) before[SIGNALS];

/* Handlers run on stacks out of one range; which one says whose it is. Thread-local variables would
 * not do: a thread's first use of one takes memory, and the handler must not. */
#define STACKS_MOST 16384

static pthread_once_t stacks_once = PTHREAD_ONCE_INIT;
static struct hed_regions stacks;
static bool stacks_there;
static _Atomic(struct hed_engine_worker *)
    owners[STACKS_MOST]; /* by place of the stack in the range */

static _Atomic pid_t chaining; /* the thread that is inside the program's handler */

static void
make_stacks(void)
{
    stacks_there = hed_regions_init(&stacks, STACKS_MOST * HED_FAULT_STACK) == 0;
}

static size_t
place_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p - (uintptr_t)stacks.base;

    return at / HED_FAULT_STACK;
}

int
hed_fault_init(struct hed_engine_worker *w)
{
    (void)pthread_once(&stacks_once, make_stacks);
    if (!stacks_there || hed_region_take(&stacks, HED_FAULT_STACK, &w->alternate) != 0)
        return HED_ENOMEM;
    return 0;
}

void
hed_fault_fini(struct hed_engine_worker *w)
{
    if (w->alternate.at)
        hed_region_give(&stacks, &w->alternate);
}

/* The worker whose thread this handler interrupted; NULL: none. */
static struct hed_engine_worker *
this_worker(void)
{
    const size_t place = stacks_there ? place_of(__builtin_frame_address(0)) : STACKS_MOST;

    /* Relaxed: set by this very thread. */
    return place < STACKS_MOST ? atomic_load_explicit(&owners[place], memory_order_relaxed) : NULL;
}

static size_t
index_of(int signo)
{
    size_t i = 0;

    while (i + 1 < SIGNALS && signals[i] != signo)
        i++;
    return i;
}

/* Makes the interrupted code go on with the worker's own stack. */
static void
divert(ucontext_t *uc, struct hed_engine_worker *w)
{
    hed_side_divert(&w->side);
#if defined(__aarch64__)
    uc->uc_mcontext.pc = (uintptr_t)hed_fiber_jump;
    uc->uc_mcontext.regs[0] = (uintptr_t)w->side.sp;
#else
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)hed_fiber_jump;
    uc->uc_mcontext.gregs[REG_RDI] = (greg_t)(uintptr_t)w->side.sp;
#endif
}

static uint64_t
pc_of(const ucontext_t *uc)
{
#if defined(__aarch64__)
    return uc->uc_mcontext.pc;
#else
    return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#endif
}

/* What would have happened without us. */
static void
chain(int signo, siginfo_t *info, void *context)
{
    /* Acquire: pairs with the release in install_locked. */
    const struct earlier *earlier =
        atomic_load_explicit(&before[index_of(signo)], memory_order_acquire);
    const struct sigaction *old = earlier ? &earlier->action : NULL;

    const pid_t me = (pid_t)syscall(SYS_gettid);
    /* Relaxed: only this thread's own value matters. */
    const bool again = atomic_load_explicit(&chaining, memory_order_relaxed) == me;

    if (again || !old ||
        (!(old->sa_flags & SA_SIGINFO) &&
         (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN))) {
        /* The instruction runs again, and this time the system does what it does by default. */
        struct sigaction plain = {.sa_handler = SIG_DFL};

        sigaction(signo, &plain, NULL);
        return;
    }
    atomic_store_explicit(&chaining, me, memory_order_relaxed);
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(signo, info, context);
    else
        old->sa_handler(signo);
    atomic_store_explicit(&chaining, 0, memory_order_relaxed);
}

static void
on_fault(int signo, siginfo_t *info, void *context)
{
    struct hed_engine_worker *w = this_worker();

    if (!w || !w->running || info->si_code == SI_USER || info->si_code == SI_TKILL) {
        chain(signo, info, context);
        return;
    }
    w->fault.signo = signo;
    w->fault.code = info->si_code;
    w->fault.address = (uint64_t)(uintptr_t)info->si_addr;
    w->fault.pc = pc_of(context);
    w->gone = true;
    divert(context, w);
}

static bool
is_ours(int signo)
{
    struct sigaction now;

    return sigaction(signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_fault;
}

static void
install_locked(void)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        struct earlier *now = is_ours(signals[i]) ? NULL : malloc(sizeof *now);
        struct sigaction ours = {.sa_sigaction = on_fault};

        if (!now)
            continue;
        if (sigaction(signals[i], NULL, &now->action) != 0) {
            free(now);
            continue;
        }
        now->older = atomic_load_explicit(&before[i], memory_order_relaxed);
        /* Release: pairs with the acquire in chain. */
        atomic_store_explicit(&before[i], now, memory_order_release);
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        sigaction(signals[i], &ours, NULL);
    }
}

void
hed_fault_enter(struct hed_engine_worker *w, stack_t *old)
{
    const stack_t ours = {.ss_sp = w->alternate.at, .ss_size = HED_FAULT_STACK};
    sigset_t faults;

    /* Programs that replace one replace this one. */
    if (!is_ours(SIGSEGV)) {
        hed_lock(&install_lock);
        install_locked();
        hed_unlock(&install_lock);
    }
    sigaltstack(&ours, old);
    /* A thread that blocks them would be killed by a fault. */
    sigemptyset(&faults);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&faults, signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    atomic_store_explicit(&owners[place_of(w->alternate.at)], w, memory_order_relaxed);
}

void
hed_fault_leave(struct hed_engine_worker *w, const stack_t *old)
{
    atomic_store_explicit(&owners[place_of(w->alternate.at)], NULL, memory_order_relaxed);
    sigaltstack(old, NULL);
}

/* The stack's guard, and a little below it for large frames. */
static bool
in_guard(const struct hed_strand *s, uint64_t address)
{
    const uint64_t low = (uint64_t)(uintptr_t)s->stack;

    return s->block->guard && address >= low && address < low + s->block->guard;
}

void
hed_fault_report(struct hed_engine_worker *w, const struct hed_strand *s)
{
    const struct hed_fault *f = &w->fault;
    const unsigned long long address = f->address;

    switch (f->signo) {
    case SIGSEGV:
    case SIGBUS:
        if (f->signo == SIGBUS && f->code == BUS_ADRALN)
            hed_grid_fail(w->grid, CUDA_ERROR_MISALIGNED_ADDRESS, s, "misaligned address 0x%llx",
                          address);
        else if (in_guard(s, address))
            hed_grid_fail(w->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "stack overflow");
        else if (f->code == SI_KERNEL) /* x86-64 does not say which, of those no page can have */
            hed_grid_fail(w->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "illegal address");
        else
            hed_grid_fail(w->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "illegal address 0x%llx",
                          address);
        break;
    case SIGILL:
        hed_grid_fail(w->grid, CUDA_ERROR_ILLEGAL_INSTRUCTION, s, "illegal instruction");
        break;
    default:
        hed_grid_fail(w->grid, CUDA_ERROR_LAUNCH_FAILED, s, "signal %d", f->signo);
        break;
    }
}
