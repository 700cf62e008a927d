/* The terminal: modes, keys, groups. The keys are typed by the session that runs it. */

#include "system.h"

enum { GET_MODES = 0x5401, SET_MODES = 0x5402, GET_GROUP = 0x540f, SET_GROUP = 0x5410, GET_SIZE = 0x5413 };
enum { LINES = 2, ECHO = 8, SIGNALS = 1 };
enum { WUNTRACED = 2 };

struct modes {
    unsigned input, output, control, local;
    unsigned char line, characters[19];
};

static number control(number command, void *argument) { return call(IOCTL, 0, command, (number)argument, 0, 0, 0); }

static void show_read(number wanted) {
    char bytes[64];
    number count = call(READ, 0, (number)bytes, wanted, 0, 0, 0);
    show("read", count);
    for (number i = 0; i < count; i++)
        show("  byte", bytes[i]);
}

static volatile int came;

static void count_it(int signal) { came = signal; }

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    struct modes modes, raw;
    unsigned short size[4];
    int group = 0, status = 0;
    show("modes", control(GET_MODES, &modes));
    show("lines, echo and signals", modes.local & (LINES | ECHO | SIGNALS));
    show("size", control(GET_SIZE, size));
    control(GET_GROUP, &group);
    show("the own group uses it", group == call(GETPGID, 0, 0, 0, 0, 0, 0));
    print("a line:\n");
    show_read(64);
    raw = modes;
    raw.local &= ~(unsigned)(LINES | ECHO | SIGNALS);
    raw.characters[6] = 3;
    show("three bytes at once", control(SET_MODES, &raw));
    /* In one piece, so that nothing is typed in the middle of it. */
    print("three keys:\n");
    show_read(64);
    raw.characters[6] = 0;
    raw.characters[5] = 1;
    show("a tenth of a second", control(SET_MODES, &raw));
    show_read(64);
    control(SET_MODES, &modes);
    void *action[4] = {(void *)count_it, 0, 0, 0};
    call(RT_SIGACTION, SIGINT, (number)action, 0, 8, 0, 0);
    print("a key that is a signal:\n");
    while (!came)
        call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    show("it came", came);
    number child = fork();
    if (child == 0) {
        call(SETPGID, 0, 0, 0, 0, 0, 0);
        print("in the background\n");
        show_read(64);
        exit(3);
    }
    show("it stopped", call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0) == child);
    show("status", status);
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    show("it ended", wait_for(child, &status) == child);
    return 0;
}
