# Python's own modules for processes, threads, sockets, files and signals. Threads and children report in an order that
# the program fixes, and no wait is for a length of time. Arguments are the names of parts to run, in place of all.

import asyncio
import concurrent.futures
import contextlib
import errno
import fcntl
import http.server
import io
import json
import mmap
import multiprocessing
import os
import pathlib
import queue
import resource
import select
import selectors
import shutil
import signal
import socket
import socketserver
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

BUSYBOX = "/bin/busybox"


def files():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "a/b").mkdir(parents=True)
        (root / "a/one.txt").write_text("one\n" * 1000)
        (root / "a/b/two").write_bytes(bytes(range(256)))
        os.symlink("one.txt", root / "a/link")
        os.link(root / "a/one.txt", root / "a/same")
        for directory, names, others in sorted(os.walk(root)):
            print(os.path.relpath(directory, root), sorted(names), sorted(others))
        status = os.stat(root / "a/one.txt")
        print(status.st_size, status.st_nlink, oct(status.st_mode), os.readlink(root / "a/link"))
        os.utime(root / "a/same", ns=(1_000_000_001, 2_000_000_002))
        print(os.stat(root / "a/one.txt").st_mtime_ns, os.access(root / "a/b", os.W_OK))
        shutil.copytree(root / "a", root / "c", symlinks=True)
        print(sorted(path.name for path in root.rglob("*")))
        with open(root / "c/b/two", "r+b") as file:
            file.seek(-6, os.SEEK_END)
            print(file.read(), file.tell(), os.pread(file.fileno(), 3, 65))
            file.truncate(10)
            os.pwritev(file.fileno(), [b"abc", b"de"], 8)
            print(os.fstat(file.fileno()).st_size, os.sendfile(1, os.open(root / "a/one.txt", os.O_RDONLY), 0, 4))
        for mistake in (lambda: os.rmdir(root / "a"), lambda: os.open(root / "none", os.O_RDONLY),
                        lambda: os.mkdir(root / "a"), lambda: os.listdir(root / "a/same"), lambda: os.close(999)):
            try:
                mistake()
            except OSError as error:
                print(type(error).__name__, error.errno, error.strerror)
    print(os.path.exists(name))


def threads():
    jobs, results = queue.Queue(), queue.Queue()

    def work():
        while (number := jobs.get()) is not None:
            results.put((number, number * number))
    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for number in range(200):
        jobs.put(number)
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.join()
    print(sum(square for _, square in (results.get() for _ in range(200))), results.empty())
    total, lock = 0, threading.Lock()

    def add():
        nonlocal total
        for _ in range(500):
            with lock:
                total += 1
    many = [threading.Thread(target=add) for _ in range(16)]
    for one in many:
        one.start()
    for one in many:
        one.join()
    print(total, threading.active_count())
    barrier, order, turn = threading.Barrier(4), [], threading.Condition()

    def in_turn(number):
        barrier.wait()
        with turn:
            turn.wait_for(lambda: len(order) == number)
            order.append(number)
            turn.notify_all()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(in_turn, (3, 1, 0, 2)))
        print(order, list(pool.map(pow, range(5), range(5))))
    event = threading.Event()
    print(event.wait(0.001), threading.Semaphore(0).acquire(timeout=0.001))
    timer = threading.Timer(0.001, event.set)
    timer.start()
    print(event.wait(), threading.current_thread().name, lock.locked())
    local = threading.local()
    local.value = 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(hasattr(local, "value")))
    thread.start()
    thread.join()
    print(seen)


