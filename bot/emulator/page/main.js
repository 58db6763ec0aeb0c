// From nothing to a page that follows what happens.
import { AgentPane } from "./agent.js";
import { call, watch } from "./api.js";
import { listenToBlocks } from "./blocks.js";
import { Conversation } from "./conversation.js";
import { drawModal } from "./dialogs.js";
import { byId, el, trying } from "./dom.js";
import { drawSidebar } from "./sidebar.js";
import { channel, directMessage, go, keepStatus, noteUnread, onChange, placeInAddress, store } from "./store.js";
import { Thread } from "./thread.js";

let conversation;
let thread;
let agent;
let boot = "";
let waiting = 0;
let here = "";
const seen = new Set();

async function start() {
  const state = await trying(() => call("GET", "state"));
  if (!state) {
    byId("channel").replaceChildren(el("div", { class: "empty" }, el("h2", {}, "The local Slack does not answer"), el("p", {}, "Start it and load this page again.")));
    return;
  }
  Object.assign(store, { state, since: state.clock.now });
  boot = state.boot;
  conversation = new Conversation();
  thread = new Thread();
  agent = new AgentPane();
  listenToBlocks(document.body);
  onChange(draw);
  go(placeInAddress());
  watch(state.last_update, onUpdate, onConnection);
  window.addEventListener("hashchange", () => go(placeInAddress()));
}

// One drawing per 40 ms, however fast a stream grows.
function drawSoon() {
  if (waiting) return;
  waiting = setTimeout(draw, 40);
}

async function draw() {
  clearTimeout(waiting);
  waiting = 0;
  if (here !== `${store.me} ${store.channel}`) await arrive();
  drawSidebar();
  await Promise.all([conversation.draw(), thread.draw(), agent.draw()]);
}

// Coming to another conversation: its statuses are loaded, and the app is told that it was opened.
async function arrive() {
  here = `${store.me} ${store.channel}`;
  warnIfAlone();
  const answer = await trying(() => call("GET", "status", { query: { channel: store.channel } }));
  answer?.threads.forEach(keepStatus);
  if (channel().kind === "im" && store.tab !== "about") trying(() => call("POST", "home", { body: { user: store.me, tab: store.tab } }));
}

function onUpdate(update) {
  if (update.kind === "hello" && update.boot !== boot) location.reload();
  else if (update.kind === "status") keepStatus(update), drawIfHere(update);
  else if (["message", "deleted", "delivery"].includes(update.kind)) onMessage(update);
  else if (update.kind === "view") drawModal(), store.tab === "home" && drawSoon();
  else if (["workspace", "channel", "clock", "config", "reset"].includes(update.kind)) refresh();
}

const known = (id) => store.state.workspaces.some((one) => one.channels.some((entry) => entry.id === id));

async function onMessage(update) {
  // Somebody began a conversation that was not there when the page was loaded.
  if (!known(update.channel)) await refresh();
  // A message is told again whenever it changes; only a new one is unread.
  const isNew = update.kind === "message" && Number(update.ts) > store.since && !seen.has(update.ts);
  if (isNew) seen.add(update.ts);
  const inPane = store.agent && update.channel === directMessage()?.id;
  if (isNew && update.channel !== store.channel && !inPane && noteUnread(update)) drawSidebar();
  drawIfHere(update);
}

function drawIfHere(update) {
  if (update.channel === store.channel || (store.agent && update.channel === directMessage()?.id)) drawSoon();
}

async function refresh() {
  const state = await trying(() => call("GET", "state"));
  if (!state) return;
  store.state = state;
  here = "";
  go({});
}

function onConnection(open) {
  if (open) warnIfAlone();
  else conversation.warn("The connection to the local Slack is lost. Trying again…");
}

function warnIfAlone() {
  const app = store.state.app.name;
  conversation.warn(store.state.request_url.length ? "" : `${app} has not started yet. Messages wait for it.`);
}

// A status line goes by itself when its time is over.
setInterval(() => store.state && [...store.statuses.values()].some((one) => one.goes && one.goes < Date.now() && (one.goes = 0, true)) && drawSoon(), 1000);

start();
