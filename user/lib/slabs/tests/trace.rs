//! The text of traces: parsing and writing are inverse, each mistake has its message, and recordings are traces.

use proptest::prelude::*;
use tench_slabs::{Descriptor, Lifetime, Mistake, Recorder, Request, Trace};

#[test]
fn a_written_trace_can_be_read() {
    let text =
        "alloc 1 4096\nalloc 2 16 1 4096 static\nfailed\nfree 1\nfailed 3 64\nalloc 1 16\nalloc 1 16\nfree 0 5-6\n";
    let trace = Trace::parse(text.as_bytes()).unwrap();
    assert_eq!(trace.to_string(), text);
    assert_eq!(trace.requests().len(), 8);
    assert_eq!(trace.active(), 7);
    assert_eq!(trace.requested(), (4096 + 32 + 4096 + 32, 6));
    let Request::Free { numbers } = &trace.requests()[7] else { panic!("the last line frees") };
    assert_eq!(trace.numbers(numbers), [0, 5, 6]);
    let Request::Alloc { bundle, lifetime } = &trace.requests()[1] else { panic!("the second line asks") };
    assert_eq!(trace.bundle(bundle), [Descriptor::new(16, 2), Descriptor::new(4096, 1)]);
    assert_eq!(*lifetime, Lifetime::Static);
}

#[test]
fn comments_blank_lines_and_line_ends_do_not_count() {
    let text = b"# a comment\r\n\r\n  alloc 1 16 # why\r\n\n# free 7\nfree 0";
    assert_eq!(Trace::parse(text).unwrap().to_string(), "alloc 1 16\nfree 0\n");
    assert_eq!(Trace::parse(b"").unwrap(), Trace::new());
}

#[test]
fn each_mistake_is_refused_with_its_line() {
    let cases: [(&[u8], Mistake); 17] = [
        (b"alloc 1 \xff6", Mistake::NotText),
        (b"allocate 1 16", Mistake::UnknownWord),
        (b"alloc", Mistake::NothingAsked),
        (b"alloc static", Mistake::NothingAsked),
        (b"alloc 1", Mistake::CountWithoutSize),
        (b"alloc 1 16 2 static", Mistake::CountWithoutSize),
        (b"alloc one 16", Mistake::NotANumber),
        (b"alloc 0 16", Mistake::BadCount),
        (b"alloc 1048577 16", Mistake::BadCount),
        (b"alloc 1 24", Mistake::BadSize),
        (b"alloc 1 16 static 1 16", Mistake::AfterStatic),
        (b"free", Mistake::NothingFreed),
        (b"free 1-0", Mistake::BackwardRange),
        (b"free 3", Mistake::NotYet),
        (b"free 1", Mistake::NotAlloc),
        (b"free 0 0", Mistake::FreedBefore),
        (b"free 0-", Mistake::NotANumber),
    ];
    for (line, mistake) in cases {
        let mut text = b"# two requests, then a mistake\nalloc 1 16\nfailed\n".to_vec();
        text.extend_from_slice(line);
        text.extend_from_slice(b"\nalloc 1 16\n");
        let damage = Trace::parse(&text).unwrap_err();
        assert_eq!((damage.line, damage.mistake), (4, mistake), "{}", String::from_utf8_lossy(line));
        assert!(damage.to_string().starts_with("line 4: "));
    }
    let message = Trace::parse(b"alloc 1 8").unwrap_err().to_string();
    assert_eq!(message, "line 1: bad size; powers of two from 16 to 1099511627776 bytes are allowed");
}

#[test]
fn a_full_recording_is_still_a_trace() {
    let mut recorder = Recorder::new(64).unwrap();
    let mut written = Vec::new();
    for _ in 0..10 {
        written.extend(recorder.alloc(&[Descriptor::new(4096, 1)], Lifetime::Dynamic));
    }
    assert!(recorder.is_full());
    assert_eq!(written, [0, 1, 2]);
    recorder.free(0);
    assert!(recorder.text().len() <= 64);
    assert!(recorder.text().ends_with("# the buffer was full\n"));
    assert_eq!(Trace::parse(recorder.text().as_bytes()).unwrap().requests().len(), 3);
    assert!(Recorder::new(0).unwrap().alloc(&[Descriptor::new(16, 1)], Lifetime::Dynamic).is_none());
}

proptest! {
    #[test]
    fn any_recording_can_be_read(steps in prop::collection::vec((0u8..3, 0u32..20, 1u32..9, any::<bool>()), 0..60)) {
        let mut recorder = Recorder::new(1 << 16).unwrap();
        let mut trace = Trace::new();
        let mut live = Vec::new();
        for (kind, bits, count, statics) in steps {
            let bundle: Vec<_> = (0..count % 3 + 1).map(|i| Descriptor::new(16 << bits, count + i)).collect();
            let lifetime = if statics { Lifetime::Static } else { Lifetime::Dynamic };
            match kind {
                0 => {
                    let number = trace.push_alloc(&bundle, lifetime);
                    prop_assert_eq!(recorder.alloc(&bundle, lifetime), Some(number));
                    live.push(number);
                }
                1 => {
                    recorder.failed(&bundle, lifetime);
                    trace.push_failed(&bundle, lifetime);
                }
                _ => if let Some(number) = live.pop() {
                    recorder.free(number);
                    trace.push_free(&[number]);
                }
            }
        }
        prop_assert_eq!(Trace::parse(recorder.text().as_bytes()), Ok(trace.clone()));
        prop_assert_eq!(recorder.text(), trace.to_string());
    }

    #[test]
    fn no_text_makes_the_parser_fail(text in prop::collection::vec(any::<u8>(), 0..200), words in "(alloc|free|failed|static|#|[0-9]{1,22}|-| |\n){0,40}") {
        let _ = Trace::parse(&text);
        if let Ok(trace) = Trace::parse(words.as_bytes()) {
            prop_assert_eq!(Trace::parse(trace.to_string().as_bytes()), Ok(trace));
        }
    }
}
