// A declared epsilon beside what is measured: monitor/phrases.py says the same words.
import { $, text } from "./dom.js";
import { capital, known } from "./words.js";

const short = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));

export function allowedInWords(bits) {
  const said = bits >= 100 ? Math.round(bits).toLocaleString("en") : bits.toFixed(1).replace(".0", "");
  return `${said} bit${said === "1" ? "" : "s"}`;
}

export function promiseNow({ most_bits: most, empty }) {
  const allowed = allowedInWords(most);
  return empty ? `bound vacuous: allows ${allowed}, and 33 tell one from all alive`
    : `promised: no attacker has more than ${allowed}`;
}

export function composedInWords(start, promise) {
  const better = known(promise.advanced_nats) ? `${short(promise.advanced_nats)} by advanced and ` : "";
  return `${promise.windows.toLocaleString("en")} times epsilon ${start.epsilon_nats} are ` +
    `${short(promise.basic_nats)} together, ${better}${short(promise.optimal_nats)} by optimal ` +
    `composition (delta ${start.delta})`;
}

export function promised(run, reading) {
  const start = run.start.declared;
  const promise = reading && reading.declared;
  $("promise").hidden = !start || !promise;
  if (!start || !promise) return;
  text("promise-title", `Promised by ${start.mechanism}, whoever attacks`);
  text("promise-now", `${capital(promiseNow(promise))}. What is measured is of attackers that were tried, and no promise.`);
  text("promise-sum", `${capital(composedInWords(start, promise))}.`);
}
