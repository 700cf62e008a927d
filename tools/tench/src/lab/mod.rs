//! `./tench lab`.
pub fn run(_: &crate::workspace::Workspace, _: &crate::cli::LabOptions) -> miette::Result<u8> {
    Ok(0)
}
