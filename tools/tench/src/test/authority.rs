//! A test that the table in `docs/manual/authority.md` says what every process holds: the system is booted on one core
//! and on two, the shell lists the capabilities of each process, and the list, without numbers that differ between
//! builds, must equal the table.
//!
//! A capability that a process was given, or looked up, is a row with its slot; objects that a process makes of its
//! memory are one row for each kind, since their number changes with every program; its own memory has no row. `init`
//! and `mem` are loaded before the process server, which cannot list what they hold: their rows are those of the system
//! description.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use miette::{Result, miette};
use tench_abi::layout::slot;

use super::Target;
use super::report::Report;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, PROMPT, Patience, Step};
use crate::system::System;
use crate::workspace;

/// System description that is booted.
pub const SYSTEM: &str = "default";
const PAGE: &str = "docs/manual/authority.md";
const BEGIN: &str = "<!-- authority: begin -->\n";
const END: &str = "<!-- authority: end -->\n";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(300) };
/// Programs whose capabilities the process server cannot list.
const UNLISTED: [&str; 2] = ["init", "mem"];
/// An ordinary program, with only standard capabilities, that waits in the background.
const ORDINARY: &str = "cat";
/// File with the commands of the shell on the second core.
const SCRIPT: &str = "/tmp/authority";
/// Prefix that this shell prints before a process's capabilities, where the first shell has its prompt.
const ABOUT: &str = "capabilities of ";
/// Start of RAM; devices lie below.
const RAM: u64 = 0x4000_0000;
/// Kinds that a process makes of its memory, in any number.
const MADE: [&str; 9] = [
    "untyped",
    "capability node",
    "frame",
    "page table",
    "mapping",
    "thread",
    "scheduling context",
    "reply",
    "notification",
];

pub fn run(target: &Target, bless: bool, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    let files = target.prepare(build, &system, &[])?;
    let mut boots = Vec::new();
    for cores in CORES {
        let machine = Machine { icount: true, idles: true, cores, ..Machine::default() };
        let outcome =
            script::run(&mut machine.command(&files, Serial::Pipe), &steps(&system, cores), PATIENCE, |_| Vec::new())?;
        boots.push(held(&system, cores, &outcome)?);
    }
    let table = table(&boots);
    let path = target.workspace.root.join(PAGE);
    let page = workspace::read_text(&path)?;
    let (before, old, after) = parts(&page).ok_or_else(|| miette!("{PAGE} has no table between {BEGIN}and {END}"))?;
    if bless {
        workspace::write_file(&path, format!("{before}{BEGIN}{table}{END}{after}").as_bytes())?;
    }
    match difference(old, &table).filter(|_| !bless) {
        None => report.passed("holders"),
        Some(problem) => report.failed("holders", &problem),
    }
    Ok(())
}

/// Numbers of cores of the machines.
const CORES: [u32; 2] = [1, 2];

/// Returns the name of a capability's holder, preceded by the core unless that is the first.
fn shown(core: u32, name: &str) -> String {
    if core == 0 { name.to_owned() } else { format!("{core}:{name}") }
}

/// Returns the programs that `init` starts on a core, and whose capabilities can be listed.
fn listed(system: &System, core: u32, cores: u32) -> impl Iterator<Item = &str> {
    let started =
        system.programs.iter().filter(move |program| program.start && program.cores.contain(core.into(), cores.into()));
    started.map(|program| program.name.as_str()).filter(|name| !UNLISTED.contains(name))
}

/// Returns the steps to type. Only a shell on the same core can list a process's capabilities.
fn steps(system: &System, cores: u32) -> Vec<Step> {
    let mut lines = vec![format!("{ORDINARY} &"), "ps --flat --short".to_owned()];
    lines.extend(listed(system, 0, cores).chain([ORDINARY]).map(|name| format!("caps {name}")));
    for core in 1..cores {
        for name in listed(system, core, cores).chain(["shell"]) {
            lines.push(format!("echo echo {ABOUT}{core}:{name} >> {SCRIPT}"));
            lines.push(format!("echo caps {name} >> {SCRIPT}"));
        }
        lines.push(format!("run --core {core} --with processes shell < {SCRIPT}"));
        lines.push(format!("rm {SCRIPT}"));
    }
    lines.into_iter().map(Step::Line).collect()
}

