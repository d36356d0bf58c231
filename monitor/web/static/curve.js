// The curve: plotly on a log axis of speech seconds.
import { $, make, researching, text } from "./dom.js";
import { figureOf } from "./protected.js";
import { about, answer, closedSet, fixed, guidesOf, known, left, length, mostOf, oneIn, shortLength } from "./words.js";

const TICKS = [0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 86400];
const LEVELS = [-24, -18, -12, -9, -6, -3, 0, 1, 3, 6, 10, 13, 17, 20];
const NARROW = 620;
const PAPER = 690; // pixels between the margins of A4; a printed page gives no width in time
const LINES = [
  ["bits", "This voice", "line"],
  ["limits", "95 % interval", "band"],
  ["protected", "Through the anonymiser", "dash"],
  ["history", "Earlier sessions", "line"],
  ["spread", "9 of 10 voices", "band"],
  ["closed", "Closed-set", "line"],
  ["expected", "Average voice", "dash"],
];

/** Marks on the curve, by the kind of event: plotly's symbol, the same sign as text, its colour, what it means. */
const MARKS = {
  alert: ["triangle-up", "▲", "danger", "Alert"],
  warning: ["triangle-up", "▲", "warn", "Warning"],
  cleared: ["triangle-down", "▼", "ok", "Alert over"],
  change: ["diamond", "◆", "guide-sqrt", "Another voice"],
  gap: ["x", "✕", "warn", "Gap"],
  notice: ["circle", "●", "warn", "Note"],
};

/** @param {any} event @returns {keyof typeof MARKS} */
const markOf = (event) => (event.state === "cleared" ? "cleared" : event.level === "warning" && event.type === "alert"
  ? "warning" : event.type);

/** Events with a mark on the curve. */
const marked = (run) => run.events.filter((e) => e.x > 0 && e.type !== "crossing");

// Readings of earlier sessions from a ledger. Their speech seconds continue from session to session.
const historyOf = (run) => ((run.start.carried || {}).history || []).filter((p) => p.speech > 0);

