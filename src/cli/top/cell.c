/* heddle top: numbers that fit a column. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top/top.h"

#define COUNT_MOST 1e15 /* nothing real is larger */

void
hed_top_size(uint64_t bytes, char out[HED_TOP_CELL])
{
    static const char units[] = "BKMGTPE";
    double n = (double)bytes;
    int unit = 0;

    for (; n >= 1000 && units[unit + 1]; unit++)
        n /= 1024;
    if (unit == 0)
        (void)snprintf(out, HED_TOP_CELL, "%.0fB", n);
    else
        (void)snprintf(out, HED_TOP_CELL, n < 99.95 ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

void
hed_top_percent(double part, char out[HED_TOP_CELL])
{
    if (part < 0)
        (void)snprintf(out, HED_TOP_CELL, "-");
    else
        (void)snprintf(out, HED_TOP_CELL, "%.1f", 100 * (part < 1 ? part : 1));
}

void
hed_top_count(double n, char out[HED_TOP_CELL])
{
    static const char units[] = "kMGT";
    int unit = -1;

    if (n < 0) {
        (void)snprintf(out, HED_TOP_CELL, "-");
        return;
    }
    for (n = n < COUNT_MOST ? n : COUNT_MOST; n >= 99999.5 && units[unit + 1]; unit++)
        n /= 1000;
    if (unit < 0)
        (void)snprintf(out, HED_TOP_CELL, "%.0f", n);
    else
        (void)snprintf(out, HED_TOP_CELL, "%.0f%c", n, units[unit]);
}

void
hed_top_duration(uint64_t ns, char out[HED_TOP_CELL])
{
    const double us = (double)ns / 1000;

    if (ns == 0)
        (void)snprintf(out, HED_TOP_CELL, "-");
    else if (us < 1000)
        (void)snprintf(out, HED_TOP_CELL, "%.0fus", us);
    else if (us < 1e6)
        (void)snprintf(out, HED_TOP_CELL, us < 1e5 ? "%.1fms" : "%.0fms", us / 1000);
    else
        (void)snprintf(out, HED_TOP_CELL, "%.1fs", us / 1e6);
}

void
hed_top_age(double seconds, char out[HED_TOP_CELL])
{
    const uint64_t s = seconds > 0 && seconds < 1e12 ? (uint64_t)seconds : 0;

    if (s < 120)
        (void)snprintf(out, HED_TOP_CELL, "%" PRIu64 " s", s);
    else if (s < 7200)
        (void)snprintf(out, HED_TOP_CELL, "%" PRIu64 " min", s / 60);
    else if (s < 172800)
        (void)snprintf(out, HED_TOP_CELL, "%" PRIu64 " h", s / 3600);
    else
        (void)snprintf(out, HED_TOP_CELL, "%" PRIu64 " d", s / 86400);
}

void
hed_top_cut(char *text, size_t width)
{
    const size_t n = strlen(text);

    if (n <= width || width == 0) {
        if (width == 0)
            text[0] = '\0';
        return;
    }

    const size_t end = (width - 1) / 2;

    text[width - 1 - end] = '+';
    memmove(text + width - end, text + n - end, end + 1);
}
