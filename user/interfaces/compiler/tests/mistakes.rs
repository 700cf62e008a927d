//! Tests of the interface compiler's errors: one invalid interface for each mistake.

use tench_interface_compiler::{Interface, Source, words};

/// Returns the errors for a trait with these methods.
fn said(methods: &str) -> String {
    said_to("client = Clock, version = 1", methods)
}

fn said_to(attribute: &str, methods: &str) -> String {
    let item = format!("pub trait ClockService {{ {methods} }}");
    let parsed = Interface::parse(attribute.parse().expect("tokens"), item.parse().expect("tokens"));
    parsed.err().expect("it is a mistake").to_string()
}

/// Returns a method with these parameters and this result.
fn with(parameters: &str, result: &str) -> String {
    said(&format!("#[method(1)] fn wait(&mut self, {parameters}) -> {result};"))
}

#[test]
fn the_attribute_names_client_and_version() {
    let method = "#[method(1)] fn wait(&mut self) -> Result<(), Error>;";
    assert_eq!(said_to("version = 1", method), "`client` is missing: #[interface(client = Clock, version = 1)]");
    assert_eq!(said_to("client = Clock", method), "`version` is missing: #[interface(client = Clock, version = 1)]");
    assert_eq!(said_to("client = Clock, wersion = 1", method), "only `client` and `version` are known here");
    assert!(said_to("client = Clock, version = 70000", method).contains("too large"));
}

#[test]
fn a_method_is_marked_and_has_no_body() {
    assert_eq!(
        said("fn wait(&mut self) -> Result<(), Error>;"),
        "#[method(NUMBER)] is missing: its number in requests"
    );
    assert_eq!(
        said("#[method(1, quick)] fn wait(&mut self) -> Result<(), Error>;"),
        "only `authority` and `power(…)` are known here"
    );
    assert_eq!(
        said("#[method(1)] fn wait(&mut self) -> Result<(), Error> { Ok(()) }"),
        "a method of an interface has no body"
    );
    for receiver in ["", "&self", "self", "mut self"] {
        let text = said(&format!("#[method(1)] fn wait({receiver}) -> Result<(), Error>;"));
        assert_eq!(text, "a method of an interface has `&mut self`", "{receiver}");
    }
    assert_eq!(said("const A: u8 = 0;"), "an interface has methods and nothing else");
    assert_eq!(said(""), "an interface has at least one method");
}

#[test]
fn numbers_and_errors_agree() {
    let two = |number: u8, error: &str| {
        format!(
            "#[method(1)] fn wait(&mut self) -> Result<(), Error>;
             #[method({number})] fn other(&mut self) -> Result<(), {error}>;"
        )
    };
    assert_eq!(said(&two(1, "Error")), "`wait` has this number already");
    assert_eq!(said(&two(2, "Other")), "all methods of an interface have the same error type");
}

#[test]
fn a_method_returns_a_result() {
    for result in ["()", "u64", "Option<u64>", "Result<u64>", "Result<u64, Error, Other>", "(u64, Error)"] {
        assert_eq!(with("", result), "a method of an interface returns Result<T, E>", "{result}");
    }
    assert_eq!(said("#[method(1)] fn wait(&mut self);"), "a method of an interface returns Result<T, E>");
    assert_eq!(
        with("later: Later<'_, u64, Error>", "Result<u64, Error>"),
        "a method that may reply later has the result Result<Option<T>, E>"
    );
}

#[test]
fn arguments_are_values_that_travel() {
    let by_reference =
        "nothing travels by reference: text is Text<'_, MAX>, bytes are Bytes<'_, MAX>, lists List<T, MAX>";
    for of in ["&str", "&[u8]", "&mut u64"] {
        assert_eq!(with(&format!("name: {of}"), "Result<(), Error>"), by_reference);
        assert_eq!(with("", &format!("Result<{of}, Error>")), by_reference);
    }
    let owned = "text is Text<'_, MAX>, bytes are Bytes<'_, MAX>, lists are List<T, MAX>";
    for of in ["str", "String", "Vec<u8>"] {
        assert_eq!(with(&format!("name: {of}"), "Result<(), Error>"), owned);
    }
    let without_limit = "write the most bytes that it may have: Text<'_, 255>";
    assert_eq!(with("name: Text<'_>", "Result<(), Error>"), without_limit);
    assert_eq!(with("name: Bytes", "Result<(), Error>"), without_limit);
    assert_eq!(
        with("name: List<u64>", "Result<(), Error>"),
        "write the most elements that it may have: List<Extent, 16>"
    );
    assert_eq!(
        with("cap: Arrived<'_>", "Result<(), Error>"),
        "write what the capability is for: Arrived<'_, Endpoint>"
    );
    assert_eq!(with("(a, b): (u64, u64)", "Result<(), Error>"), "a parameter of an interface has a plain name");
}

#[test]
fn shared_memory_is_an_argument_and_has_a_request_of_its_own() {
    for of in ["Shared<'_>", "SharedMut<'_>", "(u64, SharedMut<'_>)"] {
        assert_eq!(
            with("", &format!("Result<{of}, Error>")),
            "shared memory is an argument: SharedMut<'_> is room for what the server writes"
        );
    }
    assert_eq!(
        said("#[method(65535)] fn wait(&mut self) -> Result<(), Error>;"),
        "the highest number is that of attach_buffer"
    );
}

#[test]
fn structures_that_travel_have_named_fields_and_no_parameters() {
    let said = |item: &str| words::derive(item.parse().expect("tokens")).expect_err("it is a mistake").to_string();
    assert_eq!(said("struct A(u64);"), "the fields of a structure that travels have names");
    assert_eq!(said("struct A<T> { a: T }"), "a structure that travels has no parameters");
    assert_eq!(said("enum A { B }"), "only structures; enumerations are made by codes!");
}

/// Returns the errors for a file of which a header is made.
fn said_to_file(rest: &str, method: &str) -> String {
    let text =
        format!("{rest} #[interface(client = Clock, version = 1)] pub trait ClockService {{ #[method(1)] {method} }}");
    match Source::read(&text) {
        Err(error) => error.to_string(),
        Ok(source) => {
            let source = source.expect("there is an interface");
            tench_interface_compiler::header::header(&source).expect_err("it is a mistake").to_string()
        }
    }
}

#[test]
fn c_knows_the_types_of_the_same_file_and_those_of_all_interfaces() {
    let foreign = "C does not know this type: derive Words for it, or make it with codes!, in the same file";
    assert_eq!(said_to_file("", "fn wait(&mut self, a: Foreign) -> Result<(), Error>;"), foreign);
    assert_eq!(said_to_file("", "fn wait(&mut self) -> Result<Foreign, Error>;"), foreign);
    assert_eq!(
        said_to_file("", "fn wait(&mut self, a: Text<'_, MAX>) -> Result<(), Error>;"),
        "C does not know this number: it is no constant of the same file"
    );
    assert_eq!(said_to_file("", "fn call(&mut self) -> Result<(), Error>;"), "in C another function has this name");
    assert_eq!(
        said_to_file(
            "#[interface(client = A, version = 1)] trait B { #[method(1)] fn b(&mut self) -> Result<(), E>; }",
            "fn wait(&mut self) -> Result<(), Error>;"
        ),
        "a file has one interface"
    );
}
