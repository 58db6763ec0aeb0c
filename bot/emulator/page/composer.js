// The message box: text, files, commands and mentions.
import { call } from "./api.js";
import { el, toast, trying } from "./dom.js";
import { Suggestions } from "./suggestions.js";
import { channel, store, title, workspace } from "./store.js";

const MAX_FILE_BYTES = 7_000_000;
const drafts = new Map();

export class Composer {
  // `threadTs` is a function: the box outlives the thread it stands under.
  constructor({ threadTs, onSent }) {
    this.threadTs = threadTs;
    this.onSent = onSent;
    this.files = [];
    this.place = "";
    this.text = el("textarea", { rows: 1, oninput: () => this.changed(), onkeydown: (event) => this.key(event) });
    this.chips = el("div", { class: "chips" });
    this.hint = el("span", { class: "hint" });
    this.send = el("button", { class: "send", type: "submit", title: "Send", "aria-label": "Send", disabled: true }, "➤");
    this.picker = el("input", { type: "file", multiple: true, hidden: true, onchange: () => this.attach(this.picker.files) });
    const clip = el("button", { class: "icon-button", type: "button", title: "Attach a file", "aria-label": "Attach a file", onclick: () => this.picker.click() }, "+");
    this.element = el("form", { class: "composer", onsubmit: (event) => this.submit(event) }, this.chips, this.text, el("div", { class: "tools" }, clip, this.picker, this.hint, this.send));
    this.suggestions = new Suggestions(this.text, this.element, { commands: () => (this.threadTs() ? [] : store.state.commands), changed: () => this.changed() });
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.attach(event.dataTransfer.files);
    });
  }

  // Each conversation keeps what was typed but not sent.
  moveTo(place) {
    if (place === this.place) return;
    drafts.set(this.place, this.text.value);
    this.place = place;
    this.text.value = drafts.get(place) || "";
    this.files = [];
    const where = this.threadTs() ? "Reply…" : `Message ${title(channel())}`;
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
    const typing = this.text.value.length > 0;
    this.hint.textContent = typing ? "Enter to send, Shift + Enter for a new line" : `${this.threadTs() ? "" : "/ for commands, "}@ to mention somebody`;
    this.suggestions.update();
  }

  chip(file, index) {
    const remove = () => {
      this.files.splice(index, 1);
      this.changed();
    };
    return el("span", { class: "chip" }, file.name, el("button", { type: "button", "aria-label": `Remove ${file.name}`, onclick: remove }, "✕"));
  }

  key(event) {
    if (event.isComposing || this.suggestions.key(event)) return;
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
      if (this.threadTs()) throw new Error(`${word} can not be used in a thread. Use it in the channel.`);
      if (!known.includes(word)) throw new Error(`${word} is not a command in ${workspace().name}. Known are ${known.join(", ")}.`);
      return call("POST", "commands", { body: { channel: store.channel, user: store.me, command: word, text: rest.join(" ") } });
    }
    return call("POST", "messages", { body: { channel: store.channel, user: store.me, text, files, thread_ts: this.threadTs() || null } });
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
