/* Device profiles by name: where their files are and how the setting `gpu` names them, such as
 * "cpu:h100x8,t4" or "cpu:/path/mine.json". The settings use it to refuse a wrong name before
 * anything runs, and the soft driver to find the files, which driver/profile.h reads.
 */
#pragma once

#include <stddef.h>

#include "core/export.h"

struct hed_why;

#define HED_PROFILES_MAX 64            /* devices that one setting may ask for */
#define HED_PROFILES_GENERIC "generic" /* the profile that plain "cpu" means */

/* The folder of heddle's own profiles: ../share/heddle/devices from the command,
 * ../../share/heddle/devices from the libraries, else where heddle was installed. HED_ENOTFOUND,
 * HED_ELIMIT. */
HED_EXPORT int hed_profiles_folder(char *out, size_t size);

/* The file of a profile's name in a folder, whether it exists or not. HED_EINVAL: that is no name,
 * HED_ELIMIT. */
HED_EXPORT int hed_profiles_file(const char *folder, const char *name, char *path, size_t size,
                                 struct hed_why *why);

/* The file of one item of the list, and how many devices the item asks for: NAME, NAMExN, PATH or
 * PATHxN. A name that exists counts as it stands: rtx4090. `folder` is that of hed_profiles_folder.
 * HED_ENOTFOUND, HED_EINVAL, HED_ELIMIT; the reason lists the names that exist. */
HED_EXPORT int hed_profiles_find(const char *folder, const char *item, char *path, size_t size,
                                 unsigned *count, struct hed_why *why);

/* Calls fn for each item of the list in a setting "cpu:ITEM[,ITEM...]", until it fails. Plain "cpu"
 * (and "auto", where that means the CPU) has one item, HED_PROFILES_GENERIC. HED_EINVAL: an item is
 * empty or too long. */
typedef int (*hed_profiles_item_fn)(void *arg, const char *item, struct hed_why *why);
HED_EXPORT int hed_profiles_each(const char *setting, hed_profiles_item_fn fn, void *arg,
                                 struct hed_why *why);

/* Does every item of the setting name a file, and are the devices not too many? Always true where
 * the folder of profiles is not found. */
int hed_profiles_check(const char *setting, struct hed_why *why);
