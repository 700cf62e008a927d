//! Files and pipes of the fake system.

use std::collections::BTreeMap;

use tench_shell::parse::Standard;
use tench_shell::system::{Entry, How, Stream, SystemError, Unwritten};

const ARCHIVE: [(&str, &[u8]); 12] = [
    ("bin/cat", b"\x7fELF\0"),
    ("bin/crash", b"\x7fELF\0"),
    ("bin/fail", b"\x7fELF\0"),
    ("bin/grep", b"\x7fELF\0"),
    ("bin/hello", b"\x7fELF\0"),
    ("bin/kill", b"\x7fELF\0"),
    ("bin/timer", b"\x7fELF\0"),
    ("bin/warn", b"\x7fELF\0"),
    ("bin/yes", b"\x7fELF\0"),
    ("etc/motd", b"Welcome.\n"),
    ("share/no-end.txt", b"no line feed at the end"),
    ("share/umlauts.txt", "ääääääääääääää\n".as_bytes()),
];
/// Maximum size of all files that are not of the archive, in bytes.
const SPACE: usize = 4000;

/// Object of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Object {
    File(String),
    Pipe(usize),
}

/// An end of a stream.
#[derive(Clone, Debug)]
struct Held {
    /// The process, or the shell with its name for the end.
    owner: Result<(u64, Standard), Stream>,
    object: Object,
    is_writer: bool,
    position: usize,
}

/// Files and pipes.
pub struct Streams {
    /// Contents of files, and `None` for directories.
    files: BTreeMap<String, Option<Vec<u8>>>,
    pipes: Vec<Vec<u8>>,
    ends: Vec<Held>,
    next: u32,
}

impl Default for Streams {
    fn default() -> Streams {
        let mut files = BTreeMap::new();
        for directory in ["bin", "etc", "share", "tmp"] {
            files.insert(directory.into(), None);
        }
        for (path, contents) in ARCHIVE {
            files.insert(path.into(), Some(contents.to_vec()));
        }
        Streams { files, pipes: Vec::new(), ends: Vec::new(), next: 1 }
    }
}

fn refused<T>(text: &str) -> Result<T, SystemError> {
    Err(SystemError(text.into()))
}

fn normal(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).trim_matches('/').into()
}

fn is_of_archive(path: &str) -> bool {
    ARCHIVE.iter().any(|(file, _)| *file == path || file.starts_with(&format!("{path}/")))
}

impl Streams {
    /// Returns the number of ends that the shell has not closed.
    pub fn held_by_shell(&self) -> usize {
        self.ends.iter().filter(|end| end.owner.is_err()).count()
    }

    /// Returns the number of open ends.
    #[allow(dead_code, reason = "not every test looks at all of them")]
    pub fn held(&self) -> usize {
        self.ends.len()
    }

    pub fn contents(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(&normal(path)).cloned().flatten()
    }

    pub fn entries(&self, directory: &str) -> Result<Vec<Entry>, SystemError> {
        let directory = normal(directory);
        if !directory.is_empty() && self.files.get(&directory) != Some(&None) {
            return refused("there is no such file or directory");
        }
        let prefix = if directory.is_empty() { directory } else { directory + "/" };
        let lies_in = |path: &&String| path.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/'));
        self.files.keys().filter(lies_in).map(|path| self.entry(path)).collect()
    }

    pub fn entry(&self, path: &str) -> Result<Entry, SystemError> {
        let path = normal(path);
        let contents = if path.is_empty() { Some(&None) } else { self.files.get(&path) };
        let Some(contents) = contents else { return refused("there is no such file or directory") };
        let name = path.rsplit('/').next().unwrap().into();
        Ok(Entry { name, size: contents.as_ref().map_or(0, |c| c.len() as u64), is_directory: contents.is_none() })
    }

