// Elements without markup: text goes in as text.
import { icon } from "./icons.js";

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

export const avatar = (userId, name = "") => el("img", { class: "avatar", src: `/_emulator/avatars/${userId}.svg`, alt: name });

// A button that is an icon: `label` is its name, and what is shown where the pointer rests.
export const tool = (label, name, onclick, properties = {}) =>
  el("button", { class: "icon-button", type: "button", title: label, "aria-label": label, onclick, ...properties }, icon(name));

// A notice that goes by itself: that something failed, or with `good` that it was done. The same one is not shown twice.
export function toast(text, { good = false } = {}) {
  if ([...byId("toasts").children].some((one) => one.textContent === text)) return;
  const shown = el("div", { class: "toast" }, good ? null : icon("warning"), text);
  byId("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

// Runs `work` and shows what went wrong, if anything did.
export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    toast(error.message);
    return null;
  }
}
