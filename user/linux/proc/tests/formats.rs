//! The texts are read by the same parser as Linux's own.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use procfs_core::process::{
    LimitValue, Limits, MMPermissions, MMapPath, MemoryMaps, MountInfos, ProcState, Stat, StatM, Status,
};
use procfs_core::{CpuInfo, FromRead, LoadAverage, Meminfo, MountEntry, Uptime};
use tench_linux_proc::{
    Device, Layout, Limit, Map, Memory, Mount, Owner, Page, Process, Processor, Residence, Signals, State, System,
    Times, Use, devices, file_systems, identifier, limits, maps, mount_information, mounts, smaps, smaps_rollup, swaps,
};

fn parsed<T: FromRead>(text: &[u8]) -> T {
    T::from_read(text).unwrap_or_else(|error| panic!("{}: {error:?}", String::from_utf8_lossy(text)))
}

/// Returns a file of Linux's own.
fn own(path: &str) -> Vec<u8> {
    fs::read(path).unwrap()
}

/// Returns the names at the beginnings of lines, to a colon.
fn names(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned()).collect()
}

fn process() -> Process<'static> {
    Process {
        thread: 12,
        id: 11,
        tracer: 0,
        parent: 3,
        group: 10,
        session: 9,
        terminal: Some((0x501, Some(10))),
        name: b"a (b) c",
        state: State::Stopped,
        has_executed: false,
        threads: 2,
        started: 4711,
        nice: 5,
        times: Times { user: 101, system: 102, children_user: 103, children_system: 104 },
        memory: Some(Memory {
            size: 540,
            anonymous: 20,
            file: 7,
            shared: 3,
            code: 15,
            libraries: 4,
            data: 8,
            stack: 33,
            tables: 5,
        }),
        layout: Layout {
            code: 0x1000..0x2345,
            data: 0x3000..0x3456,
            heap: 0x4000,
            stack: 0x7000,
            arguments: 0x7100..0x7110,
            environment: 0x7110..0x7120,
        },
        signals: Signals {
            pending: 1,
            shared_pending: 2,
            blocked: 4,
            ignored: 1 << 40 | 8,
            caught: 16,
            queued: 2,
            most: 1024,
        },
        users: [1, 2, 3, 4],
        group_ids: [5, 6, 7, 8],
        capabilities: [0, 0x1ff_ffff_ffff, 0x1ff_ffff_fffe, 0x1ff_ffff_fffd, 1],
        has_no_new_privileges: true,
        filtering: (2, 3),
        mask: 0o22,
        groups: &[],
        descriptors: 64,
        end_signal: 17,
        end: 0,
    }
}

#[test]
fn stat_has_all_fields_in_their_places() {
    let text = process().stat();
    let stat: Stat = parsed(&text);
    assert_eq!((stat.pid, &*stat.comm, stat.state().unwrap()), (12, "a (b) c", ProcState::Stopped));
    assert_eq!((stat.ppid, stat.pgrp, stat.session, stat.tty_nr, stat.tpgid), (3, 10, 9, 0x501, 10));
    assert_eq!((stat.flags, stat.minflt, stat.cmajflt), (0x40, 0, 0));
    assert_eq!((stat.utime, stat.stime, stat.cutime, stat.cstime), (101, 102, 103, 104));
    assert_eq!((stat.priority, stat.nice, stat.num_threads, stat.itrealvalue), (25, 5, 2, 0));
    assert_eq!((stat.starttime, stat.vsize, stat.rss, stat.rsslim), (4711, 540 * 4096, 30, u64::MAX));
    assert_eq!((stat.startcode, stat.endcode, stat.startstack), (0x1000, 0x2345, 0x7000));
    assert_eq!((stat.kstkesp, stat.kstkeip), (0, 0));
    assert_eq!((stat.signal, stat.blocked, stat.sigignore, stat.sigcatch), (1, 4, 8, 16));
    assert_eq!((stat.wchan, stat.exit_signal, stat.processor), (0, Some(17), Some(0)));
    assert_eq!((stat.rt_priority, stat.policy, stat.delayacct_blkio_ticks), (Some(0), Some(0), Some(0)));
    assert_eq!((stat.start_data, stat.end_data, stat.start_brk), (Some(0x3000), Some(0x3456), Some(0x4000)));
    assert_eq!((stat.arg_start, stat.arg_end), (Some(0x7100), Some(0x7110)));
    assert_eq!((stat.env_start, stat.env_end, stat.exit_code), (Some(0x7110), Some(0x7120), Some(0)));
    let fields = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        text[text.rfind(')').unwrap()..].trim_end_matches('\n').split(' ').count() + 1
    };
    assert_eq!((fields(&text), fields(&own("/proc/self/stat"))), (52, 52));
    assert_eq!(text.last(), Some(&b'\n'));
}

