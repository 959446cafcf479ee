/* Times and sizes as people write them. See command.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "move/command/command.h"

int
hed_snap_parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", HED_NS_PER_S},       {"ms", HED_NS_PER_MS},      {"s", HED_NS_PER_S},
                 {"m", 60 * HED_NS_PER_S}, {"min", 60 * HED_NS_PER_S}, {"h", 3600 * HED_NS_PER_S}};
    const size_t digits = strspn(text, "0123456789");
    char number[20];
    uint64_t n;

    if (digits == 0 || digits >= sizeof number)
        return HED_EINVAL;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (hed_parse_u64(number, &n) != 0)
        return HED_EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + digits, units[i].name) != 0)
            continue;
        if (n > (UINT64_C(1) << 62) / units[i].ns)
            return HED_ERANGE;
        *ns = n * units[i].ns;
        return 0;
    }
    return HED_EINVAL;
}

const char *
hed_snap_bytes_text(uint64_t bytes, char *out)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t i = 0;

    while (n >= 1024 && i + 1 < sizeof units / sizeof units[0]) {
        n /= 1024;
        i++;
    }
    (void)snprintf(out, HED_SNAP_AMOUNT, i == 0 || n >= 100 ? "%.0f %s" : "%.1f %s", n, units[i]);
    return out;
}

const char *
hed_snap_time_text(uint64_t ns, char *out)
{
    if (ns < HED_NS_PER_S)
        (void)snprintf(out, HED_SNAP_AMOUNT, "%.1f ms", (double)ns / 1e6);
    else
        (void)snprintf(out, HED_SNAP_AMOUNT, "%.2f s", (double)ns / 1e9);
    return out;
}
