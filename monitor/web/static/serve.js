// The page of `monitor serve`. It enrols a speaker, then follows a run of the browser's microphone.
import { $, fill, make, text } from "./dom.js";
import { cutShort, follow, redraw, unfollow } from "./follow.js";
import { DOWN, Line, LOGGED_OUT, Microphone } from "./microphone.js";
import { followPeople } from "./people.js";
import { ProtectedSound } from "./protectedsound.js";
import { about, capital, clock, fixed } from "./words.js";

const CLIPPED = 0.999;
const QUIET = 0.01; // of full scale, -40 dB
const METER_MILLISECONDS = 60;
const SLIDER_MILLISECONDS = 100;
const FORGOTTEN_SECONDS = 600;
const ASKED_MILLISECONDS = 1000;

/** @typedef {"welcome" | "reading" | "enrolled-now" | "controls"} Stage */

/** The current speaker and activity. */
const now = {
  /** @type {Stage} */ stage: "welcome",
  name: "",
  wanted: 60,
  /** Whether an older template is replaced. */ replace: false,
  /** Whether something is being started. */ starting: false,
  paused: false,
  cancelled: false,
  over: true,
  /** The recording being measured. @type {{name: string, seconds: number | null, begun: boolean} | null} */
  recording: null,
};
/** Arrival time of each second of audio, from which the lag of its reading is computed. @type {Map<number, number>} */
let arrivals = new Map();
/** @type {number[]} */ let latenesses = [];
let run = null;
let meterAt = 0;
let peakHeld = 0;
let clippedAt = -Infinity;
/** @type {number | undefined} */ let sending;

const microphone = new Microphone(heard, (seconds) => {
  line.miss(seconds);
  report();
});
const line = new Line(told, () => {
  if (line.ended && !now.over) over();
  report();
});

const back = new ProtectedSound();
line.sounded = (message) => {
  back.take(message);
  $("save-back").disabled = !back.seconds;
};

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
  for (const each of document.querySelectorAll("#steps li")) {
    each.setAttribute("aria-current", /** @type {HTMLElement} */ (each).dataset.stage === stage ? "step" : "false");
  }
  problem("");
  if (focus) $(stage).focus();
}

/** @param {string} words */
function problem(words) {
  const place = `${now.stage}-problem`;
  text(place, capital(words.trim()));
  if (words) $(place).scrollIntoView({ block: "nearest" });
}

/** Show a lost microphone or connection where the user looks. */
function report() {
  const lost = microphone.gone ? "The microphone is gone. Plug it in or allow it again"
    : line.open ? "" : now.over ? line.trouble : "The program does not answer: trying again";
  if (microphone.gone) meter("quiet", 0);
  if (now.over) problem(lost);
  else if (now.stage === "reading") text("advice", lost ? `${lost}, or press “Start again”.` : "Continue reading.");
  else if (lost) state("lost", lost);
  else listening();
}

/**
 * Start one activity at a time. A second click has no effect.
 * @param {() => Promise<unknown>} work
 */
async function once(work) {
  if (now.starting) return;
  now.starting = true;
  await work().finally(() => {
    now.starting = false;
  });
}

/**
 * Send a request to the program, and show its reason if it refuses.
 * @param {string} path @param {RequestInit} options @returns {Promise<Response | null>}
 */
async function request(path, options = {}) {
  const answer = await fetch(path, options).catch(() => null);
  if (answer && answer.ok) return answer;
  problem(!answer ? DOWN : answer.status === 401 ? LOGGED_OUT : await answer.text());
  return null;
}

/** Enrolled people, once the program has answered. @returns {Promise<{name: string, enrolled: string}[] | null>} */
async function askPeople(query = "") {
  const answer = await request(`/people${query}`);
  return answer && answer.json();
}

/** @returns {Promise<boolean>} */
async function connected() {
  if (await line.answered()) return true;
  problem(line.trouble);
  return false;
}

async function listPeople() {
  const people = await askPeople();
  if (!people) return;
  $("known").hidden = !people.length;
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
    // arrival time of the last sample of that second
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
  meter(level, share);
}

/** @param {"clipped" | "quiet" | "good"} level @param {number} share of its width */
function meter(level, share) {
  for (const id of ["meter", "live-meter"]) {
    $(id).dataset.level = level;
    $(id).style.setProperty("--to", `${(100 * share).toFixed(0)}%`);
  }
}

/** @returns {Promise<boolean>} whether it is open */
async function openMicrophone() {
  const asking = setTimeout(() => problem("Allow the microphone in your browser."), ASKED_MILLISECONDS);
  try {
    await microphone.start();
  } catch (error) {
    const why = {
      NotAllowedError: "Microphone blocked. Allow it beside the address, then retry.",
      NotFoundError: "There is no microphone. Plug one in, then try again.",
      NotReadableError: "Another program is using the microphone. Close it, then try again.",
      SecurityError: "Browsers allow the microphone only over https, or at 127.0.0.1 on this computer.",
    }[error.name];
    problem(why || `The microphone cannot be opened: ${error.message}`);
    return false;
  } finally {
    clearTimeout(asking);
  }
  problem("");
  if (!microphone.open) return false; // it has been stopped
  const processed = microphone.processed;
  text("raw", processed.length
    ? `Your browser still applies ${processed.join(" and ")}, which alters your voice and the bits. Switch it off in the browser or the system, or use another browser.`
    : "Unprocessed audio: the browser's echo cancellation, noise suppression and automatic gain are off.");
  if (line.open) return true;
  microphone.stop();
  problem(line.trouble);
  return false;
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
  else if (now.paused) state("off", "Paused: no audio is measured");
  else state("on", `Listening to ${now.name}`);
}

// --------------------------------------------------------------------------------- enrolling

$("who").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (name) enrol(name);
});
$("begin").disabled = false; // until now the browser would have submitted the form itself
$("again").addEventListener("click", () => enrol(now.name, now.replace));
$("retake").addEventListener("click", () => enrol(now.name, true));
$("cancel").addEventListener("click", () => {
  stopAll("cancel");
  show("welcome");
});
$("speak").addEventListener("click", () => listen(now.name));

/** @param {string} name @param {boolean} replace */
function enrol(name, replace = false) {
  return once(async () => {
    now.replace = replace;
    if (!now.over) await ended("cancel");
    const query = now.replace ? "" : `?new=${encodeURIComponent(name)}`;
    if (!(await connected()) || !(await askPeople(query)) || !(await openMicrophone())) return;
    now.name = name;
    now.over = false;
    show("reading");
    progress(0, now.wanted);
    text("advice", "Waiting for your voice.");
    line.begin(microphone.rate);
    line.ask({ do: "enrol", name, rate: microphone.rate, replace: now.replace });
  });
}

/** @param {number} speech @param {number} wanted */
function progress(speech, wanted) {
  $("progress").max = wanted;
  $("progress").value = speech;
  text("progress-text", `${Math.floor(speech)} of ${Math.ceil(wanted)} s`);
}

// -------------------------------------------------------------------------------- listening

/** @param {string} name */
function listen(name) {
  return once(() => begin(name));
}

/** @param {string} name */
async function begin(name) {
  if (!now.over) await ended("stop");
  const people = (await connected()) && (await askPeople());
  if (!people) return;
  if (!people.some((each) => each.name === name)) return problem(`${name} is not enrolled here.`);
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

/** Arrange the controls and the panels below them. @param {boolean} people several are shown */
function arrangeControls(people) {
  document.body.dataset.source = now.recording ? "recording" : "microphone";
  document.body.dataset.people = people ? "yes" : "no";
  $("measured-row").hidden = !now.recording;
  text("end", now.over ? "Back" : now.recording ? "Cancel" : "End");
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
  if (!(await connected())) return undefined;
  if (!now.over || now.starting) return problem("End the current measurement first.");
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

/** The measurement could not start. @param {string} words */
function failed(words) {
  now.over = true;
  now.recording = null;
  show("welcome");
  problem(words);
}

const TURNS = /\.(rttm|txt|json|vtt|srt|tsv)$/i;

/** Measure dropped or chosen files. @param {File[]} files */
function take(files) {
  const turns = files.filter(({ name }) => TURNS.test(name));
  const recordings = files.filter(({ name }) => !TURNS.test(name));
  if (recordings.length !== 1 || turns.length > 1) {
    return problem(recordings.length ? "Choose one recording at a time, with at most one file of speaker turns."
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

/** Effect of each anonymiser, in words. @type {Record<string, string>} */
const ANONYMISERS = {
  mcadams: "McAdams: formants moved", pitch: "another pitch", formant: "other formants",
  voice: "another pitch and other formants", whisper: "a whisper", noise: "noise",
  usc: "resynthesised by a network (usc)",
};

async function listAnonymisers() {
  const answer = await fetch("/anonymisers");
  if (!answer.ok) return;
  const known = await answer.json();
  $("anonymiser").append(...known.map((method) =>
    make("option", { value: method }, ANONYMISERS[method.split(":")[0]] || method)));
}

$("anonymiser").addEventListener("change", () => {
  $("menu").togglePopover(false);
  if (!now.over && !now.recording) listen(now.name);
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
  const highest = slider() === Number($("bits-threshold").max);
  const words = `${fixed(slider())} bits: 1 person in ${about(2 ** slider())} matches${
    highest ? ". No higher alert can fire" : ""}`;
  text("bits-threshold-text", words);
  $("bits-threshold").setAttribute("aria-valuetext", words);
}

/** Limit the slider to thresholds that a figure can reach. @param {number} most */
function limitThreshold(most) {
  $("bits-threshold").max = String(most); // the browser lowers the value to this, too
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
$("pause").addEventListener("click", () => {
  if (now.over) return listen(now.name);
  if (now.paused) return once(async () => pause(!(await openMicrophone())));
  microphone.stop();
  return pause(true);
});

/** @param {boolean} paused */
function pause(paused) {
  if (now.over) return;
  now.paused = paused;
  press("pause", paused, paused ? "Continue" : "Pause");
  if (paused) meter("quiet", 0);
  listening();
}

$("end").addEventListener("click", (event) => {
  if (!now.over) stopAll("stop");
  else if (event.detail < 2) show("welcome"); // ignore the second click of a double click
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
  if (!line.open) over(); // the program stops it once it answers again
}

/** End the current activity and wait for it to end. @param {"stop" | "cancel"} how */
async function ended(how) {
  now.cancelled = how === "cancel";
  stopAll(how);
  while (!now.over) await new Promise((go) => setTimeout(go, 50));
  now.cancelled = false;
}

/** @param {string} name */
async function forgetPerson(name) {
  if (!confirm(`Forget ${name}? The template is overwritten and deleted. It cannot be recovered.`)) return;
  if (!now.over) await ended("stop");
  show("welcome");
  const answer = await request("/forget", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name }),
  });
  if (answer) await listPeople();
}

// ---------------------------------------------------------------- messages of the program

/** @param {any} message */
function told(message) {
  if (message.type === "ready") {
    now.wanted = message.wanted;
    $("house").hidden = !message.house;
    if (!message.busy && !now.over) over(message.same ? "" : "The connection was lost for too long. Please start again.");
  } else if (message.type === "progress") {
    progress(message.speech, message.wanted);
    if (!microphone.open) return; // the advice already gives the reason
    text("advice", message.trouble || (message.level > -100 ? "Good: continue." : "Waiting for your voice."));
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
    over();
    problem(message.text);
  } else if (message.type === "over") {
    over();
  }
}

/** The activity has ended. @param {string} why the session was lost */
function over(why = "") {
  now.over = true;
  microphone.stop();
  meter("quiet", 0);
  if (now.recording && !now.recording.begun) return failed(why);
  if (now.stage === "reading") text("advice", "");
  if (why) problem(why);
  if (now.stage !== "controls") return;
  if (why || !line.open) cutShort();
  press("pause", false, "Speak again");
  arrangeControls(document.body.dataset.people === "yes");
  listening();
}

/** @param {any} message */
function enrolled({ name, seconds, sound, trouble, poor, notes }) {
  microphone.stop();
  now.replace = true; // the next enrolment replaces this one
  if (now.cancelled) return;
  show("enrolled-now");
  text("enrolled-title", `${name}: your voice is enrolled`);
  text("quality", `${Math.round(seconds)} s of speech. Sound conditions: ${sound || "unknown"}.`);
  const bad = [trouble && `${capital(trouble)}. Then read it again.`, poor, ...notes];
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
  text("latency", `Lag: ${fixed(middle)} s from speech to screen (median of the last minute).`);
}
