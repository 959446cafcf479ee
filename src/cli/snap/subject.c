/* Which program a command is about, and what it says about itself. See live.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/snap/live.h"
#include "cli/snap/tree.h"
#include "remote/wire/transport.h"

#define INFO_MS 10000 /* for an answer that stops nothing */

static bool
is_reachable(pid_t pid, struct hed_why *why)
{
    int fd;

    if (hed_talk_open(pid, &fd, why) != 0)
        return false;
    close(fd);
    return true;
}

/* The program that a heddle command has started, of which the shell knows the command only. */
bool
hed_snap_find_program(pid_t number, pid_t *out, struct hed_why *why)
{
    pid_t below[HED_TREE_FOUND];
    struct hed_why ignored;
    size_t count, found = 0;

    if (is_reachable(number, why)) {
        *out = number;
        return true;
    }
    count = hed_tree_below_heddle(number, below);
    for (size_t i = 0; i < count; i++)
        if (is_reachable(below[i], &ignored) && found++ == 0)
            *out = below[i];
    if (found > 1)
        hed_why_set(why,
                    "process %d is a heddle command that has started several programs which use "
                    "CUDA: give the number of one of them, such as %d",
                    (int)number, (int)*out);
    else if (found == 0 && count > 0)
        hed_why_set(why,
                    "process %d is a heddle command, and no program that it has started can be "
                    "reached: only those that use a GPU through a server can be (heddle run "
                    "--gpu shm:..., or --ckpt), once they use CUDA",
                    (int)number);
    return found == 1;
}

int
hed_snap_subject(const char *command, const char *word, const char *listen, pid_t *out)
{
    struct hed_why why = {""}, other = {""};
    uint64_t number = 0;

    if (!word) {
        hed_cli_say("%s: no program given: give the number of its process, or of its worker "
                    "(heddle serve --list)",
                    command);
        return HED_EXIT_USAGE;
    }
    if (hed_parse_u64(word, &number) != 0 || number == 0 || number > INT_MAX) {
        hed_cli_say("%s: '%s' is not the number of a process or of a worker (heddle serve --list)",
                    command, word);
        return HED_EXIT_USAGE;
    }
    if (hed_snap_find_program((pid_t)number, out, &why))
        return HED_EXIT_OK;
    if (hed_cli_ask_client(listen, number, out, &other) == 0)
        return HED_EXIT_OK;
    /* Whoever names a server means one of its workers. */
    hed_cli_say("%s: %s", command, listen ? other.text : why.text);
    return HED_EXIT_FAILED;
}

int
hed_snap_ask_info(pid_t pid, struct hed_talk_answer *out, struct hed_why *why)
{
    struct hed_talk_request q;

    hed_talk_ask(&q, HED_TALK_INFO);
    return hed_talk_call(pid, &q, NULL, 0, INFO_MS, out, why);
}

int
hed_snap_check_info(const struct hed_talk_answer *info, enum hed_talk_state needed,
                    struct hed_why *why)
{
    const unsigned pid = info->pid;

    if (info->state != needed) {
        const char *advice =
            info->state == HED_TALK_PAUSED    ? "; let it go on first (heddle snap resume)"
            : info->state == HED_TALK_SWAPPED ? "; bring it back first (heddle snap in)"
            : info->state == HED_TALK_LOST    ? "; it must be started again"
                                              : "";

        hed_why_set(why, "process %u is %s, not %s%s", pid, hed_talk_state_name(info->state),
                    hed_talk_state_name(needed), advice);
        return HED_ESTATE;
    }
    if (info->refusals > 0) {
        hed_why_set(why, "process %u has what cannot be saved: %s", pid, info->why);
        return HED_ENOTSUP;
    }
    return 0;
}

void
hed_snap_print_parts(const struct hed_talk_answer *a)
{
    for (unsigned i = 0; i < HED_TALK_PARTS; i++)
        if (a->parts_ns[i] >= 1000)
            printf("  %-9s %.3f ms\n", hed_talk_part_name(i), (double)a->parts_ns[i] * 1e-6);
}

int
hed_snap_check_address(const char *address, struct hed_why *why)
{
    struct hed_address a;

    if (!address || !address[0])
        return 0;
    if (strlen(address) >= sizeof((struct hed_talk_request *)0)->address) {
        hed_why_set(why, "the address is too long");
        return HED_EINVAL;
    }
    return hed_address_parse(address, &a, why);
}

/* ---- amounts --------------------------------------------------------------------------------- */

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
