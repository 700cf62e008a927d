//! The calls together: the procedures that are reached from some entries, and the deepest chain from each.

use std::collections::{BTreeMap, BTreeSet};

use super::INTERRUPTS;
use super::code::Code;
use super::instruction::{Effect, effect};
use super::walk::{Call, Callee, Procedure, walk};

/// The procedures of a kernel.
pub struct Calls<'c> {
    code: &'c Code,
    /// Address of the vector of interrupts in the kernel.
    interrupt: u64,
    /// Functions to which a pointer may lead. An entry is none: it is entered, or a new stack prepared for it.
    pointers: BTreeSet<u64>,
    procedures: BTreeMap<u64, Procedure>,
    /// Depths that are known already, by procedure and number of interrupts in progress.
    known: BTreeMap<(u64, usize), Deepest>,
    /// The chain that is being followed.
    chain: Vec<(u64, usize)>,
    /// Sentences about what is not understood, or has no bound.
    pub faults: BTreeSet<String>,
}

/// The deepest use of the stack by a procedure.
#[derive(Clone, Copy)]
struct Deepest {
    bytes: i64,
    /// The call in which it happens, its destination, and the interrupts in progress then; `None` if in no call.
    within: Option<(Call, u64, usize)>,
}

impl<'c> Calls<'c> {
    /// Finds the procedures that are reached from these addresses.
    pub fn new(code: &'c Code, interrupt: u64, roots: &[u64]) -> Calls<'c> {
        let (known, chain, faults) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let pointers = code.in_code.iter().filter(|address| !roots.contains(address)).copied().collect();
        let mut calls = Calls { code, interrupt, pointers, procedures: BTreeMap::new(), known, chain, faults };
        let mut returning = BTreeSet::new();
        // Whether a call returns decides what follows it, so this ends when nothing more is found to return.
        loop {
            let before = returning.len();
            calls.procedures.clear();
            calls.reach(roots, &mut returning);
            if returning.len() == before {
                break;
            }
        }
        calls.faults = calls.procedures.values().flat_map(|procedure| &procedure.faults).cloned().collect();
        calls.find_unreached();
        calls
    }

    /// Walks through the procedures that are reached.
    fn reach(&mut self, roots: &[u64], returning: &mut BTreeSet<u64>) {
        let mut pending = roots.to_vec();
        while let Some(address) = pending.pop() {
            if self.procedures.contains_key(&address) {
                continue;
            }
            let procedure = walk(self.code, address, returning);
            if procedure.returns {
                returning.insert(address);
            }
            pending.extend(procedure.calls.iter().flat_map(|call| self.destinations(call.callee)));
            self.procedures.insert(address, procedure);
        }
    }

    /// Returns the procedures that a call can lead to.
    fn destinations(&self, callee: Callee) -> Vec<u64> {
        match callee {
            Callee::Known(address) => vec![address],
            Callee::Operation => self.code.in_constants.clone(),
            Callee::Pointer => self.pointers.iter().copied().collect(),
            Callee::Interrupt => vec![self.interrupt],
        }
    }

    /// Notes the functions of which something is reached and something is not: there may be a way to it that was not
    /// understood.
    fn find_unreached(&mut self) {
        let reached: BTreeSet<u64> = self.procedures.values().flat_map(|one| &one.reached).copied().collect();
        for (start, (size, _)) in &self.code.functions {
            let is_instruction =
                |address: u64| self.code.word(address).is_some_and(|word| effect(word, address) != Effect::End);
            let mut missed = (*start..start + size).step_by(4).filter(|address| !reached.contains(address));
            let missed = missed.find(|address| is_instruction(*address));
            if let Some(missed) = missed.filter(|_| reached.range(*start..start + size).next().is_some()) {
                self.faults.insert(format!("nothing is known to lead to {missed:#x} in {}", self.code.name(*start)));
            }
        }
    }

    /// Returns how deep a procedure takes the stack in bytes, with so many interrupts in progress.
    pub fn depth(&mut self, procedure: u64, interrupts: usize) -> i64 {
        let key = (procedure, interrupts);
        if let Some(known) = self.known.get(&key) {
            return known.bytes;
        }
        if let Some(first) = self.chain.iter().position(|earlier| *earlier == key) {
            let names: Vec<String> = self.chain[first..].iter().map(|(address, _)| self.code.name(*address)).collect();
            self.faults.insert(format!("recursion: {}", names.join(" calls ")));
            return 0;
        }
        self.chain.push(key);
        let deepest = self.deepest(procedure, interrupts);
        self.chain.pop();
        self.known.insert(key, deepest);
        deepest.bytes
    }

    fn deepest(&mut self, procedure: u64, interrupts: usize) -> Deepest {
        let Some(found) = self.procedures.get(&procedure) else { return Deepest { bytes: 0, within: None } };
        let mut deepest = Deepest { bytes: found.deepest.0, within: None };
        for call in found.calls.clone() {
            let inside = interrupts + usize::from(call.callee == Callee::Interrupt);
            if inside > INTERRUPTS {
                continue;
            }
            for destination in self.destinations(call.callee) {
                let bytes = call.depth + self.depth(destination, inside);
                if bytes > deepest.bytes {
                    deepest = Deepest { bytes, within: Some((call, destination, inside)) };
                }
            }
        }
        deepest
    }

    /// Returns the chain of calls that takes the stack deepest: the functions, and the bytes that each adds.
    pub fn chain(&self, mut procedure: u64, mut interrupts: usize) -> Vec<(u64, String)> {
        let mut chain = Vec::new();
        while let Some(known) = self.known.get(&(procedure, interrupts)) {
            let (bytes, place) = match known.within {
                Some((call, ..)) => (call.depth, call.address),
                None => (known.bytes, self.procedures.get(&procedure).map_or(procedure, |found| found.deepest.1)),
            };
            chain.push((bytes.unsigned_abs(), self.code.name(place)));
            let Some((_, destination, inside)) = known.within else { break };
            (procedure, interrupts) = (destination, inside);
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::tests::{ADD_48, BLR_X1, NOP, POP_32, PUSH_32, RET, START, SUB_48, code};
    use super::*;

    /// Bits of `bl .+0`, to which the distance in instructions is added.
    const CALL: u32 = 0x9400_0000;
    /// `cbz x0, .+8`
    const SKIP: u32 = 0xb400_0040;
    /// `msr daifclr, #2`
    const ADMIT: u32 = 0xd503_42ff;

    /// Returns the depth from the start of some code, the chain, and the faults. An interrupt begins at an offset.
    fn judge(code: &Code, interrupt: u64) -> (i64, Vec<u64>, BTreeSet<String>) {
        let mut calls = Calls::new(code, START + interrupt, &[START]);
        let depth = calls.depth(START, 0);
        (depth, calls.chain(START, 0).into_iter().map(|(bytes, _)| bytes).collect(), calls.faults)
    }

    #[test]
    fn the_deepest_call_counts_where_it_happens() {
        // A frame of 32 bytes, in which a function with one of 48 is called; after that another function without any.
        let words = [PUSH_32, CALL | 4, POP_32, CALL | 5, RET, SUB_48, ADD_48, RET, RET];
        assert_eq!(judge(&code(&words, &[]), 0), (80, vec![32, 48], BTreeSet::new()));
    }

    #[test]
    fn two_interrupts_are_in_progress_at_most() {
        // An operation that admits interrupts with 32 bytes on the stack; a handler of 48 that does so, too.
        let words = [PUSH_32, ADMIT, POP_32, RET, SUB_48, ADMIT, ADD_48, RET];
        assert_eq!(judge(&code(&words, &[]), 16), (32 + 48 + 48, vec![32, 48, 48], BTreeSet::new()));
    }

    #[test]
    fn a_pointer_leads_to_any_function_whose_address_is_taken() {
        let words = [PUSH_32, BLR_X1, POP_32, RET, SUB_48, ADD_48, RET];
        let mut code = code(&words, &[(0, 16, "_one"), (16, 12, "_other")]);
        assert_eq!(judge(&code, 0).0, 32);
        // That of an entry does not count: it would be recursion.
        code.in_code = [START, START + 16].into();
        assert_eq!(judge(&code, 0), (80, vec![32, 48], BTreeSet::new()));
    }

    #[test]
    fn recursion_is_a_fault() {
        // A function that calls another, which may call the first.
        let words = [PUSH_32, CALL | 3, POP_32, RET, PUSH_32, SKIP, CALL | 0x03ff_fffa, POP_32, RET];
        let (_, _, faults) = judge(&code(&words, &[(0, 16, "_one"), (16, 20, "_other")]), 0);
        assert_eq!(faults, ["recursion: _one calls _other".to_owned()].into());
    }

    #[test]
    fn what_nothing_leads_to_is_a_fault() {
        // ret; nop; ret. What cannot be executed does not matter.
        let faults = |second| judge(&code(&[RET, second, 0], &[(0, 12, "_one")]), 0).2;
        assert_eq!(faults(0), BTreeSet::new());
        assert_eq!(faults(NOP), ["nothing is known to lead to 0x1004 in _one".to_owned()].into());
    }
}
