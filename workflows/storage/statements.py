"""PostgreSQL's statements, one per operation, each a single round trip and a single commit.

They assume READ COMMITTED and `synchronous_commit = on`, which the store sets. Only locking the run's row in the same statement fences:
`exists (select fence …)` and `for key share` were seen to let a stale owner through. RUN is the column list of `runs`.
"""

from workflows.storage.tables import LIVE, RUN_COLUMNS, RUNS, SCHEDULE_COLUMNS, SPAN_COLUMNS

RUN = RUN_COLUMNS
R_RUN = ", ".join(f"r.{column.name}" for column in RUNS.columns)
SCHEDULE = SCHEDULE_COLUMNS

LIVE_CONFLICT = f"(tenant, workflow, key) where key is not null and {LIVE}"

RING = """do update set inbox_seq = runs.inbox_seq + 1,
    available_at = case runs.state when 'suspended' then threadline_now() else runs.available_at end,
    state = case runs.state when 'suspended' then 'ready' else runs.state end"""
"""What accepting a signal does to a live run: count it, and wake the run if it sleeps."""

CLAIM = f"""
with due as materialized (
  select run_id from runs
   where queue = any($2) and state in ('ready','suspended') and available_at <= threadline_now() and tenant <> all($6)
     and (workflow, version) in (select * from unnest($4::text[], $5::text[]))
     and exists (select from workers where worker_id = $1)  -- one that was reaped must not claim before it has noticed
   order by priority, available_at, run_id limit $3 for update skip locked)
update runs r set state = 'running', fence = fence + 1, owner = $1, attempts = attempts + 1
  from due where r.run_id = due.run_id returning {R_RUN}
"""

LOAD = "select path, status, output, error, started_at, seq, finished_at from steps where run_id = $1 order by seq"

INBOX = """
select seq, name, dedup_key, payload, carried, created_at from signals where run_id = $1 and consumed_by is null order by seq
"""

INSERT_RUN = """
insert into runs (run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, parent_id, parent_path,
                  max_attempts, available_at, paused)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce($14, threadline_now()), $15) on conflict do nothing returning run_id
"""

# $1 new run $2 source $3 tenant $4 cut $5 paths left out $6 input $7 paused $8-$11 added records: paths, outputs, statuses, started
FORK = f"""
with o as (select * from runs where run_id = $2 and tenant = $3 and not {LIVE} for update),
kept as (select path, status, output, error, started_at, finished_at, seq from steps where run_id = $2 and seq < $4 and path <> all($5::text[]) and exists (select from o)),
added as (select * from unnest($8::text[], $9::bytea[], $10::text[], $11::timestamptz[]) with ordinality a(path, output, status, started, n)),
r as (insert into runs (run_id, tenant, workflow, version, queue, priority, input, trace_id, deployment, max_attempts, forked_from,
                        forked_seq, paused, inbox_seq, step_seq)
      select $1, tenant, workflow, version, queue, priority, $6::bytea, $1, deployment, max_attempts, $2, $4, $7, inbox_seq,
             $4 - 1 + cardinality($8::text[]) from o on conflict do nothing returning run_id),
i as (insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at)
      select $1, path, seq, 0, status, output, error, started_at, finished_at from kept, r
      union all
      select $1, path, $4 - 1 + n, 0, status, output, null, started, threadline_now() from added, r)
insert into signals (run_id, seq, name, dedup_key, payload, created_at, carried, consumed_by)
select $1, s.seq, s.name, s.dedup_key, s.payload, s.created_at, s.carried, (select path from kept where path = s.consumed_by)
  from signals s, r where s.run_id = $2 and s.name not in ('$cancel', '$step', '$go-on')
"""

FORKED = "select exists (select from runs where run_id = $1 and tenant = $2)"

