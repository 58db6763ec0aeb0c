// Where the reader is: workspace, person, conversation, thread. The address keeps it over a reload.

export const store = { state: null, team: "", me: "", channel: "", thread: "", tab: "messages", unread: new Set(), statuses: new Map() };

const listeners = [];

export const onChange = (listener) => listeners.push(listener);

export const workspace = () => store.state.workspaces.find((one) => one.id === store.team) || store.state.workspaces[0];

export const user = (id) => workspace().users.find((one) => one.id === id);

export const me = () => user(store.me) || people()[0];

export const people = () => workspace().users.filter((one) => !one.is_bot);

export const bot = () => user(workspace().bot_user_id);

export const channel = (id = store.channel) => workspace().channels.find((one) => one.id === id);

export const channels = () => workspace().channels.filter((one) => one.kind !== "im" && one.members.includes(store.me));

export const directMessage = () => workspace().channels.find((one) => one.kind === "im" && one.user === store.me);

export const title = (one) => (one.kind === "im" ? bot().real_name : `#${one.name}`);

// Change the place and tell everybody. Whatever does not fit the new workspace or person falls back to its first choice.
export function go(place) {
  Object.assign(store, place);
  if (!store.state.workspaces.some((one) => one.id === store.team)) store.team = store.state.workspaces[0].id;
  if (!people().some((one) => one.id === store.me)) store.me = people()[0].id;
  const open = [...channels(), directMessage()].filter(Boolean);
  if (!open.some((one) => one.id === store.channel)) Object.assign(store, { channel: open[0].id, thread: "" });
  if (channel().kind !== "im") store.tab = "messages";
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
