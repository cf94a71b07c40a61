//! What any member does for the fleet: fencing the silent, removing the fenced, trimming the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::barrier::{RowId, row_id};
use super::shared::Shared;
use crate::clock::Moment;
use crate::ports::{FleetView, LogPosition, Step};

/// Positions whose age is remembered, one for each interval of renewal.
const MAX_AGES: usize = 4_096;

/// What one member has seen of the others and of the log.
#[derive(Debug)]
pub(super) struct Maintenance {
    shared: Arc<Shared>,
    next_run: Option<Moment>,
    /// How often each row was renewed, and since when it has stood there.
    renewals: HashMap<RowId, (u64, Moment)>,
    /// Ends of the log, and when this process saw them (rule C23: ids say nothing about age).
    ages: VecDeque<(LogPosition, Moment)>,
}

impl Maintenance {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, next_run: None, renewals: HashMap::new(), ages: VecDeque::new() }
    }

    /// Looks after the fleet by a view that was asked for at `asked`, once in an interval of
    /// renewal. Failures show in the next view.
    pub(super) async fn run(&mut self, view: &FleetView, asked: Moment) {
        if self.next_run.is_some_and(|next| asked < next) {
            return;
        }
        self.next_run = Some(asked + self.shared.settings.renew_every);
        for row in self.silent(view, asked) {
            self.shared.fence(view, row).await;
        }
        let removable = self.shared.waits.lock().removable(view, asked);
        for (instance, incarnation) in removable {
            let remove = self.shared.log.remove(&view.identity, instance, incarnation);
            if let Ok(Step::Done(view)) = self.shared.step("remove", remove).await {
                self.shared.observe(&view);
                let member = instance.to_hex();
                tracing::info!(guard = &*self.shared.name, member, "removed a fenced member");
            }
        }
        self.shared.settle(view, asked).await;
        self.trim(view, asked).await;
    }

    /// Rows that have not been renewed for longer than their lease and two renewals.
    fn silent(&mut self, view: &FleetView, asked: Moment) -> Vec<RowId> {
        self.renewals.retain(|id, _| view.members.iter().any(|row| row_id(row) == *id));
        let patience = self.shared.settings.renew_every * 2;
        let mut silent = Vec::new();
        for row in view.members.iter().filter(|row| !row.fenced) {
            let (renewals, since) =
                self.renewals.entry(row_id(row)).or_insert((row.renewals, asked));
            if *renewals != row.renewals {
                (*renewals, *since) = (row.renewals, asked);
            } else if row.instance != self.shared.instance
                && asked.since(*since) > row.lease + patience
            {
                silent.push(row_id(row));
            }
        }
        silent
    }

    /// Rule C23: only entries that this process itself saw at least W ago.
    async fn trim(&mut self, view: &FleetView, asked: Moment) {
        if self.ages.back().is_none_or(|(last, _)| *last < view.last) && self.ages.len() < MAX_AGES
        {
            self.ages.push_back((view.last, asked));
        }
        let window = self.shared.settings.write_window;
        let mut seen = None;
        while let Some((position, at)) = self.ages.front()
            && asked.since(*at) >= window
        {
            seen = Some(*position);
            self.ages.pop_front();
        }
        let cap = self.shared.settings.log_capacity;
        if seen.is_none() && view.length <= cap {
            return;
        }
        let seen = seen.unwrap_or(LogPosition::START);
        let trim = self.shared.log.trim(&view.identity, seen, cap);
        if let Ok(Step::Done(view)) = self.shared.step("trim", trim).await {
            self.shared.observe(&view);
        }
    }
}
