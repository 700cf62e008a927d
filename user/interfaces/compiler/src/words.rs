//! Structures that are sent as the words of their fields.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, Result};

/// Expands `#[derive(Words)]`.
pub fn derive(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "only structures; enumerations are made by codes!"));
    };
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&input.generics, "a structure that travels has no parameters"));
    }
    let name = &input.ident;
    let (fields, types): (Vec<_>, Vec<_>) = match &data.fields {
        Fields::Named(named) => named.named.iter().map(|field| (field.ident.clone(), field.ty.clone())).unzip(),
        other => return Err(syn::Error::new_spanned(other, "the fields of a structure that travels have names")),
    };
    let wire = quote!(::tench_protocol);
    Ok(quote! {
        impl #wire::Encode for #name {
            const WORDS: usize = 0 #(+ <#types as #wire::Encode>::WORDS)*;

            #[inline]
            fn encode(&self, to: &mut impl #wire::wire::Sink) {
                #(#wire::Encode::encode(&self.#fields, to);)*
            }
        }

        impl #wire::Decode<'_> for #name {
            #[inline]
            fn decode(from: &mut #wire::wire::Source<'_>) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#name { #(#fields: #wire::Decode::decode(from)?,)* })
            }
        }
    })
}
