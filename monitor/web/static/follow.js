// Follow a run and draw it. The page of a live run and the page of `monitor serve` share this.
import { $, rememberResearching, text } from "./dom.js";
import { Curve } from "./curve.js";
import { Run } from "./run.js";
import * as panels from "./panels.js";
import { promised, protectedSide } from "./protected.js";
import { followRelay } from "./relay.js";
import { closeStream, openStream } from "./stream.js";
import { capital, clock, fixed, known } from "./words.js";

const DRAW_MILLISECONDS = 120;
const CURVE_MILLISECONDS = 400;
const SPEAK_MILLISECONDS = 20000;

let run = new Run({ run: "", recorded: false, thresholds: [] });
let status = ["waiting", "Waiting"];
let planned = null;
let curveAt = 0;
let spokenAt = 0;
/** @type {number | undefined} */ let speaking;
let drawnAt = performance.now();
/** @type {(run: any, reading: any) => void} */ let shown = () => {};
const curve = new Curve((seconds) => look(seconds));

// Follow the run with events at `from`. `drawn` is called after each drawing.
/** @param {(run: any, reading: any) => void} drawn */
export function follow(from = "/events", drawn = () => {}) {
  shown = drawn;
  const handlers = { hello: greet, record: take, state: foresee };
  openStream(from, () => `${run.name}-${run.last}`, handlers, (words) => stand("lost", words));
}

// Stop following, and clear the title and the spoken summary.
export function unfollow() {
  closeStream();
  clearTimeout(planned);
  clearTimeout(speaking);
  run = new Run({ run: "", recorded: false, thresholds: [] });
  planned = null;
  spokenAt = 0;
  text("spoken-summary", "");
  document.title = "Disclosure monitor";
}

function greet(event) {
  const hello = JSON.parse(event.data);
  if (hello.run !== run.name) run = new Run(hello);
  $("leave").hidden = !hello.guarded;
  if (hello.relayed) followRelay();
  hello.thresholds.forEach(([field, bits]) => run.stands(field, bits));
  drawnAt = performance.now(); // draw the existing records in one go
  drain();
}

function take(event) {
  const record = JSON.parse(event.data);
  run.take(Number(event.lastEventId.split("-")[1]), record);
  if (record.type === "start" && record.people) location.reload(); // several people have their own page
  if (record.type === "alert") spokenAt = 0; // announce it immediately
  if (run.end) {
    spokenAt = 0; // announce the last reading as well
    closeStream();
    drain();
  }
  plan();
}

function foresee(event) {
  run.forecast = JSON.parse(event.data).forecast;
  run.standOn(run.forecast.map((each) => [each.field, each.threshold]));
  plan();
}

function stand(state, words) {
  status = [state, words];
  plan();
}

// The run stopped without an end record: its session was lost.
export function cutShort() {
  closeStream();
  stand("ended", "Ended");
}

function drain() {
  if (run.recorded) stand("recorded", "Recorded");
  else if (run.end) stand("ended", "Ended");
  else stand("live", "Live");
}

function plan() {
  if (planned !== null || document.hidden) return;
  planned = setTimeout(draw, Math.max(0, drawnAt + DRAW_MILLISECONDS - performance.now()));
}

function draw() {
  planned = null;
  if (document.body.dataset.people === "yes") return; // a run of several people is shown instead
  drawnAt = performance.now();
  const reading = run.looked;
  panels.header(run, reading, status);
  panels.banners(run, reading);
  panels.hero(run, reading);
  panels.threshold(run, reading);
  protectedSide(run, reading);
  promised(run, reading);
  panels.features(run, reading);
  panels.candidates(run, reading);
  panels.log(run, reading);
  panels.numbers(run, reading);
  panels.about(run);
  slider(reading);
  speak(reading);
  const now = performance.now();
  if (now - curveAt >= CURVE_MILLISECONDS) {
    curveAt = reading ? now : 0; // draw the first reading completely
    curve.draw(run, reading);
  } else plan();
  const claim = reading && (reading.change ? "Another voice" : capital(reading.said.nobody)
    || (known(reading.bits) && `${fixed(reading.bits)} bits${reading.at_least ? " or more" : ""}`));
  document.title = claim ? `${claim} · Disclosure monitor` : "Disclosure monitor";
  document.body.dataset.ready = reading ? "yes" : "no";
  shown(run, reading);
}

function slider(reading) {
  const input = $("moment");
  input.disabled = run.readings.length < 2;
  if (!reading) return;
  const first = run.readings[0].seconds;
  input.min = String(first);
  input.max = String(run.latest.seconds);
  input.step = String(run.start.step_seconds || 1);
  if (document.activeElement !== input || run.following) input.value = String(reading.seconds);
  input.setAttribute("aria-valuetext",
    `${clock(reading.seconds)}: ${reading.said.doubt || reading.said.now}`);
  text("moment-text", `${clock(reading.seconds)} of ${clock(run.latest.seconds)}`);
  $("latest").hidden = run.following;
}

function look(seconds) {
  run.moment = run.latest && seconds >= run.latest.seconds ? Infinity : seconds;
  curveAt = 0;
  plan();
}

// For screen readers: announce a reading every 20 s, and the last one.
function speak(reading) {
  const now = performance.now();
  clearTimeout(speaking);
  if (!run.following || !reading) return;
  if (spokenAt && now - spokenAt < SPEAK_MILLISECONDS) {
    speaking = setTimeout(() => speak(run.looked), spokenAt + SPEAK_MILLISECONDS - now);
    return;
  }
  spokenAt = now;
  const muted = run.closed ? [`${capital(run.closed.said.title)}: ${run.closed.said.words}.`] : [];
  const alerts = [...muted, ...run.raised.map((alert) => `Alert: ${alert.rule}.`)].join(" ");
  const { now: figure, doubt, care } = reading.said;
  const caution = care ? `${capital(care)}. ` : "";
  text("spoken-summary", `${doubt ? capital(doubt) : capital(figure)}. ${caution}${alerts}`);
}

$("moment").addEventListener("input", () => look(Number($("moment").value)));
$("latest").addEventListener("click", () => look(Infinity));
document.addEventListener("visibilitychange", plan);
export const redraw = () => {
  curveAt = 0;
  plan();
};
rememberResearching(redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", redraw);
matchMedia("print").addEventListener("change", () => curve.draw(run, run.looked)); // in the paper's width and colours
addEventListener("load", redraw);
