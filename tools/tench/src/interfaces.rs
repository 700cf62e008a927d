//! Pages of the manual and C headers, which are generated from interfaces: the pages by the command
//! `./tench interfaces`, the headers whenever a program in C is built.

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tench_interface_compiler::files::{self, File, PAGES, Wrong};

use crate::cli::InterfacesOptions;
use crate::workspace::Workspace;

/// Folder of `target` for the headers: the folder `tench` in it is that of `#include <tench/NAME.h>`.
const INCLUDE: &str = "tench/include";

/// Writes the pages, or says which differ; returns status 1 if one does. Writes the headers in any case.
pub fn run(workspace: &Workspace, options: &InterfacesOptions) -> Result<u8> {
    let pages = generated(files::pages(&workspace.root))?;
    let folder = workspace.root.join(PAGES);
    let different: Vec<&File> = pages.iter().filter(|page| !is_written(&folder, page)).collect();
    for page in &different {
        let shown = Path::new(PAGES).join(&page.0);
        if options.check {
            println!("{} is not what its interface says; ./tench interfaces writes it", shown.display());
        } else {
            write(&folder, page)?;
            println!("{}", shown.display());
        }
    }
    println!("headers for C: {}", write_headers(workspace)?.display());
    Ok(u8::from(options.check && !different.is_empty()))
}

/// Writes the headers that have changed. Returns the folder to include from.
pub fn write_headers(workspace: &Workspace) -> Result<PathBuf> {
    let include = workspace.target.join(INCLUDE);
    let folder = include.join("tench");
    let headers = generated(files::headers(&workspace.root))?;
    headers.iter().filter(|header| !is_written(&folder, header)).try_for_each(|header| write(&folder, header))?;
    Ok(include)
}

fn generated(files: Result<Vec<File>, Wrong>) -> Result<Vec<File>> {
    files.map_err(|wrong| miette!("{wrong}"))
}

fn is_written(folder: &Path, (name, text): &File) -> bool {
    std::fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text)
}

fn write(folder: &Path, (name, text): &File) -> Result<()> {
    std::fs::create_dir_all(folder).into_diagnostic().wrap_err_with(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(name);
    std::fs::write(&path, text).into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))
}
