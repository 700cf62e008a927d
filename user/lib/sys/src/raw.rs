//! System calls as they are: one stub for each number of registers to load.
//!
//! A stub loads only its arguments. The stub with `n` words sends a message of `n` words; the registers beyond keep
//! what they held, which is no leak, because the kernel transfers as many words as the tag says and clears the rest.
//! All stubs return all registers; those that the caller ignores cost nothing.

use tench_abi::{Error, Operation, Tag};

/// Registers after a system call.
#[derive(Clone, Copy, Debug)]
pub struct ResultRegisters {
    /// `x0`: 0, or an error's code.
    pub code: u64,
    /// `x1`: the tag of a received message, or the first result.
    pub first: u64,
    /// `x2`..`x9`: message words, or further results.
    pub words: [u64; 8],
    /// `x10`: the badge of a received message.
    pub badge: u64,
}

impl ResultRegisters {
    /// Returns the registers, or the error with which the call failed.
    #[inline(always)]
    pub fn check(self) -> Result<ResultRegisters, Error> {
        if self.code == 0 { Ok(self) } else { Err(error(self.code)) }
    }

    /// Returns the first result as a tag.
    #[inline(always)]
    pub const fn tag(&self) -> Tag {
        Tag(self.first)
    }

    /// Returns success or the error, for calls without results.
    #[inline(always)]
    pub fn done(self) -> Result<(), Error> {
        if self.code == 0 { Ok(()) } else { Err(error(self.code)) }
    }
}

/// Returns the error with this code. A code unknown to this library comes from a newer kernel and becomes
/// [`Error::UnknownOperation`]: an interface that the two do not share.
#[inline]
pub(crate) fn error(code: u64) -> Error {
    Error::from_code(code).unwrap_or(Error::UnknownOperation)
}

