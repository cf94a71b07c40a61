//! The steps that Redis must take as one.

/// The server's clock in milliseconds, and a intent taken apart.
///
/// Deadlines of a intent are on the server's clock, the one clock that all writers of a key share.
macro_rules! with_intents {
    ($body:literal) => {
        concat!(
            r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kept, latest = {}, now
local function keep(token, deadline)
  kept[#kept + 1] = token .. ':' .. string.format('%.0f', deadline) .. ';'
  if deadline > latest then latest = deadline end
end
local function keep_others(intent, but)
  for token, deadline in string.gmatch(intent, '(%x+):(%d+);') do
    deadline = tonumber(deadline)
    if token ~= but and deadline > now then keep(token, deadline) end
  end
end
local function is_intent(slot) return string.sub(slot, 1, 1) == 'M' end
local function store_intent()
  redis.call('SET', KEYS[1], 'M' .. table.concat(kept), 'PX', string.format('%.0f', latest - now))
end
local slot = redis.call('GET', KEYS[1])
",
            $body
        )
    };
}

/// Begin (rule B10). `KEYS[1]` slot; `ARGV` write token, how long it lives in ms.
pub(crate) const PUT_INTENT: &str = with_intents!(
    r"
if slot and is_intent(slot) then keep_others(slot, ARGV[1]) end
keep(ARGV[1], now + tonumber(ARGV[2]))
store_intent()
return 1
"
);

/// End (rule B14). `KEYS[1]` slot; `ARGV` write token.
pub(crate) const CLEAR_INTENT: &str = with_intents!(
    r"
if not slot then return 0 end
if is_intent(slot) then keep_others(slot, ARGV[1]) end
if #kept > 0 then store_intent() else redis.call('DEL', KEYS[1]) end
return 1
"
);

/// A fill is a compare-and-set on the lease (rule B12). `KEYS[1]` slot; `ARGV` lease, entry, ms.
pub(crate) const FILL: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
";

/// Gives a lease back. `KEYS[1]` slot; `ARGV` lease.
pub(crate) const RELEASE: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// Counts a heartbeat and lists the other live members with theirs. `KEYS[1]` the members' hash;
/// `ARGV` member, ms after which a silent member is dropped.
pub(crate) const HEARTBEAT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local mine = redis.call('HGET', KEYS[1], ARGV[1])
local heartbeats = (mine and tonumber(string.match(mine, '^(%d+):')) or 0) + 1
redis.call('HSET', KEYS[1], ARGV[1], heartbeats .. ':' .. string.format('%.0f', now))
local others = {}
local rows = redis.call('HGETALL', KEYS[1])
for i = 1, #rows, 2 do
  if rows[i] ~= ARGV[1] then
    local count, last = string.match(rows[i + 1], '^(%d+):(%d+)$')
    if not last or tonumber(last) < now - tonumber(ARGV[2]) then
      redis.call('HDEL', KEYS[1], rows[i])
    else
      others[#others + 1] = rows[i]
      others[#others + 1] = count
    end
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[2] * 10)
return others
";
