/* The questions, asked in the child. See probe.h. What they mean is in explain.c. */
#include "cli/probe.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/meeting.h"
#include "core/config.h"
#include "gen/cuda_abi.h"
#include "gen/nvml_abi.h"
#include "move/move.h"

struct hed_probe *
hed_probe_create(const char *path, char *const *env)
{
    struct hed_probe *p = hed_child_shared(sizeof *p);

    if (p) {
        snprintf(p->path, sizeof p->path, "%s", path);
        p->env = env;
    }
    return p;
}

void
hed_probe_free(struct hed_probe *p)
{
    hed_child_shared_free(p, sizeof *p);
}

/* ---- in the child ---------------------------------------------------------------------------- */

static void
begin_step(struct hed_probe *p, const char *what)
{
    snprintf(p->step, sizeof p->step, "%s", what);
}

/* NULL when it cannot be opened; the reason is then in p->error. */
static void *
load_probed_library(struct hed_probe *p)
{
    if (p->env)
        environ = (char **)p->env;
    if (p->log >= 0)
        (void)dup2(p->log, STDERR_FILENO);
    begin_step(p, "dlopen");

    void *library = dlopen(p->path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        const char *text = dlerror();

        snprintf(p->error, sizeof p->error, "%s", text ? text : "cannot be loaded");
        return NULL;
    }

    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
        snprintf(p->found, sizeof p->found, "%s", map->l_name);

    /* ISO C has no conversion between objects and functions; POSIX has. */
    const char *(*version)(void);

    *(void **)&version = dlsym(library, "heddle_version");
    if (version)
        snprintf(p->heddle, sizeof p->heddle, "%s", version());
    return library;
}

static void
load_library(void *arg)
{
    load_probed_library(arg);
}

static int
note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct hed_probe *p = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;

    if (strncmp(name, p->wanted, strlen(p->wanted)) != 0)
        return 0;
    snprintf(p->release, sizeof p->release, "%s", name);
    return 1;
}

static void
load_and_look(void *arg)
{
    if (load_probed_library(arg))
        (void)dl_iterate_phdr(note_library, arg);
}

/* Finds a function and begins the step of that name. NULL if it is missing, with p->error set. */
static void *
find_function(struct hed_probe *p, void *library, const char *name)
{
    void *f = dlsym(library, name);

    begin_step(p, name);
    if (!f)
        snprintf(p->error, sizeof p->error, "it has no function %s", name);
    return f;
}

/* Calls `name` of the library with a prototype; true if that worked. */
#define ASK(p, library, name, prototype, ...)                 \
    ({                                                        \
        int(*f_) prototype;                                   \
                                                              \
        *(void **)&f_ = find_function(p, library, name);      \
        (f_ && ((p)->result = f_(__VA_ARGS__)) == 0 ? 1 : 0); \
    })

static bool
ask_device(struct hed_probe *p, void *library, int i)
{
    struct hed_probe_device *d = &p->devices[i];
    CUdevice device = 0;
    size_t memory = 0;

    if (!ASK(p, library, "cuDeviceGet", (CUdevice *, int), &device, i) ||
        !ASK(p, library, "cuDeviceGetName", (char *, int, CUdevice), d->name,
             (int)sizeof d->name - 1, device) ||
        !ASK(p, library, "cuDeviceTotalMem_v2", (size_t *, CUdevice), &memory, device))
        return false;
    d->memory = memory;
    return ASK(p, library, "cuDeviceGetUuid", (CUuuid *, CUdevice), (CUuuid *)d->uuid, device) &&
           ASK(p, library, "cuDeviceGetAttribute", (int *, CUdevice_attribute, CUdevice), &d->major,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) &&
           ASK(p, library, "cuDeviceGetAttribute", (int *, CUdevice_attribute, CUdevice), &d->minor,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) &&
           ASK(p, library, "cuDeviceGetPCIBusId", (char *, int, CUdevice), d->bus,
               (int)sizeof d->bus - 1, device);
}

