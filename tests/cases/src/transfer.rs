//! Tests of capabilities in messages.

use tench::sys::{Cap, CapAddress, Endpoint, Kind, Message, Notification, Reply, Rights, Untyped, Wait, offer_slots};
use tench::sys::{ipc::BOUND_REPLY, offered_slots};

use crate::case::{Case, Outcome};
use crate::stage::{EMPTY_INDEX, Stage, identify, is_empty};
use crate::worker::patience;

pub const CASES: &[Case] = &[
    Case::new("CAP0001", "a message carries up to four copies", copies),
    Case::new("CAP0002", "a moved capability leaves the sender", moved),
    Case::new("CAP0003", "capabilities need GRANT", grant),
    Case::new("CAP0004", "without an offered slot nothing is transferred", nothing_offered),
    Case::new("CAP0005", "a transfer stops at the first slot that is taken", slot_taken),
    Case::new("CAP0006", "a transfer stops at the first capability that cannot go", cannot_go),
    Case::new("CAP0007", "a reply carries capabilities", in_reply),
    Case::new("CAP0008", "a transferred capability keeps badge and rights", keeps),
    Case::new("CAP0009", "a copy that was sent goes with a revocation", revoked),
    Case::new("CAP0010", "an untyped can be moved to somebody else", untyped_moves),
    Case::new("CAP0011", "a reply object can be passed on, and another thread replies", reply_passed),
];

/// Receives with these slots on offer. Returns which were filled.
fn receive(endpoint: Cap<Endpoint>, slots: &[CapAddress]) -> Outcome<([CapAddress; 4], usize)> {
    let before = offered_slots();
    offer_slots(slots);
    let received = endpoint.receive(Wait::until(patience()));
    offer_slots(&before);
    let received = received?;
    let mut found = [CapAddress::NULL; 4];
    found[..received.caps().len()].copy_from_slice(received.caps());
    Ok((found, received.caps().len()))
}

/// Lets a worker send a message with these capabilities.
fn send(stage: &mut Stage, endpoint: Cap<Endpoint>, caps: &'static [fn(&Things) -> Sent], things: Things) -> Outcome {
    stage.spawn(move || {
        let mut message = Message::with_words(3, &[1, 2, 3]);
        for cap in caps {
            match cap(&things) {
                Sent::Copy(address) => message.copy_cap(address),
                Sent::Move(address) => message.move_cap(address),
            };
        }
        endpoint.send(&message, Wait::FOREVER)
    })?;
    Ok(())
}

/// Way in which a capability is sent.
enum Sent {
    Copy(CapAddress),
    Move(CapAddress),
}

/// Capabilities that are sent.
#[derive(Clone, Copy)]
struct Things {
    notification: Cap<Notification>,
    badged: Cap<Notification>,
    untyped: Cap<Untyped>,
    empty: CapAddress,
}

fn things(stage: &mut Stage) -> Outcome<Things> {
    let notification = stage.notification()?;
    let badged = stage.mint(notification, Rights::WRITE, 0x123)?;
    Ok(Things { notification, badged, untyped: stage.make(12)?, empty: stage.slot() })
}

fn copies(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let first = stage.slots(4);
    let slots: [CapAddress; 4] = core::array::from_fn(|index| CapAddress(first.0 + index as u32));
    const COPY: fn(&Things) -> Sent = |things| Sent::Copy(things.notification.address());
    for (count, caps) in [&[COPY][..], &[COPY, COPY], &[COPY, COPY, COPY], &[COPY, COPY, COPY, COPY]].iter().enumerate()
    {
        send(stage, endpoint, caps, things)?;
        let (found, arrived) = receive(endpoint, &slots)?;
        equal!(arrived, count + 1);
        for slot in &found[..arrived] {
            let cap = Cap::<Notification>::new(*slot);
            cap.signal()?;
            equal!(things.notification.poll()?, 1);
            cap.delete()?;
        }
    }
    Ok(())
}

fn moved(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let slot = stage.slot();
    send(stage, endpoint, &[|things| Sent::Move(things.badged.address())], things)?;
    // As long as no thread receives, nothing has moved.
    check!(!is_empty(things.badged));
    equal!(receive(endpoint, &[slot])?.1, 1);
    check!(is_empty(things.badged));
    equal!(identify(slot)?.badge, 0x123);
    Ok(())
}

fn grant(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let weak = stage.mint(endpoint, Rights::all().difference(Rights::GRANT), 0)?;
    let mut message = Message::new(1);
    message.copy_cap(endpoint);
    refused!(weak.send(&message, Wait::until(patience())), MissingRights);
    refused!(weak.try_send(&message), MissingRights);
    refused!(weak.call_with(&message, Wait::until(patience())), MissingRights);
    Ok(())
}

