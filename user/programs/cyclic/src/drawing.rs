//! Draws histograms: lateness to the right, counts upwards, by powers of ten.
//!
//! The picture is self-contained: it refers to no other file, and contains its colours and fonts. All arithmetic is in
//! integers, because programs do without floating point where they can.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use crate::histogram::Histogram;
use crate::statistics::Figures;
use crate::{Options, Unit};

/// The picture's size, and the field in which curves are drawn.
const SIZE: (u64, u64) = (960, 540);
const LEFT: u64 = 70;
const RIGHT: u64 = 940;
const TOP: u64 = 50;
const BOTTOM: u64 = 490;
/// Colours of the curves, which people with colour blindness can tell apart, too; after the last comes the first.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b0a800"];
/// Number of fractional bits of a logarithm.
const FRACTION: u32 = 16;
/// Maximum number of marks below the field.
const MARKS: u64 = 10;

/// Returns the logarithm to base 2 of a number that is not 0, in 1/65,536: each squaring of the mantissa yields a bit.
fn logarithm(value: u64) -> u64 {
    let whole = value.max(1).ilog2();
    // From 2³¹ to 2³², as if from 1 to 2.
    let mut mantissa = value.max(1) << (63 - whole) >> 32;
    let mut result = u64::from(whole);
    for _ in 0..FRACTION {
        let square = mantissa * mantissa;
        let bit = square >> 63;
        result = 2 * result + bit;
        mantissa = square >> (31 + bit);
    }
    result
}

