# The server memcached, with threads, asked by `nc` in its own language over the loopback interface and a Unix socket.

b=/bin/busybox
for applet in cat grep kill nc sed seq sort tr usleep wc; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
cd /tmp && $b mkdir -p /etc || exit 9
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
memcached -u root -p 11311 -U 0 -l 127.0.0.1 -t 4 -m 16 & server=$!
until echo quit | nc 127.0.0.1 11311 2>/dev/null; do usleep 10000; done
# Sends lines, of which the last is quit.
ask() { (printf "$@"; printf 'quit\r\n') | nc 127.0.0.1 11311 | tr -d '\r'; }

title values
ask 'set word 5 0 5\r\nhello\r\nget word\r\n'
ask 'append word 0 0 6\r\n there\r\nprepend word 0 0 3\r\n>> \r\nget word\r\nget none\r\n'
ask 'add word 0 0 1\r\nx\r\nadd new 0 0 1\r\nx\r\nreplace new 0 0 1\r\ny\r\nget word new\r\n'
ask 'set n 0 0 2\r\n41\r\nincr n 1\r\ndecr n 50\r\nincr word 1\r\nincr none 1\r\n'
ask 'gets n\r\ncas n 0 0 1 99999\r\n7\r\ndelete n\r\ndelete n\r\ntouch word 100\r\n'
ask 'set k 0 -1 1\r\nx\r\nget k\r\n'; ask 'set k 0 0 1\r\nxyz\r\n'; ask 'nonsense\r\nget\r\n'
ask 'mg word v f\r\nms meta 2\r\nhi\r\nmg meta v\r\nmd meta\r\nmg meta v\r\nmn\r\n'
ask 'verbosity 1\r\nflush_all\r\nget word\r\n'

title many clients
store() { seq $1 $2 | sed "s/\(.*\)/set key\1 0 0 5 noreply\r\nvalue\r/"; printf 'mn\r\nquit\r\n'; }
for n in 0 1 2 3 4 5 6 7; do (store $((n * 200 + 1)) $((n * 200 + 200)) | nc 127.0.0.1 11311 >stored$n) & done
while [ "$(cat stored? 2>/dev/null | grep -c MN)" != 8 ]; do usleep 10000; done
(seq 1600 | sed 's/\(.*\)/get key\1\r/'; printf 'quit\r\n') | nc 127.0.0.1 11311 | grep -c ^VALUE
ask 'stats\r\n' | grep -E ' (threads|curr_items|cmd_get|get_hits|get_misses|limit_maxbytes|cmd_flush) '

title a large value
(printf 'set big 0 0 500000\r\n'; $b head -c 500000 /dev/zero | tr '\0' x; printf '\r\nget big\r\nquit\r\n') |
    nc 127.0.0.1 11311 | wc
(printf 'set big 0 0 2000000\r\n'; $b head -c 2000000 /dev/zero; printf '\r\nget big\r\nquit\r\n') |
    nc 127.0.0.1 11311 | tr -d '\r' | $b head -n 3

title 'its end'
kill $server; wait $server; echo $?

title a Unix socket
memcached -u root -s /tmp/memcached.sock -a 700 -t 2 & server=$!
until [ -S /tmp/memcached.sock ]; do usleep 10000; done; $b stat -c %a /tmp/memcached.sock
kill -INT $server; wait $server; echo $?; memcached -l 1.2.3.4 -u root 2>&1; echo $?; memcached -u root -m x 2>&1; echo $?
