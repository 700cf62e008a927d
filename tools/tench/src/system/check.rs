//! Checking of a system description's text, which results in a [`System`] or in all mistakes.

use std::collections::BTreeMap;
use std::ops::Range;

use miette::Result;
use serde::Deserialize;
use tench_abi::Powers;
use tench_abi::layout::slot;
use tench_abi::object::{FIRST_DEVICE_LINE, LINES};
use tench_system::{Capability, Cores, DEFAULT_PRIORITY, Device, FORMS, MAX_SHARES, MAX_WEIGHT, SIZES, Share};
use toml::de::ValueDeserializer;
use toml::{Spanned, Value};

use super::mistake::{Mistake, Mistakes};
use super::{Origin, Program, Surroundings, System, text};

/// Maximum bytes of a stack that a description may request.
const MAX_STACK_SIZE: i64 = 16 << 20;
/// Unit of a stack's size.
const PAGE_SIZE: i64 = tench_abi::memory::PAGE_SIZE as i64;
/// Unit of slots that a server keeps.
const SLOTS: i64 = 256;
/// Maximum length of a program's name.
const MAX_NAME: usize = 32;
/// Servers that the first core needs itself: programs get the endpoints of some at their start, the process server
/// tells others which processes have ended, and the monitor starts the other cores.
const SERVERS_OF_THE_FIRST_CORE: [&str; 7] = ["mem", "procs", "names", "console", "clock", "files", "monitor"];

/// Checks the description `name` whose file is shown as `file`.
pub fn check(name: &str, file: &str, source: &str, surroundings: &Surroundings) -> Result<System> {
    let mut checker = Checker { file, source, surroundings, mistakes: Vec::new() };
    let system = match toml::from_str::<text::System>(source) {
        Ok(text) => Some(checker.system(name, &text)),
        Err(error) => {
            checker.refused_by_parser(&error);
            None
        }
    };
    match system {
        Some(system) if checker.mistakes.is_empty() => Ok(system),
        _ => {
            let mut mistakes = checker.mistakes;
            mistakes.sort_by_key(Mistake::position);
            Err(Mistakes { file: file.to_owned(), mistakes }.into())
        }
    }
}

struct Checker<'a> {
    file: &'a str,
    source: &'a str,
    surroundings: &'a Surroundings<'a>,
    mistakes: Vec<Mistake>,
}

