// What the app suggests to ask: by its manifest in an empty conversation, or of its own accord in any.
import { el } from "./dom.js";
import { statusOf, store } from "./store.js";

// Buttons for the conversation `threadTs` ("" for an empty one) of a direct message; `chosen` gets the words of one. Null without any.
export function promptButtons(threadTs, channelId, chosen) {
  const own = statusOf(threadTs, channelId)?.prompts || [];
  const prompts = own.length || threadTs ? own : store.state.app.suggested_prompts;
  if (!prompts.length) return null;
  return el("div", { class: "prompts", role: "group", "aria-label": "Suggested prompts" }, ...prompts.map((one) => el("button", { type: "button", onclick: () => chosen(one.message) }, one.title || one.message)));
}
