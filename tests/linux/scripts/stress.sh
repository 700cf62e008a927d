# stress.sh SECONDS [STRESSOR…]: runs each of stress-ng's stressors by itself, one process for so long, and prints how it
# ends. One that goes on a minute longer is hung.
seconds=$1
shift
[ $# -gt 0 ] || set -- $(stress-ng --stressors)
mkdir -p /tmp/stress
cd /tmp/stress || exit 1
for name; do
    timeout -k 5 60 stress-ng --"$name" 1 --timeout "$seconds" --verify > /tmp/said 2>&1 < /dev/null
    status=$?
    case $status in
        0) word=PASS ;;
        2) word=FAILED ;;
        3) word=NO-RESOURCES ;;
        4) word=UNSUPPORTED ;;
        124 | 137) word=HUNG ;;
        *) word="INTERRUPTED $status" ;;
    esac
    echo "$name $word"
    rm -rf /tmp/stress/*
done
