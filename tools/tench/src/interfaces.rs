//! The command `./tench interfaces`, which generates a C header and a manual page from each interface.

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tench_interface_compiler::files;

use crate::cli::InterfacesOptions;
use crate::workspace::Workspace;

/// Writes the files, or says which differ; returns status 1 if one does.
pub fn run(workspace: &Workspace, options: &InterfacesOptions) -> Result<u8> {
    let mut different = 0;
    for file in files::all(&workspace.root).map_err(|wrong| miette!("{wrong}"))? {
        let (full, shown) = (workspace.root.join(&file.path), file.path.display());
        if std::fs::read_to_string(&full).is_ok_and(|found| found == file.text) {
            continue;
        }
        different += 1;
        if options.check {
            println!("{shown} is not what its interface says; ./tench interfaces writes it");
            continue;
        }
        let folder = full.parent().unwrap_or(&workspace.root);
        std::fs::create_dir_all(folder)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot make the folder of {shown}"))?;
        std::fs::write(&full, &file.text).into_diagnostic().wrap_err_with(|| format!("cannot write {shown}"))?;
        println!("{shown}");
    }
    Ok(u8::from(options.check && different > 0))
}
