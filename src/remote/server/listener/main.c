/* heddled: the server's program. `heddle serve` and the systemd unit execute it.
 *
 *     main ── options ── listener (listener.h) ──fork──> workers (worker.h)
 *
 * The settings of the workers go into the environment, where libheddle.so reads them when a worker
 * makes its first call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "remote/server/listener/listener.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char help[] =
    "usage: heddled [OPTION...]\n"
    "\n"
    "heddle's server. Its options are those of `heddle serve`: see heddle serve --help\n"
    "and heddle-serve(1).\n";

static int
fail_with(const char *text, int code)
{
    fprintf(stderr, "heddled: %s\n", text);
    return code;
}

/* Under ThreadSanitizer a process cannot choose its addresses. */
static bool
confine_kernels(const struct hed_server_options *o)
{
    const bool confine = !HED_TSAN && !o->lets_kernels_roam;

    if (!confine && strncmp(o->gpu, "cpu", 3) == 0)
        hed_warn(SERVER, "kernels are not confined: clients can do what their workers can");

    return setenv("HEDDLE_CPU_CONFINE", confine ? "yes" : "no", 1) == 0;
}

int
main(int argc, char **argv)
{
    static struct hed_server_options options;
    struct hed_why why = {""};

    if (hed_server_options_read(&options, argc - 1, argv + 1, &why) != 0)
        return fail_with(why.text, EXIT_USAGE);
    if (options.help)
        return fputs(help, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILED : 0;
    if (hed_log_setup(options.log, &why) != 0)
        return fail_with(why.text, EXIT_USAGE);
    if (setenv("HEDDLE_GPU", options.gpu, 1) != 0 || setenv("HEDDLE_LOG", options.log, 1) != 0 ||
        !confine_kernels(&options))
        return fail_with(hed_err_text(HED_ENOMEM), EXIT_FAILED);
    return hed_server_run(&options, argc - 1, argv + 1, &why) == 0
               ? 0
               : fail_with(why.text, EXIT_FAILED);
}