#[test]
fn an_ended_process_has_no_memory() {
    let ended = Process { memory: None, state: State::Ended, end: 256, terminal: None, ..process() };
    let stat: Stat = parsed(&ended.stat());
    assert_eq!((stat.state, stat.vsize, stat.rss, stat.exit_code), ('Z', 0, 0, Some(256)));
    assert_eq!((stat.tty_nr, stat.tpgid), (0, -1));
    let status: Status = parsed(&ended.status());
    assert_eq!((&*status.state, status.vmsize, status.vmpte), ("Z (zombie)", None, None));
    assert_eq!(ended.statm(), b"0 0 0 0 0 0 0\n");
}

#[test]
fn status_says_what_it_is_given_with_the_names_of_linux() {
    let text = process().status();
    let status: Status = parsed(&text);
    assert_eq!((&*status.name, status.umask, &*status.state), ("a (b) c", Some(0o22), "T (stopped)"));
    assert_eq!((status.tgid, status.pid, status.ppid, status.fdsize), (11, 12, 3, 64));
    assert_eq!((status.nstgid, status.nspgid, status.nssid), (Some(vec![11]), Some(vec![10]), Some(vec![9])));
    assert_eq!((status.vmsize, status.vmrss, status.rssanon), (Some(2160), Some(120), Some(80)));
    assert_eq!((status.rssfile, status.rssshmem, status.vmdata), (Some(28), Some(12), Some(32)));
    assert_eq!((status.vmstk, status.vmexe, status.vmlib, status.vmpte), (Some(132), Some(60), Some(16), Some(20)));
    assert_eq!((status.threads, status.sigq, status.sigpnd, status.shdpnd), (2, (2, 1024), 1, 2));
    assert_eq!((status.sigblk, status.sigign, status.sigcgt), (4, 1 << 40 | 8, 16));
    assert_eq!((status.capeff, status.cpus_allowed), ((1 << 41) - 2, Some(vec![1])));
    assert_eq!((status.capprm, status.capbnd, status.capamb), ((1 << 41) - 1, Some((1 << 41) - 3), Some(1)));
    assert_eq!((status.ruid, status.euid, status.suid, status.fuid), (1, 2, 3, 4));
    assert_eq!((status.rgid, status.egid, status.sgid, status.fgid), (5, 6, 7, 8));
    assert_eq!(status.nonewprivs, Some(1));
    let (own, mine) = (own("/proc/self/status"), names(&text));
    // Other versions and machines have some more, or lack some.
    let theirs: Vec<String> = names(&own).into_iter().filter(|name| mine.contains(name)).collect();
    let both: Vec<String> = mine.into_iter().filter(|name| theirs.contains(name)).collect();
    assert_eq!(both, theirs, "names and their order");
    assert!(both.len() > 45, "{both:?}");
    // A program of tests/linux has printed the names on Linux 6.1.
    let recorded = include_str!("../../../../tests/linux/golden/proc.txt");
    let mine = names(&text).join(" ");
    assert!(recorded.lines().any(|line| line.trim_end() == mine), "{mine}");
    let line = |text: &[u8], name: &str| {
        let text = String::from_utf8_lossy(text).into_owned();
        text.lines().find(|line| line.starts_with(name)).unwrap().to_owned()
    };
    for name in ["VmPTE:", "VmSize:", "RssShmem:", "HugetlbPages:"] {
        assert_eq!(line(&text, name).find("kB"), line(&own, name).find("kB"), "{name} is aligned as Linux aligns it");
    }
    let groups: Status = parsed(&Process { groups: &[4, 1000], ..process() }.status());
    assert_eq!((status.groups, groups.groups), (vec![], vec![4, 1000]));
    let odd = Process { name: b"a\nb\\", ..process() };
    assert!(odd.status().starts_with(b"Name:\ta\\nb\\\\\nUmask"), "what ends a line is written otherwise");
}

