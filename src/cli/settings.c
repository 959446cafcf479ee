/* Checks settings for the command line: what the library would refuse later is refused now. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/meeting.h"
#include "cli/cli.h"
#include "core/config.h"
#include "core/fault.h"
#include "gen/storeys.h"
#include "remote/remote.h"
#include "share/share.h"

/* Makes a setting that is a relative path a full one. */
static int
complete_path(struct hed_env *env, const char *key, char *value, struct hed_why *why)
{
    char path[HED_CONFIG_TEXT_MAX];

    if (value[0] == '\0' || value[0] == '/')
        return 0;

    const int err = hed_path_absolute(value, path, sizeof path, why);

    if (err)
        return err;
    snprintf(value, HED_CONFIG_TEXT_MAX, "%s", path);
    hed_env_set_setting(env, key, path);
    return 0;
}

/* Makes the path of a server's socket a full one: shm:./sock. */
static int
complete_socket(struct hed_env *env, char *value, struct hed_why *why)
{
    const size_t scheme = strcspn(value, ":") + 1;
    char path[HED_CONFIG_TEXT_MAX];
    char out[HED_CONFIG_TEXT_MAX];
    const int err =
        value[scheme] ? hed_path_absolute(value + scheme, path, sizeof path, why) : HED_EINVAL;

    if (!value[scheme])
        hed_why_set(why, "gpu: '%s' has no path; add that of the server's socket", value);
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

/* Makes the paths of device profiles in "cpu:..." full ones: cpu:./mine.json. */
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
            err = hed_path_absolute(item, path, sizeof path, why);
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

/* Checks the form of an address. Whether a server is there shows later. */
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
hed_cli_check_setting(const char *key, const char *value, struct hed_why *why)
{
    struct hed_sched_settings settings;
    static struct hed_fault_rule rules[HED_FAULT_RULES]; /* large; nobody reads them */
    size_t count;

    if (strcmp(key, "sched") == 0 && *value)
        return hed_sched_parse(value, &settings, why);
    if (strcmp(key, "fault") == 0)
        return hed_fault_parse(value, rules, &count, why);
    return 0;
}

/* Names the origin of a bad value. One that came from an option has been checked already. */
static int
check_for_layer(const struct hed_env *env, const char *key, const char *variable, const char *value,
                struct hed_why *why)
{
    struct hed_why reason = {""};
    const int err = hed_cli_check_setting(key, value, &reason);

    if (err)
        hed_why_set(why, "%s: %s", hed_env_get(env, variable) ? variable : "the settings file",
                    reason.text);
    return err;
}

/* A layer that is not there is refused before the program starts; the rest shows in the program. */
static int
check_plugin_files(const struct hed_config *c, struct hed_why *why)
{
    char list[HED_CONFIG_TEXT_MAX];
    char *rest = list;
    char *entry;

    snprintf(list, sizeof list, "%s", c->plugins);
    while (*list && (entry = strsep(&rest, ",")) != NULL) {
        entry[strcspn(entry, ":")] = '\0';
        if (access(entry, R_OK) != 0) {
            hed_why_set(why, "plugins: %s: %s", entry, strerror(errno));
            return HED_ENOTFOUND;
        }
    }
    return 0;
}

#define GROUP_MAX 94 /* characters: it is part of a file's name */

static int
check_group(const struct hed_config *c, struct hed_why *why)
{
    const char *name = c->mem_group;
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (name[n] != '\0' || n > GROUP_MAX) {
        hed_why_set(why,
                    "mem_group: '%.100s' is not a name of up to %d letters, digits, '-' and '.'",
                    name, GROUP_MAX);
        return HED_EINVAL;
    }
    if (n && !c->mem) {
        hed_why_set(why, "mem_group: the group '%.100s' has no limit; set mem, too", name);
        return HED_EINVAL;
    }
    return 0;
}

/* Refuses settings that need what this build has not got, before a program is started with them. */
static int
check_built(const struct hed_config *c, struct hed_why *why)
{
    const struct {
        bool missing, wanted;
        const char *setting, *option;
    } parts[] = {
        {!HED_HAVE_CPU, hed_config_gpu_is(c->gpu, "cpu"), "gpu = cpu", "CPU"},
        {!HED_HAVE_REMOTE, hed_config_gpu_is_address(c->gpu), "gpu = ADDRESS", "REMOTE"},
        {!HED_HAVE_SHARE, c->mem != 0, "mem", "SHARE"},
        {!HED_HAVE_SHARE, c->sched[0] != '\0', "sched", "SHARE"},
        {!HED_HAVE_SEE, c->trace[0] != '\0', "trace", "SEE"},
        {!HED_HAVE_CUDART, strcmp(c->cudart, "own") == 0, "cudart = own", "CUDART"},
        {!HED_HAVE_FASTLIBS, strcmp(c->fast_libs, "yes") == 0, "fast_libs", "FASTLIBS"},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].missing && parts[i].wanted) {
            hed_why_set(why, "%s: this heddle was built without it (HEDDLE_%s=OFF)",
                        parts[i].setting, parts[i].option);
            return HED_ENOTSUP;
        }
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
        /* The program need not try again and print the same warning. */
        hed_env_set(env, "HEDDLE_CONFIG", "");
    }
    if (!err)
        err = check_built(c, why);
    if (!err)
        err = hed_log_setup(c->log, why);
    if (!err)
        err = complete_path(env, "driver", c->driver, why);
    if (!err)
        err = complete_path(env, "nvml", c->nvml, why);
    if (!err)
        err = complete_path(env, "cupti", c->cupti, why);
    if (!err)
        err = complete_path(env, "trace", c->trace, why);
    if (!err)
        err = complete_path(env, "cache", c->cache, why);
    if (!err)
        err = complete_path(env, "meet_dir", c->meet_dir, why);
    if (!err)
        hed_meeting_choose(c->meet_dir);
    if (!err)
        err = complete_path(env, "tls_ca", c->tls_ca, why);
    if (!err)
        err = complete_path(env, "tls_cert", c->tls_cert, why);
    if (!err)
        err = complete_path(env, "tls_key", c->tls_key, why);
    if (!err)
        err = complete_gpu(env, c->gpu, why);
    if (!err && hed_address_is(c->gpu))
        err = check_address(c->gpu, why);
    if (!err)
        err = check_for_layer(env, "sched", "HEDDLE_SCHED", c->sched, why);
    if (!err)
        err = check_for_layer(env, "fault", "HEDDLE_FAULT", c->fault, why);
    if (!err)
        err = check_plugin_files(c, why);
    if (!err)
        err = check_group(c, why);
    return err;
}
