//! One key in the shared cache and in two members' local caches: writers, readers, flights, a shared
//! cache that loses what it holds. Every member learns of a write before its Begin returns.

#[cfg(test)]
mod tests;

use stateright::{Model, Property};

/// P5: nothing stale outlives a write.
pub const P5: &str = "P5: no reader gets less than what had ended when it came";

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// A3: the generation of the key moves at Begin only.
    GenerationMovedAtBeginOnly,
    /// A3: it moves at End only.
    GenerationMovedAtEndOnly,
    /// A3: a copy of a shared hit is published whatever the generation.
    HitCopiedUnchecked,
    /// A4: any started flight is joined.
    AnyFlightJoined,
    /// A4: readers use the caches while the key is open.
    CachesUsedWhileOpen,
    /// A4: a flight decides when it is created whether it skips the caches, and not when it starts.
    SkipDecidedAtCreation,
    /// A5: the local cache first, then the shared one.
    LocalEndFirst,
    /// A5: End comes before the commit.
    EndBeforeCommit,
    /// A5: an End that the shared cache does not confirm is over.
    EndDropped,
    /// A6: a write of unknown outcome ends at W without what End would have done.
    WindowEndsSilently,
    /// B10: the intent stands in the slot of the writer's schema only.
    IntentInOneSchema,
    /// B10: there is no intent.
    NoIntent,
    /// B11: a reader that saw an intent publishes locally.
    IntentReaderPublishes,
    /// B12: an error is stored as a null.
    ErrorIsNull,
    /// B12: a fill does not compare the lease.
    FillWithoutCompare,
    /// B13: a fill is sent whatever the open set and the generation say.
    FillUnchecked,
    /// B13: the open set holds the writes of this process only.
    OpenSetOfThisProcessOnly,
    /// B14: End removes the intents of others, too.
    EndRemovesAllIntents,
    /// B14: End leaves what it finds in place of its intent.
    EndLeavesOthersEntry,
}

/// A key with its writers (each a member's index) and readers (likewise).
#[derive(Clone, Debug)]
pub struct Slot {
    /// Which rule is left out.
    pub variant: Variant,
    /// The member that writes, for each write: one or two.
    pub writers: &'static [usize],
    /// The member of each flight: at most three.
    pub flights: &'static [usize],
    /// 1, or 2: then each member has a schema, and a slot, of its own.
    pub schemas: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Empty,
    Value(u8),
    /// Of the flight with this index.
    Lease(u8),
    /// Of these writes, a bit each.
    Intent(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Entered,
    Committed,
    Aborted,
    /// The caller has its answer, the shared cache has not confirmed End.
    Unconfirmed,
    /// Ended here, but not yet in the log that the other member reads.
    Ended,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Write {
    phase: Phase,
    /// The slots that hold its intent, and those that End has cleared.
    intents: u8,
    cleared: u8,
    /// Whether the other member has applied its Begin.
    applied: bool,
    /// What it committed; 0 if nothing.
    version: u8,
    abandoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    /// It has asked nothing yet.
    Created,
    /// Its question to the shared cache is on its way.
    Started,
    Hit(u8),
    Leased,
    Unleased,
    /// What the query found, and whether the lease is still its own to use.
    Loaded(u8, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    stage: Stage,
    /// The floor when its latest caller joined.
    floor: u8,
    /// Whether the generation of the key is still that of its start.
    current: bool,
    /// It publishes nothing: the key was open, or its slot held an intent.
    bypass: bool,
    /// A fill on its way to the shared cache.
    fill: Option<u8>,
}

/// One state of the key. A version of the row is a number; 0 is its absence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    row: u8,
    /// The highest version whose write has ended.
    floor: u8,
    slots: [Entry; 2],
    writes: [Write; 2],
    flights: [Flight; 3],
    /// The open set of each member.
    open: [u8; 2],
    local: [Option<u8>; 2],
    /// After a write that ended at W: the slot is not used until it has been cleared.
    cleansing: [bool; 2],
}

/// The steps; the number is the write's, the flight's, the member's or the slot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin of a write: the open set of its own member.
    EnterOpenSet(usize),
    /// The intent of a write in a slot.
    PutIntent(usize, usize),
    /// The other member applies the Begin, or the End, of a write.
    Apply(usize),
    /// The row changes.
    Commit(usize),
    /// The statement fails.
    Abort(usize),
    /// The outcome will not be known.
    LoseOutcome(usize),
    /// End of a write, in a slot.
    ClearIntent(usize, usize),
    /// The shared cache does not answer, and the caller gets its answer.
    AnswerUnconfirmed(usize),
    /// End of a write in the local cache; the write returns.
    EndLocally(usize),
    /// W has passed for a write that has not ended.
    WindowEnds(usize),
    /// A member clears the slots of a write that ended at W.
    ClearAtDeadline(usize),
    /// A reader leads a flight.
    CreateFlight(usize),
    /// The flight starts: it asks the shared cache, or skips the caches.
    StartFlight(usize),
    /// A reader joins one.
    JoinFlight(usize),
    /// The flight asks the shared cache for the value or a lease.
    AskSlot(usize),
    /// The shared cache does not answer it.
    AskFails(usize),
    /// The query reads the row.
    Load(usize),
    /// The query fails.
    LoadFails(usize),
    /// The flight stores what it has in the local cache.
    PublishLocally(usize),
    /// It sends its fill, having looked at the open set and the generation.
    SendFill(usize),
    /// The shared cache compares and sets.
    ExecuteFill(usize),
    /// The flight ends and gives its lease back.
    Finish(usize),
    /// A slot is lost: expiry, eviction, a server that restarts empty.
    LoseSlot(usize),
}

impl Slot {
    fn left_out(&self, variant: Variant) -> bool {
        self.variant == variant
    }