impl Checker<'_> {
    fn mistake(&mut self, span: Range<usize>, message: impl Into<String>, allowed: impl Into<String>) {
        self.mistakes.push(Mistake::new(self.file, self.source, span, message.into(), allowed.into()));
    }

    /// Records that the value of `key` as it is written is not allowed.
    fn wrong(&mut self, key: &str, value: &Spanned<Value>, allowed: &str) {
        let written = self.source.get(value.span()).unwrap_or_default();
        self.mistake(value.span(), format!("`{key}` is {written}"), allowed);
    }

    /// Replaces the parser's own words ("…, expected X") by ours.
    fn refused_by_parser(&mut self, error: &toml::de::Error) {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().replace('\n', ", ");
        let (what, allowed) = match message.split_once(", expected ") {
            Some((what, allowed)) if what.starts_with("invalid type") => {
                let written = self.source.get(span.clone()).unwrap_or_default();
                let allowed = if allowed == "a sequence" { "a list in brackets" } else { allowed };
                (format!("`{}` is {written}", self.key_before(span.start)), allowed)
            }
            Some((what, allowed)) => (what.to_owned(), allowed.trim_start_matches("one of ")),
            None if message.starts_with("missing field") => (message.clone(), "this key is required"),
            None => (message.clone(), "TOML, as https://toml.io describes it"),
        };
        self.mistake(span, what, allowed);
    }

    /// Returns the key whose value is at `position`.
    fn key_before(&self, position: usize) -> &str {
        let before = self.source.get(..position).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.split('=').next().unwrap_or_default().trim()
    }

    fn system(&mut self, name: &str, text: &text::System) -> System {
        let kernel = self.package("kernel", &text.kernel);
        let init = self.package("init", &text.init);
        let memory = self.shares(&text.cores.memory);
        let lines = self.lines(&text.cores.lines);
        let programs: Vec<Program> = text.program.iter().map(|program| self.program(program.get_ref())).collect();
        self.unique(text, &programs);
        self.relations(text, &programs, &lines);
        System { name: name.to_owned(), kernel, init, memory, lines, programs }
    }

    fn program(&mut self, text: &text::Program) -> Program {
        let name = self.name(&text.name);
        let origin = self.origin(text);
        let path = match &text.path {
            Some(path) => self.path(path),
            None => format!("bin/{name}"),
        };
        let default = DEFAULT_PRIORITY as i64;
        let priority = self.number("priority", text.priority.as_ref(), default, 0..=255, 1, "0 to 255") as u8;
        let ceiling = self.ceiling(text.ceiling.as_ref(), priority);
        let stack_size = self.number(
            "stack_size",
            text.stack_size.as_ref(),
            // The usual size.
            0,
            PAGE_SIZE..=MAX_STACK_SIZE,
            PAGE_SIZE,
            "a multiple of 4096, from 4096 to 16777216",
        ) as u64;
        let quota = match &text.quota {
            Some(_) => {
                let range = PAGE_SIZE..=i64::MAX - PAGE_SIZE;
                let allowed = "a multiple of 4096, from 4096 on";
                self.number("quota", text.quota.as_ref(), PAGE_SIZE, range, PAGE_SIZE, allowed) as u64
            }
            None => u64::MAX,
        };
        Program {
            name,
            origin,
            path,
            priority,
            ceiling,
            stack_size,
            quota,
            start: self.truth("start", text.start.as_ref()),
            cores: self.cores(text.cores.as_ref()),
            server: self.truth("server", text.server.as_ref()),
            restart: self.number("restart", text.restart.as_ref(), 0, 0..=100, 1, "0 to 100") as u32,
            restart_delay: self.number("restart_delay", text.restart_delay.as_ref(), 10, 0..=60_000, 1, "0 to 60000")
                as u32,
            keep: self.keep(text.keep.as_ref()),
            keep_nodes: (self.number(
                "keep_slots",
                text.keep_slots.as_ref(),
                if text.keep.is_some() { SLOTS } else { 0 },
                SLOTS..=SLOTS * i64::from(slot::KEPT_NODES),
                SLOTS,
                "256, 512, 768, 1024",
            ) / SLOTS) as u32,
            arguments: text.arguments.iter().map(|argument| self.argument(argument)).collect(),
            environment: text.environment.iter().map(|entry| self.environment(entry)).collect(),
            powers: text.powers.iter().map(|power| self.power(power)).collect(),
            capabilities: text.capabilities.iter().map(|capability| self.capability(capability)).collect(),
        }
    }

    // ── Single values ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns a string, or records a mistake and returns the empty string.
    fn string(&mut self, key: &str, value: &Spanned<Value>, allowed: &str) -> String {
        match value.get_ref() {
            Value::String(text) if !text.contains('\0') => text.clone(),
            _ => {
                self.wrong(key, value, allowed);
                String::new()
            }
        }
    }

    fn truth(&mut self, key: &str, value: Option<&Spanned<Value>>) -> bool {
        match value.map(|value| (value.get_ref(), value)) {
            None => false,
            Some((Value::Boolean(truth), _)) => *truth,
            Some((_, value)) => {
                self.wrong(key, value, "true, false");
                false
            }
        }
    }

    fn number(
        &mut self,
        key: &str,
        value: Option<&Spanned<Value>>,
        default: i64,
        range: std::ops::RangeInclusive<i64>,
        unit: i64,
        allowed: &str,
    ) -> i64 {
        let Some(value) = value else { return default };
        match value.get_ref() {
            Value::Integer(number) if range.contains(number) && number % unit == 0 => *number,
            _ => {
                self.wrong(key, value, allowed);
                default
            }
        }
    }

    fn cores(&mut self, value: Option<&Spanned<Value>>) -> Cores {
        let Some(value) = value else { return Cores::First };
        let names = Cores::NAMES.map(|(name, _)| format!("{name:?}")).join(", ");
        let allowed = format!("{names}, or a core's number from 0 to {}", MAX_SHARES - 1);
        if let Value::Integer(number) = value.get_ref() {
            let number = u8::try_from(*number).ok().filter(|number| usize::from(*number) < MAX_SHARES);
            if number.is_none() {
                self.wrong("cores", value, &allowed);
            }
            return number.filter(|number| *number > 0).map_or(Cores::First, Cores::Only);
        }
        let text = self.string("cores", value, &allowed);
        let found = Cores::NAMES.into_iter().find(|(name, _)| *name == text);
        if found.is_none() && !text.is_empty() {
            self.mistake(value.span(), format!("`cores` is {text:?}"), allowed);
        }
        found.map_or(Cores::First, |(_, cores)| cores)
    }

    fn ceiling(&mut self, value: Option<&Spanned<Value>>, priority: u8) -> u8 {
        let lowest = priority as i64;
        let allowed = format!("{priority} (the program's priority) to 255");
        self.number("ceiling", value, lowest, lowest..=255, 1, &allowed) as u8
    }

    fn keep(&mut self, value: Option<&Spanned<Value>>) -> u64 {
        let allowed = "a power of two, from 4096 to 1048576";
        let bytes = self.number("keep", value, 0, PAGE_SIZE..=1 << 20, PAGE_SIZE, allowed);
        if let Some(value) = value.filter(|_| bytes.count_ones() > 1) {
            self.wrong("keep", value, allowed);
        }
        bytes as u64
    }

    /// Returns the cores' shares of the memory, from the first on.
    fn shares(&mut self, values: &[Spanned<Value>]) -> Vec<String> {
        let (least, most) = (SIZES.start(), SIZES.end() >> 10);
        let weight = format!("a weight from 1 to {MAX_WEIGHT}");
        let allowed = format!("{weight}, or a size from \"{least}M\" to \"{most}G\"");
        if let Some(value) = values.get(MAX_SHARES) {
            let message = format!("`memory` says something of {} cores", values.len());
            self.mistake(value.span(), message, format!("at most {MAX_SHARES} cores"));
        }
        let shares = values.iter().enumerate().map(|(core, value)| {
            let text = match value.get_ref() {
                Value::Integer(weight) => Some(weight.to_string()),
                // A weight is a number, not a text.
                Value::String(text) => Some(text.clone()).filter(|text| !text.ends_with(|c: char| c.is_ascii_digit())),
                _ => None,
            };
            match text.as_deref().and_then(Share::from_text) {
                None => self.wrong("memory", value, &allowed),
                Some(Share::Size(_)) if core == 0 => {
                    let message = "`memory` gives the first core a size, which has what the others do not get";
                    self.mistake(value.span(), message, weight.as_str());
                }
                Some(_) => {}
            }
            text.unwrap_or_default()
        });
        shares.collect()
    }

    /// Returns the core of each line. `lists` has a list of lines for each core.
    fn lines(&mut self, lists: &[Spanned<Value>]) -> BTreeMap<u32, u8> {
        if let Some(list) = lists.get(MAX_SHARES) {
            let message = format!("`lines` says something of {} cores", lists.len());
            self.mistake(list.span(), message, format!("at most {MAX_SHARES} cores"));
        }
        let mut owners = BTreeMap::new();
        for (core, list) in (0..).zip(lists.iter().take(MAX_SHARES)) {
            let Some(values) = self.elements(list) else {
                self.wrong("lines", list, "a list in brackets for each core");
                continue;
            };
            for value in &values {
                let Some(line) = self.line(value) else { continue };
                if let Some(owner) = owners.insert(line, core) {
                    let message = format!("`lines` gives line {line} to core {core}, and to core {owner} before");
                    self.mistake(value.span(), message, "one core for each line");
                }
            }
        }
        owners
    }

    /// Returns the elements of a list, parsed once more: the elements of a [`Value`] do not say where they stand.
    fn elements(&self, list: &Spanned<Value>) -> Option<Vec<Spanned<Value>>> {
        let start = list.span().start;
        let parser = ValueDeserializer::parse(self.source.get(list.span())?).ok()?;
        let values = Vec::<Spanned<Value>>::deserialize(parser).ok()?;
        let moved = |Range { start: first, end }| start + first..start + end;
        Some(values.into_iter().map(|value| Spanned::new(moved(value.span()), value.into_inner())).collect())
    }

    fn line(&mut self, value: &Spanned<Value>) -> Option<u32> {
        let allowed = format!("lines of devices, from {FIRST_DEVICE_LINE} to {}", LINES - 1);
        let line = value.get_ref().as_integer().and_then(|line| usize::try_from(line).ok());
        let line = line.filter(|line| (FIRST_DEVICE_LINE..LINES).contains(line));
        if line.is_none() {
            self.wrong("lines", value, &allowed);
        }
        line.map(|line| line as u32)
    }

    fn name(&mut self, value: &Spanned<Value>) -> String {
        let allowed = format!("1 to {MAX_NAME} of a-z, 0-9, - and _");
        let name = self.string("name", value, &allowed);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let is_text = matches!(value.get_ref(), Value::String(_));
        if is_text && (name.is_empty() || name.len() > MAX_NAME || !name.chars().all(good)) {
            self.mistake(value.span(), format!("`name` is {:?}", name), allowed);
        }
        name
    }

    fn package(&mut self, key: &str, value: &Spanned<Value>) -> String {
        let allowed = self.surroundings.packages.names().collect::<Vec<_>>().join(", ");
        let name = self.string(key, value, &allowed);
        if !name.is_empty() && !self.surroundings.packages.names().any(|candidate| candidate == name) {
            self.mistake(
                value.span(),
                format!("`{key}` is {name:?}, which is no package that makes a program"),
                allowed,
            );
        }
        name
    }

    fn origin(&mut self, text: &text::Program) -> Origin {
        match (&text.package, &text.source) {
            (Some(package), None) => Origin::Package(self.package("package", package)),
            (None, Some(source)) => Origin::Source(self.c_file(source).into()),
            (Some(_), Some(source)) => {
                self.mistake(source.span(), "a program has both `package` and `source`", "one of the two");
                Origin::Source(Default::default())
            }
            (None, None) => {
                self.mistake(text.name.span(), "a program has neither `package` nor `source`", "one of the two");
                Origin::Source(Default::default())
            }
        }
    }

    fn c_file(&mut self, value: &Spanned<Value>) -> String {
        let allowed = "a C file of the source tree, such as \"user/programs/hello/main.c\"";
        let source = self.string("source", value, allowed);
        let exists = source.ends_with(".c") && self.surroundings.root.join(&source).is_file();
        if !source.is_empty() && !exists {
            self.mistake(value.span(), format!("`source` is {source:?}, which is no such file"), allowed);
        }
        source
    }

    fn path(&mut self, value: &Spanned<Value>) -> String {
        let allowed = "a path inside the archive, such as \"bin/hello\"";
        let path = self.string("path", value, allowed);
        let is_text = matches!(value.get_ref(), Value::String(_));
        if is_text && !crate::archive::is_valid_path(&path) {
            self.mistake(value.span(), format!("`path` is {path:?}"), allowed);
        }
        path
    }

    fn argument(&mut self, value: &Spanned<Value>) -> String {
        self.string("arguments", value, "strings")
    }

    fn environment(&mut self, value: &Spanned<Value>) -> String {
        let allowed = "strings of the form \"NAME=value\"";
        let entry = self.string("environment", value, allowed);
        let is_text = matches!(value.get_ref(), Value::String(_));
        if is_text && entry.find('=').is_none_or(|position| position == 0) {
            self.mistake(value.span(), format!("`environment` has {entry:?}"), allowed);
        }
        entry
    }

    fn power(&mut self, value: &Spanned<Value>) -> Powers {
        let allowed = Powers::WORDS.map(|(word, _)| word).join(", ");
        let text = self.string("powers", value, &allowed);
        let power = Powers::from_word(&text);
        if matches!(value.get_ref(), Value::String(_)) && power.is_none() {
            self.mistake(value.span(), format!("`powers` has {text:?}"), allowed);
        }
        power.unwrap_or_default()
    }

    fn capability(&mut self, value: &Spanned<Value>) -> String {
        let forms: Vec<&str> = FORMS.iter().map(|(form, _)| *form).collect();
        let allowed = format!("{}; DEVICE is one of {}", forms.join(", "), Device::NAMES.join(", "));
        let text = self.string("capabilities", value, &allowed);
        let is_text = matches!(value.get_ref(), Value::String(_));
        if is_text && Capability::from_text(&text).is_none() {
            self.mistake(value.span(), format!("`capabilities` has {text:?}"), allowed);
        }
        text
    }

    // ── Values that must fit each other ──────────────────────────────────────────────────────────────────────────────

    /// Checks that no two programs have the same name or path.
    fn unique(&mut self, text: &text::System, programs: &[Program]) {
        let (mut names, mut paths) = (BTreeMap::new(), BTreeMap::new());
        for (text, program) in std::iter::zip(&text.program, programs) {
            let text = text.get_ref();
            if program.name.is_empty() {
                continue;
            }
            if names.insert(&program.name, ()).is_some() {
                let message = format!("`name` is {:?}, as another program's", program.name);
                self.mistake(text.name.span(), message, "a name that no other program has");
            } else if paths.insert(&program.path, ()).is_some() || program.path == tench_system::ARCHIVE_PATH {
                let span = text.path.as_ref().map_or(text.name.span(), Spanned::span);
                let message = format!("`path` is {:?}, which is taken", program.path);
                self.mistake(span, message, "a path that nothing else in the archive has");
            }
        }
    }

    /// Checks that settings are those of a program that can have them.
    fn settings(&mut self, text: &text::Program, program: &Program) {
        let is_restarted = program.server && program.start && !matches!(&*program.name, "mem" | "procs");
        for (key, value) in [("restart", &text.restart), ("keep", &text.keep), ("keep_slots", &text.keep_slots)] {
            if let Some(value) = value.as_ref().filter(|_| !is_restarted) {
                let message = format!(
                    "`{key}` is said of {:?}, which is not started by the process server, or no server",
                    program.name
                );
                self.mistake(value.span(), message, "servers with `start = true`, but for mem and procs");
            }
        }
        let is_needed_there = program.server && SERVERS_OF_THE_FIRST_CORE.contains(&program.name.as_str());
        if let (Some(value), Cores::Only(core), true) = (&text.cores, program.cores, is_needed_there) {
            let message = format!("`cores` is {core}, but the first core cannot do without {:?}", program.name);
            let allowed =
                "\"first\", \"every\", \"several\"; a server that others find by its name can be on one other core";
            self.mistake(value.span(), message, allowed);
        }
        if let Some(value) = text.powers.first().filter(|_| !program.start) {
            let message = format!("`powers` is said of {:?}, but init does not start this program", program.name);
            self.mistake(
                value.span(),
                message,
                "programs with `start = true`; others get what whoever starts them gives",
            );
        }
    }

    /// Checks that services exist, that devices can belong to the program's core, and that a unique object is given
    /// only once, and only to programs started by its holder: init.
    fn relations(&mut self, text: &text::System, programs: &[Program], lines: &BTreeMap<u32, u8>) {
        let servers: Vec<&str> =
            programs.iter().filter(|program| program.server).map(|program| program.name.as_str()).collect();
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        for (text, program) in std::iter::zip(&text.program, programs) {
            self.settings(text.get_ref(), program);
            for (value, capability) in std::iter::zip(&text.get_ref().capabilities, &program.capabilities) {
                match Capability::from_text(capability) {
                    None => {}
                    Some(_) if !program.start => {
                        let message =
                            format!("`capabilities` has {capability:?}, but init does not start this program");
                        self.mistake(value.span(), message, "programs with `start = true`");
                    }
                    Some(Capability::Kernel | Capability::InterruptControl) => {}
                    Some(Capability::Service(server)) if !servers.contains(&server) => {
                        let message = format!("`capabilities` has {capability:?}, but no server has that name");
                        self.mistake(value.span(), message, services(&servers));
                    }
                    Some(Capability::Device(_) | Capability::OptionalDevice(_) | Capability::Interrupt(_))
                        if matches!(program.cores, Cores::Every | Cores::Several) =>
                    {
                        let message =
                            format!("`capabilities` has {capability:?}, but this program is on several cores");
                        self.mistake(value.span(), message, "programs of one core, to which the device belongs");
                    }
                    Some(Capability::Device(_) | Capability::OptionalDevice(_) | Capability::Interrupt(_))
                        if has_no_devices(program.cores, lines) =>
                    {
                        let message =
                            format!("`capabilities` has {capability:?}, but no line belongs to this program's core");
                        let allowed = "programs of the core to which the device belongs: \
                                       the first, unless `lines` in `[cores]` gives its line to another";
                        self.mistake(value.span(), message, allowed);
                    }
                    Some(Capability::Service(server)) if !is_reached(server, program, programs) => {
                        let message = format!("`capabilities` has {capability:?}, but that server is on another core");
                        self.mistake(value.span(), message, "servers of the same core; others are found by name");
                    }
                    Some(
                        Capability::Untyped
                        | Capability::Device(_)
                        | Capability::OptionalDevice(_)
                        | Capability::Interrupt(_),
                    ) => {
                        let what = capability.strip_prefix("optional-").unwrap_or(capability);
                        if let Some(owner) = given.insert(what, &program.name) {
                            let message = format!("`capabilities` has {capability:?}, which {owner} has already");
                            self.mistake(value.span(), message, "one program that has it");
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns whether a program is on a core without devices: any but the first, unless a line belongs to it.
fn has_no_devices(cores: Cores, lines: &BTreeMap<u32, u8>) -> bool {
    matches!(cores, Cores::Only(core) if !lines.values().any(|owner| *owner == core))
}

/// Returns whether a program can be given this server: if the core of the server is a number, only programs of that
/// core can.
fn is_reached(server: &str, program: &Program, programs: &[Program]) -> bool {
    let server = programs.iter().find(|candidate| candidate.name == server);
    server.is_none_or(|server| !matches!(server.cores, Cores::Only(_)) || server.cores == program.cores)
}

/// Returns the services that can be named, for messages.
fn services(servers: &[&str]) -> String {
    if servers.is_empty() {
        return "nothing, as no program has `server = true`".to_owned();
    }
    servers.iter().map(|server| format!("service:{server}")).collect::<Vec<_>>().join(", ")
}
