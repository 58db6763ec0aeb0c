// Workspace, channels, the app, and who is looking.
import { avatar, byId, el } from "./dom.js";
import { bot, channels, directMessage, go, me, people, store, workspace } from "./store.js";

export function drawSidebar() {
  const app = store.state.app;
  byId("sidebar").replaceChildren(
    el("div", { class: "workspace" }, workspacePicker()),
    el("h2", { class: "side-title" }, "Channels"),
    el("ul", { class: "side-list" }, ...channels().map((one) => entry(one, sign(one), one.name))),
    el("h2", { class: "side-title" }, "Apps"),
    workspace().installed && directMessage()
      ? el("ul", { class: "side-list" }, entry(directMessage(), avatar(bot().id), app.name))
      : installNote(app),
    personPicker(),
  );
}

const sign = (one) => el("span", { class: "sign", "aria-hidden": "true" }, one.kind === "group" ? el("span", { class: "lock" }) : "#");

function entry(one, mark, name) {
  const current = one.id === store.channel;
  const unread = store.unread.has(one.id);
  const button = el(
    "button",
    { class: `side-item${current ? " current" : ""}${unread ? " unread" : ""}`, type: "button", onclick: () => go({ channel: one.id, thread: "", tab: "messages" }) },
    mark,
    el("span", { class: "name" }, name),
    unread ? el("span", { class: "dot", title: "New messages" }) : null,
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
    avatar(one.id),
    el(
      "div",
      {},
      el("label", {}, "You are"),
      picker("You are", people(), store.me, (id) => go({ me: id, channel: channelForOther(id), thread: "" })),
      el("small", {}, `${one.title}${one.is_admin ? ", admin" : ""}`),
      el("small", { title: one.timezone }, `Times are shown in ${city}`),
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
  const place = url ? `${new URL(url).origin}/slack/install` : "";
  return el(
    "p",
    { class: "side-note" },
    `${app.name} is not installed in this workspace. `,
    place ? el("a", { href: place }, `Install ${app.name}`) : "Start the app to install it.",
  );
}
