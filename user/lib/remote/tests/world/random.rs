//! Random clients and a random scheduler, each from a seed.

use tench_remote::{Kind, Limits};

use super::kernel::Name;
use super::script::{Object, Op, Script, frame, untyped};
use super::{Event, Waits, World};

pub const CORES: u8 = 4;

/// Maximum number of objects.
const OBJECTS: usize = 64;
/// Number of initial objects.
const ROOTS: u8 = 6;
/// Maximum number of operations that the twelve threads of a walk perform together.
pub const OPS: usize = 400;

/// Random choices, from a seed.
pub struct Random(tench_random::Random);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(tench_random::Random::new(seed))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0.index(limit)
    }

    /// Returns memory and frames, and objects that can be made from the memory: of the same extent, half of
    /// it, or all of it in other forms.
    fn objects(&mut self) -> Vec<Object> {
        let mut objects: Vec<Object> = (0..4).map(|index| untyped(index * 16, 16, None)).collect();
        objects.extend([frame(64, 8, None), frame(72, 1, None)]);
        while objects.len() < OBJECTS {
            // The smaller of two numbers, so that objects made early are used more often.
            let of = self.below(objects.len()).min(self.below(objects.len()));
            let around = objects[of].shape;
            if around.kind == Kind::Untyped {
                let bytes = if around.bytes > 2 && self.below(2) == 0 { around.bytes / 2 } else { around.bytes };
                let base = around.base + bytes * self.below((around.bytes / bytes) as usize) as u64;
                let of = Some(of as u8);
                objects.push(if self.below(3) == 0 { frame(base, bytes, of) } else { untyped(base, bytes, of) });
            }
        }
        objects
    }

    /// Returns an operation for a core that has the objects `names`.
    fn op(&mut self, objects: &[Object], names: &[Name]) -> Op {
        let name = if names.is_empty() || self.below(3) == 0 {
            self.below(OBJECTS) as u8
        } else {
            // An object that is on this core, or can be made there.
            let near = names[self.below(names.len())];
            let mut made = (0..OBJECTS as u8).filter(|&name| objects[name as usize].of == Some(near));
            made.nth(self.below(4)).filter(|_| self.below(2) == 0).unwrap_or(near)
        };
        match (self.below(32), objects[name as usize].of) {
            (0..12, _) => Op::Send(name, self.below(CORES as usize) as u8),
            (12, _) => Op::Revoke(name),
            (13..16, _) => Op::Delete(name),
            (16, _) => Op::Copy(name),
            (17, _) => Op::GiveBack(name),
            (_, Some(of)) => Op::Retype(of, name),
            (_, None) => Op::Send(name, self.below(CORES as usize) as u8),
        }
    }

    pub fn script(&mut self) -> Script {
        let objects = self.objects();
        let limit = |random: &mut Random, most| 1 + random.below(most);
        let limits = if self.below(3) == 0 {
            Limits {
                exports: limit(self, 3),
                holders: limit(self, 3),
                copies: limit(self, 3),
                requests: limit(self, 3),
            }
        } else {
            Limits { exports: 64, holders: 256, copies: 64, requests: 16 }
        };
        let lost = self.below(4).saturating_sub(1);
        Script {
            cores: CORES,
            start: (0..ROOTS).map(|name| (self.below(CORES as usize) as u8, name)).collect(),
            threads: (0..3 * CORES).map(|index| (index % CORES, Vec::new())).collect(),
            objects,
            limits,
            impatient: true,
            loses: (0..lost).map(|_| self.below(CORES as usize) as u8).collect(),
            stalls: None,
            mistake: None,
            hostile: None,
        }
    }

    /// Gives an idle thread an operation, if a few tries find a possible one.
    pub fn extend(&mut self, script: &mut Script, world: &World) {
        let index = self.below(script.threads.len());
        let (at, ops) = &mut script.threads[index];
        if world.threads[index].waits != Waits::No || ops.len() > world.threads[index].done as usize || !world.runs(*at)
        {
            return;
        }
        let names: Vec<Name> = world.kernels[*at as usize].nodes.iter().map(|node| node.name).collect();
        for _ in 0..40 {
            let op = self.op(&script.objects, &names);
            script.threads[index].1.push(op);
            if world.can_run(script, index) {
                return;
            }
            script.threads[index].1.pop();
        }
    }

    /// Chooses one of these events, if any: seldom one on the slow core, more seldom a loss.
    pub fn choose(&mut self, events: &[Event], slow: Option<u8>) -> Option<Event> {
        let may_lose = self.below(300) == 0;
        let mut last = None;
        for _ in 0..8 {
            let event = events[self.below(events.len())];
            let is_likely = match event {
                Event::Lose(_) if may_lose => true,
                Event::Lose(_) => continue,
                Event::Skip(_) => self.below(2) == 0,
                Event::Deliver(_, at, _) | Event::Deleted(at, _) | Event::Hear(at, _) => Some(at) != slow,
                _ => true,
            };
            last = Some(event);
            if is_likely {
                break;
            }
        }
        last
    }
}
