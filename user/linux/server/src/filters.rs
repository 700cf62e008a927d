//! Filters of system calls (`seccomp`): small programs that a thread installs, and that decide about its calls.
//!
//! A filter is a program for the classic packet filter (BPF). Its input is a record with the call's number and
//! arguments, and only some of BPF's instructions are allowed.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;

/// Size of an instruction in a program's memory.
pub const INSTRUCTION: usize = 8;
/// The most instructions of a filter.
pub const MOST: usize = 4096;
/// The most instructions of all filters of a thread, where each filter but the last counts [`EXTRA`] more.
const MOST_OF_ALL: usize = 32_768;
const EXTRA: usize = 4;
/// Number of words of memory that a filter has.
const WORDS: usize = 16;
/// Size of the record that filters read.
pub const RECORD: usize = 64;
/// The processor's architecture in such a record.
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// Results of a filter: an action in the upper half, and data for it in the lower half.
#[allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]
pub mod action {
    pub const KILL_PROCESS: u32 = 0x8000_0000;
    pub const KILL_THREAD: u32 = 0;
    pub const TRAP: u32 = 0x0003_0000;
    pub const ERROR: u32 = 0x0005_0000;
    pub const TRACE: u32 = 0x7ff0_0000;
    pub const LOG: u32 = 0x7ffc_0000;
    pub const ALLOW: u32 = 0x7fff_0000;
    pub const MASK: u32 = 0xffff_0000;
}

/// Instruction codes.
mod code {
    pub const LOAD: u16 = 0x00;
    pub const LOAD_RECORD: u16 = 0x20;
    pub const LOAD_MEMORY: u16 = 0x60;
    pub const LOAD_LENGTH: u16 = 0x80;
    pub const INDEX: u16 = 0x01;
    pub const INDEX_MEMORY: u16 = 0x61;
    pub const INDEX_LENGTH: u16 = 0x81;
    pub const STORE: u16 = 0x02;
    pub const STORE_INDEX: u16 = 0x03;
    pub const JUMP: u16 = 0x05;
    pub const RETURN: u16 = 0x06;
    pub const RETURN_VALUE: u16 = 0x16;
    pub const TO_INDEX: u16 = 0x07;
    pub const FROM_INDEX: u16 = 0x87;
    pub const NEGATE: u16 = 0x84;
    /// The operand is the index register.
    pub const BY_INDEX: u16 = 0x08;
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u16,
    /// Numbers of instructions to skip if the condition holds, and if it does not.
    then: u8,
    otherwise: u8,
    operand: u32,
}

/// Operation of an instruction on two numbers.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Calculates(fn(u32, u32) -> Option<u32>),
    Compares(fn(u32, u32) -> bool),
    Other,
}

/// Returns the kind of an instruction, or `None` if its code is not allowed.
fn kind(code: u16) -> Option<Kind> {
    Some(match code & !code::BY_INDEX {
        0x04 => Kind::Calculates(|a, b| Some(a.wrapping_add(b))),
        0x14 => Kind::Calculates(|a, b| Some(a.wrapping_sub(b))),
        0x24 => Kind::Calculates(|a, b| Some(a.wrapping_mul(b))),
        0x34 => Kind::Calculates(u32::checked_div),
        0x44 => Kind::Calculates(|a, b| Some(a | b)),
        0x54 => Kind::Calculates(|a, b| Some(a & b)),
        0x64 => Kind::Calculates(|a, b| Some(a.wrapping_shl(b))),
        0x74 => Kind::Calculates(|a, b| Some(a.wrapping_shr(b))),
        0xa4 => Kind::Calculates(|a, b| Some(a ^ b)),
        0x15 => Kind::Compares(|a, b| a == b),
        0x25 => Kind::Compares(|a, b| a > b),
        0x35 => Kind::Compares(|a, b| a >= b),
        0x45 => Kind::Compares(|a, b| a & b != 0),
        _ => match code {
            code::LOAD | code::LOAD_RECORD | code::LOAD_MEMORY | code::LOAD_LENGTH => Kind::Other,
            code::INDEX | code::INDEX_MEMORY | code::INDEX_LENGTH | code::STORE | code::STORE_INDEX => Kind::Other,
            code::JUMP | code::RETURN | code::RETURN_VALUE => Kind::Other,
            code::TO_INDEX | code::FROM_INDEX | code::NEGATE => Kind::Other,
            _ => return None,
        },
    })
}

