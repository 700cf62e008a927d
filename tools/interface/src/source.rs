//! A source file with an interface: the trait, and what its methods are made of.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Fields, Ident, Item, ItemStruct, LitInt, LitStr, Result, Token, Type, braced};

use crate::model::{Interface, documentation};

/// The file.
pub struct Source {
    /// What the interface is called where names are short: in file names, and before the names of C. Lower case.
    pub name: String,
    /// The interface.
    pub interface: Interface,
    /// Structures that travel.
    pub records: Vec<Record>,
    /// Enumerations that travel.
    pub codes: Vec<Codes>,
    /// Numbers.
    pub constants: Vec<Constant>,
}

/// A structure with `#[derive(Words)]`.
pub struct Record {
    /// Its name.
    pub name: Ident,
    /// What it is, a line each.
    pub documentation: Vec<String>,
    /// In the order in which they travel.
    pub fields: Vec<Field>,
}

/// A field of a structure.
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it is, a line each.
    pub documentation: Vec<String>,
    /// Its type.
    pub of: Type,
}

/// An enumeration made by `codes!`.
pub struct Codes {
    /// Its name.
    pub name: Ident,
    /// What it is, a line each.
    pub documentation: Vec<String>,
    /// In the order in which they are written.
    pub values: Vec<Value>,
}

/// A value of an enumeration.
pub struct Value {
    /// Its name.
    pub name: Ident,
    /// Its number.
    pub number: u64,
    /// What it means, a line each.
    pub documentation: Vec<String>,
    /// It in words, for people.
    pub text: Option<String>,
}

/// A `pub const` of an integer type.
pub struct Constant {
    /// Its name.
    pub name: Ident,
    /// What it is, a line each.
    pub documentation: Vec<String>,
    /// Its value, as it is written.
    pub value: TokenStream,
}

impl Source {
    /// Reads a file; `None` if there is no interface in it.
    ///
    /// # Errors
    /// It is no Rust, the interface is none, or there are two.
    pub fn read(text: &str) -> Result<Option<Source>> {
        let (mut found, mut records, mut codes, mut constants) = (None, Vec::new(), Vec::new(), Vec::new());
        for item in syn::parse_file(text)?.items {
            match item {
                Item::Trait(service) => {
                    let place = service.ident.clone();
                    let Some(interface) = Interface::marked(service)? else { continue };
                    if found.replace(interface).is_some() {
                        return Err(syn::Error::new(place.span(), "a file has one interface"));
                    }
                }
                Item::Struct(item) if travels(&item) => records.push(record(item)),
                Item::Macro(call) if call.mac.path.segments.last().is_some_and(|last| last.ident == "codes") => {
                    codes.extend(call.mac.parse_body::<AllCodes>()?.0);
                }
                Item::Const(item) if is_integer(&item.ty) => constants.push(Constant {
                    name: item.ident,
                    documentation: documentation(&item.attrs),
                    value: item.expr.to_token_stream(),
                }),
                _ => {}
            }
        }
        Ok(found.map(|interface| {
            let name = short(&interface.name());
            Source { name, interface, records, codes, constants }
        }))
    }

    /// The structure of this name.
    pub fn record(&self, name: &Ident) -> Option<&Record> {
        self.records.iter().find(|record| record.name == *name)
    }

    /// The enumeration of this name.
    pub fn code(&self, name: &Ident) -> Option<&Codes> {
        self.codes.iter().find(|codes| codes.name == *name)
    }

    /// The constant of this name.
    pub fn constant(&self, name: &Ident) -> Option<&Constant> {
        self.constants.iter().find(|constant| constant.name == *name)
    }

    /// The enumeration of the interface's errors, if it is in this file.
    pub fn errors(&self) -> Option<&Codes> {
        match &self.interface.error {
            Type::Path(path) => self.code(&path.path.segments.last()?.ident),
            _ => None,
        }
    }
}

/// `PagerClient` is `pager`.
fn short(client: &str) -> String {
    client.strip_suffix("Client").filter(|rest| !rest.is_empty()).unwrap_or(client).to_lowercase()
}

/// Whether a structure has `#[derive(Words)]`.
fn travels(item: &ItemStruct) -> bool {
    let derives_words = |attribute: &Attribute| {
        let mut found = false;
        if attribute.path().is_ident("derive") {
            // What cannot be read as a list of paths is no derivation of ours.
            let _ = attribute.parse_nested_meta(|meta| {
                found |= meta.path.segments.last().is_some_and(|last| last.ident == "Words");
                Ok(())
            });
        }
        found
    };
    item.attrs.iter().any(derives_words)
}

fn record(item: ItemStruct) -> Record {
    let fields = match item.fields {
        Fields::Named(named) => named.named.into_iter().collect(),
        // The derivation refuses these.
        Fields::Unnamed(_) | Fields::Unit => Vec::new(),
    };
    let fields = fields.into_iter().map(|field| Field {
        name: field.ident.map(|name| name.to_string()).unwrap_or_default(),
        documentation: documentation(&field.attrs),
        of: field.ty,
    });
    Record { name: item.ident, documentation: documentation(&item.attrs), fields: fields.collect() }
}

fn is_integer(of: &Type) -> bool {
    const INTEGERS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    matches!(of, Type::Path(path) if path.path.get_ident().is_some_and(|name| INTEGERS.iter().any(|one| name == one)))
}

/// What stands in `codes!`.
struct AllCodes(Vec<Codes>);

impl Parse for AllCodes {
    fn parse(input: ParseStream<'_>) -> Result<AllCodes> {
        let mut all = Vec::new();
        while !input.is_empty() {
            let documentation = documentation(&input.call(Attribute::parse_outer)?);
            input.parse::<Token![pub]>()?;
            input.parse::<Token![enum]>()?;
            let name = input.parse()?;
            let inside;
            braced!(inside in input);
            let mut values = Vec::new();
            while !inside.is_empty() {
                values.push(value(&inside)?);
            }
            all.push(Codes { name, documentation, values });
        }
        Ok(AllCodes(all))
    }
}

fn value(input: ParseStream<'_>) -> Result<Value> {
    let documentation = documentation(&input.call(Attribute::parse_outer)?);
    let name = input.parse()?;
    input.parse::<Token![=]>()?;
    let number = input.parse::<LitInt>()?.base10_parse()?;
    let text = if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
        Some(input.parse::<LitStr>()?.value())
    } else {
        None
    };
    input.parse::<Token![;]>()?;
    Ok(Value { name, number, documentation, text })
}
