// The formatting bar: marks around what is selected, as Slack's own markup has them.
import { el, tool } from "./dom.js";

const AROUND = {
  bold: { label: "Bold", mark: "*", key: "b" },
  italic: { label: "Italic", mark: "_", key: "i" },
  strike: { label: "Strikethrough", mark: "~", key: "x", shift: true },
  code: { label: "Code", mark: "`", key: "c", shift: true },
  codeblock: { label: "Code block", mark: "```", key: "c", alt: true },
};

export function formatBar(text) {
  const button = (name) => tool(AROUND[name].label, name, () => wrap(text, AROUND[name].mark));
  const rule = () => el("span", { class: "rule" });
  return el("div", { class: "format", role: "toolbar", "aria-label": "Formatting" }, button("bold"), button("italic"), button("strike"), rule(), tool("Quote", "quote", () => quote(text)), rule(), button("code"), button("codeblock"));
}

// True when the key was a format's: Ctrl or Command with B, I, Shift X, Shift C or Alt C.
export function formatKey(event, text) {
  if (!event.ctrlKey && !event.metaKey) return false;
  const format = Object.values(AROUND).find((one) => one.key === event.key.toLowerCase() && Boolean(one.shift) === event.shiftKey && Boolean(one.alt) === event.altKey);
  if (!format) return false;
  event.preventDefault();
  wrap(text, format.mark);
  return true;
}

function wrap(text, mark) {
  const { selectionStart: start, selectionEnd: end, value } = text;
  const inner = value.slice(start, end);
  text.focus();
  text.setRangeText(`${mark}${inner}${mark}`, start, end, "end");
  // Nothing was selected: go on between the marks.
  if (!inner) text.selectionStart = text.selectionEnd = start + mark.length;
  text.dispatchEvent(new Event("input"));
}

function quote(text) {
  const start = text.value.lastIndexOf("\n", text.selectionStart - 1) + 1;
  const lines = text.value.slice(start, text.selectionEnd).split("\n");
  text.focus();
  text.setRangeText(lines.map((line) => `> ${line}`).join("\n"), start, text.selectionEnd, "end");
  text.dispatchEvent(new Event("input"));
}
