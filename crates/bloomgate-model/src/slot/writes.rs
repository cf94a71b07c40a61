//! Writers: Begin, the intents, End, W.

use super::Slot;
use super::state::{Action, Entry, Flight, Phase, State, Variant};

impl Slot {
    /// The slots that a write has to put its intent into.
    fn intent_slots(&self, i: usize) -> u8 {
        match self.variant {
            Variant::NoIntent => 0,
            Variant::IntentInOneSchema => 1 << self.slot_of(self.writers[i]),
            _ => self.all_slots(),
        }
    }

    /// Rule A3: the generation moves, and no flight of the member is current.
    fn move_generation(&self, state: &mut State, member: usize, at: Variant) {
        if self.variant != at {
            for (flight, _) in
                state.flights.iter_mut().zip(self.flights).filter(|(_, of)| **of == member)
            {
                flight.current = false;
            }
        }
    }

    /// What Begin does in a member: its own, or one that applies the log.
    fn open(&self, state: &mut State, member: usize, i: usize) {
        state.open[member] |= 1 << i;
        self.move_generation(state, member, Variant::GenerationMovedAtEndOnly);
    }

    /// What End does in a member.
    fn close(&self, state: &mut State, member: usize, i: usize) {
        state.open[member] &= !(1 << i);
        state.local[member] = None;
        self.move_generation(state, member, Variant::GenerationMovedAtBeginOnly);
    }

    /// Rule B14: End removes its own intent; without one it deletes what stands there.
    fn clear_slot(&self, slot: &mut Entry, i: usize) {
        *slot = match *slot {
            Entry::Intent(_) if self.left_out(Variant::EndRemovesAllIntents) => Entry::Empty,
            Entry::Intent(writes) if writes == 1 << i => Entry::Empty,
            Entry::Intent(writes) => Entry::Intent(writes & !(1 << i)),
            other if self.left_out(Variant::EndLeavesOthersEntry) => other,
            _ => Entry::Empty,
        };
    }

