//! C types of an interface's types, and the statements that write their values into messages and read them.
//!
//! In C, a value is one or more *members* with names that begin alike: text is `name` and `name_length`, an optional
//! value `name_present` and `name`. Members are fields of structures; parameters of functions are in `header`.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Result, Type, TypePath};

use crate::source::Source;

/// A type that is sent as words.
pub enum CType {
    /// One word, of this C type. Larger values are refused.
    Word(&'static str, Range),
    /// A value of an enumeration, by the enumeration's name in C.
    Codes(String),
    /// A structure, by its name in C, and its number of words.
    Record(String, String),
    /// An array of this many values.
    Array(Box<CType>, String),
    /// An optional value.
    Optional(Box<CType>),
    /// Text of at most this many bytes, preceded by its length.
    Text(String),
}

/// Range of valid words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// All words.
    All,
    /// Words up to this C constant.
    UpTo(&'static str),
    /// Signed numbers of this many bits.
    Signed(u32),
}

/// Types of one word, by their names in Rust.
const WORDS: [(&str, &str, Range); 15] = [
    ("u8", "uint8_t", Range::UpTo("UINT8_MAX")),
    ("u16", "uint16_t", Range::UpTo("UINT16_MAX")),
    ("u32", "uint32_t", Range::UpTo("UINT32_MAX")),
    ("u64", "uint64_t", Range::All),
    ("usize", "size_t", Range::All),
    ("i8", "int8_t", Range::Signed(8)),
    ("i16", "int16_t", Range::Signed(16)),
    ("i32", "int32_t", Range::Signed(32)),
    ("i64", "int64_t", Range::Signed(64)),
    ("isize", "int64_t", Range::Signed(64)),
    ("bool", "bool", Range::UpTo("1")),
    ("Instant", "uint64_t", Range::All),
    ("CapAddress", "tench_cap", Range::UpTo("UINT32_MAX")),
    ("Kind", "uint64_t", Range::All),
    ("Rights", "uint8_t", Range::UpTo("UINT8_MAX")),
];

/// Converts `NullDereference` to `null_dereference`.
pub fn snake(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Converts `NullDereference` to `NULL_DEREFERENCE`.
pub fn shout(name: &str) -> String {
    snake(name).to_uppercase()
}

/// Returns the C name of a structure or an enumeration.
pub fn type_name(source: &Source, name: &str) -> String {
    format!("tench_{}_{}", source.name, snake(name))
}

/// Returns the C name of a constant.
pub fn constant_name(source: &Source, name: &str) -> String {
    format!("TENCH_{}_{}", source.name.to_uppercase(), name)
}

/// Returns a number as a C expression: literals, operators, and constants of the same file; `None` if there is anything
/// else.
pub fn number(source: &Source, tokens: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_alone = tokens.len() == 1;
    let mut text = String::new();
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                let digits = syn::parse_str::<syn::LitInt>(&literal.to_string()).ok()?.base10_digits().to_string();
                text += &if is_alone { digits } else { format!("UINT64_C({digits})") };
            }
            TokenTree::Ident(name) => {
                source.constant(&name)?;
                text += &constant_name(source, &name.to_string());
            }
            TokenTree::Punct(sign) => text.push(sign.as_char()),
            // It is already in parentheses, unless it is one token.
            TokenTree::Group(group) => text += &number(source, group.stream())?,
        }
    }
    Some(if is_alone { text } else { format!("({text})") })
}

/// Returns the maximum number of elements or bytes, as a C expression.
pub fn limit(source: &Source, max: &impl ToTokens) -> Result<String> {
    let wrong = || syn::Error::new_spanned(max, "C does not know this number: it is no constant of the same file");
    number(source, max.to_token_stream()).ok_or_else(wrong)
}

impl CType {
    /// Returns the C type of a type.
    ///
    /// # Errors
    /// Fails if the type is neither in the same file nor one that every interface knows.
    pub fn of(source: &Source, of: &Type) -> Result<CType> {
        let wrong = |what: &str| syn::Error::new_spanned(of, what);
        let path = match of {
            Type::Array(array) => {
                let element = CType::of(source, &array.elem)?;
                return match element {
                    CType::Optional(_) | CType::Text(_) => Err(wrong("C has no arrays of optional values or texts")),
                    element => Ok(CType::Array(Box::new(element), limit(source, &array.len)?)),
                };
            }
            Type::Path(path) => path,
            _ => return Err(wrong("C does not know this type")),
        };
        let Some(last) = path.path.segments.last() else { return Err(wrong("C does not know this type")) };
        let name = last.ident.to_string();
        if let Some((_, word, range)) = WORDS.iter().find(|(known, ..)| *known == name) {
            return Ok(CType::Word(word, *range));
        }
        if source.code(&last.ident).is_some() {
            return Ok(CType::Codes(type_name(source, &name)));
        }
        if let Some(record) = source.record(&last.ident) {
            let words = record.fields.iter().map(|field| Ok(CType::of(source, &field.of)?.words()));
            let words = words.collect::<Result<Vec<_>>>()?.join(" + ");
            return Ok(CType::Record(type_name(source, &name), format!("({words})")));
        }
        match (name.as_str(), arguments(path).as_slice()) {
            ("Option", [GenericArgument::Type(inner)]) => match CType::of(source, inner)? {
                CType::Optional(_) | CType::Text(_) => Err(wrong("C has no optional texts or options")),
                inner => Ok(CType::Optional(Box::new(inner))),
            },
            ("ArrayString", [max]) => Ok(CType::Text(limit(source, max)?)),
            _ => Err(wrong("C does not know this type: derive Words for it, or make it with codes!, in the same file")),
        }
    }

