/* Faults inside kernels: a signal becomes the launch's error, and the process lives on.
 *
 *   kernel --fault--> the handler notes it; the thread continues in hed_fiber_jump(worker's stack)
 *   anything else --fault--> the handler that was installed before ours
 *
 * A grid that runs for too long (watch.h) has failed before its threads are interrupted by
 * HED_INTERRUPT, and is left in the same way; but only from compiled code, because functions of
 * ours may hold locks.
 *
 * The handlers are installed with the first launch, and again if the program has replaced one, so
 * that a kernel's fault never reaches a handler that does not know about kernels.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "kernel/engine/engine_parts.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define SIGNALS (sizeof signals / sizeof *signals)

static struct hed_lock install_lock = HED_LOCK_INIT(HED_RANK_WORKERS);
/* The handler before ours. Replaced as a whole and never freed, since a handler may be reading
 * it. */
struct earlier {
    struct sigaction action;
    struct earlier *older;
};
static _Atomic(struct earlier *) before[SIGNALS];

/* Handlers run on stacks that lie in one range, so the position of a stack identifies its worker.
 * Thread-local variables cannot be used: a thread's first use of one allocates memory, which a
 * handler must not do. */
#define STACKS_MOST 16384

static pthread_once_t stacks_once = PTHREAD_ONCE_INIT;
static struct hed_regions stacks;
static bool stacks_there;
static _Atomic(struct hed_engine_worker *)
    owners[STACKS_MOST]; /* by position of the stack in the range */

/* The last call of a handler of the program: by which thread, with which context, from where on the
 * stack. */
static struct {
    _Atomic pid_t thread;
    _Atomic uintptr_t context, frame;
} chained;

static void
make_stacks(void)
{
    stacks_there = hed_regions_init(&stacks, STACKS_MOST * HED_FAULT_STACK) == 0;
}

static size_t
stack_index(const void *p)
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

/* The worker whose thread this handler interrupted; NULL if there is none. */
static struct hed_engine_worker *
this_worker(void)
{
    const size_t place = stacks_there ? stack_index(__builtin_frame_address(0)) : STACKS_MOST;

    /* Relaxed: this thread itself wrote it. */
    return place < STACKS_MOST ? atomic_load_explicit(&owners[place], memory_order_relaxed) : NULL;
}

static size_t
signal_index(int signo)
{
    size_t i = 0;

    while (i + 1 < SIGNALS && signals[i] != signo)
        i++;
    return i;
}

/* Makes the interrupted code continue on the worker's own stack. */
static void
divert_to_worker(ucontext_t *uc, struct hed_engine_worker *w)
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

/* Has the program's handler passed the signal on to us, because it replaced our handler? Then the
 * context is the same, but we are further down the stack. A handler that jumps out of the signal
 * never returns here; a later signal may have the same context, but then in the same place. */
static bool
is_passed_on(const void *context, uintptr_t frame)
{
    const pid_t me = (pid_t)syscall(SYS_gettid);
    /* Relaxed: only values that this thread wrote matter. */
    const bool same =
        atomic_load_explicit(&chained.thread, memory_order_relaxed) == me &&
        atomic_load_explicit(&chained.context, memory_order_relaxed) == (uintptr_t)context &&
        atomic_load_explicit(&chained.frame, memory_order_relaxed) != frame;

    atomic_store_explicit(&chained.thread, me, memory_order_relaxed);
    atomic_store_explicit(&chained.context, (uintptr_t)context, memory_order_relaxed);
    atomic_store_explicit(&chained.frame, frame, memory_order_relaxed);
    return same;
}

/* Does what would have happened without our handler. */
static void
chain_signal(int signo, siginfo_t *info, void *context)
{
    /* Acquire: pairs with the release in install_locked. */
    const struct earlier *earlier =
        atomic_load_explicit(&before[signal_index(signo)], memory_order_acquire);
    const struct sigaction *old = earlier ? &earlier->action : NULL;

    if (is_passed_on(context, (uintptr_t)__builtin_frame_address(0)) || !old ||
        (!(old->sa_flags & SA_SIGINFO) &&
         (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN))) {
        /* The instruction runs again, and then the system takes its default action. */
        struct sigaction plain = {.sa_handler = SIG_DFL};

        sigaction(signo, &plain, NULL);
        return;
    }
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(signo, info, context);
    else
        old->sa_handler(signo);
    atomic_store_explicit(&chained.thread, 0, memory_order_relaxed);
}

/* Written by hed_fault_set_retry(); read by handlers. */
static _Atomic(bool (*)(uint64_t)) retry_write;

