//! A page of documentation.

use std::fmt::Write;

use quote::ToTokens;

use crate::model::{Interface, Method, Shape};

/// The page, as Markdown.
pub fn page(interface: &Interface) -> String {
    let mut page = format!("# {}\n\n", interface.name());
    let _ = writeln!(page, "Written by the interface compiler from the trait `{}`.\n", interface.service.ident);
    let _ = writeln!(page, "Version {}, number {:#06x}.\n", interface.version, number(&interface.name()));
    for line in &interface.documentation {
        let _ = writeln!(page, "{line}");
    }
    page.push_str("\n| number | method | arguments | answers |\n|---:|---|---|---|\n");
    for method in &interface.methods {
        let arguments: Vec<_> =
            method.arguments().map(|(name, shape)| format!("`{name}`: {}", phrase(shape))).collect();
        let answers: Vec<_> = method.results.iter().map(phrase).filter(|text| text != "nothing").collect();
        let arguments = or_nothing(&arguments.join(", "));
        let _ = writeln!(
            page,
            "| {} | `{}` | {arguments} | {} |",
            method.number,
            method.name,
            or_nothing(&answers.join(", "))
        );
    }
    for method in &interface.methods {
        section(&mut page, method);
    }
    page
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() { "–".into() } else { text.into() }
}

fn section(page: &mut String, method: &Method) {
    let _ = writeln!(page, "\n## {}\n", method.name);
    for line in &method.documentation {
        let _ = writeln!(page, "{line}");
    }
    if method.needs_authority {
        page.push_str("\nOnly for those with the capability without a badge.\n");
    }
    if method.may_answer_later() {
        page.push_str("\nThe answer may come later.\n");
    }
}

/// What travels, in words.
pub fn phrase(shape: &Shape) -> String {
    let code = |tokens: &dyn Fn() -> String| tokens().replace(' ', "");
    match shape {
        Shape::Plain(of) => match code(&|| of.to_token_stream().to_string()).as_str() {
            "()" => "nothing".into(),
            text => format!("`{text}`"),
        },
        Shape::Text(max) => format!("text of at most `{}` bytes", code(&|| max.to_token_stream().to_string())),
        Shape::Bytes(max) => format!("at most `{}` bytes", code(&|| max.to_token_stream().to_string())),
        Shape::List(element, max) => {
            let element = code(&|| element.to_token_stream().to_string());
            format!("at most `{}` `{element}`", code(&|| max.to_token_stream().to_string()))
        }
        Shape::Cap(object, given) => {
            let object = code(&|| object.to_token_stream().to_string());
            if *given {
                format!("a capability that is given away: `{object}`")
            } else {
                format!("a capability: `{object}`")
            }
        }
    }
}

/// The interface's number; the same as `tench_protocol::interface_number`.
pub fn number(name: &str) -> u16 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16 ^ hash) as u16
}
