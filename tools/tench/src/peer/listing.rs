//! The list of Debian's packages that scripts and experiments name, made anew: `./tench linux-peer --packages`.
//!
//! Debian's own resolver says what each of them needs on a machine that has nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use miette::{Result, WrapErr, miette};

use super::apt::{Apt, RELEASE};
use super::packages::{LIST, Package, Packages};
use crate::process;
use crate::workspace::{self, Workspace};

/// Comment at the beginning of the list.
const ABOUT: &str = "\
# Debian's packages for the scripts of golden.toml: those that it names, with what they need, and the packages that these
# are; and for experiments. Written by `./tench linux-peer --packages`; by `snapshot`, snapshot.debian.org has what the
# archive has no more.
";

/// Writes the list for the packages of these names and what they need, and for those that are needed `alone`, with the
/// versions that the archive has now.
pub fn write(workspace: &Workspace, directory: &Path, names: &BTreeSet<String>, alone: &[String]) -> Result<()> {
    let apt = Apt::new(directory)?;
    apt.update()?;
    let mut needs = BTreeMap::new();
    for name in names {
        let install = ["-qq", "--simulate", "--no-install-recommends", "install", name];
        let said = process::output(apt.command("apt-get").args(install));
        let said = said.wrap_err_with(|| format!("Debian's release {RELEASE} cannot install the package {name}"))?;
        needs.insert(name.clone(), installed(&said).filter(|one| one != name).map(str::to_owned).collect::<Vec<_>>());
    }
    let needed = needs.iter().flat_map(|(name, needs)| needs.iter().chain([name]));
    let all: BTreeSet<&String> = needed.chain(alone).collect();
    let shown = match all.is_empty() {
        true => String::new(),
        false => process::output(apt.command("apt-cache").args(["show", "--no-all-versions"]).args(all))?,
    };
    let list = list(&snapshot(&apt.release()?)?, &packages(&shown, &needs)?)?;
    // Whoever reads it must find it valid.
    Packages::parse(&list)?;
    workspace::write_file(&workspace.root.join(LIST), list.as_bytes())
}

/// Returns the names of the packages that `apt-get install` would install.
fn installed(said: &str) -> impl Iterator<Item = &str> {
    said.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
}

/// Returns a time at which the archive certainly had what its index lists: a day after that was made.
fn snapshot(index: &str) -> Result<String> {
    let date = index.lines().find_map(|line| line.strip_prefix("Date: "));
    let date = date.ok_or_else(|| miette!("the archive's index has no date"))?;
    let arguments = ["-u", "-d", &format!("{date} + 1 day"), "+%Y%m%dT%H%M%SZ"];
    Ok(process::output(Command::new("date").args(arguments))?.trim().to_owned())
}

/// Returns the packages that `apt-cache show` shows, by name.
fn packages(shown: &str, needs: &BTreeMap<String, Vec<String>>) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    for paragraph in shown.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let field = |name: &str| {
            let found = paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.map(str::to_owned).ok_or_else(|| miette!("apt-cache shows a package without {name}:\n{paragraph}"))
        };
        let (name, size) = (field("Package")?, field("Size")?);
        packages.push(Package {
            needs: needs.get(&name).cloned(),
            size: size.parse().map_err(|_| miette!("apt-cache shows {name} with the size {size}"))?,
            name,
            version: field("Version")?,
            architecture: field("Architecture")?,
            sha256: field("SHA256")?,
            path: field("Filename")?,
        });
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

/// Returns the text of the list.
fn list(snapshot: &str, packages: &[Package]) -> Result<String> {
    let mut text = format!("{ABOUT}\nsnapshot = \"{snapshot}\"\n");
    for Package { name, version, architecture, size, sha256, path, needs } in packages {
        let written = write!(
            text,
            "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\narchitecture = \"{architecture}\"\n\
             size = {size}\nsha256 = \"{sha256}\"\npath = \"{path}\"\n"
        );
        written.map_err(|error| miette!("cannot write the list: {error}"))?;
        if let Some(needs) = needs {
            let quoted: Vec<String> = needs.iter().map(|name| format!("    \"{name}\",\n")).collect();
            let lines = if quoted.is_empty() { String::new() } else { format!("\n{}", quoted.concat()) };
            text += &format!("needs = [{lines}]\n");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolver_says_what_is_installed() {
        let said = "Inst libc6 (2.36 Debian:12 [arm64]) []\nConf libc6 (2.36 Debian:12 [arm64])\nInst a (1 x [all])\n";
        assert_eq!(installed(said).collect::<Vec<_>>(), ["libc6", "a"]);
    }

    #[test]
    fn the_snapshot_is_a_day_later() {
        assert_eq!(snapshot("Suite: x\nDate: Sat, 28 Feb 2026 10:16:37 UTC\n").unwrap(), "20260301T101637Z");
        assert!(snapshot("Suite: x\n").unwrap_err().to_string().contains("has no date"));
    }

    /// Returns a package as `apt-cache show` shows it.
    fn shown(name: &str) -> String {
        let sum = "0123456789abcdef".repeat(4);
        format!(
            "Package: {name}\nVersion: 1:2-3\nArchitecture: all\nDescription: x\n Package: y\nFilename: pool/{name}.deb\n\
             Size: 70\nSHA256: {sum}\n\n"
        )
    }

    #[test]
    fn what_is_written_is_read_again() {
        let needs = BTreeMap::from([("b".to_owned(), vec!["a".to_owned()]), ("c".to_owned(), Vec::new())]);
        let found = packages(&["b", "c", "a"].map(shown).concat(), &needs).unwrap();
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((found[0].version.as_str(), found[0].size), ("1:2-3", 70));
        let list = Packages::parse(&list("20260101T000000Z", &found).unwrap()).unwrap();
        let names = ["c", "b"].map(str::to_owned);
        assert_eq!(list.with_needs(&names).unwrap(), [&found[2], &found[0], &found[1]]);
    }

    #[test]
    fn a_package_that_is_shown_without_a_field_is_an_error() {
        for field in ["Package", "Version", "Architecture", "Filename", "Size", "SHA256"] {
            let without = shown("a").replace(&format!("{field}: "), "X: ");
            let error = packages(&without, &BTreeMap::new()).unwrap_err().to_string();
            assert!(error.contains(&format!("a package without {field}:")), "{error}");
        }
        let error = packages(&shown("a").replace("70", "x"), &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("shows a with the size x"), "{error}");
    }
}
