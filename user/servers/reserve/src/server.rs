//! Requests of the reservation server: the table decides, and the kernel is configured.

use tench::memory::{self, Window};
use tench::server::Kept;
use tench_abi::layout::slot;
use tench_names_interface::{Failure, Names};
use tench_protocol::{Arrived, Caller, Failure as AnyFailure, again};
use tench_reserve::kept::{Before, Entry};
use tench_reserve::table::{Clock, Table};
use tench_reserve_interface::Reserve;
use tench_reserve_interface::protocol::{Error, MAX_RESERVATIONS, Possible, Reservation, ReserveService};
use tench_sys::{Cap, Endpoint, Error as KernelError, Instant, Kind, OWN_CSPACE, Rights, SchedulingContext};

/// Bytes of memory for the reservations, if the system description gives none.
const MEMORY: u64 = 4096;
/// Bytes of heap; requests need none.
const HEAP: usize = 4096;

/// The server's state.
pub struct Server {
    table: Table<Window>,
    /// The capability of each reservation is in the slot of its position.
    kept: Kept,
    clock: Clock,
    /// Time that each scheduling context had consumed when its reservation was granted; `None` if this server's
    /// predecessor granted it.
    consumed: [Option<u64>; MAX_RESERVATIONS],
}

impl Server {
    /// Returns a server with the reservations that its predecessor has granted. It registers without a badge, so that
    /// each process that looks it up gets its own, which says whether it may reserve anything.
    pub fn new() -> Result<Server, Failure> {
        memory::serve_without_faults(HEAP).map_err(|_| AnyFailure::Lost(KernelError::OutOfMemory))?;
        let (kept, window) = Kept::open(MEMORY, 1).map_err(|_| AnyFailure::Lost(KernelError::OutOfMemory))?;
        let clock = Clock { frequency: tench::time::frequency() };
        let mut server = Server { table: Table::new(window, clock), kept, clock, consumed: [None; MAX_RESERVATIONS] };
        server.resume();
        let slot = memory::take_slot().map_err(|_| AnyFailure::Lost(KernelError::NoSuchSlot))?;
        let service = Cap::<Endpoint>::new(slot::SERVICE);
        // Requests carry capabilities.
        let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
        let public = service.mint_to(slot, rights, 0).map_err(AnyFailure::Lost)?;
        again(|| Names::STANDARD.register(Reserve::NAME, public))?;
        Ok(server)
    }

    /// Serves requests for ever.
    pub fn serve(&mut self) -> ! {
        tench::server::port(1, 1).serve(self, Reserve::dispatch)
    }

    /// Returns the scheduling context of the reservation at a position.
    fn context(&self, position: usize) -> Cap<SchedulingContext> {
        Cap::new(self.kept.slot(position as u32))
    }

    /// Configures the kernel again for all that is granted, since the predecessor may have ended before it could.
    /// Incomplete changes are undone.
    fn resume(&mut self) {
        for position in 0..MAX_RESERVATIONS {
            let found = OWN_CSPACE.identify_at(self.kept.slot(position as u32)).map_or(Kind::Null, |found| found.kind);
            let entry = self.table.entry(position).copied().filter(|_| found == Kind::SchedulingContext);
            let is_kept = entry.is_some_and(|entry| self.configure(position, &entry).is_ok());
            if !is_kept {
                self.retire(position);
            }
        }
    }

    /// Configures the kernel for the reservation at a position. The budget goes first, so that there is never the
    /// priority without the budget.
    fn configure(&self, position: usize, entry: &Entry) -> Result<(), KernelError> {
        let (context, task) = (self.context(position), entry.task);
        let info = context.query()?;
        if (info.budget, info.period) != (task.budget, task.window()) {
            context.reserve(task.budget, task.window(), None)?;
        }
        let Before { ceiling, slice, .. } = entry.before;
        context.configure(entry.level.into(), ceiling.into(), slice, None)
    }

    /// Ends a reservation.
    fn retire(&mut self, position: usize) {
        if self.table.entry(position).is_some() {
            self.table.retire(position, Instant::now().ticks());
        }
        // The slot is not empty, unless the context is gone.
        let _ = OWN_CSPACE.delete_at(self.kept.slot(position as u32));
    }

    /// Ends reservations whose scheduling contexts are gone, usually with their process, or have lost the granted
    /// parameters: only their owners can have changed those, downwards. Then frees the shares of those that ended long
    /// enough ago.
    fn forget_gone(&mut self) {
        for position in 0..MAX_RESERVATIONS {
            let Some(Entry { task, level, .. }) = self.table.entry(position) else { continue };
            let granted = (u64::from(*level), task.budget, task.window());
            let info = self.context(position).query().map(|info| (info.priority, info.budget, info.period));
            if info != Ok(granted) {
                self.retire(position);
            }
        }
        self.table.expire(Instant::now().ticks());
    }

