/* heddle devices: the GPUs that a program under heddle would see. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/probe.h"
#include "core/config.h"
#include "kernel/sass.h"
#include "locate/driver.h"
#include "locate/install.h"

#define OUTPUT_MAX (4u * 1024 * 1024)

static const char usage[] =
    "usage: heddle devices [OPTION...]\n"
    "\n"
    "Lists the CUDA devices that a program under `heddle run` would see.\n"
    "\n"
    "  --gpu WHERE   as for `heddle run`: auto (default), gpu, cpu, cpu:h100x8, null,\n"
    "                shm:PATH, unix:PATH, tcp://HOST:PORT or vm:\n"
    "  --json        print JSON\n"
    "  -h, --help    show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if the driver failed, 2 if an option or setting\n"
    "is wrong.\n";

enum { OPT_GPU, OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_GPU] = {"gpu", true},
    [OPT_JSON] = {"json", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

static void
format_uuid(const unsigned char *u, char *out, size_t size)
{
    snprintf(out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

static int
count_shown(const struct hed_probe *p)
{
    return p->count < HED_PROBE_DEVICES_MAX ? p->count : HED_PROBE_DEVICES_MAX;
}

static struct hed_arch
arch_of_device(const struct hed_probe_device *d)
{
    return (struct hed_arch){.number = (unsigned)(d->major * 10 + d->minor)};
}

/* On the CPU, machine code runs for some devices only, and libraries have little else. For some of
 * these they use instructions that do not run. */
static void
recommend_a100(const struct hed_probe *p, const char *gpu)
{
    bool other = false;

    for (int i = 0; i < count_shown(p); i++) {
        const struct hed_arch arch = arch_of_device(&p->devices[i]);

        other = other || !hed_sass_lifts(arch) || arch.number >= HED_SASS_PARTLY_ARCH;
    }
    if (other && hed_config_gpu_is(gpu, "cpu"))
        printf("\nFor PyTorch and other frameworks choose --gpu cpu or cpu:a100: their machine\n"
               "code runs on the CPU for compute capability %d.%d to %d.%d only, and from %d.%d\n"
               "on without most half-precision matrix products.\n",
               HED_SASS_FIRST_ARCH / 10, HED_SASS_FIRST_ARCH % 10, HED_SASS_LAST_ARCH / 10,
               HED_SASS_LAST_ARCH % 10, HED_SASS_PARTLY_ARCH / 10, HED_SASS_PARTLY_ARCH % 10);
}

static void
print_devices(const struct hed_probe *p, const char *gpu)
{
    printf("CUDA %d.%d, %d device%s (--gpu %s)\n", p->version / 1000, p->version % 1000 / 10,
           p->count, p->count == 1 ? "" : "s", gpu);
    for (int i = 0; i < count_shown(p); i++) {
        const struct hed_probe_device *d = &p->devices[i];
        char uuid[64];
        char cc[32];

        format_uuid(d->uuid, uuid, sizeof uuid);
        snprintf(cc, sizeof cc, "%d.%d", d->major, d->minor);
        if (i == 0)
            printf("\n%4s  %-34s %5s %12s  %s\n", "", "NAME", "CC", "MEMORY", "PCI, UUID");
        printf("%4d  %-34s %5s %8.1f GiB  %s\n", i, d->name, cc,
               (double)d->memory / (1024.0 * 1024 * 1024), d->bus[0] ? d->bus : "-");
        printf("%4s  %s\n", "", uuid);
    }
    recommend_a100(p, gpu);
}

static void
add_device_text(struct hed_buf *b, const char *key, const char *value)
{
    hed_str_field(b, key, value, strlen(value));
}

static void
add_devices(struct hed_buf *b, const struct hed_probe *p)
{
    for (int i = 0; i < count_shown(p); i++) {
        const struct hed_probe_device *d = &p->devices[i];
        char uuid[64];

        format_uuid(d->uuid, uuid, sizeof uuid);
        hed_buf_addf(b, "%s{\"index\":%d,", i ? "," : "", i);
        add_device_text(b, "name", d->name);
        hed_buf_addf(b, ",");
        add_device_text(b, "uuid", uuid);
        hed_buf_addf(b, ",\"compute_capability\":\"%d.%d\",\"memory_bytes\":%llu,", d->major,
                     d->minor, (unsigned long long)d->memory);
        add_device_text(b, "pci_bus_id", d->bus);
        hed_buf_addf(b, "}");
    }
}

/* Explains the failure in `text`, and returns what to do. `missing` says that there is no driver,
 * and is "" where there is one. It is a better reason than the result that programs get for it.
 */
static const char *
explain_failure(const struct hed_probe *p, const char *missing, char *text, size_t size)
{
    const char *hint;

    hed_probe_explain(p, text, size, &hint);
    return missing[0] ? missing : hint;
}

