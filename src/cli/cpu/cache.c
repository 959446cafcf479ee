/* heddle cpu cache: the kernels that were compiled for the CPU GPU. */
#include "cli/cpu/cache.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/err.h"
#include "base/identity.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "core/config.h"
#include "kernel/cache.h"
#include "kernel/ptx.h"
#include "locate/install.h"

#define DAYS_MOST 36500
#define DAY_S (24 * 3600)

static const char usage[] =
    "usage: heddle cpu cache list [--json]\n"
    "       heddle cpu cache prune [--stale] [--older DAYS] [--size SIZE] [--all]\n"
    "       heddle cpu cache export FILE [--all]\n"
    "       heddle cpu cache import FILE [--all]\n"
    "\n"
    "The cache has the compiled kernels of all programs of the user that ran on the\n"
    "CPU GPU, so that their next runs need no compiler. list shows them, the most\n"
    "recently used first, and what is being compiled for programs that have ended.\n"
    "prune removes kernels. export writes them to one file, for an image or a CI\n"
    "system, and import takes them from there: on the same kind of processor, with\n"
    "the same build of heddle. The code in it will be executed: import only what you\n"
    "would run.\n"
    "\n"
    "  --json         list: print one JSON object per kernel, one per line\n"
    "  --stale        prune: remove what cannot be used here: made by another build\n"
    "                 of heddle or for another processor, or damaged\n"
    "  --older DAYS   prune: remove what was not used for so many days\n"
    "  --size SIZE    prune: remove the least recently used until SIZE is left\n"
    "  --all          prune: remove all; export, import: also what cannot be used\n"
    "                 here\n"
    "  -h, --help     show this help\n"
    "\n"
    "The folder is that of the setting `cache`, otherwise ~/.cache/heddle/kernels.\n"
    "The exit code is 0 on success, 1 if a file cannot be read or written, 2 if an\n"
    "option is wrong.\n";

enum { OPT_JSON, OPT_STALE, OPT_OLDER, OPT_SIZE, OPT_ALL, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_JSON] = {"json", false},
    [OPT_STALE] = {"stale", false},
    [OPT_OLDER] = {"older", true},
    [OPT_SIZE] = {"size", true},
    [OPT_ALL] = {"all", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

/* What can be done, and which options go with it. */
static const struct action {
    const char *name;
    int (*run)(const struct hed_cli_cache *c);
    bool takes_file;
    unsigned options; /* a bit for each */
} actions[] = {
    {"list", hed_cli_cache_list, false, 1u << OPT_JSON},
    {"prune", hed_cli_cache_prune, false,
     1u << OPT_STALE | 1u << OPT_OLDER | 1u << OPT_SIZE | 1u << OPT_ALL},
    {"export", hed_cli_cache_export, true, 1u << OPT_ALL},
    {"import", hed_cli_cache_import, true, 1u << OPT_ALL},
};

const char *
hed_cli_cache_useless(const struct hed_cli_cache *c, int err, const struct hed_cache_entry *e)
{
    if (err == HED_EVERSION)
        return "other version";
    if (err == HED_EACCESS)
        return "not trusted";
    if (err)
        return "damaged";
    if (e->about.abi != HED_PTX_ABI || strcmp(e->about.version, HED_VERSION) != 0)
        return "other version";
    if (c->compiler && e->about.compiler != c->compiler)
        return "other build";
    return strcmp(e->about.features, c->features) == 0 ? NULL : "other processor";
}

static const struct action *
find_action(const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    hed_cli_say("cpu cache: '%s' is neither list, prune, export nor import", name);
    return NULL;
}

static bool
read_cache_option(struct hed_cli_cache *c, int option, const char *value)
{
    uint64_t days;

    c->json |= option == OPT_JSON;
    c->stale |= option == OPT_STALE;
    c->all |= option == OPT_ALL;
    if (option == OPT_SIZE) {
        c->has_size = hed_parse_size(value, &c->size) == 0;
        if (!c->has_size)
            hed_cli_say("cpu cache: --size '%s' is not a size such as 100M or 1G", value);
        return c->has_size;
    }
    if (option != OPT_OLDER)
        return true;
    if (hed_parse_u64(value, &days) != 0 || days == 0 || days > DAYS_MOST) {
        hed_cli_say("cpu cache: --older '%s' is not 1 to %d days", value, DAYS_MOST);
        return false;
    }
    c->older_s = days * DAY_S;
    return true;
}

/* Returns -1 to go on, else an exit code. */
static int
read_cache_words(int argc, char **argv, struct hed_cli_cache *c, const struct action **action)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    unsigned given = 0;
    int word;

    o.command = "cpu cache";
    while ((word = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (word == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (word == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (word != HED_CLI_OPERAND) {
            given |= 1u << word;
            if (!read_cache_option(c, word, o.value))
                return HED_EXIT_USAGE;
        } else if (!*action) {
            *action = find_action(o.value);
            if (!*action)
                return HED_EXIT_USAGE;
        } else if (!(*action)->takes_file || c->file) {
            hed_cli_say("cpu cache %s: unexpected '%s'", (*action)->name, o.value);
            return HED_EXIT_USAGE;
        } else {
            c->file = o.value;
        }
    }
    if (!*action)
        hed_cli_say("cpu cache: list, prune, export or import? See heddle cpu cache --help");
    else if ((*action)->takes_file && !c->file)
        hed_cli_say("cpu cache %s: no file given", (*action)->name);
    else if (given & ~(*action)->options)
        hed_cli_say("cpu cache %s: an option is for another of these commands; see heddle cpu "
                    "cache --help",
                    (*action)->name);
    else
        return -1;
    return HED_EXIT_USAGE;
}

/* The folder, and what is of use here. */
static bool
find_cache(struct hed_cli_cache *c, struct hed_why *why)
{
    struct hed_config config;
    struct hed_install install;
    struct hed_env env;
    char path[PATH_MAX];
    int err;

    hed_env_init(&env, environ);
    hed_config_init(&config);
    err = hed_cli_settings(&config, &env, why);
    hed_env_fini(&env);
    if (err)
        return false;
    c->cache = hed_cache_create(config.cache, config.cache_size);
    if (!c->cache) {
        hed_why_set(why, "there is no cache: cache_size is 0, or there is no folder for it");
        return false;
    }
    if (strcmp(config.cache_trust, "group") == 0)
        hed_cache_trust_group(c->cache);
    hed_ptx_features(c->features, sizeof c->features);
    if (hed_install_find(&install, NULL) == 0 &&
        hed_install_plugin(&install, "compiler-llvm", path, sizeof path))
        c->compiler = hed_file_identity(path);
    return true;
}

int
hed_cli_cpu_cache(int argc, char **argv)
{
    struct hed_cli_cache c = {.cache = NULL};
    const struct action *action = NULL;
    struct hed_why why;
    int code = read_cache_words(argc, argv, &c, &action);

    if (code >= 0)
        return code;
    if (!find_cache(&c, &why)) {
        hed_cli_say("cpu cache %s: %s", action->name, why.text);
        return HED_EXIT_FAILED;
    }
    code = action->run(&c);
    hed_cache_free(c.cache);
    return code;
}
