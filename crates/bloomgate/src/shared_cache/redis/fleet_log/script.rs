//! The Lua script of a fleet's steps, one for all: each is atomic and returns the same view. And that
//! of a guard that is declared to be the only instance.

/// `KEYS` the table (a hash), the log (a stream) and the epoch of a declared single instance, which
/// ends when a member registers. `ARGV` the step's name, a candidate for a
/// fresh epoch, the three parts of the identity that the step holds under (empty if any), then its
/// own arguments.
///
/// A member's row is six fields of the hash, named by a letter and its id: `i` incarnation, `a`
/// applied, `n` renewals, `l` lease in ms, `f` fenced, `b` label. Log and table fit while the
/// table's `last` is the log's last entry (rule C17); the log is never empty. `INFO` in two sections
/// costs some ten microseconds; a server that forbids it has an identity of an epoch alone.
pub(super) const FLEET: &str = r"
local step, candidate = ARGV[1], ARGV[2]

local function info(section, pattern)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and string.match(text, pattern) or ''
end
local run = info('server', 'run_id:(%x+)')
local replication = info('replication', 'master_replid:(%x+)')

local function last_entry()
  local entries = redis.pcall('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
  return entries[1] and entries[1][1]
end
local last = redis.pcall('HGET', KEYS[1], 'last')
local fits = type(last) == 'string' and last == last_entry()
if not fits then
  if step == 'look' then return false end
  redis.call('DEL', KEYS[1], KEYS[2])
  last = redis.call('XADD', KEYS[2], '*', 'a', '', 'r', '')
  redis.call('HSET', KEYS[1], 'epoch', candidate, 'last', last)
end
local epoch = redis.call('HGET', KEYS[1], 'epoch')

local function is_identity(at)
  return ARGV[at] == epoch and ARGV[at + 1] == run and ARGV[at + 2] == replication
end
local function get(field, id) return redis.call('HGET', KEYS[1], field .. ':' .. id) end
local function set(field, id, value) redis.call('HSET', KEYS[1], field .. ':' .. id, value) end
local function drop(id)
  redis.call('HDEL', KEYS[1],
    'i:' .. id, 'a:' .. id, 'n:' .. id, 'l:' .. id, 'f:' .. id, 'b:' .. id)
end
local function is_before(a, b)
  local a_ms, a_seq = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_seq = string.match(b, '^(%d+)-(%d+)$')
  a_ms, a_seq, b_ms, b_seq = tonumber(a_ms), tonumber(a_seq), tonumber(b_ms), tonumber(b_seq)
  return a_ms < b_ms or (a_ms == b_ms and a_seq < b_seq)
end

-- 6 the member, 7 its incarnation: whether that row stands under the caller's identity.
local function has_row() return is_identity(3) and get('i', ARGV[6]) == ARGV[7] end

local steps = {}
function steps.look() return true end
function steps.append()
  last = redis.call('XADD', KEYS[2], '*', 'a', ARGV[6], 'r', ARGV[7])
  redis.call('HSET', KEYS[1], 'last', last)
  return true
end
-- 8 the lease, 9 the label, 10 what it has applied under the identity.
function steps.register()
  local id = ARGV[6]
  redis.call('DEL', KEYS[3])
  drop(id)
  set('i', id, ARGV[7])
  set('l', id, ARGV[8])
  set('b', id, ARGV[9])
  set('a', id, is_identity(3) and ARGV[10] or '0-0')
  return true
end
-- 8 what it has applied.
function steps.renew()
  if not has_row() or get('f', ARGV[6]) then return false end
  set('a', ARGV[6], ARGV[8])
  redis.call('HINCRBY', KEYS[1], 'n:' .. ARGV[6], 1)
  return true
end
function steps.fence()
  if not has_row() then return false end
  set('f', ARGV[6], '1')
  return true
end
function steps.remove()
  if not has_row() then return false end
  drop(ARGV[6])
  return true
end
-- 6 the flag.
function steps.flag()
  if not is_identity(3) then return false end
  redis.call('HSET', KEYS[1], ARGV[6], '1')
  return true
end
-- 6 the last entry that may go, 7 the most entries that may stay.
function steps.trim()
  if not is_identity(3) then return false end
  local up_to = ARGV[6]
  local fields = redis.call('HGETALL', KEYS[1])
  for at = 1, #fields, 2 do
    if string.sub(fields[at], 1, 2) == 'a:' and is_before(fields[at + 1], up_to) then
      up_to = fields[at + 1]
    end
  end
  local from = last
  if is_before(up_to, last) then
    local ms, seq = string.match(up_to, '^(%d+)-(%d+)$')
    from = ms .. '-' .. string.format('%.0f', tonumber(seq) + 1)
  end
  local gone = redis.call('XREVRANGE', KEYS[2], '(' .. from, '-', 'COUNT', 1)
  if gone[1] then
    redis.call('XTRIM', KEYS[2], 'MINID', '=', from)
    redis.call('HSET', KEYS[1], 'trimmed', gone[1][1])
  end
  local over = redis.call('XLEN', KEYS[2]) - tonumber(ARGV[7])
  if over > 0 then
    local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', over)
    redis.call('XTRIM', KEYS[2], 'MAXLEN', '=', ARGV[7])
    redis.call('HSET', KEYS[1], 'trimmed', oldest[#oldest][1])
    redis.call('HDEL', KEYS[1], 'open_set_known')
  end
  return true
end

local done = steps[step]() and 1 or 0
return {done, run, replication, redis.call('XLEN', KEYS[2]), redis.call('HGETALL', KEYS[1])}
";

/// Ends log and table, so that no fleet goes on under an epoch in which writes were missed. `KEYS` as
/// above; `ARGV` a candidate for the epoch. Returns the epoch.
pub(super) const DECLARE_SINGLE: &str = r"
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], ARGV[1], 'NX')
return redis.call('GET', KEYS[3])
";
