//! Calls that write areas back or keep them in memory: nothing is to be done, but mistakes are refused.

mod support;

use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

const PAGE: u64 = 4096;
/// Two pages of the program's data, and an address where nothing is.
const DATA: u64 = 0x20_1000;
const NOWHERE: u64 = 0x4000_0000;

fn call(play: &mut Play, call: Sysno, arguments: [u64; 3]) -> Result<u64, i64> {
    let [a, b, c] = arguments;
    let result = play.call(1, call as u64, [a, b, c, 0, 0, 0]).unwrap().cast_signed();
    if result < 0 { Err(-result) } else { Ok(result.cast_unsigned()) }
}

fn error(error: Errno) -> Result<u64, i64> {
    Err(error.into_raw().into())
}

#[test]
fn areas_that_are_not_there_cannot_be_written_back() {
    let mut play = Play::new(4096);
    let (asynchronous, invalidate, synchronous) = (1, 2, 4);
    for flags in [0, asynchronous, invalidate, synchronous, invalidate | synchronous] {
        assert_eq!(call(&mut play, Sysno::msync, [DATA, 1, flags]), Ok(0), "{flags}");
    }
    assert_eq!(call(&mut play, Sysno::msync, [DATA, PAGE, asynchronous | synchronous]), error(Errno::EINVAL));
    assert_eq!(call(&mut play, Sysno::msync, [DATA, PAGE, 8]), error(Errno::EINVAL));
    assert_eq!(call(&mut play, Sysno::msync, [DATA + 1, PAGE, synchronous]), error(Errno::EINVAL));
    assert_eq!(call(&mut play, Sysno::msync, [NOWHERE, PAGE, synchronous]), error(Errno::ENOMEM));
    assert_eq!(call(&mut play, Sysno::msync, [NOWHERE, 0, synchronous]), Ok(0));
    assert_eq!(call(&mut play, Sysno::msync, [DATA, u64::MAX, synchronous]), error(Errno::ENOMEM));
}

#[test]
fn areas_that_are_not_there_cannot_be_locked() {
    let mut play = Play::new(4096);
    for locks in [Sysno::mlock, Sysno::munlock] {
        assert_eq!(call(&mut play, locks, [DATA + 7, 100, 0]), Ok(0));
        assert_eq!(call(&mut play, locks, [NOWHERE, 1, 0]), error(Errno::ENOMEM));
        assert_eq!(call(&mut play, locks, [NOWHERE, 0, 0]), Ok(0));
        assert_eq!(call(&mut play, locks, [DATA, u64::MAX, 0]), error(Errno::EINVAL));
    }
    for flags in [1, 2, 3, 5, 7] {
        assert_eq!(call(&mut play, Sysno::mlockall, [flags, 0, 0]), Ok(0), "{flags}");
    }
    for flags in [0, 4, 8, 9] {
        assert_eq!(call(&mut play, Sysno::mlockall, [flags, 0, 0]), error(Errno::EINVAL), "{flags}");
    }
    assert_eq!(call(&mut play, Sysno::munlockall, [0; 3]), Ok(0));
}
