//! Random operations of several processes, compared with a model in which each process has bytes instead of pages.

mod machine;

use std::collections::BTreeMap;
use std::ops::Range;

use machine::{Machine, Process, check};
use tench_linux_memory::{
    Access, Backing, Denied, Errno, MapRequest, Memory, Move, ObjectId, PAGE_SIZE, Placement, Rights, Space,
};
use tench_random::Random;

/// First page that a process may use, and the page behind the last.
const FIRST: u64 = 508;
const LAST: u64 = 532;
/// Number of objects, and of their pages at most.
const OBJECTS: usize = 3;
const OBJECT_PAGES: u64 = 4;
const PROCESSES: usize = 3;

/// A page of a process in the model.
#[derive(Clone, Debug, PartialEq)]
struct ModelPage {
    rights: Rights,
    shared: bool,
    /// The object and its page from which the contents are.
    object: Option<(usize, u64)>,
    /// Contents of a private page that was written.
    written: Option<Vec<u8>>,
}

/// The pages of a process in the model.
type ModelSpace = BTreeMap<u64, ModelPage>;

/// An object in the model: whole pages, and the length.
#[derive(Clone, Debug)]
struct ModelObject {
    bytes: Vec<u8>,
    length: u64,
}

struct Both {
    memory: Memory<Machine>,
    objects: Vec<(ObjectId, ModelObject)>,
    processes: Vec<(Space<Machine>, ModelSpace)>,
    random: Random,
}

const LIMITS: std::ops::Range<u64> = FIRST * PAGE_SIZE..LAST * PAGE_SIZE;

fn space(memory: &mut Memory<Machine>) -> Space<Machine> {
    Space::new(memory, LIMITS, LIMITS).unwrap()
}

