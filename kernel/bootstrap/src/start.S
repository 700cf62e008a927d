// From the boot loader to Rust: see start.rs for the drawing.
//
// x0 = physical address of the device tree, or of what another core's user code left for this one. The memory-management unit is
// off. A core has this image to itself: what it writes, no other reads.

.section .text.start, "ax"

// The header of an arm64 Image.
.global tench_start
tench_start:
    b 1f
    .long 0
    .quad 0x200000                  // offset from the start of memory
    .quad tench_image_size
    .quad 0xa                       // little-endian, 4 KiB pages, anywhere
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0

1:  // Count retired instructions from here on: event 8 in counter 0, in both modes; user mode may not read it.
    mov x1, #0x08
    msr pmevtyper0_el0, x1
    mov x1, #1
    msr pmcntenset_el0, x1
    mov x1, #0x43                   // 64-bit counters, all reset, on
    msr pmcr_el0, x1
    msr pmuserenr_el0, xzr
    mov x20, x0

    mrs x1, CurrentEL
    cmp x1, #0x8
    b.ne 2f
    mov x1, #0x80000000             // EL1 is AArch64
    msr hcr_el2, x1
    mov x1, #0x3c5                  // EL1 with its own stack pointer, all masked
    msr spsr_el2, x1
    adr x1, 2f
    msr elr_el2, x1
    eret

2:  // Zero what is assumed to be zero.
    adrp x1, tench_bss_start
    adrp x2, tench_bss_end
3:  stp xzr, xzr, [x1], #16
    stp xzr, xzr, [x1], #16
    cmp x1, x2
    b.lo 3b

    // A copy that lies elsewhere: each word that holds an address of the kernel's own is corrected. They are listed as
    // ELF does it (RELR): an even entry is a word's address, an odd one has a bit for each of the 63 words that follow.
    adrp x1, tench_start
    adrp x2, tench_linked_at
    add x2, x2, :lo12:tench_linked_at
    ldr x2, [x2]
    sub x4, x1, x2                  // from a linked address to where that is now
    mov x3, #0xfffffff000000000
    add x3, x3, x4                  // from a linked address to where that is now in the upper half
    cbz x3, 16f
    adrp x5, tench_moved_start
    add x5, x5, :lo12:tench_moved_start
    adrp x6, tench_moved_end
    add x6, x6, :lo12:tench_moved_end
11: cmp x5, x6
    b.hs 16f
    ldr x7, [x5], #8
    tbnz x7, #0, 12f
    add x8, x7, x4
    ldr x9, [x8]
    add x9, x9, x3
    str x9, [x8], #8
    b 11b
12: mov x10, x8
13: lsr x7, x7, #1
    cbz x7, 15f
    tbz x7, #0, 14f
    ldr x9, [x10]
    add x9, x9, x3
    str x9, [x10]
14: add x10, x10, #8
    b 13b
15: add x8, x8, #504
    b 11b

