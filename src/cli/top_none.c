/* Stands in for heddle top, in a build without traces or without sharing. */
#include "cli/cli.h"
#include "gen/storeys.h"

int
hed_cli_top(int argc, char **argv)
{
    return hed_cli_lacks("top", HED_HAVE_SEE ? "SHARE" : "SEE");
}
