//! The commands of `memctl`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_slabs::{Policy, RandomSettings, STANDARD_SLABS, STANDARD_STATIC_SLABS};

/// Usage of the program.
pub const USAGE: &str = "\
usage:
memctl [status]                       the slabs, the policy, and what is lost
memctl slabs standard | SIZE... [static SIZE...]
                                      set slabs up: R1's, or of these sizes (4096, 64K, 1M)
memctl slabs off                      take them down
memctl policy [NAME] [--lifted]       show or set the policy; --lifted: without the watermark rule
memctl record on | off                record a trace of the requests of all programs
memctl dump                           print what was recorded
memctl replay FILE [--policy NAME] [--lifted] [--json]
                                      make the requests of a trace, and say what was lost
memctl random [SEED [REQUESTS [CHANCE]]] [--policy NAME] [--lifted] [--json]
                                      the same with random requests (42, 1000, 16 % freed)
memctl check                          compare the server's ledger with the kernel's";

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print the usage.
    Help,
    /// Show the slabs, the policy and the losses.
    Status,
    /// Set slabs up: log2 of the sizes of those for dynamic and for static objects.
    SetUp(Vec<u8>, Vec<u8>),
    /// Take the slabs down.
    TakeDown,
    /// Show the policies.
    ShowPolicy,
    /// Set the policy; true lifts the watermark rule.
    SetPolicy(Policy, bool),
    /// Begin or end recording.
    Record(bool),
    /// Print the recorded trace.
    Dump,
    /// Make the requests of a file.
    Replay(String, Conditions),
    /// Make random requests.
    Random(RandomSettings, Conditions),
    /// Compare the slabs' tables with the kernel's.
    Check,
}

/// Conditions under which requests are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The policy, if not the one in force.
    pub policy: Option<Policy>,
    /// Set to lift the watermark rule.
    pub lifted: bool,
    /// Set to print the result as JSON.
    pub json: bool,
}

/// Returns the error for a word, with the words that are allowed in its place.
fn unexpected(word: &str, allowed: &str) -> String {
    format!("{word} is not understood here; allowed: {allowed}")
}

/// Returns log2 of a size such as `512`, `64K` or `1M`: a power of two from 16 to 1 GiB.
fn size(word: &str) -> Result<u8, String> {
    let (digits, shift) = match word.as_bytes().last() {
        Some(b'K' | b'k') => (&word[..word.len() - 1], 10),
        Some(b'M' | b'm') => (&word[..word.len() - 1], 20),
        Some(b'G' | b'g') => (&word[..word.len() - 1], 30),
        _ => (word, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if bytes.is_power_of_two() && (16..=1 << 30).contains(&bytes) => Ok(bytes.ilog2() as u8),
        _ => Err(unexpected(word, "a power of two from 16 to 1G, such as 512, 64K or 1M")),
    }
}

/// Returns the policy of this name.
fn policy(word: &str) -> Result<Policy, String> {
    let names: Vec<&str> = Policy::ALL.into_iter().map(Policy::name).collect();
    word.parse().map_err(|()| unexpected(word, &names.join(", ")))
}

/// Parses the options among words. Returns the other words and the options.
fn conditions<'a>(words: &[&'a str]) -> Result<(Vec<&'a str>, Conditions), String> {
    let mut rest = Vec::new();
    let mut conditions = Conditions::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--lifted" => conditions.lifted = true,
            "--json" => conditions.json = true,
            "--policy" => {
                let name = words.next().ok_or("--policy needs the name of a policy")?;
                conditions.policy = Some(policy(name)?);
            }
            option if option.starts_with('-') => return Err(unexpected(option, "--policy NAME, --lifted, --json")),
            word => rest.push(word),
        }
    }
    Ok((rest, conditions))
}

/// Parses the sizes of slabs.
fn slabs(words: &[&str]) -> Result<Command, String> {
    let bits = |sizes: &[u64]| sizes.iter().map(|size| size.ilog2() as u8).collect();
    match words {
        [] => Err("the sizes are missing; allowed: standard, off, or sizes".to_string()),
        ["off"] => Ok(Command::TakeDown),
        ["standard"] => Ok(Command::SetUp(bits(&STANDARD_SLABS), bits(&STANDARD_STATIC_SLABS))),
        _ => {
            let mut parts = words.split(|word| *word == "static");
            let mut sizes = || parts.next().unwrap_or_default().iter().map(|word| size(word)).collect();
            let (dynamic, statics): (Result<Vec<u8>, String>, Result<Vec<u8>, String>) = (sizes(), sizes());
            Ok(Command::SetUp(dynamic?, statics?))
        }
    }
}

fn random(words: &[&str], conditions: Conditions) -> Result<Command, String> {
    let number = |index: usize, otherwise: u64, allowed: &str| match words.get(index) {
        None => Ok(otherwise),
        Some(word) => word.parse::<u64>().map_err(|_| unexpected(word, allowed)),
    };
    if let Some(word) = words.get(3) {
        return Err(unexpected(word, "a seed, a number of requests and a chance"));
    }
    let requests = number(1, 1000, "a number of requests")?;
    let chance = number(2, 16, "a chance in per cent, 0 to 100")?;
    if chance > 100 {
        return Err(unexpected(words[2], "a chance in per cent, 0 to 100"));
    }
    let settings = RandomSettings {
        seed: number(0, 42, "a seed")?,
        requests: requests as usize,
        chance: chance as u32,
        ..RandomSettings::default()
    };
    Ok(Command::Random(settings, conditions))
}

impl Command {
    /// Parses the words after the program's name.
    pub fn parse(words: &[&str]) -> Result<Command, String> {
        match words {
            [] | ["status"] => Ok(Command::Status),
            ["help" | "--help" | "-h", ..] => Ok(Command::Help),
            ["slabs", sizes @ ..] => slabs(sizes),
            ["policy"] => Ok(Command::ShowPolicy),
            ["policy", name] => Ok(Command::SetPolicy(policy(name)?, false)),
            ["policy", name, "--lifted"] => Ok(Command::SetPolicy(policy(name)?, true)),
            ["policy", _, word, ..] => Err(unexpected(word, "--lifted")),
            ["record", "on"] => Ok(Command::Record(true)),
            ["record", "off"] => Ok(Command::Record(false)),
            ["record", rest @ ..] => Err(unexpected(rest.first().unwrap_or(&"nothing"), "on, off")),
            ["dump"] => Ok(Command::Dump),
            ["check"] => Ok(Command::Check),
            ["replay", rest @ ..] => match conditions(rest)? {
                (files, conditions) if files.len() == 1 => Ok(Command::Replay(files[0].to_string(), conditions)),
                _ => Err("replay takes one file; ls share/traces lists some".to_string()),
            },
            ["random", rest @ ..] => {
                let (numbers, conditions) = conditions(rest)?;
                random(&numbers, conditions)
            }
            ["status" | "dump" | "check", word, ..] => Err(unexpected(word, "nothing more")),
            [word, ..] => Err(unexpected(word, "status, slabs, policy, record, dump, replay, random, check, help")),
        }
    }
}
