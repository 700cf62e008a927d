//! What the system description says of programs that people run.
//!
//! It gives nobody anything: the description is a file like others, and what stands there of a program are this shell's
//! own settings. The shell passes them on of what it has, as if a person had typed them: a priority no higher than its
//! own ceiling. A program that starts others knows nothing of all this, and what it starts gets what is usual.

use tench_system::{DEFAULT_PRIORITY, NO_QUOTA, Program, System};

use crate::system::Settings;

/// How a process is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish<'a> {
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may give.
    pub ceiling: u8,
    /// Bytes of its main thread's stack; 0: as usual.
    pub stack: u64,
    /// Bytes of memory that it may have, if there is a limit.
    pub quota: Option<u64>,
    /// Its arguments, if none are given: strings that end with a zero byte each.
    pub arguments: &'a [u8],
    /// Its environment, if there is none.
    pub environment: &'a [u8],
}

impl Wish<'_> {
    /// Whether priority, ceiling and stack are those of a process of which nothing is said.
    pub const fn is_usual(&self) -> bool {
        self.priority == DEFAULT_PRIORITY && self.ceiling == DEFAULT_PRIORITY && self.stack == 0
    }
}

/// What the description says of the program that somebody calls `name`, if that is one that people run: servers, and
/// what `init` starts, have their settings from there alone.
pub fn find<'a>(system: &System<'a>, name: &str) -> Option<Program<'a>> {
    system.find(name).filter(|program| !program.server && !program.start)
}

/// How a process runs of which the description says this and a person that, if the shell may give priorities up to
/// `limit`. What a person says is not changed: if it is too high, that is refused by whoever starts processes.
pub fn settle<'a>(said: Option<Program<'a>>, asked: Settings, limit: u8) -> Wish<'a> {
    let usual = |of: fn(&Program<'a>) -> u8| said.as_ref().map_or(DEFAULT_PRIORITY, of).min(limit);
    let least = asked.priority.unwrap_or(0);
    let ceiling = asked.ceiling.unwrap_or(usual(|program| program.ceiling).max(least));
    let priority = asked.priority.unwrap_or(usual(|program| program.priority).min(ceiling));
    let limited = said.map(|program| program.quota).filter(|quota| *quota != NO_QUOTA);
    Wish {
        priority,
        ceiling,
        stack: said.map_or(0, |program| program.stack_size),
        quota: asked.quota.or(limited),
        arguments: said.map_or(&[], |program| program.arguments.bytes()),
        environment: said.map_or(&[], |program| program.environment.bytes()),
    }
}
