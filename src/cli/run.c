/* heddle run: sets up the environment so that a program finds heddle's CUDA driver, or so that the
 * program's own driver finds heddle (--inject), and becomes that program. The process stays the
 * same, so signals and the exit code are the program's own.
 *
 *     options -> settings checked -> libraries checked -> program found -> trace file checked
 *             -> environment -> exec
 *
 * Nothing is changed on the disk before all checks have passed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/err.h"
#include "base/folder.h"
#include "cli/cli.h"
#include "cli/preload.h"
#include "cli/refusal.h"
#include "cli/runtime.h"
#include "cli/snap/ckpt.h"
#include "cli/target.h"
#include "cli/trace_place.h"
#include "core/config.h"
#include "kernel/sass.h"
#include "locate/driver.h"
#include "locate/install.h"

#define LEAST_MEM (UINT64_C(1) << 20) /* bytes: a limit below that was meant to have a unit */

static const char usage[] =
    "usage: heddle run [OPTION...] [--] PROGRAM [ARG...]\n"
    "\n"
    "Runs a program on heddle's CUDA driver.\n"
    "\n"
    "  --gpu WHERE        where GPU work runs (default: auto):\n"
    "                     auto     NVIDIA's GPU if there is one, else the CPU\n"
    "                     gpu      NVIDIA's GPU, through NVIDIA's driver\n"
    "                     cpu      the CPU; with cpu:h100x8 it looks like 8 H100\n"
    "                     ADDRESS  the GPUs of a server (heddle serve): shm:PATH,\n"
    "                              unix:PATH, tcp://HOST:PORT, or vm: for the host\n"
    "                              of this QEMU guest\n"
    "                     null     nowhere: calls return, nothing is computed\n"
    "  --trace FILE       record all CUDA and NVML calls in FILE (heddle trace)\n"
    "  --trace-data SIZE  also record up to SIZE bytes of the data of each copy\n"
    "  --trace-full WORD  if the disk is too slow: block the program (default), or\n"
    "                     drop calls\n"
    "  --sched SETTINGS   share the GPU with other programs: on, or for example\n"
    "                     prio=low,share=2,mode=record (heddle-sched(1))\n"
    "  --ckpt WORDS       let the program be saved (heddle-snap(1)): on, or, to save\n"
    "                     it from time to time, for example every=60s,keep=3,dir=DIR;\n"
    "                     with recover, it goes on from the newest snapshot when its\n"
    "                     server is lost\n"
    "  --resume DIR       go on from the newest snapshot in DIR; without one, start\n"
    "                     the program\n"
    "  --cudart WHICH     which CUDA runtime a program gets that uses a shared one:\n"
    "                     auto     its own, or heddle's if it finds none (default)\n"
    "                     own      heddle's, in place of NVIDIA's\n"
    "                     nvidia   its own, never heddle's\n"
    "  --mem SIZE         limit the memory that the program can use on each device\n"
    "  --lift             translate machine code of " HED_SASS_ARCHS " that the GPU does\n"
    "                     not run to PTX, which the driver compiles\n"
    "  --fast-libs        on the CPU GPU, let OpenBLAS compute matrix products of\n"
    "                     cuBLAS and convolutions of cuDNN: faster, with sums in\n"
    "                     another order\n"
    "  --fail-on-refusal  exit with 123 if the program exits with 0 although heddle\n"
    "                     refused a launch or a call that it cannot do\n"
    "  --fault SPEC       make calls fail on purpose: NAME:N:ERROR[,...]\n"
    "  --layers LIST      use these layers, top first, instead of the ones that the\n"
    "                     options above turn on\n"
    "  --driver PATH      use this libcuda.so.1 of NVIDIA's\n"
    "  --log SPEC         log to standard error: level[,component=level...]\n"
    "  --config FILE      read settings from FILE, not ~/.config/heddle/heddle.conf\n"
    "  --set KEY=VALUE    change any setting; `heddle help settings` lists them\n"
    "  --print-env        print the variables for a shell to set, and run nothing\n"
    "  --no-preload       set only LD_LIBRARY_PATH, not LD_PRELOAD\n"
    "  --inject           let the program use its own driver, which loads heddle and\n"
    "                     reports every call; works with --trace and --sched\n"
    "  -h, --help         show this help\n"
    "\n"
    "The exit code is the program's own; or 2 if an option or setting is wrong, 123\n"
    "if heddle refused something (--fail-on-refusal), 125 if heddle is not installed\n"
    "properly, 126 if the program cannot be executed, 127 if there is no such\n"
    "program.\n";

