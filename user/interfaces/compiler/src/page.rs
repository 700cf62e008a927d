//! Generation of an interface's documentation page.

use std::fmt::Write;
use std::path::Path;

use quote::ToTokens;
use syn::Result;

use crate::c_types::type_name;
use crate::header;
use crate::model::{Interface, Method, Shape};
use crate::source::{Codes, Record, Source};

/// Returns the page, as Markdown, of the interface in the file `path`.
///
/// # Errors
/// Fails if the interface has a type that C does not know.
pub fn page(source: &Source, path: &Path) -> Result<String> {
    let interface = &source.interface;
    let mut page = format!("# {}\n\n", interface.name());
    let depth = "../../..";
    let (path, service) = (path.display(), &interface.service.ident);
    let _ = writeln!(page, "Written by `./tench interfaces` from the trait `{service}` in [`{path}`]({depth}/{path}).");
    let _ = writeln!(page, "[Interfaces](../interfaces.md) says what travels how.\n");
    let _ = writeln!(page, "Version {}, number {:#06x}.\n", interface.version, interface.number());
    for line in &interface.documentation {
        let _ = writeln!(page, "{}", unlinked(line));
    }
    page.push_str("\n| number | method | arguments | results |\n|---:|---|---|---|\n");
    for method in &interface.methods {
        let arguments: Vec<_> =
            method.arguments().map(|(name, shape)| format!("`{name}`: {}", phrase(shape))).collect();
        let results: Vec<_> = method.results.iter().map(phrase).filter(|text| text != "nothing").collect();
        let arguments = or_nothing(&arguments.join(", "));
        let _ = writeln!(
            page,
            "| {} | `{}` | {arguments} | {} |",
            method.number,
            method.name,
            or_nothing(&results.join(", "))
        );
    }
    for method in &interface.methods {
        section(&mut page, source, method)?;
    }
    source.records.iter().for_each(|record| structure(&mut page, source, record));
    source.codes.iter().for_each(|codes| enumeration(&mut page, source, codes));
    constants(&mut page, source);
    Ok(page)
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() { "–".into() } else { text.into() }
}

/// Returns a line without rustdoc's links, which lead nowhere in the page.
fn unlinked(line: &str) -> String {
    line.replace("[`", "`").replace("`]", "`")
}

/// Returns lines as a cell of a table.
fn cell(lines: &[String]) -> String {
    unlinked(&lines.join(" ")).replace('|', "\\|")
}

fn section(page: &mut String, source: &Source, method: &Method) -> Result<()> {
    let _ = writeln!(page, "\n## {}\n", method.name);
    for line in &method.documentation {
        let _ = writeln!(page, "{}", unlinked(line));
    }
    if method.needs_authority {
        page.push_str("\nOnly for those with the capability without a badge.\n");
    }
    if let Some(power) = &method.power {
        let _ = writeln!(page, "\nOnly for those with the power `{}`.", power.to_string().to_lowercase());
    }
    if method.may_reply_later() {
        page.push_str("\nThe reply may come later.\n");
    }
    if method.shares() {
        page.push_str("\nNot for C: it needs a buffer that is shared with the server.\n");
    } else {
        let _ = writeln!(page, "\n```c\n{};\n```", header::prototype(source, method)?);
    }
    Ok(())
}

fn structure(page: &mut String, source: &Source, record: &Record) {
    let _ = writeln!(page, "\n## {}\n", record.name);
    let _ = writeln!(
        page,
        "{} In C: `struct {}`.\n",
        cell(&record.documentation),
        type_name(source, &record.name.to_string())
    );
    page.push_str("| field | type | |\n|---|---|---|\n");
    for field in &record.fields {
        let of = field.of.to_token_stream().to_string().replace(' ', "");
        let _ = writeln!(page, "| `{}` | `{of}` | {} |", field.name, cell(&field.documentation));
    }
}

fn enumeration(page: &mut String, source: &Source, codes: &Codes) {
    let _ = writeln!(page, "\n## {}\n", codes.name);
    let _ =
        writeln!(page, "{} In C: `enum {}`.\n", cell(&codes.documentation), type_name(source, &codes.name.to_string()));
    page.push_str("| number | name | |\n|---:|---|---|\n");
    for value in &codes.values {
        let _ = writeln!(page, "| {} | `{}` | {} |", value.number, value.name, cell(&value.documentation));
    }
}

fn constants(page: &mut String, source: &Source) {
    if source.constants.is_empty() {
        return;
    }
    page.push_str("\n## Numbers\n\n| name | value | |\n|---|---:|---|\n");
    for constant in &source.constants {
        let _ = writeln!(page, "| `{}` | {} | {} |", constant.name, constant.value, cell(&constant.documentation));
    }
}

/// Describes a sent value in words.
pub fn phrase(shape: &Shape) -> String {
    let code = |tokens: &dyn ToTokens| tokens.to_token_stream().to_string().replace(' ', "");
    match shape {
        Shape::Plain(of) => match code(of).as_str() {
            "()" => "nothing".into(),
            text => format!("`{text}`"),
        },
        Shape::Text(max) => format!("text of at most `{}` bytes", code(max)),
        Shape::Bytes(max) => format!("at most `{}` bytes", code(max)),
        Shape::List(element, max) => format!("at most `{}` `{}`", code(max), code(element)),
        Shape::Shared(false) => "bytes in shared memory".into(),
        Shape::Shared(true) => "room in shared memory".into(),
        Shape::Cap(object, true) => format!("a capability that is given away: `{}`", code(object)),
        Shape::Cap(object, false) => format!("a capability: `{}`", code(object)),
    }
}

/// Returns a method's label, equal to `tench_protocol::label`.
pub fn label(interface: &Interface, method: &Method) -> u64 {
    u64::from(interface.number()) << 32 | u64::from(interface.version) << 16 | u64::from(method.number)
}
