# fsx.sh OPERATIONS SEED...: does so many random operations on a file for each seed, with and without mapped memory, and
# prints the last lines of each run's output, and checksums of the whole output and of the file.
run() {
    echo "$1, seed $3:"
    /suite/fsx -v -v -f "/tmp/$1.toml" -N "$2" -S "$3" -P /tmp /tmp/file > /tmp/said 2>&1
    echo "status $?"
    cksum < /tmp/said
    tail -n 3 /tmp/said
    cksum < /tmp/file
    rm -f /tmp/file
}
cat > /tmp/all.toml <<'END'
flen = 262144
[weights]
close_open = 1
invalidate = 1
fsync = 1
fdatasync = 1
posix_fallocate = 1
punch_hole = 1
sendfile = 1
posix_fadvise = 1
copy_file_range = 1
END
cat > /tmp/unmapped.toml <<'END'
flen = 262144
[weights]
close_open = 1
mapread = 0
mapwrite = 0
punch_hole = 1
posix_fallocate = 1
END
operations=$1
shift
for seed; do
    run all "$operations" "$seed"
    run unmapped "$operations" "$seed"
done
