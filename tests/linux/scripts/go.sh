# Formats, compiles, links and runs a program, which has threads, processes, pipes, signals and timers of Go's own.
set -e
G=/usr/lib/go-1.19
T=$G/pkg/tool/linux_arm64
P=$G/pkg/linux_arm64
cd /tmp
cp /test/program.go.txt program.go
echo "== formatted"
$G/bin/gofmt -l program.go
$G/bin/gofmt program.go | md5sum
$G/bin/gofmt -w program.go
$G/bin/gofmt -l program.go
echo "== compiled"
$T/compile -o program.o -p main -I $P program.go
$T/link -L $P -o program program.o
echo "== run"
./program one two
echo "status: $?"
echo 'package main; func main() { undefined() }' > wrong.go
$T/compile -o wrong.o -p main -I $P wrong.go || echo "status: $?"
