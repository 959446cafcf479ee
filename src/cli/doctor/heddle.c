/* The doctor checks heddle itself: its libraries, its settings, and the loader's variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/probe.h"
#include "locate/elf.h"
#include "locate/install.h"

/* Loads one library in a child and compares its version. True if everything is right. */
static bool
check_own_library(struct hed_doctor *d, const char *path)
{
    struct hed_env env;
    const char *hint;
    char text[640];
    bool good = false;

    /* Loading the library must not begin a trace. */
    hed_env_init(&env, environ);
    hed_env_set_setting(&env, "trace", "");

    struct hed_probe *p = hed_probe_create(path, env.vars);

    if (!p)
        goto out;
    hed_probe_load(p);
    if (!hed_probe_ok(p)) {
        hed_probe_explain(p, text, sizeof text, &hint);
        hed_doctor_say(d, HED_FINDING_FAIL, "libraries", "%s cannot be loaded: %s", path, text);
        hed_doctor_hint(d, "%s", hint[0] ? hint : "Install heddle again.");
    } else if (p->heddle[0] == '\0') {
        hed_doctor_say(d, HED_FINDING_FAIL, "libraries", "%s has no function heddle_version", path);
        hed_doctor_hint(d, "It is not heddle's, or incomplete. Install heddle again.");
    } else if (strcmp(p->heddle, hed_cli_version_text) != 0) {
        hed_doctor_say(d, HED_FINDING_FAIL, "libraries",
                       "%s has version %s, but this command has %s", path, p->heddle,
                       hed_cli_version_text);
        hed_doctor_hint(d, "Two installations are mixed. Install heddle again.");
    } else {
        good = true;
    }
out:
    hed_probe_free(p);
    hed_env_fini(&env);
    return good;
}

static void
check_libraries(struct hed_doctor *d)
{
    struct hed_install install;
    struct hed_why why = {""};

    if (hed_install_find(&install, &why) != 0) {
        hed_doctor_say(d, HED_FINDING_FAIL, "libraries", "%s", why.text);
        hed_doctor_hint(d, "The command looks for its libraries relative to where it lies itself.");
        return;
    }
    /* The fronts bring the core library with them, and its version. */
    if (check_own_library(d, install.lib[HED_INSTALL_CORE]) &&
        check_own_library(d, install.lib[HED_INSTALL_CUDA]) &&
        check_own_library(d, install.lib[HED_INSTALL_NVML]))
        hed_doctor_say(d, HED_FINDING_OK, "libraries", "heddle %s in %s", hed_cli_version_text,
                       install.dir);
    if (strpbrk(install.dir, ":; ")) {
        hed_doctor_say(d, HED_FINDING_FAIL, "libraries",
                       "%s contains a blank or colon, where the loader splits paths", install.dir);
        hed_doctor_hint(d, "Install heddle in another folder.");
    }
}

static void
check_settings(struct hed_doctor *d)
{
    struct hed_why why = {""};
    struct hed_env env;
    struct hed_buf names;

    hed_env_init(&env, environ);

    const int err = hed_cli_settings(&d->config, &env, &why);

    hed_env_fini(&env);
    if (err) {
        hed_doctor_say(d, HED_FINDING_FAIL, "settings", "%s", why.text);
        hed_doctor_hint(d, "`heddle help settings` lists all settings.");
        hed_config_init(&d->config);
        return;
    }
    hed_buf_init(&names, 4096);
    for (char **v = environ; *v; v++) {
        if (strncmp(*v, "HEDDLE_", 7) == 0)
            hed_buf_addf(&names, " %.*s", (int)strcspn(*v, "="), *v);
    }
    if (names.size)
        hed_doctor_say(d, HED_FINDING_OK, "settings", "valid; from the environment:%s",
                       hed_buf_cstr(&names));
    else
        hed_doctor_say(d, HED_FINDING_OK, "settings", "valid; none from the environment");
    hed_buf_fini(&names);
}

