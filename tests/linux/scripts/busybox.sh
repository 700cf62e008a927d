# Applets of busybox, in its own shell, where most of them run in a process of their own.

title() { echo "== $*"; }
b=/bin/busybox
applets="
    awk basename bc bunzip2 bzip2 cat cmp cp cpio crc32 cut date dc dd diff dirname expand expr factor
    find fold getopt grep gunzip gzip head hexdump ln ls md5sum mkdir mv nl od paste patch printf
    readlink realpath rev rm rmdir sed seq sha1sum sha256sum shuf sort stat strings tac tail tar timeout
    touch tr truncate uniq usleep uudecode uuencode wc xargs xxd yes
"
for applet in $applets; do
    eval "$applet() { $b $applet \"\$@\"; }"
done
# Some call others by their paths.
ln -s /bin/busybox /bin/sh; ln -s /bin/busybox /bin/gzip
mkdir -p /tmp/w && cd /tmp/w || exit 9
umask 022
export TZ=UTC

title awk
seq 10 | awk '{ s += $1; p[$1 % 3] = p[$1 % 3] " " $1 } END { print s; for (i = 0; i < 3; i++) print i ":" p[i] }'
echo 'key=value;other=thing' | awk -F '[=;]' '{ print $4, NF; sub(/thing/, "&s"); print;
    print toupper(substr($0, 5, 5)), length }'
awk 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } BEGIN { print fib(15);
    printf "%5.2f|%-5s|%03d|%c|%x\n", 3.14159, "ab", 7, 65, 255 }'
awk 'BEGIN { while (("echo one; echo two" | getline line) > 0) print "got " line; print "x" | "cat"; close("cat");
    exit 3 }'
echo $?
awk 'BEGIN { n = split("a b c", parts); print n parts[3]; print match("foobar", /o+/), RSTART, RLENGTH;
    print substr("hello", 2, 3) index("hello", "l"); gsub(/l/, "L", x); print 2 * 10, int(7.9), 1e6, 0.1 + 0.2 }'

title sed and grep
seq 12 | sed -n '3,5p;$p'; seq 5 | sed '2d;s/4/four/;1i\
first' ; echo 'hello world' | sed -E 's/(\w+) (\w+)/\2 \1/;y/lo/01/'; seq 6 | sed 'N;s/\n/-/'; seq 4 | sed '1!G;h;$!d'
printf 'one\ntwo\nthree\nTWO\n' >words; grep -n t words; grep -ci two words; grep -v e words; grep -o 'e\+' words
grep -E '^(one|TWO)$' words; grep -q four words; echo $?
sed -i.bak 's/one/ONE/' words; cat words words.bak | sort -u; grep -r -l ONE . ; echo 'aXbXc' | sed 's/X/\n/2'
echo abc | sed -e ':a;s/^\(.\{1,5\}\)$/ \1/;ta'

title files
mkdir -p t/a/b t/c; touch t/a/1 t/a/b/2 t/c/3.txt; ln -s ../a/1 t/c/link; find t | sort
find t -type f -name '[0-9]' | sort; find t -type l; find t -name '*.txt' -exec basename {} .txt \;
find t -type f | sort | xargs -n 2 echo; find t -type f -print0 | xargs -0 ls | wc -l
seq 5 | xargs -I N echo 'item N' | tail -n 1; find t -depth -name b -exec rm -r {} +; find t -maxdepth 1 | sort
echo 'a b' | xargs -t echo 2>&1
touch -d '2021-02-03 04:05:06' t/a/1 words; ls -l --full-time words; stat -c '%n %s %a %Y' words
chmod 600 words 2>/dev/null || $b chmod 600 words; stat -c %a words; cp -a words copy; stat -c '%a %Y' copy
readlink t/c/link; realpath t/c/link; $b test -L t/c/link && echo link; cmp words words.bak
$b du -s missing 2>/dev/null || echo missing

