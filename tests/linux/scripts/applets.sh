# Further applets of busybox, most of which run in the shell's own process or call little more than they need: what
# busybox.sh leaves out and can be said of any machine.

b=/bin/busybox
title() { echo "== $*"; }
applets="
    arch base64 bzcat bzip2 cat chmod cmp cp cut dos2unix ed egrep false fallocate fgrep find free grep groups gunzip gzip head
    hostid ionice kill killall less link linux64 ln logname ls lzcat lzma md5sum mkdir mknod mkpasswd mkswap more mv od
    pidof printf ps pwd readlink renice rm run-parts sed seq setsid shred sleep sort start-stop-daemon stat sync sysctl
    tail taskset tee telnet test timeout touch tr true ts tty uname uniq unix2dos unexpand unlink unlzma unxz uptime usleep wc
    watch which whoami xargs xz xzcat zcat
"
for applet in $applets; do name=$(echo $applet | $b tr - _); eval "$name() { $b $applet \"\$@\"; }"; done
ln -sf busybox /bin/sh; ln -sf busybox /bin/cat; ln -sf busybox /bin/sleep
mkdir -p /tmp/w /etc && cd /tmp/w || exit 9
umask 022
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd; echo 'root:x:0:' >/etc/group

title 'true and false'
true; echo $?; false; echo $?; $b [ 1 = 1 ]; echo $?; $b [ 1 = 2 ]; echo $?; $b [[ a = b ]]; echo $?
$b [ -e /tmp ] && echo there; $b [ 1 = 1 2>&1; echo $?; test -d /tmp -a ! -f /tmp; echo $?; test 3 -lt 10 && echo less
$b | head -n 1; $b none 2>&1; echo $?; $b --list | grep -c '^[a-z]*$'

title links and nodes
echo one >a; link a b; stat -c '%h %s' a b; unlink a; ls; unlink a 2>&1; link none c 2>&1; ln -s b s; ln -s s t; readlink -f t
mknod pipe p; mknod null c 1 3; mknod disk b 7 0; stat -c '%F %t %T' pipe null disk; echo lost >null; cat null; mknod x q 2>&1 | head -n 1
mv b c; mkdir d; mv c d; find d; rm -r d; rm none 2>&1; rm -f none; touch -t 202001020304.05 f; stat -c %y f | cut -c 1-19; chmod u=rwx,go= f
stat -c %A f; chmod -v g+s,o+t f; mkdir -p -m 700 p/q/r; stat -c %a p p/q/r; cp -r p p2; find p2 | sort; cp p x 2>&1

title bytes
seq 1000 >big; base64 big | md5sum; base64 big | base64 -d | cmp - big && echo same; printf 'abc' | base64
xz -k big 2>&1; for how in gzip bzip2; do $how -k big; done; ls big*; lzma -h 2>&1 | head -n 1; zcat big.gz | cmp - big && echo same
bzcat big.bz2 | cmp - big && echo same
echo '/Td6WFoAAATm1rRGAgAhARwAAAAQz1jMAQAFaGVsbG8KAAAAWm4TCAXhP6UAAR4GwS9f2R+2830BAAAAAARZWg==' | base64 -d >h.xz
xzcat h.xz 2>&1; unxz -c h.xz 2>&1 | md5sum; unlzma -c big 2>&1; echo $?
fallocate -l 5000 room; stat -c '%s' room; shred -n 1 -u room; ls room 2>&1; shred -z -n 1 f; $b dd if=/dev/zero of=zero bs=1k count=3 2>&1 | head -n 2
mkswap zero 2>&1; echo $?; $b fallocate -o 10 -l 10 f; stat -c %s f

title lines
printf 'a\r\nb\r\n' >dos; dos2unix dos; od -c dos; unix2dos dos; od -c dos; printf 'a       b\n        c\n' | unexpand -a | od -c
printf 'one\ntwo\nthree\n' >l; printf '2s/two/TWO/p\n1,2p\n$a\nlast\n.\nw\nq\n' | ed l; cat l; printf 'x\nq\n' | ed none 2>&1
egrep 'one|last' l; fgrep -v o l; echo 'no o' | tee t1 t2; cat t1 t2; echo more | tee -a t1 >/dev/null; cat t1; less l | head -n 2; more l | wc -l
printf 'a b\n' | xargs -n 1; printf 'x\ny\n' | ts '[N]' | cut -c 1-5; yes() { $b yes "$@"; }; yes y | head -n 1000 | uniq -c | sed 's/^ *//'

title who and where
whoami; groups; logname 2>&1 | sed 's/^.*: //'; arch; linux64 $b uname -m; pwd; cd /; pwd; cd /tmp/w; which sh none; echo $?; hostid | wc -c
$b env -i X=1 $b env; uname -a | cut -d ' ' -f 1,13-; $b tty </dev/null; $b who; $b users 2>/dev/null; $b last 2>&1 | head -n 1
mkpasswd -m sha512 -S abcdefgh secret; mkpasswd -m md5 -S abcdefgh secret; mkpasswd -m sha256 -S abcdefgh secret; $b id root; $b id none 2>&1
sysctl -n kernel.ostype kernel.osrelease 2>&1 | head -n 1; sysctl none.such 2>&1; $b hostname | wc -l; $b nproc; $b id -Gn

title processes
number() { sed 's/\(pid\|process\) [0-9]*/\1 N/; s/([0-9]*)/(N)/g'; }
/bin/sleep 100 & first=$!; /bin/sleep 100 & second=$!; usleep 10000
pidof sleep | wc -w; ps | grep -c '[s]leep 100'; ps -o comm,args | grep sleep; kill -l 9; kill -l TERM; kill -0 $first; echo $?
kill -STOP $first; usleep 10000; ps -o pid,stat | grep "^ *$first " | sed 's/[0-9][0-9]*/N/'; kill -CONT $first
killall -USR1 sleep; wait $first; echo $?; wait $second; echo $?; killall none 2>&1; echo $?; kill -0 $first 2>&1 | number
renice -n 3 -p $$ 2>&1; ps -o nice,comm | grep busybox | sort -u; ionice -c 2 -n 3 $b ionice 2>&1; ionice 2>&1; taskset 1 $b taskset -p $$ 2>&1 | number
setsid $b sh -c 'echo "a session"'; timeout -s INT 0.1 sleep 9; echo $?; timeout 5 $b sh -c 'exit 3'; echo $?
time() { :; }; $b time -f %x $b false 2>&1; $b sh -c '$PPID' 2>/dev/null; $b setsid -c $b true; echo $?
start_stop_daemon -S -b -m -p /tmp/w/daemon -x /bin/sleep -- 50; cat daemon | grep -c '^[0-9]*$'; start_stop_daemon -K -t -p /tmp/w/daemon -x /bin/sleep | number; echo $?
start_stop_daemon -K -q -p /tmp/w/daemon; echo $?; usleep 50000; start_stop_daemon -K -p /tmp/w/daemon 2>&1 | number; echo $?
mkdir parts; for n in 2 1; do printf "#!/bin/sh\necho part $n \$1\n" >parts/0$n; done; chmod 755 parts/0?; echo x >parts/not; run_parts --test parts; run_parts -a arg parts

title figures of the system
free | head -n 1; free | $b awk 'NR == 2 { print NF, ($2 > 0) }'; uptime | grep -c 'load average: [0-9.]*, [0-9.]*, [0-9.]*'
$b df /tmp | head -n 1; $b df /tmp | wc -l; $b top -b -n 1 | grep -c -E '^(Mem|CPU|Load)'; 
$b watch -n 1 -t $b echo seen 2>&1 | head -n 1 | tr '\033' '~' & w=$!; usleep 100000; kill $w 2>/dev/null; $b cat /proc/self/comm
