// The page that listens: enrols somebody, then follows a run of the browser's own microphone.
import { $, fill, make, text } from "./dom.js";
import { follow, redraw, unfollow } from "./follow.js";
import { Line, Microphone } from "./microphone.js";
import { followPeople } from "./people.js";
import { ProtectedSound } from "./protectedsound.js";
import { clock, fixed } from "./words.js";

const CLIPPED = 0.999;
const QUIET = 0.01; // of full scale, -40 dB
const METER_MILLISECONDS = 60;
const SLIDER_MILLISECONDS = 100;
const FORGOTTEN_SECONDS = 600;

/** @typedef {"welcome" | "reading" | "enrolled-now" | "controls"} Stage */

/** Who it is, and what is going on. */
const now = {
  /** @type {Stage} */ stage: "welcome",
  name: "",
  wanted: 60,
  paused: false,
  cancelled: false,
  over: true,
  /** Of a recording that is measured. @type {{name: string, seconds: number | null, begun: boolean} | null} */
  recording: null,
};
/** Who is enrolled, as the list has them. @type {Set<string>} */
const knownNames = new Set();
/** When each second of the sound was there, to tell how late its reading is. @type {Map<number, number>} */
let arrivals = new Map();
/** @type {number[]} */ let latenesses = [];
let run = null;
let meterAt = 0;
let peakHeld = 0;
let clippedAt = -Infinity;
/** @type {number | undefined} */ let sending;

const microphone = new Microphone(heard, (lost, seconds) => {
  if (lost) return state("lost", "The microphone is gone: plug it in again");
  line.miss(seconds);
  return listening();
});
const line = new Line(told, (changed, why) => {
  if (changed === "open") return now.stage === "controls" && listening();
  if (changed === "refused") {
    over();
    return problem(`The program has ended this: ${why || "no more is known"}. Load the page again.`);
  }
  return state("lost", "The program does not answer: trying again");
});

const back = new ProtectedSound();
line.sounded = (message) => {
  back.take(message);
  $("save-back").disabled = !back.seconds;
};

document.body.dataset.serve = "yes";
if (location.hash) history.replaceState(null, "", location.pathname);
if (!["127.0.0.1", "localhost", "[::1]"].includes(location.hostname)) text("where", location.host);
show("welcome", false);
listPeople();
listAnonymisers();

/** @param {Stage} stage @param {boolean} focus */
function show(stage, focus = true) {
  now.stage = stage;
  if (stage !== "controls") unfollow();
  document.body.dataset.stage = stage;
  for (const each of document.querySelectorAll(".stage")) {
    /** @type {HTMLElement} */ (each).hidden = each.id !== stage;
  }
  problem("");
  if (focus) $(stage).focus();
}

/** @param {string} words */
function problem(words) {
  const place = { welcome: "welcome-problem", reading: "reading-problem" }[now.stage] || "controls-problem";
  text(place, words);
  if (words) $(place).scrollIntoView({ block: "nearest" });
}

/** @param {string} name */
function knownAlready(name) {
  problem(`${name} is known here already: speak at once (above), or “Forget” first.`);
}

async function listPeople() {
  const answer = await fetch("/people");
  if (!answer.ok) return;
  const people = await answer.json();
  $("known").hidden = !people.length;
  knownNames.clear();
  people.forEach(({ name }) => knownNames.add(name));
  fill("whose", [
    ...people.map(({ name }) => make("option", { value: name }, name)),
    make("option", { value: "" }, "not enrolled here"),
  ]);
  fill("people", people.map(({ name, enrolled }) => {
    const go = make("button", { type: "button", class: "primary", "aria-label": `Speak as ${name}` }, name);
    const forget = make("button", { type: "button", "aria-label": `Forget ${name}` }, "Forget");
    go.addEventListener("click", () => {
      if (confirm(`Are you ${name}? The microphone starts, and your voice is measured as ${name}'s.`)) listen(name);
    });
    forget.addEventListener("click", () => forgetPerson(name));
    const since = make("span", { class: "muted small" }, ` since ${enrolled.slice(0, 10)} `);
    return make("li", {}, go, since, forget);
  }));
}

// ------------------------------------------------------------------------------ the microphone

/** @param {Int16Array} samples @param {number} peak */
function heard(samples, peak) {
  const before = Math.floor(line.place / line.rate);
  line.send(samples);
  const second = Math.floor(line.place / line.rate);
  if (second > before) {
    // when the last sample of that second had come
    arrivals.set(second, performance.now());
    arrivals.delete(second - FORGOTTEN_SECONDS);
  }
  const at = performance.now();
  peakHeld = Math.max(peak, peakHeld * 0.9);
  if (peak >= CLIPPED) clippedAt = at;
  if (at - meterAt < METER_MILLISECONDS) return;
  meterAt = at;
  const level = at - clippedAt < 1000 ? "clipped" : peakHeld < QUIET ? "quiet" : "good";
  const share = Math.max(0, 1 + (20 * Math.log10(Math.max(peakHeld, 1e-6))) / 60);
  for (const id of ["meter", "live-meter"]) {
    $(id).dataset.level = level;
    $(id).style.setProperty("--to", `${(100 * share).toFixed(0)}%`);
  }
}

async function openMicrophone() {
  try {
    await microphone.start();
  } catch (error) {
    const why = {
      NotAllowedError: "Microphone blocked. Allow it beside the address, then retry.",
      NotFoundError: "There is no microphone. Plug one in, then try again.",
      NotReadableError: "The microphone is taken by another program. Close that, then try again.",
      SecurityError: "Browsers let a page hear the microphone over https alone, or on this computer at 127.0.0.1.",
    }[error.name];
    problem(why || `The microphone cannot be heard: ${error.message}`);
    return false;
  }
  const processed = microphone.processed;
  text("raw", processed.length
    ? `Your browser still applies ${processed.join(" and ")}, which alters your voice and the bits. Switch it off in the browser or the system, or use another browser.`
    : "Heard as it is: the browser's echo cancellation, noise suppression and automatic gain are off.");
  return true;
}

/** @param {string} lamp @param {string} words */
function state(lamp, words) {
  $("lamp").dataset.state = lamp;
  text("listening-state", words);
}

function listening() {
  if (now.recording) {
    const { name, begun } = now.recording;
    state(now.over ? "off" : "on", now.over ? `Measured: ${name}` : `${begun ? "Measuring" : "Sending"} ${name}`);
  } else if (now.over) state("off", "Not listening");
  else if (now.paused) state("off", "Paused: nothing is heard");
  else state("on", `Listening to ${now.name}`);
}

// --------------------------------------------------------------------------------- enrolling

$("who").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (knownNames.has(name)) knownAlready(name);
  else if (name) enrol(name);
});
$("begin").disabled = false; // before, the browser would have sent the form itself
$("again").addEventListener("click", () => enrol(now.name, true));
$("retake").addEventListener("click", () => enrol(now.name, true));
$("cancel").addEventListener("click", () => {
  stopAll("cancel");
  show("welcome");
});
$("speak").addEventListener("click", () => listen(now.name));

/** @param {string} name @param {boolean} replace */
async function enrol(name, replace = false) {
  if (!now.over) await ended("cancel");
  if (!(await openMicrophone())) return;
  now.name = name;
  now.over = false;
  show("reading");
  progress(0, now.wanted);
  text("advice", "Waiting for your voice.");
  line.begin(microphone.rate);
  line.ask({ do: "enrol", name, rate: microphone.rate, replace });
}

/** @param {number} speech @param {number} wanted */
function progress(speech, wanted) {
  $("progress").max = wanted;
  $("progress").value = speech;
  text("progress-text", `${Math.floor(speech)} of ${Math.ceil(wanted)} s`);
}

// -------------------------------------------------------------------------------- listening

/** @param {string} name */
async function listen(name) {
  if (!now.over) await ended("cancel");
  if (!(await openMicrophone())) return;
  now.name = name;
  now.over = now.paused = false;
  now.recording = null;
  arrangeControls(false);
  arrivals = new Map();
  latenesses = [];
  show("controls");
  press("pause", false, "Pause");
  line.begin(microphone.rate);
  const protect = $("anonymiser").value;
  back.begin(microphone.rate, microphone.context, protect);
  $("sound-back").hidden = !protect;
  $("save-back").disabled = true;
  line.ask({ do: "listen", name, rate: microphone.rate, threshold: slider(), protect });
  listening();
}

// ------------------------------------------------------------------------------ recordings

/** What stands among the controls, and below. @param {boolean} people several are shown */
function arrangeControls(people) {
  document.body.dataset.source = now.recording ? "recording" : "microphone";
  document.body.dataset.people = people ? "yes" : "no";
  $("measured-row").hidden = !now.recording;
  text("end", now.recording ? (now.over ? "Back" : "Cancel") : "End");
  for (const name of ["run.html", "run.png", "run.jsonl"]) {
    $(`download-${name}`).setAttribute("href", `/download/${name}?session=${line.session}`);
  }
}

/** @param {string} label @param {number} share @param {string} words */
function measured(label, share, words) {
  text("measured-label", label);
  $("measured").value = share;
  text("measured-text", words);
}

/** @param {number} seconds that were measured */
function measuredTo(seconds) {
  if (!now.recording || !now.recording.begun) return;
  const of = now.recording.seconds;
  measured("Measured so far", of ? Math.min(1, seconds / of) : 0, of ? `${clock(seconds)} of ${clock(of)}` : clock(seconds));
}

/** @param {File} recording @param {File | null} turns */
async function measure(recording, turns) {
  if (!(await line.answered())) return problem("The program does not answer. Is it still running?");
  if (!now.over) return problem("One thing at a time: end what is going on first.");
  const files = turns ? [recording, turns] : [recording];
  const [one, other] = files.map(({ name, size }) => ({ name, size }));
  now.recording = { name: recording.name, seconds: null, begun: false };
  now.name = $("whose").value;
  now.over = now.paused = false;
  show("controls");
  arrangeControls(false);
  measured("Sent", 0, "");
  listening();
  line.ask({ do: "measure", name: now.name, recording: one, turns: other || null, threshold: slider() });
  const all = await line.deliver(files, (share) => {
    measured("Sent", share, `${Math.round(100 * share)} %`);
    return !now.over;
  });
  if (!all && !now.over) failed("The connection was lost. Drop the recording again.");
  return undefined;
}

/** Nothing is measured after all. @param {string} words */
function failed(words) {
  now.over = true;
  now.recording = null;
  show("welcome");
  problem(words);
}

const TURNS = /\.(rttm|txt|json|vtt|srt|tsv)$/i;

/** Measure what was dropped or chosen. @param {File[]} files */
function take(files) {
  const turns = files.filter(({ name }) => TURNS.test(name));
  const recordings = files.filter(({ name }) => !TURNS.test(name));
  if (recordings.length !== 1 || turns.length > 1) {
    return problem(recordings.length ? "One recording at a time, please, with one file of who speaks when."
      : "Choose a recording first.");
  }
  return measure(recordings[0], turns[0] || null);
}

$("of-recording").addEventListener("submit", (event) => {
  event.preventDefault();
  take([...$("recording").files, ...$("turns").files]);
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.dataset.drop = "yes";
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.dataset.drop = "no";
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.dataset.drop = "no";
  if (event.dataTransfer) take([...event.dataTransfer.files]);
});

// ------------------------------------------------------------------------ before and after

/** What each does, in words. @type {Record<string, string>} */
const ANONYMISERS = {
  mcadams: "McAdams: formants moved", pitch: "another pitch", formant: "other formants",
  voice: "another pitch and other formants", whisper: "a whisper", noise: "noise",
  usc: "spoken anew by a network (usc)",
};

async function listAnonymisers() {
  const answer = await fetch("/anonymisers");
  if (!answer.ok) return;
  const known = await answer.json();
  $("anonymiser").append(...known.map((method) =>
    make("option", { value: method }, ANONYMISERS[method.split(":")[0]] || method)));
}

$("anonymiser").addEventListener("change", async () => {
  if (now.over || now.recording) return;
  await ended("stop");
  listen(now.name);
});
$("hear-back").addEventListener("change", () => {
  back.heard = $("hear-back").checked;
});
$("save-back").addEventListener("click", () => {
  const address = URL.createObjectURL(back.wav());
  const link = make("a", { href: address, download: "protected.wav" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
});

// -------------------------------------------------------------------------------- threshold

const slider = () => Number($("bits-threshold").value);

function sayThreshold() {
  const people = 2 ** slider();
  const near = people < 1000 ? Math.round(people) : Number(people.toPrecision(2));
  const highest = slider() === Number($("bits-threshold").max);
  const words = `${fixed(slider())} bits: 1 person in ${near.toLocaleString("en")} matches${
    highest ? ". No higher alert can fire" : ""}`;
  text("bits-threshold-text", words);
  $("bits-threshold").setAttribute("aria-valuetext", words);
}

/** A threshold that no figure can reach cannot be set. @param {number} most */
function limitThreshold(most) {
  $("bits-threshold").max = String(most); // which lowers the value, too
  sayThreshold();
}

$("bits-threshold").addEventListener("input", () => {
  sayThreshold();
  clearTimeout(sending);
  sending = setTimeout(() => {
    line.ask({ do: "threshold", bits: slider() });
    if (run) run.standOn([["bits", slider()]]);
    redraw();
  }, SLIDER_MILLISECONDS);
});
sayThreshold();

/** @param {string} id @param {boolean} on @param {string} words */
function press(id, on, words) {
  $(id).setAttribute("aria-pressed", String(on));
  text(id, words);
}

function showInHouse() {
  line.ask({ do: "house", show: $("in-house").checked });
}

$("in-house").addEventListener("change", showInHouse);
$("pause").addEventListener("click", async () => {
  if (now.over) return listen(now.name);
  now.paused = !now.paused;
  if (now.paused) microphone.stop();
  else if (!(await openMicrophone())) now.paused = true;
  press("pause", now.paused, now.paused ? "Go on" : "Pause");
  return listening();
});
$("end").addEventListener("click", () => {
  if (now.over) return show("welcome");
  return stopAll("stop");
});
$("detail").addEventListener("click", () => {
  const on = $("detail").getAttribute("aria-pressed") !== "true";
  press("detail", on, "More detail");
  document.body.dataset.detail = on ? "yes" : "no";
  redraw();
});
$("forget").addEventListener("click", () => forgetPerson(now.name));

/** @param {"stop" | "cancel"} how */
function stopAll(how) {
  microphone.stop();
  now.paused = false;
  line.ask({ do: how });
}

/** End what is going on, and wait until it has ended. @param {"stop" | "cancel"} how */
async function ended(how) {
  now.cancelled = how === "cancel";
  stopAll(how);
  while (!now.over) await new Promise((go) => setTimeout(go, 50));
  now.cancelled = false;
}

/** @param {string} name */
async function forgetPerson(name) {
  if (!confirm(`Forget ${name}? The template is overwritten and removed; it cannot be had back.`)) return;
  if (!now.over) await ended("stop");
  const answer = await fetch("/forget", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name }),
  });
  show("welcome");
  if (!answer.ok) problem(await answer.text());
  await listPeople();
}

