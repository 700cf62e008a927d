//! Tests that the session in `README.md` is the one that `scenario/readme` plays, and that `docs/session.svg` is a
//! picture of it.

use std::fmt::Write;

use super::{check, read};

#[path = "../../src/transcript.rs"]
mod transcript;

const PROMPT: &str = "tench> ";
const PICTURE: &str = "docs/session.svg";
/// Width of a character, height of a line, and margin, in pixels.
const CHARACTER: f32 = 7.8;
const LINE: f32 = 18.0;
const MARGIN: f32 = 16.0;
/// Height of the window's title.
const TITLE: f32 = 30.0;

/// Returns the lines of the session, the command that starts it included.
fn session(readme: &str) -> Vec<&str> {
    let (_, rest) = readme.split_once("```text\n").expect("the session is a block of text");
    let (block, _) = rest.split_once("```").expect("the block ends");
    block.lines().collect()
}

/// Returns text escaped for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a picture of a terminal that shows the lines.
fn picture(lines: &[&str]) -> String {
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = columns as f32 * CHARACTER + 2.0 * MARGIN;
    let height = TITLE + lines.len() as f32 * LINE + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>A session with Tench</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1d2430\"/>\n\
         <g fill=\"#4b5666\"><circle cx=\"18\" cy=\"15\" r=\"5\"/><circle cx=\"35\" cy=\"15\" r=\"5\"/><circle cx=\"52\" cy=\"15\" r=\"5\"/></g>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\" fill=\"#c9d1dc\">\n"
    );
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = TITLE + (number as f32 + 0.75) * LINE;
        // Every font gets the same width, so that columns stay columns.
        let length = line.chars().count() as f32 * CHARACTER;
        let prompt = [PROMPT, "$ "].into_iter().find(|prompt| line.starts_with(prompt)).unwrap_or_default();
        let (prompt, rest) = line.split_at(prompt.len());
        let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" textLength=\"{length:.1}\" xml:space=\"preserve\">");
        if prompt.is_empty() {
            let _ = writeln!(svg, "{}</text>", escaped(rest));
        } else {
            let (prompt, rest) = (escaped(prompt), escaped(rest));
            let _ =
                writeln!(svg, "<tspan fill=\"#58c79a\">{prompt}</tspan><tspan fill=\"#ffffff\">{rest}</tspan></text>");
        }
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn the_picture_shows_the_session() {
    check(PICTURE, &picture(&session(&read("README.md"))));
}

#[test]
fn the_session_in_the_readme_is_played() {
    let (readme, scenario) = (read("README.md"), read("tests/scenarios/readme.txt"));
    let shown: Vec<&str> = session(&readme).into_iter().skip_while(|line| !line.starts_with(PROMPT)).collect();
    let end = shown.iter().position(|line| line.starts_with("$ ")).unwrap_or(shown.len());
    let expected: Vec<&str> = scenario.lines().skip_while(|line| !line.starts_with(PROMPT)).collect();
    if let Some(difference) = transcript::compare(&expected, &shown[..end]) {
        panic!("README.md shows another session than tests/scenarios/readme.txt:\n{difference}");
    }
}
