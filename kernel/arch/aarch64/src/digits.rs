//! The digits of a number.

use core::num::NonZero;

/// Base of decimal digits.
pub const DECIMAL: NonZero<u64> = NonZero::new(10).unwrap();
/// Base of hexadecimal digits.
pub const HEXADECIMAL: NonZero<u64> = NonZero::new(16).unwrap();

/// Gives the digits of a number to `print`, the first one first: at least `least` of them, and no more than a number of
/// 64 bits has. It cannot fail, since a report of a failure uses it.
pub fn digits(number: u64, base: NonZero<u64>, least: u32, mut print: impl FnMut(u8)) {
    let (mut place, mut count): (u64, _) = (1, 1);
    let part = |place| number.checked_div(place).unwrap_or(0);
    while part(place) >= base.get() || count < least {
        place *= base.get();
        count += 1;
    }
    while place > 0 {
        let digit = (part(place) % base) as u8;
        print(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
        place /= base;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use super::*;

    #[test]
    fn digits_are_those_that_formatting_gives() {
        for number in [0, 7, 9, 10, 15, 16, 101, 0x2000, 0xffff_fff0_4020_0000, 1 << 63, u64::MAX - 1, u64::MAX] {
            for (base, least, expected) in [
                (DECIMAL, 1, std::format!("{number}")),
                (HEXADECIMAL, 1, std::format!("{number:x}")),
                (HEXADECIMAL, 16, std::format!("{number:016x}")),
            ] {
                let mut text = String::new();
                digits(number, base, least, |digit| text.push(digit.into()));
                assert_eq!(text, expected);
            }
        }
    }
}
