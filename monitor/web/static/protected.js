// The same voice through an anonymiser: monitor/phrases.py says the same words.
import { $, fill, make, text } from "./dom.js";
import { capital, clock, fixed, known, ofEvidence, upTo } from "./words.js";

const KNOWS = new Map([
  ["ignorant", "an attacker who does not know the anonymiser"],
  ["lazy-informed", "an attacker who has enrolled protected speech"],
]);

export const attackerInWords = (name) => KNOWS.get(name) || `the attacker ${name}`;

// That of the strongest attacker who was tried, in the unit of the headline.
export function figureOf(reading) {
  const side = reading.protected || {};
  return {
    bits: side.bits, low: side.bits_low, high: side.bits_high, by: side.by, cut: Boolean(side.at_least),
  };
}

const tried = (reading) => Object.keys((reading.protected || {}).attackers || {});

// Whether nobody was tried but who does not know the anonymiser: no measure of protection.
export const uninformed = (reading) =>
  Boolean(reading.protected) && tried(reading).every((name) => name === "ignorant");

export function attackerOf(reading) {
  const { by } = figureOf(reading);
  if (!by) return "";
  if (uninformed(reading)) return `${attackerInWords(by)}: no measure of protection`;
  if (tried(reading).length < 2) return attackerInWords(by);
  return `the strongest attacker tried, ${attackerInWords(by).replace("an attacker ", "")}`;
}

// By how much less; where figures were cut to what can be supported no more is claimed.
export function fewerInWords(reading) {
  const { bits, cut } = figureOf(reading);
  if (!known(bits) || !known(reading.bits) || cut || uninformed(reading)) return "";
  const apart = reading.bits - bits;
  const least = ofEvidence(reading) && reading.at_least && apart >= 0 ? "at least " : "";
  return `${least}${fixed(Math.abs(apart))} ${apart >= 0 ? "fewer" : "more"}`;
}

export const levelInWords = (bits) => `${bits} bit${bits === 1 ? "" : "s"}`;

export const delayInWords = (seconds) =>
  `${Number(seconds.toPrecision(3))} s`.replace("-", "−");

export function protectedSide(run, reading) {
  const side = run.start.protected;
  $("protected").hidden = !side;
  if (!side || !reading) return;
  const figure = figureOf(reading);
  const unknowing = uninformed(reading);
  $("protected").dataset.measure = unknowing ? "none" : "strongest";
  const bits = `bits${figure.cut ? ", at least" : ""}`;
  text("protected-title", `Through the anonymiser ${side.method}`);
  text("protected-bits", fixed(figure.bits));
  text("protected-unit", reading.change ? bits : [bits, fewerInWords(reading)].filter(Boolean).join(", "));
  text("protected-limits", known(figure.low) ? `95 % interval ${upTo(figure.low, figure.high, figure.cut)}` : "");
  text("protected-whom", figure.by ? `${capital(attackerOf(reading))}.` : "–");
  text("protected-others", unknowing
    ? "Whoever knows it learns more: --protected-population tries an attacker who has enrolled protected speech." : "");
  disclosure_delay(run);
}

// What is known at the moment looked at; when it is over, also what was never reached.
function disclosure_delay(run) {
  const rows = run.end && run.following && Array.isArray(run.end.disclosure_delay)
    ? run.end.disclosure_delay.map(ofRow) : soFar(run);
  const key = JSON.stringify([run.name, rows, Boolean(run.end)]);
  if ($("disclosure_delay").dataset.key === key) return;
  $("disclosure_delay").dataset.key = key;
  if (!rows.length) {
    const why = run.start.watch ? "Neither voice has stayed at a bit for 5 s." : "Told of a watched speaker alone.";
    fill("disclosure_delay", [make("caption", { class: "muted small" }, why)]);
    return;
  }
  const head = ["Reached", "Clear", "Protected", "Bought"].map((name) => make("th", { scope: "col" }, name));
  fill("disclosure_delay", [
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map(([level, ...cells]) => make("tr", {},
      make("th", { scope: "row" }, level), ...cells.map((cell) => make("td", {}, cell))))),
  ]);
}

function ofRow(row) {
  const when = ({ seconds, crossed } = {}) => (crossed ? clock(seconds) : `not by ${clock(seconds)}`);
  const told = known(row.delay_seconds)
    ? `${row.at_least ? "at least " : ""}${delayInWords(row.delay_seconds)}` : "not known";
  return [levelInWords(row.bits), when(row.clear), when(row.protected), told];
}

function soFar(run) {
  const levels = new Map();
  for (const event of run.happened) {
    if (event.type !== "crossing") continue;
    levels.set(event.bits, { ...levels.get(event.bits), [event.side]: event });
  }
  return [...levels.entries()].sort(([a], [b]) => a - b).map(([bits, both]) => {
    const since = (side) => (both[side] ? clock(both[side].since_seconds) : "not yet");
    const second = both.clear && both.protected;
    const seconds = second && both.protected.since_seconds - both.clear.since_seconds;
    return [levelInWords(bits), since("clear"), since("protected"), second ? delayInWords(seconds) : "–"];
  });
}
