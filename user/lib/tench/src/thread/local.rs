//! Thread-local data.
//!
//! A [`LocalKey`] has a number that is assigned when it is first used; each thread has a table of its data indexed by
//! these numbers. A look-up takes no lock and no system call. The data are made when the thread first uses them, and
//! dropped when it ends, the newest first. The main thread's are not dropped: the process ends with it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::own::Own;

/// Number of rounds of dropping, in case dropping data creates other data. Data created in the last round are not
/// dropped.
const ROUNDS: usize = 4;

/// The next number to assign.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Number of a key that has none assigned.
const NO_NUMBER: usize = usize::MAX;

/// The number of a thread-local key.
pub struct Number(AtomicUsize);

impl Number {
    /// Returns an unassigned number.
    pub const fn new() -> Number {
        Number(AtomicUsize::new(NO_NUMBER))
    }

    /// Returns the number, and assigns it if it is unassigned.
    #[inline]
    pub fn get(&self) -> usize {
        match self.0.load(Ordering::Relaxed) {
            NO_NUMBER => self.give_out(),
            number => number,
        }
    }

    #[cold]
    fn give_out(&self) -> usize {
        let new = NEXT.fetch_add(1, Ordering::Relaxed);
        match self.0.compare_exchange(NO_NUMBER, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => new,
            // Another thread was faster; an unused number costs a pointer.
            Err(given) => given,
        }
    }
}

impl Default for Number {
    fn default() -> Self {
        Self::new()
    }
}

/// One value of one thread.
#[derive(Clone, Copy)]
struct Entry {
    value: NonNull<u8>,
    drop: unsafe fn(NonNull<u8>),
}

/// The thread-local data of one thread.
pub struct Locals {
    entries: Vec<Option<Entry>>,
    /// Numbers in the order in which the data were made.
    order: Vec<usize>,
}

impl Locals {
    /// An empty table.
    pub const NONE: Locals = Locals { entries: Vec::new(), order: Vec::new() };

    /// Returns the value with a number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<NonNull<u8>> {
        self.entries.get(number).copied().flatten().map(|entry| entry.value)
    }

    /// Stores a value under an unused number.
    ///
    /// # Safety
    /// The thread that owns these data must be allowed to call `drop` once with `value`.
    pub unsafe fn put(&mut self, number: usize, value: NonNull<u8>, drop: unsafe fn(NonNull<u8>)) {
        if self.entries.len() <= number {
            self.entries.resize(number + 1, None);
        }
        self.entries[number] = Some(Entry { value, drop });
        self.order.push(number);
    }

    /// Removes the value that was made last, and returns it.
    fn take_last(&mut self) -> Option<Entry> {
        self.order.pop().and_then(|number| self.entries[number].take())
    }
}

/// Returns the running thread's table; null in a thread without one. The caller must not hold a reference to it while
/// it calls other code, because that code may call this function, too.
#[inline]
fn locals() -> *mut Locals {
    Own::current().map_or(core::ptr::null_mut(), |own| own.locals.get())
}

/// Returns the running thread's value with a number.
#[inline]
pub fn find(number: usize) -> Option<NonNull<u8>> {
    // SAFETY: the table is this thread's, and this reference ends here.
    unsafe { locals().as_ref() }?.get(number)
}

/// Stores a value under a number of the running thread. Returns false in a thread without a table.
///
/// # Safety
/// This thread must be allowed to call `drop` once with `value` when it ends. The number must be unused.
pub unsafe fn put(number: usize, value: NonNull<u8>, drop: unsafe fn(NonNull<u8>)) -> bool {
    // SAFETY: as in `find`.
    let Some(locals) = (unsafe { locals().as_mut() }) else { return false };
    // SAFETY: the caller guarantees that `drop` may be called.
    unsafe { locals.put(number, value, drop) };
    true
}

