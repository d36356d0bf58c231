// What evidence means among people: monitor/crowds.py says the same words.
import { known, ofEvidence } from "./words.js";

const NOTHING_BITS = 0.05;
const WIDE_BITS = 2;
const NEARLY_ONE = 1.5;
const NEAR_BITS = 2.5;
const YOU = ["me", "myself"];

// Name, people in a typical one, and the largest crowd that is still called so.
export const SCALE = [
  ["household", 4, 10], ["office", 50, 200], ["village", 1e3, 2e3], ["town", 1e4, 2e5],
  ["city", 1e6, 2e7], ["country", 5e7, 2e9], ["world", 8e9, Infinity],
];

const ROUND = new Map([
  [1e3, "a thousand"], [1e4, "ten thousand"], [1e5, "a hundred thousand"], [1e6, "a million"],
  [1e7, "ten million"], [1e8, "a hundred million"], [1e9, "a billion"], [1e10, "ten billion"],
]);

export function people(count) {
  if (ROUND.has(count)) return ROUND.get(count);
  for (const [unit, name] of [[1e9, "billion"], [1e6, "million"]]) {
    if (count >= unit) return `${Number((count / unit).toPrecision(3))} ${name}`;
  }
  return even(count).toLocaleString("en");
}

export const a = (name) => `${"aeio".includes(name[0]) ? "an" : "a"} ${name}`;

// Halves go to the even number, as Python's do.
function even(value) {
  const down = Math.floor(value);
  return value - down === 0.5 ? down + (down % 2) : Math.round(value);
}

export function rounded(count) {
  if (count < 10) return String(Math.max(1, even(count)));
  const unit = 10 ** Math.floor(Math.log10(count));
  const step = count < 2.95 * unit ? unit / 10 : unit;
  return people(even(count / step) * step);
}

export function crowdOf(count, enrolled) {
  if (count === enrolled) return `the ${people(count)} enrolled`;
  const [name] = SCALE.find((crowd) => count < crowd[2]);
  return `${a(name)} of ${people(count)}`;
}

// Up to where to draw bits of evidence: the next crowd is seen, where it is near.
export function axisTop(bits) {
  const ahead = SCALE.map(([, size]) => Math.log2(size)).find((each) => each >= bits) || bits;
  return ahead - bits <= NEAR_BITS ? ahead : bits;
}

export function widest(reading) {
  const found = (reading.among || []).filter((each) => known(each.bits));
  return found.reduce((best, each) => (!best || each.people > best.people ? each : best), null);
}

export const atLeast = (reading, bits) => (reading.at_least ? `at least ${bits}` : bits);

const fitting = (entry, bits) => entry.people * 2 ** -Math.min(Math.max(bits, -1000), 1000);

export function leftOf(reading) {
  const entry = widest(reading);
  if (!entry) return "";
  if (Math.abs(entry.bits) < NOTHING_BITS) return "nothing yet";
  if (entry.bits < 0) return "points away";
  const k = fitting(entry, entry.bits);
  if (k < NEARLY_ONE) return `hardly anybody else in ${people(entry.people)}`;
  return `${reading.at_least ? "at most" : "about"} ${rounded(k)} in ${people(entry.people)}`;
}

export function narrowed(entry, who, clipped) {
  const { bits, bits_low: low, bits_high: high } = entry;
  const crowd = crowdOf(entry.people);
  const k = fitting(entry, bits);
  if (k < NEARLY_ONE) return `narrows ${crowd} down to hardly anybody but ${who}`;
  if (!known(low) || !known(high) || high - low <= WIDE_BITS || clipped) {
    return `narrows ${crowd} down to about ${rounded(k)} people${clipped ? " or fewer" : ""}`;
  }
  const [few, many] = [fitting(entry, high), fitting(entry, low)];
  if (many >= entry.people) {
    return `narrows ${crowd} down to about ${rounded(k)} people, and perhaps not at all`;
  }
  return `narrows ${crowd} down to somewhere between ${rounded(few)} and ${rounded(many)} people`;
}

export function narrowedSentence(reading, watch) {
  const entry = widest(reading);
  const evidence = ofEvidence(reading) ? reading.bits : null;
  if (!entry || !known(evidence)) return "";
  const you = YOU.includes(watch.toLowerCase());
  const [voice, who, does] = you ? ["your", "you", "you do"] : ["this", watch, `${watch} does`];
  if (Math.abs(evidence) < NOTHING_BITS) {
    return `${voice} voice says nothing yet: anybody in ${crowdOf(entry.people)} would fit as ${does}`;
  }
  if (evidence < 0) return `${voice} voice points away from ${who}: it would fit most others better`;
  const said = narrowed(entry, who, Boolean(reading.at_least));
  return `${voice} voice ${said}${/(people|fewer)$/.test(said) ? ` who would fit as ${does}` : ""}`;
}

export function foundAmong(share) {
  if (share < 1e-9) return "next to no chance";
  if (share <= 0.4) return `1 in ${rounded(1 / share)}`;
  return share > 0.995 ? "over 99 %" : `${even(100 * share)} %`;
}

// Where nobody is watched: the chance counts everybody who is not enrolled.
export function bestMatch(reading, enrolled) {
  const entry = widest(reading);
  if (!entry || !entry.favourite) return "";
  const [name, probability] = entry.favourite;
  const share = entry.favourite_one_in ? 1 / entry.favourite_one_in : probability;
  return `in ${crowdOf(entry.people)}: ${foundAmong(share)} that it is ${name}, ` +
    `the best match of the ${people(enrolled)} enrolled`;
}