#[test]
fn statm_agrees_with_status() {
    let sizes: StatM = parsed(&process().statm());
    assert_eq!((sizes.size, sizes.resident, sizes.shared, sizes.text), (540, 30, 10, 15));
    assert_eq!((sizes.lib, sizes.data, sizes.dt), (0, 41, 0));
    parsed::<StatM>(&own("/proc/self/statm"));
}

#[test]
fn limits_are_those_of_linux_to_the_byte() {
    // What Linux says, read and written again.
    let text = own("/proc/self/limits");
    let value = |text: &str| text.parse::<u64>().ok();
    let lines = String::from_utf8(text.clone()).unwrap();
    let read: Vec<Limit> =
        lines.lines().skip(1).map(|line| (value(line[26..46].trim()), value(line[47..67].trim()))).collect();
    assert_eq!(String::from_utf8(limits(read.first_chunk().unwrap())), Ok(lines));
    let mut mine = [(None, None); 16];
    mine[7] = (Some(1024), Some(1 << 20));
    let mine: Limits = parsed(&limits(&mine));
    assert!(matches!(mine.max_open_files.soft_limit, LimitValue::Value(1024)));
    assert!(matches!(mine.max_open_files.hard_limit, LimitValue::Value(0x10_0000)));
    assert!(matches!(mine.max_cpu_time.soft_limit, LimitValue::Unlimited));
}

/// Returns an area from a line of Linux's.
fn map_of(line: &str) -> Map {
    let fields: Vec<&str> = line.splitn(6, ' ').collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = fields[0].split_once('-').unwrap();
    let (major, minor) = fields[3].split_once(':').unwrap();
    Map {
        range: hex(start)..hex(end),
        rights: [0, 1, 2].map(|index| fields[1].as_bytes()[index] != b'-'),
        is_shared: fields[1].ends_with('s'),
        offset: hex(fields[2]),
        device: (hex(major) as u32, hex(minor) as u32),
        inode: fields[4].parse().unwrap(),
        name: fields.get(5).map_or_else(Vec::new, |name| name.trim_start().as_bytes().to_vec()),
    }
}

#[test]
fn maps_are_those_of_linux_to_the_byte() {
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let read: Vec<Map> = text.lines().map(map_of).collect();
    assert!(read.len() > 5);
    assert_eq!(String::from_utf8(maps(&read)), Ok(text));
}

