//! The guide's quotations of the two files.

use std::collections::BTreeSet;

use similar::{ChangeTag, TextDiff};

const BEFORE: &str = include_str!("before.rs");
const AFTER: &str = include_str!("after.rs");
const GUIDE: &str = include_str!("../../../../docs/GUIDE.md");

/// Each line that the wrapping removes, with a minus before it, or adds, with a plus.
fn changes() -> Vec<String> {
    let diff = TextDiff::from_lines(BEFORE, AFTER);
    let lines = diff.iter_all_changes().filter_map(|change| match change.tag() {
        ChangeTag::Delete => Some(format!("-{}", change.value().trim_end())),
        ChangeTag::Insert => Some(format!("+{}", change.value().trim_end())),
        ChangeTag::Equal => None,
    });
    lines.collect()
}

/// The lines of the guide's blocks of code in one language.
fn quoted(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = GUIDE.split(fence.as_str()).skip(1);
    blocks.filter_map(|after| after.split("```").next()).flat_map(str::lines).collect()
}

#[test]
fn the_service_is_wrapped_with_at_most_40_changed_lines() {
    // A line that is changed counts twice here, as one that goes and one that comes.
    let changes = changes();
    assert!(changes.len() <= 40, "{} lines:\n{}", changes.len(), changes.join("\n"));
    let size = BEFORE.lines().count();
    assert!((130..=170).contains(&size), "{size} lines");
}

#[test]
fn the_guide_quotes_every_changed_line_as_the_files_have_it() {
    let mut expected = changes();
    // A blank line that the files have more explains nothing.
    expected.retain(|line| line.len() > 1);
    expected.sort_unstable();
    let lines = quoted("diff");
    let mut quoted: Vec<String> =
        lines.iter().filter(|line| line.starts_with(['+', '-'])).map(|&l| l.to_owned()).collect();
    quoted.retain(|line| line.len() > 1);
    quoted.sort_unstable();
    assert_eq!(quoted, expected);
}

#[test]
fn what_the_guide_quotes_around_the_changes_is_in_both_files() {
    let [before, after] = [BEFORE, AFTER].map(|file| file.lines().collect::<BTreeSet<_>>());
    let lines = quoted("diff");
    assert!(!lines.is_empty());
    for line in lines.iter().filter(|line| !line.starts_with(['+', '-'])) {
        let code = line.strip_prefix(' ').unwrap_or(line);
        assert!(before.contains(code) && after.contains(code), "not in both files: {line}");
    }
    for line in quoted("rust") {
        assert!(after.contains(line), "not in after.rs: {line}");
    }
}
