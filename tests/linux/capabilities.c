/* Capabilities: what a thread has, and gives up. */

#include "system.h"

enum { CAPGET = 90, CAPSET = 91, FIRST_VERSION = 0x19980330, VERSION = 0x20080522 };

typedef struct { unsigned version; int thread; } header;
typedef struct { unsigned effective, permitted, inheritable; } record;

static record records[2];

static number get(unsigned version, int thread) {
    header header = {version, thread};
    return call(CAPGET, (number)&header, (number)records, 0, 0, 0, 0);
}

static number set(record low, record high) {
    header header = {VERSION, 0};
    record both[2] = {low, high};
    return call(CAPSET, (number)&header, (number)both, 0, 0, 0, 0);
}

static void show_records(const char *what) {
    print(what), print("\n");
    for (int i = 0; i < 2; i++) {
        show("  effective", records[i].effective);
        show("  permitted", records[i].permitted);
        show("  inheritable", records[i].inheritable);
    }
}

static void versions(void) {
    header unknown = {1, 0}, first = {FIRST_VERSION, 0};
    show("an unknown version", call(CAPGET, (number)&unknown, (number)records, 0, 0, 0, 0));
    show("the preferred one", unknown.version);
    unknown.version = 1;
    show("an unknown version alone", call(CAPGET, (number)&unknown, 0, 0, 0, 0, 0));
    show("the preferred one", unknown.version);
    show("a known version alone", call(CAPGET, (number)&first, 0, 0, 0, 0, 0));
    show("no header", call(CAPGET, 8, (number)records, 0, 0, 0, 0));
    show("no place", call(CAPGET, (number)&first, 8, 0, 0, 0, 0));
    show("a negative number", get(VERSION, -1));
    show("no such thread", get(VERSION, 4000000));
    show("one record", get(FIRST_VERSION, 0));
    show_records("of which 32 are shown");
    show("both", get(VERSION, 0));
    show_records("all");
    unknown.version = 2;
    show("set with an unknown version", call(CAPSET, (number)&unknown, (number)records, 0, 0, 0, 0));
}

static void gives_up(void) {
    record all = {-1u, -1u, 0}, few = {1, 3, 0}, none = {0, 0, 0};
    header other = {VERSION, 1000000}, own = {VERSION, 0};
    show("those of another thread", call(CAPSET, (number)&other, (number)records, 0, 0, 0, 0));
    show("from nowhere", call(CAPSET, (number)&own, 8, 0, 0, 0, 0));
    show("all that there are, and more", set(all, (record){-1u, -1u, 0}));
    show("they are", get(VERSION, 0));
    show_records("all that there are");
    show("to inherit all", set((record){-1u, -1u, -1u}, (record){-1u, -1u, 0}));
    show("few", set(few, none));
    show("what counts is not permitted", set((record){4, 3, 0}, none));
    show("what was given up", set(all, none));
    show("what can be inherited stays", set((record){1, 3, -1u}, none));
    show("they are", get(VERSION, 0));
    show_records("few");
    number child = fork();
    if (child == 0) {
        show("a child has them", get(VERSION, 0));
        show_records("as well");
        exit(0);
    }
    wait_for(child, 0);
    show("none", set(none, none));
    show("they are", get(VERSION, 0));
    show_records("none");
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    versions();
    gives_up();
    return 0;
}
