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
        capabilities: Capabilities::new(Strings::new(b"untyped:all\0service:names\0interrupt:virtio7\0")),
    };
    let hello = Program { name: "hello", path: "bin/hello", start: false, server: false, ..mem };
    [mem, hello]
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = System::write(&sample());
    let system = System::parse(&bytes).unwrap();
    assert_eq!(system.programs().collect::<Vec<_>>(), sample());
    assert_eq!(system.find("hello").unwrap().path, "bin/hello");
    assert_eq!(system.find_path("bin/mem").unwrap().name, "mem");
    assert!(system.find("nobody").is_none());

    let mem = system.find("mem").unwrap();
    assert_eq!(mem.arguments.iter().collect::<Vec<_>>(), ["--policy", "best fit"]);
    assert_eq!(mem.environment.count(), 1);
    assert_eq!(
        mem.capabilities.iter().collect::<Vec<_>>(),
        [Capability::Untyped, Capability::Service("names"), Capability::Interrupt(Device::Virtio(7))]
    );
}

#[test]
fn every_shorter_prefix_is_refused() {
    let bytes = System::write(&sample());
    for length in 0..bytes.len() {
        assert_eq!(System::parse(&bytes[..length]).err(), Some(Malformed), "prefix of {length} bytes");
    }
}

#[test]
fn damaged_bytes_are_refused_or_harmless() {
    let bytes = System::write(&sample());
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
