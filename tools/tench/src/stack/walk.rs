//! One procedure: how deep its own instructions take the stack, and what it calls, how deep.
//!
//! A procedure is what is reached from an address without calls. A jump into another function belongs to it: the
//! compiler makes one of a call at the end, when the frame is gone, and the assembly enters and leaves the kernel with
//! jumps.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Code;
use super::instruction::{Effect, effect, is_sum};

/// Depth in bytes from which on a loop is taken for one that never shrinks the stack.
const LIMIT: i64 = 1 << 20;

/// Assembly that leaves for another thread, and returns through the first of [`ELSEWHERE`] when some thread leaves for
/// this one.
const SWITCH: &str = "tench_switch";
/// Where control goes on on another stack, whose depth is counted elsewhere: that of a thread that had called
/// [`SWITCH`], and the one for reports.
const ELSEWHERE: [&str; 2] = ["resume_in_kernel", "tench_report"];
/// Function that calls the operation that the table has.
const DISPATCHER: &str = "tench_system_call";
/// Assembly whose jump goes to an entry of a table, and the table.
const JUMP: (&str, &str) = ("el0_call_above", "fast_paths");

/// The destination of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// The procedure at an address.
    Known(u64),
    /// Any function whose address a constant holds: an operation.
    Operation,
    /// Any function whose address an instruction takes.
    Pointer,
    /// The vector of interrupts in the kernel.
    Interrupt,
}

/// A call of a procedure, or of one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The destination.
    pub callee: Callee,
    /// Depth of the stack in bytes when it happens.
    pub depth: i64,
    /// Address of the instruction.
    pub address: u64,
}

/// A procedure: all that is reached from an address without calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Procedure {
    /// Largest depth of the stack in bytes, and the instruction at which it is reached.
    pub deepest: (i64, u64),
    /// Calls.
    pub calls: BTreeSet<Call>,
    /// Set if it returns.
    pub returns: bool,
    /// The instructions.
    pub reached: BTreeSet<u64>,
    /// Sentences about what is not understood.
    pub faults: BTreeSet<String>,
}

/// Walks through the procedure at an address. `returning` has the procedures that are known to return.
pub fn walk(code: &Code, entry: u64, returning: &BTreeSet<u64>) -> Procedure {
    let pending = vec![(entry, 0)];
    let (depths, computed, found) = (BTreeMap::new(), BTreeMap::new(), Procedure::default());
    let mut walk = Walk { code, entry, returning, depths, pending, computed, found };
    while let Some((address, depth)) = walk.pending.pop().or_else(|| walk.behind_computed()) {
        walk.visit(address, depth);
    }
    walk.found.reached = walk.depths.into_keys().collect();
    walk.found.returns |= code.symbols.get(SWITCH) == Some(&entry);
    walk.found
}

/// A walk so far.
struct Walk<'c> {
    code: &'c Code,
    entry: u64,
    returning: &'c BTreeSet<u64>,
    /// The largest depth before each instruction.
    depths: BTreeMap<u64, i64>,
    /// Instructions still to visit, and the depths before them.
    pending: Vec<(u64, i64)>,
    /// Functions with computed jumps, by their ends: their beginnings, and the depths at these jumps.
    computed: BTreeMap<u64, (u64, i64)>,
    found: Procedure,
}

