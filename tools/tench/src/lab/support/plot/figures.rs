//! The picture of an experiment's figures: a bar for each beside those of others.

use miette::{Result, miette};
use plotters::prelude::*;

use super::draw::Drawn;
use crate::lab::support::{Experiment, Measured, format_number, table};

const FONT: (&str, u32) = ("sans-serif", 14);
const TITLE_FONT: (&str, u32) = ("sans-serif", 18);
const WIDTH: u32 = 960;
/// Height of one row of bars.
const ROW: u32 = 34;
/// Height of everything but the bars: title, axis.
const FRAME: u32 = 120;
/// Factor by which the axis exceeds the longest bar, for numbers and legend.
const HEADROOM: f64 = 10.0;

/// Returns the picture as SVG.
pub fn figures(experiment: &Experiment, measured: &Measured) -> Result<String> {
    let mut svg = String::new();
    bars(&mut svg, experiment, measured).map_err(|error| miette!("cannot draw {}: {error}", experiment.name))?;
    Ok(svg)
}

fn bars(svg: &mut String, experiment: &Experiment, measured: &Measured) -> Drawn {
    let keys: Vec<&str> = table::ordered(experiment, &measured.figures).into_iter().map(|(key, _)| key).collect();
    let column = experiment.columns.first();
    let other = |key: &str| column.and_then(|column| column.get(key));
    let largest =
        keys.iter().flat_map(|key| [measured.figures.get(*key).copied(), other(key)]).flatten().fold(1.0, f64::max);
    let area = SVGBackend::with_string(svg, (WIDTH, FRAME + ROW * keys.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(experiment.title, TITLE_FONT)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(180)
        .build_cartesian_2d((1.0..largest * HEADROOM).log_scale(), 0.0..keys.len() as f64)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .x_desc(experiment.unit)
        .x_label_formatter(&|value| format_number(*value))
        .label_style(FONT)
        .draw()?;
    let mut bar = |title: &str, colour: RGBColor, from: f64, value: &dyn Fn(&str) -> Option<f64>| -> Drawn {
        let rectangles = keys.iter().enumerate().filter_map(|(row, key)| {
            // The first figure is on top.
            let bottom = (keys.len() - 1 - row) as f64 + from;
            value(key).map(|value| Rectangle::new([(1.0, bottom), (value.max(1.0), bottom + 0.35)], colour.filled()))
        });
        let legend = move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled());
        chart.draw_series(rectangles)?.label(title).legend(legend);
        Ok(())
    };
    bar("Tench", RGBColor(38, 108, 172), 0.5, &|key| measured.figures.get(key).copied())?;
    if let Some(column) = column {
        bar(column.title, RGBColor(190, 190, 190), 0.15, &other)?;
    }
    for (row, &key) in keys.iter().enumerate() {
        let middle = (keys.len() - row) as f64 - 0.5;
        let (x, y) = chart.backend_coord(&(1.0, middle));
        area.draw(&Text::new(key, (x - 170, y - 7), FONT))?;
        if let Some(&value) = measured.figures.get(key) {
            let (end, top) = chart.backend_coord(&(value.max(1.0), middle + 0.35));
            area.draw(&Text::new(format_number(value), (end + 6, top - 5), FONT))?;
        }
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).label_font(FONT).draw()?;
    area.present()?;
    Ok(())
}
