//! References to kernel objects.
//!
//! Objects lie in memory that user space supplied. [`Kernel::get`](crate::Kernel::get) turns a [`Ref`] into a
//! reference. The call borrows the kernel's token mutably, so two references into kernel state cannot exist at once.

use core::marker::PhantomData;
use core::num::NonZeroUsize;

/// A reference to a live kernel object, by its kernel virtual address.
///
/// Invariant: a `Ref` is stored only where finalising the object clears it (docs/invariants.md, "References").
pub struct Ref<T> {
    address: NonZeroUsize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// Returns the reference to the object at `address`, or `None` for address 0.
    ///
    /// # Safety
    /// An object of type `T` lives at `address`.
    #[inline(always)]
    pub const unsafe fn at(address: usize) -> Option<Ref<T>> {
        match NonZeroUsize::new(address) {
            Some(address) => Some(Ref { address, marker: PhantomData }),
            None => None,
        }
    }

    /// Returns the reference to the object at `address`, which is not 0.
    ///
    /// # Safety
    /// An object of type `T` lives at `address`, which is not 0.
    #[inline(always)]
    pub const unsafe fn at_unchecked(address: usize) -> Ref<T> {
        // SAFETY: not 0 (caller).
        Ref { address: unsafe { NonZeroUsize::new_unchecked(address) }, marker: PhantomData }
    }

    /// Returns the object's kernel virtual address.
    #[inline(always)]
    pub const fn address(self) -> usize {
        self.address.get()
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ref<T> {}
impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
impl<T> Eq for Ref<T> {}
impl<T> core::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "@{:#x}", self.address)
    }
}
