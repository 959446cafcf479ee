/* heddle version: the version and the build. The numbers come from the build and from the spec. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"
#include "gen/storeys.h"

const char hed_cli_version_text[] = HED_BUILD_VERSION;

static const char usage[] = "usage: heddle version\n"
                            "\n"
                            "Prints heddle's version, how it was built and how many CUDA and NVML\n"
                            "calls it knows. `heddle --version` prints the version only.\n";

static const struct hed_cli_opt options[] = {{"help", false}, {NULL, false}};

/* A schema has one line for each call, which begins with "call". */
static unsigned
count_schema_calls(const char *schema)
{
    unsigned count = 0;

    for (const char *p = schema; (p = strstr(p, "\ncall ")) != NULL; p++)
        count++;
    return count;
}

int
hed_cli_version(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    const int option = hed_cli_opts_next(&o);

    if (option == 0) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (option == HED_CLI_OPT_BAD || !hed_cli_opts_no_operands(&o))
        return HED_EXIT_USAGE;
    printf("heddle %s\n", hed_cli_version_text);
    if (HED_BUILD_GIT[0])
        printf("  commit     %s\n", HED_BUILD_GIT);
    printf("  build      %s, %s\n", HED_BUILD_TYPE, HED_BUILD_TARGET);
    printf("  compiler   %s\n", HED_BUILD_COMPILER);
    if (HED_LEFT_OUT[0])
        printf("  without    %s\n", HED_LEFT_OUT);
    printf("  calls      %u of CUDA, %u of NVML\n", count_schema_calls(hed_cuda_schema),
           count_schema_calls(hed_nvml_schema));
    return HED_EXIT_OK;
}
