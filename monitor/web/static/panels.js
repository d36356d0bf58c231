// Panels beside the curve, for one reading of the run.
import { $, fill, make, researching, share, text } from "./dom.js";
import { figureOf } from "./protected.js";
import {
  about as rounded, capital, clock, closedSet, fixed, guidesOf, isoTime, known, length, mostOf, ofEvidence,
  percent, plural, upTo,
} from "./words.js";

const SOON_SECONDS = 30;
const SILENT_SECONDS = 10; // longer silence is not just a pause before the first word
const BEFORE_SECONDS = 10;
const SHOWN = 5; // candidates with their own row
const CROWD = 1000;
const ACROSS = 50;

export function header(run, reading, status) {
  const names = run.start.recordings || [];
  text("source", names.length > 2 ? `${names[0]} and ${names.length - 1} more` : names.join(", "));
  text("clock", clock(reading ? reading.seconds : 0));
  text("spoken", reading
    ? `${length(reading.speech)} of speech${run.start.carried ? " in total" : ""}` : "");
  const [state, words] = status;
  $("status").dataset.state = state;
  text("status", words);
}

const banner = (kind, title, words) =>
  make("p", { class: `banner ${kind}` }, make("strong", {}, title), ` ${words}`);

// Urgent messages, above the number.
export function banners(run, reading) {
  const made = [];
  if (reading) {
    if (run.closed) {
      const { said, seconds } = run.closed;
      made.push(banner("danger", `${capital(said.title)} at ${clock(seconds)}:`, `${said.words}.`));
    }
    for (const alert of run.raised) {
      const what = run.isHeadline(alert.field) ? `At least ${fixed(alert.threshold)} bits` : alert.rule;
      made.push(banner("danger", what, `since ${clock(alert.seconds)} (alert ${alert.rule})`));
    }
    for (const warning of run.warned) {
      const matches = (alert) =>
        alert.field === warning.field && alert.threshold === warning.threshold;
      if (run.raised.some(matches)) continue; // the alert itself is shown
      made.push(banner("warn", "Soon:", `${warning.rule} (since ${clock(warning.seconds)})`));
    }
    if (reading.change) {
      made.push(banner("warn", `${capital(reading.said.voice)}.`,
        `${capital(reading.said.whose)}` +
        `${reading.excluded_seconds ? "" : ": they include both voices"}. Alerts are paused.`));
    }
    if (reading.said.mixed) made.push(banner("warn", "Two voices:", `${reading.said.mixed}.`));
    if (reading.said.others) {
      const [title, names] = reading.said.others;
      made.push(banner("warn", `${capital(title)}:`, names));
    }
    if (reading.said.nobody) {
      made.push(banner("warn", `${capital(reading.said.nobody)}.`, `${capital(reading.said.enrolled)}.`));
    }
    if (reading.withheld) made.push(banner("warn", "Bits withheld.", reading.withheld));
  }
  refill("banners", made);
  notes(run);
}

// Notices, in a collapsed card below the curve.
function notes(run) {
  const notices = run.notices;
  const made = notices.map(([notice, level]) =>
    banner(level === "info" ? "info" : "warn", level === "info" ? "Note:" : "Warning:", notice));
  if (run.start.assumes_enrolled) {
    made.unshift(banner("info", "No speaker selected.",
      "This is the attacker's confidence, assuming that the speaker is one of the " +
      `${run.start.speakers} enrolled. It may be wrong.`));
  }
  refill("notes", made);
  const warnings = notices.filter(([, level]) => level !== "info");
  const box = $("notes-card");
  box.hidden = !made.length;
  box.dataset.level = warnings.length ? "warning" : "info";
  text("notes-count", plural(made.length, "note"));
  text("notes-newest", warnings.length ? `Warning: ${warnings[0][0]}` : "about this run and its limits");
}

function refill(id, made) {
  const key = made.map((each) => each.className + each.textContent).join("\n");
  if ($(id).dataset.key === key) return;
  $(id).dataset.key = key;
  fill(id, made);
}

