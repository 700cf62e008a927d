# Servers and clients of busybox over the loopback interface. Who waits does so for an event, or asks again: nothing
# here depends on how long something takes.

b=/bin/busybox
for applet in cat cmp cut grep head kill ln logger md5sum mkdir nc rm sed seq sort tail tr usleep wc wget; do
    eval "$applet() { $b $applet \"\$@\"; }"
done
title() { echo "== $*"; }
# Repeats a command that fails until its server is there.
until_there() { n=0; until "$@" 2>/dev/null; do n=$((n + 1)); [ $n -lt 500 ] || return 1; usleep 10000; done; }
ln -s busybox /bin/sh
ln -s busybox /bin/cat
mkdir -p /tmp/www/cgi-bin /tmp/www/secret /tmp/www/sub /tmp/w && cd /tmp/w || exit 9
umask 022

title a web server
echo '<p>the index</p>' >../www/index.html
echo 'of the directory' >../www/sub/index.html
echo hidden >../www/secret/file.txt
seq 100000 >../www/big.txt
cat >../www/cgi-bin/show <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
echo "$REQUEST_METHOD $QUERY_STRING from $REMOTE_ADDR, ${CONTENT_LENGTH:-no} bytes, $HTTP_X_WORD"
cat
END
$b chmod 755 ../www/cgi-bin/show
printf '/secret:ann:word\nE404:/tmp/www/none.html\n.txt:text/plain\n' >httpd.conf
echo 'nothing here' >../www/none.html
$b httpd -p 127.0.0.1:8080 -h /tmp/www -c /tmp/w/httpd.conf
$b httpd -f -p '[::1]:8082' -h /tmp/www & six=$!
server=http://127.0.0.1:8080
wget -q -O - $server/
wget -q -O - $server/sub/
wget -q -O - $server/sub
wget -q -O big $server/big.txt; cmp big ../www/big.txt && echo same
until_there wget -q -O - 'http://[::1]:8082/sub/index.html'

title errors
wget -O - $server/missing 2>&1 | grep -v -i connecting; wget -q -O - $server/missing; echo $?
wget -q -O - $server/secret/file.txt; echo $?
wget -q -O - http://ann:wrong@127.0.0.1:8080/secret/file.txt; echo $?
wget -q -O - http://ann:word@127.0.0.1:8080/secret/file.txt; echo $?
wget -q -O - http://127.0.0.1:8099/; echo $?
wget -q -O - $server/../../etc/passwd; echo $?

title programs behind the server
wget -q -O - --header 'X-Word: plain' "$server/cgi-bin/show?a=1&b=2"
wget -q -O - --post-data 'some=data' "$server/cgi-bin/show"
wget -q -O - --post-file big "$server/cgi-bin/show" | md5sum

title by hand
request() { printf "$@" | nc 127.0.0.1 8080 | tr -d '\r' | grep -v -E '^(Date|Last-Modified|ETag)'; }
request 'GET / HTTP/1.0\r\n\r\n'
request 'HEAD /none.html HTTP/1.1\r\nHost: x\r\n\r\n'
request 'GET /big.txt HTTP/1.1\r\nRange: bytes=10-25\r\n\r\n'
request 'BREW / HTTP/1.0\r\n\r\n'
request 'nonsense\r\n\r\n'
head -c 1000 ../www/big.txt >part; wget -q -c -O part $server/big.txt; cmp part ../www/big.txt && echo continued

title many at once
for n in 1 2 3 4 5 6 7 8; do (wget -q -O - $server/big.txt | md5sum >sum$n) & eval "p$n=\$!"; done
for n in 1 2 3 4 5 6 7 8; do eval "wait \$p$n"; done
cat sum? | sort | $b uniq -c

title connections
# An input without an end: an `nc` whose peer has nothing more to send ends at once, with what it has not sent yet.
$b mkfifo open; exec 9<>open
nc -l -p 7000 >got <&9 & l=$!
until_there eval 'echo "through the network" | nc 127.0.0.1 7000'; wait $l; cat got
nc -l -p 7001 -e tr a-z A-Z & l=$!
until_there eval 'echo "louder, please" | nc 127.0.0.1 7001'; wait $l
nc -l -p 7002 <../www/big.txt >/dev/null & l=$!
until_there eval 'nc 127.0.0.1 7002 <&9 >big2'; wait $l; cmp big2 big && echo same
nc -ll -p 7003 -e sh -c 'read name; echo "hello, $name, from $$" | sed "s/[0-9]*$//"' & l=$!
for name in ann bob cy; do until_there eval "echo $name | nc 127.0.0.1 7003"; done
kill $l; wait $l; echo $?
nc 127.0.0.1 7999 </dev/null; echo $?

title a log
$b syslogd -n -O /tmp/w/log -S & l=$!
until_there eval '[ -S /dev/log ] || [ -L /dev/log ]'
logger -t first 'a message'; logger -p user.err -t second 'another'; echo 'from a pipe' | logger -t third
until_there eval '[ "$(grep -c -E "first|second|third" log)" = 3 ]'
grep -E 'first|second|third' log | sed 's/^.*\(\(first\|second\|third\).*\)/\1/'
kill $l; wait $l; echo $?

kill $six; wait $six; echo $?
