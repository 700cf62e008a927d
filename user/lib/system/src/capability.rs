//! Capabilities that a program can be given, as the description names them and as `init` reads them.

use serde::{Deserialize, Serialize};

use crate::Strings;

/// Names of capabilities in a description, with their meanings.
pub const FORMS: &[(&str, &str)] = &[
    ("kernel", "the kernel itself: power, early output, statistics, the other cores"),
    ("interrupt-control", "the authority to make interrupt capabilities"),
    ("device:DEVICE", "the frame with the device's registers"),
    ("optional-device:DEVICE", "the same, or nothing if the machine has no such device"),
    ("interrupt:DEVICE", "the device's interrupt line"),
    ("archive", "the memory that holds the boot archive"),
    ("channel", "the frame that this core shares with the one that has started it; nothing on the first"),
    (
        "absent-services",
        "the endpoints of the servers that run on the first core only, to reply there; nothing on the first",
    ),
    ("untyped:all", "all memory that nobody else was given, and to be told where it lies"),
    ("service:SERVER", "the endpoint of a server of this description"),
];

/// A device that the description can name; `init` finds it in the device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Device {
    /// The serial port.
    Uart,
    /// The real-time clock.
    Clock,
    /// The general-purpose pins.
    Pins,
    /// The virtio transport with this number, counted in ascending order of addresses.
    Virtio(u8),
}

impl Device {
    /// Names of devices, for messages.
    pub const NAMES: &'static [&'static str] = &["uart", "rtc", "gpio", "virtio0 to virtio31"];

    /// Returns the device that a description calls `name`.
    pub fn from_name(name: &str) -> Option<Device> {
        match name {
            "uart" => Some(Device::Uart),
            "rtc" => Some(Device::Clock),
            "gpio" => Some(Device::Pins),
            _ => {
                let number = name.strip_prefix("virtio")?;
                let number: u8 = number.parse().ok().filter(|&parsed| parsed < 32 && is_plain(number))?;
                Some(Device::Virtio(number))
            }
        }
    }

    /// Returns the device's `compatible` string in the device tree.
    pub const fn compatible(self) -> &'static str {
        match self {
            Device::Uart => "arm,pl011",
            Device::Clock => "arm,pl031",
            Device::Pins => "arm,pl061",
            Device::Virtio(_) => "virtio,mmio",
        }
    }

    /// Returns the device's number among the nodes with that string, counted in ascending order of addresses.
    pub const fn position(self) -> usize {
        match self {
            Device::Uart | Device::Clock | Device::Pins => 0,
            Device::Virtio(number) => number as usize,
        }
    }
}

/// Returns whether a number is written without a sign or leading zeros.
fn is_plain(number: &str) -> bool {
    number == "0" || !number.starts_with(['0', '+'])
}

/// A capability that a program gets besides those of every process.
///
/// `kernel` and `interrupt-control` go to the slots `KERNEL` and `INTERRUPT_CONTROL`, and the capability that permits
/// learning physical addresses to `KERNEL`. The others take the slots from `EXTRA` on, in the order of the description;
/// `archive`, `absent-services` and `untyped:all`, which can be several capabilities, take as many as they need, and an
/// optional device that the machine does not have takes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability<'a> {
    /// The kernel itself.
    Kernel,
    /// The authority to make interrupt capabilities.
    InterruptControl,
    /// The frame with a device's registers.
    Device(Device),
    /// The frame with a device's registers, if the machine has the device.
    OptionalDevice(Device),
    /// A device's interrupt line.
    Interrupt(Device),
    /// The memory that holds the boot archive.
    Archive,
    /// The frame that this core shares with the core that started it, if there is one.
    Channel,
    /// The endpoints of the servers that run on the first core only, in the order of the description; none on the first
    /// core.
    AbsentServices,
    /// All memory that no other program was given, and the kernel with the power to learn its physical addresses.
    Untyped,
    /// The endpoint of a server, unbadged and with all rights.
    Service(&'a str),
}

impl<'a> Capability<'a> {
    /// Returns the capability that a description writes as `text`. Does not check whether a server of that name exists.
    pub fn from_text(text: &'a str) -> Option<Capability<'a>> {
        match text.split_once(':') {
            None => match text {
                "kernel" => Some(Capability::Kernel),
                "interrupt-control" => Some(Capability::InterruptControl),
                "archive" => Some(Capability::Archive),
                "channel" => Some(Capability::Channel),
                "absent-services" => Some(Capability::AbsentServices),
                _ => None,
            },
            Some(("device", device)) => Device::from_name(device).map(Capability::Device),
            Some(("optional-device", device)) => Device::from_name(device).map(Capability::OptionalDevice),
            Some(("interrupt", device)) => Device::from_name(device).map(Capability::Interrupt),
            Some(("untyped", "all")) => Some(Capability::Untyped),
            Some(("service", server)) => Some(Capability::Service(server)),
            Some(_) => None,
        }
    }
}

/// The capabilities of one program, stored in the form of the description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities<'a> {
    #[serde(borrow)]
    texts: Strings<'a>,
}

impl<'a> Capabilities<'a> {
    /// Returns the capabilities with these texts.
    pub const fn new(texts: Strings<'a>) -> Capabilities<'a> {
        Capabilities { texts }
    }

    /// Returns an iterator over the capabilities, in the order of the description.
    pub fn iter(&self) -> impl Iterator<Item = Capability<'a>> + Clone + use<'a> {
        self.texts.iter().filter_map(Capability::from_text)
    }

    /// Returns whether this capability is among them.
    pub fn contains(&self, capability: Capability) -> bool {
        self.iter().any(|candidate| candidate == capability)
    }

    pub(crate) fn is_well_formed(&self) -> bool {
        self.texts.is_well_formed() && self.texts.iter().all(|text| Capability::from_text(text).is_some())
    }
}
