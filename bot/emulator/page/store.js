// Where the reader is: workspace, person, conversation, thread. The address keeps it over a reload.

// `agent`: the app's pane is open beside a channel, at its conversation `talk`. `newFrom`: the first message that was unread on arrival.
export const store = { state: null, team: "", me: "", channel: "", thread: "", tab: "messages", agent: false, talk: "", newFrom: "", unread: new Map(), statuses: new Map() };

const listeners = [];

export const onChange = (listener) => listeners.push(listener);

export const workspace = () => store.state.workspaces.find((one) => one.id === store.team) || store.state.workspaces[0];

export const user = (id) => workspace().users.find((one) => one.id === id) || store.state.workspaces.flatMap((one) => one.users).find((one) => one.id === id);

export const me = () => user(store.me) || people()[0];

export const people = () => workspace().users.filter((one) => !one.is_bot);

export const bot = () => user(workspace().bot_user_id);

export const channel = (id = store.channel) => workspace().channels.find((one) => one.id === id);

const mine = (kinds) => workspace().channels.filter((one) => kinds.includes(one.kind) && one.members.includes(store.me));

export const channels = () => mine(["channel", "group"]);

// Conversations of several people.
export const groups = () => mine(["mpim"]);

export const directMessage = () => workspace().channels.find((one) => one.kind === "im" && one.user === store.me);

// Who else is in it.
export const others = (one) => one.members.filter((id) => id !== store.me).map((id) => user(id));

export function title(one) {
  if (one.kind === "im") return bot().real_name;
  return one.kind === "mpim" ? others(one).map((each) => each.real_name).join(", ") : `#${one.name}`;
}

// Change the place and tell everybody. Whatever does not fit the new workspace or person falls back to its first choice.
export function go(place) {
  const before = store.channel;
  Object.assign(store, place);
  if (!store.state.workspaces.some((one) => one.id === store.team)) store.team = store.state.workspaces[0].id;
  if (!people().some((one) => one.id === store.me)) store.me = people()[0].id;
  const open = [...channels(), ...groups(), directMessage()].filter(Boolean);
  if (!open.some((one) => one.id === store.channel)) Object.assign(store, { channel: open[0].id, thread: "" });
  if (channel().kind !== "im") store.tab = "messages";
  // One pane at the right: a thread, or the app.
  if (store.thread || channel().kind === "im" || !workspace().installed) store.agent = false;
  if (store.channel !== before) store.newFrom = store.unread.get(store.channel)?.first || "";
  store.unread.delete(store.channel);
  const parts = { team: store.team, as: store.me, channel: store.channel, ...(store.thread ? { thread: store.thread } : {}) };
  history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  // Read by the page that asks for consent (bot/emulator/consent.py).
  document.cookie = `local_slack_place=${store.team}.${store.me}; path=/; SameSite=Lax`;
  listeners.forEach((listener) => listener());
}

// What the address says. A permalink names a channel and perhaps a thread; its workspace follows from the channel.
export function placeInAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const place = {};
  if (given.get("team")) place.team = given.get("team");
  if (given.get("as")) place.me = given.get("as");
  if (given.get("channel")) {
    place.channel = given.get("channel");
    place.thread = given.get("thread") || given.get("thread_ts") || "";
    const home = store.state.workspaces.find((one) => one.channels.some((entry) => entry.id === place.channel));
    if (home) place.team = home.id;
  }
  return place;
}

// Something new elsewhere: bold in the sidebar, with a number where it is meant for the reader.
export function noteUnread({ channel: id, ts, thread_ts: threadTs, user: author, mentions = [], ephemeral_for: only }) {
  const one = channel(id);
  const known = store.unread.get(id);
  if (!one?.members.includes(store.me) || author === store.me || (only && only !== store.me)) return false;
  const personal = one.kind === "im" || one.kind === "mpim" || mentions.includes(store.me);
  const reply = threadTs && threadTs !== ts;
  if ((reply && !personal) || (known && Number(ts) <= Number(known.last))) return false;
  store.unread.set(id, { first: known?.first || ts, last: ts, count: (known?.count || 0) + (personal ? 1 : 0) });
  return true;
}

export const statusOf = (threadTs, channelId = store.channel) => store.statuses.get(`${channelId} ${threadTs}`) || null;

// A status the server would no longer show: it is kept with the time at which it goes.
export function keepStatus(status) {
  const goes = status.expires_in_s ? Date.now() + status.expires_in_s * 1000 : 0;
  store.statuses.set(`${status.channel} ${status.thread_ts}`, { ...status, goes });
}

export function working(status) {
  if (!status) return "";
  if (status.status && Date.now() < status.goes) return status.status;
  return status.session_status === "processing" ? "is working…" : "";
}
