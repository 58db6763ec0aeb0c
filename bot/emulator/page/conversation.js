// The middle of the page: a channel, or the conversation with the app and its Home tab.
import { call } from "./api.js";
import { Composer } from "./composer.js";
import { avatar, byId, el, trying } from "./dom.js";
import { Log } from "./log.js";
import { statusLine } from "./status.js";
import { bot, channel, go, me, statusOf, store, title, workspace } from "./store.js";

const openThread = (ts) => go({ thread: ts });

export class Conversation {
  constructor() {
    this.log = new Log({ inThread: false, openThread });
    this.composer = new Composer({ threadTs: () => "", onSent: (sent) => this.sent(sent) });
    this.head = el("header", { class: "head" });
    this.banner = el("div", { class: "banner", role: "alert", hidden: true });
    this.status = el("div", { class: "status" });
    this.shown = "";
    this.answered = new Set();
    byId("channel").append(this.head, this.banner, this.log.element, this.status, this.log.below, this.composer.element);
  }

  async draw() {
    this.drawHead();
    this.composer.moveTo(store.channel);
    this.composer.element.hidden = store.tab === "home";
    await (store.tab === "home" ? this.drawHome() : this.drawMessages());
  }

  async drawMessages() {
    const place = `${store.me} ${store.channel}`;
    const answer = await trying(() => call("GET", "messages", { query: { channel: store.channel, as: store.me, html: "1" } }));
    // The reader may have gone elsewhere while this was fetched.
    if (!answer || place !== `${store.me} ${store.channel}` || store.tab === "home") return;
    this.log.show(answer.messages, { intro: this.intro(), fresh: this.shown !== place });
    if (this.shown !== place) this.composer.focus();
    else this.openAnswered(answer.messages);
    this.answered = new Set(answer.messages.filter((one) => one.reply_count).map((one) => one.ts));
    this.shown = place;
    statusLine(this.status, "");
  }

  // In the conversation with the app an answer stands in a thread: the reader's question opens when it comes.
  openAnswered(messages) {
    if (channel().kind !== "im" || store.thread) return;
    const answered = messages.filter((one) => one.user === store.me && one.reply_count && !this.answered.has(one.ts)).at(-1);
    if (answered) openThread(answered.ts);
  }

  async drawHome() {
    this.shown = "";
    this.log.below.hidden = true;
    const answer = await trying(() => call("GET", "views", { query: { user: store.me } }));
    if (!answer || store.tab !== "home") return;
    const body = el("div", { class: "body home" });
    // Drawn and escaped by the server, as messages are.
    body.innerHTML = answer.home?.html || "";
    const content = answer.home ? el("div", { class: "empty" }, body) : el("div", { class: "empty" }, el("p", {}, `${store.state.app.name} has not made its Home tab yet.`));
    this.log.drawn.clear();
    this.log.element.replaceChildren(content);
  }

  drawHead() {
    const one = channel();
    const direct = one.kind === "im";
    const name = el("h1", {}, title(one));
    const parts = direct
      ? [Object.assign(avatar(bot().id), { width: 28, height: 28 }), name, this.tabs(), el("span", { class: "spacer" })]
      : [name, el("span", { class: "topic" }, one.topic), el("span", { class: "count" }, `${one.members.length} members${one.has_app ? "" : `, without ${store.state.app.name}`}`)];
    this.head.replaceChildren(...parts);
    document.title = `${title(one)} | Local Slack`;
  }

  tabs() {
    const tab = (id, text) => el("button", { type: "button", role: "tab", "aria-selected": String(store.tab === id), onclick: () => this.openTab(id) }, text);
    return el("div", { class: "tabs", role: "tablist" }, tab("messages", "Messages"), tab("home", "Home"));
  }

  openTab(id) {
    go({ tab: id, thread: "" });
    trying(() => call("POST", "home", { body: { user: store.me, tab: id } }));
  }

  intro() {
    const one = channel();
    const app = store.state.app;
    if (one.kind !== "im") {
      const invite = !workspace().installed ? "" : one.has_app ? `Mention @${app.name} to ask about campaigns.` : `${app.name} is not here yet. Type /invite @${app.name} to add it.`;
      return el("div", { class: "empty" }, el("h2", {}, title(one)), el("p", {}, `${one.topic}. ${invite}`));
    }
    const own = statusOf("")?.prompts || [];
    const prompts = own.length ? own : app.suggested_prompts;
    const buttons = prompts.map((prompt) => el("button", { type: "button", onclick: () => this.composer.fill(prompt.message) }, prompt.title || prompt.message));
    const hello = `${app.description} Write below, ${me().real_name.split(" ")[0]}; every message starts a thread.`;
    return el("div", { class: "empty" }, avatar(bot().id), el("h2", {}, app.name), el("p", {}, hello), el("div", { class: "prompts" }, ...buttons));
  }

  // A message to the app is a conversation of its own: its thread opens beside it.
  sent(sent) {
    if (channel().kind === "im" && sent.ts && !("response" in sent)) openThread(sent.ts);
  }

  warn(text) {
    this.banner.hidden = !text;
    this.banner.textContent = text;
  }
}
