/* heddle doctor: the list of findings, and the checks that add to it. doctor.c prints it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/config.h"

enum hed_finding_level { HED_FINDING_OK, HED_FINDING_WARN, HED_FINDING_FAIL };

struct hed_finding {
    enum hed_finding_level level;
    char name[24];   /* what was checked */
    char text[1024]; /* what was found */
    char hint[512];  /* what to do about it; "" if nothing */
};

#define HED_FINDINGS_MAX 64

struct hed_doctor {
    struct hed_finding findings[HED_FINDINGS_MAX];
    size_t count;

    struct hed_config config; /* the settings in force; the defaults if they are not valid */
    bool has_cpu;             /* the CPU GPU can be used */
    bool has_host;            /* programs can use the GPUs of this guest's host */
};

/* Adds a finding without a hint. Findings after HED_FINDINGS_MAX are left out. */
void hed_doctor_say(struct hed_doctor *d, enum hed_finding_level level, const char *name,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Sets the hint of the finding added last. */
void hed_doctor_hint(struct hed_doctor *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The checks, in the order in which they are shown. */
void hed_doctor_heddle(struct hed_doctor *d); /* libraries and settings; fills in config */
void hed_doctor_loader(struct hed_doctor *d); /* LD_LIBRARY_PATH, LD_PRELOAD, LD_AUDIT */
void hed_doctor_cudart(struct hed_doctor *d); /* which CUDA runtime programs get */
void hed_doctor_cpu(struct hed_doctor *d);    /* the CPU GPU; fills in has_cpu */
void hed_doctor_server(struct hed_doctor *d); /* where the setting `gpu` is an address */
void hed_doctor_guest(struct hed_doctor *d);  /* is this a QEMU guest? fills in has_host */
void hed_doctor_driver(struct hed_doctor *d); /* NVIDIA's driver and the devices */
void hed_doctor_system(struct hed_doctor *d); /* kernel, libc, shared memory, folders */
void hed_doctor_share(struct hed_doctor *d);  /* do --sched and --inject work? */
void hed_doctor_criu(struct hed_doctor *d);   /* can programs be saved? */
