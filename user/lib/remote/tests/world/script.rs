//! Scripts of clients: the objects, their initial holders, and each thread's operations.

use tench_remote::{Kind, Limits, Shape};

use super::kernel::Name;

/// An operation of a thread. It waits until its core has the capability that it needs, for ever if none comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Send the object to a core.
    Send(Name, u8),
    /// Revoke the object as the library does: through the local kernel, and through the monitor if that meets an
    /// exported capability.
    Revoke(Name),
    /// Delete one capability.
    Delete(Name),
    /// Copy a capability.
    Copy(Name),
    /// Make the second object from the first.
    Retype(Name, Name),
    /// Give borrowed memory back.
    GiveBack(Name),
}

#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub shape: Shape,
    /// The memory from which it is made.
    pub of: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The owner assumes that a core withdraws, and does not wait.
    NotWaiting,
    /// A channel delivers in any order.
    AnyOrder,
    /// The kernel reports a deletion as done when it only begins.
    EarlyDeleted,
    /// No core waits for what a lost core may have spread.
    Unsettled,
}

#[derive(Clone, Debug)]
pub struct Script {
    pub cores: u8,
    pub objects: Vec<Object>,
    /// The initial capabilities, as (core, object).
    pub start: Vec<(u8, Name)>,
    pub threads: Vec<(u8, Vec<Op>)>,
    pub limits: Limits,
    /// Set if a thread may skip an operation for which it lacks something.
    pub impatient: bool,
    /// Cores that stop at some time; the others hear of it.
    pub loses: Vec<u8>,
    /// A core that stalls at some time, without the others hearing of it, and the threads that do not need it.
    pub stalls: Option<(u8, Vec<usize>)>,
    pub mistake: Option<Mistake>,
    /// The core of a malicious monitor. It has no kernel and no clients that count.
    pub hostile: Option<u8>,
}

const fn shape(kind: Kind, base: u64, bytes: u64) -> Shape {
    Shape { kind, base, bytes }
}

/// Returns memory that can be retyped.
pub const fn untyped(base: u64, bytes: u64, of: Option<Name>) -> Object {
    Object { shape: shape(Kind::Untyped, base, bytes), of }
}

/// Returns memory that can be mapped.
pub const fn frame(base: u64, bytes: u64, of: Option<Name>) -> Object {
    Object { shape: shape(Kind::Frame, base, bytes), of }
}

impl Script {
    pub fn new(cores: u8, objects: &[Object], start: &[(u8, Name)], threads: &[(u8, &[Op])]) -> Script {
        Script {
            cores,
            objects: objects.to_vec(),
            start: start.to_vec(),
            threads: threads.iter().map(|&(core, ops)| (core, ops.to_vec())).collect(),
            limits: Limits { exports: 3, holders: 6, copies: 4, requests: 3 },
            impatient: false,
            loses: Vec::new(),
            stalls: None,
            mistake: None,
            hostile: None,
        }
    }

    pub fn is_hostile(&self, at: tench_remote::Core) -> bool {
        self.hostile.is_some_and(|hostile| hostile as usize == at.index())
    }

    /// Returns whether `ancestor` is `name` or `name` was made from it.
    pub fn is_below(&self, name: Name, ancestor: Name) -> bool {
        let mut next = Some(name);
        while let Some(at) = next {
            if at == ancestor {
                return true;
            }
            next = self.objects[at as usize].of;
        }
        false
    }
}
