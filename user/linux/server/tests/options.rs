//! The command line.

use tench_linux::options::Options;

/// Returns whether calls are traced and whether the personality is quiet, the program, and the number of its arguments.
fn parse(arguments: &[&str]) -> Result<((bool, bool), String, usize), String> {
    let options = Options::parse(arguments.iter().copied())?;
    Ok(((options.traces, options.is_quiet), options.program, options.arguments.len()))
}

#[test]
fn options_come_before_the_program() {
    assert_eq!(parse(&["a", "--trace", "b"]), Ok(((false, false), "a".into(), 3)));
    assert_eq!(parse(&["--trace", "a"]), Ok(((true, false), "a".into(), 1)));
    assert_eq!(parse(&["--quiet", "--trace", "a"]), Ok(((true, true), "a".into(), 1)));
    assert_eq!(parse(&["--", "--trace"]), Ok(((false, false), "--trace".into(), 1)));
}

#[test]
fn mistakes_are_named() {
    assert!(parse(&[]).unwrap_err().starts_with("no program is named; usage: "));
    assert!(parse(&["--trace"]).unwrap_err().starts_with("no program is named"));
    assert!(parse(&["--fast", "a"]).unwrap_err().starts_with("there is no option --fast; usage: "));
}
