//! Commands that are understood, and the errors of those that are not.

use tench_memctl::command::{Command, Conditions, USAGE};
use tench_slabs::{Policy, RandomSettings};

fn parse(line: &str) -> Result<Command, String> {
    Command::parse(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn commands_are_understood() {
    assert_eq!(parse(""), Ok(Command::Status));
    assert_eq!(parse("slabs 512K 64k 16 static 256"), Ok(Command::SetUp(vec![19, 16, 4], vec![8])));
    assert_eq!(parse("slabs off"), Ok(Command::TakeDown));
    let Ok(Command::SetUp(dynamic, statics)) = parse("slabs standard") else { panic!("no slabs") };
    assert_eq!((dynamic.len(), statics), (22, vec![8]));
    assert_eq!(parse("policy next-fit"), Ok(Command::SetPolicy(Policy::NextFit, false)));
    assert_eq!(parse("policy buddy --lifted"), Ok(Command::SetPolicy(Policy::Buddy, true)));
    assert_eq!(parse("record on"), Ok(Command::Record(true)));
    let conditions = Conditions { policy: Some(Policy::WorstFit), lifted: true, json: true };
    assert_eq!(
        parse("replay --json share/traces/hello.trace --policy worst-fit --lifted"),
        Ok(Command::Replay("share/traces/hello.trace".into(), conditions))
    );
    let settings = RandomSettings { seed: 7, requests: 100, chance: 64, ..RandomSettings::default() };
    assert_eq!(parse("random 7 100 64"), Ok(Command::Random(settings, Conditions::default())));
    assert_eq!(parse("--help"), Ok(Command::Help));
}

#[test]
fn each_mistake_has_its_message() {
    for (line, expected) in [
        (
            "slab",
            "slab is not understood here; allowed: status, slabs, policy, record, dump, replay, random, check, help",
        ),
        ("slabs", "the sizes are missing; allowed: standard, off, or sizes"),
        ("slabs 3000", "3000 is not understood here; allowed: a power of two from 16 to 1G, such as 512, 64K or 1M"),
        ("slabs 8", "8 is not understood here; allowed: a power of two from 16 to 1G, such as 512, 64K or 1M"),
        (
            "slabs 99999999999999999G",
            "99999999999999999G is not understood here; allowed: a power of two from 16 to 1G, such as 512, 64K or 1M",
        ),
        (
            "policy best",
            "best is not understood here; allowed: next-fit-guessing, next-fit, first-fit, best-fit, worst-fit, best-fit-alignment, segregated, buddy",
        ),
        ("policy best-fit lifted", "lifted is not understood here; allowed: --lifted"),
        ("record", "nothing is not understood here; allowed: on, off"),
        ("record yes", "yes is not understood here; allowed: on, off"),
        ("dump all", "all is not understood here; allowed: nothing more"),
        ("replay", "replay takes one file; ls share/traces lists some"),
        ("replay a b", "replay takes one file; ls share/traces lists some"),
        ("replay a --policy", "--policy needs the name of a policy"),
        ("replay a --slow", "--slow is not understood here; allowed: --policy NAME, --lifted, --json"),
        ("random x", "x is not understood here; allowed: a seed"),
        ("random 1 2 101", "101 is not understood here; allowed: a chance in per cent, 0 to 100"),
        ("random 1 2 3 4", "4 is not understood here; allowed: a seed, a number of requests and a chance"),
    ] {
        assert_eq!(parse(line), Err(expected.to_owned()), "{line}");
    }
}

#[test]
fn the_help_fits_on_a_terminal() {
    assert!(USAGE.lines().all(|line| line.len() <= 100), "{USAGE}");
}
