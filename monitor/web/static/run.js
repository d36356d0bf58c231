// The run as the page sees it. It takes records and returns the figures at any moment.
import { known, ofEvidence } from "./words.js";

const RECENT = 1200;
const MOST = 3000;
const GROWTH = 1.01;
const MOST_EVENTS = 500;

export class Run {
  constructor(hello) {
    this.name = hello.run;
    this.recorded = hello.recorded;
    this.named = { bits: new Set(), evidence_bits: new Set(), closed_set_bits: new Set() };
    hello.thresholds.forEach(([field, bits]) => this.stands(field, bits));
    this.start = { said: {} };
    this.end = null;
    this.readings = []; // each with x: speech seconds that never decrease
    this.events = []; // alerts, gaps, notices, changes, crossings
    this.counts = { alert: 0, gap: 0, notice: 0, change: 0, crossing: 0 };
    this.lostSeconds = 0;
    this.forecast = [];
    this.last = 0;
    this.moment = Infinity; // selected stream second; Infinity follows the newest
    this.before = 0;
    this.speech = 0;
    this.afresh = Infinity; // second after which the evidence belongs to the new voice alone
  }

  // Add an alert's threshold, in bits, if its figure has a curve.
  stands(field, bits) {
    if (Object.hasOwn(this.named, field)) this.named[field].add(bits);
  }

  // Replace all alert thresholds.
  standOn(all) {
    Object.values(this.named).forEach((levels) => levels.clear());
    all.forEach(([field, bits]) => this.stands(field, bits));
  }

  // Whether the headline is evidence. Otherwise it is the closed-set figure.
  get evidence() {
    return ofEvidence(this.start) || Boolean(this.latest && ofEvidence(this.latest));
  }

  // The headline of a reading, or null if it is another figure than the run's. A curve shows one figure.
  own(reading, end = "") {
    return ofEvidence(reading) === this.evidence ? reading[`bits${end}`] : null;
  }

  // Whether the field is one of the headline's two names.
  isHeadline(field) {
    return field === "bits" || field === (this.evidence ? "evidence_bits" : "closed_set_bits");
  }

  // Maximum bits of the headline at any length.
  get most() {
    const { support_bits: support, reachable_bits: reachable, ceiling } = this.start;
    return this.evidence ? support : reachable ?? ceiling;
  }

  // Whether the headline can never reach these bits, so that an alert there could never fire.
  beyond(bits) {
    return known(this.most) && bits > this.most;
  }

  // Alert thresholds of the headline, in bits, smallest first.
  get thresholds() {
    return levels(Object.entries(this.named).filter(([field]) => this.isHeadline(field)));
  }

  // Alert thresholds of the closed-set figure, if it is not the headline.
  get closedThresholds() {
    return this.evidence ? levels([["closed_set_bits", this.named.closed_set_bits]]) : [];
  }

  take(id, record) {
    if (id <= this.last) return;
    this.last = id;
    if (record.type === "reading") this.takeReading(record);
    else if (record.type === "start") this.start = { ...record, said: record.said || {} };
    else if (record.type === "end") this.end = record;
    else if (Object.hasOwn(this.counts, record.type)) this.takeEvent(record);
  }

  takeReading(record) {
    const speech = record.speech || 0;
    // the evidence restarted; the reading at the change is the last one of the old evidence
    const fresh = speech < this.speech || record.seconds > this.afresh;
    if (fresh) this.afresh = Infinity;
    if (fresh) this.before += this.speech;
    this.speech = speech;
    this.readings.push({ ...record, said: record.said || {}, x: this.before + speech, fresh });
    if (this.readings.length > MOST) this.readings = thin(this.readings);
  }

  takeEvent(record) {
    const thinned = ["thinned", "words ended"].includes(record.reason); // these affect one feature and lose no audio
    this.counts[record.type] += record.state === "cleared" || thinned ? 0 : 1;
    this.lostSeconds += record.type === "gap" && !thinned ? record.lost_seconds || 0 : 0;
    if (record.type === "alert" && !record.way) this.stands(record.field, record.threshold);
    let x = this.before + this.speech;
    if (record.type === "change") {
      if (record.action !== "note") this.afresh = record.seconds;
      x = (this.at(record.since_seconds) || { x }).x;
    }
    this.events.push({ ...record, said: record.said || {}, x });
    if (this.events.length > MOST_EVENTS) this.events.shift();
  }

  get latest() {
    return this.readings.length ? this.readings[this.readings.length - 1] : null;
  }

  get following() {
    return this.moment === Infinity;
  }

  get looked() {
    return this.following ? this.latest : this.at(this.moment);
  }

  // The last reading at or before a moment of the stream.
  at(seconds) {
    let low = 0;
    let high = this.readings.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.readings[middle].seconds <= seconds) low = middle + 1;
      else high = middle;
    }
    return this.readings[Math.max(0, low - 1)] || null;
  }

  // Events up to the selected moment.
  get happened() {
    return this.events.filter((event) => event.seconds <= this.moment);
  }

  // Notices with their level: those up to the selected moment, newest first, then those of the start.
  get notices() {
    const noticed = this.happened.filter((event) => event.type === "notice").reverse();
    const all = new Map(noticed.map(({ text, level }) => [text, level]));
    for (const text of this.start.notices || []) if (!all.has(text)) all.set(text, "info");
    return [...all];
  }

  // Meaning of a number of bits in words, if an alert has that threshold.
  meaning(bits) {
    return (this.forecast.find((each) => each.threshold === bits && this.isHeadline(each.field)) || {}).meaning;
  }

  // The change at which the evidence of a reading started, or null for the first voice.
  begun(reading) {
    const afresh = this.events.filter((event) => event.type === "change" &&
      event.action !== "note" && event.seconds < reading.seconds);
    return afresh[afresh.length - 1] || null;
  }

  // Stream second at which the headline first reached these bits. The recording may be shared up to there.
  below(bits) {
    const over = this.readings.find((each) => known(this.own(each)) && this.own(each) >= bits);
    return over ? over.seconds : null;
  }

  // Alerts and warnings raised at the selected moment.
  get raised() {
    return this.standing.filter((event) => event.level !== "warning");
  }

  get warned() {
    return this.standing.filter((event) => event.level === "warning");
  }

  // The last time that a relay muted because its budget was spent.
  get closed() {
    return this.happened.filter((event) => event.way).pop() || null;
  }

  get standing() {
    const raised = new Map();
    for (const event of this.happened) {
      if (event.type !== "alert" || event.way) continue;
      if (event.state === "raised") raised.set(event.rule, event);
      else raised.delete(event.rule);
    }
    return [...raised.values()];
  }
}

const levels = (named) =>
  [...new Set(named.flatMap(([, bits]) => [...bits]))].sort((a, b) => a - b);

// Thin older readings evenly on a log axis, as the server does.
function thin(readings) {
  const old = readings.slice(0, -RECENT);
  const kept = [];
  let reached = 0;
  old.forEach((reading) => {
    if (reading.seconds <= 300 || reading.fresh || reading.seconds >= reached * GROWTH) {
      kept.push(reading);
      reached = reading.seconds;
    }
  });
  const fewer = kept.length > 1500 ? kept.filter((each, i) => each.fresh || i % 2 === 0) : kept;
  return fewer.concat(readings.slice(-RECENT));
}
