//! The paths within the crate that a file uses, and the modules that they lead to.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, tokens};

/// What the crate's root has: its modules, and names that it re-exports.
pub(crate) struct Root {
    modules: BTreeSet<String>,
    /// The name and the first segment of where it comes from.
    re_exports: BTreeMap<String, String>,
}

impl Root {
    /// Reads `lib.rs`.
    pub(crate) fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let mut root = Self { modules: BTreeSet::new(), re_exports: BTreeMap::new() };
        for (at, token) in tokens.iter().enumerate() {
            match (token, tokens.get(at + 1)) {
                (word, Some(Token::Word(name))) if word.is_word("mod") => {
                    root.modules.insert(name.clone());
                }
                (word, _) if word.is_word("use") => {
                    let mut next = at + 1;
                    for (path, name) in tree(&tokens, &mut next) {
                        root.re_exports.insert(name, path[0].clone());
                    }
                }
                _ => {}
            }
        }
        root
    }

    /// The module of this crate that a path from the root leads to; `None` for another crate's
    /// item.
    pub(crate) fn module_of(&self, path: &[String]) -> Option<String> {
        let first = &path[0];
        if self.modules.contains(first) {
            return Some(first.clone());
        }
        let Some(from) = self.re_exports.get(first) else {
            panic!("crate::{first} is no module and no re-export of lib.rs");
        };
        self.modules.contains(from).then(|| from.clone())
    }
}

/// Every path of the text that begins with `crate` or `super`, from the crate's root; `module` is
/// the file's own. Inline modules of tests are left out.
pub(crate) fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    // For each open brace whether it is an inline module's.
    let mut braces: Vec<Option<String>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(end) = inline_tests(&tokens, at) {
            at = end;
            continue;
        }
        match &tokens[at] {
            Token::Sign('{') => {
                let name = match tokens[..at] {
                    [.., ref word, Token::Word(ref name)] if word.is_word("mod") => {
                        Some(name.clone())
                    }
                    _ => None,
                };
                braces.push(name);
            }
            Token::Sign('}') => _ = braces.pop(),
            word if (word.is_word("crate") || word.is_word("super"))
                && tokens.get(at + 1) == Some(&Token::Separator) =>
            {
                let inline = braces.iter().flatten().cloned();
                let here: Vec<String> = module.iter().cloned().chain(inline).collect();
                for (path, _) in tree(&tokens, &mut at) {
                    found.extend(from_root(&here, &path));
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The path with its `crate` and `super` resolved; `None` if it stays in the module itself.
fn from_root(here: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut absolute = here.to_vec();
    for segment in path {
        match segment.as_str() {
            "crate" => absolute.clear(),
            "super" => _ = absolute.pop(),
            "self" => {}
            name => absolute.push(name.to_owned()),
        }
    }
    (!absolute.is_empty()).then_some(absolute)
}

/// Reads a path or a tree of paths from `at` on: each path, and the name that it is known under.
fn tree(tokens: &[Token], at: &mut usize) -> Vec<(Vec<String>, String)> {
    let mut path = Vec::new();
    loop {
        match tokens.get(*at) {
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Sign('*')) => path.push("*".to_owned()),
            Some(Token::Sign('{')) => {
                *at += 1;
                let mut all = Vec::new();
                while let Some(token) = tokens.get(*at) {
                    match token {
                        Token::Sign('}') => {
                            *at += 1;
                            break;
                        }
                        Token::Sign(',') => *at += 1,
                        _ => {
                            let before = *at;
                            for (rest, name) in tree(tokens, at) {
                                all.push((path.iter().cloned().chain(rest).collect(), name));
                            }
                            // What is no path can't be in a tree; it is passed over.
                            *at += usize::from(*at == before);
                        }
                    }
                }
                return all;
            }
            _ => break,
        }
        *at += 1;
        if tokens.get(*at) != Some(&Token::Separator) {
            break;
        }
        *at += 1;
    }
    let Some(mut name) = path.last().cloned() else { return Vec::new() };
    if let [as_word, Token::Word(alias)] =
        &tokens[(*at).min(tokens.len())..(*at + 2).min(tokens.len())]
        && as_word.is_word("as")
    {
        name.clone_from(alias);
        *at += 2;
    }
    vec![(path, name)]
}

/// The end of the `#[cfg(test)] mod … { … }` that begins at `at`, if one does.
fn inline_tests(tokens: &[Token], at: usize) -> Option<usize> {
    let word = |word: &str| Token::Word(word.to_owned());
    let attribute = [
        Token::Sign('#'),
        Token::Sign('['),
        word("cfg"),
        Token::Sign('('),
        word("test"),
        Token::Sign(')'),
        Token::Sign(']'),
    ];
    if !tokens[at..].starts_with(&attribute) {
        return None;
    }
    let mut at = at + attribute.len();
    // Other attributes.
    while tokens.get(at) == Some(&Token::Sign('#')) {
        at += tokens[at..].iter().position(|token| *token == Token::Sign(']'))? + 1;
    }
    if !tokens.get(at)?.is_word("mod") || tokens.get(at + 2) != Some(&Token::Sign('{')) {
        return None;
    }
    let mut depth = 0;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}
