//! Objects: the contents of files, and memory that processes share.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::ops::Range;

use slab::Slab;

use tench_linux_calls::numbers::seal;

use crate::{Errno, Hardware, PAGE_SIZE, Page, Place, Pool};

/// Number of pages in a chunk of an object.
const CHUNK: u64 = 512;
/// Bytes that a further chunk takes at most, with its place among the others.
const CHUNK_SIZE: usize = CHUNK as usize * size_of::<Option<Page>>() + 1024;

/// Name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u32);

/// The contents of a file, or memory that processes share.
#[derive(Debug)]
pub struct Object {
    /// The pages that were used, in chunks of neighbouring ones.
    chunks: BTreeMap<u64, Box<[Option<Page>; CHUNK as usize]>>,
    /// Length in bytes. The last page is zero beyond it.
    length: u64,
    /// Contents where there are no pages yet. Beyond them there are zeros.
    initial: &'static [u8],
    /// Number of areas, files and others that use the object.
    users: u32,
    /// Seals, which say what may not be done to its contents any more: [`seal`].
    seals: u32,
    /// The name of a file without a path, which shows as long as the object is mapped.
    name: Option<Box<[u8]>>,
    /// Changes of the areas that have it, if somebody counts these.
    news: Option<News>,
    /// How many objects were made before: no other object has this number, also when this one has ended.
    serial: u64,
}

/// Changes of the areas that have an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// There was another one.
    pub was_attached: bool,
    /// One was removed.
    pub was_detached: bool,
}

impl Object {
    /// Returns a page, if it was used.
    pub fn page(&self, index: u64) -> Option<Page> {
        self.chunks.get(&(index / CHUNK))?[(index % CHUNK) as usize]
    }

    /// Returns the first page from an index on that may not be zero.
    fn next_filled(&self, index: u64) -> Option<u64> {
        if index < (self.initial.len() as u64).div_ceil(PAGE_SIZE) {
            return Some(index);
        }
        let mut chunks = self.chunks.range(index / CHUNK..);
        chunks.find_map(|(number, chunk)| {
            let from = index.saturating_sub(number * CHUNK) as usize;
            let found = chunk[from..].iter().position(Option::is_some)?;
            Some(number * CHUNK + (from + found) as u64)
        })
    }

    /// Reads contents from an offset on where there is no page.
    fn read_initial(&self, offset: u64, into: &mut [u8]) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let initial = self.initial.get(start..).unwrap_or(&[]);
        let (filled, rest) = into.split_at_mut(initial.len().min(into.len()));
        filled.copy_from_slice(&initial[..filled.len()]);
        rest.fill(0);
    }

    /// Returns what may not be done to the contents any more: [`seal`].
    pub const fn seals(&self) -> u32 {
        self.seals
    }

    /// Returns how many of some bytes may be written from an offset on. As on Linux, which writes page by page, those
    /// before the last page that would make the object longer are.
    ///
    /// # Errors
    /// `EPERM` if none may, because of [seals](seal).
    pub fn room_for(&self, offset: u64, length: u64) -> Result<u64, Errno> {
        if length > 0 && self.seals & (seal::WRITE | seal::FUTURE_WRITE) != 0 {
            return Err(Errno::EPERM);
        }
        let is_longer = offset.checked_add(length).is_none_or(|end| end > self.length);
        if length == 0 || self.seals & seal::GROW == 0 || !is_longer {
            return Ok(length);
        }
        let last = self.length / PAGE_SIZE * PAGE_SIZE;
        last.checked_sub(offset).filter(|room| *room > 0).ok_or(Errno::EPERM)
    }

    /// Returns the number of areas, files and others that use the object.
    pub const fn users(&self) -> u32 {
        self.users
    }

    /// Returns the name of a file without a path.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Returns a number that no other object has, also when this one has ended and another has its name.
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the length in bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the pages, with their indices, in order.
    pub fn pages(&self) -> impl Iterator<Item = (u64, Page)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let pages = chunk.iter().enumerate();
            pages.filter_map(move |(index, page)| Some((number * CHUNK + index as u64, (*page)?)))
        })
    }
}

