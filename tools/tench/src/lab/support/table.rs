//! An experiment's tables, for people.

use super::experiment::{Experiment, find};
use super::measure::Figures;
use super::write::format_number;

/// A table of an experiment, besides that of all its figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the files, without `.txt` and `.csv`.
    pub file: String,
    /// Title: one line.
    pub title: String,
    /// Rows, the heading first. Every row has the same number of cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns the table for people.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.title, layout(&self.rows))
    }

    /// Returns the table for programs.
    pub fn csv(&self) -> String {
        let cell = |cell: &String| {
            if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
        };
        let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        self.rows.iter().map(line).collect()
    }
}

/// Returns the figures beside those of others and the targets; figures without either come last.
pub fn table(experiment: &Experiment, figures: &Figures) -> String {
    let mut heading = vec!["path".to_owned()];
    heading.extend(experiment.columns.iter().map(|column| column.title.to_owned()));
    heading.extend(["target", "Tench", ""].map(str::to_owned));
    let mut rows = vec![heading];
    for (key, value) in ordered(experiment, figures) {
        let others: Vec<Option<f64>> = experiment.columns.iter().map(|column| column.get(key)).collect();
        rows.push(row(key, &others, find(experiment.targets, key), value));
    }
    for sum in experiment.sums {
        if let Some(value) = sum.keys.iter().map(|key| figures.get(*key)).sum::<Option<f64>>() {
            let mut others = vec![None; experiment.columns.len()];
            if let Some(first) = others.first_mut() {
                *first = sum.reference;
            }
            rows.push(row(sum.title, &others, Some(sum.target), value));
        }
    }
    format!("({})\n{}", experiment.unit, layout(&rows))
}

/// Returns the figures in the order of the targets and the others' columns, then the rest by name.
pub fn ordered<'f>(experiment: &Experiment, figures: &'f Figures) -> Vec<(&'f str, f64)> {
    let known = experiment.targets.iter().chain(experiment.columns.iter().flat_map(|column| column.values));
    let mut keys: Vec<&str> = Vec::new();
    let mut rest: Vec<&str> = figures.keys().map(String::as_str).collect();
    rest.sort_by_key(|key| natural(key));
    for key in known.map(|(key, _)| *key).chain(rest) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let get = |key: &str| figures.get_key_value(key).map(|(key, value)| (key.as_str(), *value));
    keys.into_iter().filter_map(get).collect()
}

/// Orders keys that end in a number by that number.
fn natural(key: &str) -> (&str, u64) {
    let name = key.trim_end_matches(|last: char| last.is_ascii_digit());
    (name, key[name.len()..].parse().unwrap_or_default())
}

fn row(name: &str, others: &[Option<f64>], target: Option<f64>, value: f64) -> Vec<String> {
    let show = |value: &Option<f64>| value.map_or("–".to_owned(), format_number);
    let verdict = match target {
        Some(target) if value > target => format!("{} over", format_number(value - target)),
        Some(_) => "reached".to_owned(),
        None => String::new(),
    };
    let mut row = vec![name.to_owned()];
    row.extend(others.iter().map(show));
    row.extend([
        target.map_or("–".to_owned(), |target| format!("≤ {}", format_number(target))),
        format_number(value),
        verdict,
    ]);
    row
}

/// Aligns the first and the last column to the left, the others to the right.
fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |column: usize| {
            let width = widths[column];
            if column == 0 || column + 1 == columns {
                format!("{:<width$}", row[column])
            } else {
                format!("{:>width$}", row[column])
            }
        };
        let line = (0..columns).map(cell).collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_targets_and_others() {
        let experiment = &crate::lab::EXPERIMENTS[0];
        let values = [("call_0", 93.0), ("reply_recv_0", 110.0), ("call_8", 94.5), ("another", 1.0)];
        let figures = values.map(|(key, value)| (key.to_owned(), value)).into();
        let expected = "\
(instructions)
path                 seL4  target  Tench
call_0                192    ≤ 95     93  reached
reply_recv_0          215   ≤ 105    110  5 over
another                 –       –      1
call_8                  –       –   94.5
round trip, 0 words   407   ≤ 200    203  3 over
";
        assert_eq!(table(experiment, &figures), expected);
    }

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        let mut keys = ["free_10", "alloc_100", "alloc_2", "alloc", "alloc_1000000", "free_9"];
        keys.sort_by_key(|key| natural(key));
        assert_eq!(keys, ["alloc", "alloc_2", "alloc_100", "alloc_1000000", "free_9", "free_10"]);
    }

    #[test]
    fn tables_are_for_people_and_programs() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["policy", "loss", ""]), row(["best", "1,024", "a \"b\""])];
        let table = Table { file: "t".into(), title: "Losses".into(), rows };
        assert_eq!(table.text(), "Losses\npolicy   loss\nbest    1,024  a \"b\"\n");
        assert_eq!(table.csv(), "policy,loss,\nbest,\"1,024\",\"a \"\"b\"\"\"\n");
    }
}