/* The options up to OPT_CONFIG are settings of that name. */
enum {
    OPT_GPU,
    OPT_TRACE,
    OPT_TRACE_DATA,
    OPT_TRACE_FULL,
    OPT_FAULT,
    OPT_MEM,
    OPT_SCHED,
    OPT_CUDART,
    OPT_LAYERS,
    OPT_DRIVER,
    OPT_LOG,
    OPT_CONFIG,
    OPT_SET,
    OPT_LIFT,
    OPT_FAST_LIBS,
    OPT_FAIL_ON_REFUSAL,
    OPT_PRINT_ENV,
    OPT_NO_PRELOAD,
    OPT_INJECT,
    OPT_CKPT,
    OPT_RESUME,
    OPT_HELP
};

static const struct hed_cli_opt options[] = {
    [OPT_GPU] = {"gpu", true},
    [OPT_TRACE] = {"trace", true},
    [OPT_TRACE_DATA] = {"trace-data", true},
    [OPT_TRACE_FULL] = {"trace-full", true},
    [OPT_FAULT] = {"fault", true},
    [OPT_MEM] = {"mem", true},
    [OPT_SCHED] = {"sched", true},
    [OPT_CUDART] = {"cudart", true},
    [OPT_LAYERS] = {"layers", true},
    [OPT_DRIVER] = {"driver", true},
    [OPT_LOG] = {"log", true},
    [OPT_CONFIG] = {"config", true},
    [OPT_SET] = {"set", true},
    [OPT_LIFT] = {"lift", false},
    [OPT_FAST_LIBS] = {"fast-libs", false},
    [OPT_FAIL_ON_REFUSAL] = {"fail-on-refusal", false},
    [OPT_PRINT_ENV] = {"print-env", false},
    [OPT_NO_PRELOAD] = {"no-preload", false},
    [OPT_INJECT] = {"inject", false},
    [OPT_CKPT] = {"ckpt", true},
    [OPT_RESUME] = {"resume", true},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

static const char *const settings[OPT_CONFIG] = {
    [OPT_GPU] = "gpu",
    [OPT_TRACE] = "trace",
    [OPT_TRACE_DATA] = "trace_data",
    [OPT_TRACE_FULL] = "trace_full",
    [OPT_FAULT] = "fault",
    [OPT_MEM] = "mem",
    [OPT_SCHED] = "sched",
    [OPT_CUDART] = "cudart",
    [OPT_LAYERS] = "layers",
    [OPT_DRIVER] = "driver",
    [OPT_LOG] = "log",
};

struct request {
    struct hed_env env;
    struct hed_config config; /* the options alone, then everything */
    bool print;
    bool preload;
    bool inject;
    bool help;
    bool fails_on_refusal; /* asked for by the option; the setting is the same if it can be */
    struct hed_ckpt ckpt;
    const char *resume; /* NULL: not asked for */
    char **program;     /* NULL at the end */
};

static int
set_setting(struct request *r, const char *option, const char *key, const char *value)
{
    struct hed_why why = {""};

    if (hed_config_set(&r->config, key, value, &why) != 0 ||
        hed_cli_check_setting(key, value, &why) != 0) {
        const char *text = why.text;

        /* The reason begins with the setting's name, which is mostly the option's. */
        if (strcmp(option, "set") != 0 && strncmp(text, key, strlen(key)) == 0 &&
            text[strlen(key)] == ':')
            text += strlen(key) + 2;
        hed_cli_say("run: --%s: %s", option, text);
        return HED_EXIT_USAGE;
    }
    hed_env_set_setting(&r->env, key, value);
    return HED_EXIT_OK;
}

/* KEY=VALUE */
static int
set_key_value(struct request *r, const char *pair)
{
    const size_t n = strcspn(pair, "=");
    char key[64];

    if (pair[n] == '\0' || n == 0 || n >= sizeof key) {
        hed_cli_say("run: --set '%s' is not KEY=VALUE; `heddle help settings` lists the keys",
                    pair);
        return HED_EXIT_USAGE;
    }
    snprintf(key, sizeof key, "%.*s", (int)n, pair);
    return set_setting(r, "set", key, pair + n + 1);
}

/* The settings file, as a full path: the program may change its folder before heddle opens it. */
static int
take_config(struct request *r, const char *value)
{
    char path[HED_CONFIG_TEXT_MAX];
    struct hed_why why = {""};

    if (hed_path_absolute(value, path, sizeof path, &why) != 0) {
        hed_cli_say("run: --config: %s", why.text);
        return HED_EXIT_USAGE;
    }
    hed_env_set(&r->env, "HEDDLE_CONFIG", path);
    return HED_EXIT_OK;
}

static int
take_ckpt(struct request *r, const char *value)
{
    struct hed_why why = {""};

    if (hed_ckpt_parse(value, &r->ckpt, &why) == 0)
        return HED_EXIT_OK;
    hed_cli_say("run: --ckpt: %s", why.text);
    return HED_EXIT_USAGE;
}

static int
take_run_option(struct request *r, int option, const char *value)
{
    switch (option) {
    case OPT_CKPT:
        return take_ckpt(r, value);
    case OPT_RESUME:
        r->resume = value;
        return HED_EXIT_OK;
    case OPT_CONFIG:
        return take_config(r, value);
    case OPT_SET:
        return set_key_value(r, value);
    case OPT_LIFT:
        return set_setting(r, options[option].name, "lift", "yes");
    case OPT_FAST_LIBS:
        return set_setting(r, options[option].name, "fast_libs", "yes");
    case OPT_FAIL_ON_REFUSAL:
        r->fails_on_refusal = true;
        return set_setting(r, options[option].name, "fail_on_refusal", "yes");
    case OPT_PRINT_ENV:
        r->print = true;
        return HED_EXIT_OK;
    case OPT_NO_PRELOAD:
        r->preload = false;
        return HED_EXIT_OK;
    case OPT_INJECT:
        r->inject = true;
        return HED_EXIT_OK;
    case OPT_HELP:
        r->help = true;
        return HED_EXIT_OK;
    default:
        return set_setting(r, options[option].name, settings[option], value);
    }
}

/* An injected library is only told of calls: it can delay and record them, no more. */
static int
check_inject_options(const struct request *r)
{
    const struct hed_config *c = &r->config;
    const char *wrong = NULL;

    if (strcmp(c->gpu, "auto") != 0 && strcmp(c->gpu, "gpu") != 0)
        wrong = "works only on the program's own GPU; leave out --gpu";
    else if (r->ckpt.on || r->resume)
        wrong = "cannot save a program; leave out --ckpt and --resume, or --inject";
    else if (c->mem || *c->mem_group)
        wrong = "cannot limit memory; leave out --mem or --inject";
    else if (*c->fault)
        wrong = "cannot make calls fail; leave out --fault or --inject";
    else if (strcmp(c->lift, "yes") == 0)
        wrong = "cannot change calls; leave out --lift or --inject";
    else if (strcmp(c->cudart, "own") == 0)
        wrong = "leaves the program its own runtime; leave out --cudart own or --inject";
    else if (*c->layers)
        wrong = "cannot use layers; leave out --layers or --inject";
    else if (!*c->trace && !*c->sched)
        wrong = "has nothing to do; add --trace FILE or --sched SETTINGS";
    if (!wrong)
        return HED_EXIT_OK;
    hed_cli_say("run: --inject %s", wrong);
    return HED_EXIT_USAGE;
}

/* Fills in the request. Afterwards all settings are known to be valid. */
static int
parse_run(struct request *r, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_why why = {""};
    int option;

    r->preload = true;
    hed_config_init(&r->config);
    hed_env_init(&r->env, environ);
    while (!r->help && (option = hed_cli_opts_next(&o)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD || take_run_option(r, option, o.value) != 0)
            return HED_EXIT_USAGE;
    }
    if (r->help)
        return HED_EXIT_OK;
    r->program = argv + o.at;
    if (!r->program[0] && !r->print && !r->resume) {
        hed_cli_say("run: no program given; see heddle run --help");
        return HED_EXIT_USAGE;
    }
    if (!r->env.failed && hed_cli_settings(&r->config, &r->env, &why) != 0) {
        hed_cli_say("run: %s", why.text);
        return HED_EXIT_USAGE;
    }
    if (!r->preload && strcmp(r->config.cudart, "own") == 0) {
        hed_cli_say("run: --no-preload sets only LD_LIBRARY_PATH, which does not reach every "
                    "runtime; leave out --cudart own or --no-preload");
        return HED_EXIT_USAGE;
    }
    if (r->config.mem && r->config.mem < LEAST_MEM)
        hed_cli_say("run: warning: --mem limits the program to %llu bytes of each device, which is "
                    "less than any can use; sizes have units, such as 500M or 4G",
                    (unsigned long long)r->config.mem);
    if (r->fails_on_refusal && (r->print || r->inject || r->ckpt.on || r->resume)) {
        hed_cli_say("run: --fail-on-refusal cannot be used with --print-env, --inject, --ckpt and "
                    "--resume");
        return HED_EXIT_USAGE;
    }
    return r->inject ? check_inject_options(r) : HED_EXIT_OK;
}

/* ---- the environment ------------------------------------------------------------------------- */

static int
prepare_trace(struct request *r)
{
    const char *path = r->config.trace;
    char pid[32];

    if (path[0] == '\0')
        return HED_EXIT_OK;
    if (hed_trace_place_check(path) != 0)
        return HED_EXIT_USAGE;
    /* exec keeps the process id; a shell that reads the output of --print-env has another. */
    if (!r->print) {
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        hed_env_set_setting(&r->env, "trace_owner", pid);
    }
    return HED_EXIT_OK;
}

#define INJECTION "CUDA_INJECTION64_PATH" /* the library that NVIDIA's driver loads */
#define NVTX "NVTX_INJECTION64_PATH"      /* the library that a program's NVTX loads */

/* The program finds NVIDIA's driver as if heddle were not there, and the driver loads heddle. */
static int
prepare_injection(struct request *r, const struct hed_install *install)
{
    const char *other = hed_env_get(&r->env, INJECTION);
    char path[PATH_MAX];

    if (!hed_install_plugin(install, "libheddle-inject", path, sizeof path)) {
        hed_cli_say("run: --inject: there is no %s; install heddle again", path);
        return HED_EXIT_BROKEN;
    }
    if (other && *other && strcmp(other, path) != 0) {
        hed_cli_say(
            "run: --inject: %s is already set to '%s', perhaps by a profiler, and the driver "
            "loads only one library; unset it, or leave out --inject",
            INJECTION, other);
        return HED_EXIT_USAGE;
    }
    if (!hed_locate_gpu(r->config.driver))
        hed_cli_say("run: warning: --inject: there is no NVIDIA driver with a GPU here that could "
                    "load heddle, so nothing will be recorded or shared; heddle doctor says more");
    hed_env_set(&r->env, INJECTION, path);
    /* Where heddle runs heddle. */
    hed_env_drop(&r->env, "LD_LIBRARY_PATH", install->dir, ":;");
    hed_env_drop(&r->env, "LD_PRELOAD", install->lib[HED_INSTALL_NVML], ": ");
    hed_env_drop(&r->env, "LD_PRELOAD", install->lib[HED_INSTALL_CUDA], ": ");
    hed_preload_drop(&r->env, install);
    /* heddle's runtime would load heddle's driver. */
    return hed_runtime_prepare(&r->env, install, "nvidia", false);
}

/* The program finds heddle's libraries before NVIDIA's. */
static int
prepare_libraries(struct request *r, const struct hed_install *install)
{
    const char *injected = hed_env_get(&r->env, INJECTION);
    char path[PATH_MAX];

    if (hed_config_gpu_is(r->config.gpu, "cpu") &&
        !hed_install_plugin(install, "backend-cpu", path, sizeof path)) {
        hed_cli_say("run: --gpu '%s': there is no %s; install heddle again, or build it with "
                    "HEDDLE_CPU=ON",
                    r->config.gpu, path);
        return HED_EXIT_BROKEN;
    }
    /* The loader has no way to quote these characters. */
    if (strpbrk(install->dir, r->preload ? ":; " : ":;")) {
        hed_cli_say("run: heddle is installed in '%s', but the loader splits paths at blanks and "
                    "colons; install heddle in another folder",
                    install->dir);
        return HED_EXIT_BROKEN;
    }
    hed_env_prepend(&r->env, "LD_LIBRARY_PATH", install->dir, ":;");
    if (hed_preload_extras(&r->env, install, &r->config, r->preload) != HED_EXIT_OK)
        return HED_EXIT_USAGE;
    if (r->preload) {
        hed_env_prepend(&r->env, "LD_PRELOAD", install->lib[HED_INSTALL_NVML], ": ");
        hed_env_prepend(&r->env, "LD_PRELOAD", install->lib[HED_INSTALL_CUDA], ": ");
    }
    /* The program's own ranges belong into its trace, unless a profiler takes them. */
    if (r->config.trace[0] && !hed_env_get(&r->env, NVTX))
        hed_env_set(&r->env, NVTX, install->lib[HED_INSTALL_CORE]);
    /* Where heddle runs heddle, one of the two is enough. */
    if (hed_install_plugin(install, "libheddle-inject", path, sizeof path) && injected &&
        strcmp(injected, path) == 0)
        hed_env_unset(&r->env, INJECTION);
    return hed_runtime_prepare(&r->env, install, r->config.cudart, r->preload);
}

static int
prepare_loader(struct request *r)
{
    struct hed_install install;
    struct hed_why why = {""};

    if (hed_install_find(&install, &why) != 0) {
        hed_cli_say("run: %s", why.text);
        return HED_EXIT_BROKEN;
    }

    const int code = r->inject ? prepare_injection(r, &install) : prepare_libraries(r, &install);

    if (code != 0)
        return code;
    /* Show what goes wrong inside the program, unless the user has decided otherwise. */
    if (r->config.log[0] == '\0' && !hed_env_get(&r->env, "HEDDLE_LOG"))
        hed_env_set_setting(&r->env, "log", "warn");
    return HED_EXIT_OK;
}

static int
execute_program(struct request *r, const struct hed_target *t)
{
    const char *trace = r->config.trace;

    if (strcmp(r->config.gpu, "null") == 0)
        hed_cli_say("warning: --gpu null answers CUDA calls but computes nothing");
    hed_target_warn(t, r->inject);
    /* So that nobody mistakes the last run's trace for this one's. */
    if (trace[0] && unlink(trace) != 0 && errno != ENOENT) {
        hed_cli_say("run: --trace '%s': cannot replace the old trace: %s", trace, strerror(errno));
        return HED_EXIT_USAGE;
    }
    fflush(NULL);
    execvpe(t->path, r->program, r->env.vars);

    const int error = errno;

    /* The file was there a moment ago, so its interpreter or its loader is missing. */
    if (error == ENOENT)
        hed_cli_say("run: cannot execute '%s': its interpreter is missing; check its #! line or "
                    "its loader",
                    t->path);
    else
        hed_cli_say("run: cannot execute '%s': %s", t->path, strerror(error));
    return HED_EXIT_NOEXEC;
}

static int
run_program(struct request *r)
{
    struct hed_target target;
    int code = prepare_loader(r);

    if (code == 0 && !r->print)
        code = hed_target_find(&target, r->program[0], hed_env_get(&r->env, "PATH"));
    if (code == 0)
        code = prepare_trace(r);
    if (code != 0)
        return code;
    if (r->env.failed) {
        hed_cli_say("run: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_BROKEN;
    }
    if (r->print) {
        hed_env_print_changes(&r->env, environ, stdout);
        return HED_EXIT_OK;
    }
    return execute_program(r, &target);
}

/* In the child that becomes the program. */
static int
start_at(void *arg, const char *address)
{
    struct request *r = arg;
    const int code = set_setting(r, "gpu", "gpu", address);

    return code == HED_EXIT_OK ? run_program(r) : code;
}

/* heddle stays as the program's parent. */
static int
run_with_snapshots(struct request *r)
{
    const struct hed_ckpt_how how = {.ckpt = &r->ckpt,
                                     .resume = r->resume,
                                     .gpu = r->config.gpu,
                                     .start = r->program[0] ? start_at : NULL,
                                     .arg = r};

    if (!r->print)
        return hed_ckpt_run(&how);
    hed_cli_say("run: --print-env cannot be used with --ckpt and --resume, for which heddle stays "
                "as the program's parent");
    return HED_EXIT_USAGE;
}

/* In the child that becomes the program. */
static int
start_noted(void *arg)
{
    return run_program(arg);
}

/* heddle stays as the program's parent, to see whether anything was refused. */
static int
run_noting_refusals(struct request *r)
{
    char path[PATH_MAX];
    const int code = hed_refusal_file(path, sizeof path);

    if (code != HED_EXIT_OK)
        return code;
    hed_env_set_setting(&r->env, "refusals", path);
    return hed_refusal_run(path, start_noted, r);
}

static bool
notes_refusals(const struct request *r)
{
    return strcmp(r->config.fail_on_refusal, "yes") == 0 && !r->print && !r->inject;
}

int
hed_cli_run(int argc, char **argv)
{
    struct request r = {0};
    int code = parse_run(&r, argc, argv);

    if (code == HED_EXIT_OK && r.help)
        fputs(usage, stdout);
    else if (code == HED_EXIT_OK)
        code = r.ckpt.on || r.resume ? run_with_snapshots(&r)
               : notes_refusals(&r)  ? run_noting_refusals(&r)
                                     : run_program(&r);
    hed_env_fini(&r.env);
    return code;
}
