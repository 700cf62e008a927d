# Files outside: `/mnt` is a directory of Tench's file server, and on Linux one in memory.

test -d /mnt || mkdir /mnt; cd /mnt || exit 9
say() { echo "== $*"; }

say files
echo one >a; echo two >>a; cat a; wc -c <a; test -f a && test -s a && echo "is a file"
cat missing; echo "status $?"
printf 'x%.0s' $(seq 5000) >long; wc -c <long; tail -c 3 long; echo
: >long; wc -c <long
dd if=/dev/zero of=holes bs=1 seek=100000 count=1 2>/dev/null; stat -c '%s %F' holes; cksum <holes
truncate -s 10 holes; od -c holes

say directories
mkdir -p d/e/f; echo deep >d/e/f/g; ls -R d; mkdir d; rmdir d; echo "status $?"
mv d/e/f/g g; cat g; mv d other; ls; find other -type d | sort; mkdir empty; mv other empty; ls empty
rmdir empty/other/e/f empty/other/e empty/other empty; ls
mv g g2; cp g2 g3; cmp g2 g3 && echo same; ls

say 'open files'
exec 3>log; echo first >&3; cat log; echo second >&3; cat log; mv log moved; echo third >&3; cat moved
exec 4<moved; rm moved; cat <&4; ls moved; exec 3>&- 4<&-
(for i in 1 2 3; do echo "line $i"; done) >many; while read -r line; do echo "read $line"; done <many
exec 5<>many; read -r line <&5; echo "$line"; printf 'LINE' >&5; exec 5>&-; cat many

say tools
seq 2000 >numbers; sort -rn numbers | head -n 2; grep -c 7 numbers; sed -i 's/^1$/one/' numbers; head -n 2 numbers
sort -o numbers numbers; tail -n 1 numbers; split -l 700 numbers part.; wc -l part.*; cat part.* | cmp - numbers && echo equal
tar cf all.tar part.* && rm part.* && tar tf all.tar; rm all.tar
mawk 'BEGIN { for (i = 0; i < 300; i++) print i > "f" (i % 3) }'; md5sum f0 f1 f2

say programs
printf '#!/bin/dash\necho "script $0 $*"\n' >script; chmod 755 script; ./script a b
cp /bin/cat own; chmod 755 own; ./own script; echo piped | ./own
rm -f own; ./own; echo "status $?"

say times
sleep 0.1; touch new; test new -nt a && echo newer; sleep 0.1; echo more >>a; test a -nt new && echo "newer again"

say many
i=0; while [ $i -lt 50 ]; do echo $i >file.$i; i=$((i + 1)); done; ls | grep -c '^file'; cat file.4[0-9] | tr '\n' ' '; echo
(i=0; while [ $i -lt 30 ]; do echo a >>both; i=$((i + 1)); done) & (i=0; while [ $i -lt 30 ]; do echo b >>both; i=$((i + 1)); done) & wait
sort both | uniq -c
df -P . | tail -n 1 | wc -l; cd /; rm -r mnt/*; ls /mnt