    pub(super) fn write_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
        let write = state.writes[i];
        let slots = self.intent_slots(i);
        let missing = |done: u8| (0..2).filter(move |s| slots & !done & (1 << s) != 0);
        let returned = write.intents == slots && write.applied;
        match write.phase {
            Phase::Idle => actions.push(Action::EnterOpenSet(i)),
            Phase::Entered => {
                actions.extend(missing(write.intents).map(|s| Action::PutIntent(i, s)));
                if !write.applied {
                    actions.push(Action::Apply(i));
                }
                if returned {
                    actions.extend([Action::Commit(i), Action::Abort(i)]);
                    if !write.abandoned && write.version == 0 {
                        actions.push(Action::LoseOutcome(i));
                    }
                }
            }
            Phase::Committed | Phase::Aborted | Phase::Unconfirmed if !write.abandoned => {
                // Rule A5: the shared cache, then the local one, then the log.
                let early = self.left_out(Variant::LocalEndFirst);
                let local_done = state.open[self.writers[i]] & (1 << i) == 0;
                let cleared = write.cleared == slots;
                if !early || local_done {
                    actions.extend(missing(write.cleared).map(|s| Action::ClearIntent(i, s)));
                }
                if cleared || early && !local_done {
                    actions.push(Action::EndLocally(i));
                }
                if write.phase != Phase::Unconfirmed && !cleared {
                    actions.push(Action::AnswerUnconfirmed(i));
                }
            }
            Phase::Ended => actions.push(Action::Apply(i)),
            _ => {}
        }
        // One event per write, once its SQL is over.
        if write.phase == Phase::Unconfirmed
            || (write.abandoned && matches!(write.phase, Phase::Committed | Phase::Aborted))
        {
            actions.push(Action::WindowEnds(i));
        }
    }

    fn end_at_window(&self, state: &mut State, i: usize) {
        let silent = self.left_out(Variant::WindowEndsSilently);
        for slot in &mut state.slots {
            if let Entry::Intent(writes) = slot {
                *writes &= !(1 << i);
            }
            if *slot == Entry::Intent(0) {
                *slot = Entry::Empty;
            }
        }
        for member in 0..2 {
            if silent {
                state.open[member] &= !(1 << i);
            } else if state.open[member] & (1 << i) != 0 {
                self.close(state, member, i);
                state.cleansing[member] = true;
            }
        }
        state.floor = state.floor.max(state.writes[i].version);
        state.writes[i].phase = Phase::Over;
        state.writes[i].abandoned = false;
    }

    /// Rule A8.
    fn crash(&self, state: &mut State) {
        for (write, writer) in state.writes.iter_mut().zip(self.writers) {
            let begun = !matches!(write.phase, Phase::Idle | Phase::Ended | Phase::Over);
            if *writer == 0 && begun {
                write.abandoned = true;
                let returned = write.intents == self.all_slots() && write.applied;
                if write.phase == Phase::Entered && !returned {
                    write.phase = Phase::Aborted;
                }
            }
        }
        // What it has sent may still arrive.
        for flight in &mut state.flights {
            *flight = Flight { fill: flight.fill, ..Flight::IDLE };
        }
        state.open[0] = 0;
        state.local[0] = None;
        state.cleansing[0] = false;
        state.restarted = true;
        state.warming = !self.left_out(Variant::RestartCachesAtOnce);
    }

    pub(super) fn write_step(&self, state: &mut State, action: Action) {
        match action {
            Action::EnterOpenSet(i) => {
                state.writes[i].phase = Phase::Entered;
                self.open(state, self.writers[i], i);
                // Nothing tells the other member.
                state.writes[i].applied = self.left_out(Variant::OpenSetOfThisProcessOnly);
            }
            // Rule B10: in place of whatever stood there.
            Action::PutIntent(i, s) => {
                let others = if let Entry::Intent(writes) = state.slots[s] { writes } else { 0 };
                state.slots[s] = Entry::Intent(others | 1 << i);
                state.writes[i].intents |= 1 << s;
            }
            Action::Apply(i) => {
                let other = 1 - self.writers[i];
                if state.writes[i].phase == Phase::Entered {
                    state.writes[i].applied = true;
                    self.open(state, other, i);
                } else {
                    state.writes[i].phase = Phase::Over;
                    self.close(state, other, i);
                }
            }
            Action::Commit(i) => {
                state.row += 1;
                state.writes[i].version = state.row;
                state.writes[i].phase = Phase::Committed;
                if self.left_out(Variant::EndBeforeCommit) {
                    state.floor = state.floor.max(state.row);
                    state.writes[i].phase = Phase::Ended;
                }
            }
            Action::Abort(i) => state.writes[i].phase = Phase::Aborted,
            Action::LoseOutcome(i) => state.writes[i].abandoned = true,
            Action::ClearIntent(i, s) => {
                self.clear_slot(&mut state.slots[s], i);
                state.writes[i].cleared |= 1 << s;
            }
            // The caller is answered; the key stays open, and End is tried again.
            Action::AnswerUnconfirmed(i) => {
                state.floor = state.floor.max(state.writes[i].version);
                state.writes[i].phase = Phase::Unconfirmed;
                if self.left_out(Variant::EndDropped) {
                    self.close(state, self.writers[i], i);
                    state.writes[i].phase = Phase::Ended;
                }
            }
            Action::EndLocally(i) => {
                self.close(state, self.writers[i], i);
                if state.writes[i].cleared == self.intent_slots(i) {
                    state.floor = state.floor.max(state.writes[i].version);
                    state.writes[i].phase = Phase::Ended;
                }
            }
            Action::WindowEnds(i) => self.end_at_window(state, i),
            Action::ClearAtDeadline(member) => {
                for slot in &mut state.slots {
                    if !matches!(slot, Entry::Intent(_)) {
                        *slot = Entry::Empty;
                    }
                }
                state.cleansing[member] = false;
            }
            Action::Crash => self.crash(state),
            // What was loaded in the meantime is of no use to anyone else.
            Action::WarmUpEnds => {
                state.warming = false;
                self.move_generation(state, 0, Variant::WarmUpFlightJoined);
            }
            Action::LoseSlot(s) => state.slots[s] = Entry::Empty,
            _ => {}
        }
    }
}