const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export class Curve {
  constructor(onPick) {
    this.element = $("curve");
    this.onPick = onPick;
    this.drawn = false;
    /** Legend entry of each line and mark. @type {Record<string, HTMLElement>} */
    this.keys = {};
    for (const [key, name, shape] of LINES) {
      this.keys[key] = make("span", { class: "sign" },
        make("span", { class: `swatch ${shape} ${key}`, "aria-hidden": "true" }), name);
    }
    for (const [kind, [, sign, key, meaning]] of Object.entries(MARKS)) {
      this.keys[kind] = make("span", { class: "sign" }, make("span", { class: key, "aria-hidden": "true" }, sign), ` ${meaning}`);
    }
    $("legend").replaceChildren(...Object.values(this.keys));
  }

  draw(run, moment) {
    if (!window.Plotly || !this.element.offsetWidth) return; // the element is not visible
    const points = plotted(run.readings);
    const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false };
    const frame = framed(run, points, this.element.clientWidth < NARROW);
    const traces = this.traces(run, points, frame);
    const made = window.Plotly.react(this.element, traces, this.layout(run, points, moment, frame), config);
    if (!this.drawn) {
      this.drawn = true;
      made.then(() => {
        this.element.on("plotly_click", (data) => {
          const seconds = data.points[0] && data.points[0].customdata;
          if (Array.isArray(seconds)) this.onPick(seconds[0]);
        });
      });
    }
    const both = Boolean(run.start.protected);
    $("researcher").hidden = both;
    const shown = new Set([...traces.map((each) => each.key), ...marked(run).map(markOf)]);
    for (const [key, sign] of Object.entries(this.keys)) sign.hidden = !shown.has(key);
    const last = points[points.length - 1];
    const words = last ? `After ${length(last.x)} of speech: ${answer(last)}` : "No figures yet";
    text("curve-title", words);
    this.element.setAttribute("aria-label",
      `Curve of bits against seconds of speech, on a log axis. ${words}. Use the slider below to read off any moment.`);
  }

  traces(run, points, frame) {
    const x = points.map((p) => p.x);
    const line = (key, get, style, hover) => ({
      key, x, y: points.map((p) => (p.gap ? null : get(p))), mode: "lines", type: "scatter",
      connectgaps: false, line: style, ...hover,
    });
    const named = (name, digits = 2) => ({ name, hovertemplate: `%{y:.${digits}f}` });
    const both = run.start.protected;
    const deep = researching() && !both; // two voices and their guides would be too many lines
    const bits = line("bits", (p) => run.own(p), { color: colour("accent"), width: 3 }, {
      name: "This voice", hovertemplate: "%{customdata[1]}",
    });
    bits.customdata = points.map((p) => [p.seconds, p.said.now]);
    return [
      unsupported(points, frame),
      ...(deep ? this.bands(points, (p) => [p.spread_low, p.spread_high], "spread-band", "spread") : []),
      ...this.bands(points, (p) => [run.own(p, "_low"), run.own(p, "_high")], "band"),
      ...(both ? this.otherSide(run, points, line) : guides(points).map(({ name, dash, at }) =>
        line(name, at, { color: colour("ink"), width: 1, dash }, named(`${name} growth`)))),
      ...(deep ? [line("expected", (p) => p.expected_bits, { color: colour("muted"), width: 1.8, dash: "dash" },
        named(run.evidence ? "Average voice, closed-set" : "Average voice"))] : []),
      ...(historyOf(run).length ? [this.earlier(run)] : []),
      ...(deep && run.evidence ? [line("closed", closedSet, { color: colour("accent"), width: 1.4 },
        named(`Closed-set, among the ${run.start.speakers}`))] : []),
      bits,
      this.marks(run),
      // plotly draws the second axis only if a trace uses it
      { x: [1], y: [null], yaxis: "y2", type: "scatter", mode: "lines", hoverinfo: "skip" },
    ];
  }

  earlier(run) {
    const past = historyOf(run);
    const fresh = (p, i) => i > 0 && (p.session !== past[i - 1].session || p.speech < past[i - 1].speech);
    const points = past.flatMap((p, i) => (fresh(p, i) ? [{ ...p, bits: null }, p] : [p]));
    return {
      key: "history", x: points.map((p) => p.speech), y: points.map((p) => p.bits), name: "Earlier session",
      customdata: points.map((p) => String(p.time).slice(0, 10)),
      hovertemplate: "%{y:.2f} bits, %{customdata}", type: "scatter", connectgaps: false,
      mode: past.length > 60 ? "lines" : "lines+markers",
      line: { color: colour("history"), width: 2 }, marker: { size: 4 },
    };
  }

  // The protected voice: its band, its line and its distance below the clear voice.
  otherSide(run, points, line) {
    const get = figureOf;
    const curve = line("protected", (p) => get(p).bits,
      { color: colour("protected"), width: 2.6, dash: "dash" },
      { name: "Through the anonymiser", hovertemplate: "%{customdata[1]}" });
    curve.customdata = points.map((p) => [p.seconds,
      [`${fixed(get(p).bits)} bits`, p.said.fewer].filter(Boolean).join(", ")]);
    return [...this.bands(points, (p) => [get(p).low, get(p).high], "protected-band"), curve];
  }

  // One band per uninterrupted stretch, because plotly fills across a break.
  bands(points, limits, key, name = "limits") {
    const stretches = [[]];
    for (const point of points) {
      if (point.gap || !limits(point).every(known)) stretches.push([]);
      else stretches[stretches.length - 1].push(point);
    }
    return stretches.filter((each) => each.length > 1).map((each) => ({
      key: name, x: [...each.map((p) => p.x), ...each.map((p) => p.x).reverse()],
      y: [...each.map((p) => limits(p)[0]), ...each.map((p) => limits(p)[1]).reverse()],
      fill: "toself", fillcolor: colour(key), mode: "lines", type: "scatter",
      line: { width: 0 }, hoverinfo: "skip",
    }));
  }

  marks(run) {
    const shown = marked(run);
    return {
      x: shown.map((e) => e.x),
      y: shown.map((e) => (e.type === "alert" && known(e.value) && Object.hasOwn(run.named, e.field) ? e.value : 0)),
      mode: "markers", type: "scatter", hoverinfo: "skip", cliponaxis: false,
      marker: {
        symbol: shown.map((e) => MARKS[markOf(e)][0]), color: shown.map((e) => colour(MARKS[markOf(e)][2])),
        size: 11, line: { width: 1.5, color: colour("card") },
      },
    };
  }

  layout(run, points, moment, { narrow, ceiling, top, low, high, range }) {
    const { evidence } = run;
    const deep = researching() && !run.start.protected;
    const bits = LEVELS.filter((b) => b > low && b < top - 0.8);
    const all = TICKS.filter((t) => t >= range[0] * 0.999 && t <= range[1] * 1.001);
    const ticks = narrow && all.length > 5 ? all.filter((t, i) => i % 2 === (all.length - 1) % 2) : all;
    const shapes = [], labels = [];
    const label = (words, key, where) => labels.push({
      text: words, showarrow: false, font: { size: 12, color: colour(key) }, bgcolor: colour("card-clear"), borderpad: 1, ...where,
    });
    const level = (y, name, key, dash, left = false) => {
      shapes.push({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y,
        layer: key === "danger" ? "above" : "below", line: { color: colour(key), width: 1.2, dash },
      });
      label(name, key, { xref: "paper", x: left ? 0.006 : 0.994, xanchor: left ? "left" : "right", y, yanchor: "bottom" });
    };
    if (points.length) label(`${evidence ? "calibration supports" : `${run.start.speakers} people allow`}${narrow ? "<br>" : " "}no more than ${fixed(top)} bits`,
      "muted", { xref: "paper", x: 0.994, xanchor: "right", yref: "paper", y: 0.995, yanchor: "top", align: "right" });
    if (!run.start.protected) {
      for (const { name, tip, side } of guides(points)) {
        label(name, "ink", { x: Math.log10(tip.x), xanchor: side, y: tip.y, yanchor: "bottom" });
      }
    }
    const plateau = run.start.plateau;
    if (deep && evidence) level(ceiling, `closed-set ceiling ${fixed(ceiling, 2)} bits`, "ink", "solid", true);
    if (deep && known(plateau) && Math.abs(plateau - ceiling) > 0.02 * ceiling) {
      level(plateau, `${evidence ? "closed-set " : ""}plateau ${fixed(plateau, 2)}`, "ok", "longdashdot", true);
    }
    for (const each of run.thresholds) level(each, `alert at ${fixed(each)} bits`, "danger", "solid");
    for (const each of run.closedThresholds) level(each, `closed-set alert at ${fixed(each)} bits`, "danger", "dash");
    shapes.push(upright(0, "muted", "solid", { xref: "paper", x1: 1, yref: "y", y1: 0 }), ...doubtful(points));
    for (const event of run.events) {
      if (event.type !== "change" || !(event.x > 0)) continue;
      shapes.push(upright(event.x, "guide-sqrt", "dot"));
      label(event.said.title || "", "guide-sqrt", {
        x: Math.log10(event.x), xanchor: "right", yref: "paper", y: 0.02, yanchor: "bottom", textangle: -90,
      });
    }
    if (moment && moment.x > 0 && moment !== run.latest) {
      shapes.push(upright(moment.x, "ink", "solid"));
    }
    const last = run.latest;
    if (last && last.x > 0 && known(run.own(last)) && !last.said.nobody && !last.said.doubt) {
      label(`${narrow ? "" : "this voice: "}${last.at_least ? "at least " : ""}${fixed(run.own(last))} bits`, "accent",
        { x: Math.log10(last.x), xanchor: "right", y: run.own(last), yanchor: "top", yshift: -8 });
    }
    const font = { family: "system-ui, sans-serif", size: 13, color: colour("muted") };
    const axis = { zeroline: false, gridcolor: colour("line"), linecolor: colour("line"), fixedrange: true };
    return {
      font, shapes, annotations: labels, showlegend: false, dragmode: false,
      width: matchMedia("print").matches ? PAPER : undefined,
      hovermode: "x unified", uirevision: "same",
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: narrow ? 26 : 52, r: narrow ? 78 : 104, t: 4, b: narrow ? 34 : 48 },
      xaxis: {
        ...axis, showgrid: false, type: "log", range: range.map(Math.log10), tickvals: ticks,
        ticktext: ticks.map(shortLength), tickangle: 0, hoverformat: ".1f",
        unifiedhovertitle: { text: "after %{x:.0f} s of speech" },
        title: { text: narrow ? "" : "speech (log scale)", standoff: 8 },
      },
      yaxis: {
        ...axis, range: [low, high], tickvals: bits, ticktext: bits.map((b) => String(b).replace("-", "−")),
        title: { text: narrow ? "" : "bits", standoff: 6 },
      },
      yaxis2: {
        ...axis, overlaying: "y", side: "right", range: [low, high], showgrid: false,
        tickvals: bits, ticktext: bits.map((b) => (evidence ? oneIn(b) : `${about(left(b, ceiling))} left`)),
        title: { text: narrow ? "" : evidence ? "people who match" : points.length ? `of the ${run.start.speakers} enrolled` : "", standoff: 4 },
        tickfont: { size: narrow ? 11 : 13 }, ticks: "",
      },
    };
  }
}

