//! A source file with an interface: the trait, and the types and constants that it uses.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Fields, Ident, Item, ItemStruct, LitInt, LitStr, Result, Token, Type, braced};

use crate::model::{Interface, documentation};

/// A source file.
pub struct Source {
    /// Short lower-case name of the interface, used in file names and as a prefix in C.
    pub name: String,
    /// Interface of the file.
    pub interface: Interface,
    /// Structures that are sent.
    pub records: Vec<Record>,
    /// Enumerations that are sent.
    pub codes: Vec<Codes>,
    /// Constants of integer types.
    pub constants: Vec<Constant>,
}

/// A structure with `#[derive(Words)]`.
pub struct Record {
    /// Name of the structure.
    pub name: Ident,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Fields, in the order in which they are sent.
    pub fields: Vec<Field>,
}

/// A field of a structure.
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Type of the field.
    pub of: Type,
}

/// An enumeration made by `codes!`.
pub struct Codes {
    /// Name of the enumeration.
    pub name: Ident,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Values, in source order.
    pub values: Vec<Value>,
}

/// A value of an enumeration.
pub struct Value {
    /// Name of the value.
    pub name: Ident,
    /// Number of the value.
    pub number: u64,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Text of the value for messages.
    pub text: Option<String>,
}

/// A `pub const` of an integer type.
pub struct Constant {
    /// Name of the constant.
    pub name: Ident,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Value as it is written.
    pub value: TokenStream,
}

impl Source {
    /// Reads a file; returns `None` if there is no interface in it.
    ///
    /// # Errors
    /// Fails if the file is not Rust, if the interface is invalid, or if there are two.
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

    /// Returns the structure of this name.
    pub fn record(&self, name: &Ident) -> Option<&Record> {
        self.records.iter().find(|record| record.name == *name)
    }

    /// Returns the enumeration of this name.
    pub fn code(&self, name: &Ident) -> Option<&Codes> {
        self.codes.iter().find(|codes| codes.name == *name)
    }

    /// Returns the constant of this name.
    pub fn constant(&self, name: &Ident) -> Option<&Constant> {
        self.constants.iter().find(|constant| constant.name == *name)
    }

    /// Returns the enumeration of the interface's errors, if it is in this file.
    pub fn errors(&self) -> Option<&Codes> {
        match &self.interface.error {
            Type::Path(path) => self.code(&path.path.segments.last()?.ident),
            _ => None,
        }
    }
}

/// Converts `PagerClient` to `pager`.
fn short(client: &str) -> String {
    client.strip_suffix("Client").filter(|rest| !rest.is_empty()).unwrap_or(client).to_lowercase()
}

/// Returns whether a structure has `#[derive(Words)]`.
fn travels(item: &ItemStruct) -> bool {
    let derives_words = |attribute: &Attribute| {
        let mut found = false;
        if attribute.path().is_ident("derive") {
            // An attribute that is not a list of paths is not our derive.
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
        // The derive macro refuses these.
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

/// Contents of a `codes!`.
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
