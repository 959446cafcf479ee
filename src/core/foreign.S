/* The counting stubs of core/foreign.h: one a foreign function, all alike.
 *
 * x86-64: the counter and the target are reached relative to the instruction pointer; only flags
 * change, which no calling convention passes. AArch64: x16 and x17 are the linker's scratch
 * registers, x9 and x10 are the caller's to lose; x8, arguments and the link register stay.
 */
#define COUNT 4096 /* HED_FOREIGN_MAX */

        .text
        .globl  hed_foreign_stubs
        .hidden hed_foreign_stubs
        .type   hed_foreign_stubs, %function

#if defined(__x86_64__)
#define STRIDE 32
        .p2align 5
hed_foreign_stubs:
        .set    i, 0
        .rept   COUNT
        .p2align 5
        endbr64
        lock incq hed_foreign_counts + 8 * i(%rip)
        jmp     *hed_foreign_targets + 8 * i(%rip)
        .set    i, i + 1
        .endr
        .p2align 5
#elif defined(__aarch64__)
#define STRIDE 16
        .p2align 4
hed_foreign_stubs:
        .set    i, 0
        .rept   COUNT
        .p2align 4
        hint    #34                     /* bti c */
        mov     w16, #i
        b       count_and_go
        .set    i, i + 1
        .endr
        .p2align 4
count_and_go:
        adrp    x17, hed_foreign_counts
        add     x17, x17, :lo12:hed_foreign_counts
        add     x17, x17, x16, lsl #3
1:      ldxr    x9, [x17]
        add     x9, x9, #1
        stxr    w10, x9, [x17]
        cbnz    w10, 1b
        adrp    x17, hed_foreign_targets
        add     x17, x17, :lo12:hed_foreign_targets
        ldr     x17, [x17, x16, lsl #3]
        br      x17
#else
#error "heddle knows x86-64 and AArch64"
#endif
        .size   hed_foreign_stubs, . - hed_foreign_stubs

        .section .rodata
        .globl  hed_foreign_stride
        .hidden hed_foreign_stride
        .type   hed_foreign_stride, %object
        .p2align 2
hed_foreign_stride:
        .long   STRIDE
        .size   hed_foreign_stride, 4

        .section .note.GNU-stack, "", %progbits
