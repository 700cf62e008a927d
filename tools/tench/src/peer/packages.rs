//! Debian's packages that scripts and experiments use: `tests/linux/packages.toml` has the version and the checksum of
//! each, so that everybody runs the same programs. A package is fetched when it is needed first, and is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use miette::{IntoDiagnostic, Result, miette};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::apt::{Apt, Missing};
use crate::workspace::{self, Workspace};

/// The list, which [`super::listing`] writes.
pub const LIST: &str = "tests/linux/packages.toml";
/// Folder of the packages that are kept, in the peer's.
const DIRECTORY: &str = "packages";
/// Folder of the tools' own files, in the peer's.
const TOOLS: &str = "apt-packages";
/// Advice if the list does not have what a script names.
pub const UPDATE: &str = "./tench linux-peer --packages writes the list anew, with the versions of today";
/// Address below which the archive is as it was at a time.
const SNAPSHOT: &str = "http://snapshot.debian.org/archive/debian";

/// Held by the worker that fetches packages, so that each is fetched once.
static FETCHING: Mutex<()> = Mutex::new(());

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// Time at which the archive had these versions, as [`SNAPSHOT`] names it.
    snapshot: String,
    #[serde(rename = "package", default)]
    packages: Vec<Package>,
}

/// A package of the list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub architecture: String,
    /// Number of bytes.
    pub size: u64,
    /// Checksum, in hexadecimal digits.
    pub sha256: String,
    /// Path of the file in the archive.
    pub path: String,
    /// Packages that have to be there with it, and theirs; only with those that scripts name.
    pub needs: Option<Vec<String>>,
}

impl Package {
    fn problem(&self) -> Option<&'static str> {
        let is_lower_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.name.is_empty() || self.version.is_empty() {
            Some("its name or its version is empty")
        } else if self.sha256.len() != 64 || !self.sha256.bytes().all(is_lower_hexadecimal) {
            Some("`sha256` must have 64 hexadecimal digits, small ones")
        } else if !["arm64", "all"].contains(&self.architecture.as_str()) {
            Some("`architecture` must be \"arm64\" or \"all\"")
        } else if !self.path.starts_with("pool/") || !self.path.ends_with(".deb") || self.path.contains("..") {
            Some("`path` must be pool/.../FILE.deb")
        } else {
            None
        }
    }

    /// Returns the name of its file.
    fn file(&self) -> &Path {
        Path::new(Path::new(&self.path).file_name().unwrap_or_default())
    }

    /// Fails if a file's content is not the package that was listed.
    fn check(&self, content: &[u8], from: &str) -> Result<()> {
        let found: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        if found == self.sha256 {
            return Ok(());
        }
        Err(miette!(
            help = format!("remove the file if it is kept here, and try again; if the list is wrong, {UPDATE}"),
            "{from} is not the package {} {} of {LIST}: it has {} bytes and the SHA-256 {found}; listed are {} and {}",
            self.name,
            self.version,
            content.len(),
            self.size,
            self.sha256
        ))
    }
}

impl Packages {
    /// Returns a list without packages, by which others are fetched that an archive of this time has.
    pub fn of(snapshot: String) -> Packages {
        Packages { snapshot, packages: Vec::new() }
    }

    /// Reads the list.
    pub fn load(workspace: &Workspace) -> Result<Packages> {
        Packages::parse(&workspace::read_text(&workspace.root.join(LIST))?)
    }

    /// Reads a list from its text.
    pub fn parse(text: &str) -> Result<Packages> {
        let list: Packages = toml::from_str(text).map_err(|error| miette!(help = UPDATE, "{LIST}: {error}"))?;
        let digits = list.snapshot.bytes().filter(u8::is_ascii_digit).count();
        if digits != 14 || list.snapshot.len() != 16 {
            let example = "a time such as \"20260101T000000Z\"";
            return Err(miette!(help = UPDATE, "{LIST}: `snapshot` is {:?}, but must be {example}", list.snapshot));
        }
        for (index, package) in list.packages.iter().enumerate() {
            let is_listed = |name: &String| list.packages.iter().any(|one| one.name == *name);
            let problem = if list.packages[..index].iter().any(|one| one.name == package.name) {
                "it is listed twice".to_owned()
            } else if let Some(name) = package.needs.iter().flatten().find(|name| !is_listed(name)) {
                format!("it needs {name}, which is not listed")
            } else if let Some(problem) = package.problem() {
                problem.to_owned()
            } else {
                continue;
            };
            return Err(miette!(help = UPDATE, "{LIST}: the package {}: {problem}", package.name));
        }
        Ok(list)
    }

