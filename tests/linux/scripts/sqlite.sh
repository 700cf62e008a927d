# SQLite: tables, indexes, transactions, the write-ahead log, and a reader beside a writer. The argument is the number
# of rows.

rows=${1:-10000}
cd /tmp || exit 9
ask() { echo "== $1"; shift; sqlite3 "$@" 2>&1; }

ask tables a.db "
create table person (id integer primary key, name text not null, age integer check (age >= 0),
    city references city(id));
create table city (id integer primary key, name text unique);
insert into city values (1, 'Athens'), (2, 'Bern'), (3, 'Cairo');
insert into person (name, age, city) values ('Ann', 30, 1), ('Bob', 25, 2), ('Cy', 41, 1), ('Di', null, null);
select name, coalesce(age, 'unknown') from person order by age desc;
select city.name, count(*),
    avg(age) from person join city on city = city.id group by city.id having count(*) > 0 order by 1;
select person.name from person left join city on city = city.id where city.id is null;
insert into person (name, age) values ('Ed', -1);"
ask more a.db "
with recursive f(n, a, b) as (select 1, 1, 1 union all select n + 1, b,
    a + b from f where n < 20) select group_concat(a) from f;
select name, row_number() over (order by name desc), sum(age) over (order by id) from person;
create view old as select * from person where age > 28; select name from old order by name;
create table log (text);
    create trigger t after update on person begin insert into log values (old.name || ' is ' || new.age); end;
update person set age = age + 1 where name in ('Ann', 'Bob'); select * from log;
insert into city values (2, 'Basel') on conflict (id) do update set name = excluded.name; select * from city;
    delete from person where age > 40; select changes();
select json_extract('{\"a\": [1, {\"b\": 7}]}', '\$.a[1].b'), upper('text'), hex(x'00ff'), printf('%05.2f', 3.14159),
    date('2024-02-28', '+2 days'), typeof(1.0), 'abc' like 'A%', 7 / 2, 7.0 / 2;"
ask transactions a.db "begin; delete from city; select count(*) from city; rollback; select count(*) from city;
begin; insert into city values (9, 'X'); savepoint s; insert into city values (10, 'Y'); rollback to s; commit;
    select count(*) from city; insert into city values (9, 'again');"
ask schema a.db ".tables" ".schema city" ".mode csv" ".headers on" "select * from city;"

ask rows b.db "pragma journal_mode = wal; pragma synchronous = normal;
create table t (id integer primary key, k integer, text text); create index by_k on t (k);
begin; with recursive n(i) as (select 1 union all select i + 1 from n where i < $rows)
insert into t select i, (i * 7919) % 10007, 'row ' || i || substr('................................', 1, i % 30) from n;
    commit;
select count(*), sum(k), min(text), max(length(text)) from t; select count(*) from t where k between 100 and 200;
    select * from t where k = 77 limit 1;
explain query plan select * from t where k = 5;
update t set text = upper(text) where id % 10 = 0; delete from t where id % 3 = 0;
    select count(*), count(distinct k) from t;
    select text from t where text glob 'ROW*' order by length(text) desc, id limit 2;
pragma wal_checkpoint(truncate); pragma integrity_check;"
ask 'vacuum' b.db "vacuum; pragma integrity_check; pragma journal_mode = delete; select count(*) from t;"

echo '== a reader beside a writer'
sqlite3 w.db "pragma journal_mode = wal; create table t (x); insert into t values (1);"
sqlite3 w.db ".output /dev/null" "begin immediate;
    insert into t values (3);" ".shell sqlite3 w.db 'select count(*) from t;' >inner 2>&1" "commit;"
cat() { while read -r line; do echo "$line"; done; }
cat <inner; sqlite3 w.db "select group_concat(x) from t; pragma integrity_check;"

echo '== a writer beside a writer'
sqlite3 w.db "begin immediate; insert into t values (4);" \
    ".shell sqlite3 w.db 'insert into t values (5);' >inner 2>&1; echo \$? >>inner" "commit;"
cat <inner; sqlite3 w.db "insert into t values (6); select group_concat(x) from t;"
sqlite3 r.db "create table t (x); begin exclusive;" ".shell sqlite3 r.db 'select * from t;' >inner 2>&1"
cat <inner; sqlite3 r.db "select count(*) from t;"

echo '== a writer that is killed'
sqlite3 k.db "create table t (x); insert into t values ('kept');"
(sqlite3 k.db "begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
insert into t select i || hex(randomblob(500)) from n;" ".shell kill -9 \$PPID" "commit;") >/dev/null 2>&1
echo $?; sqlite3 k.db "select count(*) from t; pragma integrity_check;"
# Rows come ten at a time, and the writer is killed somewhere among them.
killed() {
    sqlite3 m.db "pragma journal_mode = $1; drop table if exists t; create table t (n integer, text);"
    for round in 1 2 3; do
        : >progress
        while :; do
            echo "begin; with recursive n(i) as (select 1 union all select i + 1 from n where i < 10)
                insert into t select i, hex(randomblob(100)) from n; commit; select 'done';"
        done 2>/dev/null | sqlite3 m.db >progress 2>/dev/null &
        count=0
        until [ $count -gt 20 ]; do
            count=0
            while read -r line; do count=$((count + 1)); done <progress
        done
        kill -9 $!
        wait $! 2>/dev/null
        echo $?
    done
    sqlite3 m.db "select count(*) > 600, count(*) % 10, sum(n) * 10 / count(*) from t; pragma integrity_check;"
}
echo '== writers that are killed among transactions'
killed delete
killed wal
ask dump a.db ".dump city"; sqlite3 a.db ".backup c.db" && sqlite3 c.db "select count(*) from city;"
sqlite3 a.db ".dump" | sqlite3 d.db && sqlite3 d.db "select count(*) from person;"
echo 'not a database, and long enough to be read as one, which it is not at all; nothing fits here, nothing' >bad.db
ask damaged bad.db "select 1 from sqlite_master;"; echo $?
