// Questions above the page: confirmations, lists, and the app's modals.
import { call } from "./api.js";
import { avatar, byId, el, tool, trying } from "./dom.js";
import { pickPeople } from "./people.js";
import { bot, people, store } from "./store.js";

export async function confirmed({ title, text, confirm, deny, danger }) {
  const answer = await asked(
    title || "Are you sure?",
    el("p", {}, text || ""),
    el("button", { value: "no" }, deny || "Cancel"),
    el("button", { value: "yes", class: danger ? "danger" : "primary" }, confirm || "Yes"),
  );
  return answer === "yes";
}

// Show something to read.
export const tell = (title, content) => asked(title, content, el("button", { value: "no" }, "Close"));

// The ids of the people that the reader chooses; none when they think better of it.
export async function choosePeople(title, label) {
  const field = el("div", { class: "people-field", "data-initial": "[]", "data-most": "7", "data-label": label, "data-placeholder": "Type a name" });
  pickPeople(field, { from: people().filter((one) => one.id !== store.me) });
  const answer = await asked(title, el("div", { class: "field" }, el("span", { class: "name" }, label), field), el("button", { value: "no" }, "Cancel"), el("button", { value: "yes", class: "primary" }, "Start"));
  return answer === "yes" ? JSON.parse(field.dataset.value) : [];
}

// The name of a channel to be made, as Slack writes it, and whether it is private; null when they think better of it.
export async function askForChannel() {
  const name = el("input", { name: "name", placeholder: "e.g. plan-budget", maxLength: 80, oninput: () => (name.value = name.value.toLowerCase().replace(/[^\w-]+/g, "-")) });
  const hidden = el("input", { type: "checkbox" });
  const content = el("div", {}, el("label", { class: "field" }, el("span", { class: "name" }, "Name"), name), el("label", { class: "choice-row" }, hidden, "Private: only people who are invited see it"));
  const answer = await asked("Create a channel", content, el("button", { value: "no" }, "Cancel"), el("button", { value: "yes", class: "primary" }, "Create"));
  return answer === "yes" && name.value ? { name: name.value, private: hidden.checked } : null;
}

function asked(title, content, ...buttons) {
  const dialog = byId("dialog");
  dialog.replaceChildren(head(title), el("div", { class: "dialog-body" }, content), el("form", { class: "choice", method: "dialog" }, ...buttons));
  return new Promise((resolve) => {
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
    dialog.showModal();
  });
}

const head = (title, picture = null) => el("header", { class: "dialog-head" }, picture, el("h2", {}, title), tool("Close", "close", () => byId("dialog").close()));

// Show the person's newest open modal, or close the one that is gone.
export async function drawModal() {
  const dialog = byId("dialog");
  const answer = await trying(() => call("GET", "views", { query: { user: store.me } }));
  const view = answer?.views.at(-1);
  if (!view) {
    if (dialog.dataset.view) dialog.close();
    return;
  }
  const shown = dialog.open && dialog.dataset.view === view.id;
  if (shown && dialog.dataset.hash === view.hash) return;
  Object.assign(dialog.dataset, { view: view.id, hash: view.hash });
  // However it was closed, by Cancel or by Escape: an open view would come back with the next change.
  const leave = () => {
    delete dialog.dataset.view;
    trying(() => call("DELETE", "views", { body: { user: store.me, view_id: view.id } }));
  };
  if (!shown) dialog.addEventListener("close", leave, { once: true });
  const blocks = el("div", { class: "body" });
  // Drawn and escaped by the server, as messages are.
  blocks.innerHTML = view.html;
  blocks.querySelectorAll(".people-field").forEach((field) => pickPeople(field));
  const problem = el("p", { class: "problem", role: "alert" });
  const form = el(
    "form",
    { onsubmit: (event) => submit(event, view, form, problem) },
    el("div", { class: "dialog-body" }, blocks, problem),
    el("div", { class: "choice" }, el("button", { type: "button", onclick: () => dialog.close() }, view.close?.text || "Cancel"), view.submit ? el("button", { class: "primary" }, view.submit.text) : null),
  );
  dialog.replaceChildren(head(view.title?.text || "", avatar(bot().id)), form);
  if (!dialog.open) dialog.showModal();
  blocks.querySelector("input, textarea, select")?.focus();
}

// Each below its own field, as Slack shows them.
function showErrors(form, errors) {
  for (const [block, text] of Object.entries(errors)) {
    const field = [...form.querySelectorAll("[data-block]")].find((one) => one.dataset.block === block);
    field?.classList.add("wrong");
    (field || form).append(el("span", { class: "problem", role: "alert" }, text));
  }
}

// What stands in one field, by the name of its element.
function filledIn(field) {
  const people = field.querySelector(".people-field");
  if (people) return { [people.dataset.name]: JSON.parse(people.dataset.value) };
  const inputs = [...field.querySelectorAll("input, textarea, select")];
  if (!inputs.length) return null;
  const [first] = inputs;
  const chosen = inputs.filter((one) => one.checked).map((one) => one.value);
  if (first.type === "checkbox") return { [first.name]: chosen };
  return { [first.name]: first.type === "radio" ? chosen[0] || "" : first.value };
}

async function submit(event, view, form, problem) {
  event.preventDefault();
  form.querySelectorAll("[data-block] .problem").forEach((one) => one.remove());
  form.querySelectorAll(".wrong").forEach((one) => one.classList.remove("wrong"));
  problem.textContent = "";
  const values = {};
  for (const field of form.querySelectorAll("[data-block]")) {
    const filled = filledIn(field);
    if (filled) values[field.dataset.block] = filled;
  }
  const button = form.querySelector(".choice .primary");
  button.disabled = true;
  const answer = await trying(() => call("POST", "views", { body: { user: store.me, view_id: view.id, values } }));
  button.disabled = false;
  if (!answer) return;
  if (!answer.ok) problem.textContent = `We had some trouble connecting. Try again? (${store.state.app.name}: ${answer.problem.replaceAll("_", " ")})`;
  else if (answer.response.includes('"errors"')) showErrors(form, JSON.parse(answer.response).errors);
  else if (answer.response.includes('"update"') || answer.response.includes('"push"')) await drawModal();
  else byId("dialog").close();
}
