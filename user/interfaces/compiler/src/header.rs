//! Generation of a C header.
//!
//! A header has the interface's constants, enumerations and structures, a structure for each method's results, and a
//! function for each method, which builds the message, calls, and reads the reply as strictly as Rust clients do. What
//! all headers share is written by hand: `user/lib/c/include/tench/message.h`.

use syn::Result;

use crate::c_types::{CType, constant_name, either, helper, indented, limit, number, repeat, shout, type_name};
use crate::model::{Method, Shape};
use crate::page;
use crate::source::{Codes, Record, Source};

/// Names of several results.
const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];
/// Maximum length of a line.
const WIDTH: usize = 120;

/// Returns the header.
///
/// # Errors
/// Fails if the interface has a type that C does not know.
pub fn header(source: &Source) -> Result<String> {
    let interface = &source.interface;
    let mut lines = vec!["/*".to_string()];
    lines.push(format!(" * {}, version {}.", interface.name(), interface.version));
    lines.push(" *".into());
    lines.extend(interface.documentation.iter().map(|line| format!(" * {}", harmless(line)).trim_end().to_string()));
    lines.push(" *".into());
    lines.push(
        " * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used."
            .into(),
    );
    lines.push(" */".into());
    let guard = format!("TENCH_{}_H", source.name.to_uppercase());
    lines.extend([format!("#ifndef {guard}"), format!("#define {guard}"), String::new()]);
    lines.extend(["#include <tench/message.h>".into(), String::new()]);
    for constant in &source.constants {
        if let Some(value) = number(source, constant.value.clone()) {
            lines.extend(comment(&constant.documentation));
            lines.push(format!("#define {} {value}", constant_name(source, &constant.name.to_string())));
        }
    }
    lines.push(String::new());
    source.codes.iter().for_each(|codes| lines.extend(enumeration(source, codes)));
    lines.extend(failures(source));
    for record in in_order(source) {
        lines.extend(structure(source, record)?);
    }
    // The C runtime has no shared buffers.
    for method in interface.methods.iter().filter(|method| !method.shares()) {
        lines.extend(function(source, method)?);
    }
    lines.extend(["#endif".to_string(), String::new()]);
    Ok(lines.join("\n"))
}

/// Returns the structures so that each comes after those it contains.
fn in_order(source: &Source) -> Vec<&Record> {
    let mut ordered: Vec<&Record> = Vec::new();
    let is_used = |record: &Record, by: &Record| by.fields.iter().any(|field| mentions(&field.of, &record.name));
    while ordered.len() < source.records.len() {
        let is_open = |record: &&Record| !ordered.iter().any(|done| done.name == record.name);
        let open: Vec<&Record> = source.records.iter().filter(is_open).collect();
        let ready = open.iter().filter(|record| !open.iter().any(|other| is_used(other, record)));
        let before = ordered.len();
        let ready: Vec<&Record> = ready.copied().collect();
        ordered.extend(ready);
        if ordered.len() == before {
            // Structures that contain each other are not valid Rust either.
            ordered.extend(open);
        }
    }
    ordered
}

/// Returns whether a type mentions this name.
fn mentions(of: &syn::Type, name: &syn::Ident) -> bool {
    fn is_in(tokens: proc_macro2::TokenStream, name: &syn::Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(word) => word == *name,
            proc_macro2::TokenTree::Group(group) => is_in(group.stream(), name),
            proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => false,
        })
    }
    is_in(quote::ToTokens::to_token_stream(of), name)
}

/// Returns text that does not end a comment.
fn harmless(text: &str) -> String {
    text.replace("*/", "* /")
}

/// Returns lines as a comment.
fn comment(lines: &[String]) -> Vec<String> {
    match lines {
        [] => Vec::new(),
        [one] => vec![format!("/* {} */", harmless(one))],
        several => {
            let mut comment = vec!["/*".to_string()];
            comment.extend(several.iter().map(|line| format!(" * {}", harmless(line)).trim_end().to_string()));
            comment.push(" */".into());
            comment
        }
    }
}

