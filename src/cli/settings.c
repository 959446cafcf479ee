/* Settings as the command line checks them: what the library would refuse later, refused now. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "core/config.h"
#include "sched/share.h"
#include "wire/conn.h"

int
hed_cli_absolute(const char *path, char *out, size_t size, struct hed_why *why)
{
    char here[PATH_MAX] = "";

    if (path[0] != '/' && !getcwd(here, sizeof here)) {
        hed_why_set(why, "cannot tell the current folder: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }

    const int n = snprintf(out, size, "%s%s%s", here, here[0] ? "/" : "", path);

    if (n < 0 || (size_t)n >= size) {
        hed_why_set(why, "%.200s: name too long", path);
        return HED_ELIMIT;
    }
    return 0;
}

/* One setting that is a path, if it is set and not a full one. */
static int
complete(struct hed_env *env, const char *key, char *value, struct hed_why *why)
{
    char path[HED_CONFIG_TEXT_MAX];

    if (value[0] == '\0' || value[0] == '/')
        return 0;

    const int err = hed_cli_absolute(value, path, sizeof path, why);

    if (err)
        return err;
    snprintf(value, HED_CONFIG_TEXT_MAX, "%s", path);
    hed_env_set_setting(env, key, path);
    return 0;
}

/* The socket of a server on this machine: shm:./sock. */
static int
complete_socket(struct hed_env *env, char *value, struct hed_why *why)
{
    const size_t scheme = strcspn(value, ":") + 1;
    char path[HED_CONFIG_TEXT_MAX];
    char out[HED_CONFIG_TEXT_MAX];
    const int err =
        value[scheme] ? hed_cli_absolute(value + scheme, path, sizeof path, why) : HED_EINVAL;

    if (!value[scheme])
        hed_why_set(why, "gpu: '%s' has no path: where is the server's socket?", value);

    if (err)
        return err;
    if ((size_t)snprintf(out, sizeof out, "%.*s%s", (int)scheme, value, path) >= sizeof out) {
        hed_why_set(why, "gpu: longer than %zu characters", sizeof out - 1);
        return HED_ELIMIT;
    }
    snprintf(value, HED_CONFIG_TEXT_MAX, "%s", out);
    hed_env_set_setting(env, "gpu", out);
    return 0;
}

/* The profiles among the devices of "cpu:..." that are named by a path: ./mine.json. */
static int
complete_gpu(struct hed_env *env, char *value, struct hed_why *why)
{
    char out[HED_CONFIG_TEXT_MAX];
    char item[HED_CONFIG_TEXT_MAX];
    char path[HED_CONFIG_TEXT_MAX];
    int n = snprintf(out, sizeof out, "cpu:");

    if (strncmp(value, "shm:", 4) == 0 || strncmp(value, "unix:", 5) == 0)
        return complete_socket(env, value, why);
    if (strncmp(value, "cpu:", 4) != 0 || !strchr(value, '/'))
        return 0;
    for (const char *at = value + 4; at;) {
        const size_t length = strcspn(at, ",");
        int err = 0;

        snprintf(item, sizeof item, "%.*s", (int)length, at);
        snprintf(path, sizeof path, "%s", item);
        if (strchr(item, '/'))
            err = hed_cli_absolute(item, path, sizeof path, why);
        if (err)
            return err;
        n += snprintf(out + n, sizeof out - (size_t)n, "%s%s", n > 4 ? "," : "", path);
        if ((size_t)n >= sizeof out) {
            hed_why_set(why, "gpu: longer than %zu characters", sizeof out - 1);
            return HED_ELIMIT;
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    snprintf(value, HED_CONFIG_TEXT_MAX, "%s", out);
    hed_env_set_setting(env, "gpu", out);
    return 0;
}

/* Can it be one? That somebody is there is seen later. */
static int
check_address(const char *text, struct hed_why *why)
{
    struct hed_address address;
    struct hed_why reason = {""};
    const int err = hed_address_parse(text, &address, &reason);

    if (err)
        hed_why_set(why, "gpu: %s", reason.text);
    return err;
}

int
hed_cli_check_sched(const char *value, struct hed_why *why)
{
    struct hed_sched_settings settings;

    return *value ? hed_sched_parse(value, &settings, why) : 0;
}

/* One that came by an option has been looked at already. */
static int
check_sched(const struct hed_config *c, const struct hed_env *env, struct hed_why *why)
{
    struct hed_why reason = {""};
    const int err = hed_cli_check_sched(c->sched, &reason);

    if (err)
        hed_why_set(why, "%s: %s",
                    hed_env_get(env, "HEDDLE_SCHED") ? "HEDDLE_SCHED" : "the settings file",
                    reason.text);
    return err;
}

#define GROUP_MAX 94 /* characters: it is part of a file's name */

static int
check_group(const struct hed_config *c, struct hed_why *why)
{
    const char *name = c->mem_group;
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (name[n] != '\0' || n > GROUP_MAX) {
        hed_why_set(why, "mem_group: a name is up to %d letters, digits, '-' and '.'", GROUP_MAX);
        return HED_EINVAL;
    }
    if (n && !c->mem) {
        hed_why_set(why, "mem_group: a group needs a limit, mem");
        return HED_EINVAL;
    }
    return 0;
}

int
hed_cli_settings(struct hed_config *c, struct hed_env *env, struct hed_why *why)
{
    int err = env->failed ? HED_ENOMEM : 0;

    if (err)
        hed_why_set(why, "%s", hed_err_text(err));
    if (!err)
        err = hed_config_load(c, env->vars, why);
    if (!err && c->warning.text[0]) {
        hed_cli_say("warning: %s", c->warning.text);
        /* The program need not try again, and say the same. */
        hed_env_set(env, "HEDDLE_CONFIG", "");
    }
    if (!err)
        err = hed_log_setup(c->log, why);
    if (!err)
        err = complete(env, "driver", c->driver, why);
    if (!err)
        err = complete(env, "nvml", c->nvml, why);
    if (!err)
        err = complete(env, "cupti", c->cupti, why);
    if (!err)
        err = complete(env, "trace", c->trace, why);
    if (!err)
        err = complete(env, "cache", c->cache, why);
    if (!err)
        err = complete(env, "tls_ca", c->tls_ca, why);
    if (!err)
        err = complete(env, "tls_cert", c->tls_cert, why);
    if (!err)
        err = complete(env, "tls_key", c->tls_key, why);
    if (!err)
        err = complete_gpu(env, c->gpu, why);
    if (!err && hed_address_is(c->gpu))
        err = check_address(c->gpu, why);
    if (!err)
        err = check_sched(c, env, why);
    if (!err)
        err = check_group(c, why);
    return err;
}
