//! The macros of `tench_protocol`, which documents them. The interface compiler, `tench_interface_compiler`, implements
//! them.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use tench_interface_compiler::{Interface, probe, rust, words};

/// Makes an interface of a trait: generates its client and the dispatch of its server. See `docs/manual/interfaces.md`.
#[proc_macro_attribute]
pub fn interface(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match Interface::parse(attribute.into(), item.into()) {
        Ok(interface) => rust::expand(&interface).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Derives encoding and decoding of a structure as the words of its fields.
#[proc_macro_derive(Words)]
pub fn words(item: TokenStream) -> TokenStream {
    words::derive(item.into()).unwrap_or_else(syn_error).into()
}

/// Returns the compiler error at the place of the faulty structure.
fn syn_error(error: tench_interface_compiler::Error) -> tench_interface_compiler::Tokens {
    error.into_compile_error()
}

/// Arguments of `probe!`: `names of tench_names_interface::protocol in "../../user/interfaces/names/src/protocol.rs"`.
struct Probed {
    name: syn::Ident,
    of: syn::Path,
    file: syn::LitStr,
}

impl Parse for Probed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Probed> {
        let name = input.parse()?;
        input.parse::<syn::Token![as]>()?;
        let of = input.call(syn::Path::parse_mod_style)?;
        input.parse::<syn::Token![in]>()?;
        Ok(Probed { name, of, file: input.parse()? })
    }
}

/// Macro for tests of messages: `probe!(NAME as MODULE in "FILE")` makes a module with a server that records the
/// requests that reach it, and a client that makes random requests, for the interface in a file, whose path is relative
/// to the calling crate. The module uses the crate `tench_hostile`.
#[proc_macro]
pub fn probe(arguments: TokenStream) -> TokenStream {
    let written = || -> syn::Result<proc_macro2::TokenStream> {
        let Probed { name, of, file } = syn::parse(arguments)?;
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let path = std::path::Path::new(&folder).join(file.value());
        let text = std::fs::read_to_string(&path)
            .map_err(|error| syn::Error::new(file.span(), format!("{}: {error}", path.display())))?;
        let module = probe::module(&name, &of, &text)?;
        // Makes the compiler notice changes of the file.
        let path = path.to_string_lossy();
        Ok(quote! {
            #module
            const _: &str = include_str!(#path);
        })
    };
    written().unwrap_or_else(syn_error).into()
}
