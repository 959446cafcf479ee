/* Asks a CUDA or NVML library, heddle's or NVIDIA's, what it sees, in a child process with a time
 * limit.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/child.h"

#define HED_PROBE_SECONDS 20
#define HED_PROBE_DEVICES_MAX 256

struct hed_probe_device {
    char name[256];
    unsigned char uuid[16];
    int major, minor; /* compute capability */
    uint64_t memory;  /* bytes */
    char bus[32];     /* PCI: domain:bus:device.function */
};

/* Lies in memory shared with the child, which fills it in as far as it gets. */
struct hed_probe {
    /* The question. */
    char path[PATH_MAX];
    char *const *env;   /* the child's environment, or NULL for ours */
    const char *wanted; /* hed_probe_needs */
    bool listen;        /* keep what the library writes to standard error in `said` */
    int log;            /* that file; -1: none */

    /* The answers. */
    char step[64];        /* the last call that was begun: "cuInit", or "dlopen" */
    char error[512];      /* the loader's message if the library could not be opened, else "" */
    char found[PATH_MAX]; /* the file that was loaded; "" if that is not known */
    char said[1024];  /* the last line of it, without the log's own words; "" if there is none */
    int result;       /* of the first call that failed; 0 when all went well */
    int version;      /* cuDriverGetVersion: 13000 is 13.0; 0 if unknown */
    char release[96]; /* nvmlSystemGetDriverVersion: "580.65.06"; "" if unknown */
    char heddle[64];  /* heddle_version of the library: "" if it is not heddle's */
    int count;        /* devices there are; at most HED_PROBE_DEVICES_MAX are described */
    struct hed_probe_device devices[HED_PROBE_DEVICES_MAX];

    /* How it went. */
    enum hed_child_end end;
    int signal_number;
};

/* NULL when there is no memory. */
struct hed_probe *hed_probe_create(const char *path, char *const *env);
void hed_probe_free(struct hed_probe *p);

/* Loads the library and calls heddle_version, if it has that, but nothing else. */
void hed_probe_load(struct hed_probe *p);

/* Ask everything. */
void hed_probe_cuda(struct hed_probe *p);
void hed_probe_nvml(struct hed_probe *p);

/* Loads the library. `release` becomes the name of the library that was loaded with it and whose
 * name begins with `wanted`, or "". */
void hed_probe_needs(struct hed_probe *p, const char *wanted);

/* Did all calls succeed? */
bool hed_probe_ok(const struct hed_probe *p);

/* Explains the first failure ("cuInit: CUDA_ERROR_NO_DEVICE (100)"), and what to do about it. The
 * hint may be "". Only if hed_probe_ok is false.
 */
void hed_probe_explain(const struct hed_probe *p, char *text, size_t size, const char **hint);

/* The name of a result of the API that was asked, or NULL. */
const char *hed_probe_result_name(const struct hed_probe *p);
