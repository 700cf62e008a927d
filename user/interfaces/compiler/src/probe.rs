//! Generation of test code for an interface's messages: a recording server, and a client that makes random requests.
//!
//! The code is written for the crate `tench_hostile`, which contains what does not depend on the interface.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, ItemUse, Path, Result, TraitItem, TypePath};

use crate::model::{Interface, Method, Of, Shape};
use crate::source::Source;

/// Generates tokens whose variables cannot be confused with parameters.
macro_rules! ours {
    ($($token:tt)*) => { quote_spanned!(Span::mixed_site()=> $($token)*) };
}

/// Returns the module `name` for the interface in the file `text`, whose items are those of the module `of`.
///
/// # Errors
/// Fails if there is no interface in the file, or if it is invalid.
pub fn module(name: &Ident, of: &Path, text: &str) -> Result<TokenStream> {
    let wrong = || syn::Error::new(name.span(), "there is no interface in this file");
    let source = Source::read(text)?.ok_or_else(wrong)?;
    let uses = syn::parse_file(text)?.items.into_iter().filter_map(|item| match item {
        syn::Item::Use(item) => Some(item),
        _ => None,
    });
    let uses: Vec<ItemUse> = uses.collect();
    let randoms = randoms(&source);
    let (recorder, probe) = (recorder(&source.interface), probe(&source));
    let summary = format!("The interface [`{}`](struct@{}).", source.interface.name(), source.interface.client);
    Ok(quote! {
        #[doc = #summary]
        #[allow(unused_imports)]
        pub mod #name {
            use #of::*;
            #(#uses)*
            use ::tench_protocol::{Encode as _, sys};
            use crate::Random as _;

            #(#randoms)*
            #recorder
            #probe
        }
    })
}

/// Generates random values of the file's own types.
fn randoms(source: &Source) -> Vec<TokenStream> {
    let records = source.records.iter().map(|record| {
        let name = &record.name;
        let fields = record.fields.iter().map(|field| format_ident!("{}", field.name));
        quote! {
            impl crate::Random for #name {
                fn random(dice: &mut crate::Dice) -> Self {
                    #name { #(#fields: crate::Random::random(dice),)* }
                }
            }
        }
    });
    let codes = source.codes.iter().map(|codes| {
        let name = &codes.name;
        quote! {
            impl crate::Random for #name {
                fn random(dice: &mut crate::Dice) -> Self {
                    #name::ALL[dice.below(#name::ALL.len())]
                }
            }
        }
    });
    records.chain(codes).collect()
}

/// Generates the server that records what reaches it, and makes random replies.
fn recorder(interface: &Interface) -> TokenStream {
    let service = &interface.service.ident;
    let methods = interface.methods.iter().map(|method| {
        let signature = interface.service.items.iter().find_map(|item| match item {
            TraitItem::Fn(function) if function.sig.ident == method.name => Some(&function.sig),
            _ => None,
        });
        let body = recorded(interface, method);
        quote!(#signature { #body })
    });
    quote! {
        impl #service for crate::Tape {
            #(#methods)*
        }
    }
}