export function hero(run, reading) {
  const watch = run.start.watch;
  const title = watch ? "Identity disclosed" : "Attacker's confidence";
  text("hero-title", title);
  if (!reading) return;
  const { bits, ceiling, change } = reading;
  if (change || run.begun(reading)) text("hero-title", change ? "More than one voice" : "Latest voice");
  const told = ofEvidence(reading);
  text("bits", fixed(bits));
  text("of", told ? `bits${reading.at_least ? " or more" : ""}` : `of ${fixed(ceiling, 2)} bits`);
  const { bits_low: low, bits_high: high } = reading;
  const spread = reading.said.spread ? `; ${reading.said.spread}` : "";
  text("limits", known(low) && reading.speech ? `95 % interval ${upTo(low, high, told && reading.at_least)}${spread}` : "");
  gauge(run, reading);
  text("odds", change ? "?" : capital(reading.said.left) || reading.said.odds || "–");
  $("odds").dataset.long = String(Boolean(reading.said.left) && !change);
  fill("sentence", [told ? widely(run, reading) : sentence(run, reading), ...careful(reading)]);
  text("closed", told || !reading.among ? closed(run, reading, told) : crowdOfNobody(reading));
  crowd(reading);
  $("hero").dataset.level = change ? "doubt" : run.raised.length ? "raised" : "calm";
}

// Warn if the audio is poor or does not match the templates.
function careful(reading) {
  return reading.said.care ? [" ", make("strong", {}, `${capital(reading.said.care)}.`)] : [];
}

// Meaning of the evidence in a crowd.
function widely(run, reading) {
  if (reading.change) return `${capital(reading.said.doubt)}.`;
  const begun = run.begun(reading);
  const said = capital(reading.said.crowd);
  return begun ? `The ${begun.said.voice}: ${said}.` : `${said}.`;
}

// Closed-set result: the attacker knows that the speaker is one of the N enrolled.
function closed(run, reading, told) {
  if (!told || reading.change) return "";
  const among = `Closed-set, among the ${run.start.speakers} enrolled, ${fixed(closedSet(reading))} of ${fixed(reading.ceiling)} bits: `;
  return among + sentence(run, reading, false);
}

// Without a watched speaker: the best match, allowing for people who are not enrolled.
const crowdOfNobody = (reading) => (reading.said.crowd ? `${capital(reading.said.crowd)}.` : "");

function sentence(run, reading, first = true) {
  if (reading.change) return `${capital(reading.said.doubt)}.`;
  const found = reading.said.verdict;
  if (!found) return "No bits at this moment.";
  const begun = first && run.begun(reading);
  const said = begun ? `The ${begun.said.voice}: ${found}` : first ? capital(found) : found;
  const guessing = run.start.watch && closedSet(reading) >= 0 ? ` (${run.start.said.chance})` : "";
  return `${said}${guessing}.`;
}

function gauge(run, reading) {
  const { bits, bits_low: low, bits_high: high } = reading;
  const full = run.evidence ? highest(run, reading) : reading.ceiling;
  const parts = [make("span", { class: "fill", vars: { to: share(bits || 0, full) } })];
  if (known(low)) {
    parts.push(make("span", {
      class: "range", vars: { from: share(low, full), to: share(high, full) },
    }));
  }
  for (const level of run.thresholds) {
    parts.push(make("span", { class: "mark", vars: { at: share(level, full) } }));
  }
  fill("gauge", parts);
}

// Evidence has no ceiling, but calibration limits what it supports.
const highest = (run, reading) =>
  Math.max(run.start.support_bits || 0, reading.support_bits || 0, reading.ceiling);

// A grid of 1,000 people, with those who match highlighted. A smaller share has no grid.
function crowd(reading) {
  const bits = ofEvidence(reading) && !reading.change && !reading.said.nobody ? reading.bits : NaN;
  const matching = Math.round(CROWD * Math.min(1, 2 ** -bits)) || 0;
  const dots = (from, to) => Array.from({ length: to - from }, (_, i) =>
    `M${1 + (from + i) % ACROSS} ${1 + Math.floor((from + i) / ACROSS)}h0`).join("");
  $("crowd").toggleAttribute("hidden", !matching);
  text("crowd-words", matching ? `${reading.at_least ? "At most" : "About"} ${rounded(matching)} of 1,000 people match.` : "");
  if (!matching || $("crowd").dataset.matching === String(matching)) return;
  $("crowd").dataset.matching = String(matching);
  $("matching").setAttribute("d", dots(0, matching));
  $("others").setAttribute("d", dots(matching, CROWD));
}