#[test]
fn maps_say_what_they_are_given() {
    let area = |start: u64, name: &[u8]| Map {
        range: start..start + 0x1000,
        rights: [true, false, true],
        is_shared: false,
        offset: 0x2000,
        device: (0, 1),
        inode: 77,
        name: name.to_vec(),
    };
    let all = [
        area(0x40_0000, b"/bin/a\nb"),
        Map { rights: [true, true, false], is_shared: true, ..area(0x7fff_ffff_e000, b"[stack]") },
        Map { inode: 0, device: (0, 0), offset: 0, ..area(0x50_0000, b"") },
    ];
    let text = maps(&all);
    let parsed: MemoryMaps = parsed(&text);
    let read: Vec<_> = parsed.iter().collect();
    assert_eq!(
        (read[0].address, read[0].offset, read[0].dev, read[0].inode),
        ((0x40_0000, 0x40_1000), 0x2000, (0, 1), 77)
    );
    assert_eq!(read[0].perms, MMPermissions::READ | MMPermissions::EXECUTE | MMPermissions::PRIVATE);
    assert_eq!(read[0].pathname, MMapPath::Path("/bin/a\\012b".into()));
    assert_eq!(read[1].perms, MMPermissions::READ | MMPermissions::WRITE | MMPermissions::SHARED);
    assert_eq!((&read[1].pathname, &read[2].pathname), (&MMapPath::Stack, &MMapPath::Anonymous));
}

/// Returns an area with pages of processes, of a file on a disk, and of memory that is shared.
fn used(start: u64, pages: &[(Owner, bool, u32)]) -> Use {
    let mut sum = Residence::default();
    for (owner, is_dirty, places) in pages {
        sum.add(Page { owner: *owner, is_dirty: *is_dirty, places: *places });
    }
    Use {
        map: Map {
            range: start..start + 0x8000,
            rights: [true, true, false],
            is_shared: false,
            offset: 0,
            device: (0, 0),
            inode: 0,
            name: Vec::new(),
        },
        allowed: [true; 3],
        grows: false,
        pages: sum,
    }
}

#[test]
fn smaps_are_those_of_linux_to_the_byte() {
    let own = used(0x40_0000, &[(Owner::Process, true, 1), (Owner::Process, true, 2)]);
    let text = String::from_utf8(smaps(std::slice::from_ref(&own))).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(format!("{first}\n").into_bytes(), maps(&[own.map]));
    // A program of tests/linux has printed what Linux 6.1 says of such an area of four pages, without one line.
    let recorded = include_str!("../../../../tests/linux/golden/proc.txt");
    let (_, recorded) = recorded.split_once("one written\n").unwrap();
    let (recorded, _) = recorded.split_once("afterwards\n").unwrap();
    // The recording has no blanks at ends of lines.
    let recorded =
        recorded.replace("Size:                 16 kB", "Size:                 32 kB").replace("ac\n", "ac \n");
    let without: String = rest.split_inclusive('\n').filter(|line| !line.starts_with("Referenced:")).collect();
    assert_eq!(without, recorded);
    assert!(rest.contains("Private_Dirty:         4 kB\nReferenced:            8 kB\nAnonymous:             8 kB\n"));
}

