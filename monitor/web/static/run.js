// The run as the page knows it: records in, figures at any of its moments out.
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
    this.readings = []; // each with x: speech seconds that never go back
    this.events = []; // alerts, gaps, notices, changes, crossings
    this.counts = { alert: 0, gap: 0, notice: 0, change: 0, crossing: 0 };
    this.lostSeconds = 0;
    this.forecast = [];
    this.last = 0;
    this.moment = Infinity; // stream seconds looked at; Infinity: the newest, whatever comes
    this.before = 0;
    this.speech = 0;
    this.afresh = Infinity; // seconds after which the evidence is of another voice alone
  }

  // An alert stands on so many bits of a figure that has a curve.
  stands(field, bits) {
    if (Object.hasOwn(this.named, field)) this.named[field].add(bits);
  }

  // What alerts stand on now, in the place of what they stood on.
  standOn(all) {
    Object.values(this.named).forEach((levels) => levels.clear());
    all.forEach(([field, bits]) => this.stands(field, bits));
  }

  // Whether the headline is evidence; else it is the closed-set figure.
  get evidence() {
    return ofEvidence(this.start) || Boolean(this.latest && ofEvidence(this.latest));
  }

  // The headline of a reading, where it is of the run's kind: a curve is of one figure.
  own(reading, end = "") {
    return ofEvidence(reading) === this.evidence ? reading[`bits${end}`] : null;
  }

  // The headline has two names; true of either.
  isHeadline(field) {
    return field === "bits" || field === (this.evidence ? "evidence_bits" : "closed_set_bits");
  }

  // The most bits that the headline can show, at any length.
  get most() {
    const { support_bits: support, reachable_bits: reachable, ceiling } = this.start;
    return this.evidence ? support : reachable ?? ceiling;
  }

  // Whether the headline can never get there: an alert at so many bits would never be raised.
  beyond(bits) {
    return known(this.most) && bits > this.most;
  }

  // The bits of the headline that alerts stand on, smallest first.
  get thresholds() {
    return levels(Object.entries(this.named).filter(([field]) => this.isHeadline(field)));
  }

  // Those of the closed-set figure, where it is not the headline.
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
    // the evidence began afresh: the reading that comes with the change is the last one on the old
    const fresh = speech < this.speech || record.seconds > this.afresh;
    if (fresh) this.afresh = Infinity;
    if (fresh) this.before += this.speech;
    this.speech = speech;
    this.readings.push({ ...record, said: record.said || {}, x: this.before + speech, fresh });
    if (this.readings.length > MOST) this.readings = thin(this.readings);
  }

  takeEvent(record) {
    const thinned = ["thinned", "words ended"].includes(record.reason); // of one feature, no audio lost
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

  // What had happened at the moment looked at.
  get happened() {
    return this.events.filter((event) => event.seconds <= this.moment);
  }

  // What a person should know, each with its level: noticed by the moment looked at, the newest
  // first, and known from the start.
  get notices() {
    const noticed = this.happened.filter((event) => event.type === "notice").reverse();
    const all = new Map(noticed.map(({ text, level }) => [text, level]));
    for (const text of this.start.notices || []) if (!all.has(text)) all.set(text, "info");
    return [...all];
  }

  // What so many bits mean, where an alert stands on them.
  meaning(bits) {
    return (this.forecast.find((each) => each.threshold === bits && this.isHeadline(each.field)) || {}).meaning;
  }

  // The change with which the evidence of a reading began, where it is not the first voice's.
  begun(reading) {
    const afresh = this.events.filter((event) => event.type === "change" &&
      event.action !== "note" && event.seconds < reading.seconds);
    return afresh[afresh.length - 1] || null;
  }

  // Until when the headline stayed below so many bits: what may still be kept of a recording.
  below(bits) {
    const over = this.readings.find((each) => known(this.own(each)) && this.own(each) >= bits);
    return over ? over.seconds : null;
  }

  // The alerts raised at that moment, and the warnings.
  get raised() {
    return this.standing.filter((event) => event.level !== "warning");
  }

  get warned() {
    return this.standing.filter((event) => event.level === "warning");
  }

  // The last way that a relay closed, as its budget was spent.
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

// Older readings become fewer, evenly on a log axis, as they do at the server.
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
