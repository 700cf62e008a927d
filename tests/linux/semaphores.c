/* Semaphores of System V: operations that wait, several at once, in order, with a limit; and what is undone. */

#include "sysv.h"

enum { LAST = 11, VALUE, VALUES, COUNT_UP, COUNT_ZERO, SET_VALUE, SET_VALUES, SEM_STAT, SEM_INFO, SEM_STAT_ANY };
enum { UNDO = 010000 };

struct operation {
    unsigned short semaphore;
    short change;
    short flags;
};

struct set {
    struct permissions permissions;
    number operated, changed;
    size count;
    number unused[2];
};

static number made(number key, number count, number flags) { return call(SEMGET, key, count, flags, 0, 0, 0); }

static number control(number id, number index, number what, number argument) {
    return call(SEMCTL, id, index, what, argument, 0, 0);
}

static number finish(number id) { return control(id, 0, REMOVE, 0); }
static number value(number id, number index) { return control(id, index, VALUE, 0); }

static number operate(number id, number index, number change, number flags) {
    struct operation operation = {(unsigned short)index, (short)change, (short)flags};
    return call(SEMOP, id, (number)&operation, 1, 0, 0, 0);
}

static number operate_both(number id, number first, number second, number flags) {
    struct operation operations[2] = {{0, (short)first, (short)flags}, {1, (short)second, (short)flags}};
    return call(SEMOP, id, (number)operations, 2, 0, 0, 0);
}

static void show_values(const char *what, number id, int count) {
    print(what);
    print(":");
    for (int i = 0; i < count; i++) {
        print(" ");
        print_number(value(id, i));
    }
    print("\n");
}

static void show_set(number id) {
    struct set set;
    number result = control(id, 0, STAT, (number)&set);
    show("status", result);
    if (result < 0)
        return;
    show_permissions(&set.permissions);
    show_time("  operated", set.operated);
    show_time("  changed", set.changed);
    show("  count", set.count);
}

static void keys(void) {
    number id = made(7, 3, CREATE | 0640);
    show("made", id);
    show("found", made(7, 0, 0) == id);
    show("smaller", made(7, 2, 0) == id);
    show("larger", made(7, 4, 0));
    show("exclusive", made(7, 4, CREATE | EXCLUSIVE));
    show("no key", made(8, 1, 0));
    show("none", made(8, 0, CREATE));
    show("negative", made(7, -1, 0));
    show("too many", made(8, 32001, CREATE));
    number most = made(8, 32000, CREATE | 0600);
    show("the most", most > 0);
    show("the last", operate(most, 31999, 5, 0));
    show("its value", value(most, 31999));
    show("removed", finish(most));
    show_set(id);
    show_file("/proc/sysvipc/sem");
    show_file("/proc/sys/kernel/sem");
    show("removed", finish(id));
    show("removed again", finish(id));
    show("of the removed", operate(id, 0, 1, 0));
}

static void commands(void) {
    number id = made(0, 3, 0600);
    struct set set;
    int limits[10];
    unsigned short values[3] = {4, 32767, 6}, found[3], bad[3] = {1, 2, 32768};
    show("unknown command", control(id, 0, 99, 0));
    show("negative command", control(id, 0, -1, 0));
    show("negative", control(-1, 0, STAT, (number)&set));
    show("unknown", control(5000, 0, STAT, (number)&set));
    show("nowhere", control(id, 0, STAT, 8));
    show("by index", control(id % 32768, 0, SEM_STAT, (number)&set) == id);
    show("any by index", control(id % 32768, 0, SEM_STAT_ANY, (number)&set) == id);
    show("bad index", control(5000, 0, SEM_STAT, (number)&set));
    show("limits", control(0, 0, INFO, (number)limits) >= 0);
    for (int i = 0; i < 10; i++)
        show("  limit", limits[i]);
    show("use", control(0, 0, SEM_INFO, (number)limits) >= 0);
    show("  sets", limits[7]);
    show("  semaphores", limits[9]);
    show("limits nowhere", control(0, 0, INFO, 8));
    show("set all", control(id, 0, SET_VALUES, (number)values));
    show("to bad values", control(id, 0, SET_VALUES, (number)bad));
    show("to nothing", control(id, 0, SET_VALUES, 8));
    show("all", control(id, 99, VALUES, (number)found));
    show("equal", equal(values, found, sizeof values));
    show("all nowhere", control(id, 0, VALUES, 8));
    show("value", value(id, 1));
    show("no semaphore", value(id, 3));
    show("negative semaphore", value(id, -1));
    show("last", control(id, 2, LAST, 0) == own());
    show("set one", control(id, 1, SET_VALUE, 17));
    show("too high", control(id, 1, SET_VALUE, 32768));
    show("too low", control(id, 1, SET_VALUE, -1));
    show("bad semaphore", control(id, 3, SET_VALUE, 1));
    show("too high in none", control(5000, 3, SET_VALUE, 99999));
    show_values("values", id, 3);
    show("nobody waits", control(id, 0, COUNT_UP, 0));
    show("nobody waits for zero", control(id, 0, COUNT_ZERO, 0));
    control(id, 0, STAT, (number)&set);
    set.permissions.mode = 07421, set.permissions.user = 12, set.permissions.group = 13, set.count = 9;
    show("set", control(id, 0, SET, (number)&set));
    show("set nowhere", control(id, 0, SET, 8));
    show_set(id);
    set.permissions.group = -1;
    show("to nobody", control(id, 0, SET, (number)&set));
    finish(id);
}

