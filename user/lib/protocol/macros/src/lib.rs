//! The macros of `tench_protocol`, which documents them. The work is done by the interface compiler, `tench_interface`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use proc_macro::TokenStream;
use tench_interface::{Interface, rust, words};

/// Makes an interface of a trait: writes its client and the dispatch of its server. See `docs/manual/interfaces.md`.
#[proc_macro_attribute]
pub fn interface(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match Interface::parse(attribute.into(), item.into()) {
        Ok(interface) => rust::expand(&interface).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Lets a structure travel as the words of its fields.
#[proc_macro_derive(Words)]
pub fn words(item: TokenStream) -> TokenStream {
    words::derive(item.into()).unwrap_or_else(syn_error).into()
}

/// An error where the structure stands.
fn syn_error(error: tench_interface::Error) -> tench_interface::Tokens {
    error.into_compile_error()
}
