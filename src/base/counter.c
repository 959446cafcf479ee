/* Decides whether the processor's counter keeps time.
 *
 * The kernel tests the counter on all processors and stops using it as soon as it goes wrong, so
 * its choice of a clock source is the best answer there is. Without /sys, as in some containers,
 * the answer is no.
 */
#include "base/counter.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define SLOWEST_HZ 10000000 /* a slower counter would be too coarse */

static bool
kernel_clock_is(const char *name)
{
    char text[64] = "";
    const int fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;

    const ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return strcmp(text, name) == 0;
}

bool
hed_counter_usable(void)
{
#if defined(__aarch64__)
    uint64_t hz;

    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz >= SLOWEST_HZ && kernel_clock_is("arch_sys_counter");
#elif defined(__x86_64__)
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;

    /* Intel's manual, volume 3, "Invariant TSC": "The invariant TSC will run at a constant rate in
     * all ACPI P-, C-. and T-states", CPUID.80000007H:EDX[8]. */
    if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1u << 8))
        return false;
    return kernel_clock_is("tsc");
#else
    return false;
#endif
}
