//! The emulator's functions: version 1 of its plug-in interface, which QEMU 7.2 has (`qemu-plugin.h`). An emulator with
//! another version refuses to load this.

use std::ffi::{c_int, c_uint, c_void};

/// A block of instructions that is translated as a whole.
pub type Block = c_void;
pub type Instruction = c_void;
/// Callback with a block that was translated.
pub type Translated = extern "C" fn(u64, *mut Block);
/// Callback before something is executed, with the core and the data of the registration.
pub type Executed = extern "C" fn(c_uint, *mut c_void);
/// Callback after a memory access, with the core, a description of the access, its address, and the data of the
/// registration.
pub type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// Callback at the end of the emulator.
pub type Ended = extern "C" fn(u64, *mut c_void);

/// Register access of a callback: none.
pub const NO_REGISTERS: c_int = 0;
/// Kinds of memory access of which a callback is told: both.
pub const READS_AND_WRITES: c_int = 3;

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(plugin: u64, translated: Translated);
    pub fn qemu_plugin_register_atexit_cb(plugin: u64, ended: Ended, data: *mut c_void);
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const [u8; 4];
    pub fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *mut c_void;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_mem_size_shift(access: u32) -> c_uint;
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        executed: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        executed: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        accessed: Accessed,
        registers: c_int,
        kinds: c_int,
        data: *mut c_void,
    );
}
