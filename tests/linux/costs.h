/* Functions that make the measured calls. The includer defines their names by ROW, and the way to make a call by `call`. */

static inline number ROW(open)(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }
static inline number ROW(close)(number one) { return call(CLOSE, one, 0, 0, 0, 0, 0); }
/* Maps pages so that each costs a fault: large pages would save some. */
static inline number ROW(map)(number pages, number flags) {
    number area = call(MMAP, 0, pages * PAGE, PROT_READ | PROT_WRITE, flags | ANONYMOUS, -1, 0);
    if (pages > 1)
        call(MADVISE, area, pages * PAGE, NO_LARGE_PAGES, 0, 0, 0);
    return area;
}
static inline number ROW(unmap)(number at, number pages) { return call(MUNMAP, at, pages * PAGE, 0, 0, 0, 0); }
static inline number ROW(brk)(number to) { return call(BRK, to, 0, 0, 0, 0, 0); }

COST(ROW(getppid), call(GETPPID, 0, 0, 0, 0, 0, 0))
COST(ROW(sigprocmask), call(RT_SIGPROCMASK, 0, (number)mask, 0, 8, 0, 0))
COST(ROW(fcntl), call(FCNTL, zero, 3, 0, 0, 0, 0))
COST(ROW(clock_gettime), call(CLOCK_GETTIME, 1, (number)time, 0, 0, 0, 0))
COST(ROW(sched_yield), call(SCHED_YIELD, 0, 0, 0, 0, 0, 0))
COST(ROW(read_zero_1), call(READ, zero, (number)page, 1, 0, 0, 0))
COST(ROW(write_null_1), call(WRITE, null, (number)page, 1, 0, 0, 0))
COST(ROW(pread_tmpfs_1), call(PREAD64, file, (number)page, 1, 0, 0, 0))
COST(ROW(pread_tmpfs_4096), call(PREAD64, file, (number)page, PAGE, 0, 0, 0))
COST(ROW(stat), call(NEWFSTATAT, AT_FDCWD, (number)file_name, (number)page, 0, 0, 0))
COST(ROW(open_close), ROW(close)(ROW(open)(file_name, RDONLY)))
COST(ROW(create_unlink),
     ROW(close)(ROW(open)("/tmp/new", RDWR | CREAT | EXCL)) | call(UNLINKAT, AT_FDCWD, (number)"/tmp/new", 0, 0, 0, 0))
COST(ROW(ppoll_1), call(PPOLL, (number)&polled, 1, 0, 0, 8, 0))
COST(ROW(mmap_munmap), ROW(unmap)(ROW(map)(1, PRIVATE), 1))

static number ROW(brk_pair)(number rounds) {
    number heap = ROW(brk)(0);
    return TICKS(rounds, (ROW(brk)(heap + 32 * PAGE), ROW(brk)(heap)));
}

/* Asks an epoll set for events when there are none. */
static number ROW(epoll_0)(number rounds) {
    int ends[2];
    struct { unsigned events; size data; } event = {1, 0};
    number set = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    if (set < 0)
        return set;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    call(EPOLL_CTL, set, 1, ends[0], (number)&event, 0, 0);
    number ticks = TICKS(rounds, call(EPOLL_PWAIT, set, (number)&event, 1, 0, 0, 8));
    ROW(close)(ends[0]), ROW(close)(ends[1]), ROW(close)(set);
    return ticks;
}