impl Walk<'_> {
    /// Visits an instruction, unless it was reached as deep before.
    fn visit(&mut self, address: u64, depth: i64) {
        let is_elsewhere = address != self.entry && ELSEWHERE.iter().any(|symbol| self.is_at(symbol, address));
        if is_elsewhere || self.depths.get(&address).is_some_and(|known| *known >= depth) {
            return;
        }
        self.depths.insert(address, depth);
        let Some(word) = self.code.word(address) else {
            return self.fault(address, "is followed by what is no code");
        };
        if depth > LIMIT {
            return self.fault(address, "has a loop in which the stack grows");
        }
        self.found.deepest = self.found.deepest.max((depth, address));
        self.follow(effect(word, address), address, depth);
    }

    /// Goes on after an instruction with an effect.
    fn follow(&mut self, effect: Effect, address: u64, depth: i64) {
        let next = address + 4;
        match effect {
            Effect::None => self.pending.push((next, depth)),
            Effect::Grow(by) if depth + by < 0 => {
                self.fault(address, "takes more from the stack than it has put there")
            }
            Effect::Grow(by) => self.pending.push((next, depth + by)),
            // The assembly takes up the stack of another thread, or this one's anew.
            Effect::Replace if !self.code.is_mangled(address) => self.pending.push((next, 0)),
            Effect::Replace | Effect::Unknown => {
                self.fault(address, "sets the stack pointer in a way that is not known")
            }
            Effect::Jump(target) => self.pending.push((target, depth)),
            Effect::Branch(target) => self.pending.extend([(target, depth), (next, depth)]),
            Effect::Call(target) => self.call(Callee::Known(target), address, depth, self.returning.contains(&target)),
            Effect::CallTo => self.call(self.pointer(address), address, depth, true),
            Effect::JumpTo(register) => self.jump(address, register, depth),
            Effect::Admit => self.call(Callee::Interrupt, address, depth, true),
            Effect::Return if depth != 0 => self.fault(address, &format!("returns with {depth} bytes on the stack")),
            Effect::Return => self.found.returns = true,
            Effect::End => {}
        }
    }

    /// Notes a call, and goes on after it if it returns.
    fn call(&mut self, callee: Callee, address: u64, depth: i64, returns: bool) {
        self.found.calls.insert(Call { callee, depth, address });
        if returns {
            self.pending.push((address + 4, depth));
        }
    }

    /// Returns the first instruction that only a computed jump can lead to, and the depth there, once all others have
    /// been visited. What such a jump shares with other ways is as deep on those: the compiler's frames have one size,
    /// and a mistake would show at the return.
    fn behind_computed(&self) -> Option<(u64, i64)> {
        let left = |(end, (start, depth)): (&u64, &(u64, i64))| {
            let unvisited = (*start..*end).step_by(4).find(|address| !self.depths.contains_key(address));
            unvisited.map(|address| (address, *depth))
        };
        self.computed.iter().find_map(left)
    }

    /// Returns what an instruction with the address in a register can call.
    fn pointer(&self, address: u64) -> Callee {
        match self.code.function(address) {
            Some(function) if self.is_at(DISPATCHER, function.start) => Callee::Operation,
            _ => Callee::Pointer,
        }
    }

    /// Follows a jump to the address in a register. A computed one stays in its function, and leads to what nothing
    /// else leads to ([`behind_computed`](Self::behind_computed)). Any other is a call at the end of its function.
    fn jump(&mut self, address: u64, register: u32, depth: i64) {
        let is_computed = self.code.word(address - 4).is_some_and(|word| is_sum(word, register));
        match self.code.function(address) {
            Some(function) if is_computed => drop(self.computed.insert(function.end, (function.start, depth))),
            Some(_) => {
                self.call(self.pointer(address), address, depth, false);
                self.found.returns = true;
            }
            None if self.is_between(JUMP, address) => match self.code.table(JUMP.1) {
                Ok(entries) => self.pending.extend(entries.into_iter().map(|entry| (entry, depth))),
                Err(_) => self.fault(address, "jumps to an entry of a table that cannot be read"),
            },
            None => self.fault(address, "jumps to an address that is not known"),
        }
    }

    fn is_at(&self, symbol: &str, address: u64) -> bool {
        self.code.symbols.get(symbol) == Some(&address)
    }

    fn is_between(&self, (from, to): (&str, &str), address: u64) -> bool {
        let [from, to] = [from, to].map(|symbol| self.code.symbols.get(symbol));
        from.is_some_and(|from| *from <= address) && to.is_some_and(|to| address < *to)
    }

    fn fault(&mut self, address: u64, what: &str) {
        self.found.faults.insert(format!("{} at {address:#x} {what}", self.code.name(address)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::{ADD_48, BR_X1, LABEL, NOP, PUSH_32, RET, START, SUB_48, SUM_X1, code};
    use super::*;

    /// Walks through the code from its start, when no call is known to return.
    fn from_start(code: &Code) -> Procedure {
        walk(code, START, &BTreeSet::new())
    }

    #[test]
    fn a_frame_counts_where_it_is() {
        // sub sp, sp, #48; cbz x0, .+8; nop; add sp, sp, #48; ret
        let found = from_start(&code(&[SUB_48, 0xb400_0040, NOP, ADD_48, RET], &[]));
        assert_eq!((found.deepest.0, found.returns, found.reached.len()), (48, true, 5));
        assert_eq!(found.faults, BTreeSet::new());
    }

    #[test]
    fn what_follows_a_call_depends_on_its_return() {
        // stp x29, x30, [sp, #-32]!; bl .+8; udf
        let code = code(&[PUSH_32, 0x9400_0002, 0, RET], &[]);
        let call = Call { callee: Callee::Known(START + 12), depth: 32, address: START + 4 };
        let found = from_start(&code);
        assert_eq!((found.calls, found.reached.len(), found.returns), ([call].into(), 2, false));
        assert_eq!(walk(&code, START, &[START + 12].into()).reached.len(), 3);
    }

    #[test]
    fn a_jump_to_another_function_goes_on_in_it() {
        // b .+8; nop; sub sp, sp, #48; add sp, sp, #48; ret
        let found = from_start(&code(&[0x1400_0002, NOP, SUB_48, ADD_48, RET], &[(0, 4, "_one"), (8, 12, "_other")]));
        assert_eq!((found.deepest.0, found.returns, found.calls.len()), (48, true, 0));
    }

    #[test]
    fn a_computed_jump_leads_to_all_that_is_left_of_its_function() {
        // sub sp, sp, #48; add x1, x1, x2; br x1; add sp, sp, #48; ret; add sp, sp, #48; ret; nop
        let words = [SUB_48, SUM_X1, BR_X1, ADD_48, RET, ADD_48, RET, NOP];
        let found = from_start(&code(&words, &[(0, 28, "_one")]));
        assert_eq!((found.reached.len(), found.returns, found.calls.len()), (7, true, 0));
        assert_eq!(found.faults, BTreeSet::new());
    }

    #[test]
    fn a_jump_to_a_pointer_is_a_call_at_the_end() {
        let found = from_start(&code(&[SUB_48, ADD_48, BR_X1, NOP], &[(0, 12, "_one")]));
        let call = Call { callee: Callee::Pointer, depth: 0, address: START + 8 };
        assert_eq!((found.calls, found.returns, found.reached.len()), ([call].into(), true, 3));
    }

    #[test]
    fn the_table_of_the_assembly_is_read() {
        // add x1, x1, x2; br x1; fast_paths: 12, 16; then what they name, the second behind another label.
        let mut code = code(&[SUM_X1, BR_X1, 8, 12, RET, SUB_48, ADD_48, RET], &[]);
        for (name, offset) in [(JUMP.0, 0), (JUMP.1, 8), ("after", 16)] {
            code.symbols.insert(name.to_owned(), START + offset);
        }
        let found = from_start(&code);
        assert_eq!((found.deepest.0, found.returns, found.reached.len()), (48, true, 6));
        assert_eq!(found.faults, BTreeSet::new());
    }

    #[test]
    fn another_stack_is_empty_or_counted_elsewhere() {
        // sub sp, sp, #48; mov sp, x0; sub sp, sp, #48; b .+4; ret
        let mut code = code(&[SUB_48, 0x9100_001f, SUB_48, 0x1400_0001, RET], &[]);
        assert_eq!(from_start(&code).faults.len(), 1, "it returns with 48 bytes");
        code.symbols.insert(ELSEWHERE[0].to_owned(), START + 16);
        let found = from_start(&code);
        assert_eq!((found.deepest.0, found.returns, found.faults.len()), (48, false, 0));
        code.functions.insert(START, (20, "_ZN3one5other17h0123456789abcdefE".to_owned()));
        assert_eq!(from_start(&code).faults.len(), 1, "compiled code has no reason to do this");
    }

    #[test]
    fn what_is_not_understood_is_a_fault() {
        for (words, expected) in [
            (&[SUB_48, RET][..], "returns with 48 bytes on the stack"),
            (&[ADD_48, RET], "takes more from the stack than it has put there"),
            (&[SUB_48, 0x17ff_ffff], "has a loop in which the stack grows"), // b .-4
            (&[0x9100_43bf, RET], "sets the stack pointer in a way that is not known"), // add sp, x29, #16
            (&[BR_X1], "jumps to an address that is not known"),
            (&[NOP], "is followed by what is no code"),
        ] {
            let faults = from_start(&code(words, &[])).faults;
            assert!(faults.len() == 1 && faults.iter().all(|fault| fault.ends_with(expected)), "{faults:?}");
            assert!(faults.iter().all(|fault| fault.starts_with(LABEL)), "{faults:?}");
        }
    }
}
