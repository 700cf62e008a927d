# The secure shell of dropbear: its server and its client over the loopback interface, with keys made here. Commands, a
# shell on a pseudo-terminal, a file that is copied, ports that are passed on, and keys that are refused. `script` gives
# the client a terminal of its own. Keys and numbers are not shown.

b=/bin/busybox
for applet in cat cmp cut grep head kill ln ls md5sum mkdir nc rm sed seq sort tail touch tr uniq usleep wc wget; do
    eval "$applet() { $b $applet \"\$@\"; }"
done
title() { echo "== $*"; }
until_there() { n=0; until "$@" 2>/dev/null; do n=$((n + 1)); [ $n -lt 1000 ] || return 1; usleep 10000; done; }
ln -sf busybox /bin/sh
for applet in cat date id md5sum seq stty tr tty true; do ln -sf busybox /bin/$applet; done
umask 077
mkdir -p /tmp/d /etc/dropbear /root/.ssh /var/run /var/log && cd /tmp/d || exit 9
$b chmod 755 / /root; $b chmod 700 /root/.ssh
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd; echo 'root:x:0:' >/etc/group; echo /bin/sh >/etc/shells
echo 'root:*:19000:0:99999:7:::' >/etc/shadow
echo '127.0.0.1 localhost' >/etc/hosts

title keys
for kind in ed25519 ecdsa rsa; do
    dropbearkey -t $kind -f key-$kind >made 2>&1; echo $?
    grep -c '^ssh-\|^ecdsa-' made; $b stat -c '%n %a' key-$kind
    dropbearkey -y -f key-$kind | grep '^ssh-\|^ecdsa-' | cut -d ' ' -f 1,2 >public-$kind; cut -d ' ' -f 1 public-$kind
done
dropbearkey -t ed25519 -f key-ed25519 2>&1 | sed 's/[0-9][0-9]* bit/N bit/'; dropbearkey -t none -f x 2>&1 | head -n 1
dropbearkey -t ed25519 -f other >/dev/null 2>&1
cat public-ed25519 public-rsa >/root/.ssh/authorized_keys
echo "command=\"echo only this: \$SSH_ORIGINAL_COMMAND\",no-pty $(cat public-ecdsa)" >>/root/.ssh/authorized_keys

title a server
/usr/sbin/dropbear -F -E -s -p 127.0.0.1:2222 -P /tmp/d/pid -r key-ed25519 -r key-ecdsa -r key-rsa 2>log & server=$!
until_there [ -s pid ]; [ "$(cat pid)" = $server ] && echo 'its number is in the file'
client() { dbclient -y -y -p 2222 "$@" 2>said; status=$?; sed 's/^dbclient: *//; s/fingerprint.*/fingerprint/' said; echo "status $status"; }
until_there nc 127.0.0.1 2222 </dev/null | head -n 1 | tr -d '\r'
with="-i key-ed25519 root@127.0.0.1"

title commands
client $with 'echo "hello from $USER in $PWD"; id'
client $with 'echo out; echo err >&2; exit 7'
echo 'through the channel' | client $with 'tr a-z A-Z'
client -i key-rsa root@127.0.0.1 'tty; echo $SSH_CONNECTION | cut -d " " -f 1,3,4 2>/dev/null; echo $TERM'
client -i key-ecdsa root@127.0.0.1 'true and more'
client -i other root@127.0.0.1 true
client $with 'kill -TERM $$'
client -i key-ed25519 nobody@127.0.0.1 true
client -c aes128-ctr -m hmac-sha2-256 $with 'echo with another cipher'
client -c none $with true
dbclient -p 2999 $with true 2>&1 | sed 's/^dbclient: *//'

title bytes
seq 60000 >big; client $with 'cat >/tmp/d/copy' <big; cmp big copy && echo same
dbclient -y -y -p 2222 $with 'cat /tmp/d/big; echo end' </dev/null 2>/dev/null | md5sum; (cat big; echo end) | md5sum
for n in 1 2 3 4; do (dbclient -y -y -p 2222 $with "seq $n 30000 | md5sum" </dev/null >sum$n 2>/dev/null) & eval "p$n=\$!"; done
for n in 1 2 3 4; do eval "wait \$p$n"; done; cat sum?; seq 4 30000 | md5sum

title a terminal
# What a program types comes after the prompt, as a person would wait for it.
say() { usleep 3000000; for line; do printf '%s\r' "$line"; usleep 500000; done; }
shown() { tr -d '\r' <typescript | tr '\033' '~' | sed 's/~\[[0-9;]*[A-Za-z]//g; s,/dev/pts/[0-9]*,/dev/pts/N,'; }
rm -f typescript
say 'tty' 'stty size' 'echo $TERM' 'exit 5' |
    script -q -e -c "stty rows 33 cols 90; TERM=vt100 dbclient -y -y -p 2222 $with 2>/dev/null" typescript >/dev/null
echo $?; shown | grep -v '^Script'
rm -f typescript; touch started
say 'trap "echo caught" INT' 'cat' "$(printf '\003')" 'echo after' 'exit' |
    script -q -e -c "dbclient -t -y -y -p 2222 $with 2>/dev/null" typescript >/dev/null
echo $?; shown | grep -v '^Script' | grep -E '^(caught|after)'
client -t -i key-ecdsa root@127.0.0.1 x

title ports
mkdir www; echo '<p>behind</p>' >www/index.html
$b httpd -p 127.0.0.1:8080 -h /tmp/d/www
dbclient -y -y -N -p 2222 -L 8081:127.0.0.1:8080 -R 8082:127.0.0.1:8080 $with 2>/dev/null & forward=$!
until_there wget -q -O - http://127.0.0.1:8081/; until_there wget -q -O - http://127.0.0.1:8082/
wget -q -O - http://127.0.0.1:8081/none; echo $?
kill $forward; wait $forward; echo $?
dbclient -y -y -p 2222 -B 127.0.0.1:8080 $with </dev/null 2>/dev/null | head -n 1
printf 'GET / HTTP/1.0\r\n\r\n' | dbclient -y -y -p 2222 -B 127.0.0.1:8080 $with 2>/dev/null | tail -n 1

title the end
kill $server; wait $server; echo $?; $b test -e pid || echo 'its file is gone'
grep -E 'auth succeeded|Exit before|Bad|no matching|Login attempt' log | sed 's/^.*\] [A-Z][a-z][a-z] [0-9 :]*//; s/:[0-9][0-9]*$//; s/:[0-9][0-9]*>/>/; s/SHA256.*/SHA256/; s/md5.*/md5/' | sort | uniq -c
dbclient -y -y -p 2222 $with true 2>&1 | sed 's/^dbclient: *//'
