//! The Lua scripts of the steps that take more than one command.

/// The server's time in milliseconds, and a write intent taken apart.
///
/// The deadlines of a write intent are on the server's clock, the one clock that all writers of a
/// key share.
macro_rules! with_intents {
    ($body:literal) => {
        concat!(
            r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kept, latest, rest = {}, now, 0
local function keep(write, deadline)
  if deadline > latest then latest = deadline end
  if write ~= '0' and #kept < 16 then
    kept[#kept + 1] = write .. ':' .. string.format('%.0f', deadline) .. ';'
  elseif deadline > rest then
    rest = deadline
  end
end
local function keep_others(intent, own)
  for write, deadline in string.gmatch(intent, '(%x+):(%d+);') do
    deadline = tonumber(deadline)
    if write ~= own and deadline > now then keep(write, deadline) end
  end
end
local function is_intent(slot) return slot and string.sub(slot, 1, 1) == 'M' end
local function store_intent()
  if rest > 0 then kept[#kept + 1] = '0:' .. string.format('%.0f', rest) .. ';' end
  redis.call('SET', KEYS[1], 'M' .. table.concat(kept), 'PX', string.format('%.0f', latest - now))
end
local slot = redis.pcall('GET', KEYS[1])
-- Of another type: no intent, but something that stands there.
local other_type = type(slot) == 'table'
if other_type then slot = false end
",
            $body
        )
    };
}

/// Begin (rule B10). `KEYS[1]` the slot; `ARGV` the write's id, its time to live in ms.
pub(super) const PUT_INTENT: &str = with_intents!(
    r"
if is_intent(slot) then keep_others(slot, ARGV[1]) end
keep(ARGV[1], now + tonumber(ARGV[2]))
store_intent()
return 1
"
);

/// End (rule B14). `KEYS[1]` the slot; `ARGV` the write's id.
pub(super) const CLEAR_INTENT: &str = with_intents!(
    r"
if not slot and not other_type then return 0 end
if is_intent(slot) then keep_others(slot, ARGV[1]) end
if latest > now then store_intent() else redis.call('DEL', KEYS[1]) end
return 1
"
);

/// A fill is a compare-and-set on the lease (rule B12). `KEYS[1]` the slot; `ARGV` the lease, the
/// entry, its time to live in ms.
pub(super) const FILL: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
";

/// Leases a slot that holds what its reader can't use (rule B16). `KEYS[1]` the slot; `ARGV` the
/// beginning of what it holds, its length, the lease, its time to live in ms.
pub(super) const LEASE_INSTEAD: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[2]) then return 0 end
if redis.call('GETRANGE', KEYS[1], 0, string.len(ARGV[1]) - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1
";

/// Gives a lease back. `KEYS[1]` the slot; `ARGV` the lease.
pub(super) const RELEASE: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// Removes the entries and leases that one step of `SCAN` finds, and leaves the write intents.
/// `ARGV` the last step's second result (empty at first), the pattern of the slots' names, the
/// number of keys to look at. Returns the number removed, and where to go on (empty at the end).
///
/// A position means something to the server that gave it only; another one, which took its place
/// since, is scanned from the start.
pub(super) const CLEAR_STEP: &str = r"
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local of_run, position = string.match(ARGV[1], '^(%x+):(%d+)$')
if of_run ~= run_id then position = '0' end
local step = redis.call('SCAN', position, 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local removed = 0
for _, name in ipairs(step[2]) do
  if redis.pcall('GETRANGE', name, 0, 0) ~= 'M' then
    removed = removed + redis.call('UNLINK', name)
  end
end
return {removed, step[1] == '0' and '' or run_id .. ':' .. step[1]}
";
