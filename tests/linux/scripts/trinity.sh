# Trinity makes random system calls as a user who may do little. Files and processes of others are as before afterwards,
# and what one needs to go on is there: memory, processes, pipes, sockets, time. How many calls trinity made is not
# compared, nor what became of it: it may end itself.

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

# Prints whether as many calls were made as a run has at least; their number is on the last line.
made() { tail -n 1 /tmp/play/out | $b awk '/Ran [0-9]+ syscalls/ { count = $3 } END { print (count < 1000 ? "few calls: " count : "calls by the thousand") }'; }

title before; state
for seed in 1 2 3; do
    title "seed $seed"
    # Its own making of sockets ends it on Linux, where some protocols are missing.
    (cd /tmp/play && nobody $b timeout -s KILL 600 /usr/bin/trinity -q -l off -s $seed -C 2 -T DIE --disable-fds=sockets -N ${1:-2000} >out 2>&1)
    made
    # The rest of the user's processes.
    nobody $b kill -KILL -1; sleep 1
    state
done
