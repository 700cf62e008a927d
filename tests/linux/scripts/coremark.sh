# Runs CoreMark with the seeds of its validation, performance and profile runs, and with others, in two sizes. Prints
# checksums and counts, but not the times, speeds and compiler that CoreMark prints.
run() {
    echo "coremark $*:"
    /suite/coremark "$@" > /tmp/said
    echo "status $?"
    while IFS= read -r line; do
        case $line in
            Total\ t* | Iterations/Sec* | Compiler* | CoreMark\ 1.0*) ;;
            *) echo "$line" ;;
        esac
    done < /tmp/said
}
# A run is valid if it takes ten seconds, as it does where an instruction takes 32 ns.
run 0x3415 0x3415 0x66 3000
run 0 0 0x66 3000
run 8 8 8 4000 0 0 1200
run 1 2 3 10 1
run 1 2 3 10 2
run 1 2 3 10 4
run 7 7 7 4 0 0 20000
