//! Notifications and interrupts: waiting for signals, giving them, and what receives them.

use super::*;

impl World {
    /// Specifies `Receive` from a notification.
    pub(super) fn wait(&mut self, me: usize, notification: usize, blocking: bool) -> Outcome {
        if self.notifications[notification].0 != 0 {
            self.deliver_signals(me, notification);
            return Ok(Then::Leave);
        }
        if !blocking {
            return Err(Error::WouldBlock);
        }
        self.wait_until(me, self.deadline(me));
        self.threads[me].doing = Doing::Waiting { notification };
        self.notifications[notification].1.push(me);
        Ok(Then::Leave)
    }

    /// Specifies `Signal`.
    pub(super) fn signal_call(&mut self, me: usize) -> Outcome {
        let capability = self.named(me, 0)?;
        let Object::Notification(notification) = capability.object else { return Err(Error::WrongType) };
        if !capability.rights.contains(Rights::WRITE) {
            return Err(Error::MissingRights);
        }
        self.signal(notification, capability.badge.max(1));
        Ok(Then::Clear)
    }

    /// Sets signal bits. The first thread that waits for them gets them, or else the thread to which the notification
    /// is bound.
    pub fn signal(&mut self, notification: usize, bits: u64) {
        self.notifications[notification].0 |= bits;
        let bound = |thread: &Thread| thread.bound_notification == Some(notification);
        let bound = self.threads.iter().position(bound).filter(|thread| self.receives(*thread));
        if let Some(waiter) = self.notifications[notification].1.first().copied().or(bound) {
            self.stop_waiting(waiter);
            self.deliver_signals(waiter, notification);
        }
        self.update_standings();
    }

    /// Notifies a doorbell line of the core. Several notifications between two interrupts count as one.
    pub fn notify(&mut self, line: usize) {
        self.lines[line].is_pending = true;
        self.interrupt();
    }

    /// Lets notified, unmasked lines interrupt; each does so once until it is acknowledged.
    pub fn interrupt(&mut self) {
        while let Some(line) = self.lines.iter_mut().find(|line| line.is_pending && line.is_let_in) {
            (line.is_pending, line.is_let_in) = (false, false);
            if let Some((notification, bits)) = line.signals {
                self.signal(notification, bits);
            }
        }
    }

    /// Specifies `InterruptAcknowledge`.
    pub fn acknowledge(&mut self, line: usize) {
        let line = &mut self.lines[line];
        line.is_let_in |= line.signals.is_some() && !line.automatic;
    }

    /// Hands all signals to a thread. This acknowledges automatic lines.
    pub(super) fn deliver_signals(&mut self, thread: usize, notification: usize) {
        let signals_it = |line: &&mut Line| line.signals.is_some_and(|(signalled, _)| signalled == notification);
        self.lines.iter_mut().filter(signals_it).for_each(|line| line.is_let_in |= line.automatic);
        let word = std::mem::take(&mut self.notifications[notification].0);
        self.set_result(thread, 0);
        self.threads[thread].x[1] = Tag::NOTIFICATION;
        self.threads[thread].x[10] = word;
    }
}
