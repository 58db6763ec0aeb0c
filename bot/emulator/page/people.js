// People in small: pictures that overlap, lists, and the choice of some of them in a dialog.
import { avatar, el, tool } from "./dom.js";
import { user, workspace } from "./store.js";

export const stack = (ids, most = 3) => el("span", { class: "stack" }, ...ids.slice(0, most).map((id) => avatar(id)));

export function memberList(ids) {
  const rows = ids.map((id) => user(id)).filter(Boolean);
  return el("ul", { class: "members" }, ...rows.map((one) => el("li", {}, avatar(one.id), el("b", {}, one.real_name), one.is_bot ? el("span", { class: "badge" }, "APP") : el("span", { class: "weak" }, one.title))));
}

// Turn the server's empty field into one where users of the reader's workspace are chosen, apps among them unless `from` says who.
export function pickPeople(field, { from = workspace().users } = {}) {
  const chosen = new Set(JSON.parse(field.dataset.initial));
  const most = Number(field.dataset.most);
  const find = el("input", { type: "text", role: "combobox", "aria-label": field.dataset.label || "Choose people", placeholder: field.dataset.placeholder || "Choose people", autocomplete: "off" });
  const chips = el("span", { class: "chosen" });
  const list = el("ul", { class: "options", role: "listbox", hidden: true });
  const free = () => from.filter((one) => !chosen.has(one.id) && one.real_name.toLowerCase().includes(find.value.trim().toLowerCase()) && chosen.size < most);
  const draw = () => {
    field.dataset.value = JSON.stringify([...chosen]);
    chips.replaceChildren(...[...chosen].map((id) => el("span", { class: "person-chip" }, avatar(id), user(id)?.real_name || id, tool(`Remove ${user(id)?.real_name || id}`, "close", () => (chosen.delete(id), draw())))));
    list.replaceChildren(...free().map((one) => el("li", { role: "option", onmousedown: (event) => event.preventDefault(), onclick: () => take(one.id) }, avatar(one.id), one.real_name)));
    if (!free().length) list.hidden = true;
  };
  const take = (id) => {
    chosen.add(id);
    find.value = "";
    draw();
  };
  // The list takes room: it goes when a click elsewhere is over, so that nothing moves away under the pointer.
  const elsewhere = (event) => !field.contains(event.target) && hide();
  const hide = () => {
    list.hidden = true;
    document.removeEventListener("click", elsewhere);
  };
  const show = () => {
    list.hidden = false;
    document.addEventListener("click", elsewhere);
    draw();
  };
  find.addEventListener("input", show);
  find.addEventListener("focus", show);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Tab") hide();
    // Enter chooses the first, and does not submit the dialog.
    if (event.key === "Enter") event.preventDefault(), !list.hidden && free().length && take(free()[0].id);
    if (event.key === "Backspace" && !find.value && chosen.size) chosen.delete([...chosen].at(-1)), draw();
  });
  field.append(chips, find, list);
  draw();
}
