# busybox's vi on a terminal that `script` gives it: keys that a person could type, and the files that are written. Where
# the screen itself is compared, that is what the last bytes have drawn.

b=/bin/busybox
for applet in cat cmp cut grep head ls mkdir od rm sed seq sleep tail timeout tr usleep wc; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
ln -sf busybox /bin/sh
for applet in cat sort stty vi; do ln -sf busybox /bin/$applet; done
mkdir -p /tmp/v && cd /tmp/v || exit 9
# Each word is typed after the one before has been drawn.
type_keys() { usleep 1000000; for keys; do printf "$keys"; usleep 300000; done; }
edit() {
    file=$1; shift
    type_keys "$@" | timeout 30 script -q -e -c "stty rows 12 cols 40; vi $file" typescript >/dev/null 2>&1
    echo "status $?"
}
# What was drawn, with the beginning of each line of the screen on a line of its own.
drawn() { tr -d '\r' <typescript | grep -v '^Script' | tr '\033' '~' | sed 's/~\[[0-9]*;1H/\n&/g'; }

title a new file
edit new 'ifirst line\rsecond line\rthird\033' ':wq\r'; cat new
edit new 'G' 'oa fourth\033' 'ggOzeroth\033' ':w\r' ':q\r'; cat new; drawn | tail -n 3

title moving and changing
seq 40 | sed 's/$/ words here/' >lines
edit lines '5G' 'dd' '3jcwother\033' '$xx' '0iX\033' 'yyP' ':wq\r'; sed -n '1,10p' lines
edit lines '\006' '\006' 'dG' '\002' 'J' ':wq\r'; cat lines
edit lines '3G' 'ma' '6G' "d'a" 'u' 'p' ':wq\r'; cat lines | head -n 8

title searching and replacing
seq 30 | sed 's/^/number /' >numbers
edit numbers '/25\r' 'x' 'n' '?12\r' 'D' ':wq\r'; sed -n '12p;25p' numbers
edit numbers ':%%s/number/no./\r' ':2,4d\r' ':5,6s/\\(n\\)o/\\1O/g\r' ':1\r' '.' ':x\r'; head -n 7 numbers; wc -l <numbers
edit numbers ':r lines\r' ':w copy\r' ':q!\r'; head -n 3 copy; cmp numbers copy | cut -d , -f 1

title without writing
edit new 'dddd' ':q\r' ':q!\r'; cat new; drawn | grep -o 'No write since last change' | head -n 1
edit new 'dd' ':w! other\r' 'ZZ'; cat new other
edit '-R new' 'x' ':w\r' ':q!\r'; cat new; drawn | grep -o 'read only' | head -n 1

title what the terminal does
# Keys that move: arrows, as a terminal sends them, and the erase key. Control-C and the suspend key are vi's own.
edit arrows 'iabc\033[D\033[DX\033[C\177Y\033' '\003' ':wq\r'; cat arrows
edit arrows 'otab\tbed\026\033end\033' ':wq\r'; od -c arrows | head -n 3
seq 100 >long; edit long 'G' '\025' 'iHERE\033' ':wq\r'; grep -n HERE long; drawn | tail -n 2
edit long ':!echo from a shell\r' '\r' ':q\r'; drawn | grep -c 'from a shell'
edit long '\f' '50G' 'z.' ':q\r'; drawn | tail -n 20

title a terminal that ends
(usleep 1000000; printf 'ilost\033') | timeout 30 script -q -c 'vi gone' typescript >/dev/null 2>&1; ls gone 2>&1 | cut -c 1-40
