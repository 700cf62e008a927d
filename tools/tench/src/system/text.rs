//! The syntax of system descriptions, and of cargo's output about packages: types for `serde` alone.
//!
//! Values whose mistakes deserve a better message than the parser's are accepted in any form and checked in `check`.

use serde::Deserialize;
use toml::{Spanned, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    pub kernel: Spanned<Value>,
    pub init: Spanned<Value>,
    #[serde(default)]
    pub cores: Cores,
    #[serde(default)]
    pub program: Vec<Spanned<Program>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cores {
    #[serde(default)]
    pub memory: Vec<Spanned<Value>>,
    #[serde(default)]
    pub lines: Vec<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: Spanned<Value>,
    pub package: Option<Spanned<Value>>,
    pub source: Option<Spanned<Value>>,
    pub path: Option<Spanned<Value>>,
    pub priority: Option<Spanned<Value>>,
    pub ceiling: Option<Spanned<Value>>,
    pub stack_size: Option<Spanned<Value>>,
    pub quota: Option<Spanned<Value>>,
    pub start: Option<Spanned<Value>>,
    pub cores: Option<Spanned<Value>>,
    pub server: Option<Spanned<Value>>,
    pub restart: Option<Spanned<Value>>,
    pub restart_delay: Option<Spanned<Value>>,
    pub keep: Option<Spanned<Value>>,
    pub keep_slots: Option<Spanned<Value>>,
    #[serde(default)]
    pub arguments: Vec<Spanned<Value>>,
    #[serde(default)]
    pub environment: Vec<Spanned<Value>>,
    #[serde(default)]
    pub powers: Vec<Spanned<Value>>,
    #[serde(default)]
    pub capabilities: Vec<Spanned<Value>>,
}

#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub id: String,
    pub targets: Vec<Target>,
}

#[derive(Deserialize)]
pub struct Target {
    pub kind: Vec<String>,
}
