//! The names in a crate: which modules there are, which paths a file contains, and what imported names stand for.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

/// The words of a path, from the root of the crate on; `*` is the last of a glob.
pub type Path = Vec<String>;

/// Words of a path at most. If a module and a function in it have the same name, which is imported, its paths would
/// grow for ever.
const MAX_WORDS: usize = 8;

/// Declarations and imports of a crate's modules.
#[derive(Default)]
pub struct Names {
    modules: BTreeSet<Path>,
    /// For the path of each imported name, the paths for which it stands: two functions of a module can import
    /// different things by one name. After a glob, the path of the module itself stands for what it has imported.
    imports: BTreeMap<Path, BTreeSet<Path>>,
}

impl Names {
    /// Adds a file of the module `module`, and returns the paths in it, also those that it only imports.
    pub fn add(&mut self, module: Path, text: &str) -> BTreeSet<Path> {
        let mut reader = Reader { names: self, module, path: Path::new(), colons: 0, found: BTreeSet::new() };
        reader.tokens(text.parse().expect("the compiler reads it too"));
        reader.found
    }

    /// Returns whether a path is that of a module.
    pub fn is_module(&self, path: &Path) -> bool {
        self.modules.contains(path)
    }

    /// Returns all paths for which a path can stand, and the path itself.
    pub fn meanings(&self, path: Path) -> BTreeSet<Path> {
        let (mut open, mut found) = (vec![path], BTreeSet::new());
        while let Some(path) = open.pop() {
            if path.len() > MAX_WORDS || !found.insert(path.clone()) {
                continue;
            }
            for end in 0..=path.len() {
                let (name, rest) = path.split_at(end);
                let targets = self.imports.get(name).into_iter().flatten();
                open.extend(targets.map(|target| [target, rest].concat()));
            }
        }
        found
    }
}

/// Reader of a file's tokens.
struct Reader<'a> {
    names: &'a mut Names,
    /// The module to which the tokens belong.
    module: Path,
    /// Words of the path that is being read.
    path: Path,
    /// Number of colons since its last word.
    colons: usize,
    found: BTreeSet<Path>,
}

impl Reader<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut rest = &tokens[..];
        while let Some((token, after)) = rest.split_first() {
            rest = match token {
                TokenTree::Ident(word) if word == "mod" => self.declaration(after),
                // `use<'a>` says what an `impl` type captures.
                TokenTree::Ident(word) if word == "use" && !after.first().is_some_and(|token| is_mark(token, '<')) => {
                    let end = after.iter().position(|token| is_mark(token, ';')).unwrap_or(after.len());
                    self.imports(&after[..end], &[]);
                    &after[end..]
                }
                _ => {
                    self.token(token);
                    after
                }
            };
        }
        self.finish();
    }

    /// Reads a token that may belong to a path.
    fn token(&mut self, token: &TokenTree) {
        match token {
            TokenTree::Ident(word) => {
                if self.colons != 2 {
                    self.finish();
                }
                self.path.push(word.to_string());
                self.colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => self.colons += 1,
            TokenTree::Group(group) => {
                self.finish();
                self.tokens(group.stream());
            }
            _ => self.finish(),
        }
    }

    /// Ends the path that is being read.
    fn finish(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.colons = 0;
        if !path.is_empty() {
            self.found.insert(absolute(&self.module, &path));
        }
    }

    /// Reads what follows `mod`, and returns the rest.
    fn declaration<'t>(&mut self, tokens: &'t [TokenTree]) -> &'t [TokenTree] {
        self.finish();
        let [TokenTree::Ident(name), rest @ ..] = tokens else { return tokens };
        self.module.push(name.to_string());
        self.names.modules.insert(self.module.clone());
        let rest = match rest {
            [TokenTree::Group(body), rest @ ..] => {
                self.tokens(body.stream());
                rest
            }
            _ => rest,
        };
        self.module.pop();
        rest
    }

    /// Reads the branches of a `use` declaration.
    fn imports(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        for branch in tokens.split(|token| is_mark(token, ',')) {
            let is_as = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "as");
            let (branch, renamed) = branch.split_at(branch.iter().position(is_as).unwrap_or(branch.len()));
            let words = branch.iter().filter_map(|token| match token {
                TokenTree::Ident(word) => Some(word.to_string()),
                _ => None,
            });
            let path: Path = prefix.iter().cloned().chain(words).collect();
            match branch.last() {
                None => {}
                Some(TokenTree::Group(group)) => self.imports(&group.stream().into_iter().collect::<Vec<_>>(), &path),
                Some(token) => self.import(&path, is_mark(token, '*'), renamed.last()),
            }
        }
    }

    fn import(&mut self, path: &[String], is_glob: bool, renamed: Option<&TokenTree>) {
        let mut path = absolute(&self.module, path);
        let mut name = self.module.clone();
        if !is_glob {
            name.extend(renamed.map(TokenTree::to_string).or_else(|| path.last().cloned()));
        }
        self.names.imports.entry(name).or_default().insert(path.clone());
        if is_glob {
            path.push("*".to_owned());
        }
        self.found.insert(path);
    }
}

fn is_mark(token: &TokenTree, sought: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == sought)
}

/// Returns a path that is written in `module`, from the root of the crate on. Names of other crates become names of the
/// module, where they do no harm.
fn absolute(module: &[String], path: &[String]) -> Path {
    let mut whole = module.to_vec();
    for word in path {
        match word.as_str() {
            "crate" => whole.clear(),
            "self" => {}
            "super" => drop(whole.pop()),
            _ => whole.push(word.clone()),
        }
    }
    whole
}