static void operations(void) {
    number id = made(0, 3, 0600);
    static struct operation many[501];
    number bad[2] = {0, 1000000000};
    struct operation one = {0, 0, 0};
    show("none", call(SEMOP, id, (number)many, 0, 0, 0, 0));
    show("many", call(SEMOP, id, (number)many, 500, 0, 0, 0));
    show("too many", call(SEMOP, id, (number)many, 501, 0, 0, 0));
    show("nowhere", call(SEMOP, id, 8, 1, 0, 0, 0));
    show("negative", operate(-1, 0, 1, 0));
    show("unknown", operate(5000, 0, 1, 0));
    show("bad semaphore", operate(id, 3, 1, 0));
    show("bad time", call(SEMTIMEDOP, id, (number)&one, 1, (number)bad, 0, 0));
    show("time nowhere", call(SEMTIMEDOP, id, (number)&one, 1, 8, 0, 0));
    show("time nowhere of too many", call(SEMTIMEDOP, id, (number)many, 501, 8, 0, 0));
    show("bad time in nothing", call(SEMTIMEDOP, -1, (number)&one, 1, (number)bad, 0, 0));
    show("up", operate(id, 0, 5, 0));
    show("down", operate(id, 0, -2, 0));
    show("is not zero", operate(id, 0, 0, NOWAIT));
    show("is zero", operate(id, 1, 0, NOWAIT));
    show("too far down", operate(id, 0, -4, NOWAIT));
    show("too far up", operate(id, 0, 32767, 0));
    show_set(id);
    show_values("values", id, 3);
    show("both", operate_both(id, -1, 2, NOWAIT));
    show("one of both", operate_both(id, -1, -3, NOWAIT));
    show_values("values", id, 3);
    struct operation again[3] = {{2, 1, 0}, {2, -1, 0}, {2, 0, NOWAIT}};
    show("one again and again", call(SEMOP, id, (number)again, 3, 0, 0, 0));
    again[1].change = -2, again[1].flags = NOWAIT;
    show("too far down again", call(SEMOP, id, (number)again, 3, 0, 0, 0));
    show_values("values", id, 3);
    number short_time[2] = {0, 30000000};
    one.change = -9;
    show("for a while", call(SEMTIMEDOP, id, (number)&one, 1, (number)short_time, 0, 0));
    show("nobody waits", control(id, 0, COUNT_UP, 0));
    finish(id);
}

/* Lets a child do something with a set, and say how that ended. */
static number child_that(const char *what, number id, number first, number second, number flags) {
    number child = fork();
    if (child == 0) {
        show(what, operate_both(id, first, second, flags));
        exit(0);
    }
    pause(30);
    return child;
}

static void waits(void) {
    number id = made(0, 2, 0600);
    number one = child_that("first gets 2", id, -2, 0, 0), two = child_that("second gets 1", id, -1, 0, 0);
    number three = child_that("third gets 1", id, -1, 0, 0);
    show("waiting", control(id, 0, COUNT_UP, 0));
    show("waiting for zero", control(id, 0, COUNT_ZERO, 0));
    operate(id, 0, 1, 0);
    wait_for(two, 0);
    show_values("values", id, 2);
    show("waiting", control(id, 0, COUNT_UP, 0));
    show("the last", control(id, 0, LAST, 0) == two);
    operate(id, 0, 2, 0);
    wait_for(one, 0);
    show_values("values", id, 2);
    control(id, 0, SET_VALUE, 1);
    wait_for(three, 0);
    show_values("values", id, 2);
    control(id, 1, SET_VALUE, 3);
    one = child_that("zero", id, 0, 0, 0);
    show("waiting for zero", control(id, 1, COUNT_ZERO, 0));
    show("not for the other", control(id, 0, COUNT_ZERO, 0));
    unsigned short zeros[2] = {0, 0};
    show("set all", control(id, 0, SET_VALUES, (number)zeros));
    wait_for(one, 0);
    one = child_that("not to wait for the second", id, -1, 0, 0);
    two = child_that("never", id, -1, 32767, 0);
    operate(id, 1, 1, 0);
    operate(id, 0, 1, 0);
    wait_for(two, 0);
    show_values("values", id, 2);
    operate(id, 1, -1, 0);
    wait_for(one, 0);
    one = child_that("removed", id, -1, 0, 0), two = child_that("removed as well", id, -2, 0, UNDO);
    show("removed", finish(id));
    wait_for(one, 0), wait_for(two, 0);
}

