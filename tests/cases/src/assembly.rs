//! Code whose every instruction and register matters.
//!
//! On the host nothing of this exists, because programs are only checked there.

/// Defines functions that consist of nothing but the given instructions.
macro_rules! assembly {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($line:literal)* })*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// What the instructions do must be allowed, or be a fault that somebody handles.
            #[cfg(target_os = "none")]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                core::arch::naked_asm!(".arch_extension fp", ".arch_extension simd", $($line),*)
            }

            $(#[$doc])*
            ///
            /// # Safety
            /// Not to be called: there are no programs on the host.
            #[cfg(not(target_os = "none"))]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                $(let _ = $argument;)*
                unreachable!("programs run on the target only")
            }
        )*
    };
}

assembly! {
    /// Where a worker begins. A frame record of zeros ends every backtrace here.
    fn begin() {
        "mov x29, xzr"
        "mov x30, xzr"
        "br x3"
    }
}
