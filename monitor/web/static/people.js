// Follow a run of several people, with one curve and one row per person.
import { $, fill, make, text } from "./dom.js";
import { closeStream, openStream } from "./stream.js";
import { clock, fixed, known } from "./words.js";

const DRAW_MILLISECONDS = 250;
const DRAWN = 8;
const MOST_POINTS = 2000;
const MOST_EVENTS = 40;
const SVG = "http://www.w3.org/2000/svg";
const WIDE = 1000, HIGH = 380, LEFT = 44, RIGHT = 210, TOP = 12, ROW = 11;
const TICKS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];

let name = "", last = 0, start = null, end = null, recorded = false, planned = null;
let people = new Map(); // by label: readings per watched speaker, and alerts
let events = [];
let status = ["waiting", "Waiting"];

/** @type {(seconds: number) => void} */ let shownAt = () => {};

// Follow the run with events at `from`. `drawn` is called with the stream second that was drawn.
/** @param {(seconds: number) => void} drawn */
export function followPeople(from = "/events", drawn = () => {}) {
  shownAt = drawn;
  openStream(from, () => `${name}-${last}`, { hello: greet, record: receive }, (words) => {
    status = ["lost", words];
    plan();
  });
}

function greet(event) {
  const hello = JSON.parse(event.data);
  if (hello.run !== name) {
    [name, last, start, end, events, people] = [hello.run, 0, null, null, [], new Map()];
  }
  recorded = hello.recorded;
  $("leave").hidden = !hello.guarded;
  status = recorded ? ["recorded", "Recorded"] : ["live", "Live"];
  plan();
}

function receive(event) {
  const id = Number(event.lastEventId.split("-")[1]);
  if (id > last) take(JSON.parse(event.data));
  last = Math.max(last, id);
  if (end) {
    closeStream();
    status = recorded ? ["recorded", "Recorded"] : ["ended", "Ended"];
  }
  plan();
}

function take(record) {
  if (record.type === "start") {
    start = record;
    (start.people || []).forEach((each) => person(each.label));
  } else if (record.type === "end") end = record;
  else if (record.type === "reading") {
    const views = person(record.label).views;
    const whom = record.watch || "";
    if (!views.has(whom)) views.set(whom, { points: [], last: null });
    const view = views.get(whom);
    if (known(record.bits)) view.points.push([record.seconds, record.bits]);
    if (view.points.length > MOST_POINTS) view.points = view.points.filter((_, i) => i % 2);
    view.last = record;
  } else {
    if (record.type === "alert" && record.state === "raised" && record.level !== "warning") {
      person(record.label).alerts.push([record.seconds, record.value, record.watch || "", record.field]);
    }
    events.push(record);
    if (events.length > MOST_EVENTS) events.shift();
  }
}

function person(label) {
  if (!people.has(label)) people.set(label, { label, views: new Map(), alerts: [] });
  return people.get(label);
}

// The view of the person matched to a label, otherwise the view with the most bits.
function shown(each) {
  const row = rowOf(each.label);
  const views = [...each.views];
  if (row && each.views.has(row.watch || "")) return [row.watch || "", each.views.get(row.watch || "")];
  const bits = ([, view]) => (known(view.last.bits) ? view.last.bits : -Infinity);
  return views.sort((a, b) => bits(b) - bits(a))[0] || ["", null];
}

const rowOf = (label) => end && (end.people || []).find((row) => row.label === label);

function plan() {
  if (planned === null && !document.hidden) planned = setTimeout(draw, DRAW_MILLISECONDS);
}

function draw() {
  planned = null;
  if (start && !start.people) {
    location.reload(); // a run of one voice has started
    return;
  }
  const everybody = [...people.values()].map((each) => {
    const [watch, view] = shown(each);
    return { ...each, watch, view, bits: view && known(view.last.bits) ? view.last.bits : null };
  });
  const most = everybody.filter((each) => each.view)
    .sort((a, b) => (b.bits ?? -Infinity) - (a.bits ?? -Infinity)).slice(0, DRAWN);
  const drawn = everybody.filter((each) => most.includes(each));
  const now = Math.max(0, end ? end.seconds : 0,
    ...everybody.filter((each) => each.view).map((each) => each.view.last.seconds));
  text("source", start ? start.recordings.join(", ") : "");
  text("clock", clock(now));
  const pill = $("status");
  [pill.dataset.state, pill.textContent] = status;
  const caption = start && (start.said || {}).caption;
  text("people-unit", caption ? `${caption}.` : "");
  text("people-curve-title", heading(most, everybody.length));
  $("curves").replaceChildren(curves(drawn, Math.max(now, 1)));
  fill("people-rows", everybody.map((each) => row(each, drawn.indexOf(each))));
  const overlap = end && (end.said || {}).overlap;
  text("people-notes", overlap ? `${overlap}.` : "");
  fill("people-log", [...events].reverse().map((each) => make("li", {},
    `${clock(each.seconds)} ${(each.said || {}).title || each.type}: ${(each.said || {}).words || ""}`)));
  document.body.dataset.ready = everybody.some((each) => each.view) ? "yes" : "no";
  shownAt(now);
}

