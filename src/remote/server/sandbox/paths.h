/* The paths that a worker uses after it has entered its sandbox: one list, from which its own root
 * is made (root.c) and which Landlock lets it open (files.c).
 */
#pragma once

#include "remote/server/sandbox/sandbox.h"

enum hed_path_use {
    HED_PATH_READ,   /* a file, or a folder with all that is in it */
    HED_PATH_WRITE,  /* read and write the files, but make and remove none */
    HED_PATH_DEVICE, /* read, write, and send commands */
};

/* Calls `visit` for each. Some of them may not exist. */
typedef void hed_path_visit(void *arg, const char *path, enum hed_path_use use);
void hed_paths_each(const struct hed_sandbox *s, hed_path_visit *visit, void *arg);
