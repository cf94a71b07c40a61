//! The choice of ids that the flags ask for, without contradictions.

use crate::attack::args::{Args, IdKind, IdRange, LegitSource, Profile};
use crate::attack::error::Error;
use crate::attack::ids::file::IdFile;
use crate::attack::ids::{AttackIds, ExistingIds, RANDOM_FLOOR};

/// Reads the file of `--ids`, if it names one.
pub(crate) fn listed_ids(args: &Args) -> Result<Option<IdFile>, Error> {
    let IdKind::File(path) = &args.ids else { return Ok(None) };
    let hint = "give int, uuid, or a file with one id a line";
    let read = IdFile::read(path);
    read.map(Some).map_err(|problem| Error::flag("--ids", format!("{problem}; {hint}")))
}

/// The ids of `--legit-ids`, if they are given; reads their file.
pub(crate) fn existing_ids(args: &Args) -> Result<Option<ExistingIds>, Error> {
    match &args.legit_ids {
        None => Ok(None),
        Some(LegitSource::Range(_)) if args.ids == IdKind::Uuid => Err(Error::flag(
            "--legit-ids",
            "a range has integers only; with --ids uuid give a file of existing UUIDs, one a line",
        )),
        Some(LegitSource::Range(range)) => Ok(Some(ExistingIds::Range(*range))),
        Some(LegitSource::File(path)) => {
            let hint = "give a range such as 1-100000, or a file with one id a line";
            let read = IdFile::read(path);
            let file =
                read.map_err(|problem| Error::flag("--legit-ids", format!("{problem}; {hint}")))?;
            Ok(Some(ExistingIds::File(file)))
        }
    }
}

/// The ids of `requests` attack requests, none of which is among the `existing` ones.
pub(crate) fn attack_ids(
    args: &Args,
    listed: Option<IdFile>,
    existing: Option<&ExistingIds>,
    requests: u64,
    seed: u64,
) -> Result<AttackIds, Error> {
    if args.profile == Profile::Sequential && args.ids != IdKind::Int {
        return Err(Error::flag("--profile", "only --ids int can be sequential"));
    }
    if args.profile == Profile::Random && args.start.is_some() {
        return Err(Error::flag("--start", "only --profile sequential has a start"));
    }
    if let Some(listed) = listed {
        return match common_id(&listed, existing) {
            Some(id) => Err(Error::flag(
                "--ids",
                format!("the id {id} is in --legit-ids, too; remove it from one of them"),
            )),
            None => Ok(AttackIds::Listed(listed)),
        };
    }
    match (&args.ids, args.profile) {
        (IdKind::Uuid, _) => Ok(AttackIds::uuids(seed)),
        (_, Profile::Random) => random(existing, seed),
        (_, Profile::Sequential) => sequential(args.start, existing, requests),
    }
}

fn common_id(listed: &IdFile, existing: Option<&ExistingIds>) -> Option<String> {
    match existing? {
        ExistingIds::Range(range) => {
            listed.find_int(range.first, range.last).map(|id| id.to_string())
        }
        ExistingIds::File(file) => listed.find_common(file),
    }
}

/// Random integers. That one of them is in a file of existing ids is too unlikely to look for.
fn random(existing: Option<&ExistingIds>, seed: u64) -> Result<AttackIds, Error> {
    match existing {
        Some(ExistingIds::Range(range)) if range.last > RANDOM_FLOOR => Err(Error::flag(
            "--legit-ids",
            format!(
                "must end at or below {RANDOM_FLOOR}, since random attack ids lie above; \
                 or use --profile sequential"
            ),
        )),
        _ => Ok(AttackIds::random(seed)),
    }
}

fn sequential(
    start: Option<u64>,
    existing: Option<&ExistingIds>,
    requests: u64,
) -> Result<AttackIds, Error> {
    let after_existing = match existing {
        Some(ExistingIds::Range(range)) => Some(range.last.saturating_add(1)),
        _ => None,
    };
    let first = start.or(after_existing).unwrap_or(RANDOM_FLOOR);
    let last = first.checked_add(requests - 1).filter(|&last| last <= i64::MAX as u64);
    let Some(last) = last else {
        return Err(Error::flag(
            "--start",
            format!("the sequence would pass {}; begin lower", i64::MAX),
        ));
    };
    match existing {
        Some(ExistingIds::Range(range)) if overlap(*range, IdRange { first, last }) => {
            Err(Error::flag(
                "--start",
                format!(
                    "the sequence {first}-{last} meets --legit-ids; begin above {}",
                    range.last
                ),
            ))
        }
        Some(ExistingIds::File(file)) => match file.find_int(first, last) {
            Some(id) => Err(Error::flag(
                "--start",
                format!("the sequence {first}-{last} meets {id} of --legit-ids; begin elsewhere"),
            )),
            None => Ok(AttackIds::Sequential(first)),
        },
        _ => Ok(AttackIds::Sequential(first)),
    }
}

