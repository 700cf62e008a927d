/* Costs of calls in each way of making them: as exceptions, as messages, and as messages from a handler of upcalls. */

#include "measure.h"

COST(empty_loop, 0)

#define ROW(name) name
#include "costs.h"
#undef ROW

/* The same calls as messages to the personality. Linux refuses SET_ENTRANCE; those ways are not measured then. */
enum { PRCTL = 167, SET_ENTRANCE = 0x54656e63, MESSAGES = 1, UPCALLS = 2, TAG = 7, RESULT_TAG = 0x10001, AGAIN = -512 };

static number endpoint;

static number send(number what, number a, number b, number c, number d, number e, number f) {
    number result;
    do {
        register number x0 __asm__("x0") = endpoint;
        register number x1 __asm__("x1") = TAG;
        register number x2 __asm__("x2") = what;
        register number x3 __asm__("x3") = a;
        register number x4 __asm__("x4") = b;
        register number x5 __asm__("x5") = c;
        register number x6 __asm__("x6") = d;
        register number x7 __asm__("x7") = e;
        register number x8 __asm__("x8") = f;
        register number x10 __asm__("x10") = 0;
        __asm__ volatile("svc #1"
                         : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4), "+r"(x5), "+r"(x6), "+r"(x7), "+r"(x8), "+r"(x10)
                         :
                         : "memory", "x9", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18");
        result = x1 == RESULT_TAG ? x2 : AGAIN;
    } while (result == AGAIN);
    return result;
}

#define call send
#define ROW(name) sent_##name
#include "costs.h"
#undef ROW
#undef call

/* Handles an upcall: takes the call's arguments from the registers in the buffer, and stores the result there. */
char *upcall_buffer;
void handle_upcall(void);
__asm__(".global handle_upcall\n"
        "handle_upcall: adrp x9, upcall_buffer\n"
        "ldr x9, [x9, :lo12:upcall_buffer]\n"
        "add x9, x9, #584\n"
        "ldr x2, [x9, #64]\n"
        "ldp x3, x4, [x9]\n"
        "ldp x5, x6, [x9, #16]\n"
        "ldp x7, x8, [x9, #32]\n"
        "mov x0, #1\n"
        "mov x1, #7\n"
        "mov x10, #0\n"
        "svc #1\n"
        "adrp x9, upcall_buffer\n"
        "ldr x9, [x9, :lo12:upcall_buffer]\n"
        "str x2, [x9, #584]\n"
        "mov x10, #3\n"
        "svc #1\n"
        "udf #0\n");

#define EACH(prefix)                                                                                                   \
    {                                                                                                                  \
        {"empty_loop", empty_loop, 10000},                                                                             \
        {"getppid", prefix##getppid, 10000}, \
        {"sigprocmask", prefix##sigprocmask, 10000}, \
        {"fcntl", prefix##fcntl, 10000}, \
        {"clock_gettime", prefix##clock_gettime, 10000}, \
        {"sched_yield", prefix##sched_yield, 10000}, \
        {"read_zero_1", prefix##read_zero_1, 10000}, \
        {"write_null_1", prefix##write_null_1, 10000}, \
        {"pread_tmpfs_1", prefix##pread_tmpfs_1, 10000}, \
        {"pread_tmpfs_4096", prefix##pread_tmpfs_4096, 10000}, \
        {"stat", prefix##stat, 5000}, \
        {"open_close", prefix##open_close, 5000}, \
        {"create_unlink", prefix##create_unlink, 2000}, \
        {"ppoll_1", prefix##ppoll_1, 5000}, \
        {"mmap_munmap", prefix##mmap_munmap, 2000}, \
        {"brk_pair", prefix##brk_pair, 2000}, \
        {"epoll_0", prefix##epoll_0, 5000}, \
    }

static const struct cost plain[] = EACH();
static const struct cost sent[] = EACH(sent_);

int program(number count, char **arguments) {
    (void)count;
    prepare(arguments[0]);
    number failed = MEASURE(plain, "exception");
    endpoint = call(PRCTL, SET_ENTRANCE, MESSAGES, 0, 0, 0, 0);
    if (endpoint <= 0)
        return 2;
    failed += MEASURE(sent, "relinked");
    number buffer = call(PRCTL, SET_ENTRANCE, UPCALLS, (number)handle_upcall, 0, 0, 0);
    if (buffer <= 0)
        return 3;
    upcall_buffer = (char *)buffer;
    failed += MEASURE(plain, "upcall");
    return failed != 0;
}
