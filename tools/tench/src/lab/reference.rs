//! Figures of other systems, and Tench's targets: the figures of the design, by the keys of ours.

use super::support::Sum;

/// seL4 16.0.0-dev, fastest configuration, measured in the same way.
pub const SEL4: &[(&str, f64)] = &[
    ("call_0", 192.0),
    ("reply_recv_0", 215.0),
    ("call_cap", 953.0),
    ("signal_wake", 497.0),
    ("signal_nowait", 340.0),
    ("yield", 273.0),
    ("null_syscall", 265.0),
    ("fault_endpoint", 468.0),
    ("fault_reply", 571.0),
    ("irq_wake", 330.0),
    ("map_1", 535.0),
    ("unmap_1", 487.0),
    ("retype_page", 2783.0),
    ("retype_page_clean", 1088.0),
    ("retype_256", 111_758.0),
    ("delete_page", 634.0),
    ("copy_cap", 648.0),
    ("revoke_1024", 291_425.0),
    ("wait_again", 385.0),
    ("round_trip_float", 512.0),
];

/// Barrelfish (its AOS kernel for AArch64), measured in the same way: deleting a capability of which there are 200
/// copies.
pub const BARRELFISH_SIBLINGS: &[(&str, f64)] = &[("delete_copy_200", 141_000.0)];

/// Largest acceptable value of each path.
pub const IPC_TARGETS: &[(&str, f64)] = &[
    ("call_0", 95.0),
    ("reply_recv_0", 105.0),
    ("call_cap", 350.0),
    ("signal_wake", 190.0),
    ("signal_nowait", 90.0),
    ("yield", 135.0),
    ("null_syscall", 60.0),
    ("fault_endpoint", 180.0),
    ("fault_reply", 200.0),
    ("fault_upcall", 110.0),
    ("irq_wake", 190.0),
    ("map_1", 260.0),
    ("map_each_512", 12.0),
    ("set_1", 130.0),
    ("clone_each_192", 15.0),
    ("unmap_1", 260.0),
    ("retype_page", 700.0),
    ("retype_page_clean", 450.0),
    ("retype_256", 50_000.0),
    ("delete_page", 320.0),
    ("copy_cap", 300.0),
    ("revoke_1024", 160_000.0),
    ("wait_again", 180.0),
    ("round_trip_float", 320.0),
    ("call_parked", 230.0),
    ("foreign_message", 230.0),
    ("thread_control", 400.0),
];

/// Round trips: the sums of both directions.
pub const IPC_SUMS: &[Sum] = &[
    Sum { title: "round trip, 0 words", keys: &["call_0", "reply_recv_0"], reference: Some(407.0), target: 200.0 },
    Sum { title: "round trip, 8 words", keys: &["call_8", "reply_recv_8"], reference: None, target: 210.0 },
    Sum { title: "round trip, 10 words", keys: &["call_10", "reply_recv_10"], reference: Some(1390.0), target: 330.0 },
    Sum { title: "round trip, 64 words", keys: &["call_64", "reply_recv_64"], reference: Some(1900.0), target: 520.0 },
];

/// choochoos on ARMv4 with -O3, measured in the same way: a round trip by size.
pub const CHOOCHOOS: &[(&str, f64)] =
    &[("r_4", 767.0), ("s_4", 775.0), ("r_64", 857.0), ("s_64", 865.0), ("r_256", 1121.0), ("s_256", 1129.0)];

/// Choochoos's own report with caches on, corrected by the factor of 16 in its program, at 200 MHz.
pub const CHOOCHOOS_MICROSECONDS: &[(&str, f64)] = &[
    ("r_4", 14.25),
    ("r_64", 15.75),
    ("r_256", 20.0),
    ("s_4", 14.25),
    ("s_64", 16.0),
    ("s_256", 20.0),
    ("unoptimised_r_4", 44.75),
    ("unoptimised_r_64", 46.0),
    ("unoptimised_r_256", 50.0),
    ("unoptimised_s_4", 47.5),
    ("unoptimised_s_64", 48.75),
    ("unoptimised_s_256", 52.75),
];