// Composition bounds of the headline, up to what calibration supports.
function guides(points) {
  return [["linear", "dash", "right"], ["square-root", "dot", "left"]].map(([name, dash, side]) => {
    const value = (p) => (guidesOf(p) || {})[name === "linear" ? "linear" : "sqrt"];
    const over = points.find((p) => value(p) >= mostOf(p) - 0.005);
    const at = (p) => (over && p.x > over.x ? null : value(p));
    const tip = over || points.filter((p) => known(value(p))).pop();
    return { name, dash, side, at, tip: tip && { x: tip.x, y: value(tip) } };
  }).filter(({ tip }) => tip);
}

// Hatch what no figure can reach: above what calibration supports at each length, or above the ceiling.
function unsupported(points, { range: [from, to], top, high }) {
  const edge = points.filter((p) => !p.gap && p.x >= from).map((p) => [p.x, p.support_bits ?? top]);
  const first = edge.length ? edge[0][1] : top;
  const last = edge.length ? edge[edge.length - 1][1] : top;
  const all = [[from, 2 * high], [from, first], ...edge, [to, last], [to, 2 * high]];
  return {
    x: all.map(([x]) => x), y: all.map(([, y]) => y), type: "scatter", mode: "lines", hoverinfo: "skip",
    fill: "toself", line: { width: 1, color: colour("muted") },
    fillpattern: { shape: "/", size: 7, solidity: 0.12, fgcolor: colour("muted"), bgcolor: "rgba(0,0,0,0)" },
  };
}

