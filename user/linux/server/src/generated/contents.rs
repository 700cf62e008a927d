//! The contents of generated files.

use alloc::format;
use alloc::vec::Vec;

use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, NodeId, Pipe};
use tench_linux_proc::{
    Device, Mount, Processor, System as Facts, devices, file_systems, identifier, maps, mount_information, mounts,
    smaps, smaps_rollup, swaps,
};

use super::fixed::{FIXED, File, Made};
use super::process::{ENTRIES, Entry};
use super::{Owner, PROC_DEVICE, SYS_DEVICE, What};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::calls::{DEVICE, HOST, SLAVES_DEVICE, system_name};
use crate::descriptors::{Contents, DescriptionId};
use crate::exec::FEATURES;
use crate::limits::{Limit, Limits, UNLIMITED};
use crate::mounts::FIRST_DEVICE;
use crate::process::{Process, trimmed};
use crate::processes::Processes;
use crate::spaces::SpaceId;
use crate::thread::State;

/// Kinds of devices that exist.
const DEVICES: [Device; 6] = [
    Device { major: 1, name: "mem" },
    Device { major: 5, name: "/dev/tty" },
    Device { major: 5, name: "/dev/console" },
    Device { major: 5, name: "/dev/ptmx" },
    Device { major: 128, name: "ptm" },
    Device { major: 136, name: "pts" },
];

/// Bytes that an area takes at most while the list of areas is made, without the lines about it.
const KEPT_FOR_AREA: usize = 1024;
/// Bytes that a line about an area takes at most, with room for what comes.
const KEPT_FOR_LINE: usize = 128;
/// Bytes that a group takes at most in the text about a process, and beside it.
const KEPT_FOR_GROUP: usize = 48;
/// Number of lines that say how much of an area is used.
const LINES_OF_USE: usize = 24;
/// Bytes that a file takes at most while the files of areas are found.
const KEPT_FOR_FILE: usize = 64;

/// Mounted file systems.
const MOUNTS: [Mount<'_>; 4] = [
    Mount {
        id: ROOT_MOUNT,
        parent: ROOT_MOUNT,
        device: DEVICE as u32,
        kind: "tmpfs",
        path: "/",
        options: "rw",
        own_options: "rw",
    },
    Mount {
        id: PROC_MOUNT,
        parent: ROOT_MOUNT,
        device: PROC_DEVICE,
        kind: "proc",
        path: "/proc",
        options: "rw,relatime",
        own_options: "rw",
    },
    Mount {
        id: SYS_MOUNT,
        parent: ROOT_MOUNT,
        device: SYS_DEVICE,
        kind: "sysfs",
        path: "/sys",
        options: "rw,relatime",
        own_options: "rw",
    },
    Mount {
        id: SLAVES_MOUNT,
        parent: ROOT_MOUNT,
        device: SLAVES_DEVICE,
        kind: "devpts",
        path: "/dev/pts",
        options: "rw,relatime",
        own_options: "rw,gid=5,mode=620,ptmxmode=000",
    },
];
const ROOT_MOUNT: u32 = 1;
const PROC_MOUNT: u32 = 2;
const SYS_MOUNT: u32 = 3;
const SLAVES_MOUNT: u32 = 4;
/// Number of the first mount of a file server. The next ones follow.
const FIRST_MOUNT: u32 = 5;