def processes():
    run = subprocess.run([BUSYBOX, "sh", "-c", "cat; echo error >&2; exit 3"], input=b"input", capture_output=True)
    print(run.returncode, run.stdout, run.stderr)
    shell = {"shell": True, "executable": "/tmp/bin/sh", "cwd": "/tmp", "env": dict(os.environ, WORD="word")}
    print(subprocess.check_output("echo $WORD | tr a-z A-Z; pwd", text=True, **shell).split())
    first = subprocess.Popen([BUSYBOX, "seq", "20000"], stdout=subprocess.PIPE)
    second = subprocess.Popen([BUSYBOX, "tail", "-n", "2"], stdin=first.stdout, stdout=subprocess.PIPE)
    first.stdout.close()
    print(second.communicate()[0], first.wait(), second.returncode)
    sleeper = subprocess.Popen([BUSYBOX, "sleep", "1000"], start_new_session=True)
    print(sleeper.poll(), os.getsid(sleeper.pid) == sleeper.pid)
    try:
        sleeper.wait(timeout=0.01)
    except subprocess.TimeoutExpired as error:
        print(type(error).__name__)
    sleeper.send_signal(signal.SIGTERM)
    print(sleeper.wait(), subprocess.call([BUSYBOX, "false"]))
    for wrong in (["/none"], ["/tmp"], [BUSYBOX, "true"]):
        try:
            print(subprocess.call(wrong, cwd="/none" if wrong[0] == BUSYBOX else None))
        except OSError as error:
            print(type(error).__name__, error.filename)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"from the child")
        os._exit(7)
    os.close(writing)
    print(os.read(reading, 100), os.read(reading, 1), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.close(reading)
    with subprocess.Popen([sys.executable, "-c", "import sys; print(sys.argv, sys.stdin.read()); sys.exit('bye')", "x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as inner:
        print(inner.communicate("text"), inner.returncode)
    spawned = os.posix_spawn(BUSYBOX, ["echo", "spawned"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
    print(os.waitstatus_to_exitcode(os.waitpid(spawned, 0)[1]))
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime >= 0, resource.getrlimit(resource.RLIMIT_CORE)[0])


def cube(number):
    return number ** 3


def workers():
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        print(pool.map(cube, range(10)), pool.apply(cube, (100,)))
        try:
            pool.apply(cube, ("x",))
        except TypeError as error:
            print(error)
    ours, theirs = context.Pipe()
    counter = context.Value("i", 0)

    def count(pipe):
        for _ in range(100):
            with counter.get_lock():
                counter.value += 1
        pipe.send({"done": pipe.recv()})
    children = [context.Process(target=count, args=(theirs,)) for _ in range(3)]
    for child in children:
        child.start()
        ours.send(len(children))
    print([ours.recv() for _ in children])
    for child in children:
        child.join()
    print(counter.value, [child.exitcode for child in children])


def signals():
    caught = []

    def handler(number, frame):
        caught.append(signal.Signals(number).name)
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD, signal.SIGIO):
        signal.signal(number, handler)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(caught)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while len(caught) < 2:
        signal.pause()
    print(caught, signal.getitimer(signal.ITIMER_REAL))
    reading, writing = os.pipe()
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    selector = selectors.DefaultSelector()
    selector.register(reading, selectors.EVENT_READ)

    def write(number, frame):
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.write(writing, b"from a handler")
    signal.signal(signal.SIGALRM, write)
    print([key.fd == reading for key, _ in selector.select()], os.read(reading, 100))
    selector.close()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
    os.kill(os.getpid(), signal.SIGUSR2)
    print(signal.sigpending(), signal.sigwait([signal.SIGUSR2]), signal.sigtimedwait([signal.SIGUSR1], 0))
    os.kill(os.getpid(), signal.SIGUSR1)
    info = signal.sigwaitinfo([signal.SIGUSR1])
    print(info.si_signo == signal.SIGUSR1, info.si_pid == os.getpid(), info.si_code)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(list(os.read(reading, 10)), signal.set_wakeup_fd(-1) == writing, signal.strsignal(signal.SIGSEGV))
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
        os.write(writing, b"!")
        while True:
            signal.pause()
    os.read(reading, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD, signal.SIGIO):
        signal.signal(number, signal.SIG_DFL)


def memory():
    with mmap.mmap(-1, 3 * mmap.PAGESIZE) as shared:
        child = os.fork()
        if child == 0:
            shared[4096:4101] = b"child"
            os._exit(0)
        os.waitpid(child, 0)
        print(shared[4096:4102], shared.find(b"ild"), len(shared))
        shared.move(0, 4096, 5)
        print(shared.read(5), shared.tell(), shared.flush(), shared.madvise(mmap.MADV_WILLNEED))
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 10000)
        file.flush()
        with mmap.mmap(file.fileno(), 0) as mapped, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as copy:
            mapped[9000:9003], copy[9000:9003] = b"abc", b"xyz"
            print(os.pread(file.fileno(), 4, 8999), copy[8999:9004], mapped.size(), mapped.rfind(b"x", 0, 9005))
            mapped.resize(20000)
            print(len(mapped), os.fstat(file.fileno()).st_size, mapped[10000:10002])
        try:
            mmap.mmap(file.fileno(), 10, access=mmap.ACCESS_READ)[0] = 1
        except TypeError as error:
            print(error)
    big = bytearray(40 << 20)
    big[::4096] = b"1" * (len(big) // 4096)
    print(big.count(b"1"), len(bytes(big[:1000])))


def waiting():
    one, other = socket.socketpair()
    print(select.select([one], [one], [], 0)[1] == [one], select.select([one], [], [], 0.001))
    other.send(b"data")
    poll = select.poll()
    poll.register(one, select.POLLIN | select.POLLOUT)
    print(poll.poll() == [(one.fileno(), select.POLLIN | select.POLLOUT)])
    with select.epoll() as epoll:
        epoll.register(one, select.EPOLLIN | select.EPOLLET)
        print([events for _, events in epoll.poll()], epoll.poll(0), one.recv(10))
        other.close()
        print([events for _, events in epoll.poll()])
        epoll.modify(one, select.EPOLLOUT | select.EPOLLONESHOT)
        print([events for _, events in epoll.poll(1)], epoll.poll(0))
    one.close()


def sockets():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer, address = server.accept()
        print(address == client.getsockname(), peer.getsockname() == client.getpeername(), client.family.name)
        client.sendall(b"hello")
        print(peer.recv(3, socket.MSG_PEEK), peer.recv(100), peer.gettimeout())
        peer.settimeout(0.001)
        for wait in (lambda: peer.recv(1), lambda: (peer.setblocking(False), peer.recv(1))):
            try:
                wait()
            except OSError as error:
                print(type(error).__name__)
        client.shutdown(socket.SHUT_WR)
        peer.settimeout(None)
        print(peer.recv(1), peer.send(b"still"), client.recv(10))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        try:
            client.recv(1)
        except OSError as error:
            print(type(error).__name__)
    datagrams = (socket.AF_INET6, socket.SOCK_DGRAM)
    with socket.socket(*datagrams) as one, socket.socket(*datagrams) as two:
        one.bind(("::1", 0))
        two.connect(one.getsockname())
        two.send(b"datagram")
        data, sender = one.recvfrom(100)
        print(data, one.sendto(data.upper(), sender), two.recv(100), socket.getaddrinfo("::1", 80)[0][4])
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("/tmp/python.socket")
        server.listen()
        client.connect("/tmp/python.socket")
        peer, _ = server.accept()
        reading, writing = os.pipe()
        socket.send_fds(client, [b"take"], [writing])
        data, (received, *_), *_ = socket.recv_fds(peer, 10, 4)
        os.write(received, b"by another descriptor")
        print(data, os.read(reading, 100))
        pid, user, group = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        print(pid == os.getpid(), user, group)
        peer.close()
    try:
        socket.create_connection(("127.0.0.1", 1))
    except OSError as error:
        print(type(error).__name__, errno.errorcode[error.errno])


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        # No more than a line: a child has the ends of other clients, too, which therefore do not end before it does.
        self.wfile.write(self.rfile.readline().upper())


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(*((200, b"got " + self.path.encode()) if self.path != "/none" else (404, b"none")))

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200, json.dumps({"sum": sum(data)}).encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address
        server.shutdown()
        thread.join()


def servers():
    for kind in (socketserver.ThreadingTCPServer, socketserver.ForkingTCPServer):
        with serving(kind(("127.0.0.1", 0), Upper)) as address:
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(socket.create_connection(address)) for _ in range(5)]
                for number, client in enumerate(clients):
                    client.sendall(f"client {number}\n".encode())
                print([client.recv(100) for client in clients])
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)) as (host, port):
        base = f"http://{host}:{port}"
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            print(list(pool.map(lambda n: urllib.request.urlopen(f"{base}/{n}").read().decode(), range(10))))
        with urllib.request.urlopen(base, data=json.dumps(list(range(1000))).encode()) as answer:
            print(answer.status, answer.read(), answer.headers["Content-Length"])
        try:
            urllib.request.urlopen(f"{base}/none")
        except urllib.error.HTTPError as error:
            print(error, error.read())
    try:
        urllib.request.urlopen("http://127.0.0.1:1/")
    except urllib.error.URLError as error:
        print(error)


