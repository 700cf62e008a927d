//! Programs that measure paths for the lab.

#![cfg_attr(target_os = "none", no_std, no_main)]

tench::entry!(main);

fn main() {}
