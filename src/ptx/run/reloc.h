/* Relocations of the two machines: what a linker does to one place in the code.
 *
 * Only those that LLVM makes for position-independent code in the small model. Both machines are
 * here on every host, so that one machine's tests reach both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What the place wants to know of the symbol. */
enum hed_reloc_want {
    HED_RELOC_UNKNOWN, /* a relocation we do not do */
    HED_RELOC_ADDRESS, /* where it is */
    HED_RELOC_CALL,    /* the same; a jump to it will do */
    HED_RELOC_DATA,    /* the same; it is data */
    HED_RELOC_GOT,     /* where its address is stored */
    HED_RELOC_NOTHING, /* there is nothing to do */
};

/* machine: EM_AARCH64, EM_X86_64. *bytes is how many are changed. */
enum hed_reloc_want hed_reloc_want(unsigned machine, uint32_t type, unsigned *bytes);

/* Changes the bytes at `at`, which will run at address `place`, for the value s + a. HED_ERANGE:
 * too far, or not aligned as the instruction needs. */
int hed_reloc_apply(unsigned machine, uint32_t type, unsigned char *at, uint64_t place, uint64_t s,
                    int64_t a);

/* A jump to `target` from anywhere, HED_RELOC_JUMP bytes long. */
#define HED_RELOC_JUMP 16
void hed_reloc_jump(unsigned machine, unsigned char *at, uint64_t target);
