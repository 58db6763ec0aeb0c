// "Threadline is thinking…", and the button that stops it.
import { call } from "./api.js";
import { avatar, el, trying } from "./dom.js";
import { bot, statusOf, store, working } from "./store.js";

// Draw the status of a thread into `line`; an empty thread has none of its own.
export function statusLine(line, threadTs, channelId = store.channel) {
  const text = threadTs ? working(statusOf(threadTs, channelId)) : "";
  if (line.dataset.text === text) return;
  line.dataset.text = text;
  if (!text) {
    line.replaceChildren();
    return;
  }
  const stop = () => trying(() => call("POST", "stop", { body: { channel: channelId, thread_ts: threadTs, user: store.me } }));
  line.replaceChildren(
    avatar(bot().id),
    el("span", { class: "text" }, `${store.state.app.name} ${text}`),
    el("button", { type: "button", onclick: stop }, "Stop"),
  );
}
