//! Where the model lies: pages that the system gave, one after another.

use alloc::vec::Vec;

use tench::memory::{self, Made, Window, make};
use tench::sys::{Frame, MapFlags};
use tench_mltest_network::inference::Page;
use tench_mltest_network::model::PAGE;

/// Pages side by side in no particular order of addresses. Dropping them gives them back one by one, the first first.
pub struct Pages(Vec<Loaded>);

/// A page. What is first goes first: the mapping, then the memory.
struct Loaded {
    window: Window,
    _frame: Made<Frame>,
}

impl Pages {
    /// Gets a page for each piece of a model, and copies it there.
    pub fn load(model: &[u8]) -> Result<Pages, memory::Error> {
        let load = |bytes: &[u8]| {
            let frame = make::<Frame>(u64::from(PAGE.ilog2()))?;
            let window = Window::new(frame.cap(), PAGE.ilog2(), MapFlags::READ | MapFlags::WRITE)?;
            window.write(0, bytes);
            Ok(Loaded { window, _frame: frame })
        };
        model.chunks(PAGE).map(load).collect::<Result<Vec<Loaded>, memory::Error>>().map(Pages)
    }

    /// Reads a page.
    pub fn read(&self, index: usize, page: &mut Page) {
        self.0[index].window.read(0, page);
    }

    /// Pages in all.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