fn nothing_offered(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    send(stage, endpoint, &[|things| Sent::Move(things.badged.address())], things)?;
    equal!(receive(endpoint, &[])?.1, 0);
    check!(!is_empty(things.badged));
    // A capability is not moved into a slot that does not exist either.
    send(stage, endpoint, &[|things| Sent::Move(things.badged.address())], things)?;
    equal!(receive(endpoint, &[CapAddress::new(EMPTY_INDEX, 1)])?.1, 0);
    check!(!is_empty(things.badged));
    Ok(())
}

fn slot_taken(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let (a, b) = (stage.slot(), stage.slot());
    let caps: &[fn(&Things) -> Sent] = &[
        |things| Sent::Copy(things.notification.address()),
        |things| Sent::Move(things.badged.address()),
        |things| Sent::Copy(things.notification.address()),
    ];
    send(stage, endpoint, caps, things)?;
    equal!(receive(endpoint, &[a, things.notification.address(), b])?.1, 1);
    equal!(identify(a)?.kind, Kind::Notification);
    equal!(identify(b)?.kind, Kind::Null);
    check!(!is_empty(things.badged));
    Ok(())
}

/// A choice of a capability and of the way to send it.
type Choice = fn(&Things) -> Sent;

fn cannot_go(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let slots = [stage.slot(), stage.slot(), stage.slot(), stage.slot()];
    // An untyped cannot be copied, and an empty slot holds nothing.
    let caps: [&'static [Choice]; 2] = [
        &[
            |things| Sent::Copy(things.notification.address()),
            |things| Sent::Copy(things.untyped.address()),
            |things| Sent::Copy(things.notification.address()),
        ],
        &[
            |things| Sent::Copy(things.notification.address()),
            |things| Sent::Move(things.empty),
            |things| Sent::Copy(things.notification.address()),
        ],
    ];
    for caps in caps {
        send(stage, endpoint, caps, things)?;
        equal!(receive(endpoint, &slots)?.1, 1);
        Cap::<Notification>::new(slots[0]).delete()?;
        equal!(identify(slots[2])?.kind, Kind::Null);
    }
    Ok(())
}

fn in_reply(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let weak = stage.mint(endpoint, Rights::WRITE | Rights::CALL, 0)?;
    let slot = stage.slot();
    let worker = stage.spawn(move || {
        offer_slots(&[slot]);
        // The right to send capabilities is not needed to receive some.
        weak.call(&Message::new(1)).map(|reply| (reply.label(), reply.caps().len()))
    })?;
    endpoint.receive(Wait::until(patience()))?;
    let mut message = Message::new(6);
    message.move_cap(things.badged);
    BOUND_REPLY.reply(&message)?;
    equal!(worker.join()?, Ok((6, 1)));
    equal!(identify(slot)?.badge, 0x123);
    check!(is_empty(things.badged));
    Ok(())
}

fn keeps(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let slot = stage.slot();
    send(stage, endpoint, &[|things| Sent::Copy(things.badged.address())], things)?;
    equal!(receive(endpoint, &[slot])?.1, 1);
    equal!(identify(slot)?, things.badged.identify()?);
    refused!(Cap::<Notification>::new(slot).poll(), MissingRights);
    Ok(())
}

fn revoked(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let slot = stage.slot();
    send(stage, endpoint, &[|things| Sent::Copy(things.badged.address())], things)?;
    equal!(receive(endpoint, &[slot])?.1, 1);
    equal!(things.badged.revoke()?, 1);
    equal!(identify(slot)?.kind, Kind::Null);
    check!(!is_empty(things.badged) && !is_empty(things.notification));
    Ok(())
}

fn untyped_moves(stage: &mut Stage) -> Outcome {
    let (endpoint, things) = (stage.endpoint()?, things(stage)?);
    let (slot, child_slot) = (stage.slot(), stage.slot());
    let child = things.untyped.retype::<Notification>(0, child_slot)?;
    send(stage, endpoint, &[|things| Sent::Move(things.untyped.address())], things)?;
    equal!(receive(endpoint, &[slot])?.1, 1);
    check!(is_empty(things.untyped));
    equal!(Cap::<Untyped>::new(slot).revoke()?, 1);
    check!(is_empty(child));
    Ok(())
}

fn reply_passed(stage: &mut Stage) -> Outcome {
    let (service, helper, reply) = (stage.endpoint()?, stage.endpoint()?, stage.reply()?);
    let slot = stage.slot();
    let caller = stage.spawn(move || service.call(&Message::new(1)).map(|reply| reply.label()))?;
    let other = stage.spawn(move || {
        offer_slots(&[slot]);
        helper.receive(Wait::FOREVER)?;
        Cap::<Reply>::new(slot).reply(&Message::new(5))
    })?;
    service.receive(Wait::until(patience()).with_reply(reply))?;
    let mut message = Message::new(2);
    message.move_cap(reply);
    helper.send(&message, Wait::until(patience()))?;
    equal!(other.join()?, Ok(()));
    equal!(caller.join()?, Ok(5));
    check!(is_empty(reply));
    Ok(())
}
