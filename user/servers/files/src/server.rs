//! Requests of the file server, and the replies to waiting threads.
//!
//! There is one endpoint with two interfaces: a badge that stands for an [object](OBJECT) is the number of an end, and
//! its requests are those of byte streams; any other badge is a process, and its requests are those of the file server.

use core::fmt::Write;

use tench::memory;
use tench::server::Watch;
use tench::time::{self, Instant};
use tench_abi::layout::slot;
use tench_abi::power::OBJECT;
use tench_files::ends::{Due, Ends, GROWTH, Outcome};
use tench_files::pipe::{Completion, Data};
use tench_files::tree::{Requester, Tree};
use tench_files_interface::Files;
use tench_files_interface::protocol::{Error, FilesService, How, MAX_PATH, Status, Usage};
use tench_loader::LoadError;
use tench_loader::addresses::Randomness;
use tench_protocol::replies::write;
use tench_protocol::{ArrayString, Bytes, Caller, Event, Given, Later, Pending, Port, Powers, Replies, Sent, Text};
use tench_stream::Stream;
use tench_stream::protocol::{Error as StreamError, Info, MAX_DATA, StreamService};
use tench_sys::{Cap, CapAddress, Endpoint, Error as KernelError, OWN_CSPACE, Rights, Wait};

/// Endpoint at which requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// Maximum number of files and directories that can be made.
const MAX_NODES: usize = 2048;
/// Maximum number of 4 KiB blocks for their contents.
const MAX_BLOCKS: usize = 4096;

/// A thread that waits for bytes or for room.
type Waiter = tench_protocol::Waiter<Completion>;

/// Returns the waiter for bytes.
fn reader(pending: Pending<Bytes<'static, MAX_DATA>, StreamError>) -> Waiter {
    pending.waiter(|completion, message| match completion {
        Completion::Data(data) => write::<_, StreamError>(&Ok(Bytes::<MAX_DATA>::first_of(data)), message),
        Completion::Done => write::<_, StreamError>(&Ok(Bytes::<MAX_DATA>::first_of(&[])), message),
        Completion::Refused(why) => write::<(), _>(&Err(*why), message),
    })
}

/// Returns the waiter for room.
fn writer(pending: Pending<(), StreamError>) -> Waiter {
    pending.waiter(|completion, message| match completion {
        Completion::Data(_) | Completion::Done => write::<_, StreamError>(&Ok(()), message),
        Completion::Refused(why) => write::<(), _>(&Err(*why), message),
    })
}

/// The server's state.
pub struct Server {
    ends: Ends<Waiter>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    /// Buffer for the bytes of a reply.
    read: Data,
    /// Slots from which capabilities are sent.
    outgoing: [CapAddress; 2],
}

impl Server {
    /// Returns a server with the files of the boot archive, and `/tmp`.
    pub fn new() -> Result<Server, LoadError> {
        let mut random = Randomness::from_words(tench::process::info().map_or([0; 4], |info| info.random));
        let (_, archive) = tench_boot::map(slot::EXTRA, &mut random)?;
        let mut tree = Tree::new(MAX_NODES, MAX_BLOCKS, time::frequency());
        for file in archive.files() {
            let mut path = ArrayString::<MAX_PATH>::new();
            if write!(path, "{}", file.path).is_err() || tree.add_archive_file(&path, file.contents).is_err() {
                tench::eprintln!("files: {} is left out: its path is too long, or another file's", file.path);
            }
        }
        // If the archive has a file of that name, there is no such directory.
        let _ = tree.add_common_directory("tmp");
        let none = |_| LoadError::OutOfMemory;
        let outgoing = [memory::take_slot().map_err(none)?, memory::take_slot().map_err(none)?];
        memory::serve_without_faults(2 * GROWTH).map_err(none)?;
        let watch = Watch::new().map_err(none)?;
        Ok(Server { ends: Ends::new(tree), watch, read: Data::new(), outgoing })
    }

