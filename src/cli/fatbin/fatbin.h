/* heddle fatbin: what its subcommands share. The images of a file are numbered from 1, in the order
 * of the file, whether they are selected or not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/fatbin.h"

struct hed_arena;
struct hed_buf;
struct hed_cli_opts;
struct hed_cubin_kernel;

int hed_cli_fatbin(int argc, char **argv);
int hed_cli_fatbin_list(int argc, char **argv);
int hed_cli_fatbin_extract(int argc, char **argv);
int hed_cli_fatbin_info(int argc, char **argv);
int hed_cli_fatbin_disasm(int argc, char **argv);
int hed_cli_fatbin_lift(int argc, char **argv);

#define HED_CLI_IMAGE_MAX ((size_t)4 << 30) /* bytes of one image, unpacked */

/* One image of a file. A cubin or PTX file is one image, as if it were alone in a fat binary. */
struct hed_cli_image {
    const char *path;
    const struct hed_found *found;
    struct hed_fatbin_entry entry;
    uint64_t number; /* from 1, in the file */
    uint64_t fatbin; /* number of the fat binary; 0 outside of one */
};

struct hed_cli_select {
    uint16_t kind; /* 0 for all */
    struct hed_arch arch;
    const char *arch_prefix; /* "sm_", "compute_", "lto_", ""; NULL for all architectures */
    uint64_t number;         /* 0 for all */
    unsigned find;           /* enum hed_find_flag */
};

/* The result of visiting a file. */
struct hed_cli_visit {
    int code;               /* HED_EXIT_...; the reason of a failure was printed */
    uint64_t images;        /* all images, selected or not */
    uint64_t selected;      /* the images that fn was called with */
    uint64_t fatbins;       /* fat binaries */
    uint64_t wrappers[3];   /* as in struct hed_find */
    struct hed_bytes bytes; /* of the file; valid only in fn, except for its size */
};

/* Calls fn with every selected image of the file. If fn returns false, the visit ends and fails. */
typedef bool (*hed_cli_image_fn)(void *arg, const struct hed_cli_image *image);
struct hed_cli_visit hed_cli_fatbin_visit(const char *path, const struct hed_cli_select *select,
                                          hed_cli_image_fn fn, void *arg);

/* What the options of a subcommand ask for; each subcommand has some of these options. */
struct hed_asked {
    struct hed_cli_select select; /* --kind, --arch, --entry, --sections */
    const char *dir;              /* --output */
    const char *kernel;           /* --kernel */
    bool kernels, json, count, module;
};

/* Reads all words. Returns the number of operands, which are put into files (argv has enough room).
 * Returns -1 - the exit code after --help, which prints usage, and after an error. */
int hed_cli_fatbin_words(struct hed_cli_opts *o, const char *usage, struct hed_asked *asked,
                         char **files);

/* Is that the kernel that was asked for, or was none? */
bool hed_cli_fatbin_wants(const struct hed_asked *asked, struct hed_bytes kernel);

/* "ptx", "cubin", "lto" or "kind 64", into out[16], which is returned. */
const char *hed_cli_fatbin_kind_text(uint16_t kind, char *out);

/* Prints text of a file with its control characters replaced. */
void hed_cli_fatbin_print(FILE *out, struct hed_bytes text);

/* "key":"value" */
void hed_cli_fatbin_json(struct hed_buf *b, const char *key, struct hed_bytes value);
void hed_cli_fatbin_json_text(struct hed_buf *b, const char *key, const char *value);
