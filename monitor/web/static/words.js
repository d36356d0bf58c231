// Numbers, clocks and lengths as the page shows them. Sentences come with the records (`said`).

export const ofEvidence = (record) => record.headline === "evidence";

// The figure of a reading among the N enrolled.
export const closedSet = (reading) => (ofEvidence(reading) ? reading.closed_set_bits : reading.bits);

// Linear and square-root composition guides of the headline, or undefined.
export const guidesOf = (reading) => (ofEvidence(reading) ? reading.evidence_guides : reading.guides);

// Maximum of the headline's guides.
export const mostOf = (reading) => (ofEvidence(reading) ? reading.support_bits : reading.ceiling);

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export function fixed(value, digits = 1) {
  if (!known(value)) return "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
}

// An interval in words. A figure capped at the calibration's support has no upper limit.
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

// ISO 8601 to the second, in local time.
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

// A number of people, with one digit from a hundred on.
export const about = (people) => (people < 100 ? Math.round(people) : Number(people.toPrecision(1))).toLocaleString("en");

// Evidence in words: how many people one match is among.
export function oneIn(bits) {
  if (!bits) return "no evidence";
  return bits > 0 ? `1 in ${about(2 ** bits)}` : `${about(2 ** -bits)}× less likely`;
}

// The answer at a reading, in a few words. It names no figure while the speaker is probably not enrolled.
export const answer = ({ said }) => said.doubt || (said.nobody && said.verdict) || said.now || "no figure";

export const capital = (words) => (words || "").charAt(0).toUpperCase() + (words || "").slice(1);

export function percent(share) {
  if (!known(share)) return "–";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  if (share < 1 && share > 0.995) return "> 99 %";
  const value = 100 * share;
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
}

export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
