//! A reader of flattened device trees, in place.
//!
//! Version 17 of the format: a header, memory reservations, tokens, and a table of the properties' names. Where a tree
//! is damaged it ends early. What is missed then is reported, or it is a device that nobody gets.

/// First word of a header.
const MAGIC: u32 = 0xd00d_feed;
/// Size of the header in bytes.
pub const HEADER_SIZE: usize = 40;
/// Position of the tree's total size in the header.
pub const TOTAL_SIZE: core::ops::Range<usize> = 4..8;

const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;

/// A device tree.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    reservations: &'a [u8],
    structure: &'a [u8],
    strings: &'a [u8],
}

/// A token of the structure.
enum Token<'a> {
    Begin(&'a [u8]),
    End,
    Property(&'a [u8], &'a [u8]),
}

/// A position among the tokens.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a [u8],
    strings: &'a [u8],
}

/// A node of the tree.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// Name of the node, with its address.
    pub name: &'a [u8],
    /// Position after the name.
    body: Cursor<'a>,
}

/// Returns the number in these bytes: big-endian, of any number of cells, if it has at most 64 bits.
pub fn number(value: &[u8]) -> Option<u64> {
    value.iter().try_fold(0u64, |number, byte| (number >> 56 == 0).then_some(number << 8 | u64::from(*byte)))
}

/// Returns the numbers in a property's value, which come in groups with so many cells each.
pub fn groups<const N: usize>(value: &[u8], cells: [usize; N]) -> impl Iterator<Item = [Option<u64>; N]> + use<'_, N> {
    let size = cells.iter().sum::<usize>() * 4;
    value.chunks_exact(size.max(1)).map(move |group| {
        let mut rest = group;
        cells.map(|count| {
            let (cell, after) = rest.split_at_checked(count * 4)?;
            rest = after;
            number(cell)
        })
    })
}

/// Returns the number of bytes of a device tree that are in use, from its header; the rest of the total size is room to
/// grow. Returns `None` if this is no device tree.
pub fn used_size(header: &[u8; HEADER_SIZE]) -> Option<u32> {
    let word = |offset| word(header, offset);
    if word(0)? != MAGIC {
        return None;
    }
    let structure = word(8)?.checked_add(word(36)?)?;
    let strings = word(12)?.checked_add(word(32)?)?;
    let used = structure.max(strings).max(HEADER_SIZE as u32).checked_next_multiple_of(8)?;
    Some(used.min(word(4)?))
}

/// Returns a word.
fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Returns the bytes before the first zero.
fn until_zero(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..bytes.iter().position(|byte| *byte == 0)?)
}

impl<'a> Tree<'a> {
    /// Returns the tree in these bytes, if they have a header and what it names.
    pub fn new(bytes: &'a [u8]) -> Option<Tree<'a>> {
        let part = |offset, size| {
            let (start, size) = (word(bytes, offset)? as usize, word(bytes, size)? as usize);
            bytes.get(start..start.checked_add(size)?)
        };
        let reservations = bytes.get(word(bytes, 16)? as usize..)?;
        (word(bytes, 0)? == MAGIC).then_some(())?;
        Some(Tree { reservations, structure: part(8, 36)?, strings: part(12, 32)? })
    }

    /// Returns the ranges of memory that are reserved: addresses and sizes.
    pub fn reservations(&self) -> impl Iterator<Item = [Option<u64>; 2]> + use<'a> {
        groups(self.reservations, [2, 2]).take_while(|range| *range != [Some(0); 2])
    }

    /// Returns the root.
    pub fn root(&self) -> Option<Node<'a>> {
        Cursor { rest: self.structure, strings: self.strings }.next_node()
    }
}

impl<'a> Cursor<'a> {
    /// Takes bytes, and the padding after them.
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..size)?;
        self.rest = self.rest.get(size.next_multiple_of(4)..)?;
        Some(taken)
    }

    /// Takes the next token; there is none at the end.
    fn token(&mut self) -> Option<Token<'a>> {
        loop {
            match word(self.take(4)?, 0)? {
                NOTHING => {}
                BEGIN_NODE => {
                    let name = until_zero(self.rest)?;
                    self.take(name.len() + 1)?;
                    return Some(Token::Begin(name));
                }
                END_NODE => return Some(Token::End),
                PROPERTY => {
                    let head = self.take(8)?;
                    let value = self.take(word(head, 0)? as usize)?;
                    let name = until_zero(self.strings.get(word(head, 4)? as usize..)?)?;
                    return Some(Token::Property(name, value));
                }
                _ => return None,
            }
        }
    }

    /// Takes the rest of a node, of which some tokens have been taken.
    fn leave(&mut self) -> Option<()> {
        let mut depth = 1;
        while depth > 0 {
            match self.token()? {
                Token::Begin(_) => depth += 1,
                Token::End => depth -= 1,
                Token::Property(..) => {}
            }
        }
        Some(())
    }

    /// Takes the next node in this one.
    fn next_node(&mut self) -> Option<Node<'a>> {
        loop {
            match self.token()? {
                Token::Begin(name) => {
                    let node = Node { name, body: *self };
                    self.leave()?;
                    return Some(node);
                }
                Token::End => return None,
                Token::Property(..) => {}
            }
        }
    }
}

