// What can be done with a message: the bar that appears at its corner, and changing its text in place.
import { call } from "./api.js";
import { confirmed } from "./dialogs.js";
import { el, toast, tool, trying } from "./dom.js";
import { chooseEmoji, menu } from "./menu.js";
import { store } from "./store.js";

const QUICK = ["white_check_mark", "eyes", "raised_hands"];

export function react(message, name) {
  return trying(() => call("POST", "reactions", { body: { channel: message.channel, ts: message.ts, user: store.me, name } }));
}

export function toolbar(message, shown, openThread) {
  const bar = el("div", { class: "toolbar", role: "group", "aria-label": "Message actions" });
  if (message.ephemeral) {
    bar.append(tool("Dismiss message", "close", () => remove(message)));
    return bar;
  }
  const pick = tool("Add reaction", "emoji", () => chooseEmoji(pick, (name) => react(message, name)));
  const more = tool("More actions", "more", () => menu(more, actions(message, shown)));
  bar.append(
    ...QUICK.map((name) => el("button", { class: "icon-button quick", type: "button", title: `React with :${name}:`, "aria-label": `React with :${name}:`, onclick: () => react(message, name) }, store.state.emoji[name])),
    pick,
    ...(openThread ? [tool("Reply in thread", "thread", () => openThread(message.thread_ts || message.ts))] : []),
    more,
  );
  return bar;
}

function actions(message, shown) {
  const own = message.user === store.me;
  return [
    { label: "Copy link", icon: "copy", act: () => copyLink(message) },
    ...(own ? [null, { label: "Edit message", icon: "edit", act: () => edit(message, shown) }, { label: "Delete message…", icon: "trash", danger: true, act: () => askToRemove(message) }] : []),
  ];
}

async function copyLink(message) {
  const thread = message.thread_ts ? `&thread_ts=${message.thread_ts}` : "";
  const copied = await trying(async () => (await navigator.clipboard.writeText(`${location.origin}/#channel=${message.channel}&ts=${message.ts}${thread}`), true));
  if (copied) toast("Link copied", { good: true });
}

async function askToRemove(message) {
  const sure = await confirmed({ title: "Delete message", text: "Are you sure you want to delete this message? This cannot be undone.", confirm: "Delete", danger: true });
  if (sure) await remove(message);
}

function remove(message) {
  return trying(() => call("DELETE", "messages", { body: { channel: message.channel, ts: message.ts, user: store.me } }));
}

export function edit(message, shown) {
  const body = shown.querySelector(".body");
  if (!body || shown.querySelector(".editor")) return;
  const text = el("textarea", { value: message.typed, rows: 2, "aria-label": "Edit message" });
  const leave = () => editor.replaceWith(body);
  const save = async () => {
    const done = await trying(() => call("PATCH", "messages", { body: { channel: message.channel, ts: message.ts, user: store.me, text: text.value } }));
    if (done) leave();
  };
  const editor = el(
    "div",
    { class: "editor" },
    text,
    el("div", { class: "choice" }, el("button", { type: "button", onclick: leave }, "Cancel"), el("button", { type: "button", class: "primary", onclick: save }, "Save")),
  );
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      // Else the thread pane would take it as its own.
      event.preventDefault();
      leave();
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      save();
    }
  });
  body.replaceWith(editor);
  text.focus();
}