// ------------------------------------------------------------------- what the program says

/** @param {any} message */
function told(message) {
  if (message.type === "ready") {
    now.wanted = message.wanted;
    $("house").hidden = !message.house;
    if (!message.busy && !now.over) over();
  } else if (message.type === "progress") {
    progress(message.speech, message.wanted);
    const loud = message.level > -100;
    text("advice", message.trouble || (message.speech || loud ? "Good: go on." : "Waiting for your voice."));
  } else if (message.type === "enrolled") {
    enrolled(message);
  } else if (message.type === "listening") {
    limitThreshold(message.most);
    if ($("in-house").checked) showInHouse();
    follow(`/events?session=${line.session}`, drawn);
  } else if (message.type === "measuring") {
    limitThreshold(message.most);
    Object.assign(now.recording || {}, { seconds: message.seconds, begun: true });
    arrangeControls(message.people);
    measuredTo(0);
    listening();
    const from = `/events?session=${line.session}`;
    text("spoken", "");
    if (message.people) followPeople(from, measuredTo);
    else follow(from, drawn);
  } else if (message.type === "error" && now.recording && !now.recording.begun) {
    failed(message.text);
  } else if (message.type === "error") {
    const exists = now.stage === "reading" && message.text.endsWith("is enrolled already");
    microphone.stop();
    now.over = true;
    if (exists) {
      show("welcome");
      knownAlready(now.name);
    } else problem(message.text);
    if (now.stage === "controls") listening();
  } else if (message.type === "over") {
    over();
  }
}

function over() {
  now.over = true;
  microphone.stop();
  if (now.stage !== "controls") return;
  if (now.recording && !now.recording.begun) return failed("");
  press("pause", false, "Speak again");
  arrangeControls(document.body.dataset.people === "yes");
  listening();
}

/** @param {any} message */
function enrolled({ name, seconds, sound, trouble, poor, notes }) {
  microphone.stop();
  if (now.cancelled) return;
  show("enrolled-now");
  text("enrolled-title", `Now it knows ${name}'s voice`);
  text("quality", `${Math.round(seconds)} s of speech. The sound: ${sound || "nothing is known of it"}.`);
  const bad = [trouble && `The recording was ${trouble}. Better read it again.`, poor, ...notes];
  fill("quality-notes", bad.filter(Boolean).map((each) => make("li", {}, each)));
  listPeople();
}

function drawn(shown, reading) {
  run = shown;
  if (reading && run.following) measuredTo(reading.seconds);
  if (!reading || !run.following || now.over) return;
  const came = arrivals.get(reading.seconds);
  if (came === undefined) return;
  arrivals.delete(reading.seconds);
  latenesses.push((performance.now() - came) / 1000);
  if (latenesses.length > 60) latenesses.shift();
  const last = [...latenesses].sort((a, b) => a - b);
  const middle = last[Math.floor(last.length / 2)];
  $("latency").dataset.seconds = JSON.stringify(latenesses);
  text("latency", `What was said at ${clock(reading.seconds)} was shown ${fixed(middle, 2)} s later (median of the last minute).`);
}
