//! The output of each program, in a world of vectors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tench::io::{Error, Read, Write};
use tench::stream::protocol::Error as StreamError;
use tench_protocol::Failure;
use tench_text::{Problem, World, run};

/// Files by path; standard output is the file with an empty name, which breaks after so many bytes.
#[derive(Clone)]
struct Vectors {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    input: &'static str,
    patience: usize,
}

struct Reader(Vec<u8>);

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let count = buffer.len().min(self.0.len()).min(7);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

struct Writer {
    world: Vectors,
    path: String,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut files = self.world.files.borrow_mut();
        let file = files.get_mut(&self.path).unwrap();
        if file.len() + bytes.len() > self.world.patience {
            return Err(Error::Stream(Failure::Refused(StreamError::Broken)));
        }
        file.extend_from_slice(bytes);
        Ok(())
    }
}

impl World for Vectors {
    fn open(&mut self, path: &str) -> Result<Box<dyn Read>, Error> {
        let found = self.files.borrow().get(path).cloned();
        let missing = Error::Files(Failure::Refused(tench::files::Error::NoSuchFile));
        Ok(Box::new(Reader(found.ok_or(missing)?)))
    }

    fn create(&mut self, path: &str, append: bool) -> Result<Box<dyn Write>, Error> {
        let mut files = self.files.borrow_mut();
        let file = files.entry(path.into()).or_default();
        if !append {
            file.clear();
        }
        Ok(Box::new(Writer { world: self.clone(), path: path.into() }))
    }

    fn is_directory(&mut self, path: &str) -> bool {
        path == "tmp"
    }

    fn input(&mut self) -> Box<dyn Read> {
        Box::new(Reader(self.input.as_bytes().to_vec()))
    }

    fn output(&mut self) -> Box<dyn Write> {
        Box::new(Writer { world: self.clone(), path: String::new() })
    }
}

fn world() -> Vectors {
    let files = [("", ""), ("a", "one\ntwo\nTwo and a half\n"), ("b", "10\n9\n-3\n9\nlast"), ("empty", "")];
    let files = files.into_iter().map(|(path, text)| (path.into(), text.into())).collect();
    Vectors { files: Rc::new(RefCell::new(files)), input: "from\nthe terminal\n", patience: 10_000 }
}

/// Returns what a command line writes to standard output, and its result.
fn output(line: &str) -> (String, Result<bool, Problem>) {
    let mut world = world();
    let words: Vec<&str> = line.split(' ').collect();
    let result = run(words[0], &words[1..], &mut world);
    let text = String::from_utf8(world.files.borrow()[""].clone()).unwrap();
    (text, result)
}

#[track_caller]
fn writes(line: &str, expected: &str) {
    assert_eq!(output(line), (expected.into(), Ok(true)), "{line}");
}

#[track_caller]
fn complains(line: &str, expected: &str) {
    let (_, result) = output(line);
    let Err(Problem::Said(text)) = result else { panic!("{line}: {result:?}") };
    assert!(text.contains(expected), "{line}: {text}");
}

#[test]
fn cat_writes_files_one_after_another() {
    writes("cat", "from\nthe terminal\n");
    writes("cat b empty -", "10\n9\n-3\n9\nlastfrom\nthe terminal\n");
    complains("cat a missing", "missing: there is no such file");
    complains("cat -x", "no option -x; usage: cat [FILE...]");
}

#[test]
fn wc_counts() {
    writes("wc", "      2       3      18\n");
    writes("wc -l a b", "      3 a\n      4 b\n      7 total\n");
    writes("wc -wc a", "      6      23 a\n");
    writes("wc empty", "      0       0       0 empty\n");
}

#[test]
fn grep_finds_lines() {
    writes("grep wo a", "two\nTwo and a half\n");
    writes("grep -in TWO a", "2:two\n3:Two and a half\n");
    writes("grep -v e a b", "a:two\na:Two and a half\nb:10\nb:9\nb:-3\nb:9\nb:last\n");
    writes("grep -c 9 a b", "a:0\nb:2\n");
    writes("grep -- -3 b", "-3\n");
    assert_eq!(output("grep nothing a"), (String::new(), Ok(false)));
    complains("grep", "argument missing; usage: grep");
}

#[test]
fn head_stops() {
    writes("head -n 2 a", "one\ntwo\n");
    writes("head -n1 a b", "one\n10\n");
    writes("head -n 0 a", "");
    writes("head b", "10\n9\n-3\n9\nlast\n");
    complains("head -n x a", "\"x\" is no number of lines");
    complains("head -n", "-n needs a value");
}

#[test]
fn sort_sorts() {
    writes("sort b", "-3\n10\n9\n9\nlast\n");
    writes("sort -n b", "-3\nlast\n9\n9\n10\n");
    writes("sort -ru b", "last\n9\n10\n-3\n");
    writes("sort empty", "");
}

#[test]
fn tee_and_cp_write_files() {
    let mut world = world();
    run("tee", &["x", "y"], &mut world).unwrap();
    run("tee", &["-a", "y"], &mut world).unwrap();
    run("cp", &["a", "tmp"], &mut world).unwrap();
    run("cp", &["b", "c"], &mut world).unwrap();
    let files = world.files.borrow();
    let input = world.input.as_bytes();
    assert_eq!((files["x"].as_slice(), &files["y"], &files[""]), (input, &input.repeat(2), &input.repeat(2)));
    assert_eq!((&files["tmp/a"], &files["c"]), (&files["a"], &files["b"]));
    complains("cp a", "usage: cp FROM TO");
    complains("cp a b c", "usage: cp FROM TO");
    complains("cp /a a", "are the same file");
}

#[test]
fn a_writer_without_a_reader_ends() {
    for line in ["yes", "yes a b", "cat a", "head a", "sort a", "wc a", "tee", "grep t a"] {
        let mut world = Vectors { patience: if line.starts_with("yes") { 5000 } else { 3 }, ..world() };
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(run(words[0], &words[1..], &mut world), Err(Problem::Broken), "{line}");
    }
    complains("dog", "by its name");
}
