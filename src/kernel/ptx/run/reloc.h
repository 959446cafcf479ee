/* Relocations of the two machines: what a linker does to one place in the code.
 *
 * Only those that LLVM emits for position-independent code in the small model. Both machines are
 * compiled on every host, so that tests on one machine cover both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a relocation needs to know about the symbol. */
enum hed_reloc_want {
    HED_RELOC_UNKNOWN, /* a relocation that we do not know */
    HED_RELOC_ADDRESS, /* its address */
    HED_RELOC_CALL,    /* its address, or that of a jump to it */
    HED_RELOC_DATA,    /* its address; the symbol is data */
    HED_RELOC_GOT,     /* the address of the word that holds its address */
    HED_RELOC_NOTHING, /* there is nothing to do */
};

/* machine is EM_AARCH64 or EM_X86_64. *bytes is the number of bytes that change. */
enum hed_reloc_want hed_reloc_want(unsigned machine, uint32_t type, unsigned *bytes);

/* Changes the bytes at `at`, which will run at the address `place`, for the value s + a. HED_ERANGE
 * if that is too far, or not aligned as the instruction needs. */
int hed_reloc_apply(unsigned machine, uint32_t type, unsigned char *at, uint64_t place, uint64_t s,
                    int64_t a);

/* Writes a jump to `target`, at any distance; HED_RELOC_JUMP bytes. */
#define HED_RELOC_JUMP 16
void hed_reloc_jump(unsigned machine, unsigned char *at, uint64_t target);