    /// Returns the packages of these names with all that they need, each once.
    pub fn with_needs(&self, names: &[String]) -> Result<Vec<&Package>> {
        let mut all: Vec<&Package> = Vec::new();
        for name in names {
            let find = |name: &String| self.packages.iter().find(|one| one.name == *name);
            let package = find(name).filter(|package| package.needs.is_some());
            let package = package.ok_or_else(|| miette!(help = UPDATE, "{LIST} does not have what {name} needs"))?;
            let needed = package.needs.iter().flatten().filter_map(find);
            for one in needed.chain([package]) {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        Ok(all)
    }

    /// Returns the packages of these names, without what they need.
    pub fn alone(&self, names: &[&str]) -> Result<Vec<&Package>> {
        let find = |name: &&str| {
            let package = self.packages.iter().find(|one| one.name == *name);
            package.ok_or_else(|| miette!(help = UPDATE, "{LIST} does not have the package {name}"))
        };
        names.iter().map(find).collect()
    }

    /// Returns the files of packages, which are fetched into the peer's directory if they are not there.
    ///
    /// # Errors
    /// [`Missing`], if one is not there and cannot be fetched; and a file that is not what the list says.
    pub fn files(&self, directory: &Path, packages: &[&Package]) -> Result<Vec<PathBuf>> {
        let _one_at_a_time = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = directory.join(DIRECTORY);
        let mut apt = None;
        let mut file = |package: &&Package| {
            let file = kept.join(package.file());
            if !file.is_file() {
                let apt = match &mut apt {
                    Some(apt) => apt,
                    none => none.insert(Apt::new(&directory.join(TOOLS))?),
                };
                let places = [apt.archive.clone(), format!("{SNAPSHOT}/{}", self.snapshot)];
                fetch(package, &places, &file, |address, to| apt.fetch(address, to))?;
            } else {
                package.check(&workspace::read_file(&file)?, &file.display().to_string())?;
            }
            Ok(file)
        };
        packages.iter().map(&mut file).collect()
    }
}

/// Fetches a package from the first place that has it.
fn fetch(package: &Package, places: &[String], file: &Path, get: impl Fn(&str, &Path) -> Result<bool>) -> Result<()> {
    let unfinished = std::path::absolute(file.with_extension("unfinished")).into_diagnostic()?;
    for place in places {
        let address = format!("{place}/{}", package.path);
        eprintln!("fetching {address}");
        // A fetch must not add to what an earlier one has left. This makes the directory, too.
        workspace::write_file(&unfinished, b"")?;
        fs::remove_file(&unfinished).into_diagnostic()?;
        let is_there = get(&address, &unfinished)?;
        let content = if is_there { workspace::read_file(&unfinished)? } else { Vec::new() };
        let _ = fs::remove_file(&unfinished);
        if is_there {
            package.check(&content, &address)?;
            return workspace::write_file(file, &content);
        }
    }
    let package = format!("{} {}", package.name, package.version);
    Err(Missing::Package { package, places: places.to_vec() })?
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn entry(name: &str, rest: &str) -> String {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"1\"\narchitecture = \"arm64\"\nsize = 3\n\
             sha256 = \"{SUM}\"\npath = \"pool/main/{name}.deb\"\n{rest}\n"
        )
    }

    fn list(entries: &[String]) -> Result<Packages> {
        Packages::parse(&format!("snapshot = \"20260101T000000Z\"\n{}", entries.concat()))
    }

    #[test]
    fn what_packages_need_comes_before_them_and_once() {
        let entries = ["c", "d"].map(|name| entry(name, ""));
        let named = [entry("a", "needs = [\"c\"]"), entry("b", "needs = [\"d\", \"c\"]")];
        let list = list(&[&entries[..], &named].concat()).unwrap();
        let names = |of: &[&str]| {
            let of: Vec<String> = of.iter().map(|name| name.to_string()).collect();
            list.with_needs(&of).map(|all| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(&["a", "b"]).unwrap(), "c a d b");
        for unknown in ["c", "e"] {
            let error = names(&[unknown]).unwrap_err();
            assert_eq!(error.to_string(), format!("{LIST} does not have what {unknown} needs"));
            assert_eq!(error.help().unwrap().to_string(), UPDATE);
        }
        let alone = |of: &[&str]| list.alone(of).map(|all| all.iter().map(|one| one.name.as_str()).collect::<String>());
        assert_eq!(alone(&["b", "c"]).unwrap(), "bc");
        let error = alone(&["b", "e"]).unwrap_err();
        assert_eq!(error.to_string(), format!("{LIST} does not have the package e"));
        assert_eq!(error.help().unwrap().to_string(), UPDATE);
    }

    #[test]
    fn mistakes_in_the_list_are_named() {
        let message = |entries: &[String]| list(entries).unwrap_err().to_string();
        let with = |from: &str, to: &str| message(&[entry("a", "").replace(from, to)]);
        assert!(message(&[entry("a", ""), entry("a", "")]).ends_with("the package a: it is listed twice"));
        assert!(message(&[entry("a", "needs = [\"b\"]")]).ends_with("it needs b, which is not listed"));
        assert!(with("\"1\"", "\"\"").ends_with("its name or its version is empty"));
        assert!(with("ba78", "ba7").ends_with("64 hexadecimal digits, small ones"));
        assert!(with("ba78", "BA78").ends_with("64 hexadecimal digits, small ones"));
        assert!(with("arm64", "amd64").ends_with("`architecture` must be \"arm64\" or \"all\""));
        for path in ["main/a.deb", "pool/main/a.tar", "pool/../../a.deb"] {
            assert!(with("pool/main/a.deb", path).ends_with("`path` must be pool/.../FILE.deb"), "{path}");
        }
        assert!(with("size", "bytes").contains("unknown field `bytes`"));
        let error = Packages::parse("snapshot = \"today\"").unwrap_err().to_string();
        assert!(error.contains("`snapshot` is \"today\", but must be a time"), "{error}");
    }

    /// Fetches the package `a` with `get` from two places.
    fn fetch_from(directory: &Path, get: impl Fn(&str, &Path) -> Result<bool>) -> Result<()> {
        let list = list(&[entry("a", "")]).unwrap();
        let places = ["http://one", "http://two"].map(str::to_owned);
        fetch(&list.packages[0], &places, &directory.join("packages/a.deb"), get)
    }

    #[test]
    fn a_package_comes_from_the_first_place_that_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let second = |address: &str, file: &Path| {
            fs::write(file, "abc").unwrap();
            Ok(address == "http://two/pool/main/a.deb")
        };
        fetch_from(directory.path(), second).unwrap();
        let kept = directory.path().join("packages/a.deb");
        assert_eq!(fs::read(&kept).unwrap(), b"abc");
        assert!(!kept.with_extension("unfinished").exists());
    }

    #[test]
    fn a_package_that_nobody_has_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let error = fetch_from(directory.path(), |_, _| Ok(false)).unwrap_err();
        assert!(Missing::is_reason_of(&error));
        assert!(error.to_string().contains("package a 1 is not kept here"), "{error}");
        assert!(error.to_string().ends_with("from http://one, nor from http://two"), "{error}");
    }