fn overlap(a: IdRange, b: IdRange) -> bool {
    a.first <= b.last && b.first <= a.last
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;
    use tempfile::NamedTempFile;

    use super::*;
    use crate::attack::ids::id::Id;
    use crate::attack::plan::AttackPlan;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn plan(flags: &str) -> Result<AttackPlan, Error> {
        let line = ["attack", "--url", "http://127.0.0.1/{id}"].into_iter();
        let line = line.chain(flags.split_whitespace());
        AttackPlan::new(&Line::try_parse_from(line).unwrap().args, 5)
    }

    fn file(content: &str) -> (NamedTempFile, String) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        (file, path)
    }

    #[test]
    fn ids_of_a_file_are_requested_once_each_in_its_order() {
        let (_file, path) = file("a\nb/c\n\n7\n");
        let ids = plan(&format!("--ids {path}")).unwrap();
        assert_eq!(ids.mix.attack, 3);
        let text = |text: &'static str| Id::Text(text.into());
        let expected = [text("a"), text("b%2Fc"), text("7")];
        assert_eq!((0..3).map(|index| ids.attack_ids.get(index)).collect::<Vec<_>>(), expected);
        assert_eq!(plan(&format!("--ids {path} --requests 2")).unwrap().mix.attack, 2);
        assert_eq!(plan(&format!("--ids {path} --duration 1s")).unwrap().mix.attack, 3);
        let error = plan(&format!("--ids {path} --requests 4")).unwrap_err().to_string();
        assert!(error.starts_with("--requests: the file of --ids has 3 ids"), "{error}");
    }

    #[test]
    fn uuids_are_drawn_under_the_seed() {
        let id = |flags: &str| plan(&format!("--ids uuid {flags}")).unwrap().attack_ids.get(0);
        assert!(matches!(id(""), Id::Uuid(_)));
        assert_eq!(id("--seed 1"), id("--seed 1"));
        assert_ne!(id("--seed 1"), id("--seed 2"));
    }

    #[test]
    fn existing_ids_of_a_file_serve_legit_requests() {
        let (_file, path) = file("x\ny\n");
        let plan = plan(&format!("--ids uuid --legit-share 0.5 --legit-ids {path}")).unwrap();
        let ids = plan.legit_ids.unwrap();
        let drawn: std::collections::HashSet<Id> = (0..100).map(|index| ids.get(index)).collect();
        assert_eq!(drawn, [Id::Text("x".into()), Id::Text("y".into())].into());
    }

    #[test]
    fn ids_that_are_both_absent_and_existing_are_refused() {
        let (_absent, absent) = file("a\n50\nb c");
        let (_existing, existing) = file("x\nb c\n2000");
        for (flags, says) in [
            (format!("--ids {absent} --legit-ids {existing}"), "--ids: the id b%20c is in"),
            (format!("--ids {absent} --legit-ids 1-50"), "--ids: the id 50 is in"),
            (
                format!("--profile sequential --start 1500 --legit-ids {existing}"),
                "--start: the sequence 1500-101499 meets 2000 of --legit-ids",
            ),
        ] {
            let error = plan(&flags).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
        assert!(plan(&format!("--ids {absent} --legit-ids 51-99")).is_ok());
        assert!(plan(&format!("--profile sequential --legit-ids {existing}")).is_ok());
    }

    #[test]
    fn files_that_can_not_be_used_are_refused_under_their_flag() {
        let (_empty, empty) = file("\n\n");
        for flag in ["--ids", "--legit-ids"] {
            for (path, says) in [(empty.as_str(), "has no ids"), ("/no/such/file", "can't read")] {
                let error = plan(&format!("{flag} {path}")).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{flag}: ")), "{error}");
                assert!(error.contains(says) && error.contains(path), "{error}");
                assert!(error.contains("one id a line"), "{error}");
            }
        }
    }
}
