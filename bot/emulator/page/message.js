// One message, as an element.
import { call } from "./api.js";
import { avatar, el, trying } from "./dom.js";
import { statusOf, store, user, working } from "./store.js";
import { clock, when, whole } from "./time.js";

const QUICK = [["+1", "👍"], ["eyes", "👀"], ["white_check_mark", "✅"], ["heart", "❤️"]];

// `follows`: the author is that of the message just above. `inThread`: the thread pane shows it.
export function messageElement(message, { follows, inThread, openThread }) {
  const body = el("div", { class: `body${message.streaming === "streaming" ? " streaming" : ""}` });
  // The server drew this and escaped every word in it (bot/emulator/rendering).
  body.innerHTML = message.html;
  const mentionsMe = [...body.querySelectorAll(".mention[data-user]")].filter((one) => one.dataset.user === store.me);
  mentionsMe.forEach((one) => one.classList.add("me"));
  const kinds = [follows && "follows", message.ephemeral && "ephemeral", mentionsMe.length && "mine-mentioned"];
  const content = el(
    "div",
    { class: "content" },
    message.ephemeral ? el("div", { class: "note" }, "Only visible to you") : null,
    follows ? null : byline(message),
    body,
    message.edited ? el("span", { class: "note" }, "(edited)") : null,
    deliveryNote(message),
    endNote(message),
    reactions(message),
    inThread ? null : threadFoot(message, openThread),
  );
  const left = follows
    ? el("span", { class: "gutter-time" }, clock(message.ts))
    : Object.assign(avatar(message.user), { className: "avatar" });
  const shown = el("article", { class: `message ${kinds.filter(Boolean).join(" ")}`, "data-ts": message.ts, "aria-label": `${message.user_name}, ${when(message.ts)}` }, left, content);
  shown.append(toolbar(message, shown, inThread ? null : openThread));
  return shown;
}

function byline(message) {
  return el(
    "div",
    { class: "by" },
    el("b", {}, message.user_name),
    message.is_bot ? el("span", { class: "badge" }, "APP") : null,
    el("time", { title: whole(message.ts) }, clock(message.ts)),
  );
}

function deliveryNote(message) {
  const app = store.state.app.name;
  if (message.delivery === "retrying") return el("div", { class: "note warn" }, `Not delivered to ${app}, Slack will retry.`);
  if (message.delivery === "failed") return el("div", { class: "note bad" }, `Not delivered: ${app} did not take this message after four attempts.`);
  if (message.delivery === "pending" && !store.state.request_url.length) return el("div", { class: "note warn" }, `Waiting for ${app} to start.`);
  return null;
}

function endNote(message) {
  if (message.streaming === "stopped_by_user") return el("div", { class: "note" }, "Stopped");
  if (message.streaming === "expired") return el("div", { class: "note warn" }, "This answer was cut off: its stream ended after five minutes.");
  return null;
}

function react(message, name) {
  return trying(() => call("POST", "reactions", { body: { channel: message.channel, ts: message.ts, user: store.me, name } }));
}

function reactions(message) {
  if (!message.reactions.length) return null;
  const pills = message.reactions.map((one) => {
    const mine = one.users.includes(store.me);
    const names = one.users.map((id) => user(id)?.real_name || id).join(", ");
    return el("button", { class: mine ? "mine" : "", type: "button", title: `${names} reacted with :${one.name}:`, "aria-pressed": String(mine), onclick: () => react(message, one.name) }, `${one.emoji} ${one.count}`);
  });
  return el("div", { class: "reactions" }, ...pills);
}

function threadFoot(message, openThread) {
  const busy = working(statusOf(message.ts, message.channel));
  if (!message.reply_count && !busy) return null;
  const replies = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  return el(
    "button",
    { class: "thread-foot", type: "button", onclick: () => openThread(message.thread_ts || message.ts) },
    ...message.reply_users.slice(0, 4).map((id) => avatar(id)),
    message.reply_count ? el("b", {}, replies) : null,
    busy
      ? el("span", { class: "working" }, `${store.state.app.name} ${busy}`)
      : el("span", { class: "when" }, `Last reply ${when(message.latest_reply)}`),
  );
}

function toolbar(message, shown, openThread) {
  const own = message.user === store.me;
  const tools = el("div", { class: "toolbar" });
  const add = (label, text, onclick) => tools.append(el("button", { type: "button", title: label, "aria-label": label, onclick }, text));
  if (!message.ephemeral) QUICK.forEach(([name, emoji]) => add(`React with :${name}:`, emoji, () => react(message, name)));
  if (openThread && !message.ephemeral) add("Reply in thread", "Reply", () => openThread(message.thread_ts || message.ts));
  if (own && !message.ephemeral) add("Edit message", "Edit", () => edit(message, shown));
  if (own || message.ephemeral) add(message.ephemeral ? "Dismiss message" : "Delete message", message.ephemeral ? "Dismiss" : "Delete", () => remove(message));
  return tools;
}

function remove(message) {
  return trying(() => call("DELETE", "messages", { body: { channel: message.channel, ts: message.ts, user: store.me } }));
}

function edit(message, shown) {
  const body = shown.querySelector(".body");
  const text = el("textarea", { value: body.innerText.trim(), rows: 3, "aria-label": "Edit message" });
  const save = async () => {
    const done = await trying(() => call("PATCH", "messages", { body: { channel: message.channel, ts: message.ts, user: store.me, text: text.value } }));
    if (done) editor.replaceWith(body);
  };
  const editor = el(
    "div",
    { class: "editor" },
    text,
    el("div", { class: "choice" }, el("button", { type: "button", onclick: () => editor.replaceWith(body) }, "Cancel"), el("button", { type: "button", class: "primary", onclick: save }, "Save")),
  );
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      // Else the thread pane would take it as its own.
      event.preventDefault();
      editor.replaceWith(body);
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      save();
    }
  });
  body.replaceWith(editor);
  text.focus();
}
