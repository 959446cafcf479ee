/* The doctor checks NVIDIA's driver: the hardware, the kernel module, the device files, the
 * libraries, and whether they answer. It looks for the libraries where the gpu backend does.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/probe.h"
#include "locate/driver.h"

/* What is there of a GPU, apart from libraries. */
struct hardware {
    unsigned cards;   /* NVIDIA display controllers on the PCI bus */
    unsigned nodes;   /* /dev/nvidia0, 1, ... */
    bool wsl;         /* Windows' GPU device */
    bool module;      /* the kernel module is loaded */
    char release[64]; /* its version; "" if unknown */
};

/* The first line of a file, without its newline; false if there is none. */
static bool
read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    const bool got = f && fgets(line, (int)size, f);

    if (f)
        fclose(f);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

static unsigned
count_cards(void)
{
    DIR *dir = opendir("/sys/bus/pci/devices");
    unsigned count = 0;

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char path[512], vendor[32], class[32];

        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", e->d_name);
        if (!read_line(path, vendor, sizeof vendor) || strcmp(vendor, "0x10de") != 0)
            continue;
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", e->d_name);
        /* 03xxxx: display controllers; a card's sound and USB parts are devices of their own. */
        if (read_line(path, class, sizeof class) && strncmp(class, "0x03", 4) == 0)
            count++;
    }
    if (dir)
        closedir(dir);
    return count;
}

static bool
is_number(const char *s)
{
    return s[0] && s[strspn(s, "0123456789")] == '\0';
}