# $1 run $2 tenant
REDRIVE = f"""
with d as (select * from runs where run_id = $1 and tenant = $2 and state = 'dead' for update),
l as (select r.run_id from runs r, d where r.tenant = d.tenant and r.workflow = d.workflow and r.key = d.key and r.{LIVE}),
u as (update runs r set state = 'ready', attempts = 0, fence = r.fence + 1, owner = null, error = null, output = null, finished_at = null,
             cancel_requested = false, available_at = threadline_now()
        from d where r.run_id = d.run_id and not exists (select from l) returning r.run_id)
select exists (select from u) as redriven, (select run_id from l) as live
"""

CENSUS = f"""
select workflow, version, state, count(*), min(available_at) filter (where state in ('ready', 'suspended') and available_at < 'infinity')
  from runs where {LIVE} or state = 'dead' group by workflow, version, state order by workflow, version, state
"""

LIVE_RUN = f"select run_id from runs where tenant = $1 and workflow = $2 and key = $3 and {LIVE}"

# $1 run $2 fence $3 paths $4 outputs $5 statuses $6 errors $7 started $8 done $9 inbox seen $10 signals used $11-$13 hints
# $14-$20 children: ids, workflows, versions, keys, queues, inputs, parent paths $21 fresh id for a parent's next run $22 the run's output
# $23 the children's max_attempts
# Writes of upper floors ride along as further CTEs guarded by g.
STEP_HEAD = f"""
with f as (
  update runs set step_seq = step_seq + cardinality($3::text[]), attempts = 0,
         state = case when $8 then 'done' else state end, owner = case when $8 then null else owner end,
         output = case when $8 then $22::bytea else output end,
         finished_at = case when $8 then threadline_now() end
   where run_id = $1 and fence = $2 and state = 'running' and (not $8 or (inbox_seq = $9 and not cancel_requested))
     and not exists (select from steps where run_id = $1 and path = any($3))
  returning *),
i as (insert into steps (run_id, path, seq, fence, status, output, error, started_at)
      select f.run_id, t.path, f.step_seq - cardinality($3) + t.n, $2, t.status, t.output, t.error::json, t.started
        from f, unnest($3, $4::bytea[], $5::text[], $6::text[], $7::timestamptz[]) with ordinality t(path, output, status, error, started, n)
      on conflict do nothing returning run_id),
g as (select f.* from f where cardinality($3) = 0 or exists (select from i)),
c as (update signals s set consumed_by = coalesce($3[1], '$end') from g
       where s.run_id = g.run_id and s.seq = any($10::bigint[]) and s.consumed_by is null returning s.seq),
o as (insert into outbox (topic, type, data) select t.topic, t.type, t.data::json from g, unnest($11::text[], $12::text[], $13::text[]) t(topic, type, data)),
k as (insert into runs (run_id, tenant, workflow, version, key, queue, input, parent_id, parent_path, trace_id, max_attempts)
      select t.id, g.tenant, t.workflow, t.version, t.key, t.queue, t.input, g.run_id, t.path, g.trace_id, t.attempts
        from g, unnest($14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bytea[], $20::text[], $23::bigint[])
             t(id, workflow, version, key, queue, input, path, attempts)
      on conflict do nothing),
p as (select q.tenant, q.workflow, q.version, q.key, q.queue, q.trace_id, q.max_attempts from g join runs q on q.run_id = g.parent_id where $8 and q.key is not null),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, max_attempts, inbox_seq)
      select $21 || '-p', tenant, workflow, version, key, queue, trace_id, max_attempts, 1 from p
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select r.run_id, r.inbox_seq, 'task', 'task:' || $1,
             convert_to(json_build_object('run_id', $1::text, 'path', g.parent_path, 'state', 'done')::text, 'utf8') from r, g
      on conflict do nothing)
"""

STEP_TAIL = """
select (select count(*) from g) as applied,
       (select count(*) from steps where run_id = $1 and path = any($3) and fence = $2) as existing,
       (select inbox_seq from f) as inbox_seq, (select cancel_requested from f) as cancel_requested, (select run_id from r) as parent_run
"""