/// A row of the table without its numbers: the process's position, slot (the last for those without a fixed one), and
/// the text.
type Row = (usize, u32, String);

/// Rows, and the number of each; `None` for any number.
type Held = BTreeMap<Row, Option<usize>>;

/// Returns the capabilities of every process of a boot.
fn held(system: &System, cores: u32, outcome: &Outcome) -> Result<Held> {
    if !matches!(outcome.end, End::Exited(0)) {
        return Err(miette!("the guest did not end as it should; its last lines:\n{}", outcome.last_screen()));
    }
    let mut rows = Held::new();
    let mut processes: Vec<String> = Vec::new();
    for program in system.programs.iter().filter(|program| UNLISTED.contains(&program.name.as_str())) {
        let all = program.capabilities.iter().map(|capability| format!("`{capability}`"));
        let held = all.chain(program.powers.words().map(|word| format!("power {word}")));
        let text = format!("{} | - | as described: {} | ", program.name, held.collect::<Vec<_>>().join(", "));
        rows.insert((0, 0, text), Some(1));
    }
    for (name, lines) in sections(&outcome.lines) {
        processes.push(name.to_owned());
        let place = order(system, name);
        for line in lines {
            let Some(one) = Capability::parse(line) else {
                return Err(miette!("`caps {name}` printed `{line}`"));
            };
            if one.is_own_memory() {
                continue;
            }
            let count =
                rows.entry((place, one.slot_order(), one.text(name))).or_insert_with(|| one.is_one().then_some(0));
            *count = count.map(|count| count + 1);
        }
    }
    let running = running(&outcome.lines);
    let unknown = running.iter().find(|name| !processes.contains(name));
    match unknown {
        _ if running.is_empty() => Err(miette!("`ps` showed no process")),
        Some(name) => Err(miette!("{name} runs, but nothing lists what it holds: say so in {SYSTEM}.toml")),
        None if cores > 1 && !processes.iter().any(|name| name.starts_with("1:")) => {
            Err(miette!("nothing was listed on the second core"))
        }
        None => Ok(rows),
    }
}

/// Returns the position of a process in the table: those of the first core first, in the order of the description.
fn order(system: &System, name: &str) -> usize {
    let (core, base) = name.split_once(':').map_or((0, name), |(core, base)| (core.parse().unwrap_or(0), base));
    let place = system.programs.iter().position(|program| program.name == base).unwrap_or(0);
    (core as usize * system.programs.len()) + place + 1
}

/// Returns the processes that `ps` shows, without those that cannot be listed.
fn running(lines: &[String]) -> BTreeSet<String> {
    let after = lines.iter().skip_while(|line| !(line.starts_with(PROMPT) && line.contains("ps --flat"))).skip(1);
    let rows = after.take_while(|line| !line.starts_with(PROMPT)).skip(1);
    rows.filter_map(|row| {
        let (pid, name) = (row.split_whitespace().next()?, row.split_whitespace().last()?);
        let core = pid.split_once(':').map_or(0, |(core, _)| core.parse().unwrap_or(0));
        (!UNLISTED.contains(&name)).then(|| shown(core, name))
    })
    .collect()
}

/// Returns each process, and the lines about its capabilities.
fn sections(lines: &[String]) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in lines {
        let typed = line.strip_prefix(PROMPT);
        let name = typed.map_or(line.strip_prefix(ABOUT), |typed| typed.strip_prefix("caps "));
        if typed.is_some() || name.is_some() {
            inside = name.is_some();
            sections.extend(name.map(|name| (name, Vec::new())));
        } else if let Some((_, of)) = sections.last_mut().filter(|_| inside && !line.contains("SLOT  KIND")) {
            of.push(line);
        }
    }
    sections
}

/// A line of the shell's `caps`.
struct Capability<'l> {
    slot: u32,
    kind: &'l str,
    rights: &'l str,
    badge: &'l str,
    object: &'l str,
    purpose: &'l str,
}

