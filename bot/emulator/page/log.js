// A list of messages that changes in place: only what is different is drawn again.
import { el } from "./dom.js";
import { messageElement } from "./message.js";
import { statusOf, store, working } from "./store.js";
import { day } from "./time.js";

const GROUP_S = 300;

export class Log {
  constructor({ inThread, openThread }) {
    this.element = el("div", { class: "log", role: "log", tabIndex: 0, "aria-label": inThread ? "Replies" : "Messages" });
    this.options = { inThread, openThread };
    this.drawn = new Map();
  }

  // `intro` stands above the messages; `fresh` forgets what was drawn and goes to the end.
  show(messages, { intro = null, fresh = false } = {}) {
    const box = this.element;
    const atEnd = fresh || box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    if (fresh) this.drawn.clear();
    const kept = new Map();
    const rows = intro ? [intro] : [];
    let before = null;
    for (const message of messages) {
      if (!before || day(before.ts) !== day(message.ts)) rows.push(el("div", { class: "day" }, day(message.ts)));
      const entry = this.entry(message, follows(before, message));
      kept.set(message.ts, entry);
      rows.push(entry.element);
      before = message;
    }
    this.drawn = kept;
    if (!sameRows(box, rows)) box.replaceChildren(...rows);
    if (atEnd) box.scrollTop = box.scrollHeight;
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
  return Number(message.ts) - Number(before.ts) < GROUP_S && day(before.ts) === day(message.ts) && !before.reply_count;
}

const sameRows = (box, rows) => box.children.length === rows.length && rows.every((row, index) => box.children[index] === row);