    fn slot_of(&self, member: usize) -> usize {
        if self.schemas == 1 { 0 } else { member }
    }

    fn all_slots(&self) -> u8 {
        if self.schemas == 1 { 1 } else { 3 }
    }

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

    fn write_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
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

    fn flight_actions(&self, state: &State, f: usize, actions: &mut Vec<Action>) {
        let flight = state.flights[f];
        let is_open = state.open[self.flights[f]] != 0;
        let may_publish = flight.current && !flight.bypass && !is_open;
        match flight.stage {
            Stage::Idle if flight.fill.is_none() => actions.push(Action::CreateFlight(f)),
            Stage::Idle => {}
            Stage::Created => actions.push(Action::StartFlight(f)),
            Stage::Started => actions.extend([Action::AskSlot(f), Action::AskFails(f)]),
            Stage::Leased | Stage::Unleased => {
                actions.extend([Action::Load(f), Action::LoadFails(f)]);
            }
            Stage::Hit(_) | Stage::Loaded(..) => {
                let unchecked = matches!(flight.stage, Stage::Hit(_))
                    && self.left_out(Variant::HitCopiedUnchecked);
                if may_publish || unchecked {
                    actions.push(Action::PublishLocally(f));
                }
                // Rule B13: only if the open set lacks the key and the generation has not moved.
                let unchecked = self.left_out(Variant::FillUnchecked);
                if matches!(flight.stage, Stage::Loaded(_, true)) && (may_publish || unchecked) {
                    actions.push(Action::SendFill(f));
                }
                actions.push(Action::Finish(f));
            }
        }
        // Rule A4: anyone may join a flight that has asked nothing, or has yet to read the row.
        let unstarted = matches!(flight.stage, Stage::Created | Stage::Leased | Stage::Unleased);
        let joinable = flight.current && !is_open || self.left_out(Variant::AnyFlightJoined);
        if flight.stage != Stage::Idle && flight.floor != state.floor && (unstarted || joinable) {
            actions.push(Action::JoinFlight(f));
        }
        if flight.fill.is_some() {
            actions.push(Action::ExecuteFill(f));
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
            } else {
                self.close(state, member, i);
                state.cleansing[member] = true;
            }
        }
        state.floor = state.floor.max(state.writes[i].version);
        state.writes[i].phase = Phase::Over;
        state.writes[i].abandoned = false;
    }

