/* Architectures as text, and which devices run their code. See arch.h. */
#include "kernel/fatbin/arch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* Far above any compute capability; more digits must be a mistake. */
#define NUMBER_MAX 9999

const char *
hed_arch_text(struct hed_arch arch, const char *prefix, char *out)
{
    const char suffix[2] = {arch.suffix, '\0'};

    snprintf(out, HED_ARCH_TEXT, "%s%u%s", prefix, arch.number, suffix);
    return out;
}

int
hed_arch_parse(const char *s, struct hed_arch *out, const char **prefix)
{
    static const char *const prefixes[] = {"sm_", "compute_", "lto_", ""};
    struct hed_arch arch = {0, '\0'};
    size_t i = 0;

    while (strncmp(s, prefixes[i], strlen(prefixes[i])) != 0)
        i++;
    s += strlen(prefixes[i]);
    if (*s < '1' || *s > '9')
        return HED_EINVAL;
    for (; *s >= '0' && *s <= '9'; s++) {
        arch.number = arch.number * 10 + (uint32_t)(*s - '0');
        if (arch.number > NUMBER_MAX)
            return HED_EINVAL;
    }
    if (*s == 'a' || *s == 'f')
        arch.suffix = *s++;
    if (*s)
        return HED_EINVAL;
    *out = arch;
    if (prefix)
        *prefix = prefixes[i];
    return 0;
}

bool
hed_arch_runs(struct hed_arch arch, uint32_t device)
{
    if (arch.suffix == 'a')
        return arch.number == device;
    return arch.number / 10 == device / 10 && arch.number <= device;
}

bool
hed_arch_compiles(struct hed_arch arch, uint32_t device)
{
    return arch.suffix ? hed_arch_runs(arch, device) : arch.number <= device;
}
