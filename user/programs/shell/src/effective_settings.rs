//! Settings of programs in the system description, for programs that people run.
//!
//! They confer no authority: the description is a file like others, and its settings count as if a person had typed
//! them into this shell, which passes on only what it has: a priority no higher than its own ceiling. A program that
//! starts others does not know these settings; what it starts gets the defaults.

use tench_system::{DEFAULT_PRIORITY, NO_QUOTA, Program, System};

use crate::system::Settings;

/// Settings with which a process is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveSettings<'a> {
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
    /// Bytes of its main thread's stack; 0 for the usual size.
    pub stack: u64,
    /// Memory quota in bytes, if there is a limit.
    pub quota: Option<u64>,
    /// Number of slots for capabilities, if it is not the usual one.
    pub slots: Option<u64>,
    /// Arguments, used if the process is given none: strings, each terminated by a zero byte.
    pub arguments: &'a [u8],
    /// Environment, used if the shell has none to pass on.
    pub environment: &'a [u8],
}

impl EffectiveSettings<'_> {
    /// Returns whether priority, ceiling and stack are the defaults.
    pub const fn is_usual(&self) -> bool {
        self.priority == DEFAULT_PRIORITY && self.ceiling == DEFAULT_PRIORITY && self.stack == 0
    }
}

/// Returns the settings of the program called `name`, if people run it: servers, and what `init` starts, get their
/// settings only from `init`.
pub fn find<'a>(system: &System<'a>, name: &str) -> Option<Program<'a>> {
    system.find(name).filter(|program| !program.server && !program.start)
}

/// Combines the description's settings with a person's, for a shell that may assign priorities up to `limit`. A
/// person's settings are not changed: if they are too high, the process server refuses them.
pub fn resolve<'a>(said: Option<Program<'a>>, asked: Settings, limit: u8) -> EffectiveSettings<'a> {
    let usual = |of: fn(&Program<'a>) -> u8| said.as_ref().map_or(DEFAULT_PRIORITY, of).min(limit);
    let least = asked.priority.unwrap_or(0);
    let ceiling = asked.ceiling.unwrap_or(usual(|program| program.ceiling).max(least));
    let priority = asked.priority.unwrap_or(usual(|program| program.priority).min(ceiling));
    let limited = said.map(|program| program.quota).filter(|quota| *quota != NO_QUOTA);
    EffectiveSettings {
        priority,
        ceiling,
        stack: said.map_or(0, |program| program.stack_size),
        quota: asked.quota.or(limited),
        slots: asked.slots,
        arguments: said.map_or(&[], |program| program.arguments.bytes()),
        environment: said.map_or(&[], |program| program.environment.bytes()),
    }
}