/// Figures of seL4's boot.
pub const SEL4_BOOT: &[(&str, f64)] = &[("kernel_to_user", 2_370_832.0), ("kernel_text_bytes", 31_664.0)];

/// Largest acceptable values of the boot.
pub const BOOT_TARGETS: &[(&str, f64)] = &[
    ("kernel_to_user", 400_000.0),
    ("kernel_to_prompt", 3_000_000.0),
    ("hello_bytes", 65_536.0),
    ("kernel_text_bytes", 49_152.0),
];

/// Target for large pages: mapping 4 MiB takes at most a twentieth of mapping its pages one by one.
pub const PAGING_TARGETS: &[(&str, f64)] = &[("map_4m_percent", 5.0)];

/// Target for a page on demand without neighbours, including the kernel's part and everything needed occasionally.
pub const FAULT_TARGETS: &[(&str, f64)] = &[("lazy_upcall", 2500.0)];

/// A student system of R0's course: `malloc(4)` 1,024 times.
pub const HEAP_R0: &[(&str, f64)] = &[("c_1024_requests", 8.0)];

/// Targets for the heap: at most as many.
pub const HEAP_TARGETS: &[(&str, f64)] = &[("rust_1024_requests", 8.0), ("c_1024_requests", 8.0)];

/// Largest acceptable cost of an operation of the memory manager among a million free extents.
pub const MM_TARGETS: &[(&str, f64)] = &[("alloc_1000000", 1500.0), ("free_1000000", 1500.0)];

/// Largest acceptable excess of a generated stub over the bare call.
pub const STUBS_TARGETS: &[(&str, f64)] = &[
    ("stub_0_over", 30.0),
    ("stub_1_over", 30.0),
    ("stub_4_over", 30.0),
    ("stub_8_over", 30.0),
    ("stub_text_over", 30.0),
    ("stub_cap_over", 30.0),
];

/// R2's table 9.1: lines of assembler and cycles of a stub by hand and by its generic interface, both optimised.
pub const R2_STUBS: [(&str, f64, f64); 2] = [("by hand", 41.0, 60.0), ("convenience interface", 254.0, 221.0)];

/// R2's section 7.1: cycles of `task_info` by its generic layer and by a stub of its own.
pub const R2_TASK_INFO: [(&str, f64); 2] = [("generic layer", 6023.0), ("stub", 3970.0)];

/// R2's table 8.2 in cycles of its processor: Darwin's locks, which are semaphores in another address space (`server`),
/// and those of its own library (`local`).
pub const THREADS_R2: &[(&str, f64)] = &[
    ("local_2", 6426.0),
    ("local_3", 6433.0),
    ("local_4", 6479.0),
    ("local_5", 6522.0),
    ("local_6", 6515.0),
    ("local_7", 6544.0),
    ("local_8", 6535.0),
    ("local_9", 6531.0),
    ("server_2", 12_089.0),
    ("server_3", 13_944.0),
    ("server_4", 15_878.0),
    ("server_5", 16_582.0),
    ("server_6", 16_957.0),
    ("server_7", 17_113.0),
    ("server_8", 17_362.0),
    ("server_9", 17_256.0),
    ("local_9_percent", 38.0),
];

/// Targets: as good as R2's library beside Darwin's locks, and as good with many threads as with two.
pub const THREADS_TARGETS: &[(&str, f64)] = &[("local_9_percent", 38.0), ("local_64_percent", 105.0)];

/// R0's figure 15, in microseconds: the time within which nearly all strings of a size were sent, by its text.
pub const RPC_R0: &[(&str, f64)] = &[("string_16", 60.0), ("string_128", 300.0), ("string_1024", 350.0)];

/// Targets: a short string costs at most 100 instructions more than two calls of eight words in `ipc`; memory from the
/// server at most half as much again as from tables in the process.
pub const RPC_TARGETS: &[(&str, f64)] = &[("string_16", 300.0), ("ram_percent", 150.0)];

