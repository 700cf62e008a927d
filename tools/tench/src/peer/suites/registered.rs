//! Programs from package registries (npm and PyPI), compiled by their authors for Linux on this processor. The
//! registry's own client fetches the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::LIST;
use crate::peer::apt::Missing;
use crate::process;
use crate::workspace;

/// Directories of the fetched package and of its unpacked files.
const FETCHED: &str = "fetched";
const UNPACKED: &str = "unpacked";

/// A registry, by the name of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Registry {
    Npm,
    Pip,
}

/// The list's entry for a program in a package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// Name of the program.
    pub name: String,
    registry: Registry,
    /// Name of the package.
    package: String,
    version: String,
    /// Name of the package's file, as the client stores it, and its checksum.
    file: String,
    sha256: String,
    /// Path of the program in that file.
    program: String,
}

impl Suite {
    /// Returns the entry's first mistake, if it has one.
    pub fn defect(&self) -> Option<String> {
        let Suite { name, registry, file, sha256, program, .. } = self;
        let kind = match registry {
            Registry::Npm => ".tgz",
            Registry::Pip => ".whl",
        };
        let is_sum = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !file.ends_with(kind) || file.contains('/') {
            Some(format!("`file` of {name} must be the name of a {kind}"))
        } else if program.starts_with('/') || program.contains("..") {
            Some(format!("`program` of {name} must be a path in the package"))
        } else {
            (!is_sum).then(|| format!("`sha256` of {name} must have 64 hexadecimal digits"))
        }
    }

    /// Returns the path that the program has once the package is unpacked.
    pub fn program(&self, own: &Path) -> PathBuf {
        own.join(UNPACKED).join(&self.program)
    }

    /// Fetches the package and unpacks it.
    ///
    /// # Errors
    /// - [`Missing`]: the client or the package is not available.
    /// - The package's checksum is not the listed one, or the package lacks the program.
    pub fn make(&self, own: &Path) -> Result<()> {
        let (fetched, unpacked) = (own.join(FETCHED), own.join(UNPACKED));
        for directory in [&fetched, &unpacked] {
            fs::create_dir_all(directory).into_diagnostic().wrap_err("cannot make a directory for a suite")?;
        }
        let mut command = self.client(&fetched)?;
        process::show(&command);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let file = fetched.join(&self.file);
        if !status.into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?.success() || !file.is_file() {
            let client = command.get_program().to_string_lossy().into_owned();
            return Err(
                Missing::Registered { name: self.package.clone(), version: self.version.clone(), client }.into()
            );
        }
        self.check(&workspace::read_file(&file)?)?;
        process::run(&mut self.unpacker(&file, &unpacked))?;
        if self.program(own).is_file() {
            return Ok(());
        }
        Err(miette!("{LIST}: the package {} has no {}", self.package, self.program))
    }

    /// Returns the command that fetches the package into a directory.
    fn client(&self, directory: &Path) -> Result<Command> {
        let (client, names, package): (_, &[&str], _) = match self.registry {
            Registry::Npm => ("npm", &["npm"], "npm"),
            Registry::Pip => ("pip", &["pip3", "pip"], "python3-pip"),
        };
        let found = process::find_program(names).ok_or(Missing::Client { client, package })?;
        let mut command = Command::new(found);
        match self.registry {
            Registry::Npm => {
                command.args(["pack", "--silent", "--pack-destination"]).arg(directory);
                command.arg(format!("{}@{}", self.package, self.version));
            }
            Registry::Pip => {
                command.args(["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--platform"]);
                command.arg(platform(&self.file)).arg("--dest").arg(directory);
                command.arg(format!("{}=={}", self.package, self.version));
            }
        }
        Ok(command)
    }

    /// Fails if the package's file does not have the listed checksum.
    fn check(&self, content: &[u8]) -> Result<()> {
        let sum: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        if sum == self.sha256 {
            return Ok(());
        }
        let help = format!("expected {}, found {sum}", self.sha256);
        Err(miette!(help = help, "{} is not the one in {LIST}", self.file))
    }

    /// Returns the command that unpacks the package's file: a wheel is a zip file.
    fn unpacker(&self, file: &Path, to: &Path) -> Command {
        let mut command = match self.registry {
            Registry::Npm => {
                let mut command = Command::new("tar");
                command.arg("-xzf").arg(file).arg("-C");
                command
            }
            Registry::Pip => {
                let mut command = Command::new("python3");
                command.args(["-m", "zipfile", "-e"]).arg(file);
                command
            }
        };
        command.arg(to);
        command
    }
}

/// Returns the last platform tag in a wheel's name.
fn platform(file: &str) -> &str {
    let name = file.trim_end_matches(".whl");
    let tag = name.rsplit('-').next().unwrap_or(name);
    tag.rsplit('.').next().unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of `abc`.
    const SUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn suite(registry: &str, file: &str) -> Suite {
        let entry = format!(
            "name = \"p\"\nregistry = \"{registry}\"\npackage = \"@a/p\"\nversion = \"1.2.3\"\nfile = \"{file}\"\n\
             sha256 = \"{SUM}\"\nprogram = \"bin/p\"\n"
        );
        toml::from_str(&entry).unwrap()
    }

    #[test]
    fn mistakes_in_an_entry_are_named() {
        assert_eq!(suite("npm", "p.tgz").defect(), None);
        assert_eq!(suite("pip", "p.whl").defect(), None);
        for (registry, file) in [("npm", "p.whl"), ("pip", "p.tgz"), ("npm", "a/p.tgz")] {
            let defect = suite(registry, file).defect().unwrap();
            assert!(defect.starts_with("`file` of p must be the name of a ."), "{defect}");
        }
        for program in ["/bin/p", "../p"] {
            let wrong = Suite { program: program.to_owned(), ..suite("npm", "p.tgz") };
            assert_eq!(wrong.defect().unwrap(), "`program` of p must be a path in the package");
        }
        let wrong = Suite { sha256: "ba".to_owned(), ..suite("npm", "p.tgz") };
        assert_eq!(wrong.defect().unwrap(), "`sha256` of p must have 64 hexadecimal digits");
    }

    #[test]
    fn another_file_is_an_error() {
        let suite = suite("npm", "p.tgz");
        suite.check(b"abc").unwrap();
        let error = suite.check(b"abd").unwrap_err();
        assert_eq!(error.to_string(), format!("p.tgz is not the one in {LIST}"));
        assert!(error.help().unwrap().to_string().starts_with(&format!("expected {SUM}, found ")));
    }

    #[test]
    fn a_wheel_says_for_which_platform_it_is() {
        assert_eq!(platform("p-1.2-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl"), "musllinux_1_1_aarch64");
        assert_eq!(platform("p-1.2-py3-none-any.whl"), "any");
    }

    #[test]
    fn packages_are_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        workspace::write_file(&path("bin/p"), b"program").unwrap();
        let mut pack = Command::new("tar");
        process::run(pack.arg("-czf").arg(path("p.tgz")).arg("-C").arg(directory.path()).arg("bin")).unwrap();
        let mut pack = Command::new("python3");
        pack.args(["-m", "zipfile", "-c"]).arg(path("p.whl")).arg(path("bin"));
        process::run(&mut pack).unwrap();
        for (registry, file) in [("npm", "p.tgz"), ("pip", "p.whl")] {
            let (suite, own) = (suite(registry, file), path(registry));
            fs::create_dir_all(own.join(UNPACKED)).unwrap();
            process::run(&mut suite.unpacker(&path(file), &own.join(UNPACKED))).unwrap();
            assert_eq!(fs::read(suite.program(&own)).unwrap(), b"program");
        }
    }
}
