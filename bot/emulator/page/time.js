// Times as the chosen person sees them: in their own time zone.
import { me } from "./store.js";

const DAY_MS = 86_400_000;

const date = (ts) => new Date(Number(ts) * 1000);

const format = (ts, options) => new Intl.DateTimeFormat("en-US", { timeZone: me().timezone, ...options }).format(date(ts));

export const clock = (ts) => format(ts, { hour: "numeric", minute: "2-digit" });

const fullDay = (ts) => format(ts, { weekday: "long", month: "long", day: "numeric" });

export function day(ts) {
  const now = Date.now();
  if (fullDay(ts) === fullDay(now / 1000)) return "Today";
  return fullDay(ts) === fullDay((now - DAY_MS) / 1000) ? "Yesterday" : fullDay(ts);
}

export const whole = (ts) => format(ts, { dateStyle: "full", timeStyle: "long" });

export const when = (ts) => `${day(ts)} at ${clock(ts)}`.replace(/^(Today|Yesterday)/, (word) => word.toLowerCase());
