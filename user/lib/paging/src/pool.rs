//! Nodes in an array that grows and never moves.
//!
//! ```text
//! index   0 ‥ N−1    N ‥ 2N−1    2N ‥ 4N−1       4N ‥ 8N−1
//!         built in   chunk 0     chunk 1         chunk 2         …
//! ```
//! Each chunk has as many nodes as everything before it, so the highest bit of an index determines its chunk. The first
//! nodes are part of the array, so that a small program needs no further memory; chunks come from the
//! [`Backend`](crate::Backend) between operations, never within one.

/// Maximum number of chunks of an array: one for each bit of an index, so that every index has a chunk.
const CHUNKS: usize = 32;

/// Element of an array.
pub trait Node: Copy + Default + 'static {
    /// Returns the word in which the pool keeps the link of an unused node to the next. Never used in a used node.
    fn link(&mut self) -> &mut u32;
}

/// An array of `N` built-in nodes, a power of two, and further chunks.
#[derive(Debug)]
pub struct Array<T: 'static, const N: usize> {
    first: [T; N],
    chunks: [Option<&'static mut [T]>; CHUNKS],
    grown: usize,
}

impl<T: 'static, const N: usize> Array<T, N> {
    /// Returns an array with the built-in nodes alone.
    pub const fn new(first: [T; N]) -> Array<T, N> {
        assert!(N.is_power_of_two(), "chunks are found by shifting");
        Array { first, chunks: [const { None }; CHUNKS], grown: 0 }
    }

    /// Returns the number of nodes.
    #[inline]
    pub const fn capacity(&self) -> usize {
        N << self.grown
    }

    /// Returns the chunk of an index beyond the built-in ones, and the index in it.
    #[inline]
    const fn split(index: usize) -> (usize, usize) {
        let chunk = (index / N).ilog2() as usize;
        (chunk, index - (N << chunk))
    }

    /// Returns the node at an index.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        if index < N {
            return &self.first[index];
        }
        let (chunk, offset) = Self::split(index);
        match &self.chunks[chunk] {
            Some(nodes) => &nodes[offset],
            None => unreachable!("only nodes that are there are named"),
        }
    }

    /// Returns the node at an index, mutably.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        if index < N {
            return &mut self.first[index];
        }
        let (chunk, offset) = Self::split(index);
        match &mut self.chunks[chunk] {
            Some(nodes) => &mut nodes[offset],
            None => unreachable!("only nodes that are there are named"),
        }
    }

    /// Returns the size of the next chunk, if there can be one.
    pub const fn next_chunk(&self) -> Option<usize> {
        if self.grown < CHUNKS { Some(self.capacity()) } else { None }
    }

    /// Adds a chunk of exactly [`next_chunk`](Self::next_chunk) nodes; ignores one of another size.
    pub fn add(&mut self, chunk: &'static mut [T]) {
        if Some(chunk.len()) == self.next_chunk() {
            self.chunks[self.grown] = Some(chunk);
            self.grown += 1;
        }
    }
}

/// An array with used and unused nodes.
#[derive(Debug)]
pub struct Pool<T: Node, const N: usize> {
    nodes: Array<T, N>,
    /// Number of nodes that were ever used; those beyond are unused without being linked.
    touched: usize,
    /// One more than the index of the node that was freed last; 0 if there is none.
    unused: u32,
    used: usize,
}

impl<T: Node, const N: usize> Pool<T, N> {
    /// Returns a pool without used nodes.
    pub const fn new(first: [T; N]) -> Pool<T, N> {
        Pool { nodes: Array::new(first), touched: 0, unused: 0, used: 0 }
    }

    /// Returns the number of unused nodes.
    #[inline]
    pub const fn left(&self) -> usize {
        self.nodes.capacity() - self.used
    }

    /// Returns the number of used nodes.
    #[inline]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Takes a node. There is one, because the operation has ensured that before it began.
    #[inline]
    pub fn take(&mut self, value: T) -> usize {
        let index = match self.unused {
            0 => {
                self.touched += 1;
                self.touched - 1
            }
            next => {
                let index = next as usize - 1;
                self.unused = *self.nodes.get_mut(index).link();
                index
            }
        };
        self.used += 1;
        *self.nodes.get_mut(index) = value;
        index
    }

    /// Frees a node.
    #[inline]
    pub fn give(&mut self, index: usize) {
        let node = self.nodes.get_mut(index);
        *node = T::default();
        *node.link() = self.unused;
        self.unused = index as u32 + 1;
        self.used -= 1;
    }

    /// Returns the array, for growing.
    pub const fn array(&mut self) -> &mut Array<T, N> {
        &mut self.nodes
    }

    /// Returns a node.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        self.nodes.get(index)
    }

    /// Returns a node, mutably.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        self.nodes.get_mut(index)
    }

    /// Panics unless every node is either used or unused.
    pub fn check_invariants(&self)
    where
        T: Copy,
    {
        let mut linked = 0;
        let mut next = self.unused;
        while next != 0 {
            linked += 1;
            assert!(linked <= self.touched, "the list of unused nodes ends");
            let mut node = *self.nodes.get(next as usize - 1);
            next = *node.link();
        }
        assert_eq!(linked + self.used, self.touched, "a node is used or unused");
        assert!(self.touched <= self.nodes.capacity(), "only nodes that are there are used");
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[derive(Clone, Copy, Default)]
    struct Number(u32);

    impl Node for Number {
        fn link(&mut self) -> &mut u32 {
            &mut self.0
        }
    }

    #[test]
    fn indices_stay_valid_while_the_pool_grows() {
        let mut pool = Pool::<Number, 4>::new([Number(0); 4]);
        let mut indices = Vec::new();
        for number in 0..100 {
            if pool.left() == 0 {
                let count = pool.array().next_chunk().unwrap();
                pool.array().add(vec![Number(0); count].leak());
            }
            indices.push(pool.take(Number(number)));
            pool.check_invariants();
        }
        assert!(indices.iter().enumerate().all(|(number, index)| pool.get(*index).0 == number as u32));
        assert_eq!(indices, (0..100).collect::<Vec<_>>());
        // The node freed last is taken first.
        pool.give(17);
        pool.give(63);
        pool.check_invariants();
        assert_eq!((pool.take(Number(1)), pool.take(Number(2)), pool.left()), (63, 17, 28));
    }

    #[test]
    fn a_chunk_of_another_size_is_not_taken() {
        let mut array = Array::<u8, 2>::new([0; 2]);
        array.add(vec![0; 3].leak());
        assert_eq!(array.capacity(), 2);
        array.add(vec![7; 2].leak());
        assert_eq!((array.capacity(), *array.get(3)), (4, 7));
    }
}
