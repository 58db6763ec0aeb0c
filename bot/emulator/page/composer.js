// The message box: text, files, commands and mentions.
import { call } from "./api.js";
import { el, toast, tool, trying } from "./dom.js";
import { formatBar, formatKey } from "./format.js";
import { icon } from "./icons.js";
import { chooseEmoji } from "./menu.js";
import { channel, store, title, workspace } from "./store.js";
import { Suggestions } from "./suggestions.js";

const MAX_FILE_BYTES = 7_000_000;
const drafts = new Map();

export class Composer {
  // `threadTs` and `channelId` are functions: the box outlives the thread it stands under. `onUp` is asked to edit the last message.
  // `broadcasts`: a reply may be sent to the channel as well.
  constructor({ threadTs, channelId = () => store.channel, onSent, onUp, broadcasts = false }) {
    Object.assign(this, { threadTs, channelId, onSent, onUp });
    this.files = [];
    this.place = "";
    this.text = el("textarea", { rows: 1, oninput: () => this.changed(), onkeydown: (event) => this.key(event) });
    this.chips = el("div", { class: "chips" });
    this.hint = el("div", { class: "hint" });
    this.send = el("button", { class: "send", type: "submit", title: "Send now", "aria-label": "Send", disabled: true }, icon("send"));
    this.picker = el("input", { type: "file", multiple: true, hidden: true, onchange: () => this.attach(this.picker.files) });
    this.bar = formatBar(this.text);
    this.box = el("div", { class: "box" }, this.bar, this.text, this.chips, this.tools());
    this.also = broadcasts ? el("input", { type: "checkbox" }) : null;
    this.alsoName = el("span");
    if (this.also) this.box.insertBefore(el("label", { class: "also" }, this.also, this.alsoName), this.box.lastChild);
    this.element = el("form", { class: "composer", onsubmit: (event) => this.submit(event) }, this.box, this.hint);
    this.suggestions = new Suggestions(this.text, this.element, { commands: () => (this.threadTs() ? [] : store.state.commands), changed: () => this.changed() });
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.attach(event.dataTransfer.files);
    });
  }

  tools() {
    const emoji = tool("Emoji", "emoji", () => chooseEmoji(emoji, (name) => this.insert(`:${name}:`)));
    return el(
      "div",
      { class: "tools" },
      tool("Attach a file", "attach", () => this.picker.click(), { class: "icon-button round" }),
      this.picker,
      tool("Hide formatting", "format", () => (this.bar.hidden = !this.bar.hidden)),
      emoji,
      tool("Mention someone", "mention", () => this.insert("@")),
      (this.slash = tool("Run a command", "command", () => this.fill("/"))),
      el("span", { class: "spacer" }),
      this.send,
    );
  }

  // Send `text` at once, as a chosen suggestion is.
  say(text) {
    this.text.value = text;
    this.changed();
    this.element.requestSubmit();
  }

  insert(text) {
    this.text.focus();
    this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.changed();
  }

  // Each conversation keeps what was typed but not sent.
  moveTo(place) {
    if (place === this.place) return;
    drafts.set(this.place, this.text.value);
    this.place = place;
    this.text.value = drafts.get(place) || "";
    this.files = [];
    const where = this.threadTs() ? "Reply…" : `Message ${title(channel(this.channelId()))}`;
    this.slash.hidden = Boolean(this.threadTs());
    if (this.also) this.also.checked = false;
    this.alsoName.textContent = channel(this.channelId()).kind === "im" ? "Also send as direct message" : `Also send to ${title(channel(this.channelId()))}`;
    this.text.placeholder = where;
    this.text.setAttribute("aria-label", where);
    this.changed();
  }

  focus() {
    this.text.focus();
  }

  fill(text) {
    this.text.value = text;
    this.changed();
    this.focus();
  }

  changed() {
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight}px`;
    this.send.disabled = !this.text.value.trim() && !this.files.length;
    this.chips.replaceChildren(...this.files.map((file, index) => this.chip(file, index)));
    this.hint.replaceChildren(...(this.text.value.length > 2 ? [el("b", {}, "Shift + Return"), " to add a new line"] : []));
    this.suggestions.update();
  }

  chip(file, index) {
    const remove = () => {
      this.files.splice(index, 1);
      this.changed();
    };
    const kind = file.name.split(".").pop().slice(0, 4).toUpperCase();
    return el("span", { class: "chip" }, el("span", { class: "kind" }, kind), el("b", {}, file.name), tool(`Remove ${file.name}`, "close", remove));
  }

  key(event) {
    if (event.isComposing || this.suggestions.key(event) || formatKey(event, this.text)) return;
    if (event.key === "ArrowUp" && !this.text.value && this.onUp?.()) event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.element.requestSubmit();
    }
  }

  async attach(list) {
    for (const file of list) {
      if (file.size > MAX_FILE_BYTES) {
        toast(`${file.name} is larger than 7 MB.`);
        continue;
      }
      this.files.push({ name: file.name, content_base64: await base64(file) });
    }
    this.picker.value = "";
    this.changed();
  }

  async submit(event) {
    event.preventDefault();
    const text = this.text.value.trim();
    const files = this.files;
    if (!text && !files.length) return;
    this.text.value = "";
    this.files = [];
    this.changed();
    const sent = await trying(() => this.deliver(text, files));
    if (sent) {
      if (this.also) this.also.checked = false;
      this.onSent?.(sent);
    } else {
      this.files = files;
      this.fill(text);
    }
  }

  deliver(text, files) {
    const [word, ...rest] = text.split(" ");
    const known = [...store.state.commands.map((one) => one.command), "/invite"];
    if (word.startsWith("/") && /^\/[a-z][\w-]*$/.test(word)) {
      if (this.threadTs()) throw new Error(`${word} is not supported in threads. Sorry! Use it in the channel.`);
      if (!known.includes(word)) throw new Error(`${word} is not a valid command in ${workspace().name}. Valid are ${known.join(", ")}.`);
      return call("POST", "commands", { body: { channel: this.channelId(), user: store.me, command: word, text: rest.join(" ") } });
    }
    return call("POST", "messages", { body: { channel: this.channelId(), user: store.me, text, files, thread_ts: this.threadTs() || null, broadcast: Boolean(this.also?.checked) } });
  }
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
