// The app's pane beside a channel: its conversation with the reader, and what it suggests to ask.
import { call } from "./api.js";
import { Composer } from "./composer.js";
import { avatar, byId, el, tool, trying } from "./dom.js";
import { Log } from "./log.js";
import { promptButtons } from "./prompts.js";
import { statusLine } from "./status.js";
import { bot, directMessage, go, keepStatus, me, store } from "./store.js";
import { resizer } from "./thread.js";
import { when } from "./time.js";

const RECENT = 4;

export class AgentPane {
  constructor() {
    this.pane = byId("agent");
    const channelId = () => directMessage()?.id || "";
    this.log = new Log({ inThread: true, openThread: null });
    this.composer = new Composer({ threadTs: () => store.talk, channelId, onSent: (sent) => sent.ts && !store.talk && go({ talk: sent.ts }), onUp: () => this.log.editLast() });
    this.head = el("header", { class: "head" });
    this.status = el("div", { class: "status" });
    this.shown = "";
    this.told = "";
    this.pane.append(resizer(this.pane), this.head, el("span"), this.log.element, this.status, this.log.below, this.composer.element);
  }

  async draw() {
    this.pane.hidden = !store.agent;
    if (!store.agent) {
      this.told = this.shown = "";
      return;
    }
    this.tellWhere();
    const direct = directMessage();
    const place = `${store.me} ${direct.id} ${store.talk}`;
    this.head.replaceChildren(avatar(bot().id), el("h1", {}, bot().real_name), el("span", { class: "spacer" }), tool("New chat", "edit", () => go({ talk: "" })), tool("Close", "close", () => go({ agent: false })));
    this.composer.moveTo(`agent ${place}`);
    const query = { channel: direct.id, as: store.me, html: "1", ...(store.talk ? { thread_ts: store.talk } : {}) };
    const answer = await trying(() => call("GET", "messages", { query }));
    if (!answer || place !== `${store.me} ${directMessage()?.id} ${store.talk}`) return;
    const fresh = this.shown !== place;
    if (store.talk) this.log.show(answer.messages, { fresh });
    else this.log.show([], { intro: this.intro(direct, answer.messages), fresh: true });
    if (fresh) this.composer.focus();
    this.shown = place;
    statusLine(this.status, store.talk, direct.id);
  }

  intro(direct, messages) {
    const hello = `Hi ${me().real_name.split(" ")[0]}, how can I help?`;
    const recent = messages.filter((one) => one.user === store.me && one.reply_count).slice(-RECENT).reverse();
    const history = recent.map((one) => el("button", { type: "button", onclick: () => go({ talk: one.ts }) }, el("span", {}, one.text.slice(0, 80)), el("small", {}, when(one.ts))));
    return el(
      "div",
      { class: "empty" },
      avatar(bot().id),
      el("h2", {}, hello),
      promptButtons("", direct.id, (prompt) => this.composer.say(prompt)),
      history.length ? el("div", { class: "history" }, el("h3", {}, "Earlier"), ...history) : null,
    );
  }

  // The app is told that it was opened, and which channel the reader sees beside it, each time that changes.
  tellWhere() {
    const where = `${store.me} ${store.channel}`;
    if (where === this.told) return;
    const opened = !this.told;
    this.told = where;
    const body = { user: store.me, beside: store.channel };
    trying(() => call("POST", opened ? "home" : "context", { body }));
    if (opened) trying(async () => (await call("GET", "status", { query: { channel: directMessage().id } })).threads.forEach(keepStatus));
  }
}