export function threshold(run, reading) {
  const { following } = run;
  const box = $("threshold");
  const levels = run.thresholds;
  const show = (state, value, words, note = "", todo = []) => {
    box.dataset.state = state;
    advise(todo);
    text("threshold-value", value);
    text("threshold-words", words);
    text("threshold-note", note);
  };
  const other = (run.start.alerts || []).map((each) => each.rule);
  if (run.closed && levels.every((bits) => bits === run.closed.threshold)) {
    show("over", "Spent", `The budget of ${run.closed.threshold} bits, at ${clock(run.closed.seconds)}.`);
    return;
  }
  if (!levels.length && other.length) {
    const last = run.raised[run.raised.length - 1];
    if (last) show("over", "Exceeded", `${last.rule}, since ${clock(last.seconds)}.`);
    else show("calm", "Not reached", `${other.join(", ")}.`);
    return;
  }
  if (!levels.length) {
    const slider = $("bits-threshold");
    show("none", slider ? "Waiting" : "Not set", slider ? `Alert at ${fixed(Number(slider.value))} bits.` : "No alert set.");
    return;
  }
  if (reading && reading.change) {
    show("none", "Paused", "The speaker may have changed.",
      "Alerts resume when the evidence restarts or the first voice returns.");
    return;
  }
  const now = reading && known(reading.bits) ? reading.bits : -Infinity;
  const raised = reading ? run.raised.filter((e) => run.isHeadline(e.field)) : [];
  const next = levels.find((bits) => bits > now && !raised.some((e) => e.threshold === bits));
  if (raised.length && next === undefined) {
    const first = raised[raised.length - 1];
    show("over", "Exceeded", `${fixed(first.threshold)} bits, since ${clock(first.seconds)}.`,
      `After ${length(first.speech)} of speech.`, whatToDo(run, reading, first.threshold));
    return;
  }
  const bits = next === undefined ? levels[levels.length - 1] : next;
  const over = raised.length
    ? `${fixed(raised[raised.length - 1].threshold)} bits were exceeded at ${clock(raised[raised.length - 1].seconds)}.`
    : `The threshold is ${fixed(bits)} bits${run.meaning(bits) ? `, ${run.meaning(bits)}` : ""}.`;
  if (next === undefined) {
    show("soon", "Reached", "An alert follows if this lasts.", over, whatToDo(run, reading, bits));
    return;
  }
  const ahead = following
    && run.forecast.find((each) => each.threshold === bits && run.isHeadline(each.field));
  if (run.beyond(bits)) {
    const most = run.evidence ? `calibration supports ${fixed(run.most)} bits`
      : `the maximum among ${run.start.speakers} people is ${fixed(run.most)} bits`;
    show("soon", "Never", `An alert at ${fixed(bits)} bits cannot fire: ${most}.`,
      "Set a lower threshold.", raised.length ? whatToDo(run, reading, raised[raised.length - 1].threshold) : []);
  } else if (!following || run.end) {
    show(raised.length ? "over" : "calm", "Not reached", `${fixed(bits)} bits were not reached${following ? "" : " by then"}.`, over);
  } else if (reading && !reading.speech && reading.seconds >= SILENT_SECONDS) {
    show("none", "No speech", "Ignore the figures until there is speech.", over);
  } else if (ahead && known(ahead.seconds_left)) {
    const seconds = ahead.seconds_left;
    const soon = seconds < SOON_SECONDS;
    show(soon ? "soon" : "calm", `in ${roughly(seconds)}`,
      `to ${fixed(bits)} bits at this rate.`, over,
      soon ? ["Stop or mute now to stay below."] : raised.length ? whatToDo(run, reading, bits) : []);
  } else {
    show("calm", "Not in sight", `${fixed(bits)} bits are far off at this rate.`, over);
  }
}

function advise(lines) {
  const key = lines.join("\n");
  if ($("todo").dataset.key === key) return;
  $("todo").dataset.key = key;
  fill("todo", lines.map((line) => make("li", {}, line)));
}

