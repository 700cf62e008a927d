//! Files and directories against a slow model.

use super::*;

/// A file or directory in the slow model.
struct Thing {
    /// The bytes of a file.
    bytes: Option<Vec<u8>>,
    /// Time of its last change, in nanoseconds.
    modified: u64,
    /// Number of a file's changes.
    changes: u64,
}

/// The slow model.
#[derive(Default)]
struct Model {
    /// Files and directories by path, without a leading `/`, but for the root directory.
    things: BTreeMap<String, Thing>,
    /// Time of the root's last change, in nanoseconds.
    root: u64,
    now: u64,
}

impl Model {
    /// Checks that the directory of a path exists, and returns the error if not.
    fn check_parent(&self, path: &str) -> Result<(), Error> {
        for (place, _) in path.match_indices('/') {
            match self.things.get(&path[..place]) {
                Some(Thing { bytes: None, .. }) => {}
                Some(Thing { bytes: Some(_), .. }) => return Err(Error::NotADirectory),
                None => return Err(Error::NoSuchFile),
            }
        }
        Ok(())
    }

    /// Notes that the entry of a path has changed, in its directory.
    fn entry_changed(&mut self, path: &str) {
        match path.rsplit_once('/') {
            Some((directory, _)) => self.things.get_mut(directory).unwrap().modified = self.now,
            None => self.root = self.now,
        }
    }

    fn add(&mut self, path: &str, bytes: Option<Vec<u8>>) {
        self.entry_changed(path);
        self.things.insert(path.into(), Thing { bytes, modified: self.now, changes: 0 });
    }