/// Defines a stub by the registers that it loads and those that it only reads afterwards.
macro_rules! stub {
    (
        $(#[$doc:meta])*
        $name:ident in ($($given:ident $given_register:tt),*) out ($($free:ident $free_register:tt),*)
        options ($($option:ident $option_register:tt),*) clobber ($($clobber:tt),*)
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The operation must not break what the program relies on: see the head of the crate.
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        #[cfg_attr(not(target_os = "none"), allow(unused_mut, unused_variables))]
        pub unsafe fn $name(
            operation: Operation,
            cap: u64,
            first: u64,
            $(mut $given: u64,)*
            $($option: u64,)*
        ) -> ResultRegisters {
            #[cfg(all(target_arch = "aarch64", target_os = "none"))]
            {
                let (mut code, mut first, mut badge) = (cap, first, operation as u64);
                $(let $free: u64;)*
                // SAFETY: the registers are declared as the kernel treats them (see `tench_abi`): results, clobbered,
                // or preserved. Memory counts as changed. The caller is responsible for the operation.
                unsafe {
                    core::arch::asm!(
                        "svc #1",
                        inlateout("x0") code,
                        inlateout("x1") first,
                        $(inlateout($given_register) $given,)*
                        $(lateout($free_register) $free,)*
                        inlateout("x10") badge,
                        $(inlateout($option_register) $option => _,)*
                        $(lateout($clobber) _,)*
                        lateout("x13") _,
                        lateout("x14") _,
                        lateout("x15") _,
                        lateout("x16") _,
                        lateout("x17") _,
                        lateout("x18") _,
                        options(nostack)
                    );
                }
                ResultRegisters { code, first, words: [$($given,)* $($free,)*], badge }
            }
            #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
            ResultRegisters { code: Error::UnknownOperation as u64, first: 0, words: [0; 8], badge: 0 }
        }
    };
}

stub! {
    /// System call with `x0` and `x1` only.
    call0 in ()
    out (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and one word.
    call1 in (a "x2")
    out (b "x3", c "x4", d "x5", e "x6", f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and two words.
    call2 in (a "x2", b "x3")
    out (c "x4", d "x5", e "x6", f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and three words.
    call3 in (a "x2", b "x3", c "x4")
    out (d "x5", e "x6", f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and four words.
    call4 in (a "x2", b "x3", c "x4", d "x5")
    out (e "x6", f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and five words.
    call5 in (a "x2", b "x3", c "x4", d "x5", e "x6")
    out (f "x7", g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and six words.
    call6 in (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7")
    out (g "x8", h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and seven words.
    call7 in (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7", g "x8")
    out (h "x9") options () clobber ("x11", "x12")
}
stub! {
    /// System call with `x0`, `x1` and all eight words.
    call8 in (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7", g "x8", h "x9")
    out () options () clobber ("x11", "x12")
}
stub! {
    /// System call without words; a reply object in `x11` and a deadline in `x12`.
    call0_with in ()
    out (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7", g "x8", h "x9")
    options (reply "x11", deadline "x12") clobber ()
}
stub! {
    /// System call with all eight words; a reply object in `x11` and a deadline in `x12`.
    call8_with in (a "x2", b "x3", c "x4", d "x5", e "x6", f "x7", g "x8", h "x9")
    out () options (reply "x11", deadline "x12") clobber ()
}

/// System call that loads all eight words from memory and stores them to memory, two at a time. Returns `x0`, `x1` and
/// `x10`. After an error the received words are whatever the registers hold.
///
/// # Safety
/// As for the other stubs.
#[inline(always)]
#[cfg_attr(not(target_os = "none"), allow(unused_variables))]
pub unsafe fn exchange(
    operation: Operation,
    cap: u64,
    tag: u64,
    sent: &[u64; 8],
    received: &mut [u64; 8],
) -> (u64, u64, u64) {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let (mut code, mut first, mut badge) = (cap, tag, operation as u64);
        // SAFETY: the registers are declared as the kernel treats them, as in `stub`. `sent` is readable, `received` is
        // writable, and both pointers are in registers that are not written before they are used.
        unsafe {
            core::arch::asm!(
                "ldp x2, x3, [{sent}]",
                "ldp x4, x5, [{sent}, #16]",
                "ldp x6, x7, [{sent}, #32]",
                "ldp x8, x9, [{sent}, #48]",
                "svc #1",
                "stp x2, x3, [{received}]",
                "stp x4, x5, [{received}, #16]",
                "stp x6, x7, [{received}, #32]",
                "stp x8, x9, [{received}, #48]",
                sent = in(reg) sent.as_ptr(),
                received = inout(reg) received.as_mut_ptr() => _,
                inlateout("x0") code,
                inlateout("x1") first,
                inlateout("x10") badge,
                out("x2") _,
                out("x3") _,
                out("x4") _,
                out("x5") _,
                out("x6") _,
                out("x7") _,
                out("x8") _,
                out("x9") _,
                lateout("x11") _,
                lateout("x12") _,
                lateout("x13") _,
                lateout("x14") _,
                lateout("x15") _,
                lateout("x16") _,
                lateout("x17") _,
                lateout("x18") _,
                options(nostack)
            );
        }
        (code, first, badge)
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    (Error::UnknownOperation as u64, 0, 0)
}

/// System call with arbitrary registers, for tests that fuzz the kernel.
///
/// # Safety
/// As for the other stubs, and the caller must be ready to lose whatever the arguments name.
pub unsafe fn anything(operation: u64, x: &[u64; 13]) -> [u64; 19] {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let mut out = [0; 19];
        // SAFETY: as in `stub`. `x10` is the operation, whatever `x[10]` holds.
        unsafe {
            core::arch::asm!(
                "svc #1",
                inlateout("x0") x[0] => out[0],
                inlateout("x1") x[1] => out[1],
                inlateout("x2") x[2] => out[2],
                inlateout("x3") x[3] => out[3],
                inlateout("x4") x[4] => out[4],
                inlateout("x5") x[5] => out[5],
                inlateout("x6") x[6] => out[6],
                inlateout("x7") x[7] => out[7],
                inlateout("x8") x[8] => out[8],
                inlateout("x9") x[9] => out[9],
                inlateout("x10") operation => out[10],
                inlateout("x11") x[11] => out[11],
                inlateout("x12") x[12] => out[12],
                lateout("x13") out[13],
                lateout("x14") out[14],
                lateout("x15") out[15],
                lateout("x16") out[16],
                lateout("x17") out[17],
                lateout("x18") out[18],
                options(nostack)
            );
        }
        out
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    {
        let _ = (operation, x);
        let mut out = [0; 19];
        out[0] = Error::UnknownOperation as u64;
        out
    }
}
