// A list of messages that changes in place: only what is different is drawn again.
import { el } from "./dom.js";
import { lastOwn, messageElement } from "./message.js";
import { statusOf, store, working } from "./store.js";
import { day } from "./time.js";
import { edit } from "./toolbar.js";

const GROUP_S = 300;

export class Log {
  // `element` is the list; `below` a button that appears when something new stands further down than the reader sees.
  constructor({ inThread, openThread }) {
    this.element = el("div", { class: "log", role: "log", tabIndex: 0, "aria-label": inThread ? "Replies" : "Messages" });
    this.below = el("button", { class: "below", type: "button", hidden: true, onclick: () => this.toEnd() }, "New message below ↓");
    this.element.addEventListener("scroll", () => this.atEnd() && (this.below.hidden = true));
    this.options = { inThread, openThread };
    this.drawn = new Map();
    this.messages = [];
    this.lines = new Map();
  }

  atEnd() {
    return this.element.scrollHeight - this.element.scrollTop - this.element.clientHeight < 80;
  }

  toEnd() {
    this.element.scrollTop = this.element.scrollHeight;
    this.below.hidden = true;
  }

  editLast() {
    const message = lastOwn(this.messages);
    const entry = message && this.drawn.get(message.ts);
    if (!entry) return false;
    edit(message, entry.element);
    entry.element.scrollIntoView({ block: "nearest" });
    return true;
  }

  // `intro` stands above the messages; `fresh` forgets what was drawn and goes to the end.
  show(messages, { intro = null, fresh = false } = {}) {
    const box = this.element;
    const follow = fresh || this.atEnd() || messages.some((one) => this.mustSee(one));
    const isNew = !fresh && messages.some((one) => !this.drawn.has(one.ts));
    if (fresh) this.drawn.clear();
    this.messages = messages;
    const kept = new Map();
    const rows = intro ? [intro] : [];
    let before = null;
    const { inThread } = this.options;
    for (const message of messages) {
      const first = !inThread && message.ts === store.newFrom;
      if (!inThread && (!before || day(before.ts) !== day(message.ts))) rows.push(this.line("day", day(message.ts)));
      if (inThread && before && before === messages[0]) rows.push(this.line("replies", messages.length === 2 ? "1 reply" : `${messages.length - 1} replies`));
      if (first) rows.push(this.line("new", "New"));
      const entry = this.entry(message, !first && !(inThread && before === messages[0]) && follows(before, message));
      kept.set(message.ts, entry);
      rows.push(entry.element);
      before = message;
    }
    this.drawn = kept;
    if (!sameRows(box, rows)) box.replaceChildren(...rows);
    if (follow) this.toEnd();
    else if (isNew) this.below.hidden = false;
  }

  // New, and either the reader's own or an answer to what only they did: they wait for it, wherever they have scrolled.
  mustSee(message) {
    return !this.drawn.has(message.ts) && (message.ephemeral || message.user === store.me);
  }

  // A line across the list, the same element as long as it says the same.
  line(kind, text) {
    const key = `${kind} ${text}`;
    if (!this.lines.has(key)) this.lines.set(key, el("div", { class: `line ${kind}` }, el("span", {}, text)));
    return this.lines.get(key);
  }

  entry(message, followsBefore) {
    const busy = working(statusOf(message.ts, message.channel));
    const key = JSON.stringify([message, followsBefore, busy, store.me, store.state.request_url.length]);
    const old = this.drawn.get(message.ts);
    // A message under edit is left alone until the editor closes.
    if (old && (old.key === key || old.element.querySelector(".editor"))) return old;
    return { key, element: messageElement(message, { ...this.options, follows: followsBefore }) };
  }
}

function follows(before, message) {
  if (!before || before.user !== message.user || before.ephemeral !== message.ephemeral) return false;
  return Number(message.ts) - Number(before.ts) < GROUP_S && day(before.ts) === day(message.ts) && !before.reply_count && !message.subtype?.startsWith("channel_");
}

const sameRows = (box, rows) => box.children.length === rows.length && rows.every((row, index) => box.children[index] === row);
