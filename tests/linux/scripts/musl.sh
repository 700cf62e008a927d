# Programs with another C library, musl, and statically linked ones: Debian's compiler builds them here. They use threads,
# signals, files, children and memory, and all print the same.

b=/bin/busybox
for applet in cat cmp cut grep head mkdir rm sed; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
for applet in sh cat rm; do $b ln -sf busybox /bin/$applet; done
mkdir -p /tmp/w && cd /tmp/w || exit 9
export GCC_COLORS=
specs=/usr/lib/aarch64-linux-musl/musl-gcc.specs

cat >all.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static __thread int own = 7;
static int turns, caught;
static sigjmp_buf back;

static void *take_turns(void *number) {
    pthread_mutex_lock(&lock);
    while (turns % 3 != (int)(long)number) pthread_cond_wait(&ready, &lock);
    own += ++turns;
    pthread_cond_broadcast(&ready);
    pthread_mutex_unlock(&lock);
    return (void *)(long)own;
}
static void catch(int signal) { caught += signal; }
static void jump(int signal) { siglongjmp(back, signal); }
static int by_number(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

int main(int count, char **arguments) {
    printf("hello %s, %d arguments, home %s\n", arguments[1], count, getenv("HOME"));
    pthread_t threads[3];
    for (long i = 2; i >= 0; i--) pthread_create(&threads[i], 0, take_turns, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d: %ld\n", i, (long)result);
    }
    printf("own: %d, turns: %d\n", own, turns);
    struct sigaction action = {.sa_handler = catch};
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1), kill(getpid(), SIGUSR1);
    action.sa_handler = jump;
    sigaction(SIGSEGV, &action, 0);
    int signal = sigsetjmp(back, 1);
    if (!signal) *(volatile int *)8 = 1;
    printf("caught: %d, jumped: %s\n", caught == 2 * SIGUSR1, signal == SIGSEGV ? "SIGSEGV" : "no");
    FILE *file = fopen("file", "w+");
    fprintf(file, "%5.2f|%-6s|%#x|%e\n", 3.14159, "left", 255, 1.4142);
    rewind(file);
    char line[100], word[10];
    double number;
    fgets(line, sizeof line, file);
    printf("%s%d\n", line, sscanf(line, "%lf|%9[a-z]", &number, word));
    struct stat status;
    printf("%d %ld %s\n", fstat(fileno(file), &status), (long)status.st_size, strerror(open("none", O_RDONLY) < 0 ? errno : 0));
    int ends[2], code;
    if (pipe(ends) || !fork()) return write(ends[1], "child", 5) == 5 ? 3 : 4;
    printf("%ld %.5s", (long)read(ends[0], word, 9), word);
    printf(" %d", wait(&code) > 0 && WIFEXITED(code) ? WEXITSTATUS(code) : -1);
    fflush(stdout);
    printf(" %d\n", system("exit 5") >> 8);
    FILE *command = popen("echo from a command", "r");
    printf("%s", fgets(line, sizeof line, command));
    printf("closed: %d\n", pclose(command));
    int sorted[] = {5, 2, 9, 1};
    qsort(sorted, 4, sizeof *sorted, by_number);
    char *pages = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'x', 1 << 20);
    char *room = realloc(memcpy(malloc(300000), pages, 300000), 5000000);
    time_t moment = 951782400;
    strftime(line, sizeof line, "%Y-%m-%d %a", gmtime(&moment));
    printf("%d %d %c %s %d %g\n", sorted[0], sorted[3], room[299999], line, (int)wcslen(L"wide"), strtod("1e-3", 0));
    struct timespec then, now, rest = {0, 2000000};
    clock_gettime(CLOCK_MONOTONIC, &then), nanosleep(&rest, 0), clock_gettime(CLOCK_MONOTONIC, &now);
    printf("slept: %d\n", (now.tv_sec - then.tv_sec) * 1000000000 + now.tv_nsec - then.tv_nsec >= 2000000);
    free(room);
    return 6;
}
END

run() { echo "$1: built, status $?"; ./$1 $1; echo "status $?"; }
title 'the usual library'; gcc-12 -c all.c -o usual.o; gcc-12 usual.o -o usual -pthread; run usual
title 'the usual library within the program'; gcc-12 usual.o -o static -static -pthread; run static
title 'musl'; gcc-12 -c all.c -o musl.o -specs $specs; gcc-12 musl.o -o musl -specs $specs; run musl
title 'musl within the program'; gcc-12 musl.o -o static-musl -specs $specs -static; run static-musl
for name in usual static musl static-musl; do ./$name same >said-$name; cmp said-usual said-$name && echo "$name: the same"; done
title 'the loader by itself'
/lib/ld-musl-aarch64.so.1 2>&1 | head -n 2; /lib/ld-musl-aarch64.so.1 ./musl loaded | head -n 1
/lib/ld-musl-aarch64.so.1 --list ./musl | sed 's/0x[0-9a-f]*/N/'
cat >plug.c <<'END'
int plugged(int n) { static int calls; return n * 2 + calls++; }
END
cat >load.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main() {
    void *library = dlopen("./plug.so", RTLD_NOW);
    int (*plugged)(int) = library ? (int (*)(int))dlsym(library, "plugged") : 0;
    printf("%s\n", library ? "loaded" : dlerror());
    if (plugged) printf("%d %d\n", plugged(4), plugged(4));
    printf("%s\n", dlopen("./none.so", RTLD_NOW) ? "there" : "no none.so");
}
END
gcc-12 -shared -fPIC plug.c -o plug.so -specs $specs; gcc-12 load.c -o load -specs $specs; ./load
LD_PRELOAD=./plug.so ./musl preloaded | head -n 1; LD_PRELOAD=./none.so ./load 2>&1 | head -n 1
