// One message, as an element.
import { avatar, el, tool } from "./dom.js";
import { chooseEmoji } from "./menu.js";
import { statusOf, store, user, working } from "./store.js";
import { clock, when, whole } from "./time.js";
import { react, toolbar } from "./toolbar.js";

// `follows`: the author is that of the message just above. `inThread`: the thread pane shows it.
export function messageElement(message, { follows, inThread, openThread }) {
  const body = el("div", { class: `body${message.streaming === "streaming" ? " streaming" : ""}` });
  // The server drew this and escaped every word in it (bot/emulator/rendering).
  body.innerHTML = message.html;
  const mentionsMe = [...body.querySelectorAll(".mention[data-user]")].filter((one) => one.dataset.user === store.me);
  mentionsMe.forEach((one) => one.classList.add("me"));
  const kinds = [follows && "follows", message.ephemeral && "ephemeral"];
  const content = el(
    "div",
    { class: "content" },
    message.ephemeral ? el("div", { class: "note only-you" }, "Only visible to you") : null,
    follows ? null : byline(message),
    body,
    // Slack says it of text, not of an app's blocks: a card that changes is not called edited.
    message.edited && !(message.is_bot && message.blocks.length) ? el("span", { class: "note edited" }, "(edited)") : null,
    deliveryNote(message),
    endNote(message),
    reactions(message),
    inThread ? null : threadFoot(message, openThread),
  );
  const left = follows ? el("time", { class: "gutter-time" }, clock(message.ts).replace(/ .M$/, "")) : avatar(message.user);
  const shown = el("article", { class: `message ${kinds.filter(Boolean).join(" ")}`, "data-ts": message.ts, "data-channel": message.channel, "aria-label": `${message.user_name}, ${when(message.ts)}` }, left, content);
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

function reactions(message) {
  if (!message.reactions.length) return null;
  const pills = message.reactions.map((one) => {
    const mine = one.users.includes(store.me);
    const names = one.users.map((id) => user(id)?.real_name || id).join(", ");
    return el("button", { class: mine ? "mine" : "", type: "button", title: `${names} reacted with :${one.name}:`, "aria-pressed": String(mine), onclick: () => react(message, one.name) }, el("span", {}, one.emoji), el("b", {}, one.count));
  });
  const more = tool("Add reaction", "emoji", () => chooseEmoji(more, (name) => react(message, name)));
  return el("div", { class: "reactions" }, ...pills, more);
}

function threadFoot(message, openThread) {
  const busy = working(statusOf(message.ts, message.channel));
  if (!message.reply_count && !busy) return null;
  const replies = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  return el(
    "button",
    { class: "thread-foot", type: "button", onclick: () => openThread(message.thread_ts || message.ts) },
    ...message.reply_users.slice(0, 5).map((id) => avatar(id)),
    message.reply_count ? el("b", {}, replies) : null,
    busy
      ? el("span", { class: "working" }, `${store.state.app.name} ${busy}`)
      : el("span", { class: "when" }, el("span", {}, `Last reply ${when(message.latest_reply)}`), el("span", {}, "View thread")),
  );
}

// The reader's newest message in a list, to be changed with the Up key.
export const lastOwn = (messages) => messages.filter((one) => one.user === store.me && !one.ephemeral && !one.streaming).at(-1);