static unsigned
count_nodes(void)
{
    DIR *dir = opendir("/dev");
    unsigned count = 0;

    for (const struct dirent *e; dir && (e = readdir(dir));)
        count += strncmp(e->d_name, "nvidia", 6) == 0 && is_number(e->d_name + 6);
    if (dir)
        closedir(dir);
    return count;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ...": the first word that is a
 * version.
 */
static void
find_release(const char *line, char *out, size_t size)
{
    for (const char *p = line; *p; p += strspn(p, " \t")) {
        const size_t n = strcspn(p, " \t");

        if (n > 3 && strspn(p, "0123456789.") == n && memchr(p, '.', n)) {
            snprintf(out, size, "%.*s", (int)n, p);
            return;
        }
        p += n;
    }
}

static void
look_at_hardware(struct hardware *h)
{
    char line[512];

    *h = (struct hardware){.cards = count_cards(), .nodes = count_nodes()};
    h->wsl = access("/dev/dxg", F_OK) == 0;
    h->module = read_line("/proc/driver/nvidia/version", line, sizeof line);
    if (h->module)
        find_release(line, h->release, sizeof h->release);
}

static bool
has_gpu(const struct hardware *h)
{
    return h->cards || h->nodes || h->wsl || h->module;
}

/* ---- module and device files ----------------------------------------------------------------- */

static void
check_module(struct hed_doctor *d, const struct hardware *h)
{
    if (h->wsl) {
        hed_doctor_say(d, HED_FINDING_OK, "GPU", "through Windows (/dev/dxg)");
    } else if (h->module) {
        hed_doctor_say(d, HED_FINDING_OK, "GPU", "kernel module %s is loaded",
                       h->release[0] ? h->release : "(version unknown)");
    } else if (h->cards) {
        hed_doctor_say(d, HED_FINDING_FAIL, "GPU",
                       "%u NVIDIA GPU%s found, but the kernel module is not loaded", h->cards,
                       h->cards == 1 ? "" : "s");
        hed_doctor_hint(d, "Install NVIDIA's driver, or load its module: modprobe nvidia");
    } else if (hed_config_gpu_is_address(d->config.gpu)) {
        hed_doctor_say(d, HED_FINDING_OK, "GPU", "no GPU here; programs use the server's GPUs");
    } else if (strcmp(d->config.gpu, "auto") == 0 && d->has_host) {
        hed_doctor_say(d, HED_FINDING_OK, "GPU", "no GPU here; programs use the host's GPUs");
    } else if (d->has_cpu) {
        hed_doctor_say(d, HED_FINDING_OK, "GPU", "no GPU here; programs run on the CPU");
    } else {
        hed_doctor_say(d, HED_FINDING_WARN, "GPU", "no GPU here");
        hed_doctor_hint(d, "Programs will find no device. `heddle run --gpu null` answers their "
                           "calls but computes nothing.");
    }
}

static void
check_node(struct hed_doctor *d, const char *path, const char *missing)
{
    if (access(path, F_OK) != 0) {
        hed_doctor_say(d, HED_FINDING_WARN, "device files", "%s is missing", path);
        hed_doctor_hint(d, "%s", missing);
    } else if (access(path, R_OK | W_OK) != 0) {
        hed_doctor_say(d, HED_FINDING_FAIL, "device files", "you cannot read and write %s", path);
        hed_doctor_hint(d, "Check its owner and group with ls -l. Joining the group `video` or "
                           "`render` often helps.");
    }
}

static void
check_nodes(struct hed_doctor *d, const struct hardware *h)
{
    const size_t before = d->count;

    if (!h->module || h->wsl)
        return;
    if (h->nodes == 0) {
        hed_doctor_say(d, HED_FINDING_FAIL, "device files", "there is no /dev/nvidia0");
        hed_doctor_hint(d,
                        "A container must be given the GPU (docker run --gpus all). Otherwise run "
                        "nvidia-smi once as root, which creates the files.");
        return;
    }
    check_node(d, "/dev/nvidiactl", "Run nvidia-smi once as root, which creates it.");
    check_node(d, "/dev/nvidia-uvm", "Run `nvidia-modprobe -u -c=0` as root, which creates it.");
    /* In a container the numbers can have gaps: its only GPU may be number 5 of eight. */
    for (unsigned i = 0; i < 64; i++) {
        char path[32];

        snprintf(path, sizeof path, "/dev/nvidia%u", i);
        if (access(path, F_OK) == 0)
            check_node(d, path, "");
    }
    if (d->count == before)
        hed_doctor_say(d, HED_FINDING_OK, "device files", "%u GPU%s, readable and writable",
                       h->nodes, h->nodes == 1 ? "" : "s");
}

/* ---- the libraries --------------------------------------------------------------------------- */

/* The search for one library. */
struct search {
    char path[PATH_MAX]; /* the first suitable file; "" while there is none */
    const char *from;    /* where it was found */
    char refused[512];   /* the last unsuitable file, and the reason; or "" */
};

static bool
consider_library(void *arg, const char *path, const char *from)
{
    struct search *s = arg;
    const char *reason = hed_locate_reject(path);

    if (reason) {
        snprintf(s->refused, sizeof s->refused, "%.400s: %s", path, reason);
        return false;
    }
    snprintf(s->path, sizeof s->path, "%s", path);
    s->from = from;
    return true;
}

/* Finds a library of NVIDIA's, or reports that there is none and returns false. `key` is the
 * setting that can name it, `given` that setting's value. */
static bool
locate_library(struct hed_doctor *d, const struct hardware *h, const char *name, const char *soname,
               const char *key, const char *given, struct search *s)
{
    /* Where there is no GPU, there should be no library. */
    const enum hed_finding_level level = has_gpu(h) ? HED_FINDING_FAIL
                                         : d->has_cpu || hed_config_gpu_is_address(d->config.gpu)
                                             ? HED_FINDING_OK
                                             : HED_FINDING_WARN;

    if (given[0]) {
        const char *reason = access(given, F_OK) != 0 ? "does not exist" : hed_locate_reject(given);

        *s = (struct search){.from = "setting"};
        snprintf(s->path, sizeof s->path, "%s", given);
        if (reason) {
            hed_doctor_say(d, HED_FINDING_FAIL, name, "the setting `%s` is %s, which %s", key,
                           given, reason);
            hed_doctor_hint(d, "Correct the setting, or remove it so that heddle looks for the "
                               "driver.");
        }
        return !reason;
    }
    *s = (struct search){.from = ""};
    hed_locate_each(soname, consider_library, s);
    if (s->path[0])
        return true;
    if (s->refused[0]) {
        hed_doctor_say(d, level, name, "NVIDIA's %s was not found; %s", soname, s->refused);
        hed_doctor_hint(d, "If it is elsewhere, set `%s` to its full path.", key);
    } else {
        hed_doctor_say(d, level, name,
                       "%s is neither in the loader's cache nor in the usual folders", soname);
        if (has_gpu(h))
            hed_doctor_hint(d,
                            "Install NVIDIA's driver. A container must be given the driver (docker "
                            "run --gpus all).");
    }
    return false;
}

/* A driver without a GPU, as in an image that was made for another machine, is only a warning. */
static void
report_failure(struct hed_doctor *d, const struct hardware *h, const char *name,
               const struct hed_probe *p)
{
    const char *hint;
    char text[640];

    hed_probe_explain(p, text, sizeof text, &hint);
    hed_doctor_say(d, has_gpu(h) ? HED_FINDING_FAIL : HED_FINDING_WARN, name, "%s: %s", p->path,
                   text);
    hed_doctor_hint(d, "%s", has_gpu(h) ? hint : "There is no GPU for it here.");
}

static void
check_cuda(struct hed_doctor *d, const struct hardware *h)
{
    struct search s;

    if (!locate_library(d, h, "driver", "libcuda.so.1", "driver", d->config.driver, &s))
        return;

    struct hed_probe *p = hed_probe_create(s.path, NULL);

    if (!p)
        return;
    hed_probe_cuda(p);
    if (hed_probe_ok(p) && p->count > 0)
        hed_doctor_say(d, HED_FINDING_OK, "driver", "CUDA %d.%d, %d device%s: %s (%s)",
                       p->version / 1000, p->version % 1000 / 10, p->count,
                       p->count == 1 ? "" : "s", s.path, s.from);
    else if (hed_probe_ok(p)) {
        hed_doctor_say(d, HED_FINDING_WARN, "driver", "%s works, but shows no device", s.path);
        hed_doctor_hint(d, "Check CUDA_VISIBLE_DEVICES.");
    } else
        report_failure(d, h, "driver", p);
    hed_probe_free(p);
}

static void
check_nvml(struct hed_doctor *d, const struct hardware *h)
{
    struct search s;

    if (!locate_library(d, h, "NVML", "libnvidia-ml.so.1", "nvml", d->config.nvml, &s))
        return;

    struct hed_probe *p = hed_probe_create(s.path, NULL);

    if (!p)
        return;
    hed_probe_nvml(p);
    if (!hed_probe_ok(p)) {
        report_failure(d, h, "NVML", p);
    } else if (h->release[0] && strcmp(h->release, p->release) != 0) {
        hed_doctor_say(d, HED_FINDING_WARN, "NVML",
                       "the library is %s, but the kernel module "
                       "is %s",
                       p->release, h->release);
        hed_doctor_hint(d, "Restart the machine, as after every update of the driver.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "NVML", "driver %s, %d device%s: %s (%s)", p->release,
                       p->count, p->count == 1 ? "" : "s", s.path, s.from);
    }
    hed_probe_free(p);
}

static void
check_visible(struct hed_doctor *d)
{
    const char *v = getenv("CUDA_VISIBLE_DEVICES");

    if (!v)
        return;
    if (v[0] == '\0' || v[0] == '-') {
        hed_doctor_say(d, HED_FINDING_WARN, "visibility",
                       "CUDA_VISIBLE_DEVICES='%s' hides all devices from programs", v);
        hed_doctor_hint(d, "Unset it to let programs see them.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "visibility", "CUDA_VISIBLE_DEVICES=%s", v);
    }
}

void
hed_doctor_driver(struct hed_doctor *d)
{
    struct hardware h;

    look_at_hardware(&h);
    check_module(d, &h);
    check_nodes(d, &h);
    check_cuda(d, &h);
    check_nvml(d, &h);
    check_visible(d);
}
