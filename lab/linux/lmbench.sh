# Runs the programs of Debian's lmbench, unchanged, and prints `figure: NAME_WHERE NUMBER` for each, where WHERE is the
# argument: microseconds as they print them, or, of what begins with `bw_`, megabytes in a second. If a program says
# something else, a note shows that, and the status is 1.

where=$1
case $# in
1) ;;
*)
    echo "lmbench.sh: there are $# arguments; exactly one is allowed, the word that ends the names of figures" >&2
    exit 2
    ;;
esac

PATH=/usr/lib/lmbench/bin:/bin
# Each measures for so many microseconds at least and takes the median of so many; loops and clocks cost nothing, which
# is what lmbench's own script says unless it is told to find out.
export ENOUGH=1000 TIMING_O=0 LOOP_O=0 PATH
often="-W 0 -N 3"
failed=0
file=/tmp/lmbench

# figure NAME NUMBER TEXT: prints a figure, or what the program said instead.
figure() {
    case $2 in
    '' | . | *[!0-9.]* | *.*.*)
        echo "note: $1: it says: $3"
        failed=1
        ;;
    *) echo "figure: $1_$where $2" ;;
    esac
}

# before WORD NAME PROGRAM…: the number before a word of what the program says.
before() {
    word=$1 name=$2
    shift 2
    said=$("$@" 2>&1)
    number=${said%" $word"*}
    figure "$name" "${number##*[ 	]}" "$said"
}

microseconds() { before microseconds "$@"; }

# last NAME PROGRAM…: the last number that the program says.
last() {
    name=$1
    shift
    said=$("$@" 2>&1)
    figure "$name" "${said##*[ 	]}" "$said"
}

# Where lat_fcntl has its file.
busybox mkdir -p /var/tmp/lmbench
# lat_select finds its own server by this name.
echo "127.0.0.1 localhost" >/etc/hosts
busybox cp /usr/lib/lmbench/bin/hello /tmp/hello
busybox dd if=/dev/zero of=$file bs=1048576 count=1 2>/dev/null

microseconds syscall_null lat_syscall $often null
microseconds syscall_read lat_syscall $often read
microseconds syscall_write lat_syscall $often write
microseconds syscall_stat lat_syscall $often stat $file
microseconds syscall_fstat lat_syscall $often fstat $file
microseconds syscall_open lat_syscall $often open $file
microseconds fcntl_lock lat_fcntl $often
microseconds select_file_10 lat_select $often -n 10 file
microseconds select_file_100 lat_select $often -n 100 file
microseconds signal_install lat_sig $often install
microseconds signal_catch lat_sig $often catch
microseconds signal_fault lat_sig $often prot /usr/lib/lmbench/bin/lat_sig
microseconds process_fork lat_proc $often fork
microseconds process_exec lat_proc $often exec
microseconds process_shell lat_proc $often shell
microseconds page_fault lat_pagefault $often $file
last mmap_1m lat_mmap $often 1m $file
last bw_file_read bw_file_rd $often 1m io_only $file
last bw_mmap_read bw_mmap_rd $often 1m mmap_only $file
for processes in 2 4 8 16; do
    last switch_$processes lat_ctx $often -s 0 $processes
done
microseconds select_tcp_10 lat_select $often -n 10 tcp
microseconds select_tcp_100 lat_select $often -n 100 tcp
microseconds unix lat_unix $often

exit $failed
