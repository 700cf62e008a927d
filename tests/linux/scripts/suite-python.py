# Runs Python's own tests, one process for each file of them, and prints a line for each test with its result. Tests
# for which a process dies or takes too long are named, and the next process goes on with those after them. Arguments
# are the names of files or of single tests to run, in place of all; after `--why`, their output is printed, too.

import os
import select
import shutil
import signal
import sys
import time
import traceback
import unittest

# The files of tests, each in a process of its own.
FILES = """
test_os test_posix test_signal test_subprocess test_threading test_threadsignals test_thread test_socket
test_socketserver test_select test_selectors test_poll test_epoll test_mmap test_pty test_openpty test_fcntl
test_ioctl test_eintr test_file_eintr test_fork1 test_wait3 test_wait4 test_popen test_posixpath test_genericpath
test_time test_timeout test_tempfile test_shutil test_glob test_stat test_resource test_pwd test_grp test_errno
test_file test_fileio test_largefile test_queue test_sched test_syslog test_asyncore test_asynchat test_faulthandler
test_atexit test_pathlib test_context test_memoryio test_multiprocessing_main_handling test_concurrent_futures
test_asyncio.test_base_events test_asyncio.test_events test_asyncio.test_selector_events test_asyncio.test_sendfile
test_asyncio.test_server test_asyncio.test_sock_lowlevel test_asyncio.test_streams test_asyncio.test_subprocess
test_asyncio.test_unix_events test_asyncio.test_waitfor test_asyncio.test_locks test_asyncio.test_queues
test_asyncio.test_threads test_asyncio.test_transports test_asyncio.test_tasks test_asyncio.test_runners
""".split()
# Seconds of the machine's time that one test may take.
LIMIT = 120
# The descriptor for a process's reports, the file for its output, and its working directory.
REPORTS = 3
SAID = "/tmp/said"
WORK = "/tmp/work"


class Reports(unittest.TestResult):
    """Reports when each test begins and how it ends."""

    def __init__(self, order):
        super().__init__()
        self.order = order
        self.outcome = None

    def say(self, *words):
        os.write(REPORTS, (" ".join(map(str, words)) + "\n").encode())

    def place(self, test):
        return self.order.get(id(test))

    def startTest(self, test):
        super().startTest(test)
        self.outcome = None
        self.say("begins", self.place(test))

    def stopTest(self, test):
        super().stopTest(test)
        self.say("ends", self.place(test), self.outcome or "PASS")

    def record(self, test, outcome, why=""):
        if self.place(test) is None and outcome != "PASS":
            # The set-up of a class or a file has failed: its tests are not run.
            self.say("prepares", outcome)
        elif self.outcome in (None, "PASS", "SKIPPED"):
            self.outcome = outcome
        if outcome in ("FAILED", "ERROR"):
            print(f"\n== {test}: {outcome}\n{why}", flush=True)

    def explain(self, error):
        return "".join(traceback.format_exception(*error))

    def addSuccess(self, test):
        self.record(test, "PASS")

    def addError(self, test, error):
        self.record(test, "ERROR", self.explain(error))

    def addFailure(self, test, error):
        self.record(test, "FAILED", self.explain(error))

    def addSkip(self, test, reason):
        # A part of a test that is skipped does not make the whole a skipped one.
        self.record(getattr(test, "test_case", test), "SKIPPED")

    def addExpectedFailure(self, test, error):
        self.record(test, "EXPECTED")

    def addUnexpectedSuccess(self, test):
        self.record(test, "UNEXPECTED")

    def addSubTest(self, test, part, error):
        if error is not None:
            outcome = "FAILED" if issubclass(error[0], test.failureException) else "ERROR"
            self.record(test, outcome, f"{part}\n{self.explain(error)}")


def flatten(suite):
    if isinstance(suite, unittest.TestSuite):
        return [test for one in suite for test in flatten(one)]
    return [suite]


