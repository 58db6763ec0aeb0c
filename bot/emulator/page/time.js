// Times as the chosen person sees them: in their own time zone.
import { me } from "./store.js";

const date = (ts) => new Date(Number(ts) * 1000);

const format = (ts, options) => new Intl.DateTimeFormat("en-GB", { timeZone: me().timezone, ...options }).format(date(ts));

export const clock = (ts) => format(ts, { hour: "2-digit", minute: "2-digit" });

export const day = (ts) => format(ts, { weekday: "long", day: "numeric", month: "long" });

export const whole = (ts) => format(ts, { dateStyle: "full", timeStyle: "long" });

export function when(ts) {
  const today = day(Date.now() / 1000);
  return day(ts) === today ? `today at ${clock(ts)}` : `${day(ts)} at ${clock(ts)}`;
}
