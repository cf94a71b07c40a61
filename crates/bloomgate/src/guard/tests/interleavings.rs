//! Two writers and a reader of one key, in every order (rules A3 to A6 and B10 to B14).
//!
//! Not sampled but enumerated: every order of the steps of two writes, with the slot's eviction at
//! every place, and a slow reader that begins at one place, reads there, and goes on at another.
//! Between any two steps another request is made. What must hold is the *floor*: a request made
//! after an End has returned sees nothing older than what that write committed.

use tokio::task::JoinHandle;

use super::failpoints::{At, Held};
use super::fake_table::Row;
use super::harness::{Harness, MS, SECOND, WINDOW, seen};
use super::writer::Writer;
use super::{quiet, within};
use crate::answer::Answer;
use crate::error::ReadError;
use crate::ports::{Entry, LeaseId, Slot};
use crate::shared_cache::SlotCalls as _;

/// One step of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Begin, from the call to the start of `run`.
    Begin,
    /// Only the local part of Begin: the write intent is on its way.
    BeginHere,
    /// The write intent has arrived, and `run` starts.
    PutIntent,
    Commit,
    /// `run` returns, End returns.
    End,
    /// `run` returns; End's removal of the write intent has happened, its answer is on its way.
    ClearIntent,
    /// The answer has arrived, End returns.
    EndHere,
    /// `run` fails with an answer of the database, after which nothing can be committed.
    Refused,
    /// `run` fails without an answer.
    Lost,
}

/// The courses that a write can take. After `Lost`, a commit may still come: it was on its way.
const LIVES: [&[Step]; 5] = [
    &[Step::Begin, Step::Commit, Step::End],
    &[Step::Begin, Step::Refused],
    &[Step::Begin, Step::Lost],
    &[Step::Begin, Step::Commit, Step::Lost],
    &[Step::Begin, Step::Lost, Step::Commit],
];

/// Two of them with Begin and End in their parts, of which nothing may be merged.
const IN_PARTS: [&[Step]; 2] = [
    &[Step::BeginHere, Step::PutIntent, Step::Commit, Step::ClearIntent, Step::EndHere],
    &[Step::BeginHere, Step::PutIntent, Step::Lost, Step::Commit],
];

/// All orders of the steps of both, each writer's in its own order; the first writer begins, since
/// the two are alike.
fn orders(first: &[Step], second: &[Step]) -> Vec<Vec<(usize, Step)>> {
    fn weave(
        lives: [&[Step]; 2],
        so_far: &mut Vec<(usize, Step)>,
        into: &mut Vec<Vec<(usize, Step)>>,
    ) {
        if lives.iter().all(|life| life.is_empty()) {
            into.push(so_far.clone());
        }
        for writer in 0..2 {
            if let Some((step, rest)) = lives[writer].split_first() {
                let mut lives = lives;
                lives[writer] = rest;
                so_far.push((writer, *step));
                weave(lives, so_far, into);
                so_far.pop();
            }
        }
    }
    let mut all = Vec::new();
    weave([first, second], &mut Vec::new(), &mut all);
    all.retain(|order| order[0].0 == 0);
    all
}

/// The slow reader.
#[derive(Clone, Copy, Debug)]
enum Slow {
    /// A request here, held up between its query and its return.
    Here,
    /// A request here, held up before its question reaches the shared cache.
    HereBeforeAsking,
    /// Another process, held up between its query and its fill.
    Elsewhere,
}

/// One run.
#[derive(Clone, Debug)]
struct Case {
    order: Vec<(usize, Step)>,
    /// Before which step the slot is evicted.
    evicted_at: Option<usize>,
    slow: Slow,
    /// Before which step the slow reader begins and reads, and before which it goes on.
    reads_at: usize,
    goes_on_at: usize,
}

type Reading = JoinHandle<Result<Answer<Row>, ReadError>>;

/// The run of one case.
struct Run<'a> {
    harness: &'a Harness,
    id: i64,
    writers: [Option<Writer>; 2],
    /// Where each writer is held up.
    held: [Option<Held>; 2],
    /// The highest version whose End has returned.
    floor: usize,
    /// The version that each writer committed.
    committed: [usize; 2],
    /// Requests, each with the floor at its start.
    asked: Vec<(usize, Reading)>,
    slow_here: Option<Held>,
    slow_elsewhere: Option<(LeaseId, Entry)>,
}