static void
add_probe_error(struct hed_buf *b, const struct hed_probe *p, const char *missing)
{
    const char *name = p->result ? hed_probe_result_name(p) : NULL;
    char text[640];
    const char *hint = explain_failure(p, missing, text, sizeof text);

    hed_buf_addf(b, ",\"error\":{");
    add_device_text(b, "step", p->step);
    hed_buf_addf(b, ",\"result\":%d,", p->result);
    add_device_text(b, "name", name ? name : "");
    hed_buf_addf(b, ",");
    add_device_text(b, "text", text);
    hed_buf_addf(b, ",");
    add_device_text(b, "hint", hint);
    hed_buf_addf(b, "}");
}

static int
print_devices_json(const struct hed_probe *p, const char *gpu, const char *missing)
{
    struct hed_buf b;

    hed_buf_init(&b, OUTPUT_MAX);
    hed_buf_addf(&b, "{");
    add_device_text(&b, "gpu", gpu);
    hed_buf_addf(&b, ",\"cuda_version\":%d,\"devices\":[", p->version);
    if (hed_probe_ok(p))
        add_devices(&b, p);
    hed_buf_addf(&b, "]");
    if (!hed_probe_ok(p))
        add_probe_error(&b, p, missing);
    hed_buf_addf(&b, "}");
    puts(hed_buf_cstr(&b));
    hed_buf_fini(&b);
    return hed_probe_ok(p) ? HED_EXIT_OK : HED_EXIT_FAILED;
}

static int
print_failure(const struct hed_probe *p, const char *missing)
{
    char text[640];
    const char *hint = explain_failure(p, missing, text, sizeof text);

    hed_cli_say("devices: %s", text);
    if (hint[0])
        hed_cli_fold(stderr, hint, 0);
    if (!p->said[0])
        fputs("`heddle doctor` can tell more.\n", stderr);
    return HED_EXIT_FAILED;
}

static int
list_devices(const struct hed_install *install, const char *gpu, char *const *env, bool json,
             const char *missing)
{
    struct hed_probe *p = hed_probe_create(install->lib[HED_INSTALL_CUDA], env);
    int code = HED_EXIT_OK;

    if (!p) {
        hed_cli_say("devices: %s", hed_err_text(HED_ENOMEM));
        return HED_EXIT_FAILED;
    }
    p->listen = hed_config_gpu_is_address(gpu);
    hed_probe_cuda(p);
    if (json)
        code = print_devices_json(p, gpu, missing);
    else if (hed_probe_ok(p))
        print_devices(p, gpu);
    else
        code = print_failure(p, missing);
    hed_probe_free(p);
    return code;
}

/* Writes to *missing if there is no NVIDIA driver where one is needed. */
static void
look_for_driver(const struct hed_config *c, const char *gpu, struct hed_why *missing)
{
    char path[PATH_MAX];

    if (strcmp(gpu, "gpu") == 0)
        hed_locate_find("libcuda.so.1", c->driver, path, sizeof path, missing);
}

int
hed_cli_devices(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_config config;
    struct hed_install install;
    struct hed_env env;
    struct hed_why why = {""};
    struct hed_why missing = {""};
    bool json = false;
    int code = HED_EXIT_USAGE;
    int option;

    hed_env_init(&env, environ);
    hed_config_init(&config);
    while ((option = hed_cli_opts_next(&o)) >= 0) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            code = HED_EXIT_OK;
            goto out;
        }
        if (option == OPT_JSON)
            json = true;
        if (option == OPT_GPU && hed_config_set(&config, "gpu", o.value, &why) != 0) {
            hed_cli_say("devices: --%s", why.text);
            goto out;
        }
        if (option == OPT_GPU)
            hed_env_set_setting(&env, "gpu", o.value);
    }
    if (option == HED_CLI_OPT_BAD || !hed_cli_opts_no_operands(&o))
        goto out;
    /* Listing devices must not overwrite the trace of a program. */
    hed_env_set_setting(&env, "trace", "");
    if (hed_cli_settings(&config, &env, &why) != 0) {
        hed_cli_say("devices: %s", why.text);
        goto out;
    }
    if (hed_install_find(&install, &why) != 0) {
        hed_cli_say("devices: %s", why.text);
        code = HED_EXIT_FAILED;
        goto out;
    }

    const char *gpu = hed_install_gpu(&install, config.gpu, config.driver);

    look_for_driver(&config, gpu, &missing);
    /* The library's log tells why it cannot go on, unless we already know. */
    if (!missing.text[0] && config.log[0] == '\0' && !hed_env_get(&env, "HEDDLE_LOG"))
        hed_env_set_setting(&env, "log", "warn");
    /* The hints for NVIDIA's driver do not apply to the CPU GPU. */
    if (hed_config_gpu_is(gpu, "cpu"))
        hed_why_set(&missing, "The CPU GPU cannot be used this way; the log above says why.");
    code = list_devices(&install, gpu, env.vars, json, missing.text);
out:
    hed_env_fini(&env);
    return code;
}
