//! How waits end: by cancellation, a deadline, suspension, or the deletion of an object.

use super::*;

impl World {
    /// Removes a thread from every queue.
    pub(super) fn stop_waiting(&mut self, thread: usize) {
        for queue in &mut self.endpoints {
            queue.retain(|waiting| *waiting != thread);
        }
        for (_, queue) in &mut self.notifications {
            queue.retain(|waiting| *waiting != thread);
        }
        for reply in &mut self.replies {
            reply.caller = reply.caller.filter(|caller| *caller != thread);
        }
        self.threads[thread].deadline = None;
        self.threads[thread].is_helpless = false;
        self.threads[thread].doing = Doing::Ready;
    }

    /// Ends a wait with an error.
    pub(super) fn cancel(&mut self, thread: usize, error: Error) {
        if !matches!(self.threads[thread].doing, Doing::Ready | Doing::Suspended) {
            let server = self.works_for(thread);
            self.stop_waiting(thread);
            self.set_result(thread, error as u64);
            if let Some(server) = server {
                self.abandon(server, thread);
            }
        }
        self.update_standings();
    }

    /// Advances the time. Waits end in the order of their deadlines; no two have the same.
    pub fn pass_time(&mut self, ticks: u64) {
        self.now += ticks;
        let mut due: Vec<(u64, usize)> = Vec::new();
        for (number, thread) in self.threads.iter().enumerate() {
            let time = thread.deadline.or(thread.alarm).filter(|time| *time <= self.now);
            due.extend(time.map(|time| (time, number)));
        }
        due.sort_unstable();
        for (_, thread) in due {
            let t = &mut self.threads[thread];
            if t.deadline.is_some() {
                self.cancel(thread, Error::TimedOut);
            } else {
                t.alarm = None;
                t.is_alarmed = true;
                self.update_standings();
            }
        }
        self.update_standings();
    }

    /// Specifies `ThreadSuspend`.
    pub fn suspend(&mut self, thread: usize) {
        self.cancel(thread, Error::Aborted);
        self.threads[thread].doing = Doing::Suspended;
        self.update_standings();
    }

    /// Specifies `ThreadResume`.
    pub fn resume(&mut self, thread: usize) {
        if self.threads[thread].doing == Doing::Suspended {
            self.threads[thread].doing = Doing::Ready;
        }
        self.update_standings();
    }

    /// Deletes an object with every capability to it. Threads that wait for it get an error.
    pub fn destroy(&mut self, object: Object) {
        self.cspace.retain(|_, capability| capability.object != object);
        for line in &mut self.lines {
            if line.signals.is_some_and(|(notification, _)| object == Object::Notification(notification)) {
                (line.signals, line.is_let_in) = (None, false);
            }
        }
        for thread in 0..self.threads.len() {
            let concerned = match (&self.threads[thread].doing, object) {
                (Doing::Sending { endpoint, .. }, Object::Endpoint(gone)) => *endpoint == gone,
                (Doing::Receiving { endpoint, .. }, Object::Endpoint(gone)) => *endpoint == gone,
                (Doing::Receiving { reply, .. } | Doing::AwaitingReply { reply }, Object::Reply(gone)) => {
                    *reply == gone
                }
                (Doing::Waiting { notification }, Object::Notification(gone)) => *notification == gone,
                _ => false,
            };
            if concerned {
                self.cancel(thread, Error::Aborted);
            }
        }
        // Threads that worked for one of the callers have been told by now.
        for thread in 0..self.threads.len() {
            let t = &mut self.threads[thread];
            t.bound_reply = t.bound_reply.filter(|reply| object != Object::Reply(*reply));
            t.bound_notification = t.bound_notification.filter(|bound| object != Object::Notification(*bound));
            if let Object::Reply(gone) = object {
                self.lose_reply(thread, gone);
            }
            self.update_standings();
        }
    }
}
