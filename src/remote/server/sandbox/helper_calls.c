/* The system calls that every process of the server has that serves no client itself, besides its
 * own: memory, its own end, signals and time.
 */
#include <errno.h>
#include <sys/prctl.h>

#include "remote/server/sandbox/rows.h"

static const uint32_t prctl_options[] = {PR_SET_PDEATHSIG, PR_SET_NAME};

static const struct hed_filter_row helper_calls[] = {
    ALWAYS(mmap),
    ALWAYS(munmap),
    ALWAYS(mprotect),
    ALWAYS(mremap),
    ALWAYS(madvise),
    ALWAYS(brk),
    ALWAYS(futex),

    ALWAYS(set_robust_list),
    ALWAYS(rseq),
    ALWAYS(getpid),
    ALWAYS(getppid),
    ALWAYS(gettid),
    ALWAYS(exit),
    ALWAYS(exit_group),
    AMONG(prctl, 0, prctl_options, EPERM),
    ALWAYS(rt_sigaction),
    ALWAYS(rt_sigprocmask),
    ALWAYS(rt_sigreturn),
    ALWAYS(restart_syscall),

    ALWAYS(clock_gettime),
    ALWAYS(gettimeofday),
    ALWAYS(getrandom),
#ifdef __x86_64__
    ALWAYS(poll),
    ALWAYS(time),
#endif
};

const struct hed_filter_list hed_filter_helper = LIST(helper_calls);
