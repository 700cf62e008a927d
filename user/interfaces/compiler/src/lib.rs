//! The interface compiler.
//!
//! An interface is a Rust trait with an attribute, `#[interface(client = Clock, version = 1)]`. [`Interface::parse`]
//! reads it; these are generated from it:
//!
//! | | |
//! |---|---|
//! | [`rust`] | the client and the dispatch of the server, as the attribute macro writes them |
//! | [`page`] | a page of documentation |
//! | [`header`] | a header for C |
//! | [`probe`] | a recording server and a client that makes random requests, for tests |
//!
//! The last three need more than the trait: [`Source::read`] reads the whole file, [`files`] finds all of them.
//!
//! How values are sent is decided by the types' traits (`tench_protocol::wire`), so nothing here knows the layout of a
//! message.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod c_types;
pub mod files;
pub mod header;
pub mod model;
pub mod page;
pub mod probe;
pub mod rust;
pub mod source;
pub mod words;

pub use model::Interface;
pub use proc_macro2::TokenStream as Tokens;
pub use source::Source;
pub use syn::Error;