/// Returns the step from mark to mark: 1, 2 or 5 followed by zeros, so that there are at most [`MARKS`] in a range.
fn step(range: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if range / step <= MARKS || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The scales of the field.
struct Scale {
    /// Units from the left edge to the right one.
    range: u64,
    /// The power of ten at the upper edge.
    top: u64,
}

impl Scale {
    fn x(&self, units: u64) -> u64 {
        LEFT + ((RIGHT - LEFT) as u128 * u128::from(units.min(self.range)) / u128::from(self.range)) as u64
    }

    /// A count of 1 is slightly above the lower edge, which stands for 0.
    fn y(&self, count: u64) -> u64 {
        if count == 0 {
            return BOTTOM;
        }
        let bit = 1 << FRACTION;
        BOTTOM - (BOTTOM - TOP) * (logarithm(count) + bit) / (logarithm(self.top) + bit)
    }
}

/// Draws the histograms of all threads.
pub fn draw(options: &Options, threads: &[(Figures, &Histogram)]) -> String {
    let unit = options.unit;
    let width = threads.first().map_or(1, |(_, histogram)| histogram.width());
    let used = threads.iter().map(|(_, histogram)| histogram.used()).max().unwrap_or(0).max(1) as u64;
    let most = threads.iter().flat_map(|(_, histogram)| histogram.counts()).copied().max().unwrap_or(0);
    let mut top = 10_u64;
    while top < most {
        top = top.saturating_mul(10);
    }
    let scale = Scale { range: unit.count(used * width).max(1), top };
    let mut svg = String::new();
    frame(&mut svg, unit, &scale);
    for (number, (figures, histogram)) in threads.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        curve(&mut svg, &scale, unit, histogram, colour);
        let y = TOP + 18 + 18 * number as u64;
        let words = legend(options, number as u64, figures, histogram);
        put(
            &mut svg,
            format_args!("<text x=\"{}\" y=\"{y}\" fill=\"{colour}\" text-anchor=\"end\">{words}</text>\n", RIGHT - 10),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Appends text; writing to a string cannot fail.
fn put(svg: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}

/// Draws the frame and the marks around the curves.
fn frame(svg: &mut String, unit: Unit, scale: &Scale) {
    let (width, height) = SIZE;
    put(
        svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<title>How late threads ran</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"30\" font-size=\"17\">cyclic: how late threads ran, and how often</text>\n"
        ),
    );
    let mut count = 1_u64;
    while count <= scale.top {
        let y = scale.y(count);
        put(
            svg,
            format_args!(
                "<path d=\"M{LEFT} {y}H{RIGHT}\" stroke=\"#dddddd\"/>\n\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{count}</text>\n",
                LEFT - 8,
                y + 4
            ),
        );
        match count.checked_mul(10) {
            Some(next) => count = next,
            None => break,
        }
    }
    let step = step(scale.range);
    for mark in (0..=scale.range / step).map(|index| index * step) {
        let x = scale.x(mark);
        put(
            svg,
            format_args!(
                "<path d=\"M{x} {BOTTOM}v5\" stroke=\"#000000\"/>\n\
                 <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>\n",
                BOTTOM + 20
            ),
        );
    }
    put(
        svg,
        format_args!(
            "<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"#000000\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + RIGHT) / 2,
            BOTTOM + 40,
            unit.name()
        ),
    );
}

/// Draws a thread's curve: steps. Steps that fall on one column become one, as high as the highest.
fn curve(svg: &mut String, scale: &Scale, unit: Unit, histogram: &Histogram, colour: &str) {
    let counts = &histogram.counts()[..histogram.used()];
    put(svg, format_args!("<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" d=\"M{LEFT} {BOTTOM}"));
    let (mut column, mut highest, mut last) = (LEFT, 0, 0);
    for (bucket, count) in (0_u64..).zip(counts).chain([(counts.len() as u64, &0)]) {
        let x = scale.x(unit.count(bucket * histogram.width()));
        if x != column {
            if highest != last {
                put(svg, format_args!("H{column}V{}", scale.y(highest)));
                last = highest;
            }
            (column, highest) = (x, 0);
        }
        highest = highest.max(*count);
    }
    if last != 0 {
        put(svg, format_args!("H{column}V{BOTTOM}"));
    }
    svg.push_str("\"/>\n");
}

/// Returns the legend of a thread.
fn legend(options: &Options, thread: u64, figures: &Figures, histogram: &Histogram) -> String {
    let unit = options.unit;
    let beyond = match histogram.beyond() {
        0 => String::new(),
        count => format!(", {count} beyond"),
    };
    let Some(mean) = figures.mean() else { return format!("T{thread}: has not run") };
    format!(
        "T{thread}, priority {}, every {} µs: {} to {}, mean {}{beyond}",
        options.priority_of(thread),
        options.interval_of(thread) / 1000,
        unit.count(figures.least),
        unit.count(figures.most),
        unit.count(mean)
    )
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::Statistics;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use tench_options::Command;

    fn options(line: &str) -> Options {
        match Options::parse(line.split_whitespace(), 180) {
            Ok(Command::Do(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn drawn(options: &Options, statistics: &[Statistics]) -> String {
        let threads: Vec<_> =
            statistics.iter().map(|one| (one.figures, one.histogram.as_ref().expect("each has one"))).collect();
        draw(options, &threads)
    }

    /// Checks that a picture is well-formed, refers to nothing outside, draws nothing outside, and has one curve per
    /// thread.
    fn check(svg: &str, threads: usize) {
        let document = roxmltree::Document::parse(svg).expect("it is well-formed");
        let root = document.root_element();
        assert_eq!((root.tag_name().name(), root.tag_name().namespace()), ("svg", Some("http://www.w3.org/2000/svg")));
        assert!(!svg.contains("href") && !svg.contains("url(") && !svg.contains("<style") && !svg.contains("<script"));
        let curves = root.children().filter(|node| node.attribute("stroke-width") == Some("1.5")).count();
        assert_eq!(curves, threads);
        for (name, most) in [("x", SIZE.0), ("y", SIZE.1)] {
            for value in root.descendants().filter_map(|node| node.attribute(name)) {
                assert!(value.parse::<u64>().is_ok_and(|value| value <= most), "{name}={value}");
            }
        }
        for path in root.descendants().filter_map(|node| node.attribute("d")) {
            let numbers = path.split(|character: char| !character.is_ascii_digit()).filter(|part| !part.is_empty());
            assert!(numbers.map(|part| part.parse::<u64>().unwrap()).all(|number| number <= SIZE.0), "{path}");
        }
    }

    #[test]
    fn logarithms_are_right_to_four_digits() {
        for value in (1..2000).chain([1 << 20, 999_999_999, u64::MAX / 3, u64::MAX]) {
            let exact = (value as f64).log2() * f64::from(1 << FRACTION);
            assert!((logarithm(value) as f64 - exact).abs() < 4.0, "{value}: {} {exact}", logarithm(value));
        }
    }

    #[test]
    fn marks_are_few_and_round() {
        assert_eq!([1, 10, 11, 25, 60, 110, 7000].map(step), [1, 1, 2, 5, 10, 20, 1000]);
        assert!((1..5000).chain([u64::MAX]).all(|range| range / step(range) <= MARKS));
    }

    #[test]
    fn a_curve_goes_up_where_values_are() {
        let options = options("-h 10");
        let mut statistics = Statistics::new(Some(Histogram::new(1000, 10)));
        (0..10).for_each(|_| statistics.record(2500));
        statistics.record(4100);
        let svg = drawn(&options, &[statistics]);
        check(&svg, 1);
        // Five units are used, a count of ten is at the top, and a count of one lies between.
        let one = BOTTOM - (BOTTOM - TOP) * (1 << FRACTION) / (logarithm(10) + (1 << FRACTION));
        let [two, three, four] = [2, 3, 4].map(|units| LEFT + (RIGHT - LEFT) * units / 5);
        let path = format!("M70 490H{two}V50H{three}V490H{four}V{one}H940V490");
        assert!(svg.contains(&path), "{path}\n{svg}");
        assert!(svg.contains("T0, priority 180, every 1000 µs: 2 to 4, mean 2<"));
    }

    #[test]
    fn an_empty_measurement_gives_a_picture() {
        let svg = drawn(&options("-t 2 -h 10"), &[0, 1].map(|_| Statistics::new(Some(Histogram::new(1000, 10)))));
        check(&svg, 2);
        assert!(svg.contains("T1: has not run"));
        check(&draw(&options("-h 10"), &[]), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_picture_is_well_formed(
            threads in prop::collection::vec(prop::collection::vec(0..3_000_000_u64, 0..60), 1..10),
            width in 1..2000_u64,
            buckets in 1..20_000_usize,
            repeat in 1..50_u64,
        ) {
            let statistics: Vec<Statistics> = threads
                .iter()
                .map(|values| {
                    let mut one = Statistics::new(Some(Histogram::new(width, buckets)));
                    values.iter().for_each(|value| (0..repeat).for_each(|_| one.record(*value)));
                    one
                })
                .collect();
            for line in ["-t 10 -p 20", "-t 10 -p 20 -N", "-t 10 -p 20 --instructions"] {
                check(&drawn(&options(line), &statistics), threads.len());
            }
        }
    }
}
