"""The server-side scripts of the Redis log, by name. Each is one atomic operation on keys of one partition.

Scripts, and not single commands, for three reasons: a key never exists without its TTL, not even for the moment between two
commands; a delivery and its count are read together; and an operation costs one round trip.
KEYS[1] is always the topic's stream and ARGV[1] the TTL in ms. An entry is returned as {id, type, data, only, deliveries}.
"""

_PRELUDE = """
local key, ttl = KEYS[1], ARGV[1]

local function entry(raw, deliveries)
  local field = {}
  for i = 1, #raw[2], 2 do field[raw[2][i]] = raw[2][i + 1] end
  return {raw[1], field.type, field.data, field.only or '', deliveries}
end

local function map(flat)
  local result = {}
  for i = 1, #flat, 2 do result[flat[i]] = flat[i + 1] end
  return result
end

local function less(a, b)
  local am, as = string.match(a, '(%d+)-(%d+)')
  local bm, bs = string.match(b, '(%d+)-(%d+)')
  if am == bm then return tonumber(as) < tonumber(bs) end
  return tonumber(am) < tonumber(bm)
end

local function touch() redis.call('PEXPIRE', key, ttl) end

-- An emptied server has forgotten its groups. They begin again at 0: what is in the stream by now, nobody has handled.
local function in_group(group, ...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and string.find(reply.err, 'NOGROUP') then
    redis.call('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
    touch()
    reply = redis.pcall(...)
  end
  return reply
end

local function failed(reply) return type(reply) == 'table' and reply.err end

local function deliveries_of(group, id)
  local found = redis.call('XPENDING', key, group, id, id, 1)
  return found[1] and found[1][4] or 1
end
"""

APPEND = (
    _PRELUDE
    + """
-- ARGV: ttl, type, data, only, max_len, stall_len. Returns {id, stalling group or '', '' | 'slow' | 'destroyed'}.
-- Trims only below what every group has finished with, in whole nodes of the stream (cheap), and at most down to max_len.
local max_len, stall_len = tonumber(ARGV[5]), tonumber(ARGV[6])
local fields = {'type', ARGV[2], 'data', ARGV[3]}
if ARGV[4] ~= '' then fields[5], fields[6] = 'only', ARGV[4] end
local id = redis.call('XADD', key, '*', unpack(fields))
touch()
local length = redis.call('XLEN', key)
if length <= max_len then return {id, '', ''} end
local floor, holder = id, ''
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = map(flat)
  local needed = group['last-delivered-id']
  if group.pending > 0 then needed = redis.call('XPENDING', key, group.name)[2] end
  if less(needed, floor) then floor, holder = needed, group.name end
end
redis.call('XTRIM', key, 'MINID', '~', floor, 'LIMIT', length - max_len)
if length < stall_len or length % math.max(1, math.floor(max_len / 10)) ~= 0 then return {id, '', ''} end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', key, holder)) do
  if map(flat).idle < tonumber(ttl) then return {id, holder, 'slow'} end
end
redis.call('XGROUP', 'DESTROY', key, holder)
return {id, holder, 'destroyed'}
"""
)

HEAD = (
    _PRELUDE
    + """
-- Returns {newest offset, 1 if that entry is still there}.
if redis.call('EXISTS', key) == 0 then return {'0-0', 0} end
local last = map(redis.call('XINFO', 'STREAM', key))['last-generated-id']
local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
return {last, newest[1] and newest[1][1] == last and 1 or 0}
"""
)

READ = (
    _PRELUDE
    + """
-- ARGV: ttl, cursor, 1 if a missing entry at the cursor means a gap. Returns {gap, place it read from, entries}.
local cursor, known = ARGV[2], ARGV[3] == '1'
if redis.call('EXISTS', key) == 0 then return {known and cursor ~= '0-0' and 1 or 0, '0-0', {}} end
touch()
local stream = map(redis.call('XINFO', 'STREAM', key))
local gap = false
if known and cursor == '0-0' then
  gap = stream['entries-added'] > stream.length
elseif known then
  gap = #redis.call('XRANGE', key, cursor, cursor) == 0
end
-- The stream was made anew under an older clock.
if less(stream['last-generated-id'], cursor) then cursor = '0-0' end
local entries = {}
for i, raw in ipairs(redis.call('XRANGE', key, '(' .. cursor, '+', 'COUNT', 100)) do entries[i] = entry(raw, 1) end
return {gap and 1 or 0, cursor, entries}
"""
)

JOIN = (
    _PRELUDE
    + """
-- ARGV: ttl, group, after. Returns the newest offset.
local made = redis.pcall('XGROUP', 'CREATE', key, ARGV[2], ARGV[3], 'MKSTREAM')
if failed(made) and not string.find(made.err, 'BUSYGROUP') then return made end
touch()
return map(redis.call('XINFO', 'STREAM', key))['last-generated-id']
"""
)

TAKE = (
    _PRELUDE
    + """
-- ARGV: ttl, group, consumer. Returns the oldest undelivered entry, or nothing.
local reply = in_group(ARGV[2], 'XREADGROUP', 'GROUP', ARGV[2], ARGV[3], 'COUNT', 1, 'STREAMS', key, '>')
if failed(reply) then return reply end
return reply and entry(reply[1][2][1], 1)
"""
)

