/* Chooses the image of a fat binary that a device would use. See fatbin.h. */
#include <stdio.h>

#include "base/err.h"
#include "kernel/fatbin/fatbin.h"

/* A higher rank is better; 0 means that the image cannot be used. Machine code comes before PTX
 * that fits, and that before PTX that is too new. Machine code for other devices is the last
 * resort.
 */
#define RANK_CUBIN (UINT64_C(3) << 40)
#define RANK_PTX (UINT64_C(2) << 40)
#define RANK_NEWER (UINT64_C(1) << 40)
#define RANK_FOREIGN (UINT64_C(1) << 36)

/* Among images for the same architecture, the one that is tied to it most closely can use most of
 * it. */
static uint64_t
rank_within_arch(struct hed_arch arch)
{
    return ((uint64_t)arch.number << 2) | (arch.suffix == 'a' ? 2 : arch.suffix == 'f' ? 1 : 0);
}

static uint64_t
rank_of_cubin(struct hed_arch arch, const struct hed_choose *how)
{
    if (how->takes_cubin && !how->takes_cubin(arch))
        return 0;
    if (hed_arch_runs(arch, how->device))
        return RANK_CUBIN | rank_within_arch(arch);
    return how->takes_cubin ? RANK_FOREIGN | rank_within_arch(arch) : 0;
}

static uint64_t
rank(const struct hed_fatbin_entry *e, const struct hed_choose *how)
{
    if ((how->flags & HED_CHOOSE_64BIT_ONLY) && !(e->flags & HED_FATBIN_64BIT))
        return 0;
    if (e->kind == HED_FATBIN_CUBIN && !(how->flags & HED_CHOOSE_PTX_ONLY))
        return rank_of_cubin(e->arch, how);
    if (e->kind != HED_FATBIN_PTX || (how->flags & HED_CHOOSE_CUBIN_ONLY))
        return 0;
    if (how->ptx_below && e->arch.number >= how->ptx_below)
        return 0;
    if (hed_arch_compiles(e->arch, how->device))
        return RANK_PTX | rank_within_arch(e->arch);
    /* It is tied to something older than the device, and may not compile for it. */
    if (!(how->flags & HED_CHOOSE_NEWER_PTX) || e->arch.number <= how->device)
        return 0;
    /* Here the oldest one is best, and the one that is tied least. */
    return RANK_NEWER | ((UINT64_C(1) << 36) - rank_within_arch(e->arch));
}

/* Adds " sm_90" to the text if it fits. */
static void
add_arch_text(char *text, size_t size, size_t *used, const struct hed_fatbin_entry *e)
{
    char arch[HED_ARCH_TEXT];
    const int n = snprintf(text + *used, size - *used, " %s", hed_fatbin_arch_text(e, arch));

    if (n > 0 && (size_t)n < size - *used)
        *used += (size_t)n;
    else
        text[*used] = '\0';
}

int
hed_fatbin_choose(struct hed_bytes fatbin, const struct hed_choose *how,
                  struct hed_fatbin_entry *out, struct hed_why *why)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e, best;
    uint64_t highest = 0;
    char there[256] = "";
    size_t used = 0;
    int r = hed_fatbin_walk(fatbin, &w, why);

    if (r != 0)
        return r;
    while ((r = hed_fatbin_next(&w, &e, why)) > 0) {
        const uint64_t this = rank(&e, how);

        add_arch_text(there, sizeof there, &used, &e);
        if (this > highest) {
            highest = this;
            best = e;
        }
    }
    if (highest) {
        *out = best;
        return 0;
    }
    if (r == 0) {
        hed_why_set(why, "no image for sm_%u among:%s", how->device, used ? there : " nothing");
        r = HED_ENOTFOUND;
    }
    return r;
}

bool
hed_fatbin_is_tied(struct hed_bytes fatbin)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    bool tied = false;
    int r = hed_fatbin_walk(fatbin, &w, NULL);

    while (r == 0 && (r = hed_fatbin_next(&w, &e, NULL)) > 0) {
        if (e.arch.suffix == 0)
            return false;
        tied = true;
        r = 0;
    }
    return tied;
}