/// Returns a C string literal.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn enumeration(source: &Source, codes: &Codes) -> Vec<String> {
    let name = type_name(source, &codes.name.to_string());
    let value_name = |value: &syn::Ident| format!("{}_{}", name.to_uppercase(), shout(&value.to_string()));
    let mut lines = comment(&codes.documentation);
    lines.push(format!("enum {name} {{"));
    for value in &codes.values {
        lines.extend(indented(comment(&value.documentation)));
        lines.push(format!("    {} = {},", value_name(&value.name), value.number));
    }
    lines.extend(["};".to_string(), String::new()]);
    let cases = codes.values.iter().map(|value| format!("    case {}:", value_name(&value.name)));
    lines.push("/* Whether it is one of them. */".into());
    lines.extend([format!("static inline bool {name}_is(uint64_t code)"), "{".into(), "    switch (code) {".into()]);
    lines.extend(cases);
    lines.extend(["        return true;", "    default:", "        return false;", "    }", "}", ""].map(String::from));
    if codes.values.iter().all(|value| value.text.is_some()) {
        lines.push("/* It in words; NULL if it is none of them. */".into());
        lines.push(format!("static inline const char *{name}_text(uint64_t code)"));
        lines.extend(["{".to_string(), "    switch (code) {".into()]);
        for value in &codes.values {
            lines.push(format!("    case {}:", value_name(&value.name)));
            lines.push(format!("        return {};", string(value.text.as_deref().unwrap_or_default())));
        }
        lines.extend(["    default:", "        return NULL;", "    }", "}", ""].map(String::from));
    }
    lines
}

/// Returns the functions that check a result and describe it.
fn failures(source: &Source) -> Vec<String> {
    let name = &source.name;
    let known = source.errors().map(|errors| type_name(source, &errors.name.to_string()));
    let mut lines = vec!["/* Why a request had no success, in words. The text stays. */".to_string()];
    lines.push(format!("static inline const char *tench_{name}_failure(int code)"));
    lines.push("{".into());
    match source.errors().filter(|errors| errors.values.iter().all(|value| value.text.is_some())).and(known.as_ref()) {
        Some(errors) => {
            lines.push(format!("    const char *text = code > 0 ? {errors}_text((uint64_t)code) : NULL;"));
            lines.push("    return text != NULL ? text : tench_failure(code);".into());
        }
        None => lines.push("    return tench_failure(code);".into()),
    }
    lines.extend(["}".to_string(), String::new()]);
    lines.push("/* Calls. An error that the interface does not have is no reply. */".into());
    lines.push(format!("static inline int tench_{name}_call(tench_cap server, struct tench_message *message)"));
    lines.push("{".into());
    lines.push("    int code = tench_call(server, message);".into());
    let other = known.map_or_else(|| "true".to_string(), |errors| format!("!{errors}_is((uint64_t)code)"));
    lines.push(format!("    return code > 0 && code < TENCH_REJECTED && {other} ? TENCH_MALFORMED : code;"));
    lines.extend(["}".to_string(), String::new()]);
    lines
}

fn structure(source: &Source, record: &Record) -> Result<Vec<String>> {
    let name = type_name(source, &record.name.to_string());
    let (mut lines, mut put, mut take) = (comment(&record.documentation), Vec::new(), Vec::new());
    lines.push(format!("struct {name} {{"));
    for field in &record.fields {
        let of = CType::of(source, &field.of)?;
        lines.extend(indented(comment(&field.documentation)));
        lines.extend(indented(of.members(&field.name)));
        put.extend(of.put(&format!("value->{}", field.name), 0));
        take.extend(of.take(&format!("value->{}", field.name), 0));
    }
    lines.extend(["};".to_string(), String::new()]);
    let (put_name, take_name) = (helper(&name, "put"), helper(&name, "take"));
    lines.push(format!("static inline void {put_name}(struct tench_message *message, const struct {name} *value)"));
    lines.push("{".into());
    lines.extend(indented(put));
    lines.extend(["}".to_string(), String::new()]);
    lines.push(format!("static inline void {take_name}(struct tench_reader *reader, struct {name} *value)"));
    lines.push("{".into());
    lines.extend(indented(take));
    lines.extend(["}".to_string(), String::new()]);
    Ok(lines)
}

/// Parameters of a function for an argument, the checks that refuse them, and the statements that write them into the
/// message.
struct Argument {
    parameters: Vec<String>,
    refuse: Option<String>,
    put: Vec<String>,
}

/// Returns a pointer parameter.
fn pointer(of: &CType, name: &str) -> String {
    format!("const {} *{name}", of.name())
}

