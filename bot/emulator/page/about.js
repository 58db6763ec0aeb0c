// The app's About tab: what it is, what it may do, and where an admin removes it.
import { call } from "./api.js";
import { confirmed } from "./dialogs.js";
import { avatar, el, toast, trying } from "./dom.js";
import { bot, me, store, workspace } from "./store.js";

export function about() {
  const app = store.state.app;
  const head = el("div", { class: "about-head" }, avatar(bot().id), el("div", {}, el("h2", {}, app.name), el("p", { class: "weak" }, app.description)));
  if (!workspace().installed) return el("div", { class: "about" }, head, el("p", {}, `${app.name} is not installed in ${workspace().name}.`));
  const commands = store.state.commands.map((one) => el("li", {}, el("b", {}, `${one.command} `), el("span", { class: "usage" }, one.usage_hint), el("span", { class: "weak" }, one.description)));
  const scopes = workspace().scopes.map((one) => el("li", {}, one.meaning, el("code", {}, one.scope)));
  return el(
    "div",
    { class: "about" },
    head,
    el("h3", {}, "Slash commands"),
    el("ul", { class: "facts" }, ...commands),
    el("h3", {}, `What ${app.name} can do here`),
    el("ul", { class: "facts" }, ...scopes),
    el("h3", {}, "Configuration"),
    me().is_admin ? removal(app) : el("p", { class: "weak" }, `Only an admin of ${workspace().name} can remove ${app.name}.`),
  );
}

function removal(app) {
  const remove = async () => {
    const text = `${app.name} will leave every channel of ${workspace().name} and can no longer read or write here. To use it again, somebody has to install it anew.`;
    if (!(await confirmed({ title: `Remove ${app.name}?`, text, confirm: "Remove App", danger: true }))) return;
    const done = await trying(() => call("POST", "uninstall", { body: { team: store.team, user: store.me } }));
    if (done) toast(`${app.name} was removed from ${workspace().name}.`, { good: true });
  };
  return el("div", {}, el("p", { class: "weak" }, `Removing ${app.name} revokes its token for this workspace.`), el("button", { type: "button", class: "block-button danger", onclick: remove }, "Remove App"));
}
