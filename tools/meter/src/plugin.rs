//! The functions called by the emulator, and those of its that are called: version 1 of its plug-in interface, which
//! QEMU 7.2 has (`qemu-plugin.h`). An emulator with another version refuses to load this.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::counters::{Counters, Page};

/// A block of instructions that is translated as a whole.
type Block = c_void;
type Instruction = c_void;
type Translated = extern "C" fn(u64, *mut Block);
type Executed = extern "C" fn(c_uint, *mut c_void);

/// Register access of a callback: none.
const NO_REGISTERS: c_int = 0;
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

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(plugin: u64, translated: Translated);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const [u8; 4];
    fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *mut c_void;
    fn qemu_plugin_register_vcpu_tb_exec_cb(block: *mut Block, executed: Executed, registers: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        executed: Executed,
        registers: c_int,
        data: *mut c_void,
    );
}

static COUNTERS: Counters = Counters::new();

/// Version that tells the emulator for which interface this was made.
// SAFETY: no other symbol of this name is in a plug-in.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the emulator looks for this name")]
pub static qemu_plugin_version: c_int = 1;

/// Begins to count. Cannot fail.
// SAFETY: no other symbol of this name is in a plug-in.
#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(
    plugin: u64,
    _machine: *const c_void,
    _count: c_int,
    _arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the emulator gave this number, and the function has the type that its header says.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated) };
    0
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
