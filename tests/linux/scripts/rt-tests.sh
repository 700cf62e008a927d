# Programs of rt-tests: they measure the latency of threads with real-time policies, and stress priority-inheritance
# locks. That each figure is there is compared, and not how large it is.

b=/bin/busybox
for applet in cat cut grep head ln mkdir rm sed sort tail timeout tr uniq; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
# Numbers of processes and all latencies become N; what counts rounds stays.
figures() { sed 's/([ 0-9]*)/(N)/; s/ID[0-9]*/IDN/g; s/\(, TO .*Cycles\) [0-9]*/\1 N/; s/\(Min\|Act\|Avg\|Max\|Cur\): *[0-9][0-9]*/\1 N/g; s/\(Min\|Cur\|Avg\|Max\) *[0-9][0-9]*/\1 N/g'; }
mkdir -p /tmp/w /dev/shm && cd /tmp/w || exit 9
run() { echo "-- $*"; timeout 100 "$@" >out 2>&1; status=$?; }
shown() { tr '\r\033' '\n~' <out; echo "status $status"; }

title hackbench
for how in '-s 100 -l 20 -g 1 -f 5' '-p -l 20 -g 2 -f 4' '-T -l 20 -g 2 -f 5' '-T -p -l 50 -g 1 -f 8 -s 1000' '-F -l 10 -g 1'; do
    run hackbench $how; shown | sed 's/^Time: [0-9.]*$/Time: N/'
done

title cyclictest
run cyclictest -q -l 50 -i 2000 -p 80; shown | figures
run cyclictest --default-system -q -l 20 -i 2000 -t 3 -d 0 -p 90 --policy=rr; shown | figures
run cyclictest --default-system -q -l 20 -i 2000 --policy=other; shown | figures
run cyclictest --default-system -q -l 20 -i 2000 -m -r -p 50; shown | figures
run cyclictest --default-system -q -l 20 -i 2000 -s -c 1; shown | figures
run cyclictest -q -l 20 -i 2000 -x -t 2 -p 5 -N --default-system; shown | figures
run cyclictest --default-system -q -D 1 -i 5000 -t 2 --priospread -p 9; shown | figures
run cyclictest --default-system -q -l 30 -i 2000 -h 10 -p 80; grep -v '^[0-9]' out | sed 's/[0-9][0-9]*$/N/; s/ [0-9][0-9]* *$/ N/'; echo $status

title 'pairs of threads'
run ptsematest -q -l 30 -i 2000 -p 80; shown | figures
run ptsematest -q -l 20 -i 2000 -t 2 -p 50; shown | figures
run signaltest -q -l 30 -t 2 -p 80; shown | figures
run signaltest -q -l 20 -t 4; shown | figures
run sigwaittest -l 30 -i 2000 -p 80; shown | tail -n 3 | figures
run sigwaittest -l 30 -i 2000 -p 80 -f; shown | tail -n 3 | figures
run pmqtest -q -l 30 -i 2000 -p 80; shown | figures
run pmqtest -q -l 20 -i 2000 -p 80 -t 2 -T 1; shown | figures

title inheritance
run pi_stress -i 50 -g 1 -u; shown | sed 's/[0-9]* seconds/N seconds/'
run pi_stress -i 30 -g 1 -u -r -q; shown | sed 's/[0-9]* seconds/N seconds/'
run pi_stress -i 30 -g 2; shown
run pip_stress; shown
run rt-migrate-test -l 5 -c 1
shown | grep -v '^|' | sed 's/[0-9][0-9]* us/N us/; s/pid:* [0-9]*/pid N/; s/:  *[0-9][0-9]* *$/: N/' | uniq