impl Run<'_> {
    async fn step(&mut self, writer: usize, step: Step) {
        let (harness, id) = (self.harness, self.id);
        match step {
            Step::Begin => self.writers[writer] = Some(Writer::begin(harness, id).await),
            Step::BeginHere => {
                let held = harness.failpoints.hold_one(At::BeforePutIntent);
                self.writers[writer] = Some(Writer::call(harness, id));
                held.arrived().await;
                self.held[writer] = Some(held);
            }
            Step::PutIntent => {
                self.held[writer] = None;
                self.writers[writer].as_mut().unwrap().running().await;
            }
            Step::Commit => {
                match &mut self.writers[writer] {
                    Some(running) => running.commit().await,
                    // `run` is over; the COMMIT was on its way.
                    None => _ = harness.table.commit(id),
                }
                self.committed[writer] = harness.table.version(id);
            }
            Step::End => {
                self.writers[writer].take().unwrap().end().await;
                self.floor = self.floor.max(self.committed[writer]);
            }
            Step::ClearIntent => {
                let held = harness.failpoints.hold_one(At::AfterClearIntent);
                self.writers[writer].as_ref().unwrap().finish(Ok(()));
                held.arrived().await;
                self.held[writer] = Some(held);
            }
            Step::EndHere => {
                self.held[writer] = None;
                within(self.writers[writer].take().unwrap().result()).await.unwrap();
                self.floor = self.floor.max(self.committed[writer]);
            }
            Step::Refused => self.writers[writer].take().unwrap().fail().await,
            Step::Lost => self.writers[writer].take().unwrap().lose().await,
        }
    }

    fn ask(&mut self) {
        self.asked.push((self.floor, self.harness.spawn_get(self.id)));
    }

    /// Lets the other tasks run until they wait.
    async fn let_others_run(&self) {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    async fn slow_reader_begins(&mut self, slow: Slow) {
        let at = match slow {
            Slow::Here => At::AfterLoad,
            Slow::HereBeforeAsking => At::BeforeRead,
            Slow::Elsewhere => {
                let lease = LeaseId::fresh();
                if self.harness.take_lease(self.id, lease).await == Slot::LeaseGranted {
                    let entry = match self.harness.table.get(self.id) {
                        Some(row) => Entry::Value(serde_json::to_vec(&row).unwrap().into()),
                        None => Entry::Null,
                    };
                    self.slow_elsewhere = Some((lease, entry));
                }
                return;
            }
        };
        let held = self.harness.failpoints.hold_one(at);
        self.ask();
        self.let_others_run().await;
        // One that was answered by the local cache wasn't held up.
        self.slow_here = (held.count() > 0).then_some(held);
    }

    async fn slow_reader_goes_on(&mut self) {
        self.slow_here = None;
        if let Some((lease, entry)) = self.slow_elsewhere.take() {
            let (slot, until) = (self.harness.slot(self.id), self.harness.clock.unix_ms() + 60_000);
            let memory = self.harness.store().memory();
            let _ = memory.fill(&slot, lease, entry, until, 60 * SECOND).await.unwrap();
        }
    }

    /// What another process finds in the shared cache must be no older than the floor either.
    async fn look_at_the_slot(&self, case: &Case) {
        let row: Option<Row> = match self.harness.shared_slot(self.id).await {
            Slot::Value { payload, .. } => Some(serde_json::from_slice(&payload).unwrap()),
            Slot::Null { .. } => None,
            _ => return,
        };
        let fine = self.harness.table.is_no_older(self.id, row, self.floor);
        assert!(fine, "{row:?} is shared, the floor is {}: {case:?}", self.floor);
    }
}

