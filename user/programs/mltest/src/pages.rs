//! The pages that hold the model, which the system gave one after another. While slabs are set up the pages come from
//! them, together with the 8 KiB node for which R1's program asks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::abi::Kind;
use tench::abi::layout::slot;
use tench::mem::slabs::{Descriptor, Lifetime, Slabs};
use tench::memory::{self, Made, Window, make};
use tench::sys::{Cap, Frame, MapFlags};
use tench_mltest_network::inference::Page;
use tench_mltest_network::model::PAGE;

const SLABS: Slabs = Slabs::STANDARD;
/// Log2 of the size in bytes of the node that holds the pages of R1's program.
const NODE_BITS: u32 = 13;

/// Pages in no particular order of addresses. Dropping them gives them back one by one, in order, and then the node.
pub struct Pages {
    pages: Vec<Loaded>,
    /// The node's bundle.
    _node: Option<Bundle>,
}

/// A page. Fields are dropped in order: the mapping, then the memory, which is this process's own or a slab's.
struct Loaded {
    window: Window,
    _own: Option<Made<Frame>>,
    _bundle: Option<Bundle>,
}

/// A bundle of the slabs' objects; dropping it frees them.
struct Bundle(u64);

impl Drop for Bundle {
    fn drop(&mut self) {
        // The process's end frees what cannot be freed here.
        let _ = SLABS.free(self.0);
    }
}

impl Pages {
    /// Gets a page for each part of a model, and copies that part there.
    pub fn load(model: &[u8]) -> Result<Pages, String> {
        let slabs = tench_profile::is_slab_mode();
        let load = |bytes: &[u8]| {
            let (frame, own, bundle) =
                if slabs { slab_page()? } else { own_page().map_err(|error| error.to_string())? };
            let flags = MapFlags::READ | MapFlags::WRITE;
            let window = Window::new(frame, PAGE.ilog2(), flags).map_err(|error| error.to_string())?;
            window.write(0, bytes);
            Ok(Loaded { window, _own: own, _bundle: bundle })
        };
        let pages = model.chunks(PAGE).map(load).collect::<Result<Vec<Loaded>, String>>()?;
        let node = Descriptor { kind: Kind::Untyped, size: NODE_BITS, count: 1 };
        let node = if slabs { Some(grant(node, None)?) } else { None };
        Ok(Pages { pages, _node: node })
    }

    /// Reads a page.
    pub fn read(&self, index: usize, page: &mut Page) {
        self.pages[index].window.read(0, page);
    }

    /// Returns the number of pages.
    pub fn count(&self) -> usize {
        self.pages.len()
    }
}

/// A frame, and the owners that keep it.
type Given = (Cap<Frame>, Option<Made<Frame>>, Option<Bundle>);

/// Makes a page of this process's own memory.
fn own_page() -> Result<Given, memory::Error> {
    let frame = make::<Frame>(u64::from(PAGE.ilog2()))?;
    Ok((frame.cap(), Some(frame), None))
}

/// Gets a page of a slab.
fn slab_page() -> Result<Given, String> {
    let slot = memory::take_slot().map_err(|error| error.to_string())?;
    let page = Descriptor { kind: Kind::Frame, size: PAGE.ilog2(), count: 1 };
    let bundle = grant(page, Some(slot))?;
    Ok((Cap::new(slot), None, Some(bundle)))
}

/// Gets a bundle of one kind of object, with the first capability in a slot of this process.
fn grant(descriptor: Descriptor, slot: Option<tench::sys::CapAddress>) -> Result<Bundle, String> {
    let destination = slot.map(|slot| (Cap::new(slot::CSPACE), slot));
    let granted = SLABS.ask(Lifetime::Dynamic, &[descriptor], destination);
    granted.map(|bundle| Bundle(bundle.number)).map_err(|failure| format!("the slabs: {failure}"))
}