/// All objects of an instance.
#[derive(Debug, Default)]
pub struct Objects {
    pub(crate) objects: Slab<Object>,
    /// How many were made.
    made: u64,
    has_news: bool,
}

impl Objects {
    /// Returns an empty set.
    pub const fn new() -> Objects {
        Objects { objects: Slab::new(), made: 0, has_news: false }
    }

    /// Makes an object for one user.
    pub fn make(&mut self, length: u64, initial: &'static [u8]) -> ObjectId {
        self.add(Object {
            chunks: BTreeMap::new(),
            length,
            initial,
            users: 1,
            seals: seal::SEAL,
            name: None,
            news: None,
            serial: 0,
        })
    }

    /// Makes an empty object for one user: a file without a path, which has a name all the same.
    pub fn make_named(&mut self, name: &[u8], seals: u32) -> ObjectId {
        let name = Some(name.into());
        let chunks = BTreeMap::new();
        self.add(Object { chunks, length: 0, initial: &[], users: 1, seals, name, news: None, serial: 0 })
    }

    /// Makes an object of zeros for one user, which is told of the areas that have it. These stay as they are mapped,
    /// so that there are as many as there are other users.
    pub fn make_counted(&mut self, name: &[u8], length: u64) -> ObjectId {
        let (name, news) = (Some(name.into()), Some(News::default()));
        let chunks = BTreeMap::new();
        self.add(Object { chunks, length, initial: &[], users: 1, seals: seal::SEAL, name, news, serial: 0 })
    }

    fn add(&mut self, object: Object) -> ObjectId {
        let serial = self.made;
        self.made += 1;
        ObjectId(self.objects.insert(Object { serial, ..object }) as u32)
    }

    /// Lets something not be done to an object any more: [`seal`].
    pub fn seal(&mut self, id: ObjectId, seals: u32) {
        self.get_mut(id).seals |= seals;
    }

    /// Returns an object.
    ///
    /// # Panics
    /// Panics if it has ended: whoever has its name is one of its users.
    pub fn get(&self, id: ObjectId) -> &Object {
        match self.objects.get(id.0 as usize) {
            Some(object) => object,
            None => panic!("an object ended before its user"),
        }
    }