/// Drops all data of the running thread.
pub(super) fn drop_all() {
    let pointer = locals();
    if pointer.is_null() {
        return;
    }
    for _ in 0..ROUNDS {
        // SAFETY: the table is this thread's, and the reference ends at once.
        let count = unsafe { &*pointer }.order.len();
        for _ in 0..count {
            // SAFETY: as above; the reference ends before anything is dropped.
            let Some(entry) = unsafe { &mut *pointer }.take_last() else { break };
            // SAFETY: the caller of `put` guarantees that `drop` may be called once, and the entry has left the table.
            unsafe { (entry.drop)(entry.value) };
        }
    }
    // SAFETY: as above; only the empty tables are left, or all is to be freed.
    unsafe { *pointer = Locals::NONE };
}

/// A key of thread-local data; [`thread_local!`](crate::thread_local) makes one.
pub struct LocalKey<T: 'static> {
    number: Number,
    make: fn() -> T,
}

impl<T: 'static> LocalKey<T> {
    /// Returns a key whose values are made by `make`.
    pub const fn new(make: fn() -> T) -> LocalKey<T> {
        LocalKey { number: Number::new(), make }
    }

    /// Runs a function on the running thread's value. Panics in a thread that this library did not start, and if the
    /// value is requested while it is being made.
    #[inline]
    pub fn with<R>(&'static self, function: impl FnOnce(&T) -> R) -> R {
        let pointer = match find(self.number.get()) {
            Some(pointer) => pointer,
            None => self.make(),
        };
        // SAFETY: the value with this number is a `T` of this thread, which stays until the thread ends.
        function(unsafe { pointer.cast::<T>().as_ref() })
    }

    #[cold]
    fn make(&'static self) -> NonNull<u8> {
        let value = Box::new((self.make)());
        assert!(find(self.number.get()).is_none(), "data of a thread are made while they are being made");
        let pointer = NonNull::from(Box::leak(value)).cast::<u8>();
        // SAFETY: the pointer is to a box of this type, which from now on belongs to the table.
        let put = unsafe { put(self.number.get(), pointer, drop_box::<T>) };
        assert!(put, "a thread that did not begin in this library has no data of its own");
        pointer
    }
}

/// Drops a box of a `T`.
///
/// # Safety
/// `pointer` must come from such a box, to which nobody else refers.
unsafe fn drop_box<T>(pointer: NonNull<u8>) {
    // SAFETY: the caller guarantees that it is such a box.
    drop(unsafe { Box::from_raw(pointer.cast::<T>().as_ptr()) });
}

/// Declares thread-local data, which are made when a thread first uses them.
///
/// ```
/// use core::cell::Cell;
///
/// tench::thread_local! {
///     /// How often this thread has asked.
///     static COUNT: Cell<u32> = Cell::new(0);
/// }
///
/// fn ask() -> u32 {
///     COUNT.with(|count| count.replace(count.get() + 1))
/// }
/// # let _ = ask;
/// ```
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr;)*) => { $(
        $(#[$attribute])*
        $visibility static $name: $crate::thread::LocalKey<$type> = $crate::thread::LocalKey::new(|| $value);
    )* };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<u32>>>;

    struct Noisy(u32, Log);

    impl Drop for Noisy {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }

    #[test]
    fn data_are_found_and_dropped_once() {
        let log = Log::default();
        let mut locals = Locals::NONE;
        for number in [3, 0, 7] {
            let pointer = NonNull::from(Box::leak(Box::new(Noisy(number, Rc::clone(&log))))).cast();
            // SAFETY: the pointer is to such a box.
            unsafe { locals.put(number as usize, pointer, drop_box::<Noisy>) };
        }
        assert!(locals.get(3).is_some() && locals.get(1).is_none() && locals.get(99).is_none());
        while let Some(entry) = locals.take_last() {
            // SAFETY: the entry has left the table.
            unsafe { (entry.drop)(entry.value) };
        }
        assert_eq!(*log.borrow(), [7, 0, 3]);
    }

    #[test]
    fn numbers_are_given_out_once() {
        let (one, other) = (Number::new(), Number::new());
        assert_ne!(one.get(), other.get());
        assert_eq!(one.get(), one.get());
    }
}