    /// Serves requests for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(0, 1);
        loop {
            if port.next(Wait::FOREVER) == Event::Request {
                self.ends.tree.now = Instant::now();
                port.carry_out(|request, context, reply| {
                    if context.caller.process & OBJECT == 0 {
                        Files::dispatch(self, request, context, reply)
                    } else {
                        Stream::dispatch(self, request, context, reply)
                    }
                });
            }
            self.reply_to_waiters(&mut port);
        }
    }

    /// Replies to the threads that need not wait any more.
    fn reply_to_waiters(&mut self, port: &mut Port) {
        while let Some(Due { reply, completion, from }) = self.ends.next_due() {
            let Completion::Data(data) = &completion else {
                port.finish_waiter(reply, &completion);
                continue;
            };
            // Delivery must be known: bytes that do not arrive are for the next reader.
            if port.replies.send_to(reply, &completion) == Err(KernelError::NoCaller) {
                self.ends.undelivered(from, data);
            }
        }
    }

    /// Makes room for one more thread that waits at an end, by removing those that have given up.
    fn forget_gone(&mut self, end: u64, replies: &mut Replies) {
        let watch = self.watch;
        self.ends.forget_gone(end, |waiter| watch.has_gone(waiter), |waiter| replies.forget(waiter));
    }

    /// Makes a capability to an end, in the outgoing slot of this number, to be sent with the reply.
    fn mint(&mut self, end: u64, number: usize) -> Option<Sent<Endpoint, Given>> {
        let slot = self.outgoing[number];
        // If the last receiver offered no slot, its capability is still here.
        let _ = OWN_CSPACE.delete_at(slot);
        let minted = SERVICE.mint_to(slot, Rights::WRITE | Rights::CALL, end | OBJECT);
        if minted.is_err() {
            // The end was made just now, and no thread waits there.
            let _ = self.ends.close(end, |_| ());
        }
        minted.ok().map(Sent::new)
    }
}

/// Refuses a thread that waited at a closed end. A killed one gets no reply.
fn refuse(replies: &mut Replies, waiter: Waiter) {
    let _ = replies.send_to(waiter, &Completion::Refused(StreamError::Closed));
}

/// Makes sure that there is memory for one more request; as much again stays for processes that end.
fn reserve<E>(error: E) -> Result<(), E> {
    memory::reserve_heap(2 * GROWTH).map_err(|_| error)
}

impl FilesService for Server {
    fn pipe(&mut self, caller: Caller) -> Result<(Sent<Endpoint, Given>, Sent<Endpoint, Given>), Error> {
        reserve(Error::Full)?;
        let (reader, writer) = self.ends.pipe(caller)?;
        match (self.mint(reader, 0), self.mint(writer, 1)) {
            (Some(reader), Some(writer)) => Ok((reader, writer)),
            _ => {
                // One of them is closed already.
                let _ = self.ends.close(reader, |_| ());
                let _ = self.ends.close(writer, |_| ());
                Err(Error::Full)
            }
        }
    }

    fn open(
        &mut self,
        caller: Caller,
        powers: Powers,
        path: Text<'_, MAX_PATH>,
        how: How,
    ) -> Result<Sent<Endpoint, Given>, Error> {
        reserve(Error::NoSpace)?;
        let end = self.ends.open(Requester::new(caller, powers), &path, how)?;
        self.mint(end, 0).ok_or(Error::Full)
    }

    fn status(&mut self, path: Text<'_, MAX_PATH>) -> Result<Status, Error> {
        self.ends.tree.status(&path)
    }

    fn next(
        &mut self,
        directory: Text<'_, MAX_PATH>,
        after: Text<'_, MAX_PATH>,
    ) -> Result<(Status, ArrayString<MAX_PATH>), Error> {
        let (status, name) = self.ends.tree.next(&directory, &after)?;
        Ok((status, ArrayString::from(name).map_err(|_| Error::BadPath)?))
    }

    fn make_directory(&mut self, caller: Caller, powers: Powers, path: Text<'_, MAX_PATH>) -> Result<(), Error> {
        reserve(Error::NoSpace)?;
        self.ends.tree.make_directory(Requester::new(caller, powers), &path)
    }

