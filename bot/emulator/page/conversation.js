// The middle of the page: a channel, or the conversation with the app with its Home and About tabs.
import { about } from "./about.js";
import { call } from "./api.js";
import { Composer } from "./composer.js";
import { tell } from "./dialogs.js";
import { avatar, byId, el, trying } from "./dom.js";
import { icon } from "./icons.js";
import { Log } from "./log.js";
import { memberList, stack } from "./people.js";
import { promptButtons } from "./prompts.js";
import { bot, channel, go, groups, me, others, store, title, workspace } from "./store.js";

const openThread = (ts) => go({ thread: ts });

export class Conversation {
  constructor() {
    this.log = new Log({ inThread: false, openThread });
    this.composer = new Composer({ threadTs: () => "", onSent: (sent) => this.sent(sent), onUp: () => this.log.editLast() });
    this.head = el("header", { class: "head" });
    this.banner = el("div", { class: "banner", role: "alert", hidden: true });
    this.shown = "";
    this.answered = new Set();
    byId("channel").append(this.head, this.banner, this.log.element, this.log.below, this.composer.element);
  }

  async draw() {
    this.drawHead();
    this.composer.moveTo(store.channel);
    this.composer.element.hidden = store.tab !== "messages" || channel().is_archived;
    if (store.tab === "home") await this.drawHome();
    else if (store.tab === "about") this.drawOther(about());
    else await this.drawMessages();
  }

  async drawMessages() {
    const place = `${store.me} ${store.channel}`;
    const answer = await trying(() => call("GET", "messages", { query: { channel: store.channel, as: store.me, html: "1" } }));
    // The reader may have gone elsewhere while this was fetched.
    if (!answer || place !== `${store.me} ${store.channel}` || store.tab !== "messages") return;
    this.log.show(answer.messages, { intro: this.intro(), fresh: this.shown !== place });
    if (this.shown !== place) this.composer.focus();
    else this.openAnswered(answer.messages);
    this.answered = new Set(answer.messages.filter((one) => one.reply_count).map((one) => one.ts));
    this.shown = place;
  }

  // In the conversation with the app an answer stands in a thread: the reader's question opens when it comes.
  openAnswered(messages) {
    if (channel().kind !== "im" || store.thread) return;
    const answered = messages.filter((one) => one.user === store.me && one.reply_count && !this.answered.has(one.ts)).at(-1);
    if (answered) openThread(answered.ts);
  }

  async drawHome() {
    const answer = await trying(() => call("GET", "views", { query: { user: store.me } }));
    if (!answer || store.tab !== "home") return;
    const body = el("div", { class: "body home" });
    // Drawn and escaped by the server, as messages are.
    body.innerHTML = answer.home?.html || "";
    this.drawOther(answer.home ? body : el("p", { class: "weak" }, `${store.state.app.name} has not made its Home tab yet.`));
  }

  drawOther(content) {
    this.shown = "";
    this.log.below.hidden = true;
    this.log.drawn.clear();
    this.log.element.replaceChildren(el("div", { class: "tab-page" }, content));
  }

  drawHead() {
    const one = channel();
    const parts = one.kind === "im" ? [avatar(bot().id), el("h1", {}, title(one)), this.tabs(), el("span", { class: "spacer" })] : this.channelHead(one);
    this.head.replaceChildren(...parts.filter(Boolean));
    document.title = `${title(one)} | Local Slack`;
  }

  channelHead(one) {
    const several = one.kind === "mpim";
    const name = el("h1", {}, several ? stack(others(one).map((each) => each.id)) : one.kind === "group" ? icon("lock") : "# ", several ? title(one) : one.name);
    const members = el("button", { class: "members-button", type: "button", title: "View all members", "aria-label": `${one.members.length} members`, onclick: () => tell(several ? "Members" : `Members of #${one.name}`, memberList(one.members)) }, stack(one.members), el("b", {}, String(one.members.length)));
    return [name, el("span", { class: "topic" }, one.topic), members, workspace().installed ? this.agentButton() : null];
  }

  // The app's pane beside the channel, where it knows which channel one is looking at.
  agentButton() {
    const app = store.state.app.name;
    const open = () => go(store.agent ? { agent: false } : { agent: true, thread: "", talk: "" });
    return el("button", { class: `agent-button${store.agent ? " held" : ""}`, type: "button", title: `Open ${app} beside this channel`, "aria-label": `Ask ${app}`, "aria-pressed": String(store.agent), onclick: open }, avatar(bot().id));
  }

  tabs() {
    const tab = (id, text) => el("button", { type: "button", role: "tab", "aria-selected": String(store.tab === id), onclick: () => this.openTab(id) }, text);
    return el("div", { class: "tabs", role: "tablist" }, tab("home", "Home"), tab("messages", "Messages"), tab("about", "About"));
  }

  openTab(id) {
    go({ tab: id, thread: "" });
    if (id !== "about") trying(() => call("POST", "home", { body: { user: store.me, tab: id } }));
  }

  intro() {
    const one = channel();
    const app = store.state.app;
    if (one.kind === "im") {
      const hello = `${app.description} Write below, ${me().real_name.split(" ")[0]}; every message starts a thread.`;
      return el("div", { class: "empty" }, avatar(bot().id), el("h2", {}, app.name), el("p", {}, hello), promptButtons("", one.id, (prompt) => this.composer.say(prompt)));
    }
    if (groups().includes(one)) {
      const names = others(one).flatMap((each, index) => [index ? ", " : "", el("span", { class: "mention" }, `@${each.real_name}`)]);
      return el("div", { class: "empty" }, stack(others(one).map((each) => each.id), 9), el("h2", {}, title(one)), el("p", {}, "This is the very beginning of your direct message history with ", ...names.filter(Boolean), `. Mention @${app.name} to ask it something.`));
    }
    const invite = !workspace().installed ? "" : one.has_app ? `Mention @${app.name} to ask about campaigns.` : `${app.name} is not here yet. Type /invite @${app.name} to add it.`;
    return el("div", { class: "empty" }, el("h2", {}, title(one)), el("p", {}, [one.topic && `${one.topic}.`, invite].filter(Boolean).join(" ")));
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
