/* Which program a command is about. See snap.h. */
#include <limits.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"
#include "remote/remote.h"

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
    if (hed_ask_client(listen, number, out, &other) == 0)
        return HED_EXIT_OK;
    /* Whoever names a server means one of its workers. */
    hed_cli_say("%s: %s", command, listen ? other.text : why.text);
    return HED_EXIT_FAILED;
}

void
hed_snap_print_parts(const struct hed_talk_answer *a)
{
    for (unsigned i = 0; i < HED_TALK_PARTS; i++)
        if (a->parts_ns[i] >= 1000)
            printf("  %-9s %.3f ms\n", hed_talk_part_name(i), (double)a->parts_ns[i] * 1e-6);
}
