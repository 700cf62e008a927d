# The server nginx with two workers: files, ranges, compressed pages, rewritten paths, pages of another server, a new
# configuration while it runs, and its end.

b=/bin/busybox
for applet in cat cmp grep head kill ln md5sum mkdir nc rm sed seq sort tail tr usleep wc wget; do
    eval "$applet() { $b $applet \"\$@\"; }"
done
title() { echo "== $*"; }
# Repeats a command until it succeeds.
until_there() { n=0; until "$@" 2>/dev/null; do n=$((n + 1)); [ $n -lt 1000 ] || return 1; usleep 10000; done; }
ln -sf busybox /bin/sh
mkdir -p /tmp/www/sub /tmp/www/list /tmp/www/write /tmp/n /etc && cd /tmp/n || exit 9
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd; echo 'root:x:0:' >/etc/group
echo '<p>the index</p>' >../www/index.html
echo 'of the directory' >../www/sub/index.html
echo one >../www/list/one.txt; echo two >../www/list/two.txt; $b touch -d '2020-01-01 00:00:00' ../www/list/*
seq 100000 >../www/big.txt

configure() {
    cat >nginx.conf <<END
user root;
worker_processes 2;
pid /tmp/n/nginx.pid;
error_log /tmp/n/error.log notice;
events { worker_connections 128; }
http {
    log_format short '\$request_method \$uri \$status \$body_bytes_sent \$http_user_agent';
    access_log /tmp/n/access.log short;
    client_body_temp_path /tmp/n/body; proxy_temp_path /tmp/n/proxy; fastcgi_temp_path /tmp/n/fastcgi;
    uwsgi_temp_path /tmp/n/uwsgi; scgi_temp_path /tmp/n/scgi;
    types { text/html html; text/plain txt; }
    sendfile on; tcp_nopush on; keepalive_timeout 2; etag off; server_tokens off;
    upstream behind { server 127.0.0.1:8081; server unix:/tmp/n/second.sock backup; keepalive 4; }
    server {
        listen 127.0.0.1:8080; listen [::1]:8080; listen unix:/tmp/n/first.sock;
        root /tmp/www;
        error_page 404 /none.html;
        gzip on; gzip_min_length 100; gzip_types text/plain; gzip_http_version 1.0;
        location = /none.html { internal; return 404 "nothing here\n"; }
        location /old { return 301 /new; }
        location ~ ^/word/([a-z]+)/(\d+)\$ { return 200 "$1: \$1 and \$2\n"; }
        location /list/ { autoindex on; }
        location /behind/ { proxy_pass http://behind/; proxy_set_header X-Word plain; proxy_http_version 1.1; proxy_set_header Connection ""; }
        location /closed { deny all; }
        location /write/ { dav_methods PUT DELETE; client_max_body_size 1m; }
    }
    server {
        listen 127.0.0.1:8081; listen unix:/tmp/n/second.sock;
        location / { default_type text/plain; return 200 "behind: \$request_uri \$http_x_word\n"; }
        location /big.txt { root /tmp/www; }
    }
}
END
}
configure word
nginx='nginx -e /tmp/n/error.log -c /tmp/n/nginx.conf'
server=http://127.0.0.1:8080

title its configuration
$nginx -t; echo $?
sed 's/worker_processes 2/worker_processes two/' nginx.conf >wrong.conf
nginx -e /tmp/n/wrong.log -t -c /tmp/n/wrong.conf 2>&1 | grep -v '^$'; nginx -e /tmp/n/wrong.log -c /tmp/n/no.conf 2>&1

title files
$nginx; echo $?
until_there wget -q -O - $server/
wget -q -O - $server/sub/; wget -q -O - $server/sub; wget -q -O - 'http://[::1]:8080/sub/index.html'
wget -q -O big $server/big.txt; cmp big ../www/big.txt && echo same
head -c 1000 big >part; wget -q -c -O part $server/big.txt; cmp part big && echo continued
wget -q -O - $server/word/abc/42; wget -q -O - $server/behind/path?a=1
wget -q -O - $server/behind/big.txt | md5sum
wget -q -O - $server/list/ | grep -o '<a href.*'

title by hand
request() { printf "$@" | nc 127.0.0.1 8080 | tr -d '\r' | grep -a -v -E '^(Date|Last-Modified)'; }
request 'GET / HTTP/1.0\r\n\r\n'
request 'HEAD /big.txt HTTP/1.0\r\n\r\n'
request 'GET /big.txt HTTP/1.1\r\nHost: x\r\nRange: bytes=10-25\r\nConnection: close\r\n\r\n'
request 'GET /big.txt HTTP/1.1\r\nHost: x\r\nRange: bytes=0-3,7-9\r\nConnection: close\r\n\r\n' | sed 's/[0-9]\{20\}/BOUNDARY/'
request 'GET /missing HTTP/1.0\r\n\r\n'
request 'GET /closed HTTP/1.0\r\n\r\n' | head -n 1
request 'GET /old HTTP/1.0\r\n\r\n' | grep -E '^(HTTP|Location)'
request 'BREW / HTTP/1.0\r\n\r\n' | head -n 1
request 'nonsense\r\n\r\n' | head -n 1
request 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /sub/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
printf 'GET /big.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n' | nc 127.0.0.1 8080 | sed '1,/^\r$/d' | $b gzip -dc | md5sum
request 'PUT /write/new.txt HTTP/1.0\r\nContent-Length: 6\r\n\r\nhello\n' | head -n 1; cat ../www/write/new.txt
request 'DELETE /write/new.txt HTTP/1.0\r\n\r\n' | head -n 1; $b ls ../www/write

title many at once
for n in 1 2 3 4 5 6 7 8; do (wget -q -O - $server/big.txt | md5sum >sum$n) & eval "p$n=\$!"; done
for n in 1 2 3 4 5 6 7 8; do eval "wait \$p$n"; done
cat sum? | sort | $b uniq -c

title a new configuration
configure sentence
$nginx -s reload; echo $?
answer() { wget -q -O - $server/word/abc/42 | grep -q sentence; }
until_there answer; echo $?
$b mv access.log first.log; kill -USR1 $(cat nginx.pid); until_there [ -f access.log ]
reopened() { wget -q -O - $server/ >/dev/null; grep -q 'GET /index.html 200' access.log; }
until_there reopened; echo $?; grep -v sentence first.log | grep -c big.txt; head -n 3 first.log

title its end
old=$(cat nginx.pid); $nginx -s quit; until_there [ ! -e nginx.pid ]; until_there eval "! kill -0 $old"; echo $?
wget -q -O - $server/; echo $?; $nginx -s quit 2>&1 | sed 's/^.*\[/[/'
grep -c 'signal process started' error.log; grep -E 'emerg|alert|crit' error.log
# How often signals come that the others cause, depends on who is first.
sed 's/^[^[]*\[\([a-z]*\)\] [0-9#]*: //' error.log | grep -E '^(signal [0-9]|gracefully|exiting|exit|reconfiguring)' |
    grep -v -E 'SIGCHLD|SIGIO' | sed 's/ from.*//' | sort | $b uniq -c
