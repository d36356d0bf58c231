// The curve: plotly on a log axis of speech seconds.
import { $, make, researching } from "./dom.js";
import { figureOf } from "./protected.js";
import { closedSet, fixed, guidesOf, known, length, shortLength } from "./words.js";

const TICKS = [0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 86400];
const NARROW = 620;
const NEAR_BITS = 2.5;
const LINES = [
  ["bits", "This voice", "line"],
  ["limits", "95 % interval", "band"],
  ["spread", "9 of 10 voices", "band"],
  ["protected", "Through the anonymiser", "dash"],
  ["closed", "Closed-set", "line"],
  ["expected", "Average voice", "dash"],
  ["linear", "Linear guide", "dashdot"],
  ["sqrt", "Square-root guide", "dot"],
  ["history", "Earlier sessions", "line"],
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
    this.hidden = new Set();
    /** Buttons of lines that are not always drawn. @type {Record<string, HTMLElement>} */
    this.buttons = {};
    this.onPick = onPick;
    this.drawn = false;
    this.redraw = () => {};
    /** Legend entry of each mark. @type {[string, HTMLElement][]} */
    this.signs = Object.entries(MARKS).map(([kind, [, sign, key, meaning]]) => [kind,
      make("span", { class: "sign", hidden: true }, make("span", { class: key, "aria-hidden": "true" }, sign), ` ${meaning}`)]);
    $("legend").replaceChildren(...LINES.map(([key, name, shape]) => this.button(key, name, shape)),
      ...this.signs.map(([, sign]) => sign));
  }

  button(key, name, shape) {
    const swatch = make("span", { class: `swatch ${shape} ${key}`, "aria-hidden": "true" });
    const some = ["spread", "history", "closed", "protected", "expected", "linear", "sqrt"].includes(key);
    const button = make("button", { type: "button", "aria-pressed": "true", hidden: some }, swatch, name);
    if (some) this.buttons[key] = button;
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!on));
      if (on) this.hidden.add(key);
      else this.hidden.delete(key);
      this.redraw();
    });
    return button;
  }

  draw(run, moment) {
    if (!window.Plotly || !this.element.offsetWidth) return; // the element is not visible
    this.redraw = () => this.draw(run, moment);
    const { spread, history, closed, protected: other, linear, sqrt, expected } = this.buttons;
    history.hidden = !historyOf(run).length;
    const both = Boolean(run.start.protected);
    closed.hidden = !run.evidence || both;
    spread.hidden = both || !run.readings.some((each) => known(each.spread_low));
    other.hidden = !both;
    const guided = researching() && !both; // two voices and two guides would be too many lines
    linear.hidden = sqrt.hidden = !guided;
    expected.hidden = run.evidence && !researching(); // it belongs to the closed-set figure
    $("researcher").hidden = both && !run.evidence;
    const points = plotted(run.readings);
    const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false };
    const made = window.Plotly.react(
      this.element, this.traces(run, points), this.layout(run, points, moment), config,
    );
    if (!this.drawn) {
      this.drawn = true;
      made.then(() => {
        this.element.on("plotly_click", (data) => {
          const seconds = data.points[0] && data.points[0].customdata;
          if (Array.isArray(seconds)) this.onPick(seconds[0]);
        });
      });
    }
    const kinds = new Set(marked(run).map(markOf));
    for (const [kind, sign] of this.signs) sign.hidden = !kinds.has(/** @type {any} */ (kind));
    this.describe(run, points);
  }

  describe(run, points) {
    const last = points[points.length - 1];
    const words = !last || !known(last.bits)
      ? "Curve: no figures yet"
      : `Curve of bits against speech seconds on a log axis: ${fixed(last.bits)} bits after ` +
        `${length(last.x)} of speech, ${run.evidence ? "closed-set " : ""}ceiling ${fixed(last.ceiling, 2)}. ` +
        "Use the slider below to read off any moment.";
    this.element.setAttribute("aria-label", words);
  }

  traces(run, points) {
    const x = points.map((p) => p.x);
    const line = (key, get, style, hover) => ({
      x, y: points.map((p) => (p.gap ? null : get(p))), mode: "lines", type: "scatter",
      visible: !this.hidden.has(key), connectgaps: false, line: style, ...hover,
    });
    const named = (name, digits = 2) => ({ name, hovertemplate: `%{y:.${digits}f}` });
    const bits = line("bits", (p) => run.own(p), { color: colour("accent"), width: 3 }, {
      name: "This voice", hovertemplate: "%{customdata[1]}",
    });
    bits.customdata = points.map((p) => [p.seconds, p.said.now]);
    const closed = line("closed", closedSet, { color: colour("accent"), width: 1.4 },
      named(`Closed-set, among the ${run.start.speakers}`));
    const guides = run.start.protected || !researching() ? [] : [
      line("linear", (p) => (guidesOf(p) || {}).linear,
        { color: colour("guide-linear"), width: 1.6, dash: "dashdot" }, named("Linear guide")),
      line("sqrt", (p) => (guidesOf(p) || {}).sqrt,
        { color: colour("guide-sqrt"), width: 1.6, dash: "dot" }, named("Square-root guide")),
    ];
    return [
      ...(run.start.protected ? []
        : this.bands(points, (p) => [p.spread_low, p.spread_high], "spread-band", "spread")),
      ...this.bands(points, (p) => [run.own(p, "_low"), run.own(p, "_high")], "band"),
      ...(run.start.protected ? this.otherSide(run, points, line) : []),
      ...guides,
      ...(run.evidence && !researching() ? [] : [line("expected", (p) => p.expected_bits,
        { color: colour("muted"), width: 1.8, dash: "dash" },
        named(run.evidence ? "Average voice, closed-set" : "Average voice"))]),
      this.earlier(run),
      ...(run.evidence && !run.start.protected ? [closed] : []),
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
      x: points.map((p) => p.speech), y: points.map((p) => p.bits), name: "Earlier session",
      customdata: points.map((p) => String(p.time).slice(0, 10)),
      hovertemplate: "%{y:.2f} bits, %{customdata}", type: "scatter", connectgaps: false,
      mode: past.length > 60 ? "lines" : "lines+markers", visible: !this.hidden.has("history"),
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
      x: [...each.map((p) => p.x), ...each.map((p) => p.x).reverse()],
      y: [...each.map((p) => limits(p)[0]), ...each.map((p) => limits(p)[1]).reverse()],
      fill: "toself", fillcolor: colour(key), mode: "lines", type: "scatter",
      line: { width: 0 }, hoverinfo: "skip", visible: !this.hidden.has(name),
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

  layout(run, points, moment) {
    const narrow = this.element.clientWidth < NARROW;
    const ceiling = run.start.ceiling || (run.latest && run.latest.ceiling) || 1;
    const { evidence } = run;
    const crowds = run.start.said.scale || [];
    const [low, high] = bounds(points, ceiling, evidence && crowds, evidence ? run.start.support_bits || 0 : 0);
    const range = xRange(points, run.recorded || run.end, historyOf(run));
    const tall = Math.max(1, Math.round((high - low) / 7));
    const bits = [];
    for (let b = Math.ceil(low / tall) * tall; b <= high; b += tall) bits.push(b);
    const all = TICKS.filter((t) => t >= range[0] * 0.999 && t <= range[1] * 1.001);
    const ticks = narrow && all.length > 5 ? all.filter((t, i) => i % 2 === (all.length - 1) % 2) : all;
    const ticked = run.start.said.ticks || {};
    const scale = evidence ? crowds.filter(([b]) => b <= high)
      : bits.filter((b) => b <= ceiling + 0.05).map((b) => [b, ticked[b] || ""]);
    const shapes = [], labels = [];
    const level = (y, name, key, dash, place) => {
      shapes.push({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y,
        layer: key === "danger" ? "above" : "below",
        line: { color: colour(key), width: 1.4, dash },
      });
      const right = key === "danger"; // a threshold may be close to the ceiling
      labels.push({
        xref: "paper", x: right ? 0.994 : 0.006, xanchor: right ? "right" : "left",
        y, yanchor: place, text: name, showarrow: false,
        font: { size: 12, color: colour(key) }, bgcolor: colour("card-clear"), borderpad: 1,
      });
    };
    const plateau = run.start.plateau;
    const shown = known(plateau) && researching();
    const same = shown && Math.abs(plateau - ceiling) < 0.02 * ceiling;
    const of = evidence ? "closed-set " : "";
    level(ceiling, same ? `${of}ceiling ${fixed(ceiling, 2)} bits, plateau the same`
      : `${of}ceiling ${fixed(ceiling, 2)} bits`, "ink", "solid", "bottom");
    if (shown && !same) {
      level(plateau, `${of}plateau ${fixed(plateau, 2)}`, "ok", "longdashdot", "top");
    }
    const support = evidence && researching() && run.start.support_bits;
    if (known(support)) {
      level(support, `calibration supports ${fixed(support)}`, "muted", "longdashdot", "bottom");
    }
    for (const bits of run.thresholds) level(bits, `threshold ${fixed(bits)}`, "danger", "dash", "bottom");
    for (const bits of run.closedThresholds) {
      level(bits, `closed-set threshold ${fixed(bits)}`, "danger", "dash", "bottom");
    }
    if (low < -0.2) level(0, "chance", "muted", "dot", "bottom");
    shapes.push(...doubtful(points));
    for (const event of run.events) {
      if (event.type !== "change" || !(event.x > 0)) continue;
      shapes.push(upright(event.x, "guide-sqrt", "dot"));
      labels.push({
        x: Math.log10(event.x), xanchor: "right", yref: "paper", y: 0.02, yanchor: "bottom", textangle: -90,
        text: event.said.title || "", showarrow: false, font: { size: 12, color: colour("guide-sqrt") },
      });
    }
    if (moment && moment.x > 0 && moment !== run.latest) {
      shapes.push(upright(moment.x, "ink", "solid"));
    }
    const font = { family: "system-ui, sans-serif", size: 13, color: colour("muted") };
    const axis = { zeroline: false, gridcolor: colour("line"), linecolor: colour("line"), fixedrange: true };
    return {
      font, shapes, annotations: labels, showlegend: false, dragmode: false,
      hovermode: "x unified", uirevision: "same",
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: narrow ? 26 : 52, r: narrow ? (evidence ? 66 : 52) : (evidence ? 96 : 74), t: 12, b: narrow ? 34 : 48 },
      xaxis: {
        ...axis, type: "log", range: range.map(Math.log10), tickvals: ticks,
        ticktext: ticks.map(shortLength), tickangle: 0, hoverformat: ".1f",
        unifiedhovertitle: { text: "after %{x:.0f} s of speech" },
        title: { text: narrow ? "" : "seconds of speech (log)", standoff: 8 },
      },
      yaxis: {
        ...axis, range: [low, high], tickvals: bits, ticktext: bits.map((b) => String(b).replace("-", "−")),
        title: { text: narrow ? "" : "bits", standoff: 6 },
      },
      yaxis2: {
        ...axis, overlaying: "y", side: "right", range: [low, high], showgrid: false,
        tickvals: scale.map(([b]) => b), ticktext: scale.map(([, name]) => name),
        title: { text: narrow || !evidence ? "" : "one match per …", standoff: 4 },
        tickfont: { size: narrow ? 11 : 13 }, ticks: "",
      },
    };
  }
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

function upright(x, key, dash) {
  return {
    type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
    line: { color: colour(key), width: 1.2, dash },
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

// Axis limits in bits. For evidence the axis extends to the next crowd if that is near.
function bounds(points, ceiling, crowds, support) {
  let low = 0;
  let high = Math.max(ceiling, support);
  for (const point of points) {
    const other = figureOf(point);
    for (const value of [point.bits, point.bits_low, point.bits_high, closedSet(point),
      other.bits, other.low, other.high]) {
      if (known(value)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
  }
  const ahead = (crowds || []).map(([bits]) => bits).find((bits) => bits >= high) || high;
  if (crowds && ahead - high <= NEAR_BITS) high = ahead;
  return [low - (low < 0 ? 0.06 : 0.02) * (high - low), high + 0.09 * (high - low)];
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