// Advice once this many bits are disclosed.
function whatToDo(run, reading, bits) {
  const over = Boolean(run.recorded || run.end);
  const until = run.below(bits);
  const before = known(until) && run.start.step_seconds ? until - run.start.step_seconds : null;
  const { stop = "", unchanged = "", share_first: first = "" } = run.start.said.advice || {};
  const lines = over ? [
    known(before) && before > 0 ? first.replace("{}", clock(before)) : unchanged,
  ] : [
    stop,
    "If you must continue, be brief and write the rest.",
  ];
  const higher = Math.floor(Math.max(bits, reading.bits)) + 1;
  return [...lines, protection(run, reading, bits), run.beyond(higher)
    ? `A higher alert cannot fire: calibration supports ${fixed(run.most)} bits.`
    : `If you accept this disclosure, raise the threshold to ${higher} bits.`];
}

// Advice on the anonymiser, as far as it was measured.
function protection(run, reading, bits) {
  const side = run.start.protected;
  if (!side) return "An anonymiser, which alters your voice before sending, may help.";
  if (reading.said.uninformed) return `${side.method} is untested against an attacker who knows it.`;
  const figure = figureOf(reading);
  if (!known(figure.bits)) return `${side.method} has no measurement yet.`;
  return figure.bits < bits && !figure.cut
    ? `Send only the ${side.method} voice: ${reading.said.attacker} learns ${fixed(figure.bits)} bits.`
    : `${side.method} is not enough: ${reading.said.attacker} still learns ${fixed(figure.bits)} bits.`;
}

function roughly(seconds) {
  if (seconds < 10) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 95) return `${5 * Math.round(seconds / 5)} s`;
  return `${Math.round(seconds / 60)} min`;
}

export function features(run, reading) {
  if (!reading || !reading.features) return;
  const figure = run.start.watch ? "local_bits" : "gain_bits";
  const rows = Object.entries(reading.features).map(([name, row]) => {
    const names = run.start.said.features || {};
    const [plain, code] = Object.hasOwn(names, name) ? [capital(names[name]), name] : [name, ""];
    const bits = row[figure];
    const parts = [make("span", { class: "fill", vars: { to: share(bits || 0, reading.ceiling) } })];
    if (known(row[`${figure}_low`])) {
      parts.push(make("span", {
        class: "range",
        vars: {
          from: share(row[`${figure}_low`], reading.ceiling),
          to: share(row[`${figure}_high`], reading.ceiling),
        },
      }));
    }
    parts.push(make("span", { class: "tick", vars: { at: share(row.expected_bits || 0, reading.ceiling) } }));
    const facts = [(reading.said.usable || {})[name] || length(row.usable)];
    if (known(row.rank)) facts.push(`rank ${Number(row.rank.toFixed(1))} of ${run.start.speakers}`);
    if (known(row.rank_bits)) facts.push(`rank alone ${fixed(row.rank_bits)} bits`);
    if (!row.usable) facts.splice(0, facts.length, "no speech yet");
    return make("div", { class: "feature" },
      make("p", { class: "feature-name" }, plain, " ", make("span", { class: "muted" }, code)),
      make("p", { class: "feature-bits" }, fixed(bits), make("span", { class: "muted" }, " bits")),
      make("div", { class: "gauge thin", "aria-hidden": "true" }, ...parts),
      make("p", { class: "muted small facts" }, facts.join(" · ")));
  });
  fill("features", rows);
  text("features-note", rows.length
    ? "Bar: this voice, with its confidence interval. Mark: an average voice at this length. Features overlap, so their bits do not add up."
    : "");
}

// One thin bar per candidate, most probable first.
function strip(run, all, then) {
  const rising = ([name, p]) => then.has(name) && p - then.get(name) >= 0.01;
  const bars = all.map((each) => {
    const [name, p] = each;
    const kind = name === run.start.watch ? "watched" : rising(each) ? "rising" : "";
    return make("span", { class: kind, title: `${name}: ${percent(p)}`,
      vars: { to: share(Math.sqrt(p || 0), 1) } });
  });
  const risen = all.filter((each) => rising(each) && each[0] !== run.start.watch).length;
  const shown = all.length < run.start.speakers
    ? `Top ${all.length} of ${run.start.speakers}` : `All ${all.length}`;
  fill("strip", all.length > SHOWN ? [
    make("div", { class: "strip", "aria-hidden": "true" }, ...bars),
    make("p", { class: "muted small" },
      `${shown}, most probable first. Bar heights are square roots of probabilities. ` +
      `${risen ? plural(risen, "bystander") : "No bystander"} rose in the last ${BEFORE_SECONDS} s.`),
  ] : []);
}