async def conversation():
    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line[::-1])
            await writer.drain()
        writer.close()

    async def ask(port, word):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{word}\n".encode())
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(ask(port, word) for word in ("one", "two", "three"))))
    server.close()
    await server.wait_closed()
    child = await asyncio.create_subprocess_exec(BUSYBOX, "tr", "a-z", "A-Z", stdin=asyncio.subprocess.PIPE,
                                                 stdout=asyncio.subprocess.PIPE)
    print(await child.communicate(b"through a child"), child.returncode)
    children = [await asyncio.create_subprocess_shell(f"exit {n}", executable="/tmp/bin/sh") for n in range(3)]
    print([await child.wait() for child in children])
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, heard.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await heard.wait()
    print(await loop.run_in_executor(None, sum, range(1000)), await asyncio.to_thread(cube, 5))
    try:
        await asyncio.wait_for(asyncio.sleep(1000), 0.01)
    except asyncio.TimeoutError:
        print("timeout")
    order = []

    async def later(number):
        await asyncio.sleep(number / 100)
        order.append(number)
    await asyncio.gather(*(later(number) for number in (3, 1, 2)))
    print(order)
    things = asyncio.Queue(2)

    async def produce():
        for number in range(10):
            await things.put(number)
        await things.put(None)
    task, taken = asyncio.create_task(produce()), []
    while (thing := await things.get()) is not None:
        taken.append(thing)
    await task
    print(taken)


