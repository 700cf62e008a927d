//! The functions called by the emulator to count [`turns`](crate::counters).

use std::ffi::{c_uint, c_void};

use crate::counters::{Counters, Page};
use crate::emulator::*;

/// Instruction that waits for an interrupt.
const WFI: [u8; 4] = 0xd503_207f_u32.to_le_bytes();
/// Instruction `mov xzr, xzr`, which does nothing, and which no compiler generates: it marks where the counts are
/// written.
const MARK: [u8; 4] = 0xaa1f_03ff_u32.to_le_bytes();
/// Offset of the counts from the marking instruction, if that is the first of a page.
const BEHIND: usize = 64;
/// Bytes of a page.
const PAGE: usize = 4096;
const _: () = assert!(BEHIND + size_of::<Page>() <= PAGE);

static COUNTERS: Counters = Counters::new();

/// Begins to count.
pub fn install(plugin: u64) {
    // SAFETY: the emulator gave this number, and the function has the type that its header says.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated) };
}

extern "C" fn translated(_: u64, block: *mut Block) {
    // SAFETY: the block is there until this returns.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    let number = core::ptr::without_provenance_mut(count);
    // SAFETY: as above; the argument is a number, which `runs` takes as one.
    unsafe { qemu_plugin_register_vcpu_tb_exec_cb(block, runs, NO_REGISTERS, number) };
    for index in 0..count {
        // SAFETY: the block has this many instructions.
        let instruction = unsafe { qemu_plugin_tb_get_insn(block, index) };
        // SAFETY: the instruction is there until this returns.
        let data = unsafe { qemu_plugin_insn_data(instruction) };
        // SAFETY: each instruction of this machine has four bytes.
        match unsafe { data.read() } {
            // SAFETY: the instruction is there until this returns; `waits` takes no data.
            WFI => unsafe {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, waits, NO_REGISTERS, core::ptr::null_mut());
            },
            MARK => mark(instruction),
            _ => {}
        }
    }
}

fn mark(instruction: *mut Instruction) {
    // SAFETY: the instruction is there until this returns.
    let pointer = unsafe { qemu_plugin_insn_haddr(instruction) };
    if !pointer.is_null() {
        // SAFETY: as above; `writes` is given the instruction's address in the machine's memory.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(instruction, writes, NO_REGISTERS, pointer) };
    }
}

extern "C" fn runs(core: c_uint, instructions: *mut c_void) {
    COUNTERS.runs(core == 0, instructions.addr() as u64);
}

extern "C" fn waits(core: c_uint, _: *mut c_void) {
    if core == 0 {
        COUNTERS.first_waits();
    }
}

extern "C" fn writes(core: c_uint, pointer: *mut c_void) {
    let page = pointer.wrapping_byte_add(BEHIND).cast::<Page>();
    if core == 0 && pointer.addr().is_multiple_of(PAGE) {
        // SAFETY: the address is that of a page's first instruction, and the counts are shorter than the rest of the
        // page. The page is memory of the machine, which exists as long as the emulator, and which the emulator itself
        // accesses without holding a reference to it.
        COUNTERS.write(unsafe { &*page });
    }
}
