/* The fat binary container: a header, then consecutive entries, each with one image (PTX text,
 * machine code, ...) for one architecture. docs/internals/fatbin.md describes the layout.
 *
 * Walking over a fat binary allocates nothing and unpacks nothing; the results point into the
 * bytes. Every length and offset in them is checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fatbin/arch.h"
#include "kernel/fatbin/bytes.h"

struct hed_arena;
struct hed_why;

#define HED_FATBIN_MAGIC UINT32_C(0xBA55ED50)
#define HED_FATBIN_WRAPPER_MAGIC UINT32_C(0x466243B1)
#define HED_FATBIN_WRAPPER_SIZE 24
#define HED_FATBIN_HEADER_SIZE 16
#define HED_FATBIN_ENTRY_SIZE 64 /* of an entry's header without its optional parts */

/* The known kinds; others exist and are skipped by their size. */
enum hed_fatbin_kind {
    HED_FATBIN_PTX = 1,
    HED_FATBIN_CUBIN = 2,
    HED_FATBIN_LTO = 8, /* compiler-internal code for optimisation at link time */
};

enum hed_fatbin_flag {
    HED_FATBIN_64BIT = 0x1,
    HED_FATBIN_DEBUG = 0x2,
    HED_FATBIN_CUDA = 0x4,
    HED_FATBIN_OPENCL = 0x8,
    HED_FATBIN_LINUX = 0x10,
    HED_FATBIN_MAC = 0x20,
    HED_FATBIN_WINDOWS = 0x40,
    HED_FATBIN_LZ4 = 0x2000,
    HED_FATBIN_ZSTD = 0x8000,
    HED_FATBIN_SEALED = 0x10000,       /* scrambled; on code for link-time optimisation */
    HED_FATBIN_ARCH_EXACT = 0x100000,  /* suffix "a" */
    HED_FATBIN_ARCH_FAMILY = 0x200000, /* suffix "f" */
    HED_FATBIN_COMPAT = 0x1000000,     /* compatibility records follow the options */
};

enum hed_fatbin_packing {
    HED_PACKING_NONE,
    HED_PACKING_LZ4,
    HED_PACKING_ZSTD,
    HED_PACKING_SEALED,  /* only NVIDIA's tools can read it */
    HED_PACKING_UNKNOWN, /* compressed in an unknown way */
};

struct hed_fatbin_entry {
    uint16_t kind;  /* enum hed_fatbin_kind, or another number */
    uint16_t major; /* of the PTX version or the cubin's ABI */
    uint16_t minor;
    struct hed_arch arch;
    uint64_t flags; /* enum hed_fatbin_flag */
    enum hed_fatbin_packing packing;
    struct hed_bytes stored;  /* the image as it is stored, packed or not */
    uint64_t size;            /* bytes after unpacking, as the entry claims */
    struct hed_bytes options; /* ptxas' command line; empty if there is none */
    bool has_options;        /* there are options, perhaps empty, with a NUL inside of the header */
    struct hed_bytes name;   /* the source file's name; empty if there is none */
    struct hed_bytes compat; /* records as in a cubin's .nv.compat; empty if there are none */
    size_t offset;           /* of the entry, from the start of the fat binary */
};

struct hed_fatbin_walk {
    struct hed_bytes bytes; /* the fat binary, cut to what its header says */
    size_t at;              /* the next entry */
    bool cut;               /* the header promised more bytes than there are */
};

/* Does a fat binary begin here? If so, *size is the size that its header claims, which may be more
 * than there are bytes. */
bool hed_fatbin_begins(struct hed_bytes b, uint64_t *size);

/* Starts a walk. HED_EFORMAT if this is not a fat binary, HED_EVERSION if its version is unknown,
 * HED_ETRUNC if its header is incomplete. */
int hed_fatbin_walk(struct hed_bytes b, struct hed_fatbin_walk *w, struct hed_why *why);

/* 1 and the next entry, 0 at the end, HED_EFORMAT or HED_ETRUNC at a damaged entry, where the walk
 * stays. */
int hed_fatbin_next(struct hed_fatbin_walk *w, struct hed_fatbin_entry *out, struct hed_why *why);

/* "ptx", "cubin", "lto", or NULL for a kind without a name. */
const char *hed_fatbin_kind_name(uint16_t kind);

/* "compute_90a", "sm_90", "lto_75": returns out, which has room for HED_ARCH_TEXT bytes. */
const char *hed_fatbin_arch_text(const struct hed_fatbin_entry *e, char *out);

/* ---- choose.c -------------------------------------------------------------------------------- */

enum hed_choose_flag {
    HED_CHOOSE_PTX_ONLY = 1,    /* no machine code: CUDA_FORCE_PTX_JIT, or a device without SASS */
    HED_CHOOSE_CUBIN_ONLY = 2,  /* no PTX: CUDA_DISABLE_PTX_JIT */
    HED_CHOOSE_NEWER_PTX = 4,   /* if nothing else fits, take the oldest PTX that is too new */
    HED_CHOOSE_64BIT_ONLY = 16, /* skip images for 32-bit programs */
};

struct hed_choose {
    uint32_t device;    /* 10 * major + minor of the compute capability */
    unsigned flags;     /* enum hed_choose_flag */
    uint32_t ptx_below; /* only PTX for older architectures than this; 0 for no limit. To try
                         * the next one if a kernel cannot be compiled. */
    /* If not NULL, machine code is taken only if this is true for it, and then also, if nothing
     * else fits, if the device would not run it. For devices that translate machine code. */
    bool (*takes_cubin)(struct hed_arch arch);
};

/* The image that a device would use: machine code that it runs, the newest and most specific first;
 * else the newest PTX that can be compiled for it. Among equals, the first. HED_ENOTFOUND if there
 * is none (`why` lists what there is); HED_E... if the fat binary is damaged and nothing before the
 * damage fits.
 */
int hed_fatbin_choose(struct hed_bytes fatbin, const struct hed_choose *how,
                      struct hed_fatbin_entry *out, struct hed_why *why);

/* Is all of it tied to architectures ("sm_100f", "sm_90a")? Libraries have such code beside other
 * code that does the same, and find out at run time which of it there is. */
bool hed_fatbin_is_tied(struct hed_bytes fatbin);

/* ---- unpack.c -------------------------------------------------------------------------------- */

/* Can this build unpack it? */
bool hed_fatbin_can_unpack(enum hed_fatbin_packing packing);
const char *hed_fatbin_packing_name(enum hed_fatbin_packing packing);

/* Unpacks the image into out[room]; *size is its size. PTX loses the NULs after its end. HED_ELIMIT
 * if it does not fit, HED_EFORMAT if it cannot be unpacked, HED_ENOTSUP if this build, or any,
 * cannot do it. */
int hed_fatbin_unpack(const struct hed_fatbin_entry *e, void *out, size_t room, size_t *size,
                      struct hed_why *why);

/* The image in place if it is not packed, else unpacked into the arena. HED_ELIMIT if that would
 * exceed the arena's ceiling. */
int hed_fatbin_image(const struct hed_fatbin_entry *e, struct hed_arena *arena,
                     struct hed_bytes *out, struct hed_why *why);
