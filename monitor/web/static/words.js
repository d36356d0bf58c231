// How figures are said to a person.

const FEATURES = new Map([
  ["f0", ["Pitch", "f0"]],
  ["phones", ["Sounds of the language", "phones"]],
  ["voice", ["Speaker embedding", "voice"]],
  ["identity", ["Larger speaker embedding", "identity"]],
]);

export const ofEvidence = (record) => record.headline === "evidence";

// The figure of a reading among the N enrolled.
export const closedSet = (reading) => (ofEvidence(reading) ? reading.closed_set_bits : reading.bits);

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export function fixed(value, digits = 1) {
  if (!known(value)) return "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
}

// Limits: what was cut to the most that can be told has no upper one.
export const upTo = (low, high, cut) => (cut ? `${fixed(low)} or more` : `${fixed(low)} to ${fixed(high)}`);

export function clock(seconds) {
  const whole = Math.floor(seconds || 0);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor((whole % 3600) / 60))}:${two(whole % 60)}`;
}

export function length(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`.replace(" 0 s", "");
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

// ISO 8601, to the second, in the time of the place where it is read.
export function isoTime(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const away = -date.getTimezoneOffset();
  const two = (n) => String(Math.abs(n)).padStart(2, "0");
  const local = new Date(date.getTime() + away * 60000).toISOString().slice(0, 19);
  return `${local}${away < 0 ? "-" : "+"}${two(Math.trunc(away / 60))}:${two(away % 60)}`;
}

export function shortLength(seconds) {
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

// The number of people left: N / 2^bits.
export const left = (bits, ceiling) => 2 ** (ceiling - bits);

const MOST_PEOPLE = 1e9;

export function count(k) {
  if (Number.isNaN(k)) return "–";
  if (k > MOST_PEOPLE) return "over a billion";
  return k >= 9.95 ? Math.round(k).toLocaleString("en") : k.toFixed(1).replace(".0", "");
}

// What bits mean, and what an attacker thinks: monitor/phrases.py says the same words.
const FEWEST = 1.95;
const ONE = 1.1;

export function odds(bits, ceiling, assumed) {
  if (!known(bits) || !known(ceiling)) return "–";
  const k = left(bits, ceiling);
  if (k >= FEWEST) return `1 in ${count(k)}`;
  if (assumed) return k >= ONE ? "1 or 2 left" : "only 1 left";
  return k < 1 / 0.995 ? "over 99 % sure" : `${(100 / k).toFixed(0)} % sure`;
}

// A probability of one person.
export const oneIn = (p) => (p * FEWEST > 1 ? `${(100 * p).toFixed(0)} % sure` : `1 in ${count(1 / p)}`);

export function verdict(bits, ceiling, watch) {
  const k = left(bits, ceiling);
  const said = odds(bits, ceiling, !watch);
  if (!watch) {
    const people = `${count(2 ** ceiling)} people`;
    if (k < ONE) return `an attacker has hardly any doubt which of ${people} it is`;
    return `an attacker thinks that ${k >= FEWEST ? `about ${count(k)}` : "1 or 2"} of ${people} are left`;
  }
  if (k < FEWEST) return `an attacker is ${said} that it is ${watch}`;
  if (bits < -0.05) {
    return `an attacker is misled: ${watch} seems less likely (${said}) than by guessing (${odds(0, ceiling)})`;
  }
  return `an attacker gives ${watch} a chance of ${said}`;
}

// Another voice, or channel, and since when: of a change, or of a reading while one is open.
export function voiceSince(change) {
  if (change.back) return `the first voice is back since ${clock(change.since_seconds)}`;
  const channel = (change.features || []).join() === "channel";
  return `another ${channel ? "channel or voice" : "voice"} since ${clock(change.since_seconds)}`;
}

export function whoseBits(watch, leftOut) {
  if (watch && leftOut) return `${leftOut.toFixed(0)} s of speech are left out of ${watch}'s bits`;
  return `these bits may ${watch ? `not be ${watch}'s` : "be of more than one"}`;
}

// As monitor/phrases.py says it.
export const NO_SAFETY = "Low bits are no safety here.";

export const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

export function percent(share) {
  if (!known(share)) return "–";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  if (share < 1 && share > 0.995) return "> 99 %";
  const value = 100 * share;
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
}

export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

export function featureName(name) {
  return FEATURES.get(name) || [name, ""];
}