    #[test]
    fn a_wrong_file_is_a_mistake_and_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let wrong = |_: &str, file: &Path| {
            fs::write(file, "ab").unwrap();
            Ok(true)
        };
        let error = fetch_from(directory.path(), wrong).unwrap_err();
        assert!(!Missing::is_reason_of(&error) && !directory.path().join("packages/a.deb").exists());
        let text = error.to_string();
        assert!(text.starts_with(&format!("http://one/pool/main/a.deb is not the package a 1 of {LIST}: ")), "{text}");
        assert!(text.contains("it has 2 bytes") && text.ends_with(&format!("listed are 3 and {SUM}")), "{text}");
        assert!(error.help().unwrap().to_string().contains("remove the file"));
    }

    #[test]
    fn a_kept_file_is_checked_too() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join(DIRECTORY);
        fs::create_dir(&kept).unwrap();
        let list = list(&[entry("a", "needs = []")]).unwrap();
        let packages = list.with_needs(&["a".to_owned()]).unwrap();
        fs::write(kept.join("a.deb"), "abc").unwrap();
        assert_eq!(list.files(directory.path(), &packages).unwrap(), [kept.join("a.deb")]);
        fs::write(kept.join("a.deb"), "abd").unwrap();
        let error = list.files(directory.path(), &packages).unwrap_err().to_string();
        assert!(error.contains("packages/a.deb is not the package a 1"), "{error}");
    }
}