#[test]
fn smaps_say_of_pages_whose_they_are() {
    let file = (Owner::File, false, 1);
    let shared = (Owner::Memory, true, 3);
    let all = [
        used(0x40_0000, &[file, (Owner::File, false, 4), (Owner::Process, true, 1)]),
        Use { grows: true, ..used(0x7f_0000, &[shared, shared]) },
    ];
    let areas: MemoryMaps = parsed(&smaps(&all));
    let sizes: Vec<_> = areas.iter().map(|area| &area.extension.map).collect();
    let of = |index: usize, name: &str| sizes[index][name] / 1024;
    assert_eq!(["Size", "Rss", "Pss", "Pss_Dirty"].map(|name| of(0, name)), [32, 12, 9, 4]);
    assert_eq!(["Shared_Clean", "Shared_Dirty"].map(|name| of(0, name)), [4, 0]);
    assert_eq!(["Private_Clean", "Private_Dirty", "Anonymous"].map(|name| of(0, name)), [4, 4, 4]);
    // A third of two pages, rounded down once.
    assert_eq!(["Rss", "Pss", "Pss_Dirty", "Shared_Dirty"].map(|name| of(1, name)), [8, 2, 2, 8]);
    let flags = |one: Use| {
        let text = String::from_utf8(smaps(&[one])).unwrap();
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(flags(all[1].clone()), "VmFlags: rd wr mr mw me gd ac ");
    let mut to_read = used(0, &[]);
    (to_read.map.rights, to_read.map.is_shared, to_read.allowed) = ([true, false, false], true, [true, false, true]);
    assert_eq!(flags(to_read.clone()), "VmFlags: rd mr me ms ");
    to_read.allowed = [true; 3];
    assert_eq!(flags(to_read), "VmFlags: rd sh mr mw me ms ");
    let text = smaps_rollup(&all);
    assert!(text.starts_with(b"00400000-007f8000 ---p 00000000 00:00 0 "));
    let sums: MemoryMaps = parsed(&text);
    let sums = &sums.0[0].extension.map;
    let of = |name: &str| sums[name] / 1024;
    assert_eq!(["Rss", "Pss", "Pss_Anon", "Pss_File", "Pss_Shmem"].map(of), [20, 11, 4, 5, 2]);
    assert_eq!(["Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty"].map(of), [4, 8, 4, 4]);
    assert!(!smaps(&all).windows(9).any(|part| part == b"Pss_Anon:"), "only the sums have that");
    let (own, mine) = (names(&own("/proc/self/smaps_rollup")), names(&text));
    let theirs: Vec<String> = own.into_iter().filter(|name| mine.contains(name)).collect();
    let both: Vec<String> = mine.into_iter().filter(|name| theirs.contains(name)).collect();
    assert!(both == theirs && both.len() > 18, "names and their order: {both:?}");
}

fn system() -> System {
    System {
        uptime: Duration::from_millis(12_345),
        start: Duration::from_secs(1_000_000),
        pages: 1000,
        free: 600,
        cached: 100,
        made: 44,
        running: 2,
        threads: 7,
        last: 43,
        processor: Processor { features: 0b1000_1111_1111, identification: 0x410f_d083, frequency: 62_500_000 },
    }
}

#[test]
fn the_processor_is_described_as_by_linux() {
    // As Debian's kernel for arm64 describes a Cortex-A72.
    let linux = "processor\t: 0\nBogoMIPS\t: 125.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid\n\
        CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n";
    assert_eq!(String::from_utf8(system().processors()).unwrap(), linux);
    let read: CpuInfo = parsed(&system().processors());
    assert_eq!((read.num_cores(), read.get_field(0, "CPU part")), (1, Some("0xd08")));
    assert!(parsed::<CpuInfo>(&own("/proc/cpuinfo")).num_cores() > 0);
    let unknown = Processor { features: 0, identification: 0, frequency: 1_000_000_000 };
    let text = String::from_utf8(System { processor: unknown, ..system() }.processors()).unwrap();
    assert!(text.contains("BogoMIPS\t: 2000.00\nFeatures\t:\n") && text.contains("part\t: 0x000\n"), "{text}");
}

#[test]
fn memory_adds_up() {
    let text = system().memory();
    let read: Meminfo = parsed(&text);
    assert_eq!((read.mem_total, read.mem_free, read.mem_available), (4_096_000, 2_457_600, Some(2_457_600)));
    assert_eq!((read.cached, read.shmem, read.anon_pages), (409_600, Some(409_600), Some(1_228_800)));
    assert_eq!((read.swap_total, read.committed_as), (0, 1_638_400));
    let theirs: BTreeSet<String> = names(&own("/proc/meminfo")).into_iter().collect();
    let mine = names(&text);
    assert!(mine.iter().all(|name| theirs.contains(name)), "{mine:?} of {theirs:?}");
    let position = |text: &[u8]| String::from_utf8_lossy(text).lines().next().unwrap().find("kB");
    assert_eq!(position(&text), position(&own("/proc/meminfo")));
    let full = System { pages: 10, free: 0, cached: 100, ..system() };
    assert_eq!(parsed::<Meminfo>(&full.memory()).cached, 40 * 1024, "no more than there are pages");
}

#[test]
fn the_system_says_how_long_it_runs_and_who_runs() {
    let text = String::from_utf8(system().stat()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "cpu  0 0 0 1234 0 0 0 0 0 0");
    assert_eq!(lines[1], "cpu0 0 0 0 1234 0 0 0 0 0 0");
    let keys = |text: &str| -> Vec<String> {
        let all = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
        all.filter(|key| key == "cpu" || key == "cpu0" || !key.starts_with("cpu")).collect()
    };
    assert_eq!(keys(&text), keys(&fs::read_to_string("/proc/stat").unwrap()), "the keys of Linux in their order");
    assert!(lines.contains(&"btime 1000000") && lines.contains(&"processes 44"), "{lines:?}");
    assert!(lines.contains(&"procs_running 2"), "{lines:?}");
    let uptime: Uptime = parsed(&system().uptime());
    assert_eq!((uptime.uptime, uptime.idle), (12.34, 12.34));
    parsed::<Uptime>(&own("/proc/uptime"));
    let load: LoadAverage = parsed(&system().load());
    assert_eq!((load.one, load.cur, load.max, load.latest_pid), (0.0, 2, 7, 43));
    parsed::<LoadAverage>(&own("/proc/loadavg"));
}

#[test]
fn mounts_have_names_with_blanks() {
    let root = Mount { id: 1, parent: 1, device: 1, kind: "tmpfs", path: "/", options: "rw", own_options: "rw,x" };
    let all = [root, Mount { id: 2, parent: 1, device: 21, kind: "proc", path: "/a b\\c", ..root }];
    assert_eq!(mounts(&all), b"tmpfs / tmpfs rw 0 0\nproc /a\\040b\\134c proc rw 0 0\n");
    let read: Vec<MountEntry> = parsed(&mounts(&all));
    assert_eq!((read.len(), &*read[1].fs_vfstype, &*read[0].fs_file), (2, "proc", "/"));
    let read: MountInfos = parsed(&mount_information(&all));
    let second = read.iter().nth(1).unwrap();
    assert_eq!((second.mnt_id, second.pid, &*second.majmin, &*second.fs_type), (2, 1, "0:21", "proc"));
    assert_eq!((&*second.root, second.mount_options.contains_key("rw")), ("/", true));
    assert!(second.super_options.contains_key("x"));
    parsed::<MountInfos>(&own("/proc/self/mountinfo"));
}

#[test]
fn short_files_are_those_of_linux() {
    assert_eq!(swaps().split(|byte| *byte == b'\n').next(), own("/proc/swaps").split(|byte| *byte == b'\n').next());
    let theirs = fs::read_to_string("/proc/filesystems").unwrap();
    let mine = String::from_utf8(file_systems(&["tmpfs", "proc"])).unwrap();
    assert!(mine.lines().all(|line| theirs.lines().any(|other| other == line)), "{mine}");
    let theirs = fs::read_to_string("/proc/devices").unwrap();
    let mine =
        String::from_utf8(devices(&[Device { major: 1, name: "mem" }, Device { major: 128, name: "ptm" }])).unwrap();
    assert_eq!(mine, "Character devices:\n  1 mem\n128 ptm\n\nBlock devices:\n");
    assert!(mine.lines().all(|line| theirs.lines().any(|other| other == line)), "{theirs}");
}

#[test]
fn identifiers_are_random_ones() {
    assert_eq!(identifier([0xff; 16]), b"ffffffff-ffff-4fff-bfff-ffffffffffff\n");
    let theirs = own("/proc/sys/kernel/random/uuid");
    let (mine, dashes) = (identifier([0; 16]), |text: &[u8]| -> Vec<usize> {
        (0..text.len()).filter(|index| text[*index] == b'-').collect()
    });
    assert_eq!((mine.len(), dashes(&mine), mine[14]), (theirs.len(), dashes(&theirs), theirs[14]));
}
