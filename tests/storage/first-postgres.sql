-- A database as the first version (cbc5f85) made it: its DDL, word for word.
create table threadline_schema (fingerprint text not null);
create table threadline_clock (shift interval not null);
insert into threadline_clock values ('0');
create or replace function threadline_now() returns timestamptz language sql stable parallel safe
as 'select clock_timestamp() + (select shift from threadline_clock)';
create table runs (
  run_id text not null,
  tenant text not null,
  workflow text not null,
  version text not null default '1',
  key text,
  queue text not null default 'default',
  priority bigint not null default 100,
  state text not null default 'ready',
  fence bigint not null default 0,
  owner text,
  attempts bigint not null default 0,
  max_attempts bigint not null default 5,
  step_seq bigint not null default 0,
  inbox_seq bigint not null default 0,
  cancel_requested boolean not null default false,
  available_at timestamptz not null default threadline_now(),
  parent_id text,
  parent_path text,
  input bytea,
  output bytea,
  error json,
  trace_id text,
  deployment text,
  created_at timestamptz not null default threadline_now(),
  finished_at timestamptz,
  primary key (run_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create unique index runs_live_key on runs (tenant, workflow, key) where key is not null and state in ('ready','running','suspended');
create index runs_due on runs (queue, priority, available_at, run_id) where state in ('ready','suspended');
create index runs_owned on runs (owner) where state = 'running';
create index runs_by_key on runs (tenant, key, run_id);
create table steps (
  run_id text not null,
  path text not null,
  seq bigint not null,
  fence bigint not null,
  status text not null,
  output bytea,
  error json,
  started_at timestamptz,
  finished_at timestamptz not null default threadline_now(),
  primary key (run_id, path)
);
create table signals (
  run_id text not null,
  seq bigint not null,
  name text not null,
  dedup_key text not null,
  payload bytea,
  created_at timestamptz not null default threadline_now(),
  carried bigint not null default 0,
  consumed_by text,
  primary key (run_id, seq)
);
create unique index signals_dedup on signals (run_id, dedup_key);
create table received (
  tenant text not null,
  dedup_key text not null,
  at timestamptz not null default threadline_now(),
  primary key (tenant, dedup_key)
);
create index received_at on received (at);
create table dead_signals (
  tenant text not null,
  run_id text not null,
  seq bigint not null,
  workflow text not null,
  key text,
  name text not null,
  dedup_key text not null,
  payload bytea,
  carried bigint not null default 1,
  created_at timestamptz not null,
  died_at timestamptz not null default threadline_now(),
  primary key (tenant, run_id, seq)
);
create index dead_signals_newest on dead_signals (tenant, died_at);
create table outbox (
  id bigint generated always as identity,
  topic text not null,
  type text not null,
  data json not null,
  primary key (id)
);
create unlogged table workers (
  worker_id text not null,
  host text,
  deployment text,
  started_at timestamptz not null default threadline_now(),
  lease_until timestamptz not null,
  primary key (worker_id)
);
create table approvals (
  tenant text not null,
  id text not null,
  workflow text not null,
  key text not null,
  state text not null default 'pending',
  by_user text,
  reason text,
  created_at timestamptz not null default threadline_now(),
  decided_at timestamptz,
  expires_at timestamptz not null,
  body json not null,
  primary key (tenant, id)
);
create index approvals_pending on approvals (expires_at) where state = 'pending';
create table schedules (
  tenant text not null,
  name text not null,
  workflow text not null,
  version text not null default '1',
  spec text not null,
  tz text not null,
  next_at timestamptz not null,
  last_at timestamptz,
  paused boolean not null default false,
  input bytea,
  primary key (tenant, name)
);
create index schedules_due on schedules (next_at) where not paused;
create table spans (
  tenant text not null,
  trace_id text not null,
  span_id text not null,
  parent_id text,
  run_id text,
  name text not null,
  kind text not null,
  status text not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  attributes json,
  primary key (tenant, trace_id, span_id)
);
create index spans_run on spans (run_id);
create table messages (
  tenant text not null,
  thread text not null,
  id text not null,
  position bigint,
  role text not null,
  notice boolean not null default false,
  author json,
  parts json not null,
  run_id text,
  at timestamptz not null default threadline_now(),
  primary key (tenant, thread, id)
);
create index messages_window on messages (tenant, thread, position);
create index messages_run on messages (tenant, run_id);
create table participation (
  tenant text not null,
  thread text not null,
  since timestamptz not null default threadline_now(),
  primary key (tenant, thread)
);
create table stops (
  tenant text not null,
  thread text not null,
  message_id text not null,
  by_user text not null,
  at timestamptz not null default threadline_now(),
  primary key (tenant, thread)
);
create table campaign_changes (
  tenant text not null,
  key text not null,
  campaign_id text not null,
  at timestamptz not null,
  field text not null,
  old text not null,
  new text not null,
  by text not null,
  primary key (tenant, key)
);
create index campaign_changes_by_time on campaign_changes (tenant, at);
create table installations (
  tenant text not null,
  name text not null default '',
  app_id text not null default '',
  bot_user_id text not null,
  bot_id text not null,
  token text not null,
  scopes text not null default '',
  installer text not null default '',
  installed_at timestamptz not null default threadline_now(),
  removed_at timestamptz,
  primary key (tenant)
);
create table oauth_states (
  state text not null,
  expires_at timestamptz not null,
  primary key (state)
);
create table kept_events (
  tenant text not null,
  event_id text not null,
  envelope json not null,
  at timestamptz not null default threadline_now(),
  primary key (tenant, event_id)
);
create table overheard (
  tenant text not null,
  thread text not null,
  id text not null,
  said json not null,
  at timestamptz not null default threadline_now(),
  primary key (tenant, thread, id)
);
insert into threadline_schema values ('6b7a4de9c138db4eb9ff8e45fd63356a27d69fa6c90210e0275a1719e61b5805');
