//! Requests of the clock server, and replies to expired delays.

use tench::memory;
use tench::server::Watch;
use tench_abi::layout::slot;
use tench_clock::GROWTH;
use tench_clock::time::{nanoseconds, next_tick, wall_clock_at_start};
use tench_clock_interface::Clock;
use tench_clock_interface::protocol::{ClockService, Error, Event};
use tench_names_interface::{Failure, Names};
use tench_protocol::{Caller, Event as Happened, Failure as AnyFailure, Later, Pending, Port, Replies, again};
use tench_quota::pace::Pace;
use tench_quota::queue::Queue;
use tench_sys::{Cap, Endpoint, Error as KernelError, Instant, Rights, Wait};

use crate::rtc;

/// Maximum number of threads that can wait.
const MAX_WAITERS: usize = 1024;
/// Number of waits of a family that are checked when a request finds no room. Few, because a delay may expire meanwhile
/// and make the rest of the check as urgent as the clock.
const LOOKS: usize = 8;
/// Maximum number of an ended process's waits that one request removes: so it stays short, too.
const PART: usize = 16;
/// Nanoseconds of a [pause](Pace), which limits clients' timeouts to less than a tenth of the processor.
const PAUSE: u64 = 250_000;

/// The server's state.
pub struct Server {
    queue: Queue<Pending<Instant, Error>>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    pace: Pace,
    frequency: u64,
    /// Wall-clock time at which the counter was 0, in nanoseconds, if it is known.
    wall_clock_at_start: Option<u64>,
}

impl Server {
    /// Reads the wall clock, and registers the server without a badge, so that each process that looks it up gets its
    /// own.
    pub fn new() -> Result<Server, Failure> {
        memory::serve_without_faults(2 * GROWTH).map_err(|_| AnyFailure::Lost(KernelError::OutOfMemory))?;
        let frequency = tench::time::frequency();
        let shown = rtc::seconds();
        let wall_clock_at_start = shown.and_then(|shown| wall_clock_at_start(shown, Instant::now().ticks(), frequency));
        let slot = memory::take_slot().map_err(|_| AnyFailure::Lost(KernelError::NoSuchSlot))?;
        let service = Cap::<Endpoint>::new(slot::SERVICE);
        let public = service.mint_to(slot, Rights::WRITE | Rights::CALL, 0).map_err(AnyFailure::Lost)?;
        again(|| Names::STANDARD.register(Clock::NAME, public))?;
        let watch = Watch::new().map_err(|_| AnyFailure::Lost(KernelError::OutOfMemory))?;
        let (queue, pace) = (Queue::new(MAX_WAITERS), Pace::new(PAUSE, frequency));
        Ok(Server { queue, watch, pace, frequency, wall_clock_at_start })
    }

    /// Serves requests for ever.
    pub fn serve(&mut self) -> ! {
        let mut port: Port = tench::server::port(0, 1);
        loop {
            let alarm = self.queue.next_deadline().map(|deadline| Instant::from_ticks(self.pace.earliest(deadline)));
            if port.next(alarm.map_or(Wait::FOREVER, Wait::alarm)) == Happened::Request {
                port.carry_out(|request, context, reply| Clock::dispatch(self, request, context, reply));
                if let Some(alarm) = alarm {
                    self.count_if_urgent(alarm);
                }
            }
            self.expire(&mut port.replies);
        }
    }

    /// Counts a request that has just been handled if the alarm expired meanwhile.
    fn count_if_urgent(&mut self, alarm: Instant) {
        let now = Instant::now();
        if alarm <= now {
            self.pace.count_urgent(now.ticks());
        }
    }

    /// Replies to some of the expired waits.
    fn expire(&mut self, replies: &mut Replies) {
        if self.queue.next_deadline().is_none() {
            return;
        }
        let now = Instant::now();
        while self.pace.admits(now.ticks()) {
            let Some((_, waiter)) = self.queue.pop_expired(now.ticks()) else { return };
            self.pace.count(now.ticks());
            // A waiter that has given up meanwhile gets no reply.
            let _ = replies.send(waiter, &Ok(now));
        }
    }

    /// Lets a caller wait until a time.
    fn wait_until(
        &mut self,
        caller: Caller,
        mut later: Later<'_, Instant, Error>,
        deadline: u64,
    ) -> Result<Option<Instant>, Error> {
        let now = Instant::now();
        if deadline <= now.ticks() {
            return Ok(Some(now));
        }
        if !self.queue.may_wait(caller) {
            let watch = self.watch;
            for (_, waiter) in self.queue.take_out_some(caller.family, LOOKS, |waiter| watch.has_gone(waiter)) {
                later.others().forget(waiter);
            }
            if !self.queue.may_wait(caller) {
                for (_, waiter) in self.queue.take_out_any(LOOKS, |waiter| watch.has_gone(waiter)) {
                    later.others().forget(waiter);
                }
            }
            if !self.queue.may_wait(caller) {
                return Err(Error::Full);
            }
        }
        // As much again stays for processes that end.
        memory::reserve_heap(2 * GROWTH).map_err(|_| Error::Full)?;
        let waiter = later.keep().map_err(|_| Error::Full)?;
        self.queue.push(deadline, caller, waiter);
        Ok(None)
    }
}

impl ClockService for Server {
    fn time(&mut self) -> Result<(Instant, u64, u64), Error> {
        let now = Instant::now();
        Ok((now, self.frequency, nanoseconds(now.ticks(), self.frequency)))
    }

    fn wall_clock_at_start(&mut self) -> Result<u64, Error> {
        self.wall_clock_at_start.ok_or(Error::NoWallClock)
    }

    fn delay(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        ticks: u64,
    ) -> Result<Option<Instant>, Error> {
        self.wait_until(caller, later, Instant::now().ticks().saturating_add(ticks))
    }

    fn delay_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        time: Instant,
    ) -> Result<Option<Instant>, Error> {
        self.wait_until(caller, later, time.ticks())
    }

    fn await_event(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        event: Event,
    ) -> Result<Option<Instant>, Error> {
        let deadline = match event {
            Event::Tick => next_tick(Instant::now().ticks(), self.frequency),
        };
        self.wait_until(caller, later, deadline)
    }

    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<bool, Error> {
        for (_, waiter) in self.queue.process_ended(process, PART) {
            replies.forget(waiter);
        }
        // Requests in its name, or in that of a process that ended before, may have come since and been given up.
        let watch = self.watch;
        for (_, waiter) in self.queue.take_out_any(LOOKS, |waiter| watch.has_gone(waiter)) {
            replies.forget(waiter);
        }
        Ok(self.queue.held(process) > 0)
    }
}
