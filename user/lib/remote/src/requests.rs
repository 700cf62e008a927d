//! Pending requests of this core's clients.

use alloc::vec::Vec;

use crate::error::Error;
use crate::object::{Core, ObjectId, RequestId, Token};

/// Event for which a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// The object's arrival at `to`.
    Send { object: ObjectId, to: Core },
    /// The end of the withdrawal of an object of this core.
    Revoke { object: ObjectId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub token: Token,
    pub purpose: Purpose,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    generation: u32,
    request: Option<Request>,
}

/// A table of fixed size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
}

impl Requests {
    pub fn new(limit: usize) -> Requests {
        Requests { entries: (0..limit).map(|_| Entry { generation: 0, request: None }).collect() }
    }

    pub fn check_capacity(&self) -> Result<(), Error> {
        if self.entries.iter().any(|entry| entry.request.is_none()) { Ok(()) } else { Err(Error::TooManyRequests) }
    }

    pub fn add(&mut self, request: Request) -> Result<RequestId, Error> {
        let (index, entry) =
            (0..).zip(&mut self.entries).find(|(_, entry)| entry.request.is_none()).ok_or(Error::TooManyRequests)?;
        entry.request = Some(request);
        Ok(RequestId(u64::from(entry.generation) << 32 | index))
    }

    /// Returns the request with this name; `Ok(None)` if it got its reply already.
    pub fn get(&self, id: RequestId) -> Result<Option<Request>, ()> {
        let entry = self.entries.get(id.0 as u32 as usize).ok_or(())?;
        let generation = (id.0 >> 32) as u32;
        if generation == entry.generation {
            // A name is assigned together with a request.
            entry.request.map(Some).ok_or(())
        } else if generation < entry.generation {
            Ok(None)
        } else {
            Err(())
        }
    }

    /// Removes one request for which `wanted` is true.
    pub fn take(&mut self, wanted: impl Fn(&Purpose) -> bool) -> Option<Token> {
        let entry =
            self.entries.iter_mut().find(|entry| entry.request.is_some_and(|request| wanted(&request.purpose)))?;
        entry.generation = entry.generation.wrapping_add(1);
        Some(entry.request.take()?.token)
    }

    /// Removes the request with this name.
    pub fn finish(&mut self, id: RequestId) -> Option<Token> {
        let entry = self.entries.get_mut(id.0 as u32 as usize)?;
        entry.generation = entry.generation.wrapping_add(1);
        Some(entry.request.take()?.token)
    }

    /// Returns the events for which pending requests wait.
    pub fn purposes(&self) -> impl Iterator<Item = Purpose> {
        self.entries.iter().filter_map(|entry| entry.request.map(|request| request.purpose))
    }

    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| entry.request.is_some()).count()
    }
}