    fn get_mut(&mut self, id: ObjectId) -> &mut Object {
        match self.objects.get_mut(id.0 as usize) {
            Some(object) => object,
            None => panic!("an object ended before its user"),
        }
    }

    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// Returns all objects.
    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter().map(|(_, object)| object)
    }

    /// Adds a user to an object.
    pub fn share(&mut self, id: ObjectId) {
        let object = self.get_mut(id);
        object.users += 1;
        if let Some(news) = &mut object.news {
            news.was_attached = true;
            self.has_news = true;
        }
    }

    /// Returns whether the areas of an object whose areas somebody counts have changed.
    #[inline(always)]
    pub const fn has_news(&self) -> bool {
        self.has_news
    }

    /// Returns whether somebody counts the areas that have an object.
    pub fn is_counted(&self, id: ObjectId) -> bool {
        self.get(id).news.is_some()
    }

    /// Forgets that there is news, all of which the caller takes next.
    pub fn begin_news(&mut self) {
        self.has_news = false;
    }

    /// Takes what has happened to the areas that have an object, with their number; nothing if nothing has.
    pub fn take_news(&mut self, id: ObjectId) -> Option<(News, u32)> {
        let object = self.get_mut(id);
        let news = core::mem::take(object.news.as_mut()?);
        (news != News::default()).then_some((news, object.users - 1))
    }

    /// Removes a user from an object that has two of neighbouring areas, which are joined. Returns false if they must
    /// not be, because somebody counts them.
    pub(crate) fn join(&mut self, pool: &mut Pool, id: ObjectId) -> bool {
        let joins = self.get(id).news.is_none();
        if joins {
            self.release(pool, id);
        }
        joins
    }

    /// Removes a user from an object; the last one ends it.
    pub fn release(&mut self, pool: &mut Pool, id: ObjectId) {
        let object = self.get_mut(id);
        object.users -= 1;
        if let Some(news) = &mut object.news {
            news.was_detached = true;
            self.has_news = true;
        }
        let object = self.get(id);
        if object.users == 0 {
            for (_, page) in object.pages() {
                pool.release(page);
            }
            self.objects.remove(id.0 as usize);
        }
    }

    /// Returns a page of an object, and makes it if it was not used so far. The page stays the object's.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn page<H: Hardware>(
        &mut self,
        pool: &mut Pool,
        hardware: &mut H,
        id: ObjectId,
        index: u64,
    ) -> Result<Page, Errno> {
        let object = self.get_mut(id);
        if let Some(page) = object.page(index) {
            return Ok(page);
        }
        if !object.chunks.contains_key(&(index / CHUNK)) {
            crate::check_room(hardware, CHUNK_SIZE)?;
        }
        let page = pool.take(hardware)?;
        object.read_initial(index * PAGE_SIZE, hardware.bytes(page));
        let chunk = object.chunks.entry(index / CHUNK).or_insert_with(|| Box::new([None; CHUNK as usize]));
        chunk[(index % CHUNK) as usize] = Some(page);
        Ok(page)
    }

    /// Reads bytes of an object from an offset on. Returns how many there were before its end.
    pub fn read<H: Hardware>(&self, hardware: &mut H, id: ObjectId, offset: u64, into: &mut [u8]) -> usize {
        let object = self.get(id);
        let length = object.length.saturating_sub(offset).min(into.len() as u64) as usize;
        for (place, part) in parts(offset, length) {
            let into = &mut into[part];
            match object.page(place / PAGE_SIZE) {
                Some(page) => into.copy_from_slice(&hardware.bytes(page)[within(place)..][..into.len()]),
                None => object.read_initial(place, into),
            }
        }
        length
    }

    /// Copies bytes of an object, from an offset on, to a page. All lie before the object's end.
    pub(crate) fn copy_to<H: Hardware>(&self, hardware: &mut H, id: ObjectId, offset: u64, to: Place, length: usize) {
        let object = self.get(id);
        for (place, part) in parts(offset, length) {
            let to = Place { offset: to.offset + part.start, ..to };
            match object.page(place / PAGE_SIZE) {
                Some(page) => hardware.copy(Place { page, offset: within(place) }, to, part.len()),
                None => object.read_initial(place, &mut hardware.bytes(to.page)[to.offset..][..part.len()]),
            }
        }
    }

    /// Writes bytes to an object from an offset on, which may lie beyond its end. Returns how many were written before
    /// there was no memory for more.
    ///
    /// # Errors
    /// `ENOSPC` if none were written, `EFBIG` if the object would be longer than a number can say.
    pub fn write<H: Hardware>(
        &mut self,
        pool: &mut Pool,
        hardware: &mut H,
        id: ObjectId,
        offset: u64,
        from: &[u8],
    ) -> Result<usize, Errno> {
        let end = offset.checked_add(from.len() as u64).filter(|end| i64::try_from(*end).is_ok());
        end.ok_or(Errno::EFBIG)?;
        let mut done = 0;
        for (place, part) in parts(offset, from.len()) {
            let Ok(page) = self.page(pool, hardware, id, place / PAGE_SIZE) else { break };
            done = part.end;
            hardware.bytes(page)[within(place)..][..part.len()].copy_from_slice(&from[part]);
        }
        self.lengthen(id, offset, done);
        if done == 0 && !from.is_empty() { Err(Errno::ENOSPC) } else { Ok(done) }
    }

    /// Copies bytes of a page to an object, from an offset on, which may lie beyond its end. Returns how many were
    /// written before there was no memory for more.
    pub(crate) fn copy_from<H: Hardware>(
        &mut self,
        pool: &mut Pool,
        hardware: &mut H,
        id: ObjectId,
        offset: u64,
        from: Place,
        length: usize,
    ) -> usize {
        let mut done = 0;
        for (place, part) in parts(offset, length) {
            let Ok(page) = self.page(pool, hardware, id, place / PAGE_SIZE) else { break };
            let from = Place { offset: from.offset + part.start, ..from };
            hardware.copy(from, Place { page, offset: within(place) }, part.len());
            done = part.end;
        }
        self.lengthen(id, offset, done);
        done
    }

    /// Makes an object reach to the end of what was written, if anything was.
    fn lengthen(&mut self, id: ObjectId, offset: u64, written: usize) {
        if written > 0 {
            let object = self.get_mut(id);
            object.length = object.length.max(offset + written as u64);
        }
    }

    /// Makes a part of an object zero. Where there are no pages and no contents at first, it is so already, whatever
    /// its length.
    ///
    /// # Errors
    /// `ENOSPC`: there is no memory for a page in place of contents.
    pub fn clear<H: Hardware>(
        &mut self,
        pool: &mut Pool,
        hardware: &mut H,
        id: ObjectId,
        part: Range<u64>,
    ) -> Result<(), Errno> {
        let object = self.get(id);
        let end = part.end.min(object.length);
        let (mut next, last) = (part.start / PAGE_SIZE, end.div_ceil(PAGE_SIZE));
        while let Some(index) = self.get(id).next_filled(next).filter(|index| *index < last) {
            next = index + 1;
            let (start, stop) = (part.start.max(index * PAGE_SIZE), end.min((index + 1) * PAGE_SIZE));
            let zeros = [0; PAGE_SIZE as usize];
            self.write(pool, hardware, id, start, &zeros[..stop.saturating_sub(start) as usize])?;
        }
        Ok(())
    }

    /// Changes the length of an object. If it becomes shorter, its users' entries for what is cut off have to be
    /// [removed](crate::Space::truncate) first.
    pub fn set_length<H: Hardware>(&mut self, pool: &mut Pool, hardware: &mut H, id: ObjectId, length: u64) {
        let object = self.get_mut(id);
        if length < object.length {
            let first = length.div_ceil(PAGE_SIZE);
            let cut = usize::try_from(length).map_or(object.initial.len(), |length| length.min(object.initial.len()));
            object.initial = &object.initial[..cut];
            for (number, chunk) in object.chunks.range_mut(first / CHUNK..) {
                let start = first.saturating_sub(number * CHUNK).min(CHUNK) as usize;
                for page in &mut chunk[start..] {
                    if let Some(page) = page.take() {
                        pool.release(page);
                    }
                }
            }
            let whole = first.div_ceil(CHUNK);
            object.chunks.retain(|number, _| *number < whole);
            if let Some(page) = object.page(length / PAGE_SIZE) {
                hardware.bytes(page)[(length % PAGE_SIZE) as usize..].fill(0);
            }
        }
        object.length = length;
    }
}