STEP_AGAIN = """
select state, fence, inbox_seq, cancel_requested,
       (select count(*) from steps where run_id = $1 and path = any($2::text[]) and fence = $3) as existing
  from runs where run_id = $1
"""
"""Asked in a new statement when STEP applied nothing: its own snapshot may predate the lock it waited for."""

# $1 run $2 fence $3 state $4 inbox seen $5 successor's id $6 error $7 output
END_HEAD = f"""
with e as (update runs set state = $3, owner = null, error = $6::json, output = $7::bytea, finished_at = threadline_now()
            where run_id = $1 and fence = $2 and state = 'running' and inbox_seq = $4 returning *),
g as (select * from e),
m as (select s.seq, row_number() over (order by s.seq) n from signals s join e using (run_id)
       where s.consumed_by is null and s.carried = 0 and e.key is not null and s.name not like '$%'),
x as (select s.* from signals s join e using (run_id) where s.consumed_by is null and (s.carried > 0 or e.key is null) and s.name not like '$%'),
u as (insert into runs (run_id, tenant, workflow, version, key, queue, priority, trace_id, max_attempts, inbox_seq)
      select $5, tenant, workflow, version, key, queue, priority, $5, max_attempts, (select count(*) from m) from e where exists (select from m) returning run_id),
v as (update signals s set run_id = u.run_id, seq = m.n, carried = 1 from u, m where s.run_id = $1 and s.seq = m.seq returning s.seq),
d as (insert into dead_signals (tenant, run_id, seq, workflow, key, name, dedup_key, payload, carried, created_at)
      select e.tenant, x.run_id, x.seq, e.workflow, e.key, x.name, x.dedup_key, x.payload, x.carried, x.created_at from x, e
      on conflict do nothing),
y as (update signals s set consumed_by = '$dead' from x where s.run_id = x.run_id and s.seq = x.seq),
p as (select q.tenant, q.workflow, q.version, q.key, q.queue, q.trace_id, q.max_attempts from e join runs q on q.run_id = e.parent_id where q.key is not null),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, max_attempts, inbox_seq)
      select $5 || '-p', tenant, workflow, version, key, queue, trace_id, max_attempts, 1 from p
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select r.run_id, r.inbox_seq, 'task', 'task:' || $1,
             convert_to(json_build_object('run_id', $1::text, 'path', e.parent_path, 'state', $3::text)::text, 'utf8') from r, e
      on conflict do nothing)
"""

END_TAIL = """
select (select count(*) from e) as ended, (select run_id from u) as successor, (select count(*) from v) as carried
"""

ENDED = "select state = $2 and fence = $3 from runs where run_id = $1"

SUSPEND = """
update runs set state = 'suspended', owner = null, attempts = 0, available_at = coalesce($4::timestamptz, 'infinity')
 where run_id = $1 and fence = $2 and state = 'running' and inbox_seq = $3 and not cancel_requested returning true
"""

# $1 tenant $2 workflow $3 version $4 key $5 id for a new run $6 dedup key $7 name $8 payload $9 queue $10 trace $11 input $12 max_attempts
# $13 priority $14 deployment
SIGNAL_WITH_START_HEAD = f"""
with g as (insert into received (tenant, dedup_key) values ($1, $6) on conflict do nothing returning tenant),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, input, max_attempts, priority, deployment, inbox_seq)
      select $5, $1, $2, $3, $4, $9, $10, $11::bytea, $12::bigint, $13::bigint, $14::text, 1 from g
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload) select run_id, inbox_seq, $7, $6, $8 from r)
"""

SIGNAL_WITH_START_TAIL = (
    "select (select run_id from r) as run_id, (select inbox_seq from r) as seq, not exists (select from g) as duplicate"
)

# $1 run $2 name $3 dedup key $4 payload $5 tenant
SIGNAL = f"""
with r as (update runs set inbox_seq = inbox_seq + 1, cancel_requested = cancel_requested or $2 = '$cancel',
        available_at = case when state = 'suspended' then threadline_now() else available_at end,
        state = case when state = 'suspended' then 'ready' else state end
      where run_id = $1 and tenant = $5 and {LIVE}
        and not exists (select from signals where run_id = $1 and dedup_key = $3) returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload) select run_id, inbox_seq, $2, $3, $4 from r on conflict do nothing returning seq)
select (select seq from s) as seq, exists (select from signals where run_id = $1 and dedup_key = $3) as duplicate
"""

