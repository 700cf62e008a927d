//! The digits of a number.

/// Gives the digits of a number to `print`, the first one first: at least `least` of them, and no more than a number of
/// 64 bits has.
pub fn digits(number: u64, base: u64, least: u32, mut print: impl FnMut(u8)) {
    let (mut place, mut count) = (1, 1);
    while number / place >= base || count < least {
        place *= base;
        count += 1;
    }
    while place > 0 {
        let digit = (number / place % base) as u8;
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
                (10, 1, std::format!("{number}")),
                (16, 1, std::format!("{number:x}")),
                (16, 16, std::format!("{number:016x}")),
            ] {
                let mut text = String::new();
                digits(number, base, least, |digit| text.push(digit.into()));
                assert_eq!(text, expected);
            }
        }
    }
}
