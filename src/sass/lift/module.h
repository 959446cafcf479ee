/* What lifting reads of a cubin, beside the kernels' descriptions. */
#pragma once

#include "fatbin/elf.h"
#include "sass/lift.h"

/* What an address in constant bank 4 refers to. */
enum lift_referent {
    LIFT_NUMBER,   /* no relocation: plain bytes */
    LIFT_VARIABLE, /* program->vars[index] + addend */
    LIFT_FUNCTION, /* an undefined function, by name; index is its position among those */
    LIFT_UNKNOWN,  /* something else: a function of the module */
};

struct lift_address {
    enum lift_referent kind;
    uint32_t section;
    uint64_t at; /* offset in the section */
    uint32_t index;
    int64_t addend;
    struct hed_bytes name;
};

/* The words of a constant bank that the cubin knows. */
struct lift_bank {
    struct hed_bytes bytes;
    const struct lift_address *addresses; /* by `at` */
    uint32_t count;
    uint32_t section;
    uint32_t var; /* of the program that holds it, or UINT32_MAX */
};

/* The code of a kernel and what belongs to it. */
struct lift_code {
    const struct hed_cubin_kernel *kernel;
    struct hed_bytes name;
    struct hed_bytes bytes;    /* whole instructions */
    uint32_t section;          /* that has them */
    struct hed_bytes info;     /* .nv.info.<kernel> */
    struct lift_bank literals; /* bank 2 */
    struct lift_bank pool;     /* bank 4 */
    uint32_t constants;        /* bank 3: the variable, or UINT32_MAX */
};

struct lift_module {
    struct hed_elf_file elf;
    struct hed_elf_section symbols, strings;
    struct lift_address *addresses; /* of all sections with constants, by section and place */
    uint32_t address_count;
    uint32_t *var_of_section; /* by section: 1 + variable, or 0 */
    uint32_t *managed;        /* by symbol: 1 + the managed variable that it is, or 0 */
    uint32_t constants;       /* bank 3: the variable, or UINT32_MAX */
};

/* HED_ENOTFOUND if the cubin has no code of that name, HED_ENOTSUP if it has to be linked first. */
int hed_lift_find_code(const struct hed_sass_program *p, uint32_t kernel, struct lift_code *out,
                       struct hed_why *why);

/* The instructions at which functions of the code begin: sets count, and returns them in memory
 * that the caller frees. NULL if there is no memory. */
uint32_t *hed_lift_functions(const struct hed_sass_program *p, const struct lift_code *code,
                             uint32_t *count);

/* The address at an offset of a bank; its kind is NUMBER if nothing is relocated there. */
struct lift_address hed_lift_address(const struct lift_bank *bank, uint64_t offset);