// The largest last figure, and its person unless all people have it.
function heading(most, count) {
  const [first, ...others] = most;
  if (!first || first.bits === null) return "Bits per person";
  const words = (first.view.last.said || {}).now || `${fixed(first.bits)} bits`;
  if (count === 1) return `${first.label}: ${words}`;
  const same = most.length === count && others.every(({ bits }) => bits !== null && first.bits - bits < 0.05);
  return same ? `Each of ${count} people: ${words}` : `${first.label}, the most exposed of ${count} people: ${words}`;
}

function row(each, place) {
  const told = rowOf(each.label) || {};
  const who = !known(told.probability) ? ""
    : `${told.person === null ? "not enrolled" : told.person}, ${Math.round(100 * told.probability)} %`;
  const now = each.view ? (each.view.last.said || {}).now || "" : "";
  const meaning = now.includes(", ") ? now.slice(now.indexOf(", ") + 2) : now;
  const cells = [
    who,
    each.view ? clock(each.view.last.speech) : "0:00",
    each.bits === null ? "" : fixed(each.bits),
    each.view ? `${each.watch ? `as ${each.watch}: ` : ""}${meaning}` : "too little speech",
    each.alerts.length ? `${each.alerts.length}, first at ${clock(each.alerts[0][0])}` : "",
    known(told.purity) ? `${Math.round(100 * told.purity)} %` : "",
  ];
  return make("tr", { class: place < 0 ? "" : `p${place + 1}` },
    make("th", { scope: "row" }, each.label), ...cells.map((cell) => make("td", {}, cell)));
}

function curves(drawn, now) {
  const bottom = HIGH - 26 - ROW * drawn.length - 8;
  const values = drawn.flatMap((each) => each.view.points.map(([, bits]) => bits));
  const low = Math.min(0, ...values), high = Math.max(1, ...values) * 1.05;
  const x = (seconds) => LEFT + (WIDE - LEFT - RIGHT) * seconds / now;
  const y = (bits) => bottom - (bottom - TOP) * (bits - low) / (high - low);
  const svg = draws("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
    "aria-label": "bits of each person against the time in the recording" });
  const step = [0.5, 1, 2, 5, 10].find((each) => (high - low) / each <= 8) || 20;
  for (let bits = Math.ceil(low / step) * step; bits <= high; bits += step) {
    svg.append(draws("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(bits), y2: y(bits), class: "grid" }));
    svg.append(draws("text", { x: LEFT - 8, y: y(bits) + 4, class: "tick end" }, `${bits}`));
  }
  const every = TICKS.find((each) => now / each <= 8) || now / 8;
  for (let at = 0; at <= now; at += every) {
    svg.append(draws("text", { x: x(at), y: HIGH - 8, class: "tick middle" }, clock(at)));
  }
  const ends = apart(drawn.filter((each) => each.bits !== null).map((each) => [each, y(each.bits)]), bottom);
  drawn.forEach((each, k) => {
    const group = draws("g", { class: `p${k + 1}` });
    const { points } = each.view;
    if (points.length) {
      let path = `M${x(points[0][0]).toFixed(1)} ${y(points[0][1]).toFixed(1)}`;
      for (const [seconds, bits] of points.slice(1)) {
        path += `H${x(seconds).toFixed(1)}V${y(bits).toFixed(1)}`;
      }
      group.append(draws("path", { d: `${path}H${x(now).toFixed(1)}`, class: "line" }));
    }
    points.forEach(([seconds], i) => {
      const from = Math.max(i ? points[i - 1][0] : 0, seconds - 1.5);
      group.append(draws("rect", { x: x(from), width: Math.max(x(seconds) - x(from), 0) + 0.7,
        y: bottom + 10 + ROW * k, height: ROW - 3, class: "spoke" }));
    });
    for (const [seconds, value, watch, field] of each.alerts) {
      if (field === "bits" && known(value) && (!watch || watch === each.watch)) {
        group.append(draws("circle", { cx: x(seconds), cy: y(value), r: 5, class: "alert" }));
      }
    }
    const place = ends.get(each.label);
    if (place !== undefined) {
      group.append(draws("text", { x: WIDE - RIGHT + 10, y: place + 4, class: "name" },
        `${short(each.label)}, ${fixed(each.bits)}`));
    }
    svg.append(group);
  });
  return svg;
}

const short = (label) => (label.length > 20 ? `${label.slice(0, 19)}…` : label);

// Vertical positions of the names, spread out so that none overlap.
function apart(wanted, bottom) {
  const size = 17, places = new Map();
  const order = [...wanted].sort((a, b) => a[1] - b[1]);
  let free = TOP;
  order.forEach(([each, at], i) => {
    const most = bottom - size * (order.length - 1 - i);
    const place = Math.max(free, Math.min(at, most));
    places.set(each.label, place);
    free = place + size;
  });
  return places;
}

function draws(tag, attributes, words) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (words !== undefined) element.textContent = words;
  return element;
}

document.addEventListener("visibilitychange", plan);
if (document.body.dataset.page === "people") followPeople();
