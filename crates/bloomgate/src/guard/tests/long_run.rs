//! Random mixes of readers, writers that fail in every way, rebuilds, evictions, outages and
//! callers that go away.
//!
//! What must hold throughout: no id is refused whose write has returned (P1), no answer is older
//! than the floor of when it was asked for (P5), no error is remembered as absence (P4); and when
//! all is over, nothing is left.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::harness::{Harness, MS, Mishap, SECOND, WINDOW};
use super::store::Faults;
use super::within;
use super::writer::Failure;
use crate::answer::{Answer, Tier};
use crate::error::WriteError;

/// Ids that are written and read; few, so that operations collide.
const IDS: i64 = 6;
/// Guards that are each run for a while, one after the other.
const RUNS: u64 = 120;
const STEPS: u64 = 300;

/// What must not be undershot: for each id the highest version whose End has returned.
#[derive(Debug)]
struct Model {
    floor: Vec<Cell<usize>>,
    refusals: Cell<usize>,
    answers: Cell<usize>,
    failures: RefCell<Vec<String>>,
}

impl Model {
    fn raise(&self, id: i64, version: usize) {
        let floor = &self.floor[usize::try_from(id).unwrap()];
        floor.set(floor.get().max(version));
    }

    fn floor(&self, id: i64) -> usize {
        self.floor[usize::try_from(id).unwrap()].get()
    }

    fn fail(&self, what: String) {
        self.failures.borrow_mut().push(what);
    }
}

/// How a write goes.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Commits,
    Deletes,
    RollsBack,
    /// The answer is lost: it has committed, commits later, or never does.
    LosesItsAnswer {
        commits: Option<bool>,
    },
    Panics {
        commits: bool,
    },
    Hangs {
        commits: bool,
    },
}

async fn reads(harness: Rc<Harness>, model: Rc<Model>, id: i64) {
    let floor = model.floor(id);
    let answer = match harness.guard.get(&id).await {
        Ok(answer) => answer,
        // An error says nothing, which is what it should say.
        Err(_) => return,
    };
    model.answers.set(model.answers.get() + 1);
    if matches!(answer, Answer::Absent(Tier::Gate)) {
        model.refusals.set(model.refusals.get() + 1);
    }
    let shown = format!("{answer:?}");
    let row = answer.value().map(|row| *row);
    if !harness.table.is_no_older(id, row, floor) {
        model.fail(format!("id {id}, floor {floor}: {shown}"));
    }
}

