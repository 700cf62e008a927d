# Commands of Debian's coreutils, which are dynamic programs, in dash. All times are set, and nothing depends on the
# numbers of processes or of files.

# The sizes of directories are the file system's own business.
files_of() {
    while read -r line; do
        [ "${line#d}" = "$line" ] && [ "${line#total}" = "$line" ] && echo "$line"
    done
}
title() { echo "== $*"; }
mkdir -p /tmp/w && cd /tmp/w || exit 9
umask 022
export TZ=UTC LC_ALL=C

title text
printf '%s\n' pear apple fig apple banana >fruit
sort fruit; sort -ru fruit | tr '\n' ' '; echo; sort fruit | uniq -c; sort fruit | uniq -d
printf '10 b\n9 a\n1.5e1 c\n-3 d\n' >numbers; sort -g numbers; sort -k 2 numbers | cut -d ' ' -f 1
seq 1000 | sort -R --random-source=/test/coreutils.sh | sort -n | sha256sum
seq -w 8 2 12 | paste -sd +; seq 3 -1 1 | paste - fruit - ; seq -f '%.2f' 0 0.25 1 | tr '\n' ' '; echo
cut -c 1-3 fruit | head -n 2; printf 'a:b:c\nd:e:f\n' | cut -d : -f 1,3 --output-delimiter=/
echo 'Hello, World' | tr 'A-Za-z' 'N-ZA-Mn-za-m' | tr -d ',' | tr -s 'l'
printf 'a\tb\n' | expand | od -An -c; printf '        x\n' | unexpand -a | od -An -tx1
seq 12 | head -c 7 | od -c; seq 12 | tail -n 2; seq 12 | tail -n +11; seq 5 | tac; printf 'ab\ncd' | tac | wc -c
echo 'The quick brown fox jumps over the lazy dog and runs away' >sentence
fold -w 20 -s sentence; fmt -w 30 sentence; nl -ba -w 3 fruit; wc sentence fruit | tr -s ' '
printf '1\n2\n4\n' >a; printf '2\n3\n4\n' >b; comm a b; comm -12 a b
printf '1 one\n2 two\n' >left; printf '2 zwei\n3 drei\n' >right; join left right
join -a 1 -a 2 -e - -o 0,1.2,2.2 left right
numfmt --to=iec 1024 1500000 123456789; numfmt --from=si 1K 2.5M; factor 12 97 1234567890123 18446744073709551557
echo 'a b
b c
d b' | tsort; printf 'b\na\n' | shuf --random-source=/test/coreutils.sh -n 1 -i 5-5; pr -t -2 -l 3 fruit
ptx -w 40 fruit | head -n 2
split -b 20 sentence part.; ls part.*; cat part.* | cmp - sentence 2>/dev/null; cat part.* | cksum
csplit -s -f cut. fruit /fig/ '{*}'; head -n 9 cut.*; split -n l/2 -d fruit half.; wc -l half.* | tr -s ' '

title sums
for sum in md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum; do $sum sentence; done
sha256sum fruit sentence >sums; sha256sum -c sums; echo x >>fruit; sha256sum -c sums 2>/dev/null; echo $?
seq 30000 | sha256sum; echo -n 'encode me' | base64; echo ZW5jb2RlIG1l | base64 -d; echo; echo x | base32
echo hex | basenc --base16

title time and names
date -u -d @0; date -u -d '2024-02-29 12:34:56 + 1 year' +'%F %T %j %a %s'; date -u -d @1700000000 -R
date -d 'TZ="Asia/Tokyo" 2000-01-01' +%s
basename /usr/lib/x.so .so; dirname /usr/lib/x.so; realpath /bin/../bin/sort; realpath -m --relative-to=/usr /usr/a/b
pathchk -p 'a b'; echo $?
expr 3 + 4 \* 2; expr length abc : '.*'; expr abc : 'a\(.*\)'; expr 1 \> 2; echo $?
/usr/bin/printf '%05d|%-6s|%x|%o|%e|%q|%b\n' 42 ab 255 8 12345.678 "it's" 'a\tb'; /usr/bin/test 1 -lt 2 -a -f a; echo $?
/usr/bin/echo -e 'a\x41\n\c'; /usr/bin/[ a = b ]; echo $?; env -i A=1 B=2 env | sort; env -u HOME printenv HOME; echo $?
seq 3 | tee copy | paste -s; cat copy | paste -s; yes no | head -n 2; nproc; arch; uname -s; id; whoami; groups; tty <a
logname 2>/dev/null || echo no login

title files
mkdir -p d/e/f; touch -d '2020-03-04 05:06:07' d/old; touch -r d/old d/same; stat -c '%n %s %a %F %Y %h %U:%G' d/old
stat -c '%n %a %F %h' d
echo content >d/file; chmod 640 d/file; chmod u+x,g-r,o=r d/file; stat -c '%a %A' d/file; chmod 4755 d/file
stat -c %A d/file
ln d/file d/hard; ln -s file d/soft; ln -s nowhere d/broken; stat -c '%n %h %F' d/hard d/soft; readlink d/soft
readlink -f d/soft; cat d/soft
readlink -e d/broken; echo $?; ln d/file d/hard 2>&1; ln -sfn other d/soft; readlink d/soft; unlink d/soft
touch -d @86400 d/* d/e/f; touch -h -d @86400 d/broken; ls -l --time-style=full-iso d | files_of; ls -aF d; ls -R1 d
ls -Sr d/hard copy; ls missing; echo $?
cp -a d d2; ls -l --time-style=+%s d2 | files_of; stat -c %h d2/file; cp d/file d3; cmp d/file d3 2>/dev/null
cp -r d/e d/g; cp d d4 2>&1; cp -u a b; cat b | paste -s
mv d3 d/moved; mv d2 d/renamed; mv -n a fruit; ls d a; mv d d/e 2>&1; install -m 751 -D copy new/place/copy
stat -c %a new/place/copy
rm d/hard; rm d 2>&1; rmdir d 2>&1; rm -rf d/renamed new; rm -f missing; ls d; rmdir -p d/e/f 2>&1; mkdir d 2>&1
mkdir -m 700 p; stat -c %a p
truncate -s 10000 sparse; stat -c %s sparse; truncate -s -9990 sparse; od -An -c sparse
dd if=sentence of=out bs=7 skip=1 count=3 2>/dev/null; cat out; echo
dd if=/dev/zero of=out bs=4 seek=2 count=1 conv=notrunc 2>&1 | head -n 2; od -An -c out; mkfifo pipe; stat -c %F pipe
mknod pipe2 p; [ -p pipe2 ] && echo pipe
mktemp -d /tmp/XXXXXX >t; [ -d "$(cat t)" ] && rmdir "$(cat t)" && echo made; chown 7:8 copy; stat -c '%u %g' copy
sync copy; shred -u copy; ls copy 2>&1
dircolors -b | head -c 10; echo; du -b --apparent-size b | cut -f 1; stat -f -c %T /tmp; pwd; /bin/pwd

title processes
timeout 0.2 sleep 5; echo $?; timeout -s KILL 0.1 sleep 5 2>/dev/null; echo $?; timeout 5 true; echo $?; nice -n 5 nice
nohup echo kept 2>/dev/null; stdbuf -o0 echo unbuffered
sleep 0.1; false; echo $?; true | cat -A; printf 'a\tb\001\n' | cat -A; cat -n b | tail -n 1
sort missing; echo $?; head -n x a; echo $?; ls --wrong 2>&1 | head -n 1; cat . ; echo $?; echo done >&-
echo x | cat >/dev/full; echo $?
