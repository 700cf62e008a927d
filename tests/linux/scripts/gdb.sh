# Debugs a program with gdb, and with gdbserver from another gdb: breakpoints, steps, watchpoints, threads, signals, calls
# of the program's functions, what it forks, and one that runs already.

b=/bin/busybox
for applet in cat grep kill sed touch usleep; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
for applet in sh cat rm; do $b ln -sf busybox /bin/$applet; done
mkdir -p /tmp/w && cd /tmp/w || exit 9
export HOME=/tmp/w

cat >subject.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
struct pair { int first; const char *second; double third; };
static volatile int watched, handled;
static pthread_barrier_t barrier;
static void handle(int signal) {
    handled = signal;
}
static int sum(int count) {
    if (count == 0)
        return 0;
    return count + sum(count - 1);
}
static int describe(const struct pair *pair) {
    return pair->first * 2;
}
static void *work(void *number) {
    pthread_barrier_wait(&barrier);
    watched += *(int *)number;
    return 0;
}
int main(int argc, char **argv) {
    struct pair pair = { 21, "text", 1.5 };
    setlinebuf(stdout);
    printf("begin %d\n", argc);
    int total = sum(4);
    total += describe(&pair);
    watched = 1;
    watched = total;
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0)
        _exit(sum(3));
    int status;
    waitpid(child, &status, 0);
    pthread_t threads[2];
    int numbers[2] = { 100, 1000 };
    pthread_barrier_init(&barrier, 0, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, &numbers[i]);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("total %d watched %d handled %d child %d\n", total, watched, handled, WEXITSTATUS(status));
    extern int *__errno_location(void);
    while (argc > 1)
        if (pause() == -1 && *__errno_location() != 4) _exit(9);
    return total & 7;
}
END
gcc-12 -g -O0 -pthread -no-pie subject.c -o subject || exit 8
calm() {
    sed -e 's/0x[0-9a-f]*/ADDRESS/g' -e 's/process [0-9]*/process PID/g' -e 's/LWP [0-9]*/LWP/g' \
        -e 's/pid = [0-9]*/pid = PID/' -e '/^\[Thread ADDRESS/d' -e '/^\[New /d' -e '/^\[Detaching /d' \
        -e '/libthread_db/d'
}
debug() {
    gdb -nx -q -batch -ex 'set confirm off' -ex 'set width 0' "$@" 2>&1 </dev/null | calm
}

title breakpoints and frames
debug -ex 'break sum if count == 1' -ex run -ex backtrace -ex 'up 4' -ex 'print pair' -ex 'down' -ex finish -ex delete \
    -ex finish -ex 'signal 0' subject

title data
debug -ex 'break describe' -ex run -ex 'print *pair' -ex 'print pair->second[1]@2' -ex 'set var pair->first = 4' \
    -ex 'print sum(10)' -ex 'ptype pair' -ex 'info symbol watched' -ex 'print $_siginfo.si_signo' -ex finish \
    -ex 'x/2i $pc' -ex 'print watched = 5' -ex 'info program' -ex kill subject

title steps
debug -ex 'break main' -ex run -ex next -ex next -ex step -ex 'stepi 3' -ex nexti -ex 'advance describe' -ex up \
    -ex 'until 33' -ex next -ex 'info line' subject

title a watchpoint
debug -ex 'set can-use-hw-watchpoints 0' -ex 'break describe' -ex run -ex 'watch watched' -ex continue -ex continue \
    -ex 'info breakpoints' -ex delete -ex continue subject

title signals
debug -ex 'break handle' -ex run -ex continue -ex backtrace -ex 'print $_siginfo.si_signo' -ex stepi -ex finish -ex next \
    -ex delete -ex continue subject
debug -ex 'handle SIGUSR1 nostop noprint nopass' -ex run subject
debug -ex run -ex 'signal 0' subject
debug -ex run -ex 'signal SIGTERM' subject

title calls
debug -ex 'catch syscall 260' -ex run -ex 'signal SIGUSR1' -ex continue -ex 'print $x8' -ex delete -ex continue subject

title children
debug -ex 'handle SIGUSR1 nostop noprint' -ex 'catch fork' -ex run -ex delete -ex continue subject
debug -ex 'handle SIGUSR1 nostop noprint' -ex 'set follow-fork-mode child' -ex 'break _exit' -ex run -ex up \
    -ex 'print total' -ex continue subject

title threads
debug -ex 'handle SIGUSR1 nostop noprint' -ex 'break 23' -ex run -ex 'thread apply all -q print $_inferior' \
    -ex 'print watched > 0' -ex delete -ex continue subject | grep -v '^\[\|^Thread\|^23'

title a program that runs already
touch out log
./subject stay >out &
subject=$!
until grep -q total out; do usleep 20000; done
debug -p $subject -ex 'frame function main' -ex 'print total' -ex 'print sum(10)' -ex detach |
    grep -v '^\[\|^Using\|^Attaching\|^ADDRESS in\|^[0-9]*.*No such file'
kill -USR1 $subject
debug -p $subject -ex 'print watched = 3' -ex kill | grep '^\$'
wait $subject; echo $?

title a server
debug -ex 'target remote | gdbserver - ./subject' -ex 'break describe' -ex continue -ex backtrace -ex 'stepi 2' \
    -ex 'set var pair->first = 3' -ex 'print *pair' -ex delete -ex continue -ex 'signal SIGUSR1' subject |
    grep -v '^Reading\|^Remote debugging'
gdbserver --once 127.0.0.1:2345 ./subject >log 2>&1 &
until grep -q Listening log; do usleep 20000; done
debug -ex 'target remote 127.0.0.1:2345' -ex 'handle SIGUSR1 nostop noprint' -ex 'break 23' -ex continue \
    -ex 'info threads' -ex delete -ex continue subject | grep -c Thread
wait $!; echo $?; calm <log | grep -v '^Remote debugging'
