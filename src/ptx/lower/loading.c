/* Exit handlers of LLVM's library.
 *
 * Its constructors register some. If another thread is in exit(), it calls them at once, and takes
 * down what is still being set up. So they wait until the library is loaded:
 *
 *   dlopen() ─> order_handlers ─> LLVM's constructors ─> __cxa_atexit(handler)
 *   exit()   ─> before_handler: waits until dlopen() returns, calls before_exit ─> handler
 *
 * order_handlers comes first, although this library depends on LLVM's, because it is linked with
 * -z initfirst. All libraries are relocated by then.
 *
 *   FREE --hed_llvm_guard--> GUARDED: handlers call before_exit first
 *   FREE --before_handler--> ENDED: LLVM is gone before anybody could use it
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <llvm-c/Core.h>

#include "base/exit_order.h"
#include "ptx/lower/compile.h"

enum { FREE, GUARDED, ENDED };

static _Atomic int state = FREE;
static void (*before_exit)(void); /* constant once GUARDED */

bool
hed_llvm_guard(void (*before)(void))
{
    int expected = FREE;

    before_exit = before;
    /* Release: pairs with the acquire in before_handler(), which reads before_exit. */
    return atomic_compare_exchange_strong_explicit(&state, &expected, GUARDED, memory_order_release,
                                                   memory_order_relaxed) ||
           expected == GUARDED;
}

static void
before_handler(void)
{
    int expected = FREE;

    /* This waits: the thread in dlopen() has the dynamic loader's lock, which exit() needs later in
     * any case. A thread that calls exit() inside of dlopen() has it already. There are many
     * handlers, and once LLVM is loaded there is nothing to wait for. Relaxed: only a hint. */
    if (atomic_load_explicit(&state, memory_order_relaxed) == FREE)
        (void)dlopen(NULL, RTLD_NOW);
    /* Acquire: pairs with the release in hed_llvm_guard(). */
    if (!atomic_compare_exchange_strong_explicit(&state, &expected, ENDED, memory_order_acquire,
                                                 memory_order_acquire) &&
        expected == GUARDED)
        before_exit();
}

static int
order_llvm(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD &&
            (uintptr_t)arg - (info->dlpi_addr + p->p_vaddr) < (uintptr_t)p->p_memsz)
            return hed_exit_order(info, before_handler) ? 1 : -1;
    }
    return 0;
}

/* 101: before LLVM's constructors if they are part of this library. */
__attribute__((constructor(101))) static void
order_handlers(void)
{
    /* Where this fails, only an exit at a bad moment is unsafe. */
    (void)dl_iterate_phdr(order_llvm, (void *)LLVMContextCreate);
}