def conversations():
    asyncio.run(conversation())


def database():
    with tempfile.TemporaryDirectory() as name:
        path = os.path.join(name, "a.db")
        with contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as base:
            base.execute("pragma journal_mode = wal")
            base.execute("create table word (id integer primary key, text text unique, n real)")
            with base:
                base.executemany("insert into word (text, n) values (?, ?)", ((f"word {n}", n / 4) for n in range(500)))
            print(base.execute("select count(*), sum(n), max(text) from word where id % 3 = 1").fetchone())
            base.create_function("backwards", 1, lambda text: text[::-1])
            print(base.execute("select backwards(text) from word where id < 4 order by id").fetchall())
            try:
                with base:
                    base.execute("delete from word")
                    base.execute("insert into word (id, text) values (1, 'a'), (1, 'b')")
            except sqlite3.IntegrityError as error:
                print(error, base.total_changes)
            with contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
                base.execute("begin immediate")
                print(other.execute("select count(*) from word").fetchone())
                try:
                    other.execute("insert into word (text) values ('x')")
                except sqlite3.OperationalError as error:
                    print(error)
                base.rollback()
            print(hash("\n".join(base.iterdump())) != 0, sorted(os.listdir(name)))


def failures():
    def endless(depth):
        return endless(depth + 1)
    try:
        endless(0)
    except RecursionError as error:
        print(error)
    text = io.StringIO()
    try:
        {}["missing"]
    except KeyError:
        traceback.print_exc(file=text)
    print(text.getvalue().splitlines()[-1])
    with tempfile.TemporaryFile() as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        print(fcntl.fcntl(file, fcntl.F_GETFD), fcntl.flock(file, fcntl.LOCK_SH))
    crash = subprocess.run([sys.executable, "-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)"],
                           capture_output=True, text=True)
    print(crash.returncode, crash.stderr.splitlines()[0])
    print(subprocess.run([sys.executable, "-c", "import os; os.abort()"]).returncode)
    print(time.monotonic() < time.monotonic() + 1, time.gmtime(86400)[:6], time.strftime("%F", time.gmtime(0)))
    print(sys.version_info[:2], sys.platform, os.uname().machine)


os.mkdir("/tmp/bin")
# Semaphores are files there.
os.makedirs("/dev/shm", exist_ok=True)
for applet in ("sh", "cat", "tr"):
    os.symlink(BUSYBOX, f"/tmp/bin/{applet}")
os.environ["PATH"] = f"/tmp/bin:{os.environ['PATH']}"
PARTS = (
    files, threads, processes, workers, signals, memory, waiting, sockets, servers, conversations, database, failures
)
for part in PARTS:
    if part.__name__ in (sys.argv[1:] or [part.__name__]):
        print(f"== {part.__name__}", flush=True)
        part()
        sys.stdout.flush()