# $1 tenant $2 approval $3 decision $4 person $5 id for a new run $6 reason $7 version
DECIDE = f"""
with a as (update approvals set state = $3, by_user = $4, reason = $6, decided_at = threadline_now()
            where tenant = $1 and id = $2 and state = 'pending' and (expires_at <= threadline_now()) = ($3 = 'expired') returning *),
r as (insert into runs (run_id, tenant, workflow, version, key, inbox_seq) select $5, tenant, workflow, $7, key, 1 from a
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select run_id, inbox_seq, 'approval', 'approval:' || $2, convert_to(json_build_object('approval_id', $2::text)::text, 'utf8') from r
      on conflict do nothing)
select (select run_id from r) as run_id, exists (select from a) as decided
"""

REGISTER = """
insert into workers (worker_id, host, deployment, lease_until) values ($1, $2, $3, threadline_now() + $4)
on conflict (worker_id) do update set lease_until = excluded.lease_until
"""

BEAT = "update workers set lease_until = threadline_now() + $2 where worker_id = $1 returning true"

RELEASE = """
update runs set state = 'ready', owner = null, fence = fence + 1, attempts = greatest(attempts - 1, 0), available_at = threadline_now()
 where owner = $1 and state = 'running' and run_id <> all($2) returning run_id
"""

ABANDON = """
update runs set fence = fence + 1, owner = null, available_at = threadline_now() + $3,
       state = case when attempts < max_attempts then 'ready' else state end
 where run_id = $2 and owner = $1 and state = 'running' returning run_id
"""

REAP_WORKERS = "delete from workers where lease_until < threadline_now()"

REAP_RUNS = f"""
with lost as materialized (
  select r.run_id, r.fence from runs r
   where r.state = 'running' and not exists (select from workers w where w.worker_id = r.owner) order by r.run_id limit 500)
update runs r set fence = r.fence + 1,
       state = case when r.attempts < r.max_attempts then 'ready' else r.state end,
       owner = case when r.attempts < r.max_attempts then null else r.owner end,
       available_at = case when r.attempts < r.max_attempts then threadline_now() else r.available_at end
  from lost where r.run_id = lost.run_id and r.fence = lost.fence and r.state = 'running' returning {R_RUN}
"""

TICK = """
with t as (update schedules set last_at = next_at, next_at = $4 where tenant = $1 and name = $2 and next_at = $3 and not paused returning *)
insert into runs (run_id, tenant, workflow, version, key, queue, input, trace_id, max_attempts) select $5, tenant, $6, $7, $8, $9, $10, $5, $11::bigint from t
on conflict do nothing returning run_id
"""

DRAIN_HINTS = """
delete from outbox where id in (select id from outbox order by id limit $1 for update skip locked) returning topic, type, data
"""

# One array per column, in table order.
UPSERT_SPANS = f"""
insert into spans ({SPAN_COLUMNS})
select s.tenant, s.trace_id, s.span_id, s.parent_id, s.run_id, s.name, s.kind, s.status, s.started_at, s.ended_at, s.attributes::json, s.owner
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
              $10::timestamptz[], $11::text[], $12::text[])
       s(tenant, trace_id, span_id, parent_id, run_id, name, kind, status, started_at, ended_at, attributes, owner)
on conflict (tenant, trace_id, span_id) do update
   set status = excluded.status, ended_at = excluded.ended_at, attributes = excluded.attributes where excluded.status <> 'open'
"""

OPEN_SPAN_OWNERS = "select distinct owner from spans where status = 'open' and owner is not null"

INTERRUPT_SPANS = f"""
update spans set status = 'interrupted', ended_at = threadline_now() where status = 'open' and owner = any($1) returning {SPAN_COLUMNS}
"""