static void
ask_cuda(void *arg)
{
    struct hed_probe *p = arg;
    void *library = load_probed_library(p);

    /* The version first: it is known even where cuInit fails. */
    if (!library || !ASK(p, library, "cuDriverGetVersion", (int *), &p->version) ||
        !ASK(p, library, "cuInit", (unsigned), 0) ||
        !ASK(p, library, "cuDeviceGetCount", (int *), &p->count))
        return;
    for (int i = 0; i < p->count && i < HED_PROBE_DEVICES_MAX; i++) {
        if (!ask_device(p, library, i))
            return;
    }
}

static void
ask_nvml(void *arg)
{
    struct hed_probe *p = arg;
    void *library = load_probed_library(p);
    unsigned count = 0;

    if (library && ASK(p, library, "nvmlInit_v2", (void)) &&
        ASK(p, library, "nvmlSystemGetDriverVersion", (char *, unsigned), p->release,
            (unsigned)sizeof p->release - 1) &&
        ASK(p, library, "nvmlDeviceGetCount_v2", (unsigned *), &count))
        p->count = (int)count;
}

/* ---- in the parent --------------------------------------------------------------------------- */

/* The last line of the file, from "heddle[1] error core: " on. */
static void
take_words(struct hed_probe *p, int fd)
{
    char text[4096];
    const off_t size = lseek(fd, 0, SEEK_END);
    const off_t from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
    const ssize_t n = size > 0 ? pread(fd, text, sizeof text - 1, from) : 0;

    text[n > 0 ? n : 0] = '\0';
    for (char *end = text + strlen(text); end > text && end[-1] == '\n'; end--)
        end[-1] = '\0';

    const char *newline = strrchr(text, '\n');
    const char *line = newline ? newline + 1 : text;
    const char *words = strncmp(line, "heddle[", 7) == 0 ? strstr(line, ": ") : NULL;

    snprintf(p->said, sizeof p->said, "%s", words ? words + 2 : line);
}

struct asking {
    struct hed_probe *probe;
    void (*questions)(void *arg);
};

/* The child ends without the library's handlers, which would remove its socket. */
static void
ask_and_leave(void *arg)
{
    static struct hed_config config; /* large */
    const struct asking *a = arg;

    a->questions(a->probe);
    if (hed_config_load(&config, environ, NULL) == 0)
        hed_meeting_choose(config.meet_dir);
    hed_talk_forget_own();
}

static void
ask_in_child(struct hed_probe *p, void (*questions)(void *arg))
{
    struct asking a = {p, questions};

    p->log = p->listen ? memfd_create("heddle-probe", MFD_CLOEXEC) : -1;
    p->end = hed_child_run(ask_and_leave, &a, HED_PROBE_SECONDS, &p->signal_number);
    if (p->log >= 0) {
        take_words(p, p->log);
        (void)close(p->log);
    }

    /* The library could write anything into the memory it shared with us. */
    p->step[sizeof p->step - 1] = '\0';
    p->error[sizeof p->error - 1] = '\0';
    p->found[sizeof p->found - 1] = '\0';
    p->release[sizeof p->release - 1] = '\0';
    p->heddle[sizeof p->heddle - 1] = '\0';
    if (p->count < 0)
        p->count = 0;
    for (size_t i = 0; i < HED_PROBE_DEVICES_MAX; i++) {
        p->devices[i].name[sizeof p->devices[i].name - 1] = '\0';
        p->devices[i].bus[sizeof p->devices[i].bus - 1] = '\0';
    }
}

void
hed_probe_load(struct hed_probe *p)
{
    ask_in_child(p, load_library);
}

void
hed_probe_needs(struct hed_probe *p, const char *wanted)
{
    p->wanted = wanted;
    ask_in_child(p, load_and_look);
}

void
hed_probe_cuda(struct hed_probe *p)
{
    ask_in_child(p, ask_cuda);
}

void
hed_probe_nvml(struct hed_probe *p)
{
    ask_in_child(p, ask_nvml);
}

bool
hed_probe_ok(const struct hed_probe *p)
{
    return p->end == HED_CHILD_DONE && p->result == 0 && p->error[0] == '\0';
}
