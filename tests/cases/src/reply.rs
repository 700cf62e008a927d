//! Tests of reply objects.

use tench::abi::object::ThreadState;
use tench::sys::{Cap, Error, Message, Rights, Wait, ipc::BOUND_REPLY};

use crate::case::{Case, Outcome};
use crate::stage::{HIGH, Stage};
use crate::worker::{Equipment, patience};

pub const CASES: &[Case] = &[
    Case::new("RPL0001", "a reply without a caller is refused", nobody),
    Case::new("RPL0002", "a caller gets one reply", once),
    Case::new("RPL0003", "several callers are held and get replies in any order", several),
    Case::new("RPL0004", "deleting a reply object ends its caller's wait", deleted),
    Case::new("RPL0005", "deleting a reply object ends a receive with it", deleted_receiver),
    Case::new("RPL0006", "a reply object serves one thread at a time", in_use),
    Case::new("RPL0007", "a message that was sent leaves the reply object free", sent),
    Case::new("RPL0008", "replying to nobody and receiving is no error", reply_receive),
    Case::new("RPL0009", "a thread without a bound reply object names one", unbound),
];

fn nobody(stage: &mut Stage) -> Outcome {
    let reply = stage.reply()?;
    refused!(reply.reply(&Message::new(1)), NoCaller);
    refused!(BOUND_REPLY.reply(&Message::new(1)), NoCaller);
    let weak = stage.mint(reply, Rights::READ, 0)?;
    refused!(weak.reply(&Message::new(1)), MissingRights);
    let endpoint = stage.endpoint()?;
    refused!(endpoint.receive(Wait::until(patience()).with_reply(weak)), MissingRights);
    refused!(endpoint.receive(Wait::until(patience()).with_reply(Cap::new(endpoint.address()))), WrongType);
    refused!(endpoint.receive(Wait::until(patience()).with_reply(Cap::new(stage.slot()))), InvalidCapability);
    Ok(())
}

fn once(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(|reply| reply.label()))?;
    endpoint.receive(Wait::until(patience()))?;
    BOUND_REPLY.reply(&Message::new(2))?;
    refused!(BOUND_REPLY.reply(&Message::new(3)), NoCaller);
    equal!(caller.join()?, Ok(2));
    Ok(())
}

fn several(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let replies = [stage.reply()?, stage.reply()?, stage.reply()?];
    let mut callers = [None; 3];
    for (caller, reply) in callers.iter_mut().zip(replies) {
        *caller = Some(stage.spawn(move || endpoint.call(&Message::new(1)).map(|reply| reply.label()))?);
        endpoint.receive(Wait::until(patience()).with_reply(reply))?;
    }
    for index in [1, 2, 0] {
        replies[index].reply(&Message::new(index as u64))?;
        if let Some(caller) = callers[index] {
            equal!(caller.join()?, Ok(index as u64));
        }
    }
    Ok(())
}

fn deleted(stage: &mut Stage) -> Outcome {
    let (endpoint, reply) = (stage.endpoint()?, stage.reply()?);
    let caller = stage.spawn(move || endpoint.call(&Message::new(1)).map(drop))?;
    endpoint.receive(Wait::until(patience()).with_reply(reply))?;
    let copy = stage.copy(reply)?;
    reply.delete()?;
    equal!(caller.state()?, ThreadState::AwaitingReply);
    check!(copy.delete()?.freed.is_some());
    equal!(caller.join()?, Err(Error::Aborted));
    Ok(())
}

fn deleted_receiver(stage: &mut Stage) -> Outcome {
    let (endpoint, reply) = (stage.endpoint()?, stage.reply()?);
    let receiver = stage.spawn(move || endpoint.receive(Wait::FOREVER.with_reply(reply)).map(drop))?;
    equal!(receiver.state()?, ThreadState::Receiving);
    check!(reply.delete()?.freed.is_some());
    equal!(receiver.join()?, Err(Error::Aborted));
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    Ok(())
}

fn in_use(stage: &mut Stage) -> Outcome {
    let (endpoint, reply) = (stage.endpoint()?, stage.reply()?);
    let receiver = stage.spawn(move || endpoint.receive(Wait::FOREVER.with_reply(reply)).map(drop))?;
    refused!(endpoint.try_receive(Wait::FOREVER.with_reply(reply)), ReplyInUse);
    // A reply object bound to another thread is refused too.
    refused!(endpoint.try_receive(Wait::FOREVER.with_reply(receiver.reply)), ReplyInUse);
    endpoint.send(&Message::new(1), Wait::until(patience()))?;
    equal!(receiver.join()?, Ok(()));
    refused!(endpoint.try_receive(Wait::FOREVER.with_reply(reply)), WouldBlock);
    Ok(())
}

fn sent(stage: &mut Stage) -> Outcome {
    let (endpoint, reply) = (stage.endpoint()?, stage.reply()?);
    stage.spawn(move || endpoint.send(&Message::new(1), Wait::FOREVER))?;
    stage.spawn(move || endpoint.send(&Message::new(2), Wait::FOREVER))?;
    endpoint.receive(Wait::until(patience()).with_reply(reply))?;
    refused!(reply.reply(&Message::new(1)), NoCaller);
    equal!(endpoint.receive(Wait::until(patience()).with_reply(reply))?.label(), 2);
    Ok(())
}

fn reply_receive(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    stage.spawn(move || endpoint.send(&Message::new(7), Wait::FOREVER))?;
    equal!(endpoint.reply_receive(&Message::new(0), Wait::until(patience()))?.label(), 7);
    refused!(endpoint.reply_receive(&Message::new(0), Wait::until(crate::worker::soon())), TimedOut);
    Ok(())
}

fn unbound(stage: &mut Stage) -> Outcome {
    let worker =
        stage.spawn_with(Equipment { reply: false, ..Equipment::at(HIGH) }, || BOUND_REPLY.reply(&Message::new(1)))?;
    equal!(worker.join()?, Err(Error::NoReplyObject));
    Ok(())
}
