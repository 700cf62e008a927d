# What shells do, in the language that all of them have: the same file runs in five. Only busybox is called besides.
# Nothing that it prints may depend on time or on numbers of processes.

b=/bin/busybox
mkdir() { $b mkdir "$@"; }
cat() { $b cat "$@"; }
sort() { $b sort "$@"; }
pause() { $b sleep "$1"; }
command -v printf >/dev/null || printf() { $b printf "$@"; }
# Runs a command that a signal ends, which some shells report with the number of the process.
quietly() { { "$@"; } 2>/dev/null; echo $?; }
title() { echo "== $*"; }
mkdir -p /tmp/w && cd /tmp/w || exit 9
umask 022

title words and expansions
set -- 'a b' c '' "d
e"
echo $# "$1" "$4"
for word in "$@"; do printf '<%s>' "$word"; done; echo
for word in $*; do printf '<%s>' "$word"; done; echo
IFS=:; list=one:two::three; for word in $list; do printf '<%s>' "$word"; done; echo
unset IFS
name=directory/file.tar.gz
echo ${name#*/} ${name##*.} ${name%.*} ${name%%.*} ${#name}
unset missing; empty=
echo "${missing-a}" "${missing:-b}" "${empty-c}" "${empty:-d}" "${missing:+e}" "${name:+f}" "${missing:=g}" "$missing"
(: "${nothing:?is not set}") 2>/dev/null; echo "status $?"
echo ~ "$HOME" '$HOME' "\$HOME" \$HOME
echo "$(echo "one  two"; echo three)" `echo 'back quotes'` "$(echo 'a
b

')."

title arithmetic
i=7
echo $((i * 6)) $((i / 2)) $((-i % 4)) $((1 << 10)) $((0x1f ^ 017)) $((i > 3 && i < 9)) $((i == 7 ? 100 : 200))
echo $((i += 5)) $i $((9223372036854775807)) $((~0 & 0xff)) $(( (1 + 2) * (3 - 4) )) $((!0))

title loops and conditions
n=0; while [ $n -lt 400 ]; do n=$((n + 1)); done; echo $n
until [ $n -le 395 ]; do n=$((n - 1)); done; echo $n
for x in 1 2 3 4 5 6; do [ $x = 2 ] && continue; [ $x = 5 ] && break; printf '%s ' $x; done; echo
for x in 1 2; do for y in a b c; do [ $y = b ] && continue 2; printf '%s%s ' $x $y; done; done; echo
for file in a.c b.h Makefile .hidden; do
    case $file in
    *.[ch]) echo "$file: source" ;;
    [!.]*) echo "$file: other" ;;
    .*) echo "$file: hidden" ;;
    esac
done
if false; then echo no; elif ! true; then echo no; else echo yes; fi
{ false || echo or; } && echo and
[ -d /tmp -a ! -f /tmp ] && [ 3 -gt 2 ] && [ abc != abd ] && test -z "" && echo tests

title functions
sum() { total=0; for number; do total=$((total + number)); done; echo $total; [ $total -gt 5 ]; }
sum 1 2; echo $?; sum 1 2 3; echo $?
factorial() { if [ $1 -le 1 ]; then echo 1; else echo $(($1 * $(factorial $(($1 - 1))))); fi; }
factorial 10
early() { return 42; echo never; }
early; echo $?
(exit 3); echo $?; (cd /; pwd); pwd
value=outer; (value=inner; echo $value); echo $value
(unset -f sum; sum 2>/dev/null || echo no function); sum 9

title redirection
echo one >f; echo two >>f; cat <f; cat f f | sort -r | $b uniq -c
{ echo out; echo err >&2; } >both 2>&1; cat both
{ echo out; echo err >&2; } 2>error | $b tr a-z A-Z; cat error
exec 3>third; echo third >&3; exec 3>&-; cat third
exec 4<f; read first <&4; read second <&4; exec 4<&-; echo "$first $second"
echo x >/dev/full 2>/dev/null || echo full
(echo text >&7) 2>/dev/null || echo bad descriptor
cat nothing 2>/dev/null || echo no file
(set -C; echo new >f) 2>/dev/null || echo not overwritten; cat f
: >f; [ -s f ] || echo empty
echo both ways 1<>f; cat f

