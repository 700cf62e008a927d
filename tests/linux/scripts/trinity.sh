# Trinity makes random system calls as an unprivileged user. Afterwards files and processes of other users must be as
# before, and memory, processes, pipes, sockets and clocks must still work. The number of calls and trinity's exit code
# are not compared: it may end itself.

b=/bin/busybox
for applet in cat chmod chown grep head kill ls tail mkdir nc rm seq sha256sum sleep sort timeout wc; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
nobody() { perl -e '$) = "65534 65534"; $( = 65534; $< = $> = 65534; exec @ARGV' "$@"; }

mkdir -p /tmp/play /srv/kept /dev/shm && chown 65534:65534 /tmp/play && chmod 700 /srv/kept || exit 9
for file in 1 2 3; do seq $file 5000 >/srv/kept/$file; done
sha256sum /srv/kept/* >/srv/sums
$b sleep 100000 & keeper=$!

state() {
    sha256sum -c /srv/sums && ls -l /srv/kept | $b awk '{ print $1, $3, $4, $5 }'
    kill -0 $keeper && echo "the sleeper sleeps"
    seq 100000 | sort -rn | head -n 1
    echo through a socket | nc -l -p 7777 & sleep 1; nc 127.0.0.1 7777 </dev/null; wait $!
    $b dd if=/dev/zero of=/srv/large bs=1M count=20 2>/dev/null; ls -l /srv/large | $b awk '{ print $5 }'; rm /srv/large
}

# Prints whether enough calls were made; trinity's last line has their number.
made() { tail -n 1 /tmp/play/out | $b awk '/Ran [0-9]+ syscalls/ { count = $3 } END { print (count < 1000 ? "few calls: " count : "calls by the thousand") }'; }

title before; state
for seed in 1 2 3; do
    title "seed $seed"
    # Without this option, trinity ends on Linux, which lacks some protocols of its sockets.
    (cd /tmp/play && nobody $b timeout -s KILL 600 /usr/bin/trinity -q -l off -s $seed -C 2 -T DIE --disable-fds=sockets -N ${1:-2000} >out 2>&1)
    made
    # Ends processes of the user that are left.
    nobody $b kill -KILL -1; sleep 1
    state
done
