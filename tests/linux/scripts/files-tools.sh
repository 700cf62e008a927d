# gzip, bzip2, xz, tar, cpio, find, xargs and diff, as Debian has them.

title() { echo "== $*"; }
mkdir -p /tmp/w && cd /tmp/w || exit 9
umask 022
export TZ=UTC LC_ALL=C
mkdir -p t/a/b t/c; seq 2000 >t/a/numbers; echo text >t/a/b/text; echo other >t/c/other.txt; ln -s ../a/numbers t/c/link
ln t/a/b/text t/c/hard; chmod 750 t/c; mkfifo t/fifo
find t -exec touch -h -d '2022-03-04 05:06:07' {} +

title find
find t | sort; find t -type f -size +4 -printf '%p %s %m %y %TY-%Tm-%Td %d\n'; find t -type l -printf '%p -> %l\n'
find t -links 2 -type f | sort; find t -samefile t/a/b/text | sort
find t -name '*.txt' -o -name text | sort; find t -path '*/c/*' -not -name link | sort
find t -regex '.*/[a-c]/[a-z]+' | sort; find t -mindepth 2 -maxdepth 2 -type d; find t -newermt 2023-01-01
find t -perm 750; find t -empty
find t -type f -exec cksum {} + | sort -k 3; find t -type d -execdir pwd \; | sort -u
find t -name b -prune -o -type f -print | sort; find missing 2>&1; echo $?; find t -depth -name 'b*'
find t -type p -delete; find t -name fifo
find t -type f -print0 | sort -z | xargs -0 -n 2 echo; seq 10 | xargs -n 4 -P 1; seq 3 | xargs -I % echo 'got %'
echo 'a b c' | xargs -d ' ' -n 1 printf '[%s]'; echo; seq 20000 | xargs | wc -w; echo x | xargs false; echo $?
printf '1\n2\n' | xargs -t echo 2>&1

title tar
touch -d '2022-03-04 05:06:07' t; tar --sort=name -cf t.tar t; tar -tvf t.tar | tr -s ' '; mkdir x
tar -xpf t.tar -C x; diff -r t x/t && echo same; stat -c '%n %a %Y %h' x/t/c x/t/c/hard
readlink x/t/c/link
tar -C t -cf - a | tar -xOf - a/b/text; tar -cf t2.tar --exclude='*.txt' --transform 's/^t/new/' t
tar -tf t2.tar | sort; tar -rf t2.tar t/c/other.txt; tar -tf t2.tar | tail -n 1; tar -df t.tar && echo no difference
echo changed >t/a/b/text; tar -df t.tar; echo $?
for how in gzip bzip2 xz; do
    tar --$how -cf t.tar.$how t && tar -tf t.tar.$how | wc -l
    tar -xOf t.tar.$how t/a/numbers | cksum
done
tar -xf missing.tar 2>&1 | head -n 1; tar --delete -f t.tar t/c; tar -tf t.tar | sort | uniq

title cpio
find t -exec touch -h -d '2022-03-04 05:06:07' {} +
find t | sort | cpio -o -H newc --quiet >t.cpio; cpio -tv --quiet <t.cpio | tr -s ' ' | cut -d ' ' -f 1,2,5-; mkdir y
(cd y; cpio -idm --quiet <../t.cpio); diff -r t y/t && echo same; find t -name 'o*' | cpio -pd --quiet z; find z | sort

title compression
seq 10000 >big; touch -d '2022-03-04 05:06:07' big
for program in gzip bzip2 xz; do
    $program -k -9 big; $program -t big.* 2>/dev/null && echo sound
    $program -dc big.?z* | cmp - big && echo same; rm big.?z*
done
gzip -c -n big | gzip -l | tr -s ' ' | tail -n 1 | cut -d ' ' -f 3; seq 10 | gzip | zcat | tail -n 1
seq 10 | bzip2 | bzcat | tail -n 1; seq 10 | xz -0 | xz -d | head -n 1; xz -k big
xz -l --robot big.xz | tail -n 1 | cut -f 5; gzip -d <big 2>&1; echo $?; head -c 1000 big.xz | xz -d 2>&1 >/dev/null
echo $?; gzip big; ls big*; gunzip big.gz; ls big*

title differences
seq 20 >one; seq 20 | tac | tac >two; echo 21 >>two; cmp one two; diff one two; echo $?
(seq 3; echo new; seq 5 20) >two; diff -u --label one --label two one two; diff -y -W 20 one two | head -n 5
diff -q one two; diff --normal one two; diff -e one two; diff -c --label 1 --label 2 one two | head -n 6
printf 'A b\n' >p; printf 'a  B\n' >q; diff -iw p q && echo equal but for blanks; cmp -l p q; cmp -s p q; echo $?
diff3 one two one; echo $?; sdiff -s -w 20 one two; diff -r t x/t | head -n 4; diff one missing; echo $?
