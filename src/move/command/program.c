/* The program that a command is about, and what it says about itself. See command.h. */
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tree.h"
#include "move/command/command.h"
#include "remote/remote.h"

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
        hed_why_set(why, "process %u cannot be saved: %s", pid, info->why);
        return HED_ENOTSUP;
    }
    return 0;
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
