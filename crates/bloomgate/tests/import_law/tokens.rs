//! A tokenizer of Rust that knows as much as the search for paths needs.

/// One token; literals and comments are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Separator,
    Sign(char),
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found == word)
    }
}

/// The tokens of the text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = string(rest) {
            length
        } else if first == '\'' {
            character_or_lifetime(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let is_inside = |c: char| c.is_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_owned()));
            length
        } else if rest.starts_with("::") {
            tokens.push(Token::Separator);
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of a string literal, raw or not, that the text begins with.
fn string(text: &str) -> Option<usize> {
    let after = text.trim_start_matches('b');
    if text.len() - after.len() > 1 {
        return None;
    }
    let prefix = text.len() - after.len();
    if let Some(raw) = after.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    let inside = after.strip_prefix('"')?;
    let mut escaped = false;
    let length = inside.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(prefix + 1 + length.map_or(inside.len(), |at| at + 1))
}

/// The length of a character literal, or of the tick of a lifetime.
fn character_or_lifetime(text: &str) -> usize {
    let inside = &text[1..];
    if let Some(escape) = inside.strip_prefix('\\') {
        // What is escaped may be a tick itself.
        let first = escape.chars().next().map_or(0, char::len_utf8);
        return escape[first..].find('\'').map_or(text.len(), |at| 2 + first + at + 1);
    }
    let first = inside.chars().next().map_or(0, char::len_utf8);
    if inside[first..].starts_with('\'') { 1 + first + 1 } else { 1 }
}