impl<'l> Capability<'l> {
    /// Parses a line, whose columns are at least two spaces apart.
    fn parse(line: &'l str) -> Option<Capability<'l>> {
        let mut cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        let slot = cells.next()?.parse().ok()?;
        let (kind, rights, _size) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Capability {
            slot,
            kind,
            rights,
            badge: cells.next()?,
            object: cells.next()?,
            purpose: cells.next().unwrap_or(""),
        })
    }

    /// Returns whether it lies in a standard slot, or where a parent put it.
    fn is_given(&self) -> bool {
        self.slot < slot::FIRST_FREE.0
    }

    /// Returns whether its number counts.
    fn is_one(&self) -> bool {
        !self.is_memory_given() && (self.is_given() || !MADE.contains(&self.kind))
    }

    /// Returns whether it lies among the slots in which a parent puts the description's capabilities, one after the
    /// other: the slot depends on the sizes of those before it.
    fn is_extra(&self) -> bool {
        (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).contains(&self.slot)
    }

    /// Returns whether it is one of the chunks of memory that the process was given: their number depends on its size.
    fn is_memory_given(&self) -> bool {
        self.is_extra() && self.kind == "frame" && !self.is_device()
    }

    /// Returns whether it is memory that the process uses for itself. When the process gets that depends on its
    /// progress.
    fn is_own_memory(&self) -> bool {
        let is_memory = matches!(self.kind, "untyped" | "frame" | "page table" | "mapping");
        !self.is_given() && is_memory && self.rights == "rwgc" && !self.is_device()
    }

    fn is_device(&self) -> bool {
        let address = self.object.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        address.is_some_and(|address| address < RAM)
    }

    /// Returns its slot, if that has a meaning.
    fn slot_order(&self) -> u32 {
        match (self.is_given(), self.is_extra()) {
            (true, false) => self.slot,
            (true, true) => slot::EXTRA.0,
            (false, _) => u32::MAX,
        }
    }

    /// Returns the row for it, without the number.
    fn text(&self, process: &str) -> String {
        let place = match (self.is_given(), self.is_extra()) {
            (true, false) => self.slot.to_string(),
            (true, true) => format!("from {}", slot::EXTRA.0),
            (false, _) => "any".to_owned(),
        };
        // The number of a process depends on the processes started before it.
        let (identity, powers) = self.badge.split_once(' ').unwrap_or((self.badge, ""));
        // A server may hold capabilities that it has minted for its clients.
        let whose = if self.is_given() { "its own badge" } else { "a badge" };
        let badge = match (self.kind, identity, powers) {
            ("kernel", "-", _) => "everything".to_owned(),
            ("endpoint", "-", _) if self.rights.starts_with("-wgc") => {
                "no badge: as the server itself passes it on".into()
            }
            ("endpoint", "-", _) => String::new(),
            ("endpoint" | "kernel", _, "") => whose.to_owned(),
            ("endpoint" | "kernel", _, powers) => format!("{whose}, {powers}"),
            ("interrupt", ..) if self.is_given() => format!("line {}", self.object),
            ("frame" | "mapping", ..) if self.is_device() => format!("device at {}", self.object),
            _ => String::new(),
        };
        let about: Vec<&str> = [self.purpose, &badge].into_iter().filter(|text| !text.is_empty()).collect();
        format!("{process} | {place} | {} `{}` | {}", self.kind, self.rights, about.join("; "))
    }
}

/// Returns the table, with a column for each boot.
fn table(boots: &[Held]) -> String {
    let rows: BTreeSet<&Row> = boots.iter().flat_map(Held::keys).collect();
    let mut table = String::from(
        "| process | slot | capability and rights | what it is | on 1 core | on 2 |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let cells = boots.iter().map(|held| match held.get(row) {
            None => "-".to_owned(),
            Some(None) => "some".to_owned(),
            Some(Some(count)) => count.to_string(),
        });
        let _ = writeln!(table, "| {} | {} |", row.2, cells.collect::<Vec<_>>().join(" | "));
    }
    table
}

/// Returns the page before the table, the table, and the page after it.
fn parts(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some((before, table, after))
}