fn argument(source: &Source, name: &str, shape: &Shape) -> Result<Argument> {
    let bytes = |kind: &str, max: &syn::GenericArgument| -> Result<Argument> {
        let max = limit(source, max)?;
        Ok(Argument {
            parameters: vec![format!("const {kind} *{name}"), format!("size_t {name}_length")],
            refuse: Some(format!("{name}_length > {max}")),
            put: vec![format!("tench_put_text(message, {name}, {name}_length);")],
        })
    };
    let simple = |parameter: String, put: Vec<String>| Argument { parameters: vec![parameter], refuse: None, put };
    Ok(match shape {
        Shape::Plain(of) => match CType::of(source, of)? {
            of @ (CType::Word(..) | CType::Codes(_)) => simple(format!("{} {name}", of.name()), of.put(name, 0)),
            of @ CType::Record(..) => simple(pointer(&of, name), of.put(&format!("(*{name})"), 0)),
            CType::Array(element, count) => {
                let put = repeat("i0", &count, element.put(&format!("{name}[i0]"), 1));
                simple(format!("const {} {name}[{count}]", element.name()), put)
            }
            CType::Optional(inner) => {
                let absent = vec![format!("tench_put_zeros(message, {});", inner.words())];
                let mut put = vec![format!("tench_put(message, {name} != NULL);")];
                put.extend(either(&format!("{name} != NULL"), inner.put(&format!("(*{name})"), 0), absent));
                simple(pointer(&inner, name), put)
            }
            CType::Text(max) => Argument {
                parameters: vec![format!("const char *{name}"), format!("size_t {name}_length")],
                refuse: Some(format!("{name}_length > {max}")),
                put: vec![format!("tench_put_text(message, {name}, {name}_length);")],
            },
        },
        Shape::Text(max) => bytes("char", max)?,
        Shape::Bytes(max) => bytes("void", max)?,
        Shape::List(element, max) => {
            let element = CType::of(source, element)?;
            let count = format!("{name}_count");
            let mut put = vec![format!("tench_put(message, {count});")];
            put.extend(repeat("i0", &count, element.put(&format!("{name}[i0]"), 1)));
            Argument {
                parameters: vec![pointer(&element, name), format!("size_t {count}")],
                refuse: Some(format!("{count} > {}", limit(source, max)?)),
                put,
            }
        }
        Shape::Cap(_, given) => {
            let verb = if *given { "give" } else { "lend" };
            simple(format!("tench_cap {name}"), vec![format!("tench_{verb}(message, {name});")])
        }
        Shape::Shared(_) => unreachable!("methods with shared memory have no function in C"),
    })
}

/// Returns the members of a result, and the statements that read them from the reply.
fn result(source: &Source, name: &str, shape: &Shape) -> Result<(Vec<String>, Vec<String>)> {
    let lvalue = format!("reply->{name}");
    Ok(match shape {
        Shape::Plain(of) => {
            let of = CType::of(source, of)?;
            (of.members(name), of.take(&lvalue, 0))
        }
        Shape::Text(max) => {
            let of = CType::Text(limit(source, max)?);
            (of.members(name), of.take(&lvalue, 0))
        }
        Shape::Bytes(max) => {
            let max = limit(source, max)?;
            let members = vec![format!("uint8_t {name}[{max}];"), format!("size_t {name}_length;")];
            (members, vec![format!("{lvalue}_length = tench_take_bytes(reader, {lvalue}, {max});")])
        }
        Shape::List(element, max) => {
            let (element, max) = (CType::of(source, element)?, limit(source, max)?);
            let members = vec![format!("{} {name}[{max}];", element.name()), format!("size_t {name}_count;")];
            let mut take = vec![format!("{lvalue}_count = (size_t)tench_take_at_most(reader, {max});")];
            let body = element.take(&format!("{lvalue}[i0]"), 1);
            take.extend(repeat("i0", &format!("{lvalue}_count"), body));
            (members, take)
        }
        Shape::Cap(..) => (Vec::new(), vec!["tench_take_cap(reader);".into()]),
        Shape::Shared(_) => unreachable!("shared memory is no result"),
    })
}

/// Returns whether a method has no result in C.
fn is_nothing(shape: &Shape) -> bool {
    page::phrase(shape) == "nothing"
}

/// Names that the functions use themselves, and C keywords that are not Rust's.
const TAKEN: [&str; 22] = [
    "code", "message", "reader", "reply", "rest", "server", "slot", "space", "auto", "case", "char", "default",
    "double", "float", "goto", "int", "long", "register", "short", "signed", "switch", "volatile",
];

/// Functions of each header that are not methods.
const HELPERS: [&str; 2] = ["call", "failure"];

/// Returns a parameter's name in C.
fn safe(name: &str) -> String {
    if TAKEN.contains(&name) { format!("{name}_") } else { name.to_string() }
}