    /// Returns the declaration of an array's element, or of an optional value.
    pub fn name(&self) -> String {
        match self {
            CType::Word(name, _) => (*name).to_string(),
            CType::Codes(name) => format!("enum {name}"),
            CType::Record(name, _) => format!("struct {name}"),
            CType::Array(element, _) | CType::Optional(element) => element.name(),
            CType::Text(_) => "char".to_string(),
        }
    }

    /// Returns the type's maximum number of words, as a C expression.
    pub fn words(&self) -> String {
        match self {
            CType::Word(..) | CType::Codes(_) => "1".to_string(),
            CType::Record(_, words) => words.clone(),
            CType::Array(element, count) => format!("{count} * {}", element.words()),
            CType::Optional(inner) => format!("(1 + {})", inner.words()),
            CType::Text(max) => format!("(1 + ({max} + 7) / 8)"),
        }
    }

    /// Returns the type's members.
    pub fn members(&self, name: &str) -> Vec<String> {
        match self {
            CType::Word(..) | CType::Codes(_) | CType::Record(..) => vec![format!("{} {name};", self.name())],
            CType::Array(element, count) => match &**element {
                CType::Array(inner, further) => vec![format!("{} {name}[{count}][{further}];", inner.name())],
                element => vec![format!("{} {name}[{count}];", element.name())],
            },
            CType::Optional(inner) => {
                let mut members = vec![format!("bool {name}_present;")];
                members.extend(inner.members(name));
                members
            }
            // With a zero at the end, which is not sent.
            CType::Text(max) => vec![format!("char {name}[{max} + 1];"), format!("size_t {name}_length;")],
        }
    }

    /// Returns the statements that write the members `lvalue` into `message`.
    pub fn put(&self, lvalue: &str, depth: usize) -> Vec<String> {
        match self {
            CType::Word(..) | CType::Codes(_) => vec![format!("tench_put(message, (uint64_t){lvalue});")],
            CType::Record(name, _) => vec![format!("{}(message, &{lvalue});", helper(name, "put"))],
            CType::Array(element, count) => {
                let index = format!("i{depth}");
                repeat(&index, count, element.put(&format!("{lvalue}[{index}]"), depth + 1))
            }
            CType::Optional(inner) => {
                let mut lines = vec![format!("tench_put(message, {lvalue}_present);")];
                let absent = vec![format!("tench_put_zeros(message, {});", inner.words())];
                lines.extend(either(&format!("{lvalue}_present"), inner.put(lvalue, depth), absent));
                lines
            }
            CType::Text(max) => {
                let cut = format!("{lvalue}_length < {max} ? {lvalue}_length : {max}");
                vec![format!("tench_put_text(message, {lvalue}, {cut});")]
            }
        }
    }

    /// Returns the statements that read the members `lvalue` from `reader`.
    pub fn take(&self, lvalue: &str, depth: usize) -> Vec<String> {
        match self {
            CType::Word(_, Range::All) => vec![format!("{lvalue} = tench_take(reader);")],
            CType::Word(name, Range::UpTo(max)) => {
                vec![format!("{lvalue} = ({name})tench_take_at_most(reader, {max});")]
            }
            CType::Word(name, Range::Signed(bits)) => {
                vec![format!("{lvalue} = ({name})tench_take_signed(reader, {bits});")]
            }
            CType::Codes(name) => vec![
                format!("{lvalue} = (enum {name})tench_take(reader);"),
                format!("if (!{name}_is((uint64_t){lvalue}))"),
                "    reader->bad = true;".to_string(),
            ],
            CType::Record(name, _) => vec![format!("{}(reader, &{lvalue});", helper(name, "take"))],
            CType::Array(element, count) => {
                let index = format!("i{depth}");
                repeat(&index, count, element.take(&format!("{lvalue}[{index}]"), depth + 1))
            }
            CType::Optional(inner) => {
                let mut lines = vec![format!("{lvalue}_present = (bool)tench_take_at_most(reader, 1);")];
                let absent = vec![format!("tench_take_zeros(reader, {});", inner.words())];
                lines.extend(either(&format!("{lvalue}_present"), inner.take(lvalue, depth), absent));
                lines
            }
            CType::Text(max) => vec![
                format!("{lvalue}_length = tench_take_bytes(reader, {lvalue}, {max});"),
                format!("{lvalue}[{lvalue}_length] = '\\0';"),
            ],
        }
    }
}

/// Returns the name of the function that writes or reads a structure.
pub fn helper(name: &str, verb: &str) -> String {
    format!("{name}_{verb}")
}

/// Returns the arguments of a path's last segment.
fn arguments(path: &TypePath) -> Vec<GenericArgument> {
    match path.path.segments.last().map(|segment| &segment.arguments) {
        Some(PathArguments::AngleBracketed(arguments)) => arguments.args.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Returns the lines, indented by one step.
pub fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("    {line}"))
}

/// Returns a loop from 0.
pub fn repeat(index: &str, count: &str, body: Vec<String>) -> Vec<String> {
    let mut lines = vec![format!("for (size_t {index} = 0; {index} < {count}; {index}++) {{")];
    lines.extend(indented(body));
    lines.push("}".into());
    lines
}

/// Returns an if statement with both branches.
pub fn either(condition: &str, one: Vec<String>, other: Vec<String>) -> Vec<String> {
    let mut lines = vec![format!("if ({condition}) {{")];
    lines.extend(indented(one));
    lines.push("} else {".into());
    lines.extend(indented(other));
    lines.push("}".into());
    lines
}