impl<M: Machine> Caller<'_, M> {
    /// Returns all mounted file systems.
    fn all_mounts(&self) -> Vec<Mount<'_>> {
        let outside = (0..).zip(&self.system.mounts.all).map(|(index, mounted)| {
            let options = if mounted.mount.is_read_only { "ro,relatime" } else { "rw,relatime" };
            let (id, device) = (FIRST_MOUNT + index, FIRST_DEVICE + index);
            let (kind, path) = ("fuse.tench", &mounted.mount.mount_point[..]);
            Mount { id, parent: ROOT_MOUNT, device, kind, path, options, own_options: &options[..2] }
        });
        MOUNTS.into_iter().chain(outside).collect()
    }

    /// Reads a generated file from an offset on. Who reads on behind what was read last gets the rest of the same
    /// contents; at the beginning and elsewhere, they are made anew.
    ///
    /// # Errors
    /// `ESRCH` if its process does not exist any more.
    pub(crate) fn read_generated(&mut self, description: DescriptionId, offset: u64, into: &mut [u8]) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let node = open_file.node;
        if let Some(What::Entry(owner, index) | What::ThreadEntry(owner, _, index)) = What::of(node) {
            match ENTRIES[index].entry {
                Entry::Pages => return self.read_page_map(owner, offset, into),
                Entry::Memory => {
                    let programs = open_file.programs;
                    return self.read_memory(owner, programs, offset, into);
                }
                _ => {}
            }
        }
        let kept = open_file.contents.take().filter(|contents| offset != 0 && contents.next == offset);
        let bytes = match kept {
            Some(contents) => contents.bytes,
            None => self.contents(node)?.into_boxed_slice(),
        };
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        let contents = Contents { bytes, next: offset + count as u64 };
        self.system.descriptions.get(description).contents = Some(contents);
        Ok(count)
    }

    /// Returns the contents of a generated file.
    pub(crate) fn contents(&mut self, node: NodeId) -> Result<Vec<u8>> {
        match What::of(node).ok_or(Errno::EINVAL)? {
            What::Fixed(index) => match FIXED[index].made {
                Made::Text(text) => Ok(text.into()),
                Made::File(file) => self.fixed_file(file),
                _ => Err(Errno::EINVAL),
            },
            What::Entry(owner, index) => self.process_file(owner, None, ENTRIES[index].entry),
            What::ThreadEntry(owner, thread, index) => self.process_file(owner, Some(thread), ENTRIES[index].entry),
            What::DescriptorFacts(owner, number) => self.descriptor_facts(owner, number),
            _ => Err(Errno::EINVAL),
        }
    }

    fn fixed_file(&mut self, file: File) -> Result<Vec<u8>> {
        Ok(match file {
            File::Processors => self.facts().processors(),
            File::Memory => self.facts().memory(),
            File::Stat => self.facts().stat(),
            File::Uptime => self.facts().uptime(),
            File::Load => self.facts().load(),
            File::Version => {
                let [kind, release, version, _] = system_name();
                format!("{kind} version {release} ({version}) {version}\n").into_bytes()
            }
            File::MountTypes => file_systems(&["sysfs", "tmpfs", "proc", "pipefs", "devpts"]),
            File::Devices => devices(&DEVICES),
            File::Swaps => swaps(),
            File::Type => format!("{}\n", system_name()[0]).into_bytes(),
            File::Host => [&self.system.names[HOST][..], b"\n"].concat(),
            File::Release => format!("{}\n", system_name()[1]).into_bytes(),
            File::MostProcesses => format!("{}\n", Processes::<M>::MAX_COUNT).into_bytes(),
            File::Identifier => identifier(self.random_bytes()),
            File::StartIdentifier => {
                let bytes = match self.system.start_identifier {
                    Some(bytes) => bytes,
                    None => self.random_bytes(),
                };
                self.system.start_identifier = Some(bytes);
                identifier(bytes)
            }
            File::PipeSize => format!("{}\n", Pipe::MOST).into_bytes(),
            File::Ipc(file) => self.system.ipc_file(file)?,
            File::Operations => format!("{}\n", self.operations_wanted()).into_bytes(),
            File::OpenFiles => format!("{}\t0\t{}\n", self.system.descriptions.count(), i64::MAX).into_bytes(),
        })
    }

    fn random_bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.system.memory.hardware.random(&mut bytes);
        bytes
    }

    /// Returns facts about the system.
    fn facts(&self) -> Facts {
        let memory = &self.system.memory;
        let processes = self.viewer().processes();
        let running = processes.iter().filter(|process| !process.is_stopped).map(|process| running_threads(process));
        let threads: usize = processes.iter().map(|process| super::view::threads(process).count()).sum();
        let (made, last) = self.others.made();
        let (pages, free) = self.system.count_pages();
        Facts {
            uptime: memory.hardware.monotonic(),
            start: memory.hardware.start(),
            pages,
            free,
            cached: memory.objects.all().map(|object| object.pages().count() as u64).sum(),
            made,
            running: running.sum::<usize>() as u32,
            threads: threads as u32,
            last,
            // Programs cannot read what the processor is.
            processor: Processor { features: FEATURES, identification: 0, frequency: memory.hardware.frequency() },
        }
    }

    fn process_file(&mut self, owner: Owner, thread: Option<u32>, entry: Entry) -> Result<Vec<u8>> {
        let viewer = self.viewer();
        let process = viewer.process(owner).ok_or(Errno::ESRCH)?;
        if entry.is_private() {
            // The process may have become another user's since the file was opened.
            self.view().check_inspection(owner)?;
        }
        match entry {
            Entry::Name => {
                let mut name = trimmed(process.name_of(thread.unwrap_or(process.id))).to_vec();
                name.push(b'\n');
                Ok(name)
            }
            Entry::Limits => Ok(limits(&process.limits)),
            Entry::Mounts => Ok(mounts(&self.all_mounts())),
            Entry::MountInformation => Ok(mount_information(&self.all_mounts())),
            Entry::ControlGroup => Ok(b"0::/\n".to_vec()),
            Entry::Score => Ok(b"0\n".to_vec()),
            // Nobody has logged in: no user.
            Entry::Login => Ok(format!("{}", u32::MAX).into_bytes()),
            Entry::ScoreAdjustment => Ok(format!("{}\n", process.score_adjustment).into_bytes()),
            Entry::Arguments => self.arguments(owner),
            Entry::Environment => {
                let range = process.layout.environment.clone();
                self.bytes_of(owner, range)
            }
            Entry::Auxiliary => {
                let range = process.layout.auxiliary.clone();
                self.bytes_of(owner, range)
            }
            Entry::Stat => Ok(self.described(owner, thread)?.stat()),
            Entry::Sizes => Ok(self.described(owner, thread)?.statm()),
            Entry::Status => {
                let named = thread.and_then(|thread| process.thread_of(thread));
                let identity = named.map_or_else(|| process.identity(), |thread| &thread.identity);
                let groups = identity.groups.as_deref().map_or(0, <[u32]>::len);
                self.system.memory.check_room(groups * KEPT_FOR_GROUP)?;
                Ok(self.described(owner, thread)?.status())
            }
            Entry::Maps => {
                let space = (!process.has_ended()).then_some(process.space);
                self.check_room_for_areas(space, 1)?;
                Ok(maps(&self.maps(owner)?))
            }
            Entry::Uses => {
                let space = (!process.has_ended()).then_some(process.space);
                self.check_room_for_areas(space, LINES_OF_USE)?;
                Ok(smaps(&self.uses(owner)?))
            }
            Entry::UseOfAll => {
                let space = (!process.has_ended()).then_some(process.space);
                self.check_room_for_areas(space, 1)?;
                match self.uses(owner)? {
                    uses if uses.is_empty() => Err(Errno::ESRCH),
                    uses => Ok(smaps_rollup(&uses)),
                }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Checks that there is memory for so many lines about each area of a process that has not ended.
    fn check_room_for_areas(&mut self, space: Option<SpaceId>, lines: usize) -> Result<()> {
        let areas = space.map_or(0, |space| self.system.spaces.find(space).space.areas().count());
        let files = self.system.memory.objects.count();
        self.system.memory.check_room(areas * (KEPT_FOR_AREA + lines * KEPT_FOR_LINE) + files * KEPT_FOR_FILE)
    }

    fn descriptor_facts(&self, owner: Owner, number: u32) -> Result<Vec<u8>> {
        let process = self.viewer().process(owner).ok_or(Errno::ENOENT)?;
        let descriptor = process.descriptors.get(number.into()).map_err(|_| Errno::ENOENT)?;
        let open_file = self.system.descriptions.find(descriptor.description);
        let closes_on_exec = if descriptor.closes_on_exec { open::CLOEXEC } else { 0 };
        let mount = match What::of(open_file.node) {
            None => ROOT_MOUNT,
            Some(what) if what.is_in_sys() => SYS_MOUNT,
            Some(_) => PROC_MOUNT,
        };
        let (flags, inode) = (open_file.flags | closes_on_exec, self.system.tree.inode(open_file.node));
        let text = format!("pos:\t{}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{inode}\n", open_file.position);
        Ok(text.into_bytes())
    }
}

/// Returns the text of a process's limits.
fn limits(limits: &Limits) -> Vec<u8> {
    let shown = |limit: u64| (limit != UNLIMITED).then_some(limit);
    tench_linux_proc::limits(&limits.all().map(|Limit { soft, hard }| (shown(soft), shown(hard))))
}

/// Returns how many threads of a process run.
fn running_threads<M: Machine>(process: &Process<M>) -> usize {
    process.threads.iter().filter(|thread| thread.state == State::Runs).count()
}
