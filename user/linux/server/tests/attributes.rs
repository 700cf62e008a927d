//! Extended attributes of files, which no file has, and calls that programs only probe.

mod support;

use support::Play;
use tench_linux_files::Errno;

/// Numbers of calls.
const SETXATTR: u64 = 5;
const FREMOVEXATTR: u64 = 16;
const STATX: u64 = 291;
const SWAPON: u64 = 224;

/// Makes a call without arguments; returns its error.
fn error_of(play: &mut Play, call: u64) -> i64 {
    -play.call(1, call, [0; 6]).expect("the process runs").cast_signed()
}

#[test]
fn extended_attributes_are_not_supported_and_programs_need_not_hear_more() {
    let mut play = Play::new(2048);
    for call in SETXATTR..=FREMOVEXATTR {
        assert_eq!(error_of(&mut play, call), Errno::EOPNOTSUPP.into_raw().into(), "call {call}");
    }
    assert!(play.instance.system.memory.hardware.reports.is_empty());
}

#[test]
fn calls_that_programs_probe_are_not_reported() {
    let mut play = Play::new(2048);
    assert_eq!(error_of(&mut play, STATX), Errno::ENOSYS.into_raw().into());
    assert!(play.instance.system.memory.hardware.reports.is_empty());
    assert_eq!(error_of(&mut play, SWAPON), Errno::ENOSYS.into_raw().into());
    assert_eq!(play.instance.system.memory.hardware.reports.len(), 1);
}