    fn write_step(&self, state: &mut State, action: Action) {
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
            Action::LoseSlot(s) => state.slots[s] = Entry::Empty,
            _ => {}
        }
    }

    fn flight_step(&self, state: &mut State, f: usize, action: Action) {
        let member = self.flights[f];
        let slot = &mut state.slots[self.slot_of(member)];
        let lease = Entry::Lease(f as u8);
        let flight = &mut state.flights[f];
        // Rule A4: while the key is open, the caches are skipped.
        let skips_caches = state.cleansing[member]
            || (state.open[member] != 0 && !self.left_out(Variant::CachesUsedWhileOpen));
        match (action, flight.stage) {
            (Action::CreateFlight(_), _) => {
                flight.stage = Stage::Created;
                flight.floor = state.floor;
                flight.current = true;
                flight.bypass = skips_caches;
            }
            (Action::StartFlight(_), _) => {
                flight.bypass |= skips_caches && !self.left_out(Variant::SkipDecidedAtCreation);
                flight.stage = if flight.bypass { Stage::Unleased } else { Stage::Started };
            }
            (Action::JoinFlight(_), _) => flight.floor = state.floor,
            (Action::AskSlot(_), _) => match *slot {
                Entry::Value(version) => flight.stage = Stage::Hit(version),
                Entry::Empty => {
                    *slot = lease;
                    flight.stage = Stage::Leased;
                }
                Entry::Lease(_) => flight.stage = Stage::Unleased,
                // Rule B11.
                Entry::Intent(_) => {
                    flight.stage = Stage::Unleased;
                    flight.bypass = !self.left_out(Variant::IntentReaderPublishes);
                }
            },
            (Action::AskFails(_), _) => flight.stage = Stage::Unleased,
            (Action::Load(_), stage) => {
                flight.stage = Stage::Loaded(state.row, stage == Stage::Leased);
            }
            // Rule B12: an error releases the lease, and is no null.
            (Action::LoadFails(_), stage) if self.left_out(Variant::ErrorIsNull) => {
                flight.stage = Stage::Loaded(0, stage == Stage::Leased);
            }
            (Action::PublishLocally(_), Stage::Hit(version) | Stage::Loaded(version, _)) => {
                state.local[member] = Some(version);
            }
            (Action::SendFill(_), Stage::Loaded(version, _)) => {
                flight.fill = Some(version);
                flight.stage = Stage::Loaded(version, false);
            }
            (Action::ExecuteFill(_), _) => {
                if let Some(version) = flight.fill.take()
                    && (*slot == lease || self.left_out(Variant::FillWithoutCompare))
                {
                    *slot = Entry::Value(version);
                }
            }
            _ => {
                if *slot == lease && flight.fill.is_none() {
                    *slot = Entry::Empty;
                }
                flight.stage = Stage::Idle;
                flight.floor = 0;
                flight.current = false;
                flight.bypass = false;
            }
        }
    }
}

impl Model for Slot {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let write = Write {
            phase: Phase::Idle,
            intents: 0,
            cleared: 0,
            applied: false,
            version: 0,
            abandoned: false,
        };
        let flight =
            Flight { stage: Stage::Idle, floor: 0, current: false, bypass: false, fill: None };
        vec![State {
            row: 0,
            floor: 0,
            slots: [Entry::Empty; 2],
            writes: [write; 2],
            flights: [flight; 3],
            open: [0; 2],
            local: [None; 2],
            cleansing: [false; 2],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for i in 0..self.writers.len() {
            self.write_actions(state, i, actions);
        }
        for f in 0..self.flights.len() {
            self.flight_actions(state, f, actions);
        }
        for (s, slot) in state.slots.iter().enumerate() {
            if *slot != Entry::Empty {
                actions.push(Action::LoseSlot(s));
            }
        }
        for (member, cleansing) in state.cleansing.iter().enumerate() {
            if *cleansing {
                actions.push(Action::ClearAtDeadline(member));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::CreateFlight(f)
            | Action::StartFlight(f)
            | Action::JoinFlight(f)
            | Action::AskSlot(f)
            | Action::AskFails(f)
            | Action::Load(f)
            | Action::LoadFails(f)
            | Action::PublishLocally(f)
            | Action::SendFill(f)
            | Action::ExecuteFill(f)
            | Action::Finish(f) => self.flight_step(&mut state, f, action),
            _ => self.write_step(&mut state, action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P5, |model, state: &State| {
                let used_while_open = model.left_out(Variant::CachesUsedWhileOpen);
                let local = (0..2).all(|member| {
                    (state.open[member] != 0 && !used_while_open)
                        || state.local[member].is_none_or(|version| version >= state.floor)
                });
                let flights = state.flights.iter().all(|flight| match flight.stage {
                    Stage::Hit(version) | Stage::Loaded(version, _) => version >= flight.floor,
                    _ => true,
                });
                local && flights
            }),
            Property::sometimes("a shared hit of an ended write", |_, state: &State| {
                state.flights.iter().any(|flight| {
                    matches!(flight.stage, Stage::Hit(version) if version > 0 && version == state.floor)
                })
            }),
            Property::sometimes("a member serves an ended write locally", |_, state: &State| {
                state.floor > 0 && (0..2).any(|m| state.open[m] == 0 && state.local[m].is_some())
            }),
        ]
    }
}
