// What opens at a button and closes by itself: menus of actions and the choice of an emoji.
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { store } from "./store.js";

const USUAL = ["+1", "white_check_mark", "eyes", "raised_hands", "tada", "heart", "rocket", "fire", "joy", "thinking_face"];

let open = null;

// Show `content` beside `button`. A click elsewhere, Escape or the button again takes it away.
export function popUp(button, content) {
  const again = open?.button === button;
  close();
  if (again) return;
  const box = el("div", { class: "popup", role: "dialog" }, content);
  document.body.append(box);
  open = { box, button };
  button.classList.add("held");
  place(box, button.getBoundingClientRect());
  box.querySelector("button, input")?.focus();
}

export function close() {
  open?.box.remove();
  open?.button.classList.remove("held");
  open = null;
}

function place(box, near) {
  const below = near.bottom + box.offsetHeight + 8 < innerHeight;
  box.style.top = `${below ? near.bottom + 4 : Math.max(8, near.top - box.offsetHeight - 4)}px`;
  box.style.left = `${Math.max(8, Math.min(near.left, innerWidth - box.offsetWidth - 8))}px`;
}

// `items` are {label, icon, danger, act}; null is a line between two.
export function menu(button, items) {
  const rows = items.map((item) => (item ? row(item) : el("hr")));
  popUp(button, el("div", { class: "menu", role: "menu", onkeydown: walk }, ...rows));
}

function row({ label, icon: name, danger, act }) {
  const run = () => {
    close();
    act();
  };
  return el("button", { type: "button", role: "menuitem", class: danger ? "danger" : "", onclick: run }, name ? icon(name) : null, label);
}

function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll("button")];
  rows.at((rows.indexOf(document.activeElement) + step) % rows.length).focus();
}

// Let the reader choose an emoji; `chosen` gets its name.
export function chooseEmoji(button, chosen) {
  const grid = el("div", { class: "emoji-grid" });
  const draw = (typed) => {
    const names = typed ? Object.keys(store.state.emoji).filter((name) => name.includes(typed)) : [...new Set([...USUAL, ...Object.keys(store.state.emoji)])];
    grid.replaceChildren(...names.map((name) => el("button", { type: "button", title: `:${name}:`, "aria-label": name, onclick: () => (close(), chosen(name)) }, store.state.emoji[name])));
  };
  const find = el("input", { type: "search", placeholder: "Search all emoji", "aria-label": "Search all emoji", oninput: () => draw(find.value.toLowerCase()) });
  draw("");
  popUp(button, el("div", { class: "emoji-picker" }, find, grid));
}

document.addEventListener("pointerdown", (event) => open && !open.box.contains(event.target) && !open.button.contains(event.target) && close());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !open) return;
  event.preventDefault();
  open.button.focus();
  close();
}, true);
