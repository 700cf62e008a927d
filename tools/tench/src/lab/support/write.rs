//! Writer of an experiment's files under `target/lab/NAME/`.

use std::path::PathBuf;

use miette::Result;
use serde_json::{Value, json};

use super::experiment::Experiment;
use super::measure::{Figures, Measured};
use super::{plot, table};
use crate::workspace::{self, Workspace};

/// Writes `table.txt`, `data.csv` and `result.json`, and the experiment's tables and pictures; returns their directory.
pub fn write(workspace: &Workspace, experiment: &Experiment, measured: &Measured) -> Result<PathBuf> {
    let directory = workspace.target.join("lab").join(experiment.name);
    let table = format!("{}\n\n{}", experiment.title, table::table(experiment, &measured.figures));
    workspace::write_file(&directory.join("table.txt"), table.as_bytes())?;
    workspace::write_file(&directory.join("data.csv"), csv(measured).as_bytes())?;
    let file = |name: &str, ending: &str| directory.join(format!("{name}.{ending}"));
    for table in (experiment.tables)(measured) {
        workspace::write_file(&file(&table.file, "txt"), table.text().as_bytes())?;
        workspace::write_file(&file(&table.file, "csv"), table.csv().as_bytes())?;
    }
    for (name, svg) in pictures(experiment, measured)? {
        workspace::write_file(&file(&name, "svg"), svg.as_bytes())?;
    }
    workspace::write_file(&directory.join("result.json"), result_json(experiment, &measured.figures).as_bytes())?;
    Ok(directory)
}

/// Returns the experiment's pictures by name; by default a curve for each series, or a bar for each figure.
fn pictures(experiment: &Experiment, measured: &Measured) -> Result<Vec<(String, String)>> {
    let mut plots = (experiment.plots)(measured);
    if plots.is_empty() {
        if measured.samples.is_empty() {
            return Ok(vec![("plot".to_owned(), plot::figures(experiment, measured)?)]);
        }
        plots.push(plot::curves("plot", experiment.title, experiment.unit, &measured.samples));
    }
    let series = plot::Series::of(&measured.samples);
    plots.into_iter().map(|plot| Ok((plot.file.clone(), plot::draw(&plot, &series)?))).collect()
}

/// Returns the content of `result.json`.
pub fn result_json(experiment: &Experiment, figures: &Figures) -> String {
    let figures: serde_json::Map<_, _> = figures.iter().map(|(key, value)| (key.clone(), number(*value))).collect();
    let json = json!({ "experiment": experiment.name, "unit": experiment.unit, "figures": figures });
    format!("{json:#}\n")
}

/// Returns figures and samples, one a line. Names have neither commas nor quotes: they are words of the guest's output.
fn csv(measured: &Measured) -> String {
    let figures = measured.figures.iter().map(|(key, value)| format!("figure,{key},,{value}\n"));
    let samples = measured.samples.iter().map(|sample| format!("sample,{},{},{}\n", sample.series, sample.x, sample.y));
    std::iter::once("kind,name,x,value\n".to_owned()).chain(figures).chain(samples).collect()
}

/// Returns a JSON number, without a fraction if it is whole.
pub fn number(value: f64) -> Value {
    // Whole numbers up to 2⁵³ are exact in both.
    if value.fract() == 0.0 && value.abs() < 9.0e15 { json!(value as i64) } else { json!(value) }
}

/// Formats a number for people.
pub fn format_number(value: f64) -> String {
    let text = if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let groups: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or_default()).collect();
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    format!("{sign}{}{fraction}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::measure::Sample;
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let cases = [
            (0.0, "0"),
            (999.0, "999"),
            (1390.0, "1,390"),
            (-1234567.0, "-1,234,567"),
            (12.5, "12.5"),
            (-0.25, "-0.25"),
            (4.999, "5"),
        ];
        for (value, text) in cases {
            assert_eq!(format_number(value), text);
        }
    }

    #[test]
    fn all_files_are_written() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), target: root.path().join("target") };
        let sample = |x: f64| Sample { series: "latency".into(), x, y: x * x };
        let figures = Figures::from([("call_0".to_owned(), 93.0), ("map_each_512".to_owned(), 11.5)]);
        for samples in [Vec::new(), vec![sample(1.0), sample(2.0), sample(3.0)]] {
            let measured = Measured { figures: figures.clone(), samples, ..Measured::default() };
            let directory = write(&workspace, &crate::lab::EXPERIMENTS[0], &measured).unwrap();
            let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
            assert!(read("table.txt").contains("call_0"));
            assert!(read("plot.svg").starts_with("<svg"));
            assert!(read("data.csv").starts_with("kind,name,x,value\nfigure,call_0,,93\nfigure,map_each_512,,11.5\n"));
            let json: Value = serde_json::from_str(&read("result.json")).unwrap();
            let expected =
                json!({"experiment": "ipc", "unit": "instructions", "figures": {"call_0": 93, "map_each_512": 11.5}});
            assert_eq!(json, expected);
        }
    }
}