title archives
seq 5000 >big; tar cf t.tar t big; tar tf t.tar | sort; mkdir x; tar xf t.tar -C x; cmp big x/big && echo same
tar cf - t | tar xf - -O | wc -c; tar czf t.tgz t; tar tzf t.tgz | wc -l
gzip -k big; gzip -t big.gz && zcat() { $b zcat "$@"; }; zcat big.gz | md5sum; gunzip -c big.gz | cmp - big && echo same
bzip2 -k big; bunzip2 -c big.bz2 | sha256sum; ls big.gz big.bz2
find t | sort | cpio -o -H newc >t.cpio 2>/dev/null; cpio -t <t.cpio 2>/dev/null; mkdir y
(cd y; cpio -id <../t.cpio 2>/dev/null); find y | wc -l; gzip -d <words 2>&1 | tail -n 1

title differences
seq 10 >one; seq 10 | sed 's/^5$/five/;8d' >two; diff one two; echo $?; diff -u -L one -L two one two >patch.diff
cat patch.diff; patch one patch.diff; cmp one two && echo patched; patch -R one patch.diff >/dev/null
seq 10 | cmp - one && echo reversed

title sums and bytes
for sum in md5sum sha1sum sha256sum sha512sum sha3sum crc32; do $b $sum big; done; md5sum big two >sums; md5sum -c sums
printf 'bytes\0\377\n' >bytes; od -c bytes; od -An -tx1 bytes; hexdump -C bytes; xxd bytes
xxd -p bytes | xxd -r -p | cmp - bytes && echo same; strings -n 4 bytes; uuencode -m bytes x
uuencode bytes x | uudecode -o back; cmp back bytes && echo back
head -c 3 big | od -An -b; tail -c 4 big | od -An -d; dd if=big bs=1k skip=1 count=2 2>/dev/null | sha1sum
tr a-y b-z <two | tail -n 3

title sums by hand
echo '2^100; scale=20; 22/7; sqrt(2); ibase=16; FF' | bc
printf 'define f(n) { if (n < 2) return 1; return n * f(n - 1); }\nf(25)\n' | bc
dc -e '2 3 ^ p 10 k 1 3 / p [la1+dsa5>x]dsx0sax la p'; expr 6 \* 7; factor 360; seq -s, 5; echo 123456789 | rev
shuf -i 3-3

title order
printf '3 c\n1 a\n2 b\n10 d\n' | sort; printf '3 c\n1 a\n2 b\n10 d\n' | sort -n -k 1; printf 'b\na\nb\n' | sort -u | tac
printf 'a\na\nb\n' | uniq -c; printf '1.10\n1.9\n' | sort -V; echo 'one two three four' | fold -w 9 -s
printf 'a\nb\n' | nl; printf 'a\nb\nc\n' | paste - - -; cut -c 2 two | head -n 3; tail -n 2 two | expand

title the rest
date -u -d @86399 +'%F %T'; date -u -d '2000-02-29 00:00' +%s; getopt -o ab: -- -a -b x y; env -i A=b $b env
timeout 0.1 $b sleep 9; echo $?; usleep 1000; $b sleep 0.1; printf '%s-%03d\n' a 7; $b uname -s; $b nproc
$b tty </dev/null; $b id -u
yes | head -n 2; $b nohup echo kept 2>/dev/null; $b setsid $b echo session; $b mktemp -u /tmp/x.XXXXXX | cut -c 1-7
$b dirname /a/b/c; $b cal 2 2024; $b ipcalc -n 10.1.2.3 255.255.0.0; $b ascii 2>/dev/null | head -n 2; ls nothing
echo $?
echo 'int main' >f.c; ar -r lib.a f.c big 2>/dev/null; ar -t lib.a 2>/dev/null; $b ttysize 2>/dev/null >/dev/null
$b mkfifo p; (cat p &); echo through >p; $b usleep 50000; mkdir m; $b chown 3:4 m; stat -c '%u:%g' m; $b chgrp 5 m
stat -c %g m; truncate -s 5 f.c; cat f.c; echo; rmdir m t 2>&1; $b sync