impl Both {
    fn new(seed: u64) -> Both {
        let mut memory = Machine::memory(4096);
        static INITIAL: [u8; 6000] = {
            let mut bytes = [0; 6000];
            let mut index = 0;
            while index < bytes.len() {
                bytes[index] = (index * 7 % 251) as u8;
                index += 1;
            }
            bytes
        };
        let mut objects = Vec::new();
        for number in 0..OBJECTS {
            let (length, initial) = if number == 0 { (6000, &INITIAL[..]) } else { (2 * PAGE_SIZE, &[][..]) };
            let mut bytes = vec![0; (OBJECT_PAGES * PAGE_SIZE) as usize];
            bytes[..initial.len()].copy_from_slice(initial);
            objects.push((memory.objects.make(length, initial), ModelObject { bytes, length }));
        }
        let processes = vec![(space(&mut memory), ModelSpace::new())];
        Both { memory, objects, processes, random: Random::new(seed) }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn process(&mut self) -> usize {
        self.below(self.processes.len() as u64) as usize
    }

    /// Returns a range of pages that a process may use.
    fn pages(&mut self) -> std::ops::Range<u64> {
        let first = FIRST + self.below(LAST - FIRST);
        let count = 1 + self.below(6.min(LAST - first));
        first..first + count
    }

    fn rights(&mut self) -> Rights {
        let all = [
            Rights::empty(),
            Rights::READ,
            Rights::READ | Rights::WRITE,
            Rights::READ | Rights::WRITE,
            Rights::READ | Rights::EXECUTE,
            Rights::all(),
        ];
        all[self.below(all.len() as u64) as usize]
    }

    fn map(&mut self) {
        let (process, pages, rights) = (self.process(), self.pages(), self.rights());
        let object = (self.below(2) == 0).then(|| (self.below(OBJECTS as u64) as usize, self.below(OBJECT_PAGES)));
        // What has no object cannot be shared: shared memory is an object of its own.
        let shared = object.is_some() && self.below(2) == 0;
        let backing = object
            .map_or(Backing::Anonymous, |(number, page)| Backing::Object(self.objects[number].0, page * PAGE_SIZE));
        let (length, start) = ((pages.end - pages.start) * PAGE_SIZE - self.below(PAGE_SIZE), pages.start * PAGE_SIZE);
        let only_if_free = self.below(4) == 0;
        let placement = if only_if_free { Placement::FixedIfFree(start) } else { Placement::Fixed(start) };
        let allowed = Rights::all();
        let request = MapRequest { placement, length, rights, allowed, shared, backing, grows: false };
        let (space, model) = &mut self.processes[process];
        let result = space.map(&mut self.memory, &request);
        if only_if_free && model.range(pages.clone()).next().is_some() {
            assert_eq!(result, Err(Errno::EEXIST));
            return;
        }
        assert_eq!(result, Ok(start));
        for page in pages.clone() {
            let object = object.map(|(number, first)| (number, first + page - pages.start));
            model.insert(page, ModelPage { rights, shared, object, written: None });
        }
    }

    fn map_anywhere(&mut self) {
        let (process, pages, count) = (self.process(), self.pages(), 1 + self.below(6));
        let hint = if self.below(2) == 0 { 0 } else { pages.start };
        let rights = Rights::READ | Rights::WRITE;
        let request = MapRequest {
            placement: Placement::Hint(hint * PAGE_SIZE),
            length: count * PAGE_SIZE,
            rights,
            allowed: Rights::all(),
            shared: false,
            backing: Backing::Anonymous,
            grows: false,
        };
        let (space, model) = &mut self.processes[process];
        let is_free =
            |first: u64| first >= FIRST && first + count <= LAST && model.range(first..first + count).next().is_none();
        let highest = (FIRST..LAST).rev().find(|first| is_free(*first));
        let expected = if hint != 0 && is_free(hint) { Some(hint) } else { highest };
        let result = space.map(&mut self.memory, &request);
        assert_eq!(result, expected.map(|page| page * PAGE_SIZE).ok_or(Errno::ENOMEM));
        for page in expected.into_iter().flat_map(|first| first..first + count) {
            model.insert(page, ModelPage { rights, shared: false, object: None, written: None });
        }
    }

    fn unmap(&mut self) {
        let (process, pages) = (self.process(), self.pages());
        let (space, model) = &mut self.processes[process];
        let length = (pages.end - pages.start) * PAGE_SIZE;
        assert_eq!(space.unmap(&mut self.memory, pages.start * PAGE_SIZE, length), Ok(()));
        model.retain(|page, _| !pages.contains(page));
    }

    fn protect(&mut self) {
        let (process, pages, rights) = (self.process(), self.pages(), self.rights());
        let (space, model) = &mut self.processes[process];
        let length = (pages.end - pages.start) * PAGE_SIZE;
        let result = space.protect(&mut self.memory, pages.start * PAGE_SIZE, length, rights);
        for page in pages.clone() {
            let Some(page) = model.get_mut(&page) else {
                assert_eq!(result, Err(Errno::ENOMEM));
                return;
            };
            page.rights = rights;
        }
        assert_eq!(result, Ok(()));
    }

    fn discard(&mut self) {
        let (process, pages) = (self.process(), self.pages());
        let (space, model) = &mut self.processes[process];
        let length = (pages.end - pages.start) * PAGE_SIZE;
        let result = space.discard(&mut self.memory, pages.start * PAGE_SIZE, length);
        let is_whole = pages.clone().all(|page| model.contains_key(&page));
        assert_eq!(result.is_ok(), is_whole);
        for (_, page) in model.range_mut(pages) {
            page.written = None;
        }
    }

    fn remap(&mut self) {
        let (process, pages, target, count) = (self.process(), self.pages(), self.pages(), 1 + self.below(6));
        let to = match self.below(3) {
            0 => Move::No,
            1 => Move::IfNecessary,
            _ => Move::To(target.start * PAGE_SIZE),
        };
        let (space, model) = &mut self.processes[process];
        let old_count = pages.end - pages.start;
        let (old, old_length, new_length) = (pages.start * PAGE_SIZE, old_count * PAGE_SIZE, count * PAGE_SIZE);
        let before: Option<Vec<ModelPage>> = pages.clone().map(|page| model.get(&page).cloned()).collect();
        let Ok(new) = space.remap(&mut self.memory, old, old_length, new_length, to) else { return };
        let before = before.expect("only what exists is moved");
        let new = new / PAGE_SIZE;
        match to {
            Move::No => assert_eq!(new, pages.start),
            Move::IfNecessary => {
                assert!(new == pages.start || model.range(new..new + count).next().is_none(), "nothing is overwritten")
            }
            Move::To(_) => assert_eq!(new, target.start),
        }
        let kept = if new == pages.start { pages.start + count.min(old_count)..pages.end } else { pages.clone() };
        model.retain(|page, _| !kept.contains(page));
        for index in 0..count {
            let page = before.get(index as usize).cloned().unwrap_or_else(|| {
                let first = &before[0];
                let object = first.object.map(|(number, page)| (number, page + index));
                ModelPage { rights: first.rights, shared: first.shared, object, written: None }
            });
            model.insert(new + index, page);
        }
    }

    fn fork(&mut self) {
        if self.processes.len() == PROCESSES {
            let process = self.process();
            let (space, _) = self.processes.swap_remove(process);
            space.end(&mut self.memory);
            return;
        }
        let process = self.process();
        let (space, model) = &mut self.processes[process];
        let child = (space.fork(&mut self.memory).unwrap(), model.clone());
        self.processes.push(child);
    }

    fn set_length(&mut self) {
        let number = self.below(OBJECTS as u64) as usize;
        let length = self.below(OBJECT_PAGES * PAGE_SIZE + 1);
        let (id, object) = &mut self.objects[number];
        if length < object.length {
            let cut = length.div_ceil(PAGE_SIZE);
            for (space, model) in &mut self.processes {
                space.truncate(&mut self.memory, *id, cut);
                for page in model.values_mut() {
                    if page.object.is_some_and(|(object, page)| object == number && page >= cut) {
                        page.written = None;
                    }
                }
            }
            object.bytes[length as usize..].fill(0);
        }
        object.length = length;
        let Memory { pool, objects, hardware } = &mut self.memory;
        objects.set_length(pool, hardware, *id, length);
    }

    fn write_object(&mut self) {
        let number = self.below(OBJECTS as u64) as usize;
        let start = self.below(OBJECT_PAGES * PAGE_SIZE);
        let room = if self.below(8) == 0 { 0 } else { 5000.min(OBJECT_PAGES * PAGE_SIZE - start) };
        let count = self.below(room + 1);
        let byte = self.below(256) as u8;
        let (id, object) = &mut self.objects[number];
        object.bytes[start as usize..(start + count) as usize].fill(byte);
        // An object does not become longer because nothing is written behind its end.
        object.length = object.length.max(if count > 0 { start + count } else { 0 });
        let Memory { pool, objects, hardware } = &mut self.memory;
        let result = objects.write(pool, hardware, *id, start, &vec![byte; count as usize]);
        assert_eq!(result, Ok(count as usize));
    }

    fn read_object(&mut self) {
        let number = self.below(OBJECTS as u64) as usize;
        let start = self.below(OBJECT_PAGES * PAGE_SIZE);
        let mut into = vec![0; self.below(9000) as usize];
        let (id, object) = &self.objects[number];
        let count = self.memory.objects.read(&mut self.memory.hardware, *id, start, &mut into);
        assert_eq!(count as u64, object.length.saturating_sub(start).min(into.len() as u64));
        assert_eq!(into[..count], object.bytes[start as usize..][..count]);
    }

    /// Returns the byte at an address in the model, and writes another one there.
    fn model_access(&mut self, process: usize, address: u64, access: Access, new: Option<u8>) -> Result<u8, Denied> {
        let (page, within) = (address / PAGE_SIZE, (address % PAGE_SIZE) as usize);
        let page = self.processes[process].1.get_mut(&page).ok_or(Denied::NoArea)?;
        let right = match access {
            Access::Read => Rights::READ,
            Access::Write => Rights::WRITE,
            Access::Execute => Rights::EXECUTE,
        };
        if !page.rights.contains(right) {
            return Err(Denied::NoRight);
        }
        let from_object = page.object.map(|(number, index)| (&mut self.objects[number].1, index));
        let object = match from_object {
            Some((object, index)) if page.written.is_none() => {
                if index * PAGE_SIZE >= object.length {
                    return Err(Denied::BeyondEnd);
                }
                Some(&mut object.bytes[(index * PAGE_SIZE) as usize..][..PAGE_SIZE as usize])
            }
            _ => None,
        };
        let Some(new) = new else {
            let written = page.written.as_ref().map(|bytes| bytes[within]);
            return Ok(written.or(object.map(|bytes| bytes[within])).unwrap_or(0));
        };
        match object {
            Some(bytes) if page.shared => bytes[within] = new,
            object => {
                let before = object.map_or(vec![0; PAGE_SIZE as usize], |bytes| bytes.to_vec());
                page.written.get_or_insert(before)[within] = new;
            }
        }
        Ok(new)
    }

    fn access(&mut self) {
        let process = self.process();
        let address = FIRST * PAGE_SIZE + self.below((LAST - FIRST) * PAGE_SIZE);
        let (access, new) = match self.below(5) {
            0 | 1 => (Access::Write, Some(self.below(256) as u8)),
            2 | 3 => (Access::Read, None),
            _ => (Access::Execute, None),
        };
        let expected = self.model_access(process, address, access, new);
        let result = self.processes[process].0.access(&mut self.memory, address, access, new);
        assert_eq!(result, expected, "{access:?} at {address:#x} by {process}");
    }

    /// Copies bytes in and out, across pages.
    fn transfer(&mut self) {
        let process = self.process();
        let address = FIRST * PAGE_SIZE + self.below((LAST - FIRST) * PAGE_SIZE);
        let count = self.below(6000) as usize;
        let byte = (self.below(2) == 0).then(|| self.below(256) as u8);
        let access = if byte.is_some() { Access::Write } else { Access::Read };
        let mut expected = Vec::new();
        for index in 0..count as u64 {
            let Ok(byte) = self.model_access(process, address + index, access, byte) else { break };
            expected.push(byte);
        }
        let (space, _) = &mut self.processes[process];
        match byte {
            Some(byte) => assert_eq!(space.write(&mut self.memory, address, &vec![byte; count]), expected.len()),
            None => {
                let mut into = vec![0; count];
                assert_eq!(space.read(&mut self.memory, address, &mut into), expected.len());
                assert_eq!(into[..expected.len()], expected);
            }
        }
    }

    /// Copies a string, until a zero comes, or until it is long enough.
    fn read_string(&mut self) {
        let process = self.process();
        let address = FIRST * PAGE_SIZE + self.below((LAST - FIRST) * PAGE_SIZE);
        let limit = self.below(6000) as usize;
        let (mut expected, mut end) = (Vec::new(), Ok(false));
        while expected.len() < limit && end == Ok(false) {
            match self.model_access(process, address + expected.len() as u64, Access::Read, None) {
                Ok(0) => end = Ok(true),
                Ok(byte) => expected.push(byte),
                Err(_) => end = Err(Errno::EFAULT),
            }
        }
        let mut string = Vec::new();
        let space = &mut self.processes[process].0;
        assert_eq!(space.read_string(&mut self.memory, address, limit, &mut string), end);
        assert_eq!(string, expected);
    }

    /// Returns whether a process has no page of an object in a range, so that copying between the two is no question
    /// of order.
    fn is_apart(&self, process: usize, object: usize, range: Range<u64>) -> bool {
        let pages = range.start / PAGE_SIZE..range.end.div_ceil(PAGE_SIZE);
        let pages = self.processes[process].1.range(pages).map(|(_, page)| page);
        pages.filter_map(|page| page.object).all(|(number, _)| number != object)
    }

    /// Copies bytes of an object, or zeros, to a process.
    fn copy_to_process(&mut self) {
        let (process, number) = (self.process(), self.below(OBJECTS as u64) as usize);
        let address = FIRST * PAGE_SIZE + self.below((LAST - FIRST) * PAGE_SIZE);
        let start = self.below(OBJECT_PAGES * PAGE_SIZE);
        let (id, object) = &self.objects[number];
        let (id, there) = (*id, object.length.saturating_sub(start));
        let count = self.below(there.min(9000) + 1) as usize;
        if !self.is_apart(process, number, address..address + count as u64) {
            return;
        }
        let from_object = self.below(3) > 0;
        let bytes = self.objects[number].1.bytes[start as usize..][..count].to_vec();
        let bytes = if from_object { bytes } else { vec![0; count] };
        let written = (address..)
            .zip(bytes)
            .take_while(|(address, byte)| self.model_access(process, *address, Access::Write, Some(*byte)).is_ok());
        let expected = written.count();
        let space = &mut self.processes[process].0;
        let result = match from_object {
            true => space.write_from(&mut self.memory, address, (id, start), count),
            false => space.write_zeros(&mut self.memory, address, count),
        };
        assert_eq!(result, expected, "{count} bytes from {start} to {address:#x}");
    }

    /// Copies bytes of a process to an object.
    fn copy_to_object(&mut self) {
        let (process, number) = (self.process(), self.below(OBJECTS as u64) as usize);
        let address = FIRST * PAGE_SIZE + self.below((LAST - FIRST) * PAGE_SIZE);
        let start = self.below(OBJECT_PAGES * PAGE_SIZE);
        let count = self.below(9000.min(OBJECT_PAGES * PAGE_SIZE - start) + 1);
        if !self.is_apart(process, number, address..address + count) {
            return;
        }
        let bytes: Vec<u8> = (address..address + count)
            .map_while(|address| self.model_access(process, address, Access::Read, None).ok())
            .collect();
        let (id, object) = &mut self.objects[number];
        object.bytes[start as usize..][..bytes.len()].copy_from_slice(&bytes);
        object.length = object.length.max(if bytes.is_empty() { 0 } else { start + bytes.len() as u64 });
        let space = &mut self.processes[process].0;
        let result = space.read_to(&mut self.memory, address, (*id, start), count as usize);
        let is_refused = bytes.is_empty() && count > 0;
        assert_eq!(result, if is_refused { Err(Errno::EFAULT) } else { Ok(bytes.len()) });
    }

    fn step(&mut self) {
        match self.below(45) {
            0..4 => self.map(),
            4 => self.map_anywhere(),
            5 => self.unmap(),
            6..8 => self.protect(),
            8 => self.discard(),
            9 => self.remap(),
            10 => self.fork(),
            11 => self.set_length(),
            12 => self.write_object(),
            13 => self.read_object(),
            14 | 15 => self.transfer(),
            16 | 17 => self.copy_to_process(),
            18 | 19 => self.copy_to_object(),
            20 => self.read_string(),
            _ => self.access(),
        }
        let spaces: Vec<_> = self.processes.iter().map(|(space, _)| space).collect();
        check(&self.memory, &spaces);
    }

    /// Ends all processes and objects. Everything is free afterwards.
    fn end(mut self) {
        for (space, _) in self.processes {
            space.end(&mut self.memory);
        }
        for (id, _) in self.objects {
            self.memory.objects.release(&mut self.memory.pool, id);
        }
        check(&self.memory, &[]);
        assert_eq!(self.memory.pool.free(), self.memory.pool.total());
        assert_eq!(self.memory.hardware.alive, 0, "address spaces and tables");
    }
}

#[test]
fn processes_see_what_the_model_says() {
    for seed in 0..100 {
        let mut both = Both::new(seed);
        for _ in 0..1000 {
            both.step();
        }
        both.end();
    }
}

/// A call or a fault for which there is no memory leaves everything consistent, and works once there is some.
#[test]
fn there_may_be_no_memory_at_any_moment() {
    for seed in 0..20 {
        let mut both = Both::new(seed);
        for _ in 0..100 {
            both.step();
        }
        for calls in 0..40 {
            both.memory.hardware.calls = calls;
            for page in FIRST..LAST {
                let access = if both.below(2) == 0 { Access::Write } else { Access::Read };
                let process = both.process();
                let address = page * PAGE_SIZE;
                let result = both.processes[process].0.fault(&mut both.memory, address, access);
                if result.is_ok() && access == Access::Write {
                    // The page is the process's own now, as if it had written what was there.
                    let byte = both.model_access(process, address, Access::Read, None).unwrap();
                    both.model_access(process, address, Access::Write, Some(byte)).unwrap();
                }
            }
            if let Ok(child) = both.processes[0].0.fork(&mut both.memory) {
                child.end(&mut both.memory);
            }
            let spaces: Vec<_> = both.processes.iter().map(|(space, _)| space).collect();
            check(&both.memory, &spaces);
            both.memory.hardware.calls = usize::MAX;
            for _ in 0..20 {
                both.step();
            }
        }
        both.end();
    }
}