/// Returns the capabilities that are held and not in the table, and those in the table and not held.
fn difference(page: &str, table: &str) -> Option<String> {
    let missing = |from: &str, to: &str, what: &str| -> String {
        let there: BTreeSet<&str> = to.lines().collect();
        from.lines().filter(|line| !there.contains(line)).map(|line| format!("{what} {line}\n")).collect()
    };
    let (gone, new) = (missing(page, table, "only in the page:  "), missing(table, page, "only in the system:"));
    let help = format!("`./tench test holders --bless` writes the table into {PAGE}");
    (page != table).then(|| format!("{gone}{new}{help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UART: &str = "  16  frame               rwgc      4 KiB      -   0x9000000  given by the parent";
    const KERNEL: &str = "  12  kernel              rwgc         -  10 power, cores, counters           -  kernel";

    fn row(line: &str) -> String {
        Capability::parse(line).expect("it is a line of `caps`").text("x")
    }

    #[test]
    fn a_capability_is_a_row_without_numbers_that_differ() {
        assert_eq!(row(KERNEL), "x | 12 | kernel `rwgc` | kernel; its own badge, power, cores, counters");
        assert_eq!(row(UART), "x | from 16 | frame `rwgc` | given by the parent; device at 0x9000000");
        assert_eq!(
            row(" 8  endpoint  -wgc  32 B  4  -  memory server"),
            "x | 8 | endpoint `-wgc` | memory server; its own badge"
        );
        let archive =
            |slot: u32, at: u64| row(&format!("{slot}  frame  r--c  64 KiB  -  {at:#x}  given by the parent"));
        assert_eq!(row("15360  endpoint  -wgc  32 B  9 names  -"), "x | any | endpoint `-wgc` | a badge, names");
        assert_eq!(archive(17, 0x4802_8000), archive(29, 0x487b_8000));
        let server = |slot: u32| row(&format!("{slot}  endpoint  rwgc  32 B  -  -  given by the parent"));
        assert_eq!(server(31), server(35));
        let untyped = |slot: u32| row(&format!("{slot}  untyped  rwgc  64 KiB  -  {:#x}", slot * 0x10000));
        assert_eq!(untyped(53), untyped(1025));
        assert_ne!(row(KERNEL), row(" 12  kernel  rwgc  -  -  -  kernel"));
        assert!(Capability::parse("caps: there is no process of this name").is_none());
    }

    #[test]
    fn each_output_belongs_to_its_input() {
        let lines =
            ["boot", "tench> caps names", "SLOT  KIND", "a", "tench> echo x", "y", "capabilities of 1:procs", "b"];
        let lines = lines.map(str::to_owned);
        assert_eq!(sections(&lines), [("names", vec!["a"]), ("1:procs", vec!["b"])]);
        let ps = [
            "tench> ps --flat --short",
            "PID NAME",
            "  1 init",
            "  3 procs",
            "1:2 mem",
            "1:3 procs",
            "tench> x",
            "7 y",
        ];
        let running: Vec<String> = running(&ps.map(str::to_owned)).into_iter().collect();
        assert_eq!(running, ["1:procs", "procs"]);
    }

    #[test]
    fn a_new_grant_is_shown() {
        let held = |counts: &[(&str, Option<usize>)]| -> Held {
            counts.iter().map(|(text, count)| ((0, 0, (*text).to_owned()), *count)).collect()
        };
        let before = table(&[held(&[("a", Some(1))]), held(&[("a", Some(1)), ("b", None)])]);
        assert!(before.ends_with("| a | 1 | 1 |\n| b | - | some |\n"));
        let after = table(&[held(&[("a", Some(2))]), held(&[("a", Some(1)), ("b", None)])]);
        let text = difference(&before, &after).expect("they differ");
        assert!(text.contains("only in the page:   | a | 1 | 1 |\nonly in the system: | a | 2 | 1 |"));
        assert_eq!(difference(&before, &before), None);
        assert_eq!(parts(&format!("x\n{BEGIN}t\n{END}y\n")), Some(("x\n", "t\n", "y\n")));
    }
}