    /// Opens a file for writing; a new one if it does not exist, except with `Update`.
    fn open(&mut self, path: &str, how: How) -> Result<&mut Thing, Error> {
        self.check_parent(path)?;
        if !self.things.contains_key(path) && how != How::Update {
            self.add(path, Some(Vec::new()));
        }
        let thing = self.things.get_mut(path).ok_or(Error::NoSuchFile)?;
        let bytes = thing.bytes.as_mut().ok_or(Error::IsDirectory)?;
        if how == How::Write {
            bytes.clear();
            (thing.modified, thing.changes) = (self.now, thing.changes + 1);
        }
        Ok(thing)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Error> {
        self.check_parent(path)?;
        if self.things.contains_key(path) {
            return Err(Error::Exists);
        }
        self.add(path, None);
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), Error> {
        self.check_parent(path)?;
        if !self.things.contains_key(path) {
            return Err(Error::NoSuchFile);
        }
        if self.things.keys().any(|other| is_below(other, path)) {
            return Err(Error::NotEmpty);
        }
        self.things.remove(path);
        self.entry_changed(path);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        self.check_parent(from)?;
        self.check_parent(to)?;
        let is_directory = self.things.get(from).ok_or(Error::NoSuchFile)?.bytes.is_none();
        if is_directory && is_below(to, from) {
            return Err(Error::IntoItself);
        }
        match self.things.get(to) {
            Some(_) if from == to => return Ok(()),
            Some(Thing { bytes: None, .. }) => return Err(Error::IsDirectory),
            Some(_) if is_directory => return Err(Error::NotADirectory),
            _ => {}
        }
        let is_moved = |path: &str| path == from || is_below(path, from);
        let moved: Vec<String> = self.things.keys().filter(|path| is_moved(path)).cloned().collect();
        for path in moved {
            let thing = self.things.remove(&path).unwrap();
            self.things.insert(format!("{to}{}", &path[from.len()..]), thing);
        }
        self.entry_changed(from);
        self.entry_changed(to);
        Ok(())
    }

    /// Returns the names in a directory.
    fn names(&self, directory: &str) -> Vec<&str> {
        let below = self.things.keys().filter(|other| is_below(other, directory));
        below.map(|other| &other[directory.len() + 1..]).filter(|name| !name.contains('/')).collect()
    }

    /// Compares the times and numbers of all changes.
    fn check_changes(&self, ends: &Ends<()>) {
        assert_eq!(ends.tree.status("/").unwrap().modified, self.root, "the root");
        for (path, thing) in &self.things {
            let status = ends.tree.status(path).unwrap();
            assert_eq!((status.modified, status.changes), (thing.modified, thing.changes), "{path}");
        }
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[derive(Clone, Debug)]
enum Step {
    Read { path: String },
    Write { path: String, at: u64, length: usize },
    Append { path: String, length: usize },
    Truncate { path: String, size: u64 },
    Replace { path: String, length: usize },
    MakeDirectory { path: String },
    Remove { path: String },
    Rename { from: String, to: String },
}

fn step() -> impl Strategy<Value = Step> {
    // Many writes are empty.
    let length = prop_oneof![1 => Just(0), 4 => 0..=MAX_DATA];
    let size = 0..3 * BLOCK as u64;
    prop_oneof![
        path().prop_map(|path| Step::Read { path }),
        (path(), size.clone(), length.clone()).prop_map(|(path, at, length)| Step::Write { path, at, length }),
        (path(), length.clone()).prop_map(|(path, length)| Step::Append { path, length }),
        (path(), size).prop_map(|(path, size)| Step::Truncate { path, size }),
        (path(), length).prop_map(|(path, length)| Step::Replace { path, length }),
        path().prop_map(|path| Step::MakeDirectory { path }),
        path().prop_map(|path| Step::Remove { path }),
        (path(), path()).prop_map(|(from, to)| Step::Rename { from, to }),
    ]
}

/// Opens a file in both, compares the results, does the same to both files, and closes ours.
fn change(
    ends: &mut Ends<()>,
    model: &mut Model,
    (path, how): (&str, How),
    change: impl FnOnce(&mut Ends<()>, u64, &mut Vec<u8>) -> bool,
) {
    let ours = ends.open(entitled(PROCESS), path, how);
    let now = model.now;
    let theirs = model.open(path, how);
    assert_eq!(ours.as_ref().err(), theirs.as_ref().err(), "{path}");
    if let (Ok(end), Ok(thing)) = (ours, theirs) {
        if change(ends, end, thing.bytes.as_mut().unwrap()) {
            (thing.modified, thing.changes) = (now, thing.changes + 1);
        }
        ends.close(end, |()| ()).unwrap();
    }
}

/// Does a step on both, with bytes made from `seed`.
fn run(ends: &mut Ends<()>, model: &mut Model, step: &Step, seed: u8) {
    let bytes = |length: usize| -> Vec<u8> { (0..length).map(|n| seed.wrapping_add(n as u8) | 1).collect() };
    match step {
        Step::Read { path } => {
            let theirs = model.check_parent(path).and_then(|()| {
                let thing = model.things.get(path).ok_or(Error::NoSuchFile)?;
                thing.bytes.clone().ok_or(Error::IsDirectory)
            });
            assert_eq!(contents(ends, path), theirs, "{path}");
        }
        Step::Write { path, at, length } => change(ends, model, (path, How::Update), |ends, end, file| {
            ends.seek(end, *at).unwrap();
            write(ends, end, &bytes(*length)).unwrap();
            if *length > 0 {
                file.resize(file.len().max(*at as usize + length), 0);
                file[*at as usize..*at as usize + length].copy_from_slice(&bytes(*length));
            }
            *length > 0
        }),
        Step::Append { path, length } => change(ends, model, (path, How::Append), |ends, end, file| {
            write(ends, end, &bytes(*length)).unwrap();
            file.extend(bytes(*length));
            *length > 0
        }),
        Step::Replace { path, length } => change(ends, model, (path, How::Write), |ends, end, file| {
            write(ends, end, &bytes(*length)).unwrap();
            *file = bytes(*length);
            *length > 0
        }),
        Step::Truncate { path, size } => change(ends, model, (path, How::Update), |ends, end, file| {
            ends.truncate(end, *size).unwrap();
            file.resize(*size as usize, 0);
            true
        }),
        Step::MakeDirectory { path } => {
            assert_eq!(ends.tree.make_directory(entitled(PROCESS), path), model.make_directory(path), "{path}");
        }
        Step::Remove { path } => {
            assert_eq!(ends.tree.remove(entitled(PROCESS), path), model.remove(path), "{path}");
        }
        Step::Rename { from, to } => {
            assert_eq!(ends.tree.rename(entitled(PROCESS), from, to), model.rename(from, to), "{from} to {to}");
        }
    }
}

proptest! {
    #[test]
    fn the_tree_does_what_the_model_does(steps in prop::collection::vec(step(), 1..80)) {
        let mut ends = Ends::new(Tree::new(1000, 1000, FREQUENCY));
        let mut model = Model::default();
        for (step, seed) in steps.iter().zip(0..) {
            ends.tree.now = Instant::from_ticks(u64::from(seed) + 1);
            model.now = 16 * (u64::from(seed) + 1);
            run(&mut ends, &mut model, step, seed);
            ends.check_invariants();
            model.check_changes(&ends);
        }
        for (path, thing) in &model.things {
            match &thing.bytes {
                Some(bytes) => prop_assert_eq!(&contents(&mut ends, path).unwrap(), bytes),
                None => prop_assert_eq!(names(&ends, path), model.names(path)),
            }
        }
        // Reading it all has changed nothing.
        model.check_changes(&ends);
    }
}
