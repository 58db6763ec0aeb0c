// Workspaces, channels, people, the app, and who is looking.
import { call } from "./api.js";
import { askForChannel, choosePeople } from "./dialogs.js";
import { avatar, byId, el, tool, trying } from "./dom.js";
import { icon } from "./icons.js";
import { bot, channels, directMessage, go, groups, me, others, people, store, title, workspace } from "./store.js";

const closed = new Set();

export function drawSidebar() {
  const app = store.state.app;
  const side = el(
    "div",
    { class: "side" },
    el("div", { class: "workspace" }, workspacePicker()),
    section("Channels", channels().map((one) => entry(one, sign(one), one.name)), tool("Create a channel", "attach", createChannel)),
    section("Direct messages", groups().map((one) => entry(one, el("span", { class: "number" }, String(others(one).length)), title(one))), workspace().installed && tool("New group message", "attach", startGroup)),
    section("Apps", workspace().installed && directMessage() ? [entry(directMessage(), avatar(bot().id), app.name)] : [installNote(app)]),
    personPicker(),
  );
  byId("sidebar").replaceChildren(rail(), side);
}

// One tile for each workspace, as for somebody who is in several, and the two places people go to most.
function rail() {
  const tiles = store.state.workspaces.map((one) =>
    el("button", { type: "button", class: `tile${one.id === store.team ? " current" : ""}`, title: one.name, "aria-label": one.name, onclick: () => go({ team: one.id, channel: "", thread: "" }) }, one.name[0]),
  );
  const direct = directMessage();
  const inDirect = ["im", "mpim"].includes(workspace().channels.find((one) => one.id === store.channel)?.kind);
  return el(
    "div",
    { class: "rail" },
    ...tiles,
    place("Home", "home", !inDirect, () => go({ channel: channels()[0].id, thread: "" })),
    direct && workspace().installed ? place("DMs", "direct", inDirect, () => go({ channel: direct.id, thread: "", tab: "messages" })) : null,
  );
}

const place = (name, drawing, current, onclick) => el("button", { type: "button", class: `place${current ? " current" : ""}`, onclick }, icon(drawing), name);

const sign = (one) => el("span", { class: "sign", "aria-hidden": "true" }, one.kind === "group" ? icon("lock") : "#");

function section(name, entries, add = null) {
  if (!entries.length && !add) return null;
  const fold = () => (closed.has(name) ? closed.delete(name) : closed.add(name), drawSidebar());
  const isOpen = !closed.has(name);
  // What is unread or open stays in sight when the rest is folded away, as in Slack.
  const shown = isOpen ? entries : entries.filter((one) => one.querySelector?.(".current, .unread"));
  return el(
    "section",
    {},
    el("h2", { class: "side-title" }, el("button", { type: "button", "aria-expanded": String(isOpen), onclick: fold }, icon("down"), name), add || null),
    el("ul", { class: "side-list" }, ...shown),
  );
}

// A conversation of several people, with the app among them.
async function startGroup() {
  const chosen = await choosePeople("New group message", `With ${store.state.app.name} and`);
  if (!chosen.length) return;
  await arrive(() => call("POST", "groups", { body: { user: store.me, people: chosen } }));
}

async function createChannel() {
  const asked = await askForChannel();
  if (asked) await arrive(() => call("POST", "channels", { body: { user: store.me, ...asked } }));
}

// Make a conversation and go there.
async function arrive(make) {
  const opened = await trying(make);
  if (!opened) return;
  Object.assign(store, { state: (await trying(() => call("GET", "state"))) || store.state });
  go({ channel: opened.channel, thread: "", tab: "messages" });
}

function entry(one, mark, name) {
  const current = one.id === store.channel;
  const unread = store.unread.get(one.id);
  const button = el(
    "button",
    { class: `side-item${current ? " current" : ""}${unread ? " unread" : ""}`, type: "button", onclick: () => go({ channel: one.id, thread: "", tab: "messages" }) },
    mark,
    el("span", { class: "name" }, name),
    unread?.count ? el("span", { class: "pill", title: "Messages for you" }, String(unread.count)) : null,
  );
  if (current) button.setAttribute("aria-current", "page");
  return el("li", {}, button);
}

function picker(label, options, chosen, onchange) {
  const select = el("select", { "aria-label": label, onchange: () => onchange(select.value) });
  select.append(...options.map((one) => el("option", { value: one.id, selected: one.id === chosen }, one.name || one.real_name)));
  return select;
}

function workspacePicker() {
  return picker("Workspace", store.state.workspaces, store.team, (team) => go({ team, channel: "", thread: "" }));
}

function personPicker() {
  const one = me();
  const city = one.timezone.split("/").pop().replace("_", " ");
  return el(
    "div",
    { class: "person" },
    el("span", { class: "present" }, avatar(one.id)),
    el(
      "div",
      {},
      el("label", {}, "You are"),
      picker("You are", people(), store.me, (id) => go({ me: id, channel: channelForOther(id), thread: "", agent: false, unread: new Map() })),
      el("small", { title: one.timezone }, `${one.title}${one.is_admin ? ", admin" : ""} · ${city} time`),
    ),
  );
}

// A direct message belongs to one person: whoever comes next gets their own with the app.
function channelForOther(id) {
  const here = workspace().channels.find((one) => one.id === store.channel);
  if (here?.kind !== "im") return store.channel;
  return workspace().channels.find((one) => one.kind === "im" && one.user === id)?.id || "";
}

function installNote(app) {
  const [url] = store.state.request_url;
  const target = url ? `${new URL(url).origin}/slack/install` : "";
  return el(
    "li",
    { class: "side-note" },
    `${app.name} is not installed in this workspace. `,
    target ? el("a", { href: target }, `Install ${app.name}`) : "Start the app to install it.",
  );
}