/// Generates the body of a recording method.
fn recorded(interface: &Interface, method: &Method) -> TokenStream {
    let (client, constant) = (&interface.client, method.constant());
    let arguments = method.arguments().map(|(name, shape)| recorded_argument(name, shape));
    let later = method.parameters.iter().find_map(|parameter| match parameter.of {
        Of::Later => Some(&parameter.name),
        _ => None,
    });
    let unused = method.parameters.iter().filter_map(|parameter| match parameter.of {
        Of::Caller | Of::Powers | Of::Replies => Some(&parameter.name),
        Of::Argument(_) | Of::Later => None,
    });
    let keep = later.map(|later| {
        quote! {
            if self.dice.below(4) == 0 && #later.keep().is_ok() {
                return Ok(None);
            }
        }
    });
    let (texts, values): (Vec<_>, Vec<_>) = method.results.iter().enumerate().map(result).unzip();
    let value = match values.as_slice() {
        [one] => one.clone(),
        several => quote!((#(#several),*)),
    };
    let done = if later.is_some() { quote!(Ok(Some(recorded_value))) } else { quote!(Ok(recorded_value)) };
    quote! {
        #(let _ = #unused;)*
        let mut recorded_seen = sys::Message::new(#client::<()>::#constant);
        #(#arguments)*
        self.seen.push(recorded_seen);
        #keep
        if self.dice.below(4) == 0 {
            let recorded_error = crate::Random::random(&mut self.dice);
            self.reply = Some(sys::Message::new(::tench_protocol::Code::code(recorded_error)));
            return Err(recorded_error);
        }
        #(#texts)*
        let recorded_value = #value;
        let mut recorded_reply = sys::Message::new(0);
        recorded_value.encode(&mut recorded_reply);
        self.reply = Some(recorded_reply);
        #done
    }
}

/// Generates the recording of an argument that has reached the server.
fn recorded_argument(name: &Ident, shape: &Shape) -> TokenStream {
    match shape {
        Shape::Plain(_) => quote!(#name.encode(&mut recorded_seen);),
        Shape::Text(max) | Shape::Bytes(max) => quote! {
            assert!(#name.len() <= #max, "too long");
            self.tail(recorded_seen.length(), #name.len());
            #name.encode(&mut recorded_seen);
        },
        Shape::List(_, max) => quote! {
            assert!(#name.len() <= #max, "too many");
            #name.encode(&mut recorded_seen);
        },
        Shape::Shared(_) => quote! {
            recorded_seen.push(#name.region().offset as u64);
            recorded_seen.push(#name.region().length as u64);
            assert!(#name.region().offset + #name.len() <= crate::SHARED, "beyond the memory");
        },
        Shape::Cap(object, _) => {
            let check = expected_kind(object).map(|kind| quote!(crate::expect(#name.cap().address(), #kind);));
            quote! {
                #check
                recorded_seen.copy_cap(#name.cap().address());
                if self.keeps() {
                    #name.keep();
                }
            }
        }
    }
}

/// Generates the preparation of a result, and the result.
fn result((index, shape): (usize, &Shape)) -> (TokenStream, TokenStream) {
    let random = |of: &dyn quote::ToTokens| quote!(<#of as crate::Random>::random(&mut self.dice));
    match shape {
        Shape::Plain(of) => (quote!(), random(of)),
        Shape::List(element, max) => (quote!(), random(&quote!(::tench_protocol::List<#element, #max>))),
        Shape::Text(max) => (
            quote!(self.texts[#index] = self.dice.text(#max);),
            quote!(::tench_protocol::Text::<#max>::new(&self.texts[#index]).expect("it is short enough")),
        ),
        Shape::Bytes(max) => (
            quote!(self.bytes[#index] = self.dice.bytes(#max);),
            quote!(::tench_protocol::Bytes::<#max>::new(&self.bytes[#index]).expect("they are few enough")),
        ),
        Shape::Shared(_) => unreachable!("shared memory is no result"),
        Shape::Cap(_, _) => (quote!(), quote!(::tench_protocol::Sent::new(sys::Cap::new(self.dice.cap(None))))),
    }
}

/// Returns the kind of capability that an argument is; `None` for any.
fn expected_kind(object: &syn::Type) -> Option<TokenStream> {
    let is_any = |path: &TypePath| path.path.segments.last().is_some_and(|last| last.ident == "Any");
    match object {
        syn::Type::Path(path) if is_any(path) => None,
        object => Some(quote!(<#object as sys::cap::Object>::KIND)),
    }
}

/// Generates the client's side.
fn probe(source: &Source) -> TokenStream {
    let interface = &source.interface;
    let (client, error) = (&interface.client, &interface.error);
    let (version, name) = (interface.version, interface.name());
    let arms = interface.methods.iter().map(|method| arm(interface, method));
    let methods = interface.methods.iter().map(|method| {
        let (constant, authority, later) = (method.constant(), method.needs_authority, method.may_reply_later());
        let power = match &method.power {
            Some(power) => ours!(::tench_protocol::Powers::#power),
            None => ours!(::tench_protocol::Powers::empty()),
        };
        let name = method.name.to_string();
        ours!(crate::Method {
            name: #name,
            label: #client::<()>::#constant,
            authority: #authority,
            power: #power,
            later: #later
        })
    });
    ours! {
        /// The client's side of the tests.
        pub enum Probe {}

        impl crate::Probe for Probe {
            const NAME: &'static str = #name;
            const VERSION: u16 = #version;
            const METHODS: &'static [crate::Method] = &[#(#methods),*];

            fn dispatch(
                tape: &mut crate::Tape,
                request: &sys::Received,
                context: &mut ::tench_protocol::Context<'_>,
                reply: &mut sys::Message,
            ) -> ::tench_protocol::Flow {
                #client::dispatch(tape, request, context, reply)
            }

            fn is_error(code: u64) -> bool {
                <#error as ::tench_protocol::Code>::from_code(code).is_some()
            }

            fn call<Way: ::tench_protocol::Shares>(
                label: u64,
                dice: &mut crate::Dice,
                way: Way,
            ) -> (sys::Message, crate::Outcome) {
                let client = #client::at(way);
                match label {
                    #(#arms)*
                    _ => unreachable!("the labels are those of `METHODS`"),
                }
            }
        }
    }
}

/// Generates a random argument of a request, and what it adds to the message as the test writes it.
fn random_argument(name: &Ident, shape: &Shape) -> TokenStream {
    let random = |of: &dyn quote::ToTokens| ours!(<#of as crate::Random>::random(dice));
    match shape {
        Shape::Plain(of) => {
            let value = random(of);
            ours!(let #name = #value; #name.encode(&mut sent);)
        }
        Shape::List(element, max) => {
            let value = random(&ours!(::tench_protocol::List<#element, #max>));
            ours!(let #name = #value; #name.encode(&mut sent);)
        }
        Shape::Text(max) => ours! {
            let #name = dice.text(#max);
            sent.push_text(#name.as_bytes());
        },
        Shape::Bytes(max) => ours! {
            let #name = dice.bytes(#max);
            sent.push_text(&#name);
        },
        Shape::Shared(_) => ours! {
            let mut #name = dice.bytes(100);
            sent.push(used);
            sent.push(#name.len() as u64);
            used += #name.len() as u64;
        },
        Shape::Cap(object, _) => {
            let kind = expected_kind(object).map_or_else(|| ours!(None), |kind| ours!(Some(#kind)));
            ours! {
                let #name = sys::Cap::new(dice.cap(#kind));
                sent.copy_cap(#name.address());
            }
        }
    }
}

/// Generates the request of one method.
fn arm(interface: &Interface, method: &Method) -> TokenStream {
    let (client, constant, name) = (&interface.client, method.constant(), &method.name);
    let arguments = method.arguments().map(|(name, shape)| random_argument(name, shape));
    let given = method.arguments().map(|(name, shape)| match shape {
        Shape::Plain(_) | Shape::Cap(..) => ours!(#name),
        Shape::Text(_) | Shape::Bytes(_) | Shape::List(..) | Shape::Shared(false) => ours!(&#name),
        Shape::Shared(true) => ours!(&mut #name),
    });
    let slots = method.results.iter().filter(|shape| matches!(shape, Shape::Cap(..))).map(|_| ours!(dice.cap(None)));
    let names: Vec<_> = (0..method.results.len()).map(|index| format_ident!("value_{}", index)).collect();
    let pattern = match names.as_slice() {
        [one] => ours!(#one),
        several => ours!((#(#several),*)),
    };
    let got = method.results.iter().zip(&names).map(|(shape, name)| match shape {
        Shape::Shared(_) => unreachable!("shared memory is no result"),
        Shape::Plain(_) | Shape::List(..) | Shape::Text(_) => ours!(#name.encode(&mut got);),
        Shape::Bytes(_) => ours!({ got.push_text(&#name); }),
        Shape::Cap(..) => ours!({ got.copy_cap(#name.address()); }),
    });
    // Number of bytes of shared memory in use.
    let used = method.shares().then(|| ours!(let mut used = 0_u64;));
    ours! {
        #client::<()>::#constant => {
            let mut sent = sys::Message::new(label);
            #used
            #(#arguments)*
            let outcome = match client.#name(#(#given,)* #(#slots,)*) {
                Ok(#pattern) => {
                    let mut got = sys::Message::new(0);
                    #(#got)*
                    crate::Outcome::Replied(got)
                }
                Err(failure) => crate::Outcome::Failed(failure.map(::tench_protocol::Code::code)),
            };
            (sent, outcome)
        }
    }
}