    fn remove(&mut self, caller: Caller, powers: Powers, path: Text<'_, MAX_PATH>) -> Result<(), Error> {
        self.ends.tree.remove(Requester::new(caller, powers), &path)
    }

    fn rename(
        &mut self,
        caller: Caller,
        powers: Powers,
        from: Text<'_, MAX_PATH>,
        to: Text<'_, MAX_PATH>,
    ) -> Result<(), Error> {
        reserve(Error::NoSpace)?;
        self.ends.tree.rename(Requester::new(caller, powers), &from, &to)
    }

    fn usage(&mut self) -> Result<Usage, Error> {
        Ok(self.ends.usage())
    }

    fn process_ended(&mut self, replies: &mut Replies, process: u64, family: u64) -> Result<Option<u64>, Error> {
        self.ends.process_ended(process, family, |waiter| refuse(replies, waiter));
        Ok(self.ends.question(process))
    }

    fn process_lives(&mut self, replies: &mut Replies, process: u64, family: u64) -> Result<Option<u64>, Error> {
        self.ends.process_lives(Caller { process, family }, |waiter| refuse(replies, waiter));
        Ok(self.ends.question(process))
    }
}

/// Returns the end that a capability stands for.
const fn end(caller: Caller) -> u64 {
    caller.process & !OBJECT
}

/// Keeps a request for a later reply.
fn keep<T>(later: Later<'_, T, StreamError>) -> Result<Pending<T, StreamError>, StreamError> {
    reserve(StreamError::Full)?;
    later.keep().map_err(|_| StreamError::Full)
}

impl StreamService for Server {
    fn read(
        &mut self,
        caller: Caller,
        mut later: Later<'_, Bytes<'static, MAX_DATA>, StreamError>,
        max: usize,
    ) -> Result<Option<Bytes<'_, MAX_DATA>>, StreamError> {
        let mut outcome = self.ends.read(end(caller), max);
        if outcome == Outcome::Now(Err(StreamError::Full)) {
            self.forget_gone(end(caller), later.others());
            outcome = self.ends.read(end(caller), max);
        }
        match outcome {
            Outcome::Now(data) => {
                self.read = data?;
                Ok(Some(Bytes::first_of(&self.read)))
            }
            Outcome::Wait => {
                let pending = keep(later)?;
                self.ends.wait_to_read(end(caller), max, reader(pending));
                Ok(None)
            }
        }
    }

    fn write(
        &mut self,
        caller: Caller,
        mut later: Later<'_, (), StreamError>,
        data: Bytes<'_, MAX_DATA>,
    ) -> Result<Option<()>, StreamError> {
        reserve(StreamError::NoSpace)?;
        let mut outcome = self.ends.write(end(caller), &data);
        if outcome == Outcome::Now(Err(StreamError::Full)) {
            self.forget_gone(end(caller), later.others());
            outcome = self.ends.write(end(caller), &data);
        }
        match outcome {
            Outcome::Now(done) => done.map(Some),
            Outcome::Wait => {
                let pending = keep(later)?;
                self.ends.wait_to_write(end(caller), &data, writer(pending));
                Ok(None)
            }
        }
    }

    fn share(&mut self, caller: Caller, process: u64) -> Result<Sent<Endpoint, Given>, StreamError> {
        reserve(StreamError::Full)?;
        let end = self.ends.share(end(caller), process)?;
        self.mint(end, 0).ok_or(StreamError::Full)
    }

    fn close(&mut self, caller: Caller, replies: &mut Replies) -> Result<(), StreamError> {
        self.ends.close(end(caller), |waiter| refuse(replies, waiter))
    }

    fn info(&mut self, caller: Caller) -> Result<Info, StreamError> {
        self.ends.info(end(caller))
    }

    fn seek(&mut self, caller: Caller, position: u64) -> Result<(), StreamError> {
        self.ends.seek(end(caller), position)
    }

    fn truncate(&mut self, caller: Caller, size: u64) -> Result<(), StreamError> {
        self.ends.truncate(end(caller), size)
    }
}
