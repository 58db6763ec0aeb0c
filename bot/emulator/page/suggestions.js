// The list above the message box: commands after a leading /, people after @.
import { el } from "./dom.js";
import { store, workspace } from "./store.js";

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
    const mention = before.match(/(?:^|\s)@([\w ]{0,24})$/);
    return mention ? personItems(mention[1], before.length - mention[1].length - 1) : [];
  }

  commandItems(typed) {
    const own = this.commands().map((one) => ({ ...one, by: store.state.app.name }));
    const all = own.length ? [...own, { command: "/invite", usage_hint: "@name", description: "Add somebody to this channel", by: "Slack" }] : [];
    return all
      .filter((one) => one.command.startsWith(typed))
      .map((one) => ({ strong: one.command, weak: `${one.usage_hint} · ${one.description} (${one.by})`, from: 0, text: `${one.command} ` }));
  }

  draw() {
    this.list.hidden = this.items.length === 0;
    const rows = this.items.map((item, index) => {
      const row = el("li", { role: "option", "aria-selected": String(index === this.index), onmousedown: (event) => event.preventDefault(), onclick: () => this.take(item) }, el("b", {}, item.strong), el("span", {}, item.weak));
      return row;
    });
    this.list.replaceChildren(...rows);
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

function personItems(typed, from) {
  const wanted = typed.toLowerCase();
  return workspace()
    .users.filter((one) => one.id !== store.me && (one.real_name.toLowerCase().startsWith(wanted) || one.handle.startsWith(wanted)))
    .map((one) => ({ strong: one.real_name, weak: one.is_bot ? "App" : one.title, from, text: `@${one.real_name} ` }));
}