impl<'a> Node<'a> {
    /// Returns the name without the address.
    pub fn name_without_address(&self) -> &'a [u8] {
        self.name.split(|byte| *byte == b'@').next().unwrap_or_default()
    }

    /// Returns the properties: names and values.
    pub fn properties(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut cursor = self.body;
        core::iter::from_fn(move || match cursor.token()? {
            Token::Property(name, value) => Some((name, value)),
            Token::Begin(_) | Token::End => None,
        })
    }

    /// Returns the nodes in this one.
    pub fn children(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let mut cursor = self.body;
        core::iter::from_fn(move || cursor.next_node())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Returns a tree with a root that has a property and two children, the first with a child of its own.
    fn tree() -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let structure = [
            &words(&[BEGIN_NODE, 0, PROPERTY, 5, 0])[..],
            b"value\0\0\0",
            &words(&[NOTHING, BEGIN_NODE]),
            b"one@40\0\0",
            &words(&[PROPERTY, 0, 2, BEGIN_NODE]),
            b"in\0\0",
            &words(&[END_NODE, END_NODE, BEGIN_NODE]),
            b"two\0",
            &words(&[END_NODE, END_NODE, 9]),
        ]
        .concat();
        let strings = b"a\0b\0";
        let reservations = words(&[0, 0x1000, 0, 0x20, 0, 0, 0, 0]);
        let start = (HEADER_SIZE + reservations.len()) as u32;
        let after = start + structure.len() as u32;
        let size = after + strings.len() as u32;
        let [strings_size, structure_size] = [strings.len() as u32, structure.len() as u32];
        let header = [MAGIC, size, start, after, HEADER_SIZE as u32, 17, 16, 0, strings_size, structure_size];
        [&words(&header)[..], &reservations, &structure, strings].concat()
    }

    /// Counts everything that a tree has.
    fn count(node: Node<'_>) -> usize {
        1 + node.properties().count() + node.children().map(count).sum::<usize>()
    }

    #[test]
    fn a_tree_is_read() {
        let bytes = tree();
        let tree = Tree::new(&bytes).unwrap();
        assert_eq!(tree.reservations().collect::<Vec<_>>(), [[Some(0x1000), Some(0x20)]]);
        let root = tree.root().unwrap();
        assert_eq!(root.properties().collect::<Vec<_>>(), [(&b"a"[..], &b"value"[..])]);
        let children: Vec<Node> = root.children().collect();
        assert_eq!(children.iter().map(|node| node.name).collect::<Vec<_>>(), [&b"one@40"[..], b"two"]);
        assert_eq!(children[0].name_without_address(), b"one");
        assert_eq!(children[0].properties().collect::<Vec<_>>(), [(&b"b"[..], &b""[..])]);
        assert_eq!(children[0].children().map(|node| node.name).collect::<Vec<_>>(), [b"in"]);
        assert_eq!(count(root), 6);
        assert_eq!(
            used_size(bytes.first_chunk().unwrap()),
            Some((bytes.len() as u32).next_multiple_of(8).min(bytes.len() as u32))
        );
    }

    #[test]
    fn a_damaged_tree_ends_early() {
        let bytes = tree();
        for place in 0..bytes.len() {
            for damage in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] = damage;
                let root = Tree::new(&bytes).and_then(|tree| tree.root());
                assert!(root.is_none_or(|root| count(root) <= 8), "{place} {damage}");
            }
            assert!(Tree::new(&bytes[..place]).is_none(), "{place}");
        }
    }

    #[test]
    fn numbers_have_at_most_64_bits() {
        assert_eq!(number(&[0, 0, 1, 2]), Some(0x102));
        assert_eq!(number(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]), Some(0x102));
        assert_eq!(number(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2]), None);
        let value: Vec<u8> = (0..32).collect();
        let wanted =
            [[Some(0x0001_0203), Some(0x0405_0607_0809_0a0b)], [Some(0x0c0d_0e0f), Some(0x1011_1213_1415_1617)]];
        assert_eq!(groups(&value, [1, 2]).collect::<Vec<_>>(), wanted);
        assert_eq!(groups(&value, [0, 0]).count(), 32, "no cells do no harm");
    }
}