/// A filter that was checked, with those before it.
#[derive(Debug)]
pub struct Filter {
    program: Vec<Instruction>,
    /// The thread's previous filter, which still decides, too.
    before: Option<Arc<Filter>>,
    /// Number of instructions of this filter and all before it, as [`MOST_OF_ALL`] counts them.
    count: usize,
    /// Number of filters, with all before.
    number: usize,
}

impl Filter {
    /// Returns a filter in addition to those before it.
    ///
    /// # Errors
    /// - `EINVAL`: the program is malformed, or has an instruction that is not allowed.
    /// - `ENOMEM`: all filters together have too many instructions.
    pub fn new(bytes: &[u8], before: Option<Arc<Filter>>) -> Result<Filter, Errno> {
        let instruction = |record: &[u8]| Instruction {
            code: u16::from_le_bytes([record[0], record[1]]),
            then: record[2],
            otherwise: record[3],
            operand: u32_at(record, 4),
        };
        let program: Vec<Instruction> = bytes.chunks_exact(INSTRUCTION).map(instruction).collect();
        check(&program)?;
        let count = program.len() + before.as_ref().map_or(0, |before| before.count + EXTRA);
        if count > MOST_OF_ALL {
            return Err(Errno::ENOMEM);
        }
        let number = 1 + before.as_ref().map_or(0, |before| before.number);
        Ok(Filter { program, before, count, number })
    }

    /// Returns the strictest result of all filters; of equally strict ones, that of the last filter.
    pub fn decide(&self, record: &[u8; RECORD]) -> u32 {
        let mut result = action::ALLOW;
        let mut next = Some(self);
        while let Some(filter) = next {
            let found = run(&filter.program, record);
            let rank = |result: u32| (result & action::MASK).cast_signed();
            if rank(found) < rank(result) {
                result = found;
            }
            next = filter.before.as_deref();
        }
        result
    }

    /// Returns whether another filter is among those before this one.
    pub fn follows(&self, other: &Arc<Filter>) -> bool {
        let mut next = self.before.as_ref();
        while let Some(before) = next {
            if Arc::ptr_eq(before, other) {
                return true;
            }
            next = before.before.as_ref();
        }
        false
    }

    /// Returns the number of filters: this one and those before it.
    pub const fn number(&self) -> usize {
        self.number
    }
}

impl Drop for Filter {
    /// Drops the filters before this one in a loop, since recursion over a long chain would need a deep stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut filter) = next.and_then(Arc::into_inner) {
            next = filter.before.take();
        }
    }
}

/// Checks that each instruction is allowed, that jumps lead to instructions, that the last instruction returns, and
/// that each word of memory is written before it is read.
fn check(program: &[Instruction]) -> Result<(), Errno> {
    let length = program.len();
    let mut written = alloc::vec![u16::MAX; length];
    let Some(first) = written.first_mut() else { return Err(Errno::EINVAL) };
    *first = 0;
    for (at, instruction) in program.iter().enumerate() {
        let Instruction { code, then, otherwise, operand } = *instruction;
        let kind = kind(code).ok_or(Errno::EINVAL)?;
        let rest = length - at - 1;
        let mut memory = written[at];
        let bit = || if (operand as usize) < WORDS { Ok(1_u16 << operand) } else { Err(Errno::EINVAL) };
        let targets = match (kind, code) {
            (Kind::Compares(_), _) => [Some(then as usize), Some(otherwise as usize)],
            (_, code::JUMP) => [Some(operand as usize), None],
            (_, code::RETURN | code::RETURN_VALUE) => [None, None],
            _ => [Some(0), None],
        };
        let is_possible = match code {
            0x34 => operand != 0,
            0x64 | 0x74 => operand < 32,
            code::LOAD_RECORD => operand.is_multiple_of(4) && (operand as usize) < RECORD,
            code::LOAD_MEMORY | code::INDEX_MEMORY => memory & bit()? != 0,
            code::STORE | code::STORE_INDEX => {
                memory |= bit()?;
                true
            }
            _ => true,
        };
        if !is_possible || targets.iter().flatten().any(|target| *target >= rest) {
            return Err(Errno::EINVAL);
        }
        for target in targets.into_iter().flatten() {
            written[at + 1 + target] &= memory;
        }
    }
    Ok(())
}

