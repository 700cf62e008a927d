//! Description of an experiment's pictures, apart from the drawing.
//!
//! A [`Plot`] is a file with panels one below the other, which share nothing but the order in which they are read; a
//! panel has two axes and layers; a layer names a series of the experiment's samples and its style. So a picture shows
//! nothing that is not in `data.csv`, and an experiment may draw one series twice.
//!
//! [`draw`](mod@draw) turns plots into SVG, [`figures`](mod@figures) draws the default picture of an experiment without
//! plots of its own.

mod axis;
mod draw;
mod figures;
mod marks;

use std::collections::BTreeSet;

use plotters::style::RGBColor;

use super::measure::Sample;

pub use draw::{Series, draw};
pub use figures::figures;

/// Colour of the first of two compared things.
pub const BLUE: RGBColor = RGBColor(31, 97, 163);
/// Colour of the second.
pub const ORANGE: RGBColor = RGBColor(214, 118, 20);
/// Colour of failures.
pub const RED: RGBColor = RGBColor(200, 30, 40);
/// Colour of a third thing.
pub const GREEN: RGBColor = RGBColor(40, 140, 70);
/// Colour of a fourth thing.
pub const PURPLE: RGBColor = RGBColor(120, 70, 160);
/// Colour of data shown only for comparison.
pub const GREY: RGBColor = RGBColor(130, 130, 130);
/// Colours in the order in which curves get them.
pub const COLOURS: [RGBColor; 8] =
    [BLUE, ORANGE, GREEN, PURPLE, RED, GREY, RGBColor(0, 150, 160), RGBColor(150, 100, 40)];

/// One picture, one file.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The file's name without `.svg`.
    pub file: String,
    /// Title at the top.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// A pair of axes and the data drawn between them.
#[derive(Clone, Debug)]
pub struct Panel {
    x: Axis,
    y: Axis,
    /// Names of the positions 0, 1, … of the x axis, if it counts things instead of measuring.
    categories: Vec<String>,
    layers: Vec<Layer>,
    height: u32,
}

/// Label and scale of an axis.
#[derive(Clone, Debug)]
struct Axis {
    title: String,
    logarithmic: bool,
    /// Number of the samples' units in one of the axis's.
    unit: f64,
}

/// A series and its style.
#[derive(Clone, Debug)]
struct Layer {
    series: String,
    /// Label in the legend; empty if it is not in the legend.
    label: String,
    colour: RGBColor,
    look: Look,
}

#[derive(Clone, Debug)]
enum Look {
    Line {
        dashed: bool,
    },
    /// Area filled from the axis up.
    Area,
    /// Line that holds each value until the next point.
    Steps {
        dashed: bool,
    },
    Marks {
        shape: Shape,
        /// Series with the number of occurrences at each point, which determines the mark's size.
        counts: Option<String>,
    },
    /// Bars at the positions of a category axis: index and number of bars side by side.
    Bars {
        hatched: bool,
        position: usize,
        of: usize,
    },
    /// Distribution of the series' values: smallest, quartiles, largest; at one position of a category axis.
    Box {
        position: usize,
        hatched: bool,
        /// Distance from the position's middle, in positions.
        shift: f64,
    },
}

/// Shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An oblique cross.
    Cross,
    /// An upright cross.
    Plus,
    /// A ring.
    Ring,
    /// A filled disc.
    Dot,
    /// A very small disc, where there are thousands.
    Speck,
    /// A short line at the lower edge of the panel, whatever the value.
    Tick,
}

impl Plot {
    /// Makes a picture without panels, for the file `FILE.svg`.
    pub fn new(file: impl Into<String>, title: impl Into<String>) -> Plot {
        Plot { file: file.into(), title: title.into(), panels: Vec::new() }
    }

    /// Adds a panel below the others.
    pub fn with(mut self, panel: Panel) -> Plot {
        self.panels.push(panel);
        self
    }
}