void
hed_doctor_heddle(struct hed_doctor *d)
{
    check_libraries(d);
    check_settings(d);
}

/* ---- the loader's variables ------------------------------------------------------------------ */

/* Calls fn for each entry of a list, as a terminated string. */
static void
each_entry(struct hed_doctor *d, const char *list, const char *separators,
           void (*fn)(struct hed_doctor *d, const char *entry))
{
    for (const char *p = list; p;) {
        const size_t n = strcspn(p, separators);
        char entry[PATH_MAX];

        snprintf(entry, sizeof entry, "%.*s", (int)(n < PATH_MAX ? n : PATH_MAX - 1), p);
        fn(d, entry);
        p = p[n] ? p + n + 1 : NULL;
    }
}

static void
check_folder(struct hed_doctor *d, const char *folder)
{
    char path[PATH_MAX + 32];
    struct hed_elf elf;

    if (folder[0] == '\0') {
        hed_doctor_say(d, HED_FINDING_WARN, "loader",
                       "LD_LIBRARY_PATH has an empty entry, which means the current folder");
        hed_doctor_hint(d, "Remove the colon at its beginning or end, or the double colon.");
        return;
    }
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    if (hed_elf_read(path, &elf) != 0)
        return;
    if (hed_elf_is_heddle(&elf)) {
        hed_doctor_say(d, HED_FINDING_WARN, "loader",
                       "LD_LIBRARY_PATH contains heddle's own folder %s, so every program that you "
                       "start from here runs on heddle",
                       folder);
        hed_doctor_hint(d, "If you do not want that, unset it; `heddle run` sets it by itself.");
    } else if (strstr(folder, "/stubs")) {
        hed_doctor_say(d, HED_FINDING_WARN, "loader",
                       "LD_LIBRARY_PATH contains the CUDA toolkit's stubs in %s", folder);
        hed_doctor_hint(d, "Remove that folder: stubs are for linking and fail at run time.");
    }
}

/* A library that the loader loads into every program. Entries without a slash are searched for. */
static void
check_loaded(struct hed_doctor *d, const char *variable, const char *name)
{
    const char *base = strrchr(name, '/');
    struct hed_elf elf;

    if (!base)
        return;
    if (hed_elf_read(name, &elf) != 0) {
        hed_doctor_say(d, HED_FINDING_WARN, "loader", "%s names %s, which cannot be read", variable,
                       name);
        hed_doctor_hint(d, "Remove it: the loader complains each time a program starts.");
    } else if (hed_elf_is_heddle(&elf) || strncmp(base, "/libheddle-", 11) == 0) {
        hed_doctor_say(d, HED_FINDING_WARN, "loader",
                       "%s contains heddle's own %s, so every program that you start from here "
                       "runs on heddle",
                       variable, name);
        hed_doctor_hint(d, "If you do not want that, unset it; `heddle run` sets it by itself.");
    }
}

static void
check_preload(struct hed_doctor *d, const char *name)
{
    check_loaded(d, "LD_PRELOAD", name);
}

static void
check_audit(struct hed_doctor *d, const char *name)
{
    check_loaded(d, "LD_AUDIT", name);
}

void
hed_doctor_loader(struct hed_doctor *d)
{
    const char *folders = getenv("LD_LIBRARY_PATH");
    const char *preload = getenv("LD_PRELOAD");
    const char *audit = getenv("LD_AUDIT");
    const size_t before = d->count;

    if (folders && folders[0])
        each_entry(d, folders, ":;", check_folder);
    if (preload && preload[0])
        each_entry(d, preload, ": ", check_preload);
    if (audit && audit[0])
        each_entry(d, audit, ":", check_audit);
    if (d->count == before)
        hed_doctor_say(d, HED_FINDING_OK, "loader",
                       "LD_LIBRARY_PATH, LD_PRELOAD and LD_AUDIT are fine");
}
