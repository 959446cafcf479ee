/* What lifting reads of a cubin, beside the kernels' descriptions. */
#pragma once

#include "kernel/fatbin/elf.h"
#include "kernel/sass/lift.h"

#define LIFT_TURING 75 /* an architecture with encodings of its own */
#define LIFT_HOPPER 90 /* from here on: another bank 0, reserved shared memory, split distances */

/* What an address refers to. */
enum lift_referent {
    LIFT_NUMBER,   /* no relocation: plain bytes */
    LIFT_VARIABLE, /* program->vars[index] + addend */
    LIFT_FUNCTION, /* a function that the cubin does not have, by name; index is its symbol */
    LIFT_CODE,     /* byte `addend` of section `index`, which has code */
    LIFT_UNKNOWN,
};

/* How a relocation writes an address. */
enum lift_relocation {
    LIFT_WHOLE, /* eight bytes */
    LIFT_LOW,   /* the low word as the number of an instruction, or the high one */
    LIFT_HIGH,
    LIFT_CALL,  /* as the target of CALL.ABS */
    LIFT_OTHER, /* in a way that is not known here */
};

struct lift_address {
    enum lift_referent kind;
    enum lift_relocation how;
    uint32_t type; /* of the relocation */
    uint32_t section;
    uint64_t at; /* offset in the section */
    uint32_t index;
    int64_t addend;
    bool begins;    /* a function begins at this byte of code */
    bool is_kernel; /* the symbol is a kernel's */
    struct hed_bytes name;
};

/* A byte of code. */
struct lift_place {
    uint32_t section;
    uint64_t at;
};

/* The words of a constant bank that the cubin knows. */
struct lift_bank {
    struct hed_bytes bytes;
    const struct lift_address *addresses; /* by `at` */
    uint32_t count;
    uint32_t section;
    uint32_t var; /* of the program that holds it, or UINT32_MAX */
};

/* A section with code: the kernel's, or that of functions. */
struct lift_piece {
    uint32_t section;
    uint32_t base;         /* where it begins in the code, in bytes */
    uint32_t size;         /* bytes */
    uint64_t start;        /* where it begins in the cubin */
    struct hed_bytes info; /* .nv.info.<name> */
};

/* An instruction that names something whose address is not a number yet. */
struct lift_patch {
    uint32_t at; /* the instruction */
    struct lift_address to;
};

/* The code of a kernel and what belongs to it. */
struct lift_code {
    const struct hed_cubin_kernel *kernel;
    struct hed_bytes name;
    struct hed_bytes bytes;    /* whole instructions, of all pieces */
    uint8_t *linked;           /* owns them, if there is more to them than a section */
    struct lift_piece *pieces; /* the first one is the kernel's */
    uint32_t piece_count;
    struct lift_patch *patches; /* by place */
    uint32_t patch_count;
    uint32_t *piece_of; /* by section: 1 + piece, or 0 */
    uint32_t section_count;
    uint32_t *taken; /* functions whose addresses are known to variables: instructions */
    uint32_t taken_count;
    bool taken_left_out; /* such functions are too large: calls by address know none of them */
    struct lift_bank literals; /* bank 2 */
    struct lift_bank pool;     /* bank 4 */
    uint32_t constants;        /* bank 3: the variable, or UINT32_MAX */
};

struct lift_module {
    struct hed_elf_file elf;
    struct hed_elf_section symbols, strings;
    struct lift_address *addresses; /* of all variables, constants and code, by section and place */
    uint32_t address_count;
    struct lift_place *taken; /* functions whose addresses are known to variables or code */
    uint32_t taken_count;
    uint64_t taken_bytes;     /* of the sections that hold them */
    uint32_t *var_of_section; /* by section: 1 + variable, or 0 */
    uint32_t *managed;        /* by symbol: 1 + the managed variable that it is, or 0 */
    uint32_t constants;       /* bank 3: the variable, or UINT32_MAX */
};

/* The code of a kernel, or of a function that it calls. HED_ENOTFOUND if the cubin has no code of
 * that name, HED_ENOTSUP if it has to be linked first; HED_ENOMEM. hed_lift_code_fini() is called
 * in any case. */
int hed_lift_find_code(const struct hed_sass_program *p, uint32_t kernel,
                       const struct lift_place *function, struct lift_code *out,
                       struct hed_why *why);
void hed_lift_code_fini(struct lift_code *code);

/* Is the section's name the prefix and this name? */
bool hed_lift_is_named(const struct hed_elf_section *s, const char *prefix, struct hed_bytes name);

/* Orders symbols by their variable, place and size: for qsort() and searches. */
int hed_lift_compare_symbols(const void *a, const void *b);

/* ---- address.c ------------------------------------------------------------------------------- */

/* Reads all relocations, and notes pointers among variables. HED_EFORMAT, HED_ELIMIT. */
int hed_lift_read_addresses(struct hed_sass_program *p, struct hed_arena *arena,
                            struct hed_why *why);

/* Orders pointers by their variable and place. */
int hed_lift_compare_pointers(const void *a, const void *b);

/* The addresses in a section: sets count. */
const struct lift_address *hed_lift_addresses(const struct lift_module *m, uint32_t section,
                                              uint32_t *count);

/* The address at an offset of a bank; its kind is NUMBER if nothing is relocated there. */
struct lift_address hed_lift_address(const struct lift_bank *bank, uint64_t offset);

/* The number that stands for a byte of code, the same in all kernels of a cubin: where it lies in
 * the file, above LIFT_CODE_BASE. System functions have numbers below. */
#define LIFT_CODE_BASE 0x80000000u
#define LIFT_FUNCTION_NUMBER(symbol) ((symbol)*16 + 16)
uint32_t hed_lift_code_number(const struct lift_module *m, uint32_t section, uint64_t at);

/* ---- link.c ---------------------------------------------------------------------------------- */

/* Adds the functions that the code of a section calls, and fills in addresses. HED_ENOTSUP,
 * HED_ELIMIT, HED_ENOMEM. */
int hed_lift_link(const struct hed_sass_program *p, uint32_t section, struct lift_code *code,
                  struct hed_why *why);

/* The piece that a section is, or NULL. */
const struct lift_piece *hed_lift_piece_of_section(const struct lift_code *code, uint32_t section);
/* The piece that holds an instruction. */
const struct lift_piece *hed_lift_piece(const struct lift_code *code, uint32_t index);
/* The number that stands for an instruction. */
uint32_t hed_lift_place_number(const struct lift_code *code, uint32_t index);
/* What an instruction names; NULL if it names nothing. */
const struct lift_patch *hed_lift_patch(const struct lift_code *code, uint32_t index);
