// memcpy, memmove, memset: what compilers call for larger values. The compiler's own versions copy word by word, because
// it believes that this target cannot access what is not aligned; ordinary memory can be, and pairs halve the work again.
//
// x0 destination, which is also the result; x1 source, or w1 the byte; x2 length.

.section .text.bytes, "ax"

.global memmove
.type memmove, %function
memmove:
    sub x3, x0, x1
    cmp x3, x2
    b.lo copy_down                  // the destination begins inside the source

.global memcpy
.type memcpy, %function
memcpy:
    mov x3, x0
    subs x2, x2, #32
    b.lo 2f
1:  ldp x4, x5, [x1], #16
    ldp x6, x7, [x1], #16
    stp x4, x5, [x3], #16
    stp x6, x7, [x3], #16
    subs x2, x2, #32
    b.hs 1b
2:  tbz x2, #4, 3f                  // the low bits of what is left are those of the length
    ldp x4, x5, [x1], #16
    stp x4, x5, [x3], #16
3:  tbz x2, #3, 4f
    ldr x4, [x1], #8
    str x4, [x3], #8
4:  tbz x2, #2, 5f
    ldr w4, [x1], #4
    str w4, [x3], #4
5:  tbz x2, #1, 6f
    ldrh w4, [x1], #2
    strh w4, [x3], #2
6:  tbz x2, #0, 7f
    ldrb w4, [x1]
    strb w4, [x3]
7:  ret

copy_down:
    add x3, x0, x2
    add x1, x1, x2
    subs x2, x2, #32
    b.lo 2f
1:  ldp x4, x5, [x1, #-16]!
    ldp x6, x7, [x1, #-16]!
    stp x4, x5, [x3, #-16]!
    stp x6, x7, [x3, #-16]!
    subs x2, x2, #32
    b.hs 1b
2:  tbz x2, #4, 3f
    ldp x4, x5, [x1, #-16]!
    stp x4, x5, [x3, #-16]!
3:  tbz x2, #3, 4f
    ldr x4, [x1, #-8]!
    str x4, [x3, #-8]!
4:  tbz x2, #2, 5f
    ldr w4, [x1, #-4]!
    str w4, [x3, #-4]!
5:  tbz x2, #1, 6f
    ldrh w4, [x1, #-2]!
    strh w4, [x3, #-2]!
6:  tbz x2, #0, 7f
    ldrb w4, [x1, #-1]
    strb w4, [x3, #-1]
7:  ret

.global memset
.type memset, %function
memset:
    and x1, x1, #0xff
    orr x1, x1, x1, lsl #8
    orr x1, x1, x1, lsl #16
    orr x1, x1, x1, lsl #32
    mov x3, x0
    subs x2, x2, #32
    b.lo 2f
1:  stp x1, x1, [x3], #16
    stp x1, x1, [x3], #16
    subs x2, x2, #32
    b.hs 1b
2:  tbz x2, #4, 3f
    stp x1, x1, [x3], #16
3:  tbz x2, #3, 4f
    str x1, [x3], #8
4:  tbz x2, #2, 5f
    str w1, [x3], #4
5:  tbz x2, #1, 6f
    strh w1, [x3], #2
6:  tbz x2, #0, 7f
    strb w1, [x3]
7:  ret
