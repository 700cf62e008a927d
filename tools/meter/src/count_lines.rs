//! The functions called by the emulator to count [`lines`](crate::lines).
//!
//! What the kernel does is seen at translation, by addresses and encodings: its code lies in the upper half of the
//! address space, and interrupts are let in by three instructions.

use std::ffi::{c_uint, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::emulator::*;
use crate::lines::Core;

/// First address of the kernel's half.
const KERNEL: u64 = 1 << 63;
/// Bits of an address that a callback's data holds; bit 47 of a kernel address is set, as are those above.
const ADDRESS_BITS: u32 = 48;

const WFI: u32 = 0xd503_207f;
const ERET: u32 = 0xd69f_03e0;
/// `msr daifclr, #2`.
const UNMASK: u32 = 0xd503_42ff;
/// `isb`, which stands between unmasking and masking at a preemption point.
const ISB: u32 = 0xd503_3fdf;
/// `dc` with an address, such as `dc zva` and `dc civac`: all bits but those for the kind of operation and the
/// register.
const DATA_CACHE: u32 = 0xd50b_7020;
const DATA_CACHE_MASK: u32 = 0xffff_f0e0;

/// Lines of each core, and the file that is written at the end.
struct State {
    cores: Vec<Core>,
    path: PathBuf,
}

static STATE: Mutex<State> = Mutex::new(State { cores: Vec::new(), path: PathBuf::new() });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with a core's lines.
fn with(core: c_uint, act: impl FnOnce(&mut Core)) {
    let (mut state, index) = (state(), core as usize);
    if state.cores.len() <= index {
        state.cores.resize_with(index + 1, Core::default);
    }
    act(&mut state.cores[index]);
}

/// Begins to count, and lets the emulator write the counts to this file when it ends.
pub fn install(plugin: u64, path: &str) {
    state().path = path.into();
    // SAFETY: the emulator gave this number, and the function has the type that its header says.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated) };
    // SAFETY: as above; `ended` takes no data.
    unsafe { qemu_plugin_register_atexit_cb(plugin, ended, core::ptr::null_mut()) };
}

extern "C" fn translated(_: u64, block: *mut Block) {
    // SAFETY: the block is there until this returns.
    let address = unsafe { qemu_plugin_tb_vaddr(block) };
    // SAFETY: as above.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    if address < KERNEL {
        return;
    }
    for index in 0..count {
        // SAFETY: the block has this many instructions.
        let instruction = unsafe { qemu_plugin_tb_get_insn(block, index) };
        let word = word(instruction);
        if index == 0 {
            let executed = if word == ISB { executes_barrier } else { executes };
            let number = core::ptr::without_provenance_mut(pack(address, count));
            // SAFETY: the block is there until this returns; the argument is a number, which both functions take as
            // one.
            unsafe { qemu_plugin_register_vcpu_tb_exec_cb(block, executed, NO_REGISTERS, number) };
        }
        watch(instruction, word);
    }
}

/// Returns an instruction's encoding.
fn word(instruction: *mut Instruction) -> u32 {
    // SAFETY: the instruction is there until the translation's callback returns.
    let data = unsafe { qemu_plugin_insn_data(instruction) };
    // SAFETY: each instruction of this machine has four bytes.
    u32::from_le_bytes(unsafe { data.read() })
}

/// Registers what is to be recorded of an instruction.
fn watch(instruction: *mut Instruction, word: u32) {
    // SAFETY: the instruction is there until the translation's callback returns.
    let address = unsafe { qemu_plugin_insn_vaddr(instruction) };
    let number = core::ptr::without_provenance_mut(address as usize);
    let executed: Executed = match word {
        WFI | ERET | UNMASK => ends,
        _ if word & DATA_CACHE_MASK == DATA_CACHE => touches,
        _ => {
            // SAFETY: as above; the argument is a number, which `accesses` takes as one.
            unsafe {
                qemu_plugin_register_vcpu_mem_cb(instruction, accesses, NO_REGISTERS, READS_AND_WRITES, number);
            }
            return;
        }
    };
    // SAFETY: as above.
    unsafe { qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, number) };
}

/// Returns a block's address and number of instructions as one number.
fn pack(address: u64, count: usize) -> usize {
    ((address << (u64::BITS - ADDRESS_BITS)) | count as u64) as usize
}

/// Returns the address and the number of bytes of a block.
fn unpack(data: *mut c_void) -> (u64, u64) {
    let number = data.addr() as u64;
    let count = number & ((1 << (u64::BITS - ADDRESS_BITS)) - 1);
    ((number >> (u64::BITS - ADDRESS_BITS)) | !0 << ADDRESS_BITS, count * 4)
}

extern "C" fn executes(core: c_uint, data: *mut c_void) {
    let (address, bytes) = unpack(data);
    with(core, |core| core.executes(address, bytes));
}

/// Records a block that begins with a barrier: at a preemption point interrupts are on.
extern "C" fn executes_barrier(core: c_uint, data: *mut c_void) {
    let (address, bytes) = unpack(data);
    with(core, |core| {
        if core.is_off() {
            core.executes(address, bytes);
        }
    });
}

extern "C" fn accesses(core: c_uint, access: u32, address: u64, instruction: *mut c_void) {
    // SAFETY: the emulator gave this description of the access.
    let bytes = 1 << unsafe { qemu_plugin_mem_size_shift(access) };
    with(core, |core| core.accesses(instruction.addr() as u64, address, bytes));
}

extern "C" fn touches(core: c_uint, instruction: *mut c_void) {
    with(core, |core| core.touches_a_line(instruction.addr() as u64));
}

extern "C" fn ends(core: c_uint, instruction: *mut c_void) {
    with(core, |core| core.ends(instruction.addr() as u64));
}

/// Writes the counts, of one core after the other. If that fails, the file is missing, which its reader notices.
extern "C" fn ended(_: u64, _: *mut c_void) {
    let state = state();
    let text: String = state.cores.iter().map(Core::report).collect();
    let _ = std::fs::write(&state.path, text);
}
