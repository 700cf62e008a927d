# suite-go.sh SECONDS: runs each test of Go's packages that /suite/list names in a process of its own, in the directory
# of its sources, and prints what it says. A test that takes longer is hung. With WHY set, the output of tests that
# do not pass is printed, too.
mkdir -p /dev/shm
chmod 1777 /dev/shm
printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/:/bin/sh' > /etc/passwd
printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' > /etc/group
printf '%s\n' '127.0.0.1 localhost' '::1 localhost' > /etc/hosts
while read -r package; do
    cd "/suite/$package" || exit 1
    program=./$(echo "$package" | tr / _).test
    "$program" -test.list . > /tmp/tests
    while read -r test; do
        case $test in
            Benchmark* | Fuzz*) continue ;;
        esac
        timeout -k 5 "$1" "$program" -test.v -test.short -test.run "^$test\$" > /tmp/said 2>&1 < /dev/null
        status=$?
        word=
        while read -r mark found name _; do
            [ "$mark $name" != "--- $test" ] || word=${found%:}
        done < /tmp/said
        case $status:$word in
            0:PASS | 0:SKIP | 1:FAIL) ;;
            124:* | 137:*) word=HUNG ;;
            *) word="INTERRUPTED $status" ;;
        esac
        [ -z "$WHY" ] || [ "$word" = PASS ] || cat /tmp/said
        echo "$package/$test $word"
    done < /tmp/tests
done < /suite/list
