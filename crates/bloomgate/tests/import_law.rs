//! Imports run one way: vocabulary ← the seven rooms ← guard ← HTTP.
//!
//! The rooms don't import one another; what crosses goes through the vocabulary. Everyone may
//! import telemetry, which imports nothing but the vocabulary. Tests may reach for doubles in any
//! room.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what can't be read fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const VOCABULARY: &[&str] = &["answer", "clock", "error", "key", "ports", "sql"];
const ROOMS: &[&str] =
    &["gate", "local_cache", "flight", "shared_cache", "loader", "warm_up", "backplane"];

/// Who a module may import, besides itself.
fn allowed(module: &str) -> BTreeSet<&'static str> {
    let mut allowed: BTreeSet<&str> = VOCABULARY.iter().copied().collect();
    match module {
        _ if VOCABULARY.contains(&module) => {}
        "telemetry" => {}
        _ if ROOMS.contains(&module) => {
            allowed.insert("telemetry");
        }
        "guard" => {
            allowed.extend(ROOMS);
            allowed.insert("telemetry");
        }
        "http_guard" => {
            allowed.extend(["guard", "telemetry"]);
        }
        other => panic!("{other}: a module that the import law doesn't know; say where it stands"),
    }
    allowed
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The code above the file's own tests, without comments.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every `crate::module` in the code, also in a `use crate::{a::…, b::…}`.
fn imports(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => {
                found.insert(word(after));
            }
            Some(list) => {
                let mut depth = 0;
                let mut start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && !c.is_whitespace() => {
                            found.insert(word(&list[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

#[test]
fn imports_run_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut checked = 0;
    for file in files {
        let inside = file.strip_prefix(&root).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = module.trim_end_matches(".rs");
        let is_test = inside
            .components()
            .any(|part| part.as_os_str().to_str().is_some_and(|part| part.starts_with("tests")));
        if module == "lib" || module == "testing" || is_test {
            continue;
        }
        let allowed = allowed(module);
        for import in imports(&code_of(&std::fs::read_to_string(&file).unwrap())) {
            // Types that the crate's root re-exports come from the vocabulary.
            let is_type = import.chars().next().is_some_and(char::is_uppercase);
            assert!(
                is_type || import == module || allowed.contains(import.as_str()),
                "{} imports crate::{import}, which the import law forbids",
                inside.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} imports found: the test reads the wrong files");
}

#[test]
fn every_module_says_its_one_job_first() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{}: the first line is not its job", file.display());
    }
}

#[test]
fn the_law_sees_imports_in_every_form() {
    let code = "use crate::{a::B, c, d::{e, f}};\nuse crate::g::H;\nfn f() { crate::i::j() }";
    let found: Vec<String> = imports(code).into_iter().collect();
    assert_eq!(found, ["a", "c", "d", "g", "i"]);
}
