// The list above the message box: commands after a leading /, people after @.
import { avatar, el } from "./dom.js";
import { icon } from "./icons.js";
import { bot, channels, store, workspace } from "./store.js";

export class Suggestions {
  constructor(text, anchor, { commands, changed }) {
    this.text = text;
    this.commands = commands;
    this.changed = changed;
    this.items = [];
    this.index = 0;
    this.list = el("ul", { class: "suggestions", role: "listbox", hidden: true, "aria-label": "Suggestions" });
    anchor.append(this.list);
    text.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  get open() {
    return !this.list.hidden;
  }

  close() {
    this.list.hidden = true;
  }

  update() {
    this.items = this.find();
    this.index = 0;
    this.draw();
  }

  find() {
    if (document.activeElement !== this.text) return [];
    const before = this.text.value.slice(0, this.text.selectionStart);
    const command = before.match(/^\/[\w-]*$/);
    if (command) return this.commandItems(command[0]);
    const [, mark, typed] = before.match(/(?:^|\s)([@#:])([\w+ -]{0,24})$/) || [];
    return mark ? ITEMS[mark](typed, before.length - typed.length - 1) : [];
  }

  commandItems(typed) {
    const own = workspace().installed ? this.commands().map((one) => ({ ...one, by: store.state.app.name })) : [];
    const all = this.commands().length ? [...own, { command: "/invite", usage_hint: "@someone", description: "Add somebody to this channel", by: "Slack" }] : [];
    return all
      .filter((one) => one.command.startsWith(typed))
      .map((one) => ({ picture: one.by === "Slack" ? icon("command") : avatar(bot().id), strong: one.command, hint: one.usage_hint, weak: one.description, group: one.by, from: 0, text: `${one.command} ` }));
  }

  draw() {
    this.list.hidden = this.items.length === 0;
    const rows = this.items.flatMap((item, index) => {
      const head = item.group && item.group !== this.items[index - 1]?.group ? [el("li", { class: "group", role: "presentation" }, item.group)] : [];
      return [...head, this.row(item, index)];
    });
    this.list.replaceChildren(...rows);
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  row(item, index) {
    const words = el("span", { class: "words" }, el("b", {}, item.strong), item.hint ? el("span", { class: "usage" }, ` ${item.hint}`) : null, el("span", { class: "weak" }, item.weak));
    return el("li", { class: item.hint ? "command" : "", role: "option", "aria-selected": String(index === this.index), onmousedown: (event) => event.preventDefault(), onclick: () => this.take(item) }, item.picture, words);
  }

  take(item) {
    const end = this.text.selectionStart;
    this.text.setRangeText(item.text, item.from, end, "end");
    this.close();
    this.items = [];
    this.changed();
    this.close();
    this.text.focus();
  }

  // True when the key was for the list.
  key(event) {
    if (!this.open) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.index = (this.index + step + this.items.length) % this.items.length;
      this.draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && this.items[this.index].text.trim() !== this.text.value.trim())) {
      this.take(this.items[this.index]);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}

const ITEMS = { "@": personItems, "#": channelItems, ":": emojiItems };

function personItems(typed, from) {
  const wanted = typed.toLowerCase();
  return workspace()
    .users.filter((one) => one.id !== store.me && (!one.is_bot || workspace().installed) && (one.real_name.toLowerCase().startsWith(wanted) || one.handle.startsWith(wanted)))
    .map((one) => ({ picture: avatar(one.id), strong: one.real_name, weak: one.is_bot ? "App" : one.title, from, text: `@${one.real_name} ` }));
}

function channelItems(typed, from) {
  return channels()
    .filter((one) => one.name.startsWith(typed.toLowerCase()))
    .map((one) => ({ picture: el("span", { class: "sign" }, "#"), strong: one.name, weak: one.topic, from, text: `#${one.name} ` }));
}

// From two letters on, so that a colon in a sentence opens nothing.
function emojiItems(typed, from) {
  if (typed.length < 2) return [];
  return Object.entries(store.state.emoji)
    .filter(([name]) => name.startsWith(typed))
    .slice(0, 8)
    .map(([name, drawn]) => ({ picture: el("span", { class: "sign" }, drawn), strong: `:${name}:`, weak: "", from, text: `:${name}: ` }));
}
