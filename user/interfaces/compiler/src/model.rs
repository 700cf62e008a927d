//! The model of an interface as its trait declares it.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemTrait, Lit, LitInt, Meta, Pat, PathArguments, Result,
    ReturnType, Token, TraitItem, TraitItemFn, Type, TypePath,
};

/// An interface.
pub struct Interface {
    /// Trait that the server implements, without this compiler's attributes.
    pub service: ItemTrait,
    /// Name of the client's type.
    pub client: Ident,
    /// Version: clients and servers of different versions refuse each other.
    pub version: u16,
    /// Lines of the trait's documentation.
    pub documentation: Vec<String>,
    /// Error type of all methods.
    pub error: Type,
    /// Methods, in order of their numbers.
    pub methods: Vec<Method>,
}

/// Number of the request for a buffer that client and server share.
pub const ATTACH: u16 = u16::MAX;

/// A method.
pub struct Method {
    /// Name of the method.
    pub name: Ident,
    /// Number of the method in requests.
    pub number: u16,
    /// Lines of the documentation.
    pub documentation: Vec<String>,
    /// Set if the method is restricted to the capability without a badge.
    pub needs_authority: bool,
    /// Name of the power's constant that a caller needs.
    pub power: Option<Ident>,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Results, in order.
    pub results: Vec<Shape>,
    /// Results as one type, as the server returns it.
    pub result: Type,
}

/// A parameter.
pub struct Parameter {
    /// Name of the parameter.
    pub name: Ident,
    /// Source of the parameter's value.
    pub of: Of,
}

/// Source of the value of a server method's parameter.
#[allow(clippy::large_enum_variant)] // There are only a few dozen.
pub enum Of {
    /// Argument of the request.
    Argument(Shape),
    /// Caller of the method.
    Caller,
    /// Powers that the badge grants.
    Powers,
    /// Handle for a later reply.
    Later,
    /// The server's reply objects.
    Replies,
}

/// Way in which a value is passed.
#[allow(clippy::large_enum_variant)] // There are only a few dozen.
pub enum Shape {
    /// Passed as words.
    Plain(Type),
    /// `Text<'_, MAX>`.
    Text(GenericArgument),
    /// `Bytes<'_, MAX>`.
    Bytes(GenericArgument),
    /// `List<T, MAX>`.
    List(Type, GenericArgument),
    /// A capability of this kind, and whether it is moved.
    Cap(Type, bool),
    /// `Shared<'_>`, or `SharedMut<'_>`, into which the server writes.
    Shared(bool),
}

impl Shape {
    /// Returns whether the value is passed as words only.
    pub const fn is_plain(&self) -> bool {
        matches!(self, Shape::Plain(_))
    }
}

impl Method {
    /// Returns the name of the client's constant for the method's number.
    pub fn constant(&self) -> Ident {
        Ident::new(&self.name.to_string().to_uppercase(), self.name.span())
    }

    /// Returns whether the server may reply later.
    pub fn may_reply_later(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter.of, Of::Later))
    }

    /// Returns whether arguments lie in shared memory.
    pub fn shares(&self) -> bool {
        self.arguments().any(|(_, shape)| matches!(shape, Shape::Shared(_)))
    }

    /// Returns the parameters that are arguments of the request.
    pub fn arguments(&self) -> impl Iterator<Item = (&Ident, &Shape)> {
        self.parameters.iter().filter_map(|parameter| match &parameter.of {
            Of::Argument(shape) => Some((&parameter.name, shape)),
            Of::Caller | Of::Powers | Of::Later | Of::Replies => None,
        })
    }
}

/// Options of the interface attribute.
struct Options {
    client: Ident,
    version: u16,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Options> {
        let (mut client, mut version) = (None, None);
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "client" => client = Some(input.parse()?),
                "version" => version = Some(input.parse::<LitInt>()?.base10_parse()?),
                _ => return Err(syn::Error::new(key.span(), "only `client` and `version` are known here")),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let missing = |what| {
            let text = format!("`{what}` is missing: #[interface(client = Clock, version = 1)]");
            syn::Error::new(proc_macro2::Span::call_site(), text)
        };
        Ok(Options {
            client: client.ok_or_else(|| missing("client"))?,
            version: version.ok_or_else(|| missing("version"))?,
        })
    }
}

impl Interface {
    /// Reads an interface from the attribute's arguments and the trait.
    pub fn parse(attribute: TokenStream, item: TokenStream) -> Result<Interface> {
        Self::new(attribute, syn::parse2(item)?)
    }

    /// Returns the interface that a trait with the attribute declares; `None` if it has no attribute.
    pub fn marked(mut service: ItemTrait) -> Result<Option<Interface>> {
        let is_ours = |attribute: &Attribute| {
            attribute.path().segments.last().is_some_and(|segment| segment.ident == "interface")
        };
        let Some(place) = service.attrs.iter().position(is_ours) else { return Ok(None) };
        let attribute = service.attrs.remove(place);
        Self::new(attribute.meta.require_list()?.tokens.clone(), service).map(Some)
    }