def short(test):
    """Returns the name of a test without the package in which all are."""
    name = test.id()
    for beginning in ("unittest.loader._FailedTest.", "unittest.loader.ModuleSkipped.", "test."):
        name = name.removeprefix(beginning)
    return name


def child(name, only, first):
    """Runs the tests of a file from the one with a number on."""
    import test.support

    test.support.use_resources = []
    test.support.verbose = False
    os.chdir(WORK)
    tests = flatten(unittest.defaultTestLoader.loadTestsFromName("test." + name))
    tests = [one for one in tests if not only or short(one) in only]
    reports = Reports({id(one): place for place, one in enumerate(tests)})
    for place, one in enumerate(tests):
        reports.say("is", place, short(one))
    reports.say("begin")
    unittest.TestSuite(tests[first:]).run(reports)
    reports.say("done")
    sys.stdout.flush()
    os._exit(0)


class Child:
    """A process that runs the tests of a file, and what it has said."""

    def __init__(self, name, only, first):
        shutil.rmtree(WORK, ignore_errors=True)
        os.makedirs(WORK)
        self.reader, writer = os.pipe()
        self.text = b""
        self.names, self.told = [], first
        self.running, self.prepared, self.done = None, "ERROR", False
        said = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        null = os.open("/dev/null", os.O_RDONLY)
        self.number = os.fork()
        if self.number == 0:
            os.setsid()
            for file, at in ((null, 0), (said, 1), (said, 2), (writer, 30), (30, REPORTS)):
                os.dup2(file, at)
            os.closerange(REPORTS + 1, 64)
            os.execv(sys.executable, [sys.executable, __file__, "--child", name, str(first), *only])
        for file in (writer, said, null):
            os.close(file)

    def read(self):
        """Takes what the process says until it ends, or says nothing for too long. Returns how that ended."""
        deadline = time.monotonic() + 2 * LIMIT
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                return "HUNG"
            piece = os.read(self.reader, 65536)
            if not piece:
                return "DIED"
            deadline = time.monotonic() + LIMIT
            *lines, self.text = (self.text + piece).split(b"\n")
            for line in lines:
                self.take(line.decode().split(" ", 2))
            if self.done:
                return "done"

    def take(self, words):
        match words:
            case ["is", _, name]:
                self.names.append(name)
            case ["begins", place]:
                self.running = int(place)
            case ["ends", place, result]:
                self.tell(int(place), result)
                self.running = None
            case ["prepares", result]:
                self.prepared = result
            case ["done"]:
                self.done = True

    def tell(self, place, result):
        """Prints the result of a test, after those of the tests before it that were not run."""
        for missing in range(self.told, place):
            print(f"{self.names[missing]} {self.prepared}")
        print(f"{self.names[place]} {result}", flush=True)
        self.told = place + 1

    def end(self):
        os.close(self.reader)
        try:
            os.killpg(self.number, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return os.waitpid(self.number, 0)[1]


def run(name, only, why):
    """Runs a file's tests, and prints their results."""
    first = 0
    while True:
        child = Child(name, only, first)
        how = child.read()
        child.end()
        count = len(child.names)
        if count == 0:
            print(f"{name} {how}", flush=True)
        elif child.running is not None:
            child.tell(child.running, how)
        elif child.told < count:
            child.tell(count - 1, child.prepared)
        if why:
            with open(SAID, errors="replace") as said:
                print(said.read(), flush=True)
        first = child.told
        if first >= count:
            return


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main(words):
    if words[:1] == ["--child"]:
        child(words[1], words[3:], int(words[2]))
    write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    write("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
    write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
    os.makedirs("/dev/shm", exist_ok=True)
    os.chmod("/dev/shm", 0o1777)
    why = words[:1] == ["--why"]
    wanted = words[1:] if why else words
    for name in FILES:
        only = [word for word in wanted if word.startswith(name + ".")]
        if not wanted or only or name in wanted:
            run(name, [] if name in wanted else only, why)


main(sys.argv[1:])
