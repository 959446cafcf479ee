/* Filters of system calls. See filter.h. */
#include "remote/server/sandbox/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_CALLS 0x40000000u /* x32: other numbers for the same machine */
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_CALLS 0xffffffffu
#else
#error "no list of system calls for this machine"
#endif

#define PROGRAM_MAX 2048 /* instructions */
#define VALUES_MAX 64    /* jumps have eight bits */

struct program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short count;
    bool full;
};

static void
add_code(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (p->count == PROGRAM_MAX)
        p->full = true;
    else
        p->code[p->count++] = (struct sock_filter){.code = code, .jt = yes, .jf = no, .k = k};
}

static void
load_word(struct program *p, size_t offset)
{
    add_code(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Both machines are little-endian: the lower half of an argument comes first. */
static size_t
argument_offset(int argument, bool high)
{
    return offsetof(struct seccomp_data, args) + 8 * (size_t)argument + (high ? 4 : 0);
}

static void
return_value(struct program *p, uint32_t value)
{
    add_code(p, BPF_RET | BPF_K, value, 0, 0);
}

/* Continues if the word that was loaded is k; else returns `otherwise`. */
static void
insist_on(struct program *p, uint32_t k, uint32_t otherwise)
{
    add_code(p, BPF_JMP | BPF_JEQ | BPF_K, k, 1, 0);
    return_value(p, otherwise);
}

/* Continues if one of the pairs of mask and value matches the lower half of the argument. */
static void
insist_on_pairs(struct program *p, const struct hed_filter_row *r, uint32_t otherwise)
{
    for (size_t i = 0; i + 1 < r->count && i < VALUES_MAX; i += 2) {
        load_word(p, argument_offset(r->argument, false));
        add_code(p, BPF_ALU | BPF_AND | BPF_K, r->values[i], 0, 0);
        add_code(p, BPF_JMP | BPF_JEQ | BPF_K, r->values[i + 1],
                 (uint8_t)(3 * ((r->count - i) / 2 - 1) + 1), 0);
    }
    return_value(p, otherwise);
}

static void
add_test(struct program *p, const struct hed_filter_row *r)
{
    const uint32_t refuse = SECCOMP_RET_ERRNO | (uint32_t)(r->error ? r->error : EPERM);
    const uint32_t self = (uint32_t)getpid();
    const uint32_t *values = r->test == HED_CALL_ON_SELF ? &self : r->values;
    const size_t count = r->test == HED_CALL_ON_SELF ? 1 : r->count;

    switch (r->test) {
    case HED_CALL_ALWAYS:
        break;
    case HED_CALL_NEVER:
        return_value(p, refuse);
        return;
    case HED_CALL_KILLS:
        return_value(p, SECCOMP_RET_KILL_PROCESS);
        return;
    case HED_CALL_NULL:
        load_word(p, argument_offset(r->argument, true));
        insist_on(p, 0, refuse);
        load_word(p, argument_offset(r->argument, false));
        insist_on(p, 0, refuse);
        break;
    case HED_CALL_SETS:
        load_word(p, argument_offset(r->argument, false));
        add_code(p, BPF_JMP | BPF_JSET | BPF_K, values[0], 1, 0);
        return_value(p, refuse);
        break;
    case HED_CALL_MASKED:
        insist_on_pairs(p, r, refuse);
        break;
    case HED_CALL_AMONG:
    case HED_CALL_ON_SELF:
        load_word(p, argument_offset(r->argument, false));
        for (size_t i = 0; i < count && i < VALUES_MAX; i++)
            add_code(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
        return_value(p, refuse);
        break;
    }
    if (r->also)
        add_test(p, r->also);
    else
        return_value(p, SECCOMP_RET_ALLOW);
}

/* The number of the call is loaded. It is loaded again only after a test, which returns. */
static void
add_filter_row(struct program *p, const struct hed_filter_row *r)
{
    const unsigned short at = p->count;

    add_code(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->number, 0, 0);
    add_test(p, r);
    if (!p->full)
        p->code[at].jf = (uint8_t)(p->count - at - 1);
}

int
hed_filter_apply(const struct hed_filter_list *lists)
{
    static struct program p; /* large; the process has one thread */

    p.count = 0;
    p.full = false;
    load_word(&p, offsetof(struct seccomp_data, arch));
    insist_on(&p, OUR_ARCH, SECCOMP_RET_KILL_PROCESS);
    load_word(&p, offsetof(struct seccomp_data, nr));
    add_code(&p, BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1);
    return_value(&p, SECCOMP_RET_KILL_PROCESS);
    for (; lists->rows; lists++)
        for (size_t i = 0; i < lists->count; i++)
            add_filter_row(&p, &lists->rows[i]);
    return_value(&p, SECCOMP_RET_ERRNO | ENOSYS);
    if (p.full)
        return -E2BIG;

    const struct sock_fprog program = {.len = p.count, .filter = p.code};

    /* Client code is alone in its process, so it needs no protection from itself: without the flag,
     * older kernels would slow all of it down. */
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_TSYNC, &program) == 0
               ? 0
               : -errno;
}
