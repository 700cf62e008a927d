# The server redis, asked over the loopback interface and a Unix socket: its types, transactions, messages, copies of
# the data that children write, and its benchmark, of which only the names are shown.

b=/bin/busybox
for applet in cat cut grep kill ls mkdir rm sed seq sort tr usleep wc; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
mkdir -p /tmp/data && cd /tmp/data || exit 9
port=6380
# At its start it looks into /proc/self/smaps for a mistake of kernels.
start() {
    redis-server --port $port --unixsocket /tmp/redis.sock --dir /tmp/data --daemonize no --save '' --loglevel warning \
        --repl-diskless-sync-delay 0 "$@" >>/tmp/redis.log 2>&1 & server=$!
    until redis-cli -p $port ping >/dev/null 2>&1; do usleep 10000; done
}
ask() { redis-cli -p $port "$@" 2>&1; }
local_ask() { redis-cli -s /tmp/redis.sock "$@" 2>&1; }
start

title strings
ask ping; ask set word hello; ask get word; ask append word ' there'; ask strlen word; ask getrange word 0 4
ask set counter 41; ask incr counter; ask incrbyfloat counter 0.5; ask get missing; ask mset a 1 b 2 c 3
ask mget a b nothing c; ask setnx a 9; ask setbit bits 7 1; ask bitcount bits; ask del a nothing; ask type word
ask set late x px 100000; ask persist late; ask ttl late; ask expire late 1000; ask exists late word nothing

title 'lists, hashes, sets'
local_ask rpush list one two three; local_ask lpush list zero; local_ask lrange list 0 -1; local_ask lpop list
local_ask linsert list before two between; local_ask lset list 0 ONE; local_ask lrange list 0 -1; local_ask llen list
local_ask hset hash name ann age 30; local_ask hget hash name; local_ask hincrby hash age 2; local_ask hgetall hash
local_ask sadd set a b c a; local_ask sismember set b; local_ask scard set; local_ask sadd other b c d
local_ask sinter set other | sort; local_ask sunionstore both set other
local_ask zadd score 3 c 1 a 2 b; local_ask zrange score 0 -1 withscores; local_ask zrank score c
local_ask zrangebyscore score 2 +inf; local_ask pfadd log a b c a; local_ask pfcount log
local_ask xadd stream 1-1 key value; local_ask xlen stream; local_ask xrange stream - +
local_ask lpush word x; local_ask nonsense; local_ask incr word

title transactions and scripts
printf 'multi\nset x 1\nincr x\nget x\nexec\nmulti\nset x 9\ndiscard\nget x\n' | ask
printf 'multi\nincr word\nset y 1\nexec\nmulti\nnonsense\nexec\n' | ask
ask eval 'local n = redis.call("incr", KEYS[1]); return {n, ARGV[1], #ARGV}' 1 x arg
ask eval 'return redis.call("lpush", "word", 1)' 0 | cut -c 1-60
seq 1000 | sed 's/\(.*\)/set key:\1 value\1/' | ask | sort | $b uniq -c; ask dbsize; ask get key:777
printf '*3\r\n$3\r\nset\r\n$3\r\nraw\r\n$2\r\nok\r\n*2\r\n$3\r\nget\r\n$3\r\nraw\r\n*1\r\n$4\r\nquit\r\n' |
    $b nc 127.0.0.1 $port | tr -d '\r'

title messages
for n in 1 2 3; do (ask subscribe news >heard$n & echo $! >pid$n); done
(ask psubscribe 'n*' >heard4 & echo $! >pid4)
until [ "$(ask pubsub numsub news | $b tail -n 1)" = 3 ] && [ "$(ask pubsub numpat)" = 1 ]; do usleep 10000; done
ask publish news first; ask publish news second; ask publish none x
for n in 1 2 3 4; do while ! grep -q second heard$n; do usleep 10000; done; kill $(cat pid$n); done
cat heard1; cat heard4 | $b tail -n 4; cat heard1 heard2 heard3 | grep -c first
(ask blpop queue 0 >popped; echo popped >>popped) & waiter=$!
until [ "$(ask info clients | grep blocked_clients | tr -dc 0-9)" = 1 ]; do usleep 10000; done
ask rpush queue job; wait $waiter; cat popped

title copies
saved() { ask info persistence | tr -d '\r' | grep -E '^rdb_(bgsave_in_progress|last_bgsave_status|saves)'; }
ask debug sleep 0 | cut -c 1-20
ask bgsave; while saved | grep -q in_progress:1; do usleep 10000; done; saved; ls
ask set word changed; ask bgrewriteaof
while ask info persistence | grep -q aof_rewrite_in_progress:1; do usleep 10000; done; ls appendonlydir
# Whether the shell tells of it depends on when it notices.
kill -9 $server; wait $server 2>/dev/null; echo $?
start; ask get word; ask dbsize; ask hgetall hash; ask zrange score 0 -1; ask get key:1000
redis-check-rdb dump.rdb | grep -E 'OK|keys read|expires' | sed 's/^[^]]*] //'
ask shutdown save; wait $server; echo $?; ask ping
rm dump.rdb; start --appendonly yes
ask set only log; ask lpush only x; seq 50 | sed 's/\(.*\)/rpush numbers \1/' | ask | wc -l
ask shutdown nosave; wait $server; echo $?; ls
start --appendonly yes; ask get only; ask lrange numbers 48 -1; ask flushall; ask dbsize

title a copy on another server
first=$server; ask set copied yes
redis-server --port 6381 --dir /tmp --daemonize yes --pidfile /tmp/second.pid --save '' --logfile /tmp/second.log
until redis-cli -p 6381 ping >/dev/null 2>&1; do usleep 10000; done
redis-cli -p 6381 replicaof 127.0.0.1 $port
until [ "$(redis-cli -p 6381 info replication | tr -d '\r' | grep link_status)" = master_link_status:up ]; do
    usleep 10000
done
redis-cli -p 6381 get copied; printf 'set another one\nwait 1 0\n' | ask | grep -v 's)$'; redis-cli -p 6381 get another
redis-cli -p 6381 set forbidden x; redis-cli -p 6381 shutdown nosave; redis-cli -p 6381 ping 2>&1

title the benchmark
redis-benchmark -p $port -q -n 300 -c 10 -t ping,set,get,incr,lpush,rpop,sadd,hset,lrange_100,mset 2>&1 |
    tr '\r' '\n' | sed -n 's/: .* requests per second.*//p'
redis-benchmark -s /tmp/redis.sock -q -n 500 -c 20 -P 10 -d 1000 -t set,get 2>&1 | tr '\r' '\n' |
    sed -n 's/: .* requests per second.*//p'
redis-benchmark -p $port -q -n 300 -c 10 --threads 2 -t set 2>&1 | tr '\r' '\n' | sed -n 's/: .* requests per.*//p'
kill $server; wait $server; echo $?
grep -v -E 'WARNING|Warning|^$' /tmp/redis.log | sed 's/^[^#]*# //; s/pid=[0-9]*, //' | $b head -n 4
