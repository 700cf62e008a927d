// Exception vectors and the ways back to user mode. See trap.rs.
//
// Registers lie in the thread at [sp]: x(n) at 8n, then {SP}, {PC}, {FLAGS}, {POINTER}.
//
// In kernels that measure how long interrupts are off ({MEASURING}), each entry writes counter, path and vector where
// tpidr_el1 points to, and each way out calls Rust.

.section .text.vectors, "ax"

.macro vector name
    .balign 128
    .type \name, %function
    \name:
.endm

// Stores or loads x4..x15 and x18..x29 in a place for registers.
.macro most_pairs operation, base
    \operation x4, x5, [\base, #32]
    \operation x6, x7, [\base, #48]
    \operation x8, x9, [\base, #64]
    \operation x10, x11, [\base, #80]
    \operation x12, x13, [\base, #96]
    \operation x14, x15, [\base, #112]
    \operation x18, x19, [\base, #144]
    \operation x20, x21, [\base, #160]
    \operation x22, x23, [\base, #176]
    \operation x24, x25, [\base, #192]
    \operation x26, x27, [\base, #208]
    \operation x28, x29, [\base, #224]
.endm

// Sets registers to 0.
.macro clear numbers:vararg
    .irp number, \numbers
    mov x\number, #0
    .endr
.endm

.macro clear_11_to_18
    clear 11, 12, 13, 14, 15, 16, 17, 18
.endm

.macro load_19_to_29
    ldp x19, x20, [sp, #152]
    ldp x21, x22, [sp, #168]
    ldp x23, x24, [sp, #184]
    ldp x25, x26, [sp, #200]
    ldp x27, x28, [sp, #216]
    ldr x29, [sp, #232]
.endm

// Saves x0..x15 and x18..x30, the stack pointer, program counter and flags. x16 and x17 are saved already.
.macro save_all_but_16_17
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    most_pairs stp, sp
    mrs x16, sp_el0
    mrs x17, elr_el1
    stp x30, x16, [sp, #240]
    mrs x16, spsr_el1
    stp x17, x16, [sp, #{PC}]
    mov x16, #1
    str x16, [sp, #{FULL}]
.endm

.balign 2048
.global tench_vectors
tench_vectors:
vector el1_sp0_sync
    b fatal_0
vector el1_sp0_irq
    b fatal_1
vector el1_sp0_fiq
    b fatal_2
vector el1_sp0_error
    b fatal_3
vector el1_sync
    b fatal_4
vector el1_irq
    // At a preemption point: the interrupted code is Rust, so what a call preserves is preserved by the handler.
    sub sp, sp, #192
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x30, [sp, #144]
.if {MEASURING}
    mrs x0, pmevcntr0_el0
    mov x1, #{KERNEL_INTERRUPT}
    adr x2, el1_irq
    mrs x3, tpidr_el1
    stp x0, x1, [x3, #{START}]
    str x2, [x3, #{ADDRESS}]
.endif
    b el1_irq_body
vector el1_fiq
    b fatal_6
vector el1_error
    b fatal_7
vector el0_sync
    stp x16, x17, [sp, #128]
.if {MEASURING}
    mrs x16, pmevcntr0_el0
    mrs x17, tpidr_el1
    stp x16, x10, [x17, #{START}]   // Rust corrects the path if this is no system call.
    adr x16, el0_sync
    str x16, [x17, #{ADDRESS}]
.endif
    mrs x16, esr_el1
    ror w16, w16, #24               // 0x56000001, an svc with immediate 1, becomes a number that fits
    cmp w16, #0x156
    b.eq el0_call
.if {MEASURING} == 0
    ldr x17, [sp, #{HAS_UPCALLS}]
    cbnz x17, upcall
.endif
    b el0_exception
vector el0_irq
    stp x16, x17, [sp, #128]
.if {MEASURING}
    mrs x16, pmevcntr0_el0
    mrs x17, tpidr_el1
    str x16, [x17, #{START}]
    b el0_irq_measured
.endif
el0_irq_go_on:
    save_all_but_16_17
    mov x0, sp
    bl tench_user_interrupt
    b tench_resume
vector el0_fiq
    b fatal_10
vector el0_error
    b fatal_11
vector el0_32_sync
    b fatal_12
vector el0_32_irq
    b fatal_13
vector el0_32_fiq
    b fatal_14
vector el0_32_error
    b fatal_15

.balign 128
.if {MEASURING}
// The vector has no room for all of it.
el0_irq_measured:
    mov x16, #{USER_INTERRUPT}
    str x16, [x17, #{PATH}]
    adr x16, el0_irq
    str x16, [x17, #{ADDRESS}]
    b el0_irq_go_on
.endif

// A system call. Its fast path finds the stack pointer and program counter where the exception left them, and saves
// them if another thread continues.
el0_call:
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x11, x12, [sp, #88]
    stp x19, x20, [sp, #152]
    stp x21, x22, [sp, #168]
    stp x23, x24, [sp, #184]
    stp x25, x26, [sp, #200]
    stp x27, x28, [sp, #216]
    stp x29, x30, [sp, #232]
    mov x2, sp
    cbnz x10, el0_call_other
    bl tench_fast_call

// The fast path has returned, so the caller continues, with this x0.
hand_back:
    ldr x30, [sp, #240]
    clear 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    clear_11_to_18
    eret

// Likewise, but the stack and x19..x30 have been used. x2 = thread.
.global tench_hand_back
tench_hand_back:
    mov sp, x2
    load_19_to_29
    b hand_back

el0_call_other:
    adr x30, hand_back
    cmp x10, #1
    b.eq tench_fast_reply_receive
    cmp x10, #8
    b.hi el0_call_above
    b.eq tench_fast_signal
    cmp x10, #7
    b.eq tench_fast_yield
    cmp x10, #{UPCALL_RETURN}
    b.lo tench_fast_receive         // Receive, the only one left below
.if {MEASURING} == 0
    b.eq upcall_return
.endif

el0_call_above:
    cmp x10, #{FAST_LIMIT}
    b.hs tench_slow_call
    adr x16, fast_paths
    ldrsw x17, [x16, x10, lsl #2]
    add x16, x16, x17
    br x16

// Where the operations lead that have a fast path and no branch above.
.balign 4
fast_paths:
    .set number, 0
    .rept {FAST_LIMIT}
    .if number == {COPY}
    .word tench_fast_copy - fast_paths
    .elseif number == {DELETE}
    .word tench_fast_delete - fast_paths
    .elseif number == {FRAME_MAP}
    .word tench_fast_map - fast_paths
    .elseif number == {MAPPING_SET}
    .word tench_fast_set_entry - fast_paths
    .elseif number == {READ_REGISTERS}
    .word tench_fast_read_registers - fast_paths
    .elseif number == {WRITE_REGISTERS}
    .word tench_fast_write_registers - fast_paths
    .else
    .word tench_slow_call - fast_paths
    .endif
    .set number, number + 1
    .endr

// x0, x1, x10 as the caller had them, x2 = thread, the rest saved. A fast path has used the stack, which is given up, and
// the registers that a call preserves.
.global tench_slow_call_after_fast
tench_slow_call_after_fast:
    mov sp, x2
    load_19_to_29

// Likewise, but the stack is empty, and these registers are as the caller had them.
tench_slow_call:
    mrs x16, sp_el0
    mrs x17, elr_el1
    stp x16, x17, [sp, #{SP}]
    stp x0, x1, [sp]
    str x10, [sp, #80]
    mov x0, sp
    bl tench_system_call
.if {MEASURING} == 0
    cmp sp, x0
    b.ne tench_resume
    ldr x17, [sp, #{FULL}]
    cbnz x17, tench_resume
    // The same thread goes on. Its other registers are as the exception found them: Rust has preserved x19..x30, and
    // after a preemption point the way back has been prepared anew.
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldr x10, [sp, #80]
    ldr x30, [sp, #240]
    clear_11_to_18
    eret
.endif

// Continues with the thread at x0: in the kernel, if it was switched away from at a preemption point; else in user mode.
.global tench_resume
tench_resume:
    mov sp, x0
.if {MEASURING}
    ldr x16, [sp, #{KERNEL_SP}]
    cbnz x16, resume_in_kernel
    bl tench_trace_resume
.endif
    ldr x16, [sp, #{KERNEL_SP}]
    ldr x17, [sp, #{FULL}]
    cbnz x16, resume_in_kernel
    cbnz x17, resume_all
    ldp x16, x17, [sp, #{SP}]
    msr sp_el0, x16
    msr elr_el1, x17
    msr spsr_el1, xzr
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldr x10, [sp, #80]
    ldp x19, x20, [sp, #152]
    ldp x21, x22, [sp, #168]
    ldp x23, x24, [sp, #184]
    ldp x25, x26, [sp, #200]
    ldp x27, x28, [sp, #216]
    ldp x29, x30, [sp, #232]
    clear_11_to_18
    eret

resume_all:
    str xzr, [sp, #{FULL}]
    ldp x17, x16, [sp, #{PC}]
    msr elr_el1, x17
    msr spsr_el1, x16
    ldp x30, x16, [sp, #240]
    msr sp_el0, x16
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    most_pairs ldp, sp
    ldp x16, x17, [sp, #128]
    eret

// x16 = the stack pointer that tench_switch stored.
resume_in_kernel:
    str xzr, [sp, #{KERNEL_SP}]
    mov sp, x16
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    add sp, sp, #96
    ret

// x0 = the thread that carries out this operation, x1 = the one to continue with.
.global tench_switch
tench_switch:
    sub sp, sp, #96
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    mov x2, sp
    str x2, [x0, #{KERNEL_SP}]
    mov x0, x1
    b tench_resume

el0_exception:
    save_all_but_16_17
    mov x0, sp
    mrs x1, esr_el1
    lsr x16, x1, #26
    cmp x16, #{SVC}
    b.eq tench_foreign_call

// x0 = thread, x1 = syndrome, all registers saved.
.global tench_exception_after_fast
tench_exception_after_fast:
    bl tench_exception
    b tench_resume

.if {MEASURING} == 0
// A data abort or foreign system call of a thread that has upcalls, as `fault::upcall` handles it: the registers go to
// the thread's IPC buffer, and x0..x3 hold the report. All others stay as they are.
upcall:
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    mrs x1, esr_el1
    mov x2, #{PAGE_FAULT}
    lsr x0, x1, #26
    cmp x0, #{DATA_ABORT}
    b.eq 1f
    mov x2, #{FOREIGN_CALL}
    cmp x0, #{SVC}
    b.ne no_upcall
1:  add x3, sp, x2, lsl #4
    ldr x17, [x3, #{TARGETS}]       // entry point
    ldr x16, [sp, #{UPCALL_REGISTERS}]
    cbz x17, no_upcall
    cbz x16, no_upcall
    ldr x0, [x16, #{RUNNING}]
    cbnz x0, no_upcall

    // Point of no return.
    most_pairs stp, x16
    mrs x0, sp_el0
    stp x30, x0, [x16, #240]
    ldr x3, [x3, #{TARGETS} + 8]    // stack, or 0 for the present one
    cbz x3, 2f
    msr sp_el0, x3
2:  mrs x0, elr_el1
    mrs x3, spsr_el1
    stp x0, x3, [x16, #{PC}]
    mrs x3, tpidr_el0
    str x3, [x16, #{POINTER}]
    msr elr_el1, x17
    ldp x3, x17, [sp, #0]
    stp x3, x17, [x16, #0]
    ldp x3, x17, [sp, #16]
    stp x3, x17, [x16, #16]
    ldp x3, x17, [sp, #128]
    stp x3, x17, [x16, #128]
    mov x3, x1                      // syndrome
    mrs x1, far_el1
    mov x17, #1
    str x17, [x16, #{RUNNING}]
    cmp x2, #{PAGE_FAULT}
    b.eq 3f
    and x3, x3, #0xffff
    sub x0, x0, #4
    mov x1, #0
3:  stp x2, x1, [sp, #{FAULT}]
    stp x0, x3, [sp, #{FAULT} + 16]
    stp x2, x1, [x16, #{BUFFER_FAULT}]
    stp x0, x3, [x16, #{BUFFER_FAULT} + 16]
    mov x16, x0
    mov x0, x2
    mov x2, x16
    ldp x16, x17, [sp, #128]
    eret

no_upcall:
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    b el0_exception

// The return from an upcall, as `fault::upcall_return` performs it: all registers come from the IPC buffer, which the
// program has written. Any values are valid but for the flags.
upcall_return:
    ldr x16, [sp, #{UPCALL_REGISTERS}]
    cbz x16, tench_slow_call
    str xzr, [x16, #{RUNNING}]
    ldp x17, x0, [x16, #{PC}]
    and x0, x0, #0xf0000000
    msr elr_el1, x17
    msr spsr_el1, x0
    ldr x17, [x16, #{POINTER}]
    msr tpidr_el0, x17
    ldp x30, x17, [x16, #240]
    msr sp_el0, x17
    ldp x0, x1, [x16, #0]
    ldp x2, x3, [x16, #16]
    most_pairs ldp, x16
    ldp x16, x17, [x16, #128]
    eret
.endif

el1_irq_body:
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [sp, #160]
    str x29, [sp, #176]
    add x29, sp, #176
    bl tench_kernel_interrupt
.if {MEASURING}
    bl tench_trace_return
.endif
    ldr x29, [sp, #176]
    ldp x0, x1, [sp, #160]
    msr elr_el1, x0
    msr spsr_el1, x1
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldp x10, x11, [sp, #80]
    ldp x12, x13, [sp, #96]
    ldp x14, x15, [sp, #112]
    ldp x16, x17, [sp, #128]
    ldp x18, x30, [sp, #144]
    add sp, sp, #192
    eret

// What no kernel should meet: registers to a static frame, an own stack, and a report. x18 is lost: it becomes the
// pointer, kept meanwhile in a register that user mode cannot see.
.macro fatal number
fatal_\number:
    msr tpidrro_el0, x17
    mov x17, #\number
    b fatal_common
.endm
.irp number, 0, 1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 14, 15
    fatal \number
.endr

fatal_common:
    msr contextidr_el1, x18
    adrp x18, tench_fatal_frame
    add x18, x18, :lo12:tench_fatal_frame
    stp x0, x1, [x18, #0]
    stp x2, x3, [x18, #16]
    stp x4, x5, [x18, #32]
    stp x6, x7, [x18, #48]
    stp x8, x9, [x18, #64]
    stp x10, x11, [x18, #80]
    stp x12, x13, [x18, #96]
    stp x14, x15, [x18, #112]
    str x16, [x18, #128]
    mrs x0, tpidrro_el0
    str x0, [x18, #136]
    mrs x0, contextidr_el1
    stp x0, x19, [x18, #144]
    stp x20, x21, [x18, #160]
    stp x22, x23, [x18, #176]
    stp x24, x25, [x18, #192]
    stp x26, x27, [x18, #208]
    stp x28, x29, [x18, #224]
    mov x0, sp
    stp x30, x0, [x18, #240]
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [x18, #256]
    mrs x0, esr_el1
    mrs x1, far_el1
    stp x0, x1, [x18, #272]
    adrp x0, tench_fatal_stack_top
    add x0, x0, :lo12:tench_fatal_stack_top
    mov sp, x0
    mov x0, x18
    mov x1, x17
    bl tench_fatal
1:  wfe
    b 1b

.section .bss.fatal, "aw", @nobits
.balign 16
tench_fatal_frame:
    .skip 36 * 8
.balign 16
tench_fatal_stack_bottom:
    .skip 2048
.global tench_fatal_stack_top
tench_fatal_stack_top:
