//! Data of which each thread has its own.
//!
//! A [`LocalKey`] is a number that is given out when it is first needed; a thread's data lie in a table under these
//! numbers. Finding them takes no lock and no system call. They are made when the thread first asks for them, and
//! dropped when it ends, the newest first. The main thread's are not dropped: the process ends with it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::own::Own;

/// Rounds of dropping, in case that data of one kind make others anew while they are dropped. What is made in the last
/// round stays.
const ROUNDS: usize = 4;

/// The next number.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Whose numbers have not been given out.
const NO_NUMBER: usize = usize::MAX;

/// A number for something of which each thread has its own.
pub struct Number(AtomicUsize);

impl Number {
    /// Not given out yet.
    pub const fn new() -> Number {
        Number(AtomicUsize::new(NO_NUMBER))
    }

    /// The number, given out now if it was not before.
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
            // Another thread was faster; a number that nobody uses costs a pointer.
            Err(given) => given,
        }
    }
}

impl Default for Number {
    fn default() -> Self {
        Self::new()
    }
}

/// One thing of one thread.
#[derive(Clone, Copy)]
struct Entry {
    value: NonNull<u8>,
    drop: unsafe fn(NonNull<u8>),
}

/// The data of one thread.
pub struct Locals {
    entries: Vec<Option<Entry>>,
    /// Numbers in the order in which the data were made.
    order: Vec<usize>,
}

impl Locals {
    /// No data.
    pub const NONE: Locals = Locals { entries: Vec::new(), order: Vec::new() };

    /// What lies under a number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<NonNull<u8>> {
        self.entries.get(number).copied().flatten().map(|entry| entry.value)
    }

    /// Puts something under a number that is free.
    ///
    /// # Safety
    /// `drop` may be called once with `value`, by the thread whose data these are.
    pub unsafe fn put(&mut self, number: usize, value: NonNull<u8>, drop: unsafe fn(NonNull<u8>)) {
        if self.entries.len() <= number {
            self.entries.resize(number + 1, None);
        }
        self.entries[number] = Some(Entry { value, drop });
        self.order.push(number);
    }

    /// Takes out what was made last.
    fn take_last(&mut self) -> Option<Entry> {
        self.order.pop().and_then(|number| self.entries[number].take())
    }
}

/// The running thread's data; null in a thread without any. Whoever follows the pointer makes no reference that lasts
/// while functions of others are called, because those may come here, too.
#[inline]
fn locals() -> *mut Locals {
    Own::current().map_or(core::ptr::null_mut(), |own| own.locals.get())
}

/// What the running thread has under a number.
#[inline]
pub fn find(number: usize) -> Option<NonNull<u8>> {
    // SAFETY: the data are this thread's, and this reference ends here.
    unsafe { locals().as_ref() }?.get(number)
}

/// Puts something under a number of the running thread. Answers false in a thread without data.
///
/// # Safety
/// `drop` may be called once with `value`, by this thread when it ends. Nothing lies under the number.
pub unsafe fn put(number: usize, value: NonNull<u8>, drop: unsafe fn(NonNull<u8>)) -> bool {
    // SAFETY: as in `find`.
    let Some(locals) = (unsafe { locals().as_mut() }) else { return false };
    // SAFETY: the caller answers for `drop`.
    unsafe { locals.put(number, value, drop) };
    true
}

/// Drops everything that the running thread has.
pub(super) fn drop_all() {
    let place = locals();
    if place.is_null() {
        return;
    }
    for _ in 0..ROUNDS {
        // SAFETY: the data are this thread's, and the reference ends at once.
        let count = unsafe { &*place }.order.len();
        for _ in 0..count {
            // SAFETY: as above; the reference ends before anything is dropped.
            let Some(entry) = unsafe { &mut *place }.take_last() else { break };
            // SAFETY: `put` was told that it may be called once, and the entry has left the table.
            unsafe { (entry.drop)(entry.value) };
        }
    }
    // SAFETY: as above; the tables are all that is left, or all that is to be freed.
    unsafe { *place = Locals::NONE };
}

/// Something of which each thread has its own; [`thread_local!`](crate::thread_local) makes one.
pub struct LocalKey<T: 'static> {
    number: Number,
    make: fn() -> T,
}

impl<T: 'static> LocalKey<T> {
    /// Of which each thread's is made by `make`.
    pub const fn new(make: fn() -> T) -> LocalKey<T> {
        LocalKey { number: Number::new(), make }
    }

    /// Runs a function on the running thread's. Panics in a thread that this library did not start, and if it is made
    /// while it is being made.
    #[inline]
    pub fn with<R>(&'static self, function: impl FnOnce(&T) -> R) -> R {
        let place = match find(self.number.get()) {
            Some(place) => place,
            None => self.make(),
        };
        // SAFETY: under this number lies a `T` of this thread, which stays until the thread ends.
        function(unsafe { place.cast::<T>().as_ref() })
    }

    #[cold]
    fn make(&'static self) -> NonNull<u8> {
        let value = Box::new((self.make)());
        assert!(find(self.number.get()).is_none(), "data of a thread are made while they are being made");
        let place = NonNull::from(Box::leak(value)).cast::<u8>();
        // SAFETY: the place is a box of this type, which from now on belongs to the table.
        let put = unsafe { put(self.number.get(), place, drop_box::<T>) };
        assert!(put, "a thread that did not begin in this library has no data of its own");
        place
    }
}

/// Drops a box of a `T`.
///
/// # Safety
/// `place` came from such a box, which nobody else has.
unsafe fn drop_box<T>(place: NonNull<u8>) {
    // SAFETY: the caller says what it is.
    drop(unsafe { Box::from_raw(place.cast::<T>().as_ptr()) });
}

/// Declares data of which each thread has its own, made when the thread first asks for them.
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
            let place = NonNull::from(Box::leak(Box::new(Noisy(number, Rc::clone(&log))))).cast();
            // SAFETY: it is such a box.
            unsafe { locals.put(number as usize, place, drop_box::<Noisy>) };
        }
        assert!(locals.get(3).is_some() && locals.get(1).is_none() && locals.get(99).is_none());
        while let Some(entry) = locals.take_last() {
            // SAFETY: it has left the table.
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