/// Target: a thread that waits in turn is never more than one call behind.
pub const CONTENTION_TARGETS: &[(&str, f64)] = &[("spread_2", 1.0), ("spread_8", 1.0), ("spread_64", 1.0)];
/// A system of R0's course on Barrelfish (a program of 516 KiB), measured in the same way: 18.5 to 19.4 million.
pub const SPAWN_BARRELFISH: &[(&str, f64)] = &[("local_25", 19_400_000.0)];

/// Targets: a quarter of a million instructions for `hello`, and the same with a thousand processes as with 25.
pub const SPAWN_TARGETS: &[(&str, f64)] = &[
    ("hello_25", 250_000.0),
    ("hello_1000", 250_000.0),
    ("rpc_percent", 102.0),
    ("hello_percent", 102.0),
    ("hello_end_percent", 102.0),
    ("kill_percent", 102.0),
    ("local_percent", 102.0),
    ("local_end_percent", 102.0),
];

/// Targets for a channel's polling sides; for a ping through sleeping monitors: four times `ipc call_0` and the
/// interrupts, which are `doorbell`, as they are recorded (a test compares); for a program on another core, in percent
/// of one on this core; for work on eight cores, in percent of that on one.
pub const CORES_TARGETS: &[(&str, f64)] = &[
    ("poll_1", 250.0),
    ("poll_7", 250.0),
    ("poll_1_between", 250.0),
    ("poll_7_between", 250.0),
    ("sleep_1", 4.0 * 91.0 + 1058.0),
    ("spawn_percent", 120.0),
    ("work_percent", 102.0),
];

/// Targets for the calls, faults and signals of Linux programs, in percent of Linux's.
pub const SYSCALL_TARGETS: &[(&str, f64)] = &[
    ("getppid_percent", 70.0),
    ("sigprocmask_percent", 70.0),
    ("fcntl_percent", 70.0),
    ("clock_gettime_percent", 60.0),
    ("read_zero_1_percent", 60.0),
    ("write_null_1_percent", 60.0),
    ("pread_tmpfs_1_percent", 40.0),
    ("pread_tmpfs_4096_percent", 60.0),
    ("stat_percent", 50.0),
    ("open_close_percent", 50.0),
    ("create_unlink_percent", 35.0),
    ("ppoll_1_percent", 50.0),
    ("mmap_munmap_percent", 25.0),
    ("brk_pair_percent", 25.0),
    ("mprotect_touch_percent", 50.0),
    ("anonymous_fault_percent", 30.0),
    ("cow_copy_percent", 40.0),
    ("cow_reuse_percent", 50.0),
    ("signal_self_percent", 50.0),
    ("protection_fault_percent", 50.0),
    ("fork_exit_wait_percent", 70.0),
    ("fork_exec_wait_percent", 70.0),
    ("pipe_round_trip_percent", 25.0),
    ("unix_round_trip_percent", 25.0),
    ("epoll_0_percent", 70.0),
    ("thread_create_join_percent", 40.0),
    ("futex_round_trip_percent", 25.0),
    ("yield_switch_percent", 30.0),
    ("fork_100m_percent", 15.0),
    ("fork_100m_exit_percent", 20.0),
];

/// Target beside a thread that overruns: no other thread misses a deadline.
pub const ISOLATION_TARGETS: &[(&str, f64)] = &[("missed_others", 0.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_ping_is_made_of_todays_parts() {
        let recorded = |experiment: &str, key: &str| -> f64 {
            let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let text = std::fs::read_to_string(root.join("lab/baseline").join(experiment)).expect("recorded figures");
            let json: serde_json::Value = serde_json::from_str(&text).expect("a baseline");
            json["figures"][key].as_f64().expect("a figure")
        };
        let parts = 4.0 * recorded("ipc.json", "call_0") + recorded("cores.json", "doorbell");
        let target = CORES_TARGETS.iter().find(|(key, _)| *key == "sleep_1").expect("a target");
        assert_eq!(target.1, parts);
    }
}