async fn yields(yields: u8) {
    for _ in 0..yields {
        tokio::task::yield_now().await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Api {
    Write,
    Update,
    Delete,
}

async fn writes(
    harness: Rc<Harness>,
    model: Rc<Model>,
    id: i64,
    api: Api,
    fate: Fate,
    [before, between, after]: [u8; 3],
) {
    let rows = harness.table.clone();
    let exists = api == Api::Write || rows.get(id).is_some();
    let run = async move {
        yields(before).await;
        let commit = || match api {
            Api::Write => rows.commit(id),
            // Only what exists may be changed.
            Api::Update if rows.get(id).is_some() => rows.commit(id),
            _ => rows.delete(id),
        };
        match fate {
            Fate::Commits => {
                let version = commit();
                yields(after).await;
                Ok(version)
            }
            Fate::Deletes => {
                let version = rows.delete(id);
                yields(after).await;
                Ok(version)
            }
            Fate::RollsBack => Err(Failure::OutcomeKnown),
            Fate::LosesItsAnswer { commits: Some(true) } => {
                commit();
                yields(after).await;
                Err(Failure::OutcomeUnknown)
            }
            Fate::LosesItsAnswer { commits } => {
                if commits.is_some() {
                    let rows = rows.clone();
                    tokio::spawn(async move {
                        yields(between).await;
                        if api == Api::Write {
                            rows.commit(id);
                        } else {
                            rows.delete(id);
                        }
                    });
                }
                Err(Failure::OutcomeUnknown)
            }
            Fate::Panics { commits } => {
                if commits {
                    commit();
                }
                yields(after).await;
                panic!("the test says so");
            }
            Fate::Hangs { commits } => {
                if commits {
                    commit();
                }
                std::future::pending().await
            }
        }
    };
    let result = match api {
        Api::Write => harness.guard.write(id, run).await,
        Api::Update => harness.guard.update(id, run).await,
        Api::Delete => harness.guard.delete(id, run).await,
    };
    match result {
        Ok(version) => {
            model.raise(id, version);
            // P1, at once.
            if harness.table.get(id).is_some() && harness.refuses(id) {
                model.fail(format!("id {id} is refused right after its write"));
            }
        }
        Err(WriteError::Absent) if exists && harness.table.get(id).is_some() => {
            model.fail(format!("id {id} exists, and its {api:?} was refused"));
        }
        Err(_) => {}
    }
}

async fn creates(harness: Rc<Harness>, model: Rc<Model>, fails: bool) {
    let rows = harness.table.clone();
    let created = harness.guard.create(|admit| async move {
        let mut transaction = rows.begin();
        let id = transaction.insert();
        yields(1).await;
        let admitted = admit.key(id).await?;
        if fails {
            return Err(Failure::OutcomeKnown);
        }
        transaction.commit();
        yields(1).await;
        Ok((admitted, id))
    });
    let Ok(id) = created.await else { return };
    if harness.refuses(id) {
        model.fail(format!("the created {id} is refused"));
    }
    if let Ok(answer) = harness.guard.get(&id).await
        && answer.clone().value().is_none()
    {
        model.fail(format!("the created {id} isn't found: {answer:?}"));
    }
}

fn fate(random: &mut StdRng) -> Fate {
    match random.random_range(0..20) {
        0..10 => Fate::Commits,
        10..12 => Fate::Deletes,
        12..14 => Fate::RollsBack,
        14 => Fate::LosesItsAnswer { commits: Some(true) },
        15 => Fate::LosesItsAnswer { commits: Some(false) },
        16 => Fate::LosesItsAnswer { commits: None },
        17 => Fate::Panics { commits: random.random() },
        _ => Fate::Hangs { commits: random.random() },
    }
}

/// One run of one guard.
async fn live(seed: u64) -> [usize; 2] {
    let random = &mut StdRng::seed_from_u64(seed);
    let shared = random.random_bool(0.75);
    let plan = Harness::with(0..IDS / 2).shared_if(shared);
    let plan = if random.random_bool(0.3) { plan.open_gate() } else { plan };
    let harness = Rc::new(plan.build().await);
    let model = Rc::new(Model {
        floor: (0..IDS).map(|id| Cell::new(harness.table.version(id))).collect(),
        refusals: Cell::new(0),
        answers: Cell::new(0),
        failures: RefCell::default(),
    });
    let gated = harness.status().gate.generation > 0;
    let mut tasks = Vec::new();
    let mut passed = Duration::ZERO;
    for _ in 0..STEPS {
        let id = random.random_range(0..IDS);
        let (harness_, model_) = (Rc::clone(&harness), Rc::clone(&model));
        match random.random_range(0..100) {
            0..55 => tasks.push(tokio::task::spawn_local(reads(harness_, model_, id))),
            55..75 => {
                let api =
                    *[Api::Write, Api::Write, Api::Update, Api::Delete].choose(random).unwrap();
                let pauses = [0; 3].map(|_| random.random_range(0..6));
                let writing = writes(harness_, model_, id, api, fate(random), pauses);
                tasks.push(tokio::task::spawn_local(writing));
            }
            75..79 => {
                let creating = creates(harness_, model_, random.random_bool(0.2));
                tasks.push(tokio::task::spawn_local(creating));
            }
            79..82 if gated => {
                let rebuilding = async move { _ = harness_.guard.rebuild().await };
                tasks.push(tokio::task::spawn_local(rebuilding));
            }
            82..86 if shared => match random.random_range(0..3) {
                0 => harness.store().memory().flush(),
                _ => harness.store().memory().evict(&harness.slot(id)),
            },
            86..89 if shared => {
                let faults = *[
                    Faults::default(),
                    Faults::default(),
                    Faults { down: true, ..Faults::default() },
                    Faults { silent: true, ..Faults::default() },
                    Faults { no_put_intent: true, ..Faults::default() },
                    Faults { no_clear_intent: true, ..Faults::default() },
                    Faults { no_fill: true, ..Faults::default() },
                ]
                .choose(random)
                .unwrap();
                harness.store().faults(faults);
            }
            89..92 => {
                let mishap = *[Mishap::Error, Mishap::Panic, Mishap::Hang].choose(random).unwrap();
                harness.mishap(id, mishap);
            }
            92..95 => {
                if let Some(task) = tasks.choose(random) {
                    task.abort();
                }
            }
            _ => {
                let by = *[MS, 20 * MS, 150 * MS, 3 * SECOND].choose(random).unwrap();
                passed += by;
                harness.time.advance(by);
            }
        }
        yields(random.random_range(0..8)).await;
    }
    // No more faults, and all tasks come to an end: budgets, backoffs, windows.
    if shared {
        harness.store().faults(Faults::default());
    }
    for _ in 0..20 {
        harness.pass(3 * SECOND).await;
    }
    for task in tasks {
        match within(task).await {
            Ok(()) => {}
            Err(cut) if cut.is_cancelled() => {}
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
    // After W, what any write committed is the floor.
    harness.pass(WINDOW).await;
    for id in harness.table.ids() {
        assert!(!harness.refuses(id), "seed {seed}: {id} is refused in the end");
    }
    for id in 0..IDS {
        // A mishap that no load has met yet is met now.
        let answer = loop {
            match harness.get_with_time(id).await {
                Ok(answer) => break answer.value().map(|row| *row),
                Err(_) => continue,
            }
        };
        assert_eq!(answer, harness.table.get(id), "seed {seed}: {id} in the end");
    }
    let failures = model.failures.borrow().clone();
    assert!(failures.is_empty(), "seed {seed}: {failures:#?}");
    harness.is_tidy().await;
    [model.answers.get(), model.refusals.get()]
}

#[test]
fn case_29_random_runs_keep_every_promise() {
    // One seed alone, to reproduce a failure.
    let seed = std::env::var("BLOOMGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(0..RUNS, |seed| seed..seed + 1);
    let mut all = [0, 0];
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            local.block_on(&runtime, live(seed))
        }));
        match lived {
            Ok(counts) => all = [all[0] + counts[0], all[1] + counts[1]],
            Err(panic) => {
                eprintln!("reproduce with BLOOMGATE_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    enough(all, seed.is_some());
}

fn enough([answers, refusals]: [usize; 2], single: bool) {
    assert!(single || answers > 6_000, "only {answers} answers");
    assert!(single || refusals > 60, "only {refusals} refusals");
}
