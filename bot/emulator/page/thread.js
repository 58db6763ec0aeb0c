// The pane at the right: one thread.
import { call } from "./api.js";
import { Composer } from "./composer.js";
import { byId, el, tool, trying } from "./dom.js";
import { Log } from "./log.js";
import { statusLine } from "./status.js";
import { promptButtons } from "./prompts.js";
import { bot, channel, go, store, title } from "./store.js";

const WIDTH = "thread-width";
const STEP_PX = 40;

// The edge between the conversation and the thread, moved by dragging or with the arrow keys; the browser keeps where it was left.
export function resizer(pane) {
  const edge = el("div", { class: "resize", role: "separator", tabIndex: 0, "aria-orientation": "vertical", "aria-label": "Width of the thread" });
  const to = (px) => {
    document.body.style.setProperty("--thread-width", `${Math.round(px)}px`);
    localStorage.setItem(WIDTH, Math.round(px));
  };
  edge.addEventListener("pointerdown", (event) => edge.setPointerCapture(event.pointerId));
  edge.addEventListener("pointermove", (event) => edge.hasPointerCapture(event.pointerId) && to(innerWidth - event.clientX));
  edge.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: STEP_PX, ArrowRight: -STEP_PX }[event.key];
    if (step) to(pane.offsetWidth + step);
  });
  const kept = Number(localStorage.getItem(WIDTH));
  if (kept) to(kept);
  return edge;
}

export class Thread {
  constructor() {
    this.pane = byId("thread");
    this.log = new Log({ inThread: true, openThread: null });
    this.composer = new Composer({ threadTs: () => store.thread, onUp: () => this.log.editLast(), broadcasts: true });
    this.where = el("span", { class: "topic" });
    this.status = el("div", { class: "status" });
    this.shown = "";
    const close = tool("Close thread", "close", () => go({ thread: "" }));
    const head = el("header", { class: "head" }, el("h1", {}, "Thread"), this.where, close);
    this.pane.append(resizer(this.pane), head, el("span"), this.log.element, this.status, this.log.below, this.composer.element);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || byId("dialog").open || event.defaultPrevented) return;
      if (store.thread || store.agent) go({ thread: "", agent: false });
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
    this.suggest(answer.messages.at(-1));
  }

  // What the app offers to ask next stands above the box, until the reader has said something.
  suggest(last) {
    this.suggested?.remove();
    this.suggested = last?.user === bot()?.id ? promptButtons(store.thread, store.channel, (text) => this.composer.say(text)) : null;
    if (this.suggested) this.composer.element.prepend(this.suggested);
  }
}
