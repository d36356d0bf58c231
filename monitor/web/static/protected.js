// The same voice through an anonymiser, and its declared guarantee.
import { $, fill, make, text } from "./dom.js";
import { capital, clock, fixed, known, upTo } from "./words.js";

// Figure of the strongest attacker tried, in the headline's unit.
export function figureOf(reading) {
  const side = reading.protected || {};
  return {
    bits: side.bits, low: side.bits_low, high: side.bits_high, by: side.by, cut: Boolean(side.at_least),
  };
}

export function protectedSide(run, reading) {
  const side = run.start.protected;
  $("protected").hidden = !side;
  if (!side || !reading) return;
  const figure = figureOf(reading);
  const unknowing = Boolean(reading.said.uninformed);
  $("protected").dataset.measure = unknowing ? "none" : "strongest";
  const bits = `bits${figure.cut ? ", at least" : ""}`;
  text("protected-title", `Through the anonymiser ${side.method}`);
  text("protected-bits", fixed(figure.bits));
  text("protected-unit", reading.change ? bits : [bits, reading.said.fewer].filter(Boolean).join(", "));
  text("protected-limits", known(figure.low) ? `95 % interval ${upTo(figure.low, figure.high, figure.cut)}` : "");
  text("protected-whom", figure.by ? `${capital(reading.said.attacker)}.` : "–");
  text("protected-others", unknowing
    ? `An attacker who knows it learns more.${document.body.dataset.serve === "yes"
      ? "" : " Try one with --protected-population."}` : "");
  disclosure_delay(run);
}

// Delays known at the selected moment. After the run, levels that were never reached are included.
function disclosure_delay(run) {
  const rows = run.end && run.following && Array.isArray(run.end.disclosure_delay)
    ? (run.end.said || {}).delay || [] : soFar(run);
  const key = JSON.stringify([run.name, rows, Boolean(run.end)]);
  if ($("disclosure_delay").dataset.key === key) return;
  $("disclosure_delay").dataset.key = key;
  if (!rows.length) {
    const why = run.start.watch ? "Neither voice has stayed at 1 bit or more for 5 s." : "Shown only for a watched speaker.";
    fill("disclosure_delay", [make("caption", { class: "muted small" }, why)]);
    return;
  }
  const head = ["Reached", "Clear", "Protected", "Delay"].map((name) => make("th", { scope: "col" }, name));
  fill("disclosure_delay", [
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map(([level, ...cells]) => make("tr", {},
      make("th", { scope: "row" }, level), ...cells.map((cell) => make("td", {}, cell))))),
  ]);
}

function soFar(run) {
  const levels = new Map();
  for (const event of run.happened) {
    if (event.type !== "crossing") continue;
    levels.set(event.bits, { ...levels.get(event.bits), [event.side]: event });
  }
  return [...levels.entries()].sort(([a], [b]) => a - b).map(([, both]) => {
    const since = (side) => (both[side] ? clock(both[side].since_seconds) : "not yet");
    const [first, second] = [both.clear || both.protected, both.protected || both.clear];
    return [first.said.title, since("clear"), since("protected"),
      second.said.delay || first.said.delay || "–"];
  });
}

// The declared epsilon, next to the measured bits.
export function promised(run, reading) {
  const start = run.start.declared;
  const { promise, composed } = (reading && reading.said) || {};
  $("promise").hidden = !start || !promise;
  if (!start || !promise) return;
  text("promise-title", `Promised by ${start.mechanism}, against every attacker`);
  text("promise-now", `${capital(promise)}. The measured bits apply to the attackers tried and guarantee nothing.`);
  text("promise-sum", `${capital(composed)}.`);
}