export function candidates(run, reading) {
  if (!reading) return;
  const all = reading.top || [];
  const top = all.slice(0, SHOWN);
  const before = run.at(reading.seconds - BEFORE_SECONDS);
  const then = new Map(before && before !== reading ? before.top || [] : []);
  const rows = top.map(([name, p]) => {
    const watched = name === run.start.watch;
    const rise = then.has(name) && known(p) ? p - then.get(name) : NaN;
    const moved = Math.abs(rise) >= 0.01
      ? make("span", { class: `rise ${rise > 0 ? "up" : "down"}`, title: `${BEFORE_SECONDS} s ago: ${percent(then.get(name))}` },
        rise > 0 ? "▲" : "▼", make("span", { class: "hidden" }, rise > 0 ? "rising" : "falling"))
      : null;
    return make("li", { class: watched ? "watched" : "" },
      make("span", { class: "name" }, make("span", { class: "who" }, name),
        watched ? make("span", { class: "tag" }, "watched") : null),
      make("span", { class: "percent" }, moved, percent(p)),
      make("span", { class: "bar", "aria-hidden": "true", vars: { to: share(p || 0, 1) } }));
  });
  const rest = 1 - top.reduce((sum, [, p]) => sum + (p || 0), 0);
  const others = (run.start.speakers || 0) - top.length;
  if (top.length && others > 0) {
    rows.push(make("li", { class: "rest" },
      make("span", { class: "name" }, `${plural(others, "other")} together`),
      make("span", { class: "percent" }, percent(Math.max(0, rest))),
      make("span", { class: "bar", "aria-hidden": "true", vars: { to: share(rest, 1) } })));
  }
  fill("candidates", rows);
  strip(run, all, then);
  fill("enrolled", enrolment(reading, run.start));
}

function enrolment(reading, start) {
  const prior = start.enrolled_prior ?? 0.5;
  const { enrolled, nobody, unknown } = reading.said;
  if (!enrolled) return [];
  const asked = nobody ? "" : `${start.said.asked} `;
  const before = `${percent(prior)} before any speech`;
  const muted = unknown ? ` ${unknown}.` : nobody ? ` ${before}.` : ` (${before})`;
  const said = `${capital(enrolled)}${nobody || unknown ? "." : ""}`;
  return [make("p", { class: "small" }, asked, make("strong", {}, said),
    make("span", { class: "muted" }, muted))];
}

// Style of an event; its text is in the record.
function look(event) {
  if (event.type === "alert") {
    if (event.state !== "raised") return "ok";
    return event.level === "warning" ? "warn" : "danger";
  }
  if (event.type === "notice") return event.level === "info" ? "" : "warn";
  return { gap: "warn", change: "change" }[event.type] || "";
}

export function log(run, reading) {
  if (!reading) return;
  const key = `${run.name} ${run.last} ${run.happened.length}`;
  if ($("log").dataset.key === key) return;
  $("log").dataset.key = key;
  const shown = run.happened.slice(-50).reverse();
  const rows = shown.map((event) => {
    const lost = event.reason && !event.detail && event.lost_seconds ? `, ${length(event.lost_seconds)}` : "";
    const [title, words] = [capital(event.said.title), `${event.said.words || ""}${lost}`];
    return make("li", { class: look(event) },
      make("span", { class: "when" }, clock(event.seconds)),
      make("span", {}, make("strong", {}, title), words ? ` ${words}` : ""));
  });
  if (run.end && run.following) {
    const ended = (words) => rows.unshift(make("li", { class: "warn" },
      make("span", { class: "when" }, clock(run.end.seconds)), make("span", {}, words)));
    if (run.end.stopped) ended(`Stopped by ${run.end.stopped}`);
    for (const failure of run.end.failures || []) ended(`Failed: ${failure}`);
  }
  fill("log", rows.length ? rows
    : [make("li", { class: "muted none" }, "No events.")]);
}

function pairs(id, rows) {
  fill(id, rows.filter(Boolean).map(([name, value, note]) => make("div", {},
    make("dt", {}, name),
    make("dd", {}, value, note ? make("span", { class: "muted small" }, ` ${note}`) : null))));
}

