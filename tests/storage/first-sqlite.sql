-- A database as the first version (cbc5f85) made it: its DDL, word for word.
create table threadline_schema (fingerprint text not null);
create table threadline_clock (offset_us integer not null);
create table runs (
  run_id text not null,
  tenant text not null,
  workflow text not null,
  version text not null default '1',
  key text,
  queue text not null default 'default',
  priority integer not null default 100,
  state text not null default 'ready',
  fence integer not null default 0,
  owner text,
  attempts integer not null default 0,
  max_attempts integer not null default 5,
  step_seq integer not null default 0,
  inbox_seq integer not null default 0,
  cancel_requested integer not null default 0,
  available_at integer not null default (threadline_now()),
  parent_id text,
  parent_path text,
  input blob,
  output blob,
  error text,
  trace_id text,
  deployment text,
  created_at integer not null default (threadline_now()),
  finished_at integer,
  primary key (run_id)
);
create unique index runs_live_key on runs (tenant, workflow, key) where key is not null and state in ('ready','running','suspended');
create index runs_due on runs (queue, priority, available_at, run_id) where state in ('ready','suspended');
create index runs_owned on runs (owner) where state = 'running';
create index runs_by_key on runs (tenant, key, run_id);
create table steps (
  run_id text not null,
  path text not null,
  seq integer not null,
  fence integer not null,
  status text not null,
  output blob,
  error text,
  started_at integer,
  finished_at integer not null default (threadline_now()),
  primary key (run_id, path)
);
create table signals (
  run_id text not null,
  seq integer not null,
  name text not null,
  dedup_key text not null,
  payload blob,
  created_at integer not null default (threadline_now()),
  carried integer not null default 0,
  consumed_by text,
  primary key (run_id, seq)
);
create unique index signals_dedup on signals (run_id, dedup_key);
create table received (
  tenant text not null,
  dedup_key text not null,
  at integer not null default (threadline_now()),
  primary key (tenant, dedup_key)
);
create index received_at on received (at);
create table dead_signals (
  tenant text not null,
  run_id text not null,
  seq integer not null,
  workflow text not null,
  key text,
  name text not null,
  dedup_key text not null,
  payload blob,
  carried integer not null default 1,
  created_at integer not null,
  died_at integer not null default (threadline_now()),
  primary key (tenant, run_id, seq)
);
create index dead_signals_newest on dead_signals (tenant, died_at);
create table outbox (
  id integer,
  topic text not null,
  type text not null,
  data text not null,
  primary key (id)
);
create table workers (
  worker_id text not null,
  host text,
  deployment text,
  started_at integer not null default (threadline_now()),
  lease_until integer not null,
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
  created_at integer not null default (threadline_now()),
  decided_at integer,
  expires_at integer not null,
  body text not null,
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
  next_at integer not null,
  last_at integer,
  paused integer not null default 0,
  input blob,
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
  started_at integer not null,
  ended_at integer,
  attributes text,
  primary key (tenant, trace_id, span_id)
);
create index spans_run on spans (run_id);
create table messages (
  tenant text not null,
  thread text not null,
  id text not null,
  position integer,
  role text not null,
  notice integer not null default 0,
  author text,
  parts text not null,
  run_id text,
  at integer not null default (threadline_now()),
  primary key (tenant, thread, id)
);
create index messages_window on messages (tenant, thread, position);
create index messages_run on messages (tenant, run_id);
create table participation (
  tenant text not null,
  thread text not null,
  since integer not null default (threadline_now()),
  primary key (tenant, thread)
);
create table stops (
  tenant text not null,
  thread text not null,
  message_id text not null,
  by_user text not null,
  at integer not null default (threadline_now()),
  primary key (tenant, thread)
);
create table campaign_changes (
  tenant text not null,
  key text not null,
  campaign_id text not null,
  at integer not null,
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
  installed_at integer not null default (threadline_now()),
  removed_at integer,
  primary key (tenant)
);
create table oauth_states (
  state text not null,
  expires_at integer not null,
  primary key (state)
);
create table kept_events (
  tenant text not null,
  event_id text not null,
  envelope text not null,
  at integer not null default (threadline_now()),
  primary key (tenant, event_id)
);
create table overheard (
  tenant text not null,
  thread text not null,
  id text not null,
  said text not null,
  at integer not null default (threadline_now()),
  primary key (tenant, thread, id)
);
insert into threadline_schema values ('b8206f7bc35caaf22663b5ed495f5877eabe41f11bd7fa320efe0ca0b41da041');
insert into threadline_clock values (0);
