//! Drawing of plots as SVG.

use std::collections::BTreeMap;

use miette::{Result, miette};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

use super::axis::Scale;
use super::marks::{self, Area, bar, box_of, mark};
use super::{Layer, Look, Panel, Plot, Shape};
use crate::lab::support::Sample;

const FONT: (&str, u32) = ("sans-serif", 14);
const TITLE_FONT: (&str, u32) = ("sans-serif", 18);
const WIDTH: u32 = 1120;
/// Width of the legend, to the right of the chart.
const LEGEND: u32 = 210;
const TITLE: u32 = 36;
/// Height of a line of the legend.
const LEGEND_LINE: i32 = 21;

pub type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;
pub type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

/// A series: its points in order.
type Points = Vec<(f64, f64)>;

/// The series of an experiment by name.
pub struct Series<'m>(BTreeMap<&'m str, Points>);

impl<'m> Series<'m> {
    /// Sorts samples by series.
    pub fn of(samples: &'m [Sample]) -> Series<'m> {
        let mut series: BTreeMap<&str, Points> = BTreeMap::new();
        for sample in samples {
            series.entry(&sample.series).or_default().push((sample.x, sample.y));
        }
        Series(series)
    }

    /// Returns the points of a series; none if it does not exist.
    fn points(&self, name: &str) -> &[(f64, f64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Returns the picture as SVG.
pub fn draw(plot: &Plot, series: &Series) -> Result<String> {
    let mut svg = String::new();
    try_draw(&mut svg, plot, series).map_err(|error| miette!("cannot draw {}: {error}", plot.file))?;
    Ok(svg)
}

fn try_draw(svg: &mut String, plot: &Plot, series: &Series) -> Drawn {
    let height = TITLE + plot.panels.iter().map(|panel| panel.height).sum::<u32>();
    let area = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    area.draw(&Text::new(plot.title.as_str(), (16, 12), TITLE_FONT))?;
    let mut rest = area.split_vertically(TITLE).1;
    for panel in &plot.panels {
        let (upper, lower) = rest.split_vertically(panel.height);
        let labelled = panel.layers.iter().any(|layer| !layer.label.is_empty());
        let (chart, legend) = upper.split_horizontally(if labelled { WIDTH - LEGEND } else { WIDTH });
        draw_panel(&chart, panel, series)?;
        draw_legend(&legend, panel)?;
        rest = lower;
    }
    area.present()?;
    Ok(())
}

fn draw_panel(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel, series: &Series) -> Drawn {
    let (x, y) = (x_scale(panel, series), y_scale(panel, series));
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .x_label_area_size(if panel.x.title.is_empty() { 24 } else { 42 })
        .y_label_area_size(86)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(panel.x.title.as_str())
        .y_desc(panel.y.title.as_str())
        .label_style(FONT)
        .axis_desc_style(FONT)
        .draw()?;
    for layer in &panel.layers {
        draw_layer(&mut chart, &x, &y, layer, series)?;
    }
    Ok(())
}

/// Returns the x scale, on which all drawn data lie; that of a category axis has its positions.
fn x_scale(panel: &Panel, series: &Series) -> Scale {
    if panel.categories.is_empty() {
        let layers = panel.layers.iter();
        Scale::of(&panel.x, layers.flat_map(|layer| series.points(&layer.series)).map(|(x, _)| *x))
    } else {
        Scale::of_names(&panel.categories)
    }
}

fn y_scale(panel: &Panel, series: &Series) -> Scale {
    let layers = panel.layers.iter().filter(|layer| !matches!(layer.look, Look::Marks { shape: Shape::Tick, .. }));
    Scale::of(&panel.y, layers.flat_map(|layer| series.points(&layer.series)).map(|(_, y)| *y))
}

fn draw_layer(chart: &mut Chart, x: &Scale, y: &Scale, layer: &Layer, series: &Series) -> Drawn {
    let points: Points = series.points(&layer.series).iter().map(|(px, py)| (x.at(*px), y.at(*py))).collect();
    let style = layer.colour.stroke_width(2);
    match &layer.look {
        Look::Line { dashed } => draw_line(chart, points, style, *dashed)?,
        Look::Steps { dashed } => draw_line(chart, in_steps(&points), style, *dashed)?,
        Look::Area => {
            let ends = [points.last(), points.first()].into_iter().flatten().map(|(x, _)| (*x, y.range.start));
            let outline: Points = points.iter().copied().chain(ends).collect();
            chart.draw_series([Polygon::new(outline, layer.colour.mix(0.18))])?;
        }
        Look::Marks { shape, counts } => {
            let counts = counts.as_deref().map(|name| series.points(name));
            for (index, point) in points.into_iter().enumerate() {
                let count = counts.and_then(|counts| counts.get(index)).map_or(1.0, |(_, count)| *count);
                mark(chart.plotting_area(), point, y.range.start, *shape, count, layer.colour)?;
            }
        }
        Look::Bars { hatched, position, of } => {
            for point in points {
                bar(chart.plotting_area(), point, y.range.start, (*position, *of), *hatched, layer.colour)?;
            }
        }
        Look::Box { position, hatched, shift } => {
            let values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
            box_of(chart.plotting_area(), values, *position as f64 + shift, *hatched, layer.colour)?;
        }
    }
    Ok(())
}

fn draw_line(chart: &mut Chart, points: Points, style: ShapeStyle, dashed: bool) -> Drawn {
    if dashed {
        chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
    } else {
        chart.draw_series(LineSeries::new(points, style))?;
    }
    Ok(())
}

/// Returns the corners of a line that first goes along and then up or down.
fn in_steps(points: &[(f64, f64)]) -> Points {
    let corners = points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    points.first().copied().into_iter().chain(corners).collect()
}

fn draw_legend(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel) -> Drawn {
    let labelled = panel.layers.iter().filter(|layer| !layer.label.is_empty());
    for (line, layer) in (0..).zip(labelled) {
        let middle = 18 + line * LEGEND_LINE;
        area.draw(&Text::new(layer.label.as_str(), (34, middle - 7), FONT))?;
        draw_sample(area, layer, middle)?;
    }
    Ok(())
}

/// Draws a layer's sample beside its label.
fn draw_sample(area: &Area<Shift>, layer: &Layer, middle: i32) -> Drawn {
    let style = layer.colour.stroke_width(2);
    let corners = [(4, middle - 6), (26, middle + 6)];
    match &layer.look {
        Look::Line { dashed: false } | Look::Steps { dashed: false } => {
            area.draw(&PathElement::new([(4, middle), (26, middle)], style))?;
        }
        Look::Line { dashed: true } | Look::Steps { dashed: true } => {
            area.draw(&PathElement::new([(4, middle), (13, middle)], style))?;
            area.draw(&PathElement::new([(17, middle), (26, middle)], style))?;
        }
        Look::Area => area.draw(&Rectangle::new(corners, layer.colour.mix(0.18).filled()))?,
        Look::Marks { shape, .. } => marks::mark_at(area, (15, middle), *shape, 1.0, layer.colour)?,
        Look::Bars { hatched, .. } | Look::Box { hatched, .. } => {
            marks::rectangle(area, corners, *hatched, layer.colour)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{BLUE, RED};
    use super::*;

    fn sample(series: &str, x: f64, y: f64) -> Sample {
        Sample { series: series.into(), x, y }
    }

    #[test]
    fn steps_go_along_first() {
        assert_eq!(in_steps(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
        assert_eq!(in_steps(&[]), []);
    }

    #[test]
    fn each_layer_leaves_its_trace() {
        let samples: Vec<Sample> = (1..=20).map(|x| sample("a", f64::from(x), f64::from(x * x))).collect();
        let series = Series::of(&samples);
        let empty = || Panel::new("x", "y");
        let svg = |panel: Panel| draw(&Plot::new("file", "title").with(panel), &series).unwrap();
        // Only layers are blue.
        let count = |svg: &str, element: &str| {
            svg.lines().filter(|line| line.starts_with(element) && line.contains("#1F61A3")).count()
        };
        let positions = || Panel::of_categories((0..=20).map(|x| x.to_string()), "y");
        let layers = [
            ("<polyline", 1..=1, empty().line("a", "", BLUE)),
            ("<polyline", 20..=200, empty().dashed("a", "", BLUE)),
            ("<polyline", 1..=1, empty().steps("a", "", BLUE, false)),
            ("<polygon", 1..=1, empty().area("a", "", BLUE)),
            ("<circle", 20..=20, empty().marks("a", "", BLUE, Shape::Dot)),
            ("<circle", 20..=20, empty().marks("a", "", BLUE, Shape::Speck)),
            ("<polyline", 40..=40, empty().marks("a", "", BLUE, Shape::Cross)),
            ("<polyline", 20..=20, empty().marks("a", "", BLUE, Shape::Tick)),
            ("<circle", 20..=20, empty().counted_marks("a", "a", "", BLUE, Shape::Ring).log_y().log_x()),
            ("<rect", 20..=20, positions().bars("a", "", BLUE, false, (0, 2))),
            ("<polyline", 20..=2000, positions().bars("a", "", BLUE, true, (1, 2))),
            ("<rect", 1..=1, Panel::of_categories(["a"], "y").distribution("a", "", BLUE, false, (0, 0.0))),
            ("<", 0..=0, empty().line("none", "", BLUE)),
        ];
        for (element, expected, panel) in layers {
            let look = format!("{:?}", panel.layers[0].look);
            let svg = svg(panel);
            assert!(expected.contains(&count(&svg, element)), "{look}: {} {svg}", count(&svg, element));
        }
    }

    #[test]
    fn the_legend_has_labelled_layers_only() {
        let samples = [sample("a", 1.0, 1.0), sample("b", 1.0, 2.0)];
        let panel = Panel::new("time", "money").line("a", "some <label>", BLUE).dashed("b", "", RED);
        let svg = draw(&Plot::new("file", "title").with(panel), &Series::of(&samples)).unwrap();
        for text in ["title", "time", "money", "some &lt;label&gt;"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
