/* Code on the wire: images, what is in them, functions. See wire.h.
 *
 *   OPEN   LOAD    -> what is in it: struct hed_open_answer and the first of the contents; or
 *                  CUDA_ERROR_FILE_NOT_FOUND, and the client sends the image and asks again
 *          MORE    -> more contents         CLOSE: no answer
 *          GLOBAL, MANAGED -> address and size of a variable
 *          ATOMICS -> whether the code has system-wide atomics
 *          LINK    the first for a number creates a linker; images are added to it; after LAST the
 *                  contents are the linked image
 *   IMAGE  a piece of an image, with its bulk; no answer
 *   KERNEL makes a function of a kernel in a context, under the client's name for it (no answer);
 *          or describes a kernel; or forgets a function
 *
 * An image is identified by its hash (base/hash.h), so that it travels once, whichever client sends
 * it. The client chooses a small number for a library; a kernel is identified by its position in
 * the library.
 *
 * An image is a fat binary, machine code or PTX text, as a driver takes it; or a linked program
 * with its parts, for devices that the linked machine code is not for (struct hed_wire_linked).
 *
 * The contents of a library are descriptions of its kernels, without a gap: each is a struct
 * hed_wire_kernel, its parameters and its name. They are the bulk of the answer.
 */
#pragma once

#include <stdint.h>

#include "base/hash.h"
#include "remote/wire/wire.h"

#define HED_IMAGE_MAX (UINT64_C(1) << 30)    /* bytes */
#define HED_CODES_MAX 65536u                 /* libraries that are open at the same time */
#define HED_KERNELS_MAX (1u << 20)           /* in one library */
#define HED_CONTENTS_MAX (UINT64_C(1) << 28) /* bytes of one library's contents */
#define HED_PARAMS_MAX 32764u                /* bytes of a kernel's parameters */
#define HED_CODE_LOG_MAX 65536u              /* bytes of a compiler's log */
#define HED_CODE_NAME_MAX 32768u             /* of a variable, when it is asked for */

struct hed_image_body {
    struct hed_msg head; /* the bulk is a piece of the image */
    uint8_t hash[HED_HASH_SIZE];
    uint64_t size;   /* of the image */
    uint64_t offset; /* of the piece; pieces come in order */
};

/* The beginning of the image of a program that was linked from parts (-rdc=true). The driver links
 * it again, from the PTX or machine code of the parts. `count` sizes (uint64_t) follow, then
 * `count` fat binaries: the linked one, which may be empty, and its parts. Each begins at the next
 * multiple of HED_WIRE_LINKED_ALIGN from the beginning of the image. No image of another kind
 * begins with the first byte of the magic, and no text contains it. */
#define HED_WIRE_LINKED_MAGIC UINT32_C(0x4B4E4CF1)
#define HED_WIRE_LINKED_MAX 4097u /* fat binaries */
#define HED_WIRE_LINKED_ALIGN 16u
struct hed_wire_linked {
    uint32_t magic;
    uint32_t count;
};

enum hed_open_op {
    HED_OPEN_LOAD,
    HED_OPEN_MORE,
    HED_OPEN_CLOSE,
    HED_OPEN_GLOBAL, /* the name follows, with its NUL */
    HED_OPEN_MANAGED,
    HED_OPEN_LINK,
    HED_OPEN_ATOMICS /* since 1.1: answered with struct hed_atomics_answer */
};

enum hed_open_flag {
    HED_OPEN_NOW = 1, /* of LOAD: a module, which is compiled at once in the message's context */
    HED_OPEN_LAST = 2 /* of LINK: there is no more to add */
};

#define HED_JIT_OPTIONS_MAX 32u
struct hed_wire_jit { /* an option that is a plain number and is passed in */
    uint32_t option;  /* CUjit_option */
    uint32_t reserved;
    uint64_t value;
};

struct hed_open_body {
    struct hed_msg head;
    uint32_t op;                 /* enum hed_open_op */
    uint32_t code;               /* the library's number */
    int32_t device;              /* ordinal on the server, whose attributes are described */
    uint32_t log;                /* bytes of a log that the client wants */
    uint8_t hash[HED_HASH_SIZE]; /* of LOAD and LINK; no image if size is 0 */
    uint64_t size;
    uint64_t offset;  /* of MORE: offset in the contents */
    uint32_t flags;   /* enum hed_open_flag */
    uint32_t options; /* of LOAD and LINK: number of struct hed_wire_jit that follow */
    uint32_t type;    /* of LINK: CUjitInputType; the image's name follows the options */
    uint32_t reserved;
};

struct hed_open_answer { /* bulk: the first of the contents, or the log after a failure */
    struct hed_answer head;
    uint32_t kernels;
    uint32_t log;      /* bytes of the log, which comes first in the bulk */
    uint64_t contents; /* bytes of all contents */
};

struct hed_variable_answer {
    struct hed_answer head;
    uint64_t at, size;
};

struct hed_atomics_answer {
    struct hed_answer head;
    uint32_t system; /* the library has system-wide atomics */
    uint32_t reserved;
};

struct hed_kernel_body {
    struct hed_msg head; /* with WANTS_ANSWER: the answer's bulk is a description */
    uint64_t function;   /* the client's name for it in this context; 0 to only describe it */
    uint32_t code, index;
    int32_t device;
    uint32_t forget; /* forget the function */
};

#define HED_WIRE_FUNCTION_ATTRIBUTES 16 /* by CUfunction_attribute */
struct hed_wire_kernel {
    uint32_t size;      /* bytes of the description; a multiple of 8 */
    uint32_t name;      /* bytes of the name and its NUL, after the parameters; 0 if left out */
    uint32_t params;    /* number of struct hed_wire_param that follow */
    uint32_t described; /* attributes and params are filled in */
    int32_t attributes[HED_WIRE_FUNCTION_ATTRIBUTES];
    uint32_t required[3]; /* threads of a block (.reqntid); 0 if not given */
    uint32_t reserved;
};
struct hed_wire_param {
    uint32_t offset, size;
};