static void interruptions(void) {
    number id = made(0, 2, 0600);
    number child = fork();
    if (child == 0) {
        handle_signal(SIGUSR1);
        show("interrupted", operate(id, 0, -1, 0));
        number time[2] = {5, 0};
        struct operation one = {0, -1, 0};
        show("interrupted with a limit", call(SEMTIMEDOP, id, (number)&one, 1, (number)time, 0, 0));
        show("handled", handled);
        exit(0);
    }
    for (int i = 0; i < 2; i++) {
        pause(50);
        show("waiting", control(id, 0, COUNT_UP, 0));
        call(KILL, child, SIGUSR1, 0, 0, 0, 0);
    }
    wait_for(child, 0);
    show("waiting", control(id, 0, COUNT_UP, 0));
    child = child_that("killed", id, -1, 0, 0);
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, 0);
    show("waiting", control(id, 0, COUNT_UP, 0));
    operate(id, 0, 1, 0);
    show("value", value(id, 0));
    finish(id);
}

/* Lets a child change a semaphore so that it is undone, and end. */
static void changed_and_undone(number id, int changes, const short *change) {
    number child = fork();
    if (child == 0) {
        for (int i = 0; i < changes; i++)
            show("  changed", operate(id, 0, change[i], UNDO | NOWAIT));
        show("  value", value(id, 0));
        exit(0);
    }
    wait_for(child, 0);
    show("undone", value(id, 0));
    show("by the child", control(id, 0, LAST, 0) == child);
}

static void undone(char **arguments) {
    number id = made(0, 2, 0600), other = made(0, 1, 0600);
    changed_and_undone(id, 2, (const short[]){3, -1});
    changed_and_undone(id, 1, (const short[]){-1});
    control(id, 0, SET_VALUE, 4);
    changed_and_undone(id, 2, (const short[]){-1, -2});
    changed_and_undone(id, 2, (const short[]){32763, 1});
    changed_and_undone(id, 3, (const short[]){-4, 32767, -32767});
    number child = fork();
    if (child == 0) {
        operate(id, 0, 5, UNDO);
        operate(other, 0, 1, UNDO);
        show("set to 2", control(id, 0, SET_VALUE, 2));
        exit(0);
    }
    wait_for(child, 0);
    show("nothing undone", value(id, 0));
    show("undone in another set", value(other, 0));
    child = fork();
    if (child == 0) {
        operate(id, 0, -2, UNDO);
        number grandchild = fork();
        if (grandchild == 0)
            exit(0);
        wait_for(grandchild, 0);
        show("the grandchild undoes nothing", value(id, 0));
        char *given[] = {arguments[0], "x", 0};
        call(EXECVE, (number)arguments[0], (number)given, 0, 0, 0, 0);
        exit(1);
    }
    pause(50);
    show("undone before it ends", value(id, 0));
    number waiting = child_that("awaited until it ends", id, -2, 0, 0);
    wait_for(child, 0), wait_for(waiting, 0);
    show_values("values", id, 2);
    child = fork();
    if (child == 0) {
        operate(id, 0, 20, UNDO);
        finish(id);
        id = made(0, 1, 0600);
        show("removed", value(id, 0));
        exit(0);
    }
    wait_for(child, 0);
    show("gone", value(id, 0));
    child = fork();
    if (child == 0) {
        operate(other, 0, 6, UNDO);
        call(KILL, own(), SIGKILL, 0, 0, 0, 0);
        exit(0);
    }
    wait_for(child, 0);
    show("undone when killed", value(other, 0));
    finish(other);
}

int program(number count, char **arguments) {
    if (count > 1) {
        pause(150);
        return 0;
    }
    keys();
    commands();
    operations();
    waits();
    interruptions();
    undone(arguments);
    return 0;
}
