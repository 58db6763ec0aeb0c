// What happens inside blocks: buttons, menus, and tables that sort and turn pages.
import { call } from "./api.js";
import { confirmed } from "./dialogs.js";
import { el, toast, trying } from "./dom.js";
import { store } from "./store.js";

export function listenToBlocks(root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest(".block-button[data-action]");
    if (button) press(button);
    const sort = event.target.closest(".sort");
    if (sort) sortBy(sort);
  });
  root.addEventListener("change", (event) => {
    const menu = event.target.closest(".block-select");
    if (menu?.value) act(menu, menu.value);
  });
  new MutationObserver(() => root.querySelectorAll(".data-table:not([data-page])").forEach((table) => turnTo(table, 0))).observe(root, { childList: true, subtree: true });
}

async function press(button) {
  if (button.dataset.confirm && !(await confirmed(JSON.parse(button.dataset.confirm)))) return;
  if (button.dataset.url) window.open(button.dataset.url, "_blank", "noopener");
  await act(button, button.dataset.value);
}

async function act(element, value) {
  const { ts, channel } = element.closest(".message")?.dataset || {};
  const home = element.closest(".home");
  if (!ts && !home) return;
  const body = { action_id: element.dataset.action, user: store.me, ...(ts ? { channel, message_ts: ts } : { view_id: "home" }) };
  if (ts && value !== undefined) body.value = value;
  element.disabled = true;
  const answer = await trying(() => call("POST", ts ? "actions" : "views/actions", { body }));
  element.disabled = false;
  if (answer && !answer.ok) toast(`${store.state.app.name} did not take the click (${answer.problem.replaceAll("_", " ")}). Try again.`);
}

function sortBy(button) {
  const table = button.closest(".data-table");
  const column = Number(button.dataset.column);
  const down = button.dataset.direction === "up";
  table.querySelectorAll(".sort").forEach((one) => delete one.dataset.direction);
  button.dataset.direction = down ? "down" : "up";
  const value = (row) => row.children[column].dataset.value;
  const order = (a, b) => (Number.isNaN(Number(value(a)) + Number(value(b))) ? value(a).localeCompare(value(b)) : value(a) - value(b));
  const rows = [...table.querySelectorAll("tbody tr:not(.total)")].sort((a, b) => (down ? order(b, a) : order(a, b)));
  table.querySelector("tbody").append(...rows, ...table.querySelectorAll("tbody tr.total"));
  turnTo(table, 0);
}

function turnTo(table, page) {
  const size = Number(table.dataset.pageSize);
  const rows = [...table.querySelectorAll("tbody tr")];
  const pages = Math.ceil(rows.length / size);
  table.dataset.page = page;
  rows.forEach((row, index) => (row.hidden = Math.floor(index / size) !== page));
  const pager = table.querySelector(".pager");
  pager.hidden = pages < 2;
  const go = (text, label, to, disabled) => el("button", { type: "button", "aria-label": label, disabled, onclick: () => turnTo(table, to) }, text);
  pager.replaceChildren(
    go("‹", "Previous page", page - 1, page === 0),
    `${page * size + 1}–${Math.min((page + 1) * size, rows.length)} of ${rows.length}`,
    go("›", "Next page", page + 1, page === pages - 1),
  );
}
