// The pane at the right: one thread.
import { call } from "./api.js";
import { Composer } from "./composer.js";
import { byId, el, trying } from "./dom.js";
import { Log } from "./log.js";
import { statusLine } from "./status.js";
import { channel, go, store, title } from "./store.js";

export class Thread {
  constructor() {
    this.pane = byId("thread");
    this.log = new Log({ inThread: true, openThread: null });
    this.composer = new Composer({ threadTs: () => store.thread });
    this.where = el("span", { class: "topic" });
    this.status = el("div", { class: "status" });
    this.shown = "";
    const close = el("button", { class: "icon-button", type: "button", title: "Close (Esc)", "aria-label": "Close thread", onclick: () => go({ thread: "" }) }, "✕");
    const head = el("header", { class: "head" }, el("h1", {}, "Thread"), this.where, close);
    this.pane.append(head, el("span"), this.log.element, this.status, this.composer.element);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && store.thread && !byId("dialog").open && !event.defaultPrevented) go({ thread: "" });
    });
  }

  async draw() {
    this.pane.hidden = !store.thread;
    if (!store.thread) {
      this.shown = "";
      return;
    }
    const place = `${store.me} ${store.channel} ${store.thread}`;
    this.where.textContent = title(channel());
    this.composer.moveTo(place);
    const query = { channel: store.channel, thread_ts: store.thread, as: store.me, html: "1" };
    const answer = await trying(() => call("GET", "messages", { query }));
    if (!answer || place !== `${store.me} ${store.channel} ${store.thread}`) return;
    this.log.show(answer.messages, { fresh: this.shown !== place });
    if (this.shown !== place) this.composer.focus();
    this.shown = place;
    statusLine(this.status, store.thread);
  }
}
