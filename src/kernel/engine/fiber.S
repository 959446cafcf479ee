/* Switching stacks. See fiber.h.
 *
 * A suspended fiber has this on its stack, from the saved stack pointer up:
 *
 *   aarch64   d8-d15 | x19-x28 | x29 x30 | fpcr, nothing            176 bytes
 *   x86-64    mxcsr and x87 control word | r15 r14 r13 r12 rbx rbp | return address   64 bytes
 *
 * fiber.c puts the same on the stack of a fiber that has not run yet.
 */

#if defined(__aarch64__)

    .text
    .balign 16
    .globl hed_fiber_switch
    .hidden hed_fiber_switch
    .type hed_fiber_switch, %function
hed_fiber_switch:
    sub sp, sp, #176
    stp d8, d9, [sp]
    stp d10, d11, [sp, #16]
    stp d12, d13, [sp, #32]
    stp d14, d15, [sp, #48]
    stp x19, x20, [sp, #64]
    stp x21, x22, [sp, #80]
    stp x23, x24, [sp, #96]
    stp x25, x26, [sp, #112]
    stp x27, x28, [sp, #128]
    stp x29, x30, [sp, #144]
    mrs x9, fpcr
    str x9, [sp, #160]
    mov x10, sp
    str x10, [x0]
    mov sp, x1
    b load
    .size hed_fiber_switch, . - hed_fiber_switch

    .globl hed_fiber_jump
    .hidden hed_fiber_jump
    .type hed_fiber_jump, %function
hed_fiber_jump:
    mov sp, x0
    mrs x9, fpcr
load:
    ldp d8, d9, [sp]
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp x19, x20, [sp, #64]
    ldp x21, x22, [sp, #80]
    ldp x23, x24, [sp, #96]
    ldp x25, x26, [sp, #112]
    ldp x27, x28, [sp, #128]
    ldp x29, x30, [sp, #144]
    ldr x10, [sp, #160]
    add sp, sp, #176
    /* Writing fpcr is slow, and it is nearly always the same. */
    cmp x9, x10
    b.eq 1f
    msr fpcr, x10
1:  ret
    .size hed_fiber_jump, . - hed_fiber_jump

    .globl hed_fiber_begin
    .hidden hed_fiber_begin
    .type hed_fiber_begin, %function
hed_fiber_begin:
    mov x0, x20
    blr x19
    brk #0
    .size hed_fiber_begin, . - hed_fiber_begin

#elif defined(__x86_64__)

    .text
    .balign 16
    .globl hed_fiber_switch
    .hidden hed_fiber_switch
    .type hed_fiber_switch, @function
hed_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rdi
    jmp hed_fiber_jump
    .size hed_fiber_switch, . - hed_fiber_switch

    .globl hed_fiber_jump
    .hidden hed_fiber_jump
    .type hed_fiber_jump, @function
hed_fiber_jump:
    movq %rdi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size hed_fiber_jump, . - hed_fiber_jump

    .globl hed_fiber_begin
    .hidden hed_fiber_begin
    .type hed_fiber_begin, @function
hed_fiber_begin:
    movq %r13, %rdi
    callq *%r12
    ud2
    .size hed_fiber_begin, . - hed_fiber_begin

#else
#error "fibers are written for aarch64 and x86-64"
#endif

    .section .note.GNU-stack, "", %progbits
