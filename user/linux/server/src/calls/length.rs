//! Calls that change the length of files.

use tench_linux_calls::numbers::{AT_FDCWD, fallocate, open, permission, seal};
use tench_linux_files::{Errno, Kind, Last, NodeId};
use tench_linux_memory::PAGE_SIZE;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::mounts::Changed;

impl<M: Machine> Caller<'_, M> {
    /// Changes the length of an open file.
    pub fn ftruncate(&mut self, descriptor: u64, length: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let (node, writes) = (open_file.node, open_file.writes());
        if length.cast_signed() < 0 || !writes {
            return Err(Errno::EINVAL);
        }
        self.set_length(node, length)
    }

    /// Changes the length of a file.
    pub fn truncate(&mut self, path: u64, length: u64) -> Result {
        if length.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let node = self.find(AT_FDCWD as u64, path, Last::Follow)?;
        if self.system.tree.node(node).is_directory() {
            return Err(Errno::EISDIR);
        }
        if matches!(self.system.tree.node(node).kind, Kind::Regular(_)) {
            self.may_access(node, permission::WRITE)?;
            self.may_write_in_mount(node)?;
        }
        self.set_length(node, length)
    }

    /// Changes the length of a file.
    pub(crate) fn set_length(&mut self, node: NodeId, length: u64) -> Result {
        self.change_length(node, length, Changed::Length(length))
    }

    fn change_length(&mut self, node: NodeId, length: u64, changed: Changed) -> Result {
        let Kind::Regular(object) = self.system.tree.node(node).kind else { return Err(Errno::EINVAL) };
        let memory = &mut self.system.memory;
        let (present, seals) = (memory.objects.get(object).length(), memory.objects.get(object).seals());
        let is_sealed = length < present && seals & seal::SHRINK != 0 || length > present && seals & seal::GROW != 0;
        if is_sealed {
            return Err(Errno::EPERM);
        }
        if length > present {
            self.check_length(length)?;
        }
        let memory = &mut self.system.memory;
        if length < present {
            for used in self.system.spaces.iter_mut() {
                used.space.truncate(memory, object, length.div_ceil(PAGE_SIZE));
            }
        }
        memory.objects.set_length(&mut memory.pool, &mut memory.hardware, object, length);
        self.distrust(node);
        self.note_contents(node, object, || changed);
        Ok(0)
    }

    /// Makes room for a part of a file, which becomes as long as that, or makes a part zero. As on Linux's file system
    /// in memory, parts cannot be cut out or moved.
    pub fn fallocate(&mut self, descriptor: u64, mode: u64, offset: u64, length: u64) -> Result {
        const HOLE: u32 = fallocate::KEEP_SIZE | fallocate::PUNCH_HOLE;
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let (node, writes) = (open_file.node, open_file.writes() && open_file.flags & open::PATH == 0);
        if offset.cast_signed() < 0 || length.cast_signed() <= 0 {
            return Err(Errno::EINVAL);
        }
        let mode = mode as u32;
        if !matches!(mode, 0 | fallocate::KEEP_SIZE | HOLE) {
            return Err(Errno::EOPNOTSUPP);
        }
        if !writes {
            return Err(Errno::EBADF);
        }
        let Kind::Regular(object) = self.system.tree.node(node).kind else {
            let is_pipe = matches!(self.system.tree.node(node).kind, Kind::Fifo(_));
            return Err(if is_pipe { Errno::ESPIPE } else { Errno::ENODEV });
        };
        let end = offset.checked_add(length).filter(|end| i64::try_from(*end).is_ok()).ok_or(Errno::EFBIG)?;
        let contents = self.system.memory.objects.get(object);
        let (present, seals) = (contents.length(), contents.seals());
        let is_sealed = match mode {
            HOLE => seals & (seal::WRITE | seal::FUTURE_WRITE) != 0,
            _ => seals & seal::GROW != 0 && end > present,
        };
        if is_sealed {
            return Err(Errno::EPERM);
        }
        if mode == HOLE {
            return self.clear(node, offset..end.min(present));
        }
        if mode == 0 && end > present {
            return self.change_length(node, end, Changed::Least(end));
        }
        Ok(0)
    }

    /// Makes a part of a file zero.
    fn clear(&mut self, node: NodeId, part: core::ops::Range<u64>) -> Result {
        let Kind::Regular(object) = self.system.tree.node(node).kind else { return Err(Errno::EINVAL) };
        let memory = &mut self.system.memory;
        let part = part.start..part.end.max(part.start);
        memory.objects.clear(&mut memory.pool, &mut memory.hardware, object, part.clone())?;
        self.note_contents(node, object, || Changed::Bytes(part));
        Ok(0)
    }
}
