# Debian's compiler, assembler, linker and `make` build programs of C, and these run.

b=/bin/busybox
for applet in cat grep mkdir rm sed touch; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
for applet in sh cat rm touch; do $b ln -sf busybox /bin/$applet; done
mkdir -p /tmp/w && cd /tmp/w || exit 9
cc=gcc-12
# Colours would be shown as what they are made of.
export GCC_COLORS=

title hello
cat >hello.c <<'END'
#include <stdio.h>
int main(int count, char **arguments) { printf("hello, %s\n", count > 1 ? arguments[1] : "world"); return count; }
END
$cc hello.c -o hello; echo $?; ./hello; echo $?; ./hello you; echo $?
$cc -O2 -Wall -S hello.c -o hello.s; grep -c main hello.s; $cc -E hello.c | grep -c 'extern int printf'
$cc -O2 -c hello.s -o hello.o; $cc hello.o -o hello2; ./hello2 again

title mistakes
echo 'int main() { return x; }' >wrong.c; $cc wrong.c; echo $?
echo 'int f(); int main() { return f(); }' >link.c; $cc link.c 2>&1 | grep -o 'undefined reference.*'; $cc none.c; echo $?

title several files
mkdir p; cd p
cat >Makefile <<'END'
CC = gcc-12
CFLAGS = -O2 -g -Wall -pthread
program: main.o sum.o libwords.a
	$(CC) $(CFLAGS) -o $@ main.o sum.o -L. -lwords -lm
libwords.a: words.o
	ar rcs $@ $^
%.o: %.c all.h
	$(CC) $(CFLAGS) -c $<
clean:
	rm -f *.o *.a program
.PHONY: clean
END
cat >all.h <<'END'
double sum(int threads, int each);
const char *word(int index);
END
cat >sum.c <<'END'
#include <math.h>
#include <pthread.h>
#include "all.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double total;
static void *add(void *count) {
    for (int i = 1; i <= *(int *)count; i++) {
        pthread_mutex_lock(&lock);
        total += floor(sqrt(i));
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
double sum(int threads, int each) {
    pthread_t all[16];
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, add, &each);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    return total;
}
END
cat >words.c <<'END'
#include "all.h"
const char *word(int index) { static const char *words[] = {"zero", "one", "two"}; return words[index % 3]; }
END
cat >main.c <<'END'
#include <stdio.h>
#include "all.h"
int main(void) { printf("%s %.1f\n", word(4), sum(4, 1000)); return 0; }
END
make; echo $?; ./program; make; touch -d '2020-01-01' words.o; make
make -n clean; make clean; make -j 4 2>&1 | $b sort; ./program; echo 'broken(' >>sum.c; make 2>/dev/null; echo $?
make none; echo $?; ar t libwords.a; $b strings program | grep -c '^words.c$'
