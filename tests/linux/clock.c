/* Adjusting the real-time clock, the kernel's log, `sync_file_range`, and `reboot`. */

#include "system.h"

enum { SYNC_FILE_RANGE = 84, SYSLOG = 116, REBOOT = 142, SETRESUID = 147, ADJTIMEX = 171, CLOCK_ADJTIME = 266 };
enum { OFFSET = 1, FREQUENCY = 2, MAX_ERROR = 4, ERROR = 8, STATUS = 0x10, CONSTANT = 0x20, TIME = 0x100 };
enum { MICRO = 0x1000, NANO = 0x2000, TICK = 0x4000, ONCE = 0x8001, ONCE_READ = 0xa001 };

struct adjustment {
    unsigned modes, pad;
    number offset, frequency, max_error, error;
    int status, pad2;
    number constant, precision, tolerance, seconds, parts, tick, rest[9];
    int tai, pad3[11];
};

static struct adjustment record;

static number adjust(unsigned modes) {
    record.modes = modes;
    return call(CLOCK_ADJTIME, 0, (number)&record, 0, 0, 0, 0);
}

static number now(void) {
    number time[2];
    call(CLOCK_GETTIME, 0, (number)time, 0, 0, 0, 0);
    return time[0];
}

static void adjustments(void) {
    show("read", adjust(0));
    show("offset", record.offset);
    show("frequency", record.frequency);
    show("error", record.error);
    show("status", record.status);
    show("constant", record.constant);
    show("precision", record.precision);
    show("tolerance", record.tolerance);
    show("tick", record.tick);
    show("tai", record.tai);
    show("the time", now() - record.seconds <= 1);
    show("by the other call", call(ADJTIMEX, (number)&record, 0, 0, 0, 0, 0));
    show("no record", call(CLOCK_ADJTIME, 0, 8, 0, 0, 0, 0));
    record.modes = 0;
    show("another clock", call(CLOCK_ADJTIME, 1, (number)&record, 0, 0, 0, 0));
    show("no clock", call(CLOCK_ADJTIME, 99, (number)&record, 0, 0, 0, 0));
    show("of a thread", call(CLOCK_ADJTIME, 3, (number)&record, 0, 0, 0, 0));
    record.frequency = 6553600, record.error = 5, record.tick = 10001;
    show("frequency", adjust(FREQUENCY | ERROR | TICK));
    record.frequency = record.error = record.tick = 0;
    adjust(0);
    show("frequency", record.frequency);
    show("error", record.error);
    show("tick", record.tick);
    record.frequency = (number)1 << 40;
    show("impossible", adjust(FREQUENCY));
    record.frequency = (number)1 << 30;
    adjust(FREQUENCY);
    show("the highest", record.frequency);
    record.tick = 8999;
    show("too short", adjust(TICK));
    record.tick = 11001;
    show("too long", adjust(TICK));
    record.tick = 10000, record.frequency = 0;
    show("as before", adjust(TICK | FREQUENCY));
    record.status = 0;
    show("good", adjust(STATUS));
    record.status = 0xff40;
    show("not good", adjust(STATUS));
    show("status", record.status);
    show("nanoseconds", adjust(NANO));
    show("status", record.status);
    show("microseconds", adjust(MICRO));
    show("status", record.status);
    record.constant = 3;
    adjust(CONSTANT);
    show("constant", record.constant);
    record.constant = 100;
    adjust(CONSTANT);
    show("constant", record.constant);
}

static void moves(void) {
    number before = now();
    record.seconds = 100, record.parts = 0;
    show("move", adjust(TIME));
    number moved = now() - before;
    show("moved", moved == 100 || moved == 101);
    record.parts = 1000000;
    show("too many parts", adjust(TIME));
    record.seconds = -101, record.parts = 999999;
    show("back", adjust(TIME));
    moved = now() - before;
    show("moved", moved >= -1 && moved <= 1);
    record.offset = 0;
    show("once", adjust(ONCE));
    show("read", adjust(ONCE_READ));
    show("left", record.offset);
    show("no offset", adjust(0x8000));
}

static void files(void) {
    number file = call(OPENAT, AT_FDCWD, (number)"/tmp/range", RDWR | CREAT | TRUNC, 0600, 0, 0);
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("range", call(SYNC_FILE_RANGE, file, 0, 0, 7, 0, 0));
    show("beyond the end", call(SYNC_FILE_RANGE, file, 1 << 20, 100, 2, 0, 0));
    show("flags", call(SYNC_FILE_RANGE, file, 0, 0, 8, 0, 0));
    show("before it", call(SYNC_FILE_RANGE, file, -1, 10, 2, 0, 0));
    show("backwards", call(SYNC_FILE_RANGE, file, 10, -1, 2, 0, 0));
    show("a pipe", call(SYNC_FILE_RANGE, ends[0], 0, 0, 2, 0, 0));
    show("a pipe with flags", call(SYNC_FILE_RANGE, ends[0], 0, 0, 8, 0, 0));
    show("nothing", call(SYNC_FILE_RANGE, 99, 0, 0, 2, 0, 0));
    number directory = call(OPENAT, AT_FDCWD, (number)"/tmp", RDONLY, 0, 0, 0);
    show("a directory", call(SYNC_FILE_RANGE, directory, 0, 0, 2, 0, 0));
}

static number log(number what, const void *place, number length) {
    return call(SYSLOG, what, (number)place, length, 0, 0, 0);
}

static void logs(void) {
    static char text[64];
    show("size", log(10, 0, 0) > 0);
    show("open", log(1, 0, 0));
    show("close", log(0, 0, 0));
    show("read all", log(3, text, 64) >= 0);
    show("none of all", log(3, text, 0));
    show("less", log(3, text, -1));
    show("nowhere", log(3, 0, 64));
    show("clear", log(5, 0, 0));
    show("read what is left", log(3, text, 64));
    show("read and clear", log(4, text, 64));
    show("off", log(6, 0, 0));
    show("on", log(7, 0, 0));
    show("level", log(8, 0, 7));
    show("no level", log(8, 0, 0));
    show("too high", log(8, 0, 9));
    show("unread", log(9, 0, 0) >= 0);
    show("unknown", log(11, 0, 0));
    show("negative", log(-1, 0, 0));
}

static number end(number one, number other, number command) {
    return call(REBOOT, one, other, command, 0, 0, 0);
}

static void ends(void) {
    show("no magic", end(0, 0, 0x1234567));
    show("half of it", end(0xfee1dead, 0, 0x1234567));
    show("keys off", end(0xfee1dead, 672274793, 0));
    show("keys on", end(0xfee1dead, 85072278, 0x89abcdef));
    show("unknown", end(0xfee1dead, 369367448, 17));
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    int status;
    adjustments();
    moves();
    files();
    logs();
    ends();
    number child = fork();
    if (child == 0) {
        call(SETRESUID, 1000, 1000, 1000, 0, 0, 0);
        show("read", adjust(0));
        show("change", adjust(FREQUENCY));
        show("once", adjust(ONCE));
        show("read once", adjust(ONCE_READ));
        show("log", log(3, &record, 64));
        show("size", log(10, 0, 0));
        show("unknown", log(11, 0, 0));
        show("end", end(0xfee1dead, 672274793, 0x4321fedc));
        show("without magic", end(0, 0, 0));
        exit(0);
    }
    wait_for(child, &status);
    show("end", status);
    return 0;
}
