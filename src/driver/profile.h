/* A device profile: everything that can be asked about a device without running anything on it.
 *
 * Profiles are JSON files (share/heddle/devices/NAME.json), which profile.c finds and
 * profile_read.c reads. The same struct answers cuDeviceGetAttribute and NVML, so that the two
 * agree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profiles.h"

struct hed_why;

#define HED_PROFILE_ATTRIBUTES 160 /* CUdevice_attribute numbers; 13.0 ends at 147 */
#define HED_PROFILE_DEVICES_MAX HED_PROFILES_MAX
#define HED_CLUSTERS_FROM 9 /* major compute capability of devices with clusters of blocks */

struct hed_profile {
    char name[96];                                              /* "NVIDIA H100 80GB HBM3" */
    char short_name[32];                                        /* the profile's own name: "h100" */
    int major, minor;                                           /* compute capability */
    uint64_t memory;                                            /* bytes */
    int attributes[HED_PROFILE_ATTRIBUTES];                     /* by CUdevice_attribute */
    uint64_t has_attribute[(HED_PROFILE_ATTRIBUTES + 63) / 64]; /* one bit per attribute; the
                                                                 * others are INVALID_VALUE */
    bool accepts_newer_ptx; /* accepts PTX for newer architectures than its own */

    /* NVML. */
    uint32_t pci_device_id, pci_subsystem_id; /* (device << 16) | vendor, as in NVML */
    char brand[16];                           /* "tesla", "geforce", "nvidia" */
    char architecture[16];                    /* "turing", "ampere", "ada", "hopper", "blackwell" */
    char vbios[32];
    uint32_t clock_graphics, clock_sm, clock_memory, clock_video;          /* MHz, the highest */
    uint32_t power_limit, power_idle;                                      /* mW */
    uint32_t temperature_idle, temperature_slowdown, temperature_shutdown; /* Celsius */
    uint32_t pcie_generation, pcie_width;
    uint32_t fans;
};

/* One visible device. */
/* NVML's handles are addresses of these: aligned like other handles (driver/handle.h). */
struct hed_profile_device {
    _Alignas(16) struct hed_profile profile;
    uint8_t uuid[16];
    int pci_domain, pci_bus, pci_slot;
    uint32_t index; /* among all devices of the computer, before CUDA_VISIBLE_DEVICES */
};

/* The devices that a `gpu` setting stands for: "cpu", "cpu:h100", "cpu:h100x8", "cpu:/path/p.json",
 * "cpu:a100-80gx2,t4". UUIDs and PCI ids are derived from profile name and index, so they are the
 * same in every process. HED_ENOTFOUND, HED_EFORMAT or HED_ELIMIT with the reason. */
int hed_profile_devices(const char *setting, struct hed_profile_device *out, size_t room,
                        size_t *count, struct hed_why *why);

/* Keeps the devices that CUDA_VISIBLE_DEVICES (NULL: not set) names, in its order. Entries are
 * indices or prefixes of "GPU-uuid"; as on CUDA the first entry that names no device ends the list.
 * Returns the new count. */
size_t hed_profile_visible(struct hed_profile_device *devices, size_t count, const char *visible);

/* ---- the files ------------------------------------------------------------------------------- */

#define HED_PROFILE_FILE_MAX 1048576 /* bytes */
#define HED_PROFILE_BASES_MAX 8      /* files that are based on one another */

/* Loads the profile that "base" names into *p. */
typedef int (*hed_profile_base_fn)(void *arg, const char *base, struct hed_profile *p,
                                   struct hed_why *why);

/* Reads the text of a profile (docs/internals/profiles.md): first its base is loaded into *p, then
 * its own keys. `label` is put in front of reasons. HED_EFORMAT; HED_ENOTSUP: built without a JSON
 * reader. */
int hed_profile_parse(struct hed_profile *p, const char *text, size_t size, const char *label,
                      hed_profile_base_fn base, void *arg, struct hed_why *why);

/* Checks that the profile describes a device, and derives missing values from other fields.
 * HED_EFORMAT, with the field that is missing or makes no sense. */
int hed_profile_check(struct hed_profile *p, const char *label, struct hed_why *why);

/* "GPU-" and 8-4-4-4-12 hexadecimal digits. */
#define HED_PROFILE_UUID_TEXT 41
void hed_profile_uuid_text(const uint8_t uuid[16], char out[HED_PROFILE_UUID_TEXT]);

static inline bool
hed_profile_has(const struct hed_profile *p, unsigned attribute)
{
    return attribute < HED_PROFILE_ATTRIBUTES &&
           (p->has_attribute[attribute / 64] >> attribute % 64 & 1) != 0;
}
