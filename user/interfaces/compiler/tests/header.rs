//! Tests of generated headers.

use tench_interface_compiler::{Source, header, page};

const FILE: &str = r#"
/// Shelves.
#[interface(client = ShelfClient, version = 2)]
pub trait ShelfService {
    /// Puts something on a shelf.
    #[method(3)]
    fn place(&mut self, caller: Caller, item: Item, twice: Option<u16>, tags: List<Colour, 4>) -> Result<(), Error>;
    /// Returns the contents of a shelf.
    #[method(1, authority)]
    fn look(&mut self, message: Text<'_, MAX_NAME>) -> Result<(Item, i8, Text<'_, 20>, Sent<Endpoint>), Error>;
}

/// Something.
#[derive(Clone, Words)]
pub struct Item {
    /// Name of the item.
    pub name: ArrayString<MAX_NAME>,
    /// Where else.
    pub other: Option<Place>,
    /// Weights of the item.
    pub weights: [u32; 2],
}

/// Where.
#[derive(Clone, Copy, Words)]
pub struct Place {
    /// From the left.
    pub column: u64,
    /// Colour of the place.
    pub colour: Colour,
}

/// Bytes of a name.
pub const MAX_NAME: usize = 30;
/// Bytes of everything.
pub const ALL: u64 = 3 * (1 << 20);
/// No number.
pub const NAME: &str = "shelf";

codes! {
    /// Colours of things.
    pub enum Colour {
        /// Like blood.
        DarkRed = 7;
    }
    /// Why not.
    pub enum Error {
        /// The shelf is full.
        Full = 1, "the \"shelf\" is full";
    }
}
"#;

fn source() -> Source {
    Source::read(FILE).expect("it is right").expect("it is an interface")
}

/// Fails unless a text contains these lines, one after another.
fn assert_lines(text: &str, lines: &str) {
    assert!(text.contains(lines), "{lines}\nis not in\n{text}");
}

#[test]
fn types_become_types() {
    let header = header::header(&source()).expect("C knows everything");
    assert_lines(&header, "#ifndef TENCH_SHELF_H\n#define TENCH_SHELF_H\n");
    assert_lines(&header, "/* Bytes of a name. */\n#define TENCH_SHELF_MAX_NAME 30\n");
    assert_lines(&header, "#define TENCH_SHELF_ALL (UINT64_C(3)*(UINT64_C(1)<<UINT64_C(20)))\n");
    assert!(!header.contains("TENCH_SHELF_NAME"));
    assert_lines(
        &header,
        "enum tench_shelf_colour {\n    /* Like blood. */\n    TENCH_SHELF_COLOUR_DARK_RED = 7,\n};\n",
    );
    assert_lines(&header, "        return \"the \\\"shelf\\\" is full\";\n");
    assert_lines(
        &header,
        "struct tench_shelf_item {\n    /* Name of the item. */\n    char name[TENCH_SHELF_MAX_NAME + 1];\n    size_t \
         name_length;\n    /* Where else. */\n    bool other_present;\n    struct tench_shelf_place other;\n    \
         /* Weights of the item. */\n    uint32_t weights[2];\n};\n",
    );
    let position = |text: &str| header.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(position("struct tench_shelf_place {") < position("struct tench_shelf_item {"), "what is used comes first");
}

#[test]
fn methods_become_functions() {
    let source = source();
    let header = header::header(&source).expect("C knows everything");
    let number = source.interface.number();
    assert_lines(
        &header,
        &format!("#define TENCH_SHELF_LABEL_LOOK UINT64_C({:#x})\n", u64::from(number) << 32 | 2 << 16 | 1),
    );
    assert_lines(
        &header,
        "static inline int tench_shelf_place(tench_cap server, const struct tench_shelf_item *item, const uint16_t \
         *twice,\n    const enum tench_shelf_colour *tags, size_t tags_count)\n{\n    if (tags_count > 4)\n        \
         return TENCH_TOO_LONG;\n",
    );
    assert_lines(&header, "struct tench_shelf_look_reply {\n    struct tench_shelf_item first;\n    int8_t second;\n");
    // A parameter whose name the function uses itself is renamed in C.
    assert_lines(
        &header,
        "static inline int tench_shelf_look(tench_cap server, const char *message_, size_t message__length, tench_cap \
         slot,\n    struct tench_shelf_look_reply *reply)\n",
    );
    assert_lines(&header, "    tench_take_cap(reader);\n");
    let look = &source.interface.methods[0];
    let prototype = header::prototype(&source, look).expect("C knows everything");
    assert!(prototype.starts_with("int tench_shelf_look("), "{prototype}");
}

#[test]
fn pages_tell_everything() {
    let page =
        page::page(&source(), std::path::Path::new("user/interfaces/shelf/src/protocol.rs")).expect("C knows it");
    assert_lines(&page, "# ShelfClient\n");
    assert_lines(&page, "| 3 | `place` | `item`: `Item`, `twice`: `Option<u16>`, `tags`: at most `4` `Colour` | – |\n");
    assert_lines(&page, "Only for those with the capability without a badge.\n");
    assert_lines(&page, "| `other` | `Option<Place>` | Where else. |\n");
    assert_lines(&page, "| 7 | `DarkRed` | Like blood. |\n");
    assert_lines(&page, "| `MAX_NAME` | 30 | Bytes of a name. |\n");
}
