//! The oracle: properties of every state of a world, and of final states.

use tench_remote::{Copy, Kind, Machine, ObjectId};

use super::kernel::{Node, overlap};
use super::script::Script;
use super::{Event, Waits, World};

/// Returns the property that this state violates, if any.
pub fn judge(script: &Script, world: &World) -> Option<&'static str> {
    if world.wrong.is_some() {
        return world.wrong;
    }
    memory(script, world).or_else(|| ledger(script, world))
}

/// Returns all capabilities on cores that have not stopped.
fn nodes<'a>(script: &Script, world: &'a World) -> impl Iterator<Item = (u8, &'a Node)> + Clone {
    let alive = (0..script.cores).filter(|&at| world.lives(at));
    alive.flat_map(|at| world.kernels[at as usize].nodes.iter().map(move |node| (at, node)))
}

/// Checks that no memory is two things at once, and that only one core can retype it.
fn memory(script: &Script, world: &World) -> Option<&'static str> {
    let all = nodes(script, world);
    for (index, (at, node)) in all.clone().enumerate() {
        for (other_at, other) in all.clone().skip(index + 1) {
            if node.name == other.name {
                if node.is_retypable() && other.is_retypable() && at != other_at {
                    return Some("two cores can make something of the same memory");
                }
            } else if overlap(&node.shape, &other.shape)
                && !script.is_below(node.name, other.name)
                && !script.is_below(other.name, node.name)
            {
                return Some("memory was reused while a capability to it exists");
            }
        }
    }
    None
}

/// Checks that monitors and kernels agree, and that an owner knows of all copies.
fn ledger(script: &Script, world: &World) -> Option<&'static str> {
    for at in (0..script.cores).filter(|&at| world.lives(at)) {
        let (machine, kernel) = (&world.machines[at as usize], &world.kernels[at as usize]);
        let exported = kernel.nodes.iter().filter_map(|node| node.exported);
        if !same(exported, machine.exports().map(|(object, _)| object)) {
            return Some("the exported capabilities are not those in the monitor's ledger");
        }
        // With this mistake, deletions take place later than they are reported.
        if script.mistake.is_none()
            && !same(kernel.nodes.iter().filter_map(|node| node.root), honest(script, machine).map(|copy| copy.object))
        {
            return Some("the roots are not those in the monitor's ledger");
        }
        for copy in honest(script, machine) {
            let owner = copy.object.owner.index();
            let holders = world.machines[owner].holders(copy.object);
            let known = holders.iter().find(|holder| holder.core == machine.core());
            if world.lives(owner as u8)
                && script.mistake.is_none()
                && known.is_none_or(|holder| holder.sent < copy.count)
            {
                return Some("an owner does not know of a copy");
            }
        }
    }
    None
}

/// Returns the copies of objects that exist.
fn honest<'a>(script: &Script, machine: &'a Machine) -> impl Iterator<Item = &'a Copy> {
    machine.copies().filter(|copy| !script.is_hostile(copy.object.owner))
}

fn same(a: impl Iterator<Item = ObjectId>, b: impl Iterator<Item = ObjectId>) -> bool {
    let (mut a, mut b): (Vec<_>, Vec<_>) = (a.collect(), b.collect());
    a.sort();
    b.sort();
    a == b
}

/// Returns the property that this state violates if nothing more can happen in it.
pub fn judge_end(script: &Script, world: &World) -> Option<&'static str> {
    let mut events: Vec<Event> = Vec::new();
    world.events(script, &mut events);
    if !events.is_empty() {
        return None;
    }
    let independent = |index: &usize| match &script.stalls {
        Some((_, others)) => world.stalled.is_none() || others.contains(index),
        None => true,
    };
    for index in (0..script.threads.len()).filter(independent) {
        if world.lives(script.threads[index].0) && world.threads[index].waits != Waits::No {
            return Some("a request never gets a reply");
        }
    }
    if world.stalled.is_some() { None } else { at_rest(script, world) }
}

/// Checks that all tables are consistent and nothing is under way.
fn at_rest(script: &Script, world: &World) -> Option<&'static str> {
    for at in (0..script.cores).filter(|&at| world.lives(at)) {
        let machine = &world.machines[at as usize];
        if machine.requests() != 0 {
            return Some("a request is left in the ledger");
        }
        for (object, export) in machine.exports() {
            if export.withdrawing {
                return Some("a withdrawal never ends");
            }
            let holders = machine.holders(object);
            if holders.is_empty() || export.shape.kind == Kind::Untyped && holders.len() != 1 {
                return Some("the owner's ledger is wrong about who has copies");
            }
            for holder in holders {
                let other = holder.core.index();
                let copy = world.machines[other].copies().find(|copy| copy.object == object);
                if !world.lives(other as u8)
                    || copy.is_none_or(|copy| copy.count != holder.sent || holder.taken != holder.sent)
                {
                    return Some("the owner counts copies that are not there");
                }
            }
        }
        if machine.copies().any(|copy| !world.lives(copy.object.owner.index() as u8)) {
            return Some("a copy of a lost core's object is left");
        }
    }
    None
}
