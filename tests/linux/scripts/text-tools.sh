# grep, sed, mawk, gawk, bc and dc, as Debian has them.

title() { echo "== $*"; }
mkdir -p /tmp/w && cd /tmp/w || exit 9
export TZ=UTC LC_ALL=C
cat >text <<'END'
The quick brown fox
jumps over the lazy dog.
Email: fox@example.org, dog@example.com

Numbers: 12, 345 and 6789
THE END
END

title grep
grep fox text; grep -n the text; grep -ic the text; grep -v o text; grep -w the text; grep -o '[0-9]\+' text
grep -E '^(The|THE) ' text; grep -c '^$' text; grep -A 1 -B 1 Email text; grep -F . text
grep -Eo '[a-z]+@[a-z.]+' text; grep -P '\d{3,}(?= and)' -o text; grep -l fox text /dev/null; grep -L fox text /dev/null
grep -q nothing text; echo $?; grep x missing; echo $?; grep -E 'a(' text 2>&1; echo $?; mkdir -p d/e; cp text d/e
grep -rn lazy d; grep -r --include='*.c' lazy d; echo $?
grep -e fox -e dog -h text text | wc -l; printf 'fox\nEND\n' >patterns; grep -f patterns text; grep -x 'THE END' text
grep -b END text; grep -m 1 o text; grep -E '(.)\1' text; printf 'a\0b\n' | grep -c b; printf 'bin\0ary\n' | grep bin
seq 20000 | grep -c 7; grep --color=always fox text | od -An -c | head -n 2

title sed
sed 's/o/0/g' text | head -n 2; sed -n '2,4p' text; sed '/^$/d;s/[aeiou]//2' text
sed -E 's/(\w+)@(\w+)\.(org|com)/\2 at \1/g' text | grep at; sed -n '/quick/,/Email/{=;p}' text; sed '1~2d' text
sed '$!N;s/\n/ + /;P;D' text | head -n 2
sed -e '1i\' -e 'before' -e '$a after' -e '2c changed' text; sed 'y/abc/ABC/' text | tail -n 2
sed -s -n '$=' text patterns; sed --quiet 's/fox/cat/w out' text; cat out; sed 's/.*/\U&/;3q' text
sed 's/\b./\u&/g' text | head -n 2; sed 'x;G;1!h;s/\n//;$!d' text | head -n 1
sed -i.bak '1d' text; wc -l text text.bak | tr -s ' '; mv text.bak text; sed 's/x' text 2>&1; echo $?
seq 5 | sed -n '2{p;q3}'; echo $?; seq 10 | sed '0~3s/$/!/' | paste -s; seq 3 | sed 'e echo run' | paste -s
echo aaa | sed ':a;s/a/b/;ta;s/b*/&c/'; seq 20000 | sed -n '/9$/!d;$p'

for awk in mawk gawk; do
    title $awk
    $awk '{ n += NF } END { print NR, n, length($0) }' text
    $awk -F '[:,@]' '/@/ { print $2, $4; $1 = "x"; print }' OFS='|' text
    $awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : "\n") }' text
    $awk -v RS= '{ print NR, NF }' text
    seq 1000 | $awk '{ c[$1 % 7]++ } END { for (k = 0; k < 7; k++) printf "%d:%d ", k, c[k]; print "" }'
    $awk 'function f(n) { return n < 2 ? 1 : n * f(n - 1) }
        BEGIN { print f(10), sin(0), exp(1), sqrt(2), int(-3.9), 2 ^ 0.5, substr("hello", 2, 3), index("abc", "c") }'
    $awk 'BEGIN {
        s = "a-b_c"; n = split(s, p, /[-_]/); print n, p[3]; gsub(/[a-z]/, "<&>", s); print s
        print match("xxabc", /a.c/), RSTART, RLENGTH, toupper("up") tolower("LOW")
        printf "%05.1f|%-4s|%x|%c|%e|%%\n", 3.14159, "ab", 255, "x", 12345
    }'
    $awk 'BEGIN {
        "echo from a command" | getline x; print x; while ((getline line < "text") > 0) n++; print n
        print "sorted 2\nsorted 1" | "sort"; close("sort"); print "err" > "/dev/stderr"; print ENVIRON["TZ"], ARGC
        r = system("exit 3"); print r; exit 4
    }'; echo $?
    $awk 'NR == 1, /dog/ { print NR ": " $0 } /^$/ { next } END {
        if (!("x" in a)) print "none"
        a["x"]; delete a["y"]; print length(a) > "out"; close("out"); getline v < "out"; print v
    }' text
    $awk '{' text 2>/dev/null; echo $?; $awk 1 missing 2>/dev/null; echo $?
    seq 5 | $awk 'NR % 2 { print > "odd"; next } { print > "even" } END {
        close("odd"); close("even"); while ((getline x < "odd") > 0) printf "%s ", x; print ""
    }'
done
gawk 'BEGIN {
    print strftime("%F", 0, 1), gensub(/(a)(b)/, "\\2\\1", "g", "abab"), and(12, 10), strtonum("0x1f")
    b["z"]; b["y"]; PROCINFO["sorted_in"] = "@ind_str_asc"; for (k in b) printf "%s ", k; print length(b)
    c = "cat"; print "to and from" |& c; close(c, "to"); c |& getline x; print x
}'
printf 'one  3\n' | gawk 'BEGIN { FIELDWIDTHS = "3 2 1" } { print $3 $1 }'

title bc and dc
printf '2^200\nscale=30\n4*a(1)\nsqrt(2)\ne(1)\nobase=16\n255\n' | bc -l
echo 'define f(n) { if (n < 2) return (n); return (f(n-1) + f(n-2)); }
f(15); for (i = 0; i < 3; i++) i^2; 7 % 3; -7 / 2' | bc
echo '1 / 0' | bc 2>&1; echo 'ibase=2; 1011; length(11111111)' | bc
dc -e '10 k 2 v p 3 4 ^ p [la 1 + d sa 5 >x] sx 0 sa lx x la p 16 o 255 p 1 2 3 f'
echo '2 100 ^ 7 % p [text] p z p' | dc
