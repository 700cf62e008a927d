//! Drawing of marks, bars and boxes, which plotters lacks in the form needed here.

use plotters::coord::{CoordTranslate, Shift};
use plotters::prelude::*;

use super::Shape;
use super::draw::Drawn;

/// Drawing area.
pub type Area<'a, T> = DrawingArea<SVGBackend<'a>, T>;

/// Half the size of a mark, in pixels.
const RADIUS: f64 = 4.0;
/// Distance of hatching lines, in pixels.
const HATCHING: i32 = 6;
/// Part of a position that bars and boxes take.
const FILLED: f64 = 0.8;

/// Draws a mark at a point of a chart whose y axis begins at `bottom`.
pub fn mark<T: CoordTranslate<From = (f64, f64)>>(
    area: &Area<T>,
    (x, y): (f64, f64),
    bottom: f64,
    shape: Shape,
    count: f64,
    colour: RGBColor,
) -> Drawn {
    let y = if shape == Shape::Tick { bottom } else { y };
    mark_at(&area.strip_coord_spec(), relative(area, (x, y)), shape, count, colour)
}

/// Returns a point's position in the area, in pixels.
fn relative<T: CoordTranslate<From = (f64, f64)>>(area: &Area<T>, point: (f64, f64)) -> (i32, i32) {
    let (x, y) = area.map_coordinate(&point);
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

/// Draws a mark at a pixel. Its area grows with the count.
pub fn mark_at(area: &Area<Shift>, (x, y): (i32, i32), shape: Shape, count: f64, colour: RGBColor) -> Drawn {
    let radius = (RADIUS * count.max(1.0).sqrt()).round() as i32;
    let style = colour.stroke_width(2);
    let stroke = |from: (i32, i32), to: (i32, i32)| -> Drawn {
        Ok(area.draw(&PathElement::new([(x + from.0, y + from.1), (x + to.0, y + to.1)], style))?)
    };
    match shape {
        Shape::Cross => {
            stroke((-radius, -radius), (radius, radius))?;
            stroke((-radius, radius), (radius, -radius))
        }
        Shape::Plus => {
            stroke((-radius, 0), (radius, 0))?;
            stroke((0, -radius), (0, radius))
        }
        Shape::Ring => Ok(area.draw(&Circle::new((x, y), radius, style))?),
        Shape::Dot => Ok(area.draw(&Circle::new((x, y), radius * 3 / 4, colour.filled()))?),
        Shape::Speck => Ok(area.draw(&Circle::new((x, y), 1, colour.filled()))?),
        Shape::Tick => stroke((0, 0), (0, -2 * radius)),
    }
}

/// Draws a bar from the bottom up, `position` of `of` side by side.
pub fn bar<T: CoordTranslate<From = (f64, f64)>>(
    area: &Area<T>,
    (x, y): (f64, f64),
    bottom: f64,
    (position, of): (usize, usize),
    hatched: bool,
    colour: RGBColor,
) -> Drawn {
    let width = FILLED / of as f64;
    let left = x - FILLED / 2.0 + width * position as f64;
    let corners = [relative(area, (left, y)), relative(area, (left + width, bottom))];
    rectangle(&area.strip_coord_spec(), corners, hatched, colour)
}

/// Draws a filled or hatched rectangle.
pub fn rectangle(
    area: &Area<Shift>,
    [(left, top), (right, bottom)]: [(i32, i32); 2],
    hatched: bool,
    colour: RGBColor,
) -> Drawn {
    if !hatched {
        area.draw(&Rectangle::new([(left, top), (right, bottom)], colour.filled()))?;
        return Ok(());
    }
    // The background does not shine through.
    area.draw(&Rectangle::new([(left, top), (right, bottom)], WHITE.filled()))?;
    area.draw(&Rectangle::new([(left, top), (right, bottom)], colour.mix(0.15).filled()))?;
    area.draw(&Rectangle::new([(left, top), (right, bottom)], colour.stroke_width(1)))?;
    // Lines x + y = sum, from where they enter the rectangle to where they leave it.
    let mut sum = left + top + HATCHING;
    while sum < right + bottom {
        let from = (left.max(sum - bottom), bottom.min(sum - left));
        let to = (right.min(sum - top), top.max(sum - right));
        area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?;
        sum += HATCHING;
    }
    Ok(())
}

/// Returns smallest, quartiles and largest of some values.
pub fn quartiles(mut values: Vec<f64>) -> Option<[f64; 5]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |quarter: usize| {
        // Interpolated between two values.
        let (whole, part) = (quarter * last / 4, (quarter * last % 4) as f64 / 4.0);
        let next = values[(whole + 1).min(last)];
        values[whole] + (next - values[whole]) * part
    };
    Some([at(0), at(1), at(2), at(3), at(4)])
}

/// Draws a box from quartile to quartile with the median in it, and whiskers to the extremes.
pub fn box_of<T: CoordTranslate<From = (f64, f64)>>(
    area: &Area<T>,
    values: Vec<f64>,
    x: f64,
    hatched: bool,
    colour: RGBColor,
) -> Drawn {
    let Some(values) = quartiles(values) else { return Ok(()) };
    let [low, first, median, third, high] = values.map(|value| relative(area, (x, value)));
    let (half, plain) = (11, area.strip_coord_spec());
    let line = |from: (i32, i32), to: (i32, i32), width| -> Drawn {
        Ok(plain.draw(&PathElement::new([from, to], colour.stroke_width(width)))?)
    };
    line(low, first, 1)?;
    line(third, high, 1)?;
    for (x, y) in [low, high] {
        line((x - half / 2, y), (x + half / 2, y), 1)?;
    }
    rectangle(&plain, [(third.0 - half, third.1), (first.0 + half, first.1.max(third.1 + 1))], hatched, colour)?;
    plain.draw(&PathElement::new([(median.0 - half, median.1), (median.0 + half, median.1)], BLACK.stroke_width(2)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        assert_eq!(quartiles(vec![]), None);
        assert_eq!(quartiles(vec![7.0]), Some([7.0; 5]));
        assert_eq!(quartiles(vec![4.0, 1.0, 3.0, 2.0, 5.0]), Some([1.0, 2.0, 3.0, 4.0, 5.0]));
        assert_eq!(quartiles(vec![0.0, 10.0]), Some([0.0, 2.5, 5.0, 7.5, 10.0]));
    }
}