// Shade readings that may include more than one voice.
function doubtful(points) {
  const stretches = [];
  points.forEach((point, i) => {
    if (!point.change) return;
    const begins = !i || !points[i - 1].change;
    if (begins) stretches.push([points[Math.max(0, i - 1)].x, point.x]);
    else stretches[stretches.length - 1][1] = point.x;
  });
  return stretches.map(([x0, x1]) => ({
    type: "rect", x0, x1, yref: "paper", y0: 0, y1: 1, layer: "below", opacity: 0.12,
    fillcolor: colour("warn"), line: { width: 0 },
  }));
}

function upright(x, key, dash, more = {}) {
  return {
    type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
    line: { color: colour(key), width: 1.2, dash }, ...more,
  };
}

// Skip readings that coincide on the log axis. A restart of the evidence breaks the line.
function plotted(readings) {
  const points = [];
  let reached = 0;
  readings.forEach((reading, i) => {
    if (!(reading.x > 0)) return;
    const last = i === readings.length - 1;
    if (reading.fresh && points.length) points.push({ ...reading, gap: true });
    if (last || reading.fresh || points.length < 400 || reading.x >= reached * 1.003) {
      points.push(reading);
      reached = reading.x;
    }
  });
  return points;
}

// Axis limits, with room for the labels above the highest figure.
function framed(run, points, narrow) {
  const ceiling = run.start.ceiling || (run.latest && run.latest.ceiling) || 1;
  const top = (run.evidence && run.start.support_bits) || ceiling;
  const values = points.flatMap((point) => {
    const other = figureOf(point);
    return [point.bits, point.bits_low, point.bits_high, other.bits, other.low, other.high];
  }).filter(known);
  const [lowest, highest] = [Math.min(0, ...values), Math.max(top, ...values)];
  const room = highest - lowest;
  return {
    narrow, ceiling, top, low: lowest - 0.04 * room, high: highest + (narrow ? 0.28 : 0.17) * room,
    range: xRange(points, run.recorded || run.end, historyOf(run)),
  };
}

function xRange(points, over, past) {
  if (!points.length) return [1, 60];
  const last = points[points.length - 1].x;
  const earliest = Math.min(points[0].x, ...past.map((p) => p.speech));
  const first = Math.max(earliest, last / 3000);
  // during a run the axis grows in steps, so that the curve does not crawl
  const end = over ? last : TICKS.find((tick) => tick >= last) || last;
  return [first, Math.max(end, first * 4)];
}
