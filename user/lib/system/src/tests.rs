extern crate std;

use std::vec::Vec;

use super::*;

fn sample() -> [Program<'static>; 2] {
    let mem = Program {
        name: "mem",
        path: "bin/mem",
        priority: 200,
        ceiling: 255,
        stack_size: 65536,
        quota: 4 << 20,
        start: true,
        cores: Cores::Several,
        server: true,
        restart: 5,
        restart_delay: 10,
        keep: 4096,
        keep_nodes: 1,
        arguments: Strings::new(b"--policy\0best fit\0"),
        environment: Strings::new(b"COLOUR=no\0"),
        powers: 0b101,
        capabilities: Capabilities::new(Strings::new(b"untyped:all\0service:names\0interrupt:virtio7\0")),
    };
    let hello = Program { name: "hello", path: "bin/hello", start: false, server: false, ..mem };
    [mem, hello]
}

fn shares() -> Shares<'static> {
    Shares::new(Strings::new(b"4\x0096M\x002G\x00"))
}

#[test]
fn a_written_description_is_read_back() {
    let bytes = System::write(&sample(), shares());
    let system = System::parse(&bytes).unwrap();
    assert_eq!(system.programs().collect::<Vec<_>>(), sample());
    assert_eq!(system.find("hello").unwrap().path, "bin/hello");
    assert_eq!(system.find_path("bin/mem").unwrap().name, "mem");
    assert!(system.find("nobody").is_none());
    let expected = [Share::Weight(4), Share::Size(96 << 20), Share::Size(2 << 30), Share::USUAL, Share::USUAL];
    assert_eq!([0, 1, 2, 3, u64::MAX].map(|core| system.shares().of(core)), expected);

    let mem = system.find("mem").unwrap();
    assert_eq!(mem.arguments.iter().collect::<Vec<_>>(), ["--policy", "best fit"]);
    assert_eq!(mem.environment.count(), 1);
    assert_eq!(
        mem.capabilities.iter().collect::<Vec<_>>(),
        [Capability::Untyped, Capability::Service("names"), Capability::Interrupt(Device::Virtio(7))]
    );
}

#[test]
fn a_server_is_on_the_first_core_only_or_on_each() {
    let [mem, hello] = sample();
    for (cores, is_on_each) in [(Cores::First, false), (Cores::Every, true), (Cores::Several, true)] {
        let server = Program { cores, ..mem };
        assert_eq!((server.is_on_each_core(), server.is_absent_elsewhere()), (is_on_each, !is_on_each));
        let program = Program { cores, ..hello };
        assert!(!program.is_on_each_core() && !program.is_absent_elsewhere());
    }
    let of_one = Program { cores: Cores::Only(3), ..mem };
    assert!(!of_one.is_on_each_core() && !of_one.is_absent_elsewhere());
}

#[test]
fn a_program_of_one_core_is_started_there_if_the_core_exists() {
    for (core, count, is_started) in [(0, 1, false), (0, 4, false), (2, 4, true), (3, 4, false)] {
        assert_eq!(Cores::Only(2).contain(core, count), is_started, "core {core} of {count}");
    }
}

#[test]
fn every_shorter_prefix_is_refused() {
    let bytes = System::write(&sample(), shares());
    for length in 0..bytes.len() {
        assert_eq!(System::parse(&bytes[..length]).err(), Some(Malformed), "prefix of {length} bytes");
    }
}

#[test]
fn damaged_bytes_are_refused_or_harmless() {
    let bytes = System::write(&sample(), shares());
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            if let Ok(system) = System::parse(&damaged) {
                assert_eq!(system.programs().count(), 2);
            }
        }
    }
}

#[test]
fn each_form_is_understood_and_nothing_else() {
    for (form, _) in FORMS {
        let text = form.replace("DEVICE", "uart").replace("SERVER", "mem");
        assert!(Capability::from_text(&text).is_some(), "{text}");
    }
    for text in ["", "Kernel", "device", "device:", "device:floppy", "virtio", "device:virtio32", "device:virtio+1"] {
        assert!(Capability::from_text(text).is_none(), "{text}");
    }
    for text in ["untyped:some", "archive:all", "interrupt:virtio01", "kernel "] {
        assert!(Capability::from_text(text).is_none(), "{text}");
    }
}

#[test]
fn shares_are_weights_and_sizes() {
    for (text, share) in [
        ("1", Share::Weight(1)),
        ("1000", Share::Weight(1000)),
        ("16M", Share::Size(16 << 20)),
        ("1G", Share::Size(1 << 30)),
        ("1024G", Share::Size(1 << 40)),
    ] {
        assert_eq!(Share::from_text(text), Some(share), "{text}");
    }
    for text in
        ["", "0", "01", "1001", "-1", "+1", "M", "G", "15M", "0G", "1025G", "16m", "16 M", "16MM", "1.5G", "16K"]
    {
        assert_eq!(Share::from_text(text), None, "{text}");
    }
    assert_eq!(Share::from_text("18446744073709551615G"), None);
}

#[test]
fn shares_that_no_description_has_are_refused() {
    let many = b"1\0".repeat(MAX_SHARES);
    let more = b"1\0".repeat(MAX_SHARES + 1);
    let parse = |bytes| System::parse(&System::write(&[], Shares::new(Strings::new(bytes)))).map(drop);
    assert_eq!(parse(b""), Ok(()));
    assert_eq!(parse(&many), Ok(()));
    for bytes in [&b"16M\0"[..], b"1\x002", b"1\0zero\0", b"\0", b"1\x00\xff\0", &more] {
        assert_eq!(parse(bytes), Err(Malformed), "{bytes:?}");
    }
}