/// Returns where in its page a byte lies.
const fn within(offset: u64) -> usize {
    (offset % PAGE_SIZE) as usize
}

/// Divides bytes from an offset on into parts that lie in one page each: their offsets, and which of the bytes they
/// are.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let place = offset + done as u64;
        let part = done..length.min(done + PAGE_SIZE as usize - within(place));
        done = part.end;
        (!part.is_empty()).then_some((place, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_leave_room_for_whole_pages() {
        let mut objects = Objects::new();
        let id = objects.make_named(b"name", 0);
        objects.get_mut(id).length = 2 * PAGE_SIZE + 5;
        let room = |objects: &Objects, offset, length| objects.get(id).room_for(offset, length);
        assert_eq!(room(&objects, 0, 3 * PAGE_SIZE), Ok(3 * PAGE_SIZE));
        objects.seal(id, seal::GROW);
        assert_eq!(room(&objects, 1, 2 * PAGE_SIZE + 4), Ok(2 * PAGE_SIZE + 4));
        assert_eq!(room(&objects, 1, 2 * PAGE_SIZE + 5), Ok(2 * PAGE_SIZE - 1));
        assert_eq!(room(&objects, 2 * PAGE_SIZE, 6), Err(Errno::EPERM));
        assert_eq!(room(&objects, 2 * PAGE_SIZE + 5, 0), Ok(0));
        assert_eq!(room(&objects, 9 * PAGE_SIZE, 1), Err(Errno::EPERM));
        assert_eq!(room(&objects, u64::MAX, u64::MAX), Err(Errno::EPERM));
        objects.seal(id, seal::WRITE);
        assert_eq!(room(&objects, 0, 1), Err(Errno::EPERM));
        assert_eq!(room(&objects, 0, 0), Ok(0));
    }
}
