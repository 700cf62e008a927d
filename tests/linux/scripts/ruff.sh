# ruff: lints Python files, fixes what it can, sorts imports, formats, and reports syntax errors.
mkdir -p /tmp/work/package
cd /tmp/work || exit 1
export RUFF_NO_CACHE=true
cat > first.py <<'END'
import sys, os
from typing import List
import json
def  f( x,y = 1 ):
    l = [ i for i in range(10) ]
    if x == None: return True
    try:
        return {"a":1, 'b' : 2, "a": 3}
    except:
        pass
    print("%s and %s" % (x, y), f"no placeholder")
    very_long_name_of_a_function(first_argument, second_argument, third_argument, fourth_argument, fifth_argument)
class A( object ):
    def g(self): lambda: 0; x = lambda a : a*2; return not x in [1,2]
END
cat > package/__init__.py <<'END'
from .other import *
import collections
__all__ = ["nothing"]
END
cat > package/other.py <<'END'
async def fetch(url: str, /, *, retries: int=3) -> dict[str, int]:
    match url.split(':'):
        case ["http", rest] if rest: return {rest: retries}
        case _: assert (False, "never")
    with open(url) as a, open(url, 'w') as b: b.write(a.read())
    raise NotImplemented
END
printf 'def broken(:\n    return (1,\nprint "x"\n' > wrong.py
cat > ruff.toml <<'END'
line-length = 80
[lint]
select = ["E", "F", "I", "B", "UP", "SIM", "C4", "RUF"]
END

# The output goes through a file, since ruff uses colours on a terminal.
ruff() {
    echo "ruff $*:"
    /suite/ruff "$@" > /tmp/said 2>&1
    status=$?
    cat /tmp/said
    echo "status $status"
}
ruff --version
ruff check first.py package
ruff check --output-format=concise .
ruff check --statistics first.py package
ruff check --diff first.py
ruff check --fix first.py package
cat first.py package/__init__.py package/other.py
ruff format --check .
ruff format first.py package
cat first.py package/__init__.py package/other.py
ruff format --check first.py package
ruff format wrong.py
ruff rule E711
ruff format --stdin-filename=x.py - < first.py
# Many files, which several threads read at the same time, with a cache.
unset RUFF_NO_CACHE
mkdir many
index=0
while [ $index -lt 100 ]; do
    index=$((index + 1))
    printf 'import os, sys\nvalue = [ %s,%s ]\n' $index $((index * index)) > many/$index.py
done
ruff check --quiet --select=F401 --output-format=concise many > said
cksum < said
ruff check --quiet --fix many
ruff check many
ruff format many
cat many/7.py many/100.py
