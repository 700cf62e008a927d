//! The command `./tench linux-peer`: runs a program on Linux, or records and checks what those of `tests/linux` print.

use std::io::Write;
use std::path::Path;

use miette::{Result, miette};

use super::golden::{self, Golden};
use super::{Peer, Ran, compared, directory, figures, listing, packages};
use crate::cli::LinuxPeerOptions;
use crate::prepare;
use crate::workspace::{self, Workspace};

/// Does what the command line says; the status is the program's, or 1 if one prints something else than recorded.
pub fn run(workspace: &Workspace, options: &LinuxPeerOptions) -> Result<u8> {
    if options.record_figures || options.check_figures {
        let (chosen, peer) = (figures::choose(&options.words)?, peer(workspace, options)?);
        let measure = |compared| figures::measure(workspace, &peer, compared, options.record_figures);
        let good = chosen.into_iter().map(measure).collect::<Result<Vec<bool>>>()?;
        return Ok(u8::from(good.contains(&false)));
    }
    if options.packages {
        let (names, alone) = (Golden::load(workspace)?.packages(), compared::packages().map(str::to_owned));
        listing::write(workspace, &directory(workspace).join("apt-packages"), &names, &alone.collect::<Vec<_>>())?;
        println!("written: {}", packages::LIST);
        return Ok(0);
    }
    if options.record || options.check {
        return go_through(workspace, options);
    }
    let Some((program, arguments)) = options.words.split_first() else {
        return Err(miette!(
            help = "./tench linux-peer files, ./tench linux-peer ./busybox uname -a, or --record, or --check",
            "no program is named"
        ));
    };
    let is_test = workspace.root.join("tests").join(prepare::LINUX).join(program).with_extension("c").is_file();
    if !is_test && !Path::new(program).is_file() {
        return Err(miette!(
            help = "./tench linux-peer takes the name of one of tests/linux/NAME.c, or a file",
            "there is no program {program}"
        ));
    }
    let peer = peer(workspace, options)?;
    let ran = if is_test {
        peer.run_test(workspace, program, arguments)?
    } else {
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        peer.run(Path::new(program), &format!("bin/{name}"), arguments)?
    };
    let mut output = std::io::stdout();
    // If the reader has gone, the status is all that is left to say.
    let _ = ran.lines.iter().try_for_each(|line| writeln!(output, "{line}"));
    Ok(ran.status)
}

fn peer(workspace: &Workspace, options: &LinuxPeerOptions) -> Result<Peer> {
    let mut peer = Peer::new(workspace)?;
    peer.parameters = options.parameters.clone();
    Ok(peer)
}

/// Runs each program and script that is named, and records or compares what it prints.
fn go_through(workspace: &Workspace, options: &LinuxPeerOptions) -> Result<u8> {
    let list = Golden::load(workspace)?;
    let chosen = list.choose(&options.words)?;
    let peer = peer(workspace, options)?;
    let mut good = true;
    for subject in chosen {
        let name = subject.name();
        let Ran { lines, status } = peer.run_subject(workspace, &subject)?;
        let printed = golden::printed(lines, status);
        let path = Golden::path(workspace, name);
        if options.record {
            let text = golden::file(&peer.version, &printed);
            workspace::write_file(&path, text.as_bytes())?;
            println!("recorded in {}", workspace.relative(&path));
        } else if let Some(difference) = golden::compare(workspace, name, &printed)? {
            println!("{name}: not as recorded\n{difference}");
            good = false;
        } else {
            println!("{name}: as recorded");
        }
    }
    Ok(u8::from(!good))
}
