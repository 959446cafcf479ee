/* Stands in for what reads traces, in a build without it (HEDDLE_SEE=OFF). */
#include "cli/cli.h"

int
hed_cli_trace(int argc, char **argv)
{
    return hed_cli_lacks("trace", "SEE");
}