/// Runs a checked program. The program ends, since all jumps are forward.
fn run(program: &[Instruction], record: &[u8; RECORD]) -> u32 {
    let (mut value, mut index, mut memory) = (0_u32, 0_u32, [0_u32; WORDS]);
    let mut at = 0;
    while let Some(Instruction { code, then, otherwise, operand }) = program.get(at).copied() {
        at += 1;
        let other = if code & code::BY_INDEX != 0 { index } else { operand };
        match kind(code) {
            Some(Kind::Calculates(calculate)) => match calculate(value, other) {
                Some(result) => value = result,
                None => return action::KILL_THREAD,
            },
            Some(Kind::Compares(compare)) => at += usize::from(if compare(value, other) { then } else { otherwise }),
            _ => match code {
                code::LOAD => value = operand,
                code::LOAD_RECORD => value = u32_at(record, operand as usize),
                code::LOAD_MEMORY => value = memory[operand as usize % WORDS],
                code::LOAD_LENGTH => value = RECORD as u32,
                code::INDEX => index = operand,
                code::INDEX_MEMORY => index = memory[operand as usize % WORDS],
                code::INDEX_LENGTH => index = RECORD as u32,
                code::STORE => memory[operand as usize % WORDS] = value,
                code::STORE_INDEX => memory[operand as usize % WORDS] = index,
                code::JUMP => at += operand as usize,
                code::TO_INDEX => index = value,
                code::FROM_INDEX => value = index,
                code::NEGATE => value = value.wrapping_neg(),
                code::RETURN => return operand,
                _ => return value,
            },
        }
    }
    action::KILL_THREAD
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn bytes(program: &[(u16, u8, u8, u32)]) -> Vec<u8> {
        let one = |(code, then, otherwise, operand): &(u16, u8, u8, u32)| {
            [&code.to_le_bytes()[..], &[*then, *otherwise], &operand.to_le_bytes()].concat()
        };
        program.iter().flat_map(one).collect()
    }

    fn filter(program: &[(u16, u8, u8, u32)]) -> Result<Filter, Errno> {
        Filter::new(&bytes(program), None)
    }

    fn record(number: u32, first: u64) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&number.to_le_bytes());
        record[16..24].copy_from_slice(&first.to_le_bytes());
        record
    }

    #[test]
    fn a_program_decides_by_number_and_arguments() {
        let program = [(0x20, 0, 0, 0), (0x15, 0, 2, 64), (0x20, 0, 0, 16), (0x25, 1, 0, 2), (6, 0, 0, 0x7fff_0000)];
        let program = [&program[..], &[(6, 0, 0, 0x0005_0001)]].concat();
        let filter = filter(&program).unwrap();
        assert_eq!(filter.decide(&record(64, 1)), action::ALLOW);
        assert_eq!(filter.decide(&record(64, 3)), action::ERROR | 1);
        assert_eq!(filter.decide(&record(63, 1)), action::ALLOW);
    }

    #[test]
    fn all_instructions_calculate_as_they_should() {
        // Each case begins with 12 in both registers, and returns the accumulator.
        for (code, operand, expected) in [
            (0x04, 5, 17),
            (0x0c, 0, 24),
            (0x14, 13, u32::MAX),
            (0x24, 3, 36),
            (0x34, 5, 2),
            (0x3c, 0, 1),
            (0x44, 3, 15),
            (0x54, 5, 4),
            (0x64, 4, 192),
            (0x74, 2, 3),
            (0xa4, 5, 9),
            (0x84, 0, 12_u32.wrapping_neg()),
            (0x80, 0, 64),
            (0x00, 99, 99),
        ] {
            let program = [(0x00, 0, 0, 12), (0x07, 0, 0, 0), (code, 0, 0, operand), (0x16, 0, 0, 0)];
            assert_eq!(run_alone(&program), expected, "{code:#x}");
        }
        let memory = [(0, 0, 0, 7), (2, 0, 0, 15), (1, 0, 0, 9), (3, 0, 0, 0), (0x60, 0, 0, 15), (0x61, 0, 0, 0)];
        assert_eq!(run_alone(&[&memory[..], &[(0x0c, 0, 0, 0), (0x16, 0, 0, 0)]].concat()), 16);
        assert_eq!(run_alone(&[(0x81, 0, 0, 0), (0x87, 0, 0, 0), (5, 0, 0, 1), (6, 0, 0, 1), (0x16, 0, 0, 0)]), 64);
        let by_zero = [(0, 0, 0, 5), (0x3c, 0, 0, 0), (6, 0, 0, action::ALLOW)];
        assert_eq!(run_alone(&by_zero), action::KILL_THREAD);
    }

    fn run_alone(program: &[(u16, u8, u8, u32)]) -> u32 {
        run(&filter(program).unwrap().program, &record(0, 0))
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        let end = (6, 0, 0, 0);
        for bad in [
            &[][..],
            &[(0x28, 0, 0, 0), end],
            &[(0x94, 0, 0, 3), end],
            &[(0x20, 0, 0, 2), end],
            &[(0x20, 0, 0, 64), end],
            &[(0x34, 0, 0, 0), end],
            &[(0x64, 0, 0, 32), end],
            &[(0x60, 0, 0, 3), end],
            &[(0x02, 0, 0, 16), end],
            &[(0x05, 0, 0, 1), end],
            &[(0x15, 0, 1, 0), end],
            &[(0x00, 0, 0, 0)],
            // One of two paths reads a word that it did not write.
            &[(0x15, 1, 0, 0), (0x02, 0, 0, 1), (0x60, 0, 0, 1), end],
        ] {
            assert_eq!(filter(bad).map(drop), Err(Errno::EINVAL), "{bad:?}");
        }
        assert!(filter(&[(0x02, 0, 0, 1), (0x15, 1, 0, 0), (0x60, 0, 0, 1), end]).is_ok());
    }

    #[test]
    fn the_strictest_result_counts_and_of_equal_ones_the_last() {
        let add = |before: Option<Arc<Filter>>, result| Filter::new(&bytes(&[(6, 0, 0, result)]), before).map(Arc::new);
        let first = add(None, action::ERROR | 1).unwrap();
        let second = add(Some(first.clone()), action::ERROR | 2).unwrap();
        let third = add(Some(second.clone()), action::ALLOW).unwrap();
        assert_eq!(third.decide(&record(0, 0)), action::ERROR | 2);
        let fourth = add(Some(third.clone()), action::KILL_PROCESS | 7).unwrap();
        assert_eq!((fourth.decide(&record(0, 0)), fourth.number()), (action::KILL_PROCESS | 7, 4));
        assert!(fourth.follows(&first) && !first.follows(&fourth) && !fourth.follows(&fourth));
        let mut many = fourth;
        let error = loop {
            match add(Some(many.clone()), action::ALLOW) {
                Ok(more) => many = more,
                Err(error) => break error,
            }
        };
        let next = many.count + EXTRA + 1;
        assert!(error == Errno::ENOMEM && many.count <= MOST_OF_ALL && next > MOST_OF_ALL);
        let with_small_stack = std::thread::Builder::new().stack_size(64 * 1024);
        let number = with_small_stack.spawn(move || many.number()).unwrap().join();
        assert!(number.unwrap() > 6000);
    }
}