/// A method as a C function.
struct Function {
    name: String,
    parameters: Vec<String>,
    /// Checks for arguments that are too long to be sent.
    refusals: Vec<String>,
    put: Vec<String>,
    /// Statements that say where capabilities arrive.
    slots: Vec<String>,
    /// Members of the result.
    members: Vec<String>,
    take: Vec<String>,
}

impl Function {
    fn new(source: &Source, method: &Method) -> Result<Function> {
        if HELPERS.iter().any(|helper| method.name == helper) {
            return Err(syn::Error::new(method.name.span(), "in C another function has this name"));
        }
        let name = format!("tench_{}_{}", source.name, method.name);
        let mut parameters = vec!["tench_cap server".to_string()];
        let (mut refusals, mut put) = (Vec::new(), Vec::new());
        for (name, shape) in method.arguments() {
            let argument = argument(source, &safe(&name.to_string()), shape)?;
            parameters.extend(argument.parameters);
            refusals.extend(argument.refuse);
            put.extend(argument.put);
        }
        let results: Vec<&Shape> = method.results.iter().filter(|shape| !is_nothing(shape)).collect();
        let values = results.iter().filter(|shape| !matches!(shape, Shape::Cap(..))).count();
        let mut ordinals = if values == 1 { ["value"].iter() } else { ORDINALS.iter() };
        let (mut members, mut take, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for shape in results {
            let member = match shape {
                Shape::Cap(..) => {
                    let number = slots.len() + 1;
                    slots.push(if number == 1 { "slot".into() } else { format!("slot_{number}") });
                    ""
                }
                _ => ordinals.next().copied().unwrap_or("another"),
            };
            let (declared, taken) = result(source, member, shape)?;
            members.extend(declared);
            take.extend(taken);
        }
        parameters.extend(slots.iter().map(|slot| format!("tench_cap {slot}")));
        if !members.is_empty() {
            parameters.push(format!("struct {name}_reply *reply"));
        }
        Ok(Function { name, parameters, refusals, put, slots, members, take })
    }

    /// Returns its declaration.
    fn prototype(&self, before: &str) -> Vec<String> {
        wrapped(&format!("{before}int {}(", self.name), &self.parameters)
    }
}

/// Returns the declaration of a method's C function.
///
/// # Errors
/// Fails if the method has a type that C does not know.
pub fn prototype(source: &Source, method: &Method) -> Result<String> {
    Ok(Function::new(source, method)?.prototype("").join("\n"))
}

fn function(source: &Source, method: &Method) -> Result<Vec<String>> {
    let function = Function::new(source, method)?;
    let name = &function.name;
    let label = format!("TENCH_{}_LABEL_{}", source.name.to_uppercase(), method.name.to_string().to_uppercase());
    let number = page::label(&source.interface, method);
    let mut lines = vec![format!("#define {label} UINT64_C({number:#x})"), String::new()];
    if !function.members.is_empty() {
        lines.extend([format!("/* What {name} returns. */"), format!("struct {name}_reply {{")]);
        lines.extend(indented(function.members.clone()));
        lines.extend(["};".to_string(), String::new()]);
    }
    lines.extend(comment(&method.documentation));
    lines.extend(function.prototype("static inline "));
    lines.push("{".into());
    for refusal in function.refusals {
        lines.extend([format!("    if ({refusal})"), "        return TENCH_TOO_LONG;".into()]);
    }
    lines.push("    struct tench_message space, *message = &space;".into());
    lines.push(format!("    tench_begin(message, {label});"));
    lines.extend(indented(function.put));
    lines.extend(function.slots.iter().map(|slot| format!("    tench_offer(message, {slot});")));
    lines.push(format!("    int code = tench_{}_call(server, message);", source.name));
    lines.extend(["    if (code != TENCH_DONE)".to_string(), "        return code;".into()]);
    lines.push("    struct tench_reader rest = tench_read(message), *reader = &rest;".into());
    lines.extend(indented(function.take));
    lines.push("    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;".into());
    lines.extend(["}".to_string(), String::new()]);
    Ok(lines)
}

/// Returns a list of parameters, on as few lines as possible.
fn wrapped(start: &str, parameters: &[String]) -> Vec<String> {
    let mut lines = vec![start.to_string()];
    for (index, parameter) in parameters.iter().enumerate() {
        let end = if index + 1 == parameters.len() { ")" } else { "," };
        let last = lines.last_mut().expect("there is a first line");
        let blank = if last.ends_with('(') { "" } else { " " };
        if last.len() + parameter.len() + 2 > WIDTH {
            lines.push(format!("    {parameter}{end}"));
        } else {
            *last += &format!("{blank}{parameter}{end}");
        }
    }
    lines
}
