/* Stands in for the screen of heddle top, in a build without ncurses. */
#include "cli/cli.h"
#include "cli/top/top.h"

bool
hed_top_has_screen(void)
{
    return false;
}

int
hed_top_screen(const struct hed_live_how *how, struct hed_top_choice *c)
{
    return HED_EXIT_FAILED;
}