const guide = (bits, most) =>
  [`${fixed(bits)} bits`, known(bits) && bits > most - 0.005 ? "maximum" : ""];

export function numbers(run, reading) {
  const s = run.start;
  if (!reading) return;
  const guides = researching() && guidesOf(reading);
  const both = (name) => (known(reading[`${name}_low`])
    ? `${fixed(reading[`${name}_low`])} to ${fixed(reading[`${name}_high`])}` : "");
  pairs("numbers", [
    // among the N enrolled, all views show the closed-set figure
    [`Closed-set, among ${run.start.speakers}`, `${fixed(closedSet(reading))} bits`,
      both(ofEvidence(reading) ? "closed_set_bits" : "bits")],
    ...(reading.among || []).filter((each) => each.people !== run.start.speakers).map((each) => [
      `Among ${(run.start.said.people || {})[each.people] || each.people}`, `${fixed(each.bits)} bits`,
      known(each.bits_low) ? upTo(each.bits_low, each.bits_high, reading.at_least) : "",
    ]),
    known(reading.support_bits) && ["Supported", `${fixed(reading.support_bits)} bits`, "maximum supported by calibration at this length"],
    ["Peak so far", `${fixed(reading.peak_bits)} bits`],
    [run.evidence ? "Closed-set average, this length" : "Average voice, this length", `${fixed(reading.expected_bits)} bits`, both("expected_bits")],
    run.start.watch && ["Attacker's confidence", `${fixed(reading.gain_bits)} bits`, both("gain_bits")],
    researching() && ["Sum of the features", `${fixed(reading.sum_bits)} bits`, "as if independent"],
    guides && ["Linear guide", ...guide(guides.linear, mostOf(reading))],
    guides && ["Square-root guide", ...guide(guides.sqrt, mostOf(reading))],
    researching() && ["Plateau", `${fixed(reading.plateau, 2)} bits`],
    reading.beyond_grid && ["Length", "beyond calibration", "uses the longest rank model"],
    known(reading.lag) && !$("latency") && ["Lag", length(reading.lag), "from speech to reading"],
    s.carried && s.carried.sessions > 0
      && ["Continued from", plural(s.carried.sessions, "session"), `${length(s.carried.speech)} of speech`],
    ["Audio lost", run.counts.gap ? `${length(run.lostSeconds)}` : "none", run.counts.gap ? plural(run.counts.gap, "gap") : ""],
    (reading.stream || 1) > 1 && ["Stream", String(reading.stream)],
  ]);
}

// Behind the "?": bits as numbers of people, typical values, and a threshold per purpose.
function howMuch(guide) {
  $("how-much-button").hidden = !guide;
  if (!guide) return;
  fill("how-much", [
    make("div", { class: "card-head" },
      make("h2", { id: "how-much-title" }, guide.title),
      make("button", { type: "button", popovertarget: "how-much", popovertargetaction: "hide" }, "Close")),
    ...guide.tables.map(([heads, ...rows]) => make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {},
        ...row.map((cell) => make("td", {}, cell))))))),
    ...guide.advice.map((sentence) => make("p", {}, sentence)),
  ]);
}

export function about(run) {
  const s = run.start;
  if (!s.type || $("about").dataset.run === run.name) return;
  $("about").dataset.run = run.name;
  howMuch(s.said.how_much);
  pairs("about", [
    ["Started", s.time && isoTime(s.time)],
    ["Recordings", (s.recordings || []).join(", ")],
    ["Candidates", `${s.speakers} people`, `${fixed(s.ceiling, 2)} bits`],
    ["Watching", s.watch || "no speaker"],
    ["Templates", length(s.template_seconds), "of speech each"],
    ["Rank model", `${s.rank_model}, ${s.rank_model_session}-session`, `${s.rank_model_speakers} speakers`],
    ["On change of speaker", s.on_change],
    s.protected && ["Anonymiser", s.protected.method,
      known(s.protected.latency_seconds) ? `${fixed(1000 * s.protected.latency_seconds, 0)} ms delay` : "after the recording"],
    ["Population, rank model", Object.values(s.fingerprint || {}).join(", ")],
    ["Program", s.version],
  ]);
}