    /// Restores a scheduling context's parameters from before the reservation. The priority goes first, so that there
    /// is never the priority without the budget.
    fn restore(&self, position: usize, before: Before) -> Result<(), KernelError> {
        let context = self.context(position);
        context.configure(before.priority.into(), before.ceiling.into(), before.slice, None)?;
        context.reserve(0, 0, None)
    }

    /// Returns whether there is a reservation for this scheduling context. The kernel does not tell the identity of an
    /// object, so this is found out by a unique time slice: if it is set here, only the same object shows it.
    fn is_reserved(&self, context: Cap<SchedulingContext>) -> Result<bool, KernelError> {
        let info = context.query()?;
        let contexts =
            || (0..MAX_RESERVATIONS).filter(|position| self.table.entry(*position).is_some()).map(|p| self.context(p));
        let slices = || contexts().filter_map(|other| other.query().ok()).map(|other| other.slice);
        if !slices().any(|slice| slice == info.slice) {
            return Ok(false);
        }
        // There is one value more than reservations, so one is unused.
        let longest = u64::MAX - MAX_RESERVATIONS as u64;
        let Some(mark) = (longest..u64::MAX).find(|mark| slices().all(|slice| slice != *mark)) else { return Ok(true) };
        context.configure(info.priority, info.ceiling, mark, None)?;
        let is_reserved = slices().any(|slice| slice == mark);
        context.configure(info.priority, info.ceiling, info.slice, None)?;
        Ok(is_reserved)
    }

    /// Returns a reservation as clients see it.
    fn describe(&self, position: usize) -> Option<Reservation> {
        let Entry { id, owner, task, level, .. } = *self.table.entry(position)?;
        let nanoseconds = |ticks| self.clock.nanoseconds(ticks);
        Some(Reservation {
            id,
            process: owner.process,
            budget: nanoseconds(task.budget),
            period: nanoseconds(task.period),
            deadline: nanoseconds(task.deadline),
            share: task.share(),
            priority: level.into(),
            response: nanoseconds(self.table.response(position).unwrap_or(u64::MAX)),
            used: nanoseconds(self.context(position).query().map_or(0, |info| info.consumed)),
        })
    }
}

impl ReserveService for Server {
    fn reserve(
        &mut self,
        caller: Caller,
        context: Arrived<'_, SchedulingContext>,
        budget: u64,
        period: u64,
        deadline: u64,
    ) -> Result<Reservation, Error> {
        self.forget_gone();
        let (grant, task) = self.table.admit(caller, budget, period, deadline)?;
        let cap = context.cap();
        if self.is_reserved(cap).map_err(|_| Error::BadContext)? {
            return Err(Error::Reserved);
        }
        let info = cap.query().map_err(|_| Error::BadContext)?;
        let before = Before { priority: info.priority as u8, ceiling: info.ceiling as u8, slice: info.slice };
        cap.copy_to(self.kept.slot(grant.position as u32)).map_err(|_| Error::BadContext)?;
        for step in &grant.moves {
            self.table.set_level(step.position, step.to);
            // A reservation that has gone meanwhile is removed with the next request.
            let _ = self.table.entry(step.position).map(|entry| self.configure(step.position, entry));
        }
        self.table.write(caller, task, &grant, before);
        self.consumed[grant.position] = Some(info.consumed);
        let configured = self.table.entry(grant.position).map_or(Ok(()), |entry| self.configure(grant.position, entry));
        if configured.is_err() {
            // The context has gone, or cannot be written.
            let _ = self.restore(grant.position, before);
            self.retire(grant.position);
            return Err(Error::BadContext);
        }
        self.describe(grant.position).ok_or(Error::BadContext)
    }

    fn release(&mut self, caller: Caller, id: u64) -> Result<(), Error> {
        let position = self.table.find(id).ok_or(Error::Unknown)?;
        let Some(Entry { owner, before, .. }) = self.table.entry(position).copied() else { return Err(Error::Unknown) };
        if caller.process != owner.process && caller != Caller::AUTHORITY {
            return Err(Error::NotYours);
        }
        // A context that has gone needs nothing.
        let _ = self.restore(position, before);
        let consumed = self.context(position).query().ok().map(|info| info.consumed);
        let is_unused = consumed.is_some() && consumed == self.consumed[position];
        self.retire(position);
        if is_unused {
            self.table.clear(position);
        }
        Ok(())
    }

    fn next(&mut self, after: u64) -> Result<Option<Reservation>, Error> {
        self.forget_gone();
        Ok(self.table.next(after).and_then(|position| self.describe(position)))
    }

    fn possible(&mut self, caller: Caller, period: u64, deadline: u64) -> Result<Possible, Error> {
        self.forget_gone();
        let (share, budget) = self.table.possible(caller, period, deadline)?;
        Ok(Possible { share, budget })
    }
}
