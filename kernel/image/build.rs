//! Passes the kernel's linker script to the linker.

fn main() {
    println!("cargo::rerun-if-changed=kernel.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bins=-T{folder}/kernel.ld");
        println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
        println!("cargo::rustc-link-arg-bins=-znorelro");
        // For the test that nothing which stays refers to the bootstrap.
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
    }
}