16: // The lower half for the moment of switching on: the GiB with the kernel, at its own address.
    lsr x17, x1, #30
    lsl x4, x17, #30
    adrp x1, tench_boot_table       // level 0
    add x2, x1, #0x1000             // level 1
    orr x3, x2, #3
    str x3, [x1]
    mov x5, #0x701                  // block, accessed, inner shareable, index 0
    orr x5, x5, x4
    str x5, [x2, x17, lsl #3]

    // The upper half: devices in the first GiB, and the GiB with the kernel; see start.rs.
    adrp x7, tench_kernel_tables    // level 1, 2, 3
    add x8, x7, #0x1000
    add x9, x7, #0x2000
    add x6, x7, #3584               // entry 448 of 512: the last 64 GiB
    mov x10, #0x60000000000000      // execute never, in both modes
    mov x5, #0x405                  // block, accessed, index 1
    orr x5, x5, x10
    str x5, [x6]
    orr x3, x8, #3
    str x3, [x6, x17, lsl #3]

    mov x5, #0x701
    orr x5, x5, x10
    orr x5, x5, x4
    mov x11, #0
4:  str x5, [x8, x11, lsl #3]       // level 2: 2 MiB blocks
    add x5, x5, #0x200000
    add x11, x11, #1
    cmp x11, #512
    b.ne 4b
    adrp x12, tench_start
    ubfx x13, x12, #21, #9
    orr x3, x9, #3
    str x3, [x8, x13, lsl #3]       // ... but for the kernel's own

    adrp x14, tench_resident_text_end
    adrp x15, tench_rodata_end
    and x16, x12, #0xffffffffffe00000
    mov x11, #0
5:  mov x5, #0x703                  // level 3: pages
    orr x5, x5, x16
    cmp x16, x14
    b.hs 6f
    cmp x16, x12
    b.lo 7f
    orr x5, x5, #0x80               // text: read-only
    mov x17, #0x40000000000000      // ... and never executed by user mode
    orr x5, x5, x17
    b 8f
6:  cmp x16, x15
    b.hs 7f
    orr x5, x5, #0x80               // constants: read-only, never executed
7:  orr x5, x5, x10
8:  str x5, [x9, x11, lsl #3]
    add x16, x16, #0x1000
    add x11, x11, #1
    cmp x11, #512
    b.ne 5b
    adrp x12, tench_boot_guard
    ubfx x13, x12, #12, #9
    str xzr, [x9, x13, lsl #3]      // below the stack: nothing

    msr ttbr0_el1, x1
    msr ttbr1_el1, x7
    mov x1, #0x04ff                 // 0: write-back; 1: device; 2: non-cacheable
    movk x1, #0x44, lsl #16
    msr mair_el1, x1
    movz x1, #0x3510                // 48-bit lower half, write-back, inner shareable, 4 KiB
    movk x1, #0xb519, lsl #16       // the same for the upper half, but 39-bit: it begins at level 1
    mov x2, #0x1000000000           // 16-bit identifiers
    orr x1, x1, x2
    mrs x2, id_aa64mmfr0_el1
    and x2, x2, #0xf
    cmp x2, #5
    b.ls 9f
    mov x2, #5
9:  orr x1, x1, x2, lsl #32
    msr tcr_el1, x1
    mov x1, #0x3                    // user mode may read the counters
    msr cntkctl_el1, x1
    msr cpacr_el1, xzr              // floating point traps
    dsb ish
    tlbi vmalle1
    dsb ish
    ic iallu
    isb
    // On: translation, caches, stack alignment checks, user cache maintenance, zeroing and waiting.
    movz x1, #0xd81d
    movk x1, #0x34d5, lsl #16
    msr sctlr_el1, x1
    isb
    adr x1, tench_upper
    orr x1, x1, #0xfffffff000000000
    br x1

tench_upper:
    adrp x1, tench_empty_table
    and x1, x1, #0xfffffffff        // physical
    msr ttbr0_el1, x1
    isb
    tlbi vmalle1
    dsb nsh
    isb
    adrp x1, tench_boot_stack_top
    add x1, x1, :lo12:tench_boot_stack_top
    mov sp, x1
    adrp x1, tench_vectors          // whatever goes wrong from here on is reported
    add x1, x1, :lo12:tench_vectors
    msr vbar_el1, x1
    isb
    mov x0, x20
    mov x29, #0
    mov x30, #0
    bl tench_boot
1:  wfe
    b 1b

// Where the linker placed the kernel; in a copy that was corrected, where it lies.
.section .data.linked_at, "aw"
.balign 8
tench_linked_at:
    .quad tench_start

.section .bss.tables, "aw", @nobits
.balign 4096
.global tench_kernel_tables
tench_kernel_tables:
    .skip 12288
.global tench_empty_table
tench_empty_table:
    .skip 4096

.section .boot.bss, "aw", @nobits
.balign 4096
tench_boot_table:
    .skip 8192
.global tench_boot_guard
tench_boot_guard:
    .skip 4096
tench_boot_stack_bottom:
    .skip 32768
.global tench_boot_stack_top
tench_boot_stack_top:
