# Traces programs with strace: their calls, signals, children and ends; has a call fail; and traces a program that runs
# already. Numbers of processes and addresses, which differ between runs, are not shown.

b=/bin/busybox
for applet in awk grep kill sed sleep sort true usleep; do
    eval "$applet() { $b $applet \"\$@\"; }"
done
title() { echo "== $*"; }
calm() { sed -e 's/si_[us]time=[0-9]*/TIME/g' -e 's/0x[0-9a-f]*/ADDRESS/g' -e 's/si_pid=[0-9]*/si_pid=PID/' -e 's/ *= / = /' "$@"; }
cd /tmp || exit 9

title calls
strace -o log -e trace=openat,read,write,close,exit_group $b head -c 20 /test/strace.sh >/dev/null; echo $?
calm log

title a signal
strace -o log -e trace=kill $b sh -c 'kill -TERM $$'; echo $?
calm -e 's/kill([0-9]*/kill(PID/' log

title a handler
strace -o log -e trace=rt_sigreturn,exit_group $b sh -c 'trap "exit 5" USR1; kill -USR1 $$; exit 6'; echo $?
calm log

title children
strace -f -o log -e trace=exit_group,chdir $b sh -c '(cd /tmp; exit 3); (cd /; exit 4); exit 5'; echo $?
calm -e 's/^[0-9]* *//' log | sort

title programs
strace -f -o log -e trace=execve,exit_group $b sh -c '/bin/busybox true; /bin/busybox false; exit 5'; echo $?
calm -e 's/^[0-9]* *//' -e 's/ADDRESS .*\*\//ENVIRONMENT/' log | sort

title counts
strace -c -o log $b sh -c 'cd /tmp; cd /; cd /nowhere; cd /tmp' 2>/dev/null
awk '$NF == "chdir" { print $4, $5, $6 }' log

title another result
strace -o log -e trace=chdir -e inject=chdir:error=EIO:when=1 $b sh -c 'cd /tmp; cd /tmp && echo there'; echo $?
calm log

title a program that runs already
sleep 1000 &
sleeper=$!
strace -q -o log -p $sleeper -e trace=none &
tracer=$!
until grep -q 'TracerPid:.*[1-9]' /proc/$sleeper/status; do usleep 20000; done
kill -STOP $sleeper
until grep -q 'State:.*(tracing stop)' /proc/$sleeper/status; do usleep 20000; done
kill -CONT $sleeper
until grep -q 'State:.*(sleeping)' /proc/$sleeper/status; do usleep 20000; done
kill -TERM $sleeper
wait $tracer; echo $?
calm log
