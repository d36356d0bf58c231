// The same voice through a protector: monitor/protected_words.py says the same words.
import { $, fill, make, text } from "./dom.js";
import { capital, clock, fixed, known } from "./words.js";

const KNOWS = new Map([
  ["ignorant", "an attacker who has not enrolled protected speech"],
  ["lazy-informed", "an attacker who has enrolled protected speech"],
]);

export const attackerInWords = (name) => KNOWS.get(name) || `the attacker ${name}`;

export function figureOf(reading, field) {
  const side = reading.protected || {};
  const evidence = field === "evidence_bits";
  return {
    bits: side[field], low: side[`${field}_low`], high: side[`${field}_high`],
    by: evidence ? side.evidence_by : side.bits_by, cut: evidence && Boolean(side.at_least),
  };
}

// By how much less; where figures were cut to what can be supported no more is claimed.
export function fewerInWords(reading, field) {
  const { bits, cut } = figureOf(reading, field);
  if (!known(bits) || !known(reading[field]) || cut) return "";
  const apart = reading[field] - bits;
  const least = field === "evidence_bits" && reading.at_least && apart >= 0 ? "at least " : "";
  return `${least}${fixed(Math.abs(apart))} ${apart >= 0 ? "fewer" : "more"}`;
}

const levelAlone = (bits) => `${bits} bit${bits === 1 ? "" : "s"}`;

export const levelInWords = (field, bits) =>
  `${levelAlone(bits)} ${field === "evidence_bits" ? "of evidence" : "among the enrolled"}`;

export const boughtInWords = (seconds) =>
  `${Number(seconds.toPrecision(3))} s`.replace("-", "−");

export function protectedSide(run, reading) {
  const side = run.start.protected;
  $("protected").hidden = !side;
  if (!side || !reading) return;
  const { field } = run;
  const figure = figureOf(reading, field);
  const bits = `bits${figure.cut ? ", at least" : ""}`;
  text("protected-title", `Through the protector ${side.method}`);
  text("protected-bits", fixed(figure.bits));
  text("protected-unit", reading.change ? bits : [bits, fewerInWords(reading, field)].filter(Boolean).join(", "));
  text("protected-limits", known(figure.low) ? `95 % limits ${fixed(figure.low)} to ${fixed(figure.high)}` : "");
  text("protected-whom", figure.by ? `${capital(attackerInWords(figure.by))}.` : "–");
  const all = Object.entries((reading.protected || {}).attackers || {});
  text("protected-others", all.length < 2
    ? "One who has learns more: --protected-population shows how much."
    : `The stronger of: ${all.map(([name, each]) => `${fixed(each[field])} bits to ${attackerInWords(name)}`).join("; ")}.`);
  bought(run);
}

// What is known at the moment looked at; when it is over, also what was never reached.
function bought(run) {
  const rows = run.end && run.following && Array.isArray(run.end.bought)
    ? run.end.bought.filter((row) => row.field === run.field).map(ofRow) : soFar(run);
  const key = JSON.stringify([run.name, rows, Boolean(run.end)]);
  if ($("bought").dataset.key === key) return;
  $("bought").dataset.key = key;
  if (!rows.length) {
    const why = run.start.watch ? "Neither voice has stayed at a bit for 5 s." : "Told of a watched speaker alone.";
    fill("bought", [make("caption", { class: "muted small" }, why)]);
    return;
  }
  const head = ["Reached", "Clear", "Protected", "Bought"].map((name) => make("th", { scope: "col" }, name));
  fill("bought", [
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map(([level, ...cells]) => make("tr", {},
      make("th", { scope: "row" }, level), ...cells.map((cell) => make("td", {}, cell))))),
  ]);
}

function ofRow(row) {
  const when = ({ seconds, crossed } = {}) => (crossed ? clock(seconds) : `not by ${clock(seconds)}`);
  const told = known(row.bought_seconds)
    ? `${row.at_least ? "at least " : ""}${boughtInWords(row.bought_seconds)}` : "not known";
  return [levelAlone(row.bits), when(row.clear), when(row.protected), told];
}

function soFar(run) {
  const levels = new Map();
  for (const event of run.happened) {
    if (event.type !== "crossing" || event.field !== run.field) continue;
    levels.set(event.bits, { ...levels.get(event.bits), [event.side]: event });
  }
  return [...levels.entries()].sort(([a], [b]) => a - b).map(([bits, both]) => {
    const since = (side) => (both[side] ? clock(both[side].since_seconds) : "not yet");
    const second = both.clear && both.protected;
    const seconds = second && both.protected.since_seconds - both.clear.since_seconds;
    return [levelAlone(bits), since("clear"), since("protected"), second ? boughtInWords(seconds) : "–"];
  });
}