static bool
may_retry(uint64_t address)
{
    /* Acquire: pairs with the release in hed_fault_set_retry(). */
    bool (*retry)(uint64_t) = atomic_load_explicit(&retry_write, memory_order_acquire);

    return retry && retry(address);
}

static void
on_fault(int signo, siginfo_t *info, void *context)
{
    struct hed_engine_worker *w = this_worker();

    if (signo == SIGSEGV && info->si_code == SEGV_ACCERR &&
        may_retry((uint64_t)(uintptr_t)info->si_addr))
        return;
    if (!w || !w->running || info->si_code == SI_USER || info->si_code == SI_TKILL) {
        chain_signal(signo, info, context);
        return;
    }
    w->fault.signo = signo;
    w->fault.code = info->si_code;
    w->fault.address = (uint64_t)(uintptr_t)info->si_addr;
    w->fault.pc = pc_of(context);
    w->gone = true;
    divert_to_worker(context, w);
}

static struct sigaction before_interrupt; /* of HED_INTERRUPT; guarded by install_lock */

static bool
is_in_code(const struct hed_job *job, uint64_t pc)
{
    return pc - (uint64_t)(uintptr_t)job->code < job->code_size;
}

static void
on_interrupt(int signo, siginfo_t *info, void *context)
{
    struct hed_engine_worker *w = this_worker();
    const struct sigaction *old = &before_interrupt;

    if (w && w->running && hed_grid_failed(w->grid) && is_in_code(w->grid->job, pc_of(context))) {
        w->gone = true;
        divert_to_worker(context, w);
    } else if (old->sa_flags & SA_SIGINFO) { /* it may be for the program */
        old->sa_sigaction(signo, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signo);
    }
}

void
hed_fault_take_interrupts(void)
{
    struct sigaction ours = {.sa_sigaction = on_interrupt,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    struct sigaction now;

    if (sigaction(HED_INTERRUPT, NULL, &now) != 0 ||
        ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_interrupt))
        return;
    hed_lock(&install_lock);
    before_interrupt = now;
    (void)sigaction(HED_INTERRUPT, &ours, NULL);
    hed_unlock(&install_lock);
}

static bool
is_our_handler(int signo)
{
    struct sigaction now;

    return sigaction(signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_fault;
}

static void
install_locked(void)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        struct earlier *now = is_our_handler(signals[i]) ? NULL : malloc(sizeof *now);
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
hed_fault_renew(void)
{
    /* A program that replaces any of them also replaces this one. */
    if (is_our_handler(SIGSEGV))
        return;
    hed_lock(&install_lock);
    install_locked();
    hed_unlock(&install_lock);
}

void
hed_fault_enter(struct hed_engine_worker *w, stack_t *old)
{
    const stack_t ours = {.ss_sp = w->alternate.at, .ss_size = HED_FAULT_STACK};
    sigset_t faults;

    hed_fault_renew();
    sigaltstack(&ours, old);
    /* If the thread blocked these signals, a fault would kill the process, and nothing could end a
     * kernel. */
    sigemptyset(&faults);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&faults, signals[i]);
    sigaddset(&faults, HED_INTERRUPT);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
    atomic_store_explicit(&owners[stack_index(w->alternate.at)], w, memory_order_relaxed);
}

void
hed_fault_leave(struct hed_engine_worker *w, const stack_t *old)
{
    atomic_store_explicit(&owners[stack_index(w->alternate.at)], NULL, memory_order_relaxed);
    sigaltstack(old, NULL);
}

/* Is the address in the stack's guard, or a little below it, as with large frames? */
static bool
is_in_guard(const struct hed_engine_warp *s, uint64_t address)
{
    const uint64_t low = (uint64_t)(uintptr_t)s->stack;

    return s->block->guard && address >= low && address < low + s->block->guard;
}

void
hed_fault_report(struct hed_engine_worker *w, const struct hed_engine_warp *s)
{
    const struct hed_fault *f = &w->fault;
    const unsigned long long address = f->address;

    switch (f->signo) {
    case SIGSEGV:
    case SIGBUS:
        if (f->signo == SIGBUS && f->code == BUS_ADRALN)
            hed_grid_fail(w->grid, CUDA_ERROR_MISALIGNED_ADDRESS, s, "misaligned address 0x%llx",
                          address);
        else if (is_in_guard(s, address))
            hed_grid_fail(w->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "stack overflow");
        else if (f->code == SI_KERNEL) /* x86-64 does not tell non-canonical addresses */
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

void
hed_fault_set_retry(bool (*retry)(uint64_t address))
{
    atomic_store_explicit(&retry_write, retry, memory_order_release);
    hed_fault_renew();
}
