//! The import law: vocabulary ← the seven inner modules ← guard ← HTTP.
//!
//! The inner modules don't import one another; what crosses goes through the vocabulary. All may
//! import telemetry, which imports nothing but the vocabulary. Tests may use doubles of any module.
//!
//! A path counts wherever it stands, in a `use` or in an expression. One through the crate's root
//! (`crate::Gate`) counts as the module that `lib.rs` re-exports it from, and a chain of `super` as
//! the module that it leads to.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what can't be read fails the test")]

mod import_law {
    pub(crate) mod paths;
    pub(crate) mod tokens;
}

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use import_law::paths::{Root, paths};

const VOCABULARY: &[&str] = &["answer", "clock", "error", "key", "ports", "sql"];
const INNER: &[&str] =
    &["gate", "local_cache", "flight", "shared_cache", "loader", "warm_up", "backplane"];

/// The modules that a module may import, besides itself.
fn allowed(module: &str) -> BTreeSet<&'static str> {
    let mut allowed: BTreeSet<&str> = VOCABULARY.iter().copied().collect();
    match module {
        _ if VOCABULARY.contains(&module) => {}
        "telemetry" => {}
        _ if INNER.contains(&module) => {
            allowed.insert("telemetry");
        }
        "guard" => {
            allowed.extend(INNER);
            allowed.insert("telemetry");
        }
        "http_guard" => {
            allowed.extend(["guard", "telemetry"]);
        }
        other => panic!("{other}: a module without a place in the import law"),
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

/// The module that a file is: `gate/mod.rs` is `gate`, `gate/link.rs` is `gate::link`.
fn module_of(inside: &Path) -> Vec<String> {
    let mut module: Vec<String> = inside
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_str().unwrap().to_owned())
        .collect();
    module.pop_if(|last| last == "mod");
    module
}

fn is_test(module: &[String]) -> bool {
    module.iter().any(|part| part == "tests" || part.ends_with("_tests"))
}

#[test]
fn imports_run_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = Root::read(&std::fs::read_to_string(source.join("lib.rs")).unwrap());
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut checked = 0;
    let mut forbidden = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&source).unwrap();
        let module = module_of(inside);
        if module == ["lib"] || is_test(&module) {
            continue;
        }
        let allowed = allowed(&module[0]);
        for path in paths(&std::fs::read_to_string(&file).unwrap(), &module) {
            checked += 1;
            let Some(import) = root.module_of(&path) else { continue };
            if import != module[0] && !allowed.contains(import.as_str()) {
                forbidden.push(format!("{}: crate::{}", inside.display(), path.join("::")));
            }
        }
    }
    assert!(checked > 100, "only {checked} imports found: the test reads the wrong files");
    assert!(forbidden.is_empty(), "the import law forbids\n{}", forbidden.join("\n"));
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

/// The paths that `code` uses in the module `gate::link`, in a crate with a few re-exports.
fn modules_in(code: &str) -> Vec<String> {
    let root = Root::read(
        "mod gate;\npub mod a;\nmod b;\nmod c;\nmod d;\n\
         pub use a::{Type, inner::{Deep, Old as New}};\npub use b::function;\n\
         pub use other_crate::Foreign;",
    );
    let module = ["gate".to_owned(), "link".to_owned()];
    let modules = paths(code, &module).into_iter().filter_map(|path| root.module_of(&path));
    modules.collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn imports_are_seen_in_every_form() {
    assert_eq!(modules_in("use crate::{a::B, b, c::{e, f}};"), ["a", "b", "c"]);
    assert_eq!(modules_in("use crate::a::H;\nfn f() { crate::b::j::<u8>() }"), ["a", "b"]);
    assert_eq!(modules_in("macro_rules! m { () => { $crate::c::d() } }"), ["c"]);
    assert_eq!(modules_in("fn f(at: (crate::a::B, &crate::b::C)) {}"), ["a", "b"]);
}

#[test]
fn types_that_the_root_re_exports_count_as_their_module() {
    assert_eq!(modules_in("use crate::Type;"), ["a"]);
    assert_eq!(modules_in("use crate::{New, function};"), ["a", "b"]);
    assert_eq!(modules_in("fn f() -> crate::Deep { crate::function() }"), ["a", "b"]);
    assert_eq!(modules_in("use crate::Foreign;"), [""; 0]);
}

#[test]
#[should_panic(expected = "crate::Unheard")]
fn a_name_that_the_root_does_not_have_is_an_error() {
    modules_in("use crate::Unheard;");
}

#[test]
#[should_panic(expected = "crate::*")]
fn a_glob_of_the_root_is_an_error() {
    modules_in("use crate::*;");
}

#[test]
fn a_chain_of_super_counts_as_the_module_that_it_leads_to() {
    assert_eq!(modules_in("use super::Sibling;"), ["gate"]);
    assert_eq!(modules_in("use super::super::a::B;"), ["a"]);
    assert_eq!(modules_in("use super::{super::{b, Type}, own};"), ["a", "b", "gate"]);
    assert_eq!(modules_in("fn f() { super::super::function() }"), ["b"]);
    assert_eq!(modules_in("use self::super::super::c::D;"), ["c"]);
}

#[test]
fn an_inline_module_is_one_level_more() {
    assert_eq!(modules_in("mod own { use super::super::Sibling; }"), ["gate"]);
    assert_eq!(
        modules_in("mod own { use super::super::super::a::B; }\nuse super::C;"),
        ["a", "gate"]
    );
}

#[test]
fn comments_strings_and_inline_tests_are_not_code() {
    assert_eq!(modules_in("// crate::a\n/* crate::b /* crate::c */ */"), [""; 0]);
    assert_eq!(
        modules_in("/// [`crate::a`]\nconst A: &str = \"crate::a \\\" crate::b\";"),
        [""; 0]
    );
    assert_eq!(modules_in("const A: &str = r#\"crate::a \" crate::b\"#;"), [""; 0]);
    assert_eq!(modules_in("const A: char = '\"'; use crate::a::B; const B: char = '\"';"), ["a"]);
    assert_eq!(
        modules_in("#[cfg(test)]\n#[allow(x)]\nmod checks { use crate::a::B; }\nuse crate::b::C;"),
        ["b"]
    );
}