title here-documents
cat <<END
value: $value, $((1 + 1)), $(echo command), \$escaped
END
cat <<'END'
$value `none`
END
cat <<-END
	tabs are gone
	END
while read -r left right; do echo "[$left|$right]"; done <<END
a b c
 d  e\x
f
END
cat <<A; cat <<B
first
A
second
B

title globs
mkdir -p d/e; : >d/a1 >d/a2 >d/b1 >d/.c >'d/x y'
echo d/* d/a? d/[ab]1 d/[!a]* d/.??* d/none* 'd/*'
echo d/*/ ; (cd d; echo *1; set -f; echo *)
for file in d/*; do printf '<%s>' "$file"; done; echo

title pipes
$b seq 100 | $b grep 7 | $b awk '{ sum += $1 } END { print NR, sum }'
$b seq 20000 | $b tail -n 1
$b yes | $b head -n 3; echo $?
echo a | { read x; echo "$x$x"; }
false | true; echo $?; true | false; echo $?; ! true | false; echo $?
$b seq 3 | while read n; do echo "line $n"; done
$b dd if=/dev/zero bs=1000 count=300 2>/dev/null | $b wc -c
title fifos
$b mkfifo fifo; $b seq 5 >fifo & $b sort -rn <fifo; wait
(echo request >fifo; cat fifo >answer) & read line <fifo; echo "answer to $line" >fifo; wait; cat answer
$b rm fifo

title jobs
(exit 5) & wait $!; echo $?
pause 0.2 & one=$!; pause 0.1 & two=$!; wait $two; echo $?; wait $one; echo $?
$b sleep 100 & kill $!; wait $! 2>/dev/null; echo $?
($b sleep 100; echo never) & kill -9 $!; wait $! 2>/dev/null; echo $?
wait 99999 2>/dev/null; echo $?
$b sleep 100 & child=$!; kill -STOP $child; pause 0.1; kill -0 $child && echo alive
kill -CONT $child; pause 0.1; kill -TERM $child
wait $child 2>/dev/null; echo $?; kill -0 $child 2>/dev/null || echo gone
for n in 1 2 3; do (pause 0.$n; echo "child $n") & done; wait
[ $$ = "$(echo $$)" ] && echo same number

title traps and signals
trap 'echo usr1' USR1; kill -USR1 $$; echo after
trap '' USR2; kill -USR2 $$; echo ignored
$b sh -c 'kill -USR2 $$; echo ignored in child'; trap - USR2
quietly $b sh -c 'kill -USR2 $$; echo never'
(trap 'echo term; exit 7' TERM; pause 0.3; echo not reached) & child=$!
pause 0.1; kill -TERM $child; wait $child; echo $?
$b sh -c 'trap "echo bye" EXIT; exit 4'; echo $?
(trap 'echo subshell ends' EXIT; echo body)
trap 'echo waited' ALRM; (pause 0.1; kill -ALRM $$) & pause 0.3; wait; trap - ALRM
quietly $b sh -c 'kill -SEGV $$'
quietly $b timeout 0.1 $b sleep 10
quietly $b timeout -s KILL 0.1 $b sleep 10

title the rest
eval 'set -- x y'; shift; echo $1 $#
(set -e; false; echo never); echo $?
(set -u; echo $undefined) 2>/dev/null || echo unset
echo 'echo "sourced: $1 $value"' >lib; . ./lib
readonly fixed=1; (fixed=2) 2>/dev/null || echo read-only
export VISIBLE=yes; HIDDEN=no; $b env | $b grep -E '^(VISIBLE|HIDDEN)'; ONCE=1 $b sh -c 'echo $ONCE'
while getopts ab:c option -a -b value -c rest; do echo "$option ${OPTARG-}"; done; echo $OPTIND
printf '%s %5d|%-5s|%05.1f %x %c %%\n' text 42 left 3.14159 255 char
echo "a:b:c" | (IFS=: read x y z; echo $z $y $x)
command -v cd >/dev/null && type cat >/dev/null && echo found
nonexistent-command 2>/dev/null; echo $?; /etc 2>/dev/null; echo $?
alias hi='echo alias' 2>/dev/null; unalias hi && echo unaliased
trap 'echo the end; exit 6' EXIT
