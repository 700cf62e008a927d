//! Keys of thread-local pointers.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;

use tench::sync::Mutex;

use crate::errno::{EAGAIN, EINVAL, done_or};

/// Maximum number of keys.
const KEYS: usize = 128;

/// Function that is called with a thread's pointer when the thread ends.
type Destructor = unsafe extern "C" fn(*mut c_void);

/// A key. Its generation is odd while it is in use; pointers with another generation belong to an earlier use of the
/// same number and are ignored.
#[derive(Clone, Copy)]
struct Key {
    generation: u32,
    destructor: Option<Destructor>,
}

static TABLE: Mutex<[Key; KEYS]> = Mutex::new([Key { generation: 0, destructor: None }; KEYS]);

/// Returns the key with this number, if it is in use.
fn find(key: c_uint) -> Option<Key> {
    TABLE.lock().get(key as usize).copied().filter(|key| key.generation % 2 == 1)
}

/// A thread's pointers, each with the generation of its key.
struct Values(RefCell<Vec<(u32, *mut c_void)>>);

tench::thread_local! {
    static VALUES: Values = Values(RefCell::new(Vec::new()));
}

impl Drop for Values {
    fn drop(&mut self) {
        for (key, (generation, value)) in self.0.take().into_iter().enumerate() {
            let found = find(key as c_uint).filter(|found| found.generation == generation);
            if let (Some(destructor), false) = (found.and_then(|found| found.destructor), value.is_null()) {
                // SAFETY: the program guarantees that it may be called with the pointer that it set.
                unsafe { destructor(value) };
            }
        }
    }
}

/// Makes a key, whose value is null in every thread. Returns `EAGAIN` if there are 128.
///
/// # Safety
/// `key` must point to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_key_create(key: *mut c_uint, destructor: Option<Destructor>) -> c_int {
    let mut table = TABLE.lock();
    let Some(free) = table.iter().position(|key| key.generation % 2 == 0) else { return EAGAIN };
    table[free] = Key { generation: table[free].generation.wrapping_add(1), destructor };
    // SAFETY: the caller guarantees it.
    unsafe { *key = free as c_uint };
    0
}

/// Ends the use of a key; its destructor is not called.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_key_delete(key: c_uint) -> c_int {
    let mut table = TABLE.lock();
    match table.get_mut(key as usize).filter(|key| key.generation % 2 == 1) {
        Some(key) => {
            key.generation = key.generation.wrapping_add(1);
            key.destructor = None;
            0
        }
        None => EINVAL,
    }
}

/// Sets the running thread's pointer for a key.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_setspecific(key: c_uint, value: *mut c_void) -> c_int {
    let found = find(key);
    if let Some(found) = found {
        VALUES.with(|values| {
            let mut values = values.0.borrow_mut();
            if values.len() <= key as usize {
                values.resize(key as usize + 1, (0, null_mut()));
            }
            values[key as usize] = (found.generation, value);
        });
    }
    done_or(found.is_some(), EINVAL)
}

/// Returns the running thread's pointer for a key, or null.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_getspecific(key: c_uint) -> *mut c_void {
    let value = VALUES.with(|values| values.0.borrow().get(key as usize).copied());
    match (value, find(key)) {
        (Some((generation, value)), Some(found)) if found.generation == generation => value,
        _ => null_mut(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_deleted_is_gone() {
        let mut key = 0;
        // SAFETY: `key` is valid memory.
        assert_eq!(unsafe { pthread_key_create(&raw mut key, None) }, 0);
        let first = find(key).unwrap().generation;
        assert_eq!((pthread_key_delete(key), pthread_key_delete(key)), (0, EINVAL));
        assert!(find(key).is_none() && find(999).is_none());
        let mut again = 0;
        // SAFETY: `again` is valid memory.
        assert_eq!(unsafe { pthread_key_create(&raw mut again, None) }, 0);
        assert_eq!(again, key);
        assert_ne!(find(again).unwrap().generation, first);
        pthread_key_delete(again);
    }
}
