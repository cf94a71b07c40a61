//! A run, from the first connection to the last answer.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::error::{Error, one_line};
use super::findings::GuardOutcome;
use super::guard::change::GuardChange;
use super::guard::reader::GuardReader;
use super::guard::status::GuardStatus;
use super::pacing::{Pace, Schedule};
use super::plan::AttackPlan;
use super::progress;
use super::report::{EndReason, Report, RunSettings};
use super::statistics::{Statistics, locked};
use super::traffic::Traffic;
use super::worker::{self, WorkerContext};

/// How long answers that are under way are waited for after Ctrl-C.
const GRACE: Duration = Duration::from_millis(500);

/// Sends the planned traffic and sums up what happened. Fails only before any traffic.
pub(crate) async fn run(plan: AttackPlan, settings: RunSettings) -> Result<Report, Error> {
    let template = plan.target.template()?;
    let headers = plan.target.headers(&plan.headers)?;
    let address = plan.target.connectable(plan.allowed, plan.timeout).await?;
    let guard = match &plan.guard {
        Some(target) => {
            let address = target.connectable(plan.allowed, plan.timeout).await?;
            let reader = GuardReader::new(target, address, &plan.headers, plan.timeout)?;
            let before = reader.read().await.map_err(Error::GuardStatus)?;
            Some((reader, before))
        }
        None => None,
    };

    // Ctrl-C is caught from here on. Polling once is what installs the handler.
    let mut interrupt = pin!(ctrl_c());
    tokio::select! { biased; () = &mut interrupt => {} () = std::future::ready(()) => {} }

    let pace = match plan.rate {
        Some(rate) => Pace::Open(Schedule::start(rate).map_err(Error::Runtime)?),
        None => Pace::Closed,
    };
    let traffic = Traffic::new(plan.mix, plan.attack_ids, plan.legit_ids);
    let timeout = plan.timeout;
    let context = Arc::new(WorkerContext { traffic, pace, template, headers, address, timeout });
    let start = Instant::now();
    let mut workers = Workers::start(&context, plan.connections)?;

    let bar = progress::bar(context.traffic.total(), plan.duration);
    let stopped_by = tokio::select! {
        () = workers.finished() => None,
        () = &mut interrupt => Some(EndReason::Interrupt),
        () = after(plan.duration) => Some(EndReason::Duration),
        () = progress::show(&bar, &context.traffic) => None,
    };
    context.traffic.stop();
    context.pace.end();
    match stopped_by {
        None => {}
        // What is under way has its full time, and Ctrl-C still ends the wait.
        Some(EndReason::Duration) => tokio::select! {
            () = workers.finished() => {}
            () = &mut interrupt => {}
        },
        Some(_) => {
            let _late = tokio::time::timeout(GRACE, workers.finished()).await;
        }
    }
    let elapsed = start.elapsed();
    bar.finish_and_clear();

    let statistics = workers.join().await?;
    let sent = statistics.attack.sent + statistics.legit.sent;
    let ended = match stopped_by {
        Some(ended) => ended,
        None if sent < context.traffic.total() => EndReason::GaveUp,
        None => EndReason::Finished,
    };
    let outcome = match guard {
        None => GuardOutcome::NotRequested,
        Some((reader, before)) => read_again(&reader, before, &statistics).await,
    };
    Ok(Report::new(settings, ended, elapsed, &statistics, outcome))
}

async fn read_again(
    reader: &GuardReader,
    before: GuardStatus,
    statistics: &Statistics,
) -> GuardOutcome {
    match reader.read().await {
        Ok(after) => match GuardChange::new(before, after, statistics) {
            Some(change) => GuardOutcome::Changed(change),
            None => GuardOutcome::Lost("they went backwards, as after a restart".to_owned()),
        },
        Err(error) => GuardOutcome::Lost(one_line(&Error::GuardStatus(error))),
    }
}

/// The tasks that send, one a connection.
struct Workers {
    tasks: JoinSet<()>,
    statistics: Vec<Arc<Mutex<Statistics>>>,
}

impl Workers {
    fn start(context: &Arc<WorkerContext>, connections: usize) -> Result<Self, Error> {
        let mut workers =
            Self { tasks: JoinSet::new(), statistics: Vec::with_capacity(connections) };
        for _ in 0..connections {
            let statistics = Arc::new(Mutex::new(new_statistics()?));
            workers.statistics.push(Arc::clone(&statistics));
            workers.tasks.spawn(worker::run(Arc::clone(context), statistics));
        }
        Ok(workers)
    }

    /// Waits until all have finished; may be called again after being dropped.
    async fn finished(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Stops the tasks that are left and adds up their counts.
    async fn join(mut self) -> Result<Statistics, Error> {
        self.tasks.shutdown().await;
        let mut sum = new_statistics()?;
        for statistics in &self.statistics {
            sum.add(&locked(statistics));
        }
        Ok(sum)
    }
}

fn new_statistics() -> Result<Statistics, Error> {
    Statistics::new().map_err(|error| Error::Runtime(io::Error::other(error)))
}

/// Ends on Ctrl-C, or never if the system doesn't report it.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => pending().await,
    }
}