    pub fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        match self.files.insert(normal(path), None) {
            None => Ok(()),
            Some(before) => {
                self.files.insert(normal(path), before);
                refused("something lies there already")
            }
        }
    }

    pub fn remove(&mut self, path: &str) -> Result<(), SystemError> {
        self.entry(path)?;
        if is_of_archive(&normal(path)) {
            return refused("read only");
        }
        self.files.remove(&normal(path));
        Ok(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), SystemError> {
        self.entry(from)?;
        let contents = self.files.get(&normal(from)).cloned().unwrap();
        self.remove(from)?;
        self.files.insert(normal(to), contents);
        Ok(())
    }

    fn hold(&mut self, object: Object, is_writer: bool) -> Stream {
        let stream = Stream(self.next);
        self.next += 1;
        self.ends.push(Held { owner: Err(stream), object, is_writer, position: 0 });
        stream
    }

    pub fn pipe(&mut self) -> Result<(Stream, Stream), SystemError> {
        self.pipes.push(Vec::new());
        let object = Object::Pipe(self.pipes.len() - 1);
        Ok((self.hold(object.clone(), false), self.hold(object, true)))
    }

    pub fn open(&mut self, path: &str, how: How) -> Result<Stream, SystemError> {
        let path = normal(path);
        if how != How::Read {
            if is_of_archive(&path) {
                return refused("read only");
            }
            let contents = self.files.entry(path.clone()).or_insert(Some(Vec::new()));
            let Some(contents) = contents else { return refused("this is a directory") };
            if how == How::Replace {
                contents.clear();
            }
        } else if self.entry(&path)?.is_directory {
            return refused("this is a directory");
        }
        Ok(self.hold(Object::File(path), how != How::Read))
    }

    fn find(&self, stream: Stream) -> &Held {
        self.ends.iter().find(|end| end.owner == Err(stream)).expect("the shell does not hold this end")
    }

    pub fn share(&mut self, pid: u64, standard: Standard, stream: Stream) -> Result<(), SystemError> {
        let end = Held { owner: Ok((pid, standard)), ..self.find(stream).clone() };
        assert_eq!(end.is_writer, standard != Standard::Input, "an end for the other direction");
        assert!(self.ends.iter().all(|other| other.owner != end.owner), "given twice");
        self.ends.push(end);
        Ok(())
    }

    pub fn close(&mut self, stream: Stream) {
        self.find(stream);
        self.ends.retain(|end| end.owner != Err(stream));
    }

    pub fn process_ended(&mut self, pid: u64) {
        self.ends.retain(|end| !matches!(end.owner, Ok((owner, _)) if owner == pid));
    }

    /// Reads a few bytes.
    pub fn read(&mut self, stream: Stream) -> Vec<u8> {
        let Held { object: Object::File(path), position, .. } = self.find(stream).clone() else {
            panic!("the shell reads from a pipe")
        };
        let contents = self.contents(&path).unwrap();
        let bytes: Vec<u8> = contents[position..].iter().copied().take(5).collect();
        let end = self.ends.iter_mut().find(|end| end.owner == Err(stream)).unwrap();
        end.position += bytes.len();
        bytes
    }

    fn append(&mut self, object: &Object, bytes: &[u8]) -> Result<(), Unwritten> {
        match object {
            Object::Pipe(index) => {
                let has_reader = self.ends.iter().any(|end| end.object == *object && !end.is_writer);
                self.pipes[*index].extend_from_slice(bytes);
                if has_reader { Ok(()) } else { Err(Unwritten::Broken) }
            }
            Object::File(path) => {
                let contents = self.files.get_mut(path).unwrap().as_mut().unwrap();
                if contents.len() + bytes.len() > SPACE {
                    return Err(Unwritten::Refused(SystemError("no space is left".into())));
                }
                contents.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    pub fn write(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Unwritten> {
        let object = self.find(stream).object.clone();
        self.append(&object, bytes)
    }

    /// Writes for a process. Returns false if it has no such stream.
    pub fn written_by(&mut self, pid: u64, standard: Standard, bytes: &[u8]) -> bool {
        let end = self.ends.iter().find(|end| end.owner == Ok((pid, standard)));
        let Some(object) = end.map(|end| end.object.clone()) else { return false };
        // The fake programs ignore the result.
        let _ = self.append(&object, bytes);
        true
    }

    /// Returns everything that a process can read.
    pub fn input_of(&mut self, pid: u64) -> Vec<u8> {
        let end = self.ends.iter().find(|end| end.owner == Ok((pid, Standard::Input)));
        match end.map(|end| end.object.clone()) {
            None => Vec::new(),
            Some(Object::File(path)) => self.contents(&path).unwrap(),
            Some(Object::Pipe(index)) => std::mem::take(&mut self.pipes[index]),
        }
    }
}