async fn run(harness: &Harness, id: i64, case: &Case) {
    if id % 2 == 1 {
        harness.table.commit(id);
    }
    let mut run = Run {
        harness,
        id,
        writers: [None, None],
        held: [None, None],
        floor: harness.table.version(id),
        committed: [0, 0],
        asked: Vec::new(),
        slow_here: None,
        slow_elsewhere: None,
    };
    for place in 0..=case.order.len() {
        if case.evicted_at == Some(place) {
            harness.store().memory().evict(&harness.slot(id));
        }
        if case.reads_at == place {
            run.slow_reader_begins(case.slow).await;
        }
        if case.goes_on_at == place {
            run.slow_reader_goes_on().await;
        }
        run.ask();
        run.let_others_run().await;
        run.look_at_the_slot(case).await;
        if let Some((writer, step)) = case.order.get(place) {
            run.step(*writer, *step).await;
        }
        // A flight that waits for another's lease looks again.
        harness.time.advance(80 * MS);
    }
    // W ends what was lost: after it, everything that was committed is the floor.
    run.let_others_run().await;
    harness.time.advance(WINDOW + 2 * SECOND);
    run.let_others_run().await;
    run.floor = harness.table.version(id);
    run.look_at_the_slot(case).await;
    run.ask();
    for (floor, asked) in run.asked {
        let answer = within(asked).await.unwrap().unwrap();
        let row = answer.clone().value().map(|row| *row);
        let fine = harness.table.is_no_older(id, row, floor);
        assert!(fine, "a reader saw {:?}, its floor was {floor}: {case:?}", seen(answer));
    }
}

/// Every case of these pairs of courses.
fn cases(pairs: &[(&[Step], &[Step])], evictions: bool, slow: Slow) -> Vec<Case> {
    let mut cases = Vec::new();
    for order in pairs.iter().flat_map(|(first, second)| orders(first, second)) {
        // What is read after the last commit can't become old, and what is kept before the first
        // one isn't.
        let commits = |(_, step): &(usize, Step)| *step == Step::Commit;
        let (Some(first), Some(last)) =
            (order.iter().position(commits), order.iter().rposition(commits))
        else {
            continue;
        };
        // Before the first Begin and after the last step there is no write intent to lose.
        let evicted = (1..order.len()).map(Some).filter(|_| evictions);
        for evicted_at in evicted.chain([None]) {
            for reads_at in 0..=last {
                for goes_on_at in reads_at.max(first + 1)..=order.len() {
                    // An eviction matters to a slow reader who is under way at the time.
                    if evicted_at.is_none_or(|at| (reads_at..=goes_on_at).contains(&at)) {
                        let order = order.clone();
                        cases.push(Case { order, evicted_at, slow, reads_at, goes_on_at });
                    }
                }
            }
        }
    }
    cases
}

/// Every course with every other.
fn all_lives() -> Vec<(&'static [Step], &'static [Step])> {
    LIVES.iter().flat_map(|first| LIVES.iter().map(move |second| (*first, *second))).collect()
}

async fn run_all(cases: Vec<Case>, at_least: usize) {
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let patient = |described: crate::GuardBuilder<_, _>| described.store_timeout(2 * SECOND);
    let harness = Harness::with([]).open_gate().shared().tune(patient).build().await;
    for (id, case) in cases.iter().enumerate() {
        run(&harness, i64::try_from(id).unwrap(), case).await;
    }
    quiet().await;
    harness.is_tidy().await;
}

#[tokio::test]
async fn case_29_two_writes_in_every_order_with_a_slow_reader_here() {
    run_all(cases(&all_lives(), false, Slow::Here), 2_000).await;
}

#[tokio::test]
async fn case_29_two_writes_in_every_order_with_a_reader_whose_question_is_late() {
    run_all(cases(&all_lives(), true, Slow::HereBeforeAsking), 8_000).await;
}

#[tokio::test]
async fn case_29_two_writes_in_every_order_with_a_slow_reader_in_another_process() {
    run_all(cases(&all_lives(), true, Slow::Elsewhere), 8_000).await;
}

#[tokio::test]
async fn case_29_two_writes_in_their_smallest_steps() {
    let [kept, lost] = IN_PARTS;
    let pairs = [(kept, kept), (kept, lost), (lost, kept)];
    run_all(cases(&pairs, false, Slow::Here), 10_000).await;
}