RETAKE = (
    _PRELUDE
    + """
-- ARGV: ttl, group, consumer, id. Returns the entry if it is still pending for this consumer, with one delivery more.
local pending = in_group(ARGV[2], 'XPENDING', key, ARGV[2], ARGV[4], ARGV[4], 1, ARGV[3])
if failed(pending) then return pending end
if #pending == 0 then return false end
local raw = redis.call('XCLAIM', key, ARGV[2], ARGV[3], 0, ARGV[4])[1]
return raw and raw[2] and entry(raw, deliveries_of(ARGV[2], ARGV[4]))
"""
)

STEAL = (
    _PRELUDE
    + """
-- ARGV: ttl, group, consumer, min_idle. Returns one entry that idled too long. A consumer with nothing pending that was not
-- heard of for the TTL is forgotten: a live one is heard of once per tick, through this script.
touch()
local cursor = '0-0'
repeat
  local reply = in_group(ARGV[2], 'XAUTOCLAIM', key, ARGV[2], ARGV[3], ARGV[4], cursor, 'COUNT', 1)
  if failed(reply) then return reply end
  local raw = reply[2][1]
  if raw and raw[2] then return entry(raw, deliveries_of(ARGV[2], raw[1])) end
  cursor = reply[1]
until cursor == '0-0'
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', key, ARGV[2])) do
  local consumer = map(flat)
  if consumer.pending == 0 and consumer.idle > tonumber(ttl) then
    redis.call('XGROUP', 'DELCONSUMER', key, ARGV[2], consumer.name)
  end
end
return false
"""
)

RENEW = (
    _PRELUDE
    + """
-- ARGV: ttl, group, consumer, ids… Touches those that are pending for this consumer; taken-over ones are not taken back.
touch()
for i = 4, #ARGV do
  local pending = in_group(ARGV[2], 'XPENDING', key, ARGV[2], ARGV[i], ARGV[i], 1, ARGV[3])
  if failed(pending) then return pending end
  if #pending > 0 then redis.call('XCLAIM', key, ARGV[2], ARGV[3], 0, ARGV[i], 'JUSTID') end
end
return 1
"""
)

ACKNOWLEDGE = (
    _PRELUDE
    + """
-- ARGV: ttl, group, id, 1 to delete the entry too.
local done = redis.call('XACK', key, ARGV[2], ARGV[3])
if done == 1 and ARGV[4] == '1' then redis.call('XDEL', key, ARGV[3]) end
return done
"""
)

BURY = (
    _PRELUDE
    + """
-- KEYS[2]: dead letters. ARGV: ttl, group, id, 1 to delete, TTL of dead letters, then fields. Only the first burial counts.
if redis.call('XACK', key, ARGV[2], ARGV[3]) == 0 then return 0 end
if ARGV[4] == '1' then redis.call('XDEL', key, ARGV[3]) end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 10000, '*', unpack(ARGV, 6))
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 1
"""
)

_LETTER = """
-- Takes the dead letter of this group and offset out of KEYS[2]; false if it is gone.
local function taken(group, offset)
  for _, raw in ipairs(redis.call('XRANGE', KEYS[2], '-', '+')) do
    local letter = map(raw[2])
    if letter.offset == offset and letter.group == group then return redis.call('XDEL', KEYS[2], raw[1]) == 1 end
  end
  return false
end
"""

REDRIVE = (
    _PRELUDE
    + _LETTER
    + """
-- KEYS[2]: dead letters. ARGV: ttl, group, id, type, data. Returns the new entry's id, or nothing if the letter is gone.
if not taken(ARGV[2], ARGV[3]) then return false end
local id = redis.call('XADD', key, '*', 'type', ARGV[4], 'data', ARGV[5], 'only', ARGV[2])
touch()
return id
"""
)

DROP = (
    _PRELUDE
    + _LETTER
    + """
-- KEYS[2]: dead letters. ARGV: ttl, group, id. Returns 1, or 0 if the letter is gone.
return taken(ARGV[2], ARGV[3]) and 1 or 0
"""
)

LEAVE = (
    _PRELUDE
    + """
-- ARGV: ttl, group, consumer, min_idle. What is pending ages at once, so that the next look of any member takes it.
local pending = redis.pcall('XPENDING', key, ARGV[2], '-', '+', 1000, ARGV[3])
if failed(pending) then return 0 end
for _, held in ipairs(pending) do
  redis.call('XCLAIM', key, ARGV[2], ARGV[3], 0, held[1], 'IDLE', ARGV[4], 'JUSTID')
end
if #pending == 0 then redis.call('XGROUP', 'DELCONSUMER', key, ARGV[2], ARGV[3]) end
return #pending
"""
)

ERASE = (
    _PRELUDE
    + """
-- KEYS[2]: dead letters. An emptied stream keeps its newest id, so that no offset comes twice.
redis.call('DEL', KEYS[2])
if redis.call('EXISTS', key) == 0 then return 0 end
for _, raw in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = map(raw).name
  local pending = redis.call('XPENDING', key, group, '-', '+', 1000)
  while #pending > 0 do
    for _, held in ipairs(pending) do redis.call('XACK', key, group, held[1]) end
    pending = redis.call('XPENDING', key, group, '-', '+', 1000)
  end
  redis.call('XGROUP', 'SETID', key, group, '$')
end
return redis.call('XTRIM', key, 'MAXLEN', 0)
"""
)

POKE = (
    _PRELUDE
    + """
-- KEYS[1]: a reader's control stream. One entry ends its blocking read, so that it reads with its new topics.
redis.call('XADD', key, 'MAXLEN', 1, '*', 'topics', 'changed')
touch()
return 1
"""
)
