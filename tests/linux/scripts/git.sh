# Git: a repository with commits, branches, merges, tags and a copy, whose names are sums of all contents and dates.

b=/bin/busybox
for applet in cat cmp find grep head ls mkdir rm sed seq sort touch tr wc; do eval "$applet() { $b $applet \"\$@\"; }"; done
title() { echo "== $*"; }
# Git runs some of these itself.
for applet in sh cat sed; do $b ln -sf busybox /bin/$applet; done
export HOME=/tmp/home TZ=UTC GIT_PAGER=cat GIT_EDITOR=:
export GIT_AUTHOR_NAME='Ann' GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME='Bob' GIT_COMMITTER_EMAIL=bob@example.org
day=0
# Every commit has a date of its own.
date() { day=$((day + 1)); export GIT_AUTHOR_DATE="1600000000 +0$((day % 9))00" GIT_COMMITTER_DATE="$((1600000000 + day)) +0000"; }
mkdir -p $HOME /tmp/r && cd /tmp/r || exit 9
umask 022
git config --global init.defaultBranch main; git config --global advice.detachedHead false
git config --global color.ui false; git config --global protocol.file.allow always; git config --global gc.auto 0

title the first commits
git init; git status --short; echo 'line one' >a; seq 200 >numbers; mkdir d; echo deep >d/b; $b chmod 755 a
git add .; git status --short; git ls-files -s; date; git commit -m 'The first'; git log --format='%H %an %cn %ai %s'
echo 'line two' >>a; sed -i 's/^100$/hundred/' numbers; rm d/b; git status --short; git diff; git diff --stat
date; git commit -q -a -m 'The second' ; git show --stat HEAD; git cat-file -p HEAD; git cat-file -p HEAD^{tree}
echo "$?"; git commit -m nothing; echo $?

title branches
git checkout -q -b side HEAD^; echo 'on the side' >side; git add side; date; git commit -q -m 'The side'
git checkout -q main; date; git merge -q -m 'Both' side; git log --graph --oneline --all; git branch -v
git checkout -q -b other side; echo 'line 2' >>a; date; git commit -q -a -m 'Another'; date; git merge main; echo $?
git status --short; git diff | head -n 20; echo 'line both' >a; git add a; date; git commit -q -m 'Solved'
git checkout -q main; date; git cherry-pick other^ >/dev/null 2>&1; echo $?; git cherry-pick --abort
git tag v1; date; git tag -a v2 -m 'The second version'; git describe; git tag -l; git rev-parse v2 v2^{commit} HEAD~1
git checkout -q -b rebased HEAD~1; echo x >x; git add x; date; git commit -q -m 'X'; date; git rebase -q main; git log --oneline

title the work tree
git checkout -q main; echo changed >>a; git stash -q; cat a; git stash pop -q; cat a; git checkout -q -- a; cat a
git mv a renamed; git status --short; git reset -q --hard; git rm -q numbers; git status --short; git reset -q --hard
echo '*.o' >.gitignore; touch x.o y; git status --short --ignored; git clean -n; git grep -n two; git blame -s a
printf 'a\0b' >binary; git add binary; git diff --cached --stat; git diff --cached | $b tail -n 2; git reset -q --hard
git log -p -1 --format=%s side --; git shortlog -s HEAD; git diff --name-status v1 side --

title objects
git count-objects | sed 's/,.*//'; git gc -q; find .git/objects -type f | wc -l; git fsck --full --no-progress; git verify-pack -v .git/objects/pack/*.idx | head -n 1
git archive --format=tar HEAD | $b tar t; git ls-tree -r HEAD; echo hello | git hash-object --stdin

title copies
cd /tmp; git clone -q r copy; git -C copy log --oneline -1; git clone -q --bare r bare.git; cd copy
echo pushed >p; git add p; date; git commit -q -m 'Pushed'; git remote add bare ../bare.git; git push -q bare main
git -C ../bare.git log --oneline -1; cd ../r; git pull -q ../copy main 2>&1; git log --oneline -1; git fetch -q ../copy
git format-patch -1 --stdout | sed '/^2\.[0-9]/d'; git bundle create -q ../b.bundle main; git clone -q -b main ../b.bundle ../c; ls ../c
git -C ../c checkout -q HEAD~1; git format-patch -1 --stdout main | git -C ../c am -q; echo $?; git -C ../c log --format=%s -1
git nonsense; echo $?; cd /; git status 2>&1; echo $?
