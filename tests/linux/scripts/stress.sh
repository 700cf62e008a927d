# stress.sh OPERATIONS SECONDS [STRESSOR…]: runs each of stress-ng's stressors by itself, one instance for at most so
# many operations and seconds, and prints its result. One that has not ended after a minute is hung. With WHY set,
# prints each stressor's output, too, and the times of its start and end.
operations=$1 seconds=$2
shift 2
printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/:/bin/sh' > /etc/passwd
printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' > /etc/group
mkdir -p /dev/shm /tmp/stress
chmod 1777 /dev/shm
cd /tmp/stress || exit 1
[ $# -gt 0 ] || set -- $(stress-ng --stressors)
skips="skipping stress\|skipping the stress\|stressor will be skipped\|disabled '.*' as it may hang"
for name; do
    limit=--$name-ops
    # This stressor's option has another name.
    [ "$name" != binderfs ] || limit=--binderfs-opts
    [ -z "$WHY" ] || read -r begun rest < /proc/uptime
    timeout -k 5 60 stress-ng --"$name" 1 "$limit" "$operations" --timeout "$seconds" --verify \
        > /tmp/said 2>&1 < /dev/null
    status=$?
    case $status in
        0) word=PASS ;;
        2) word=FAILED ;;
        3) word=NO-RESOURCE ;;
        4) word=UNSUPPORTED ;;
        124 | 137 | 143) word=HUNG ;;
        *) word="INTERRUPTED $status" ;;
    esac
    grep -q "$skips" /tmp/said && [ $status -le 1 ] && word=SKIPPED
    [ -z "$WHY" ] || { read -r ended rest < /proc/uptime; echo "$begun $ended"; cat /tmp/said; }
    echo "$name $word"
    # Processes and files that are left behind would slow down the next stressors.
    killall -q -9 stress-ng
    rm -rf /tmp/stress/*
done