impl Panel {
    /// Makes a panel with two linear axes.
    pub fn new(x: impl Into<String>, y: impl Into<String>) -> Panel {
        let axis = |title| Axis { title, logarithmic: false, unit: 1.0 };
        Panel { x: axis(x.into()), y: axis(y.into()), categories: Vec::new(), layers: Vec::new(), height: 260 }
    }

    /// Makes a panel whose x axis counts things: its positions 0, 1, … have these names.
    pub fn of_categories<S: Into<String>>(names: impl IntoIterator<Item = S>, y: impl Into<String>) -> Panel {
        let mut panel = Panel::new("", y);
        panel.categories = names.into_iter().map(Into::into).collect();
        panel
    }

    /// Makes the x axis logarithmic.
    pub fn log_x(mut self) -> Panel {
        self.x.logarithmic = true;
        self
    }

    /// Makes the y axis logarithmic.
    pub fn log_y(mut self) -> Panel {
        self.y.logarithmic = true;
        self
    }

    /// Sets how many of the samples' units are one of the axes' units: 1024 for KiB.
    pub fn units(mut self, x: f64, y: f64) -> Panel {
        (self.x.unit, self.y.unit) = (x, y);
        self
    }

    /// Sets the panel's height in pixels.
    pub fn height(mut self, pixels: u32) -> Panel {
        self.height = pixels;
        self
    }

    fn layer(mut self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor, look: Look) -> Panel {
        self.layers.push(Layer { series: series.into(), label: label.into(), colour, look });
        self
    }

    /// Adds points joined by a line.
    pub fn line(self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor) -> Panel {
        self.layer(series, label, colour, Look::Line { dashed: false })
    }

    /// Adds points joined by a dashed line.
    pub fn dashed(self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor) -> Panel {
        self.layer(series, label, colour, Look::Line { dashed: true })
    }

    /// Adds a lightly filled area below a line.
    pub fn area(self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor) -> Panel {
        self.layer(series, label, colour, Look::Area)
    }

    /// Adds a line that holds each value until the next point.
    pub fn steps(self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor, dashed: bool) -> Panel {
        self.layer(series, label, colour, Look::Steps { dashed })
    }

    /// Adds a mark at each point.
    pub fn marks(self, series: impl Into<String>, label: impl Into<String>, colour: RGBColor, shape: Shape) -> Panel {
        self.layer(series, label, colour, Look::Marks { shape, counts: None })
    }

    /// Adds a mark at each point, larger where `counts` is larger. Both series have their points in the same order.
    pub fn counted_marks(
        self,
        series: impl Into<String>,
        counts: impl Into<String>,
        label: impl Into<String>,
        colour: RGBColor,
        shape: Shape,
    ) -> Panel {
        self.layer(series, label, colour, Look::Marks { shape, counts: Some(counts.into()) })
    }

    /// Adds bars at the positions of a category axis; `position` of `of` bars side by side.
    pub fn bars(
        self,
        series: impl Into<String>,
        label: impl Into<String>,
        colour: RGBColor,
        hatched: bool,
        (position, of): (usize, usize),
    ) -> Panel {
        self.layer(series, label, colour, Look::Bars { hatched, position, of })
    }

    /// Adds the distribution of a series' values at one position of a category axis, `shift` positions to the right of
    /// its middle.
    pub fn distribution(
        self,
        series: impl Into<String>,
        label: impl Into<String>,
        colour: RGBColor,
        hatched: bool,
        (position, shift): (usize, f64),
    ) -> Panel {
        self.layer(series, label, colour, Look::Box { position, hatched, shift })
    }
}

/// Makes a picture of one panel with a line for each series.
pub fn curves(file: &str, title: &str, unit: &str, samples: &[Sample]) -> Plot {
    let names: BTreeSet<&str> = samples.iter().map(|sample| sample.series.as_str()).collect();
    let coloured = names.into_iter().zip(COLOURS.into_iter().cycle());
    let empty = Panel::new("", unit).height(560);
    Plot::new(file, title).with(coloured.fold(empty, |panel, (name, colour)| panel.line(name, name, colour)))
}
