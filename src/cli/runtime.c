/* The CUDA runtime of a program. See runtime.h. The dynamic loader asks an audit library
 * (audit/cudart.c) which file a program gets; here it is put into LD_AUDIT.
 */
#include "cli/runtime.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "cli/cli.h"
#include "locate/install.h"

#define PREFIX "libcudart.so."

/* The modes that have an audit library of their own. */
static const char *const audited[] = {"auto", "own"};

static int
is_runtime(const struct dirent *e)
{
    const char *version = e->d_name + strlen(PREFIX);

    return strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
           version[strspn(version, "0123456789.")] == '\0';
}

const char *
hed_runtime_list(const struct hed_install *install, char *out, size_t size)
{
    char folder[PATH_MAX + 16];
    struct dirent **entries = NULL;
    size_t n = 0;

    snprintf(folder, sizeof folder, "%s/cudart", install->dir);

    const int count = scandir(folder, &entries, is_runtime, versionsort);

    out[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "",
                                  entries[i]->d_name + strlen(PREFIX));
        free(entries[i]);
    }
    free(entries);
    return out;
}

/* The user insists on what is not there. */
static int
refuse_runtime(const struct hed_install *install)
{
    hed_cli_say("run: --cudart own: there are no CUDA runtimes of heddle's in %s/cudart; install "
                "heddle again",
                install->dir);
    return HED_EXIT_BROKEN;
}

int
hed_runtime_prepare(struct hed_env *env, const struct hed_install *install, const char *mode,
                    bool audit)
{
    char path[PATH_MAX + 16];
    char list[128];

    /* Where heddle runs heddle, the inner one's setting counts. */
    for (size_t i = 0; i < sizeof audited / sizeof *audited; i++) {
        char name[32];

        snprintf(name, sizeof name, "libheddle-cudart-%s", audited[i]);

        const bool there = hed_install_plugin(install, name, path, sizeof path);

        hed_env_drop(env, "LD_AUDIT", path, ":");
        if (!audit || strcmp(mode, audited[i]) != 0)
            continue;
        if (there && *hed_runtime_list(install, list, sizeof list))
            hed_env_prepend(env, "LD_AUDIT", path, ":");
        else if (strcmp(mode, "own") == 0)
            return refuse_runtime(install);
    }
    if (strcmp(mode, "nvidia") == 0) {
        snprintf(path, sizeof path, "%s/cudart", install->dir);
        hed_env_drop(env, "LD_LIBRARY_PATH", path, ":;");
    }
    return HED_EXIT_OK;
}