    fn new(attribute: TokenStream, mut service: ItemTrait) -> Result<Interface> {
        let Options { client, version } = syn::parse2(attribute)?;
        let mut methods: Vec<Method> = Vec::new();
        let mut errors = Vec::new();
        for item in &mut service.items {
            let TraitItem::Fn(function) = item else {
                return Err(syn::Error::new_spanned(item, "an interface has methods and nothing else"));
            };
            let (method, error) = method(function)?;
            if let Some(other) = methods.iter().find(|other| other.number == method.number) {
                let text = format!("`{}` has this number already", other.name);
                return Err(syn::Error::new(method.name.span(), text));
            }
            methods.push(method);
            errors.push(error);
        }
        methods.sort_by_key(|method| method.number);
        if let Some(last) = methods.iter().find(|method| method.number == ATTACH) {
            return Err(syn::Error::new(last.name.span(), "the highest number is that of attach_buffer"));
        }
        let Some(error) = errors.first().cloned() else {
            return Err(syn::Error::new_spanned(&service.ident, "an interface has at least one method"));
        };
        if let Some(other) = errors.iter().find(|other| text(other) != text(&error)) {
            return Err(syn::Error::new_spanned(other, "all methods of an interface have the same error type"));
        }
        let documentation = documentation(&service.attrs);
        Ok(Interface { service, client, version, documentation, error, methods })
    }

    /// Returns whether arguments of a method lie in shared memory.
    pub fn shares(&self) -> bool {
        self.methods.iter().any(Method::shares)
    }

    /// Returns the interface's name, which is the client's and determines the number.
    pub fn name(&self) -> String {
        self.client.to_string()
    }

    /// Returns the number that distinguishes requests to different interfaces (FNV-1a of the name, folded to 16 bits).
    /// Stubs, headers and pages take it from here.
    pub fn number(&self) -> u16 {
        let add = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = self.name().bytes().fold(0x811c_9dc5, add);
        (hash >> 16 ^ hash) as u16
    }
}

/// Returns a type as it is written.
fn text(of: &Type) -> String {
    of.to_token_stream().to_string()
}

/// Returns the lines of a documentation comment.
pub(crate) fn documentation(attributes: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value
        {
            let line = text.value();
            lines.push(line.strip_prefix(' ').unwrap_or(&line).to_string());
        }
    }
    lines
}

/// Options of `#[method(…)]`.
struct Marks {
    number: u16,
    needs_authority: bool,
    power: Option<Ident>,
}

impl Parse for Marks {
    fn parse(input: ParseStream<'_>) -> Result<Marks> {
        let number = input.parse::<LitInt>()?.base10_parse()?;
        let mut marks = Marks { number, needs_authority: false, power: None };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            let mark: Ident = input.parse()?;
            if mark == "authority" {
                marks.needs_authority = true;
            } else if mark == "power" {
                let content;
                syn::parenthesized!(content in input);
                marks.power = Some(content.parse()?);
            } else {
                return Err(syn::Error::new(mark.span(), "only `authority` and `power(…)` are known here"));
            }
        }
        Ok(marks)
    }
}

/// Reads a method, and its error type. Removes its attribute.
fn method(function: &mut TraitItemFn) -> Result<(Method, Type)> {
    let signature = &function.sig;
    let Some(place) = function.attrs.iter().position(|attribute| attribute.path().is_ident("method")) else {
        return Err(syn::Error::new_spanned(&signature.ident, "#[method(NUMBER)] is missing: its number in requests"));
    };
    if function.default.is_some() {
        return Err(syn::Error::new_spanned(signature, "a method of an interface has no body"));
    }
    let marks: Marks = function.attrs.remove(place).parse_args()?;
    let mut inputs = signature.inputs.iter();
    match inputs.next() {
        Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.mutability.is_some() => {}
        _ => return Err(syn::Error::new_spanned(&signature.ident, "a method of an interface has `&mut self`")),
    }
    let parameters = inputs.map(parameter).collect::<Result<Vec<_>>>()?;
    let (result, error) = outcome(&signature.output, &signature.ident)?;
    let results = match &result {
        Type::Tuple(tuple) => tuple.elems.iter().map(shape).collect::<Result<Vec<_>>>()?,
        one => vec![shape(one)?],
    };
    if results.iter().any(|shape| matches!(shape, Shape::Shared(_))) {
        let text = "shared memory is an argument: SharedMut<'_> is room for what the server writes";
        return Err(syn::Error::new_spanned(&result, text));
    }
    let method = Method {
        name: signature.ident.clone(),
        number: marks.number,
        documentation: documentation(&function.attrs),
        needs_authority: marks.needs_authority,
        power: marks.power,
        parameters,
        results,
        result,
    };
    if method.may_reply_later() {
        // The server returns `None` if it has kept the request.
        let Type::Path(path) = &method.result else { return Err(later_result(&method.result)) };
        let inner = argument(path, "Option").ok_or_else(|| later_result(&method.result))?;
        let results = match &inner {
            Type::Tuple(tuple) => tuple.elems.iter().map(shape).collect::<Result<Vec<_>>>()?,
            one => vec![shape(one)?],
        };
        return Ok((Method { results, result: inner, ..method }, error));
    }
    Ok((method, error))
}

