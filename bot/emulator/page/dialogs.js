// Questions above the page: a button's confirmation, and the app's modals.
import { call } from "./api.js";
import { byId, el, trying } from "./dom.js";
import { store } from "./store.js";

export function confirmed({ title, text, confirm, deny }) {
  const dialog = byId("dialog");
  dialog.replaceChildren(
    el("h2", {}, title || "Are you sure?"),
    el("p", {}, text || ""),
    el(
      "form",
      { class: "choice", method: "dialog" },
      el("button", { value: "no" }, deny || "Cancel"),
      el("button", { value: "yes", class: "primary" }, confirm || "Yes"),
    ),
  );
  return new Promise((resolve) => {
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}

// Show the person's newest open modal, or close the one that is gone.
export async function drawModal() {
  const dialog = byId("dialog");
  const answer = await trying(() => call("GET", "views", { query: { user: store.me } }));
  const view = answer?.views.at(-1);
  if (!view) {
    if (dialog.dataset.view) dialog.close();
    return;
  }
  if (dialog.dataset.view === view.id && dialog.open) return;
  dialog.dataset.view = view.id;
  // However it was closed, by Cancel or by Escape: an open view would come back with the next change.
  const leave = () => {
    delete dialog.dataset.view;
    trying(() => call("DELETE", "views", { body: { user: store.me, view_id: view.id } }));
  };
  dialog.addEventListener("close", leave, { once: true });
  const blocks = el("div", { class: "body" });
  // Drawn and escaped by the server, as messages are.
  blocks.innerHTML = view.html;
  const problem = el("p", { class: "problem", role: "alert" });
  const form = el(
    "form",
    { onsubmit: (event) => submit(event, view, form, problem) },
    blocks,
    problem,
    el("div", { class: "choice" }, el("button", { type: "button", onclick: () => dialog.close() }, view.close?.text || "Cancel"), view.submit ? el("button", { class: "primary" }, view.submit.text) : null),
  );
  dialog.replaceChildren(el("h2", {}, view.title?.text || ""), form);
  if (!dialog.open) dialog.showModal();
}

// Each below its own field, as Slack shows them.
function showErrors(form, errors) {
  for (const [block, text] of Object.entries(errors)) {
    const label = [...form.querySelectorAll("[data-block]")].find((one) => one.dataset.block === block);
    (label || form).append(el("span", { class: "problem", role: "alert" }, text));
  }
}

async function submit(event, view, form, problem) {
  event.preventDefault();
  form.querySelectorAll("label .problem").forEach((one) => one.remove());
  const values = {};
  for (const label of form.querySelectorAll("[data-block]")) {
    const input = label.querySelector("input, textarea, select[multiple]");
    if (input) values[label.dataset.block] = { [input.name]: input.multiple ? [...input.selectedOptions].map((one) => one.value) : input.value };
  }
  const answer = await trying(() => call("POST", "views", { body: { user: store.me, view_id: view.id, values } }));
  if (!answer) return;
  if (!answer.ok) problem.textContent = `${store.state.app.name} did not answer (${answer.problem}).`;
  else if (answer.response.includes('"errors"')) showErrors(form, JSON.parse(answer.response).errors);
  else if (answer.response.includes('"update"')) {
    delete byId("dialog").dataset.view;
    await drawModal();
  } else byId("dialog").close();
}