fn later_result(place: &Type) -> syn::Error {
    syn::Error::new_spanned(place, "a method that may reply later has the result Result<Option<T>, E>")
}

/// Returns the result and error type.
fn outcome(output: &ReturnType, place: &Ident) -> Result<(Type, Type)> {
    let wrong = || syn::Error::new_spanned(place, "a method of an interface returns Result<T, E>");
    let ReturnType::Type(_, kind) = output else { return Err(wrong()) };
    let Type::Path(path) = &**kind else { return Err(wrong()) };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Result").ok_or_else(wrong)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Err(wrong()) };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind.clone()),
        _ => None,
    });
    match (types.next(), types.next(), types.next()) {
        (Some(result), Some(error), None) => Ok((result, error)),
        _ => Err(wrong()),
    }
}

/// Returns the only type argument of a path that ends with `name`.
fn argument(path: &TypePath, name: &str) -> Option<Type> {
    let segment = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(kind) if arguments.args.len() == 1 => Some(kind.clone()),
        _ => None,
    }
}

fn parameter(input: &FnArg) -> Result<Parameter> {
    let FnArg::Typed(typed) = input else { return Err(syn::Error::new_spanned(input, "one `self` is enough")) };
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(syn::Error::new_spanned(&typed.pat, "a parameter of an interface has a plain name"));
    };
    let name = pattern.ident.clone();
    if let Type::Reference(reference) = &*typed.ty
        && let Type::Path(path) = &*reference.elem
        && path.path.segments.last().is_some_and(|segment| segment.ident == "Replies")
    {
        return Ok(Parameter { name, of: Of::Replies });
    }
    if let Type::Path(path) = &*typed.ty
        && let Some(segment) = path.path.segments.last()
    {
        match segment.ident.to_string().as_str() {
            "Caller" => return Ok(Parameter { name, of: Of::Caller }),
            "Powers" => return Ok(Parameter { name, of: Of::Powers }),
            "Later" => return Ok(Parameter { name, of: Of::Later }),
            _ => {}
        }
    }
    Ok(Parameter { name, of: Of::Argument(shape(&typed.ty)?) })
}

/// Returns how a type is passed. The types of `tench_protocol::wire` are recognised by their names.
fn shape(of: &Type) -> Result<Shape> {
    let wrong = |what: &str| syn::Error::new_spanned(of, what.to_string());
    let Type::Path(path) = of else {
        return match of {
            Type::Reference(_) => Err(wrong(
                "nothing travels by reference: text is Text<'_, MAX>, bytes are Bytes<'_, MAX>, lists List<T, MAX>",
            )),
            _ => Ok(Shape::Plain(of.clone())),
        };
    };
    let Some(segment) = path.path.segments.last() else { return Ok(Shape::Plain(of.clone())) };
    let arguments = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => {
            let is_lifetime = |argument: &&GenericArgument| !matches!(argument, GenericArgument::Lifetime(_));
            arguments.args.iter().filter(is_lifetime).cloned().collect()
        }
        _ => Vec::new(),
    };
    let kind = |argument: &GenericArgument| match argument {
        GenericArgument::Type(kind) => Ok(kind.clone()),
        _ => Err(wrong("this is no type")),
    };
    match (segment.ident.to_string().as_str(), arguments.as_slice()) {
        ("Text", [max]) => Ok(Shape::Text(max.clone())),
        ("Bytes", [max]) => Ok(Shape::Bytes(max.clone())),
        ("List", [element, max]) => Ok(Shape::List(kind(element)?, max.clone())),
        ("Arrived" | "Sent", [object]) => Ok(Shape::Cap(kind(object)?, false)),
        ("Arrived" | "Sent", [object, how]) => Ok(Shape::Cap(kind(object)?, is_given(how))),
        ("Shared", []) => Ok(Shape::Shared(false)),
        ("SharedMut", []) => Ok(Shape::Shared(true)),
        ("Text" | "Bytes", _) => Err(wrong("write the most bytes that it may have: Text<'_, 255>")),
        ("List", _) => Err(wrong("write the most elements that it may have: List<Extent, 16>")),
        ("Arrived" | "Sent", _) => Err(wrong("write what the capability is for: Arrived<'_, Endpoint>")),
        ("str" | "String" | "Vec", _) => {
            Err(wrong("text is Text<'_, MAX>, bytes are Bytes<'_, MAX>, lists are List<T, MAX>"))
        }
        _ => Ok(Shape::Plain(of.clone())),
    }
}

fn is_given(how: &GenericArgument) -> bool {
    match how {
        GenericArgument::Type(Type::Path(path)) => {
            path.path.segments.last().is_some_and(|segment| segment.ident == "Given")
        }
        _ => false,
    }
}
