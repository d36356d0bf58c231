// The outgoing audio: remaining budget and a mute switch.
import { $, fill, make, share, text } from "./dom.js";
import { fixed } from "./words.js";

const MILLISECONDS = 500;
let muted = false;
let following = false;

async function ask(method = "GET", query = "") {
  const answer = await fetch(`/relay${query}`, { method });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

function draw(relay) {
  muted = relay.muted;
  const open = relay.way !== "muted";
  const spent = !open && !muted; // it never opens again
  $("relay").hidden = false;
  $("relay").dataset.way = open ? "open" : "muted";
  const why = relay.held_bits ? `: the next word could exceed your ${relay.budget_bits} bits` : "";
  text("relay-way", relay.way === "clear" ? "Others hear you." : open
    ? `Others hear you through ${relay.way}.` : muted ? "You are muted." : `Muted for this session${why}.`);
  $("relay-left").hidden = relay.budget_bits === null;
  if (relay.budget_bits !== null) budget(relay, spent);
  const button = $("relay-switch");
  button.setAttribute("aria-pressed", String(!muted));
  button.hidden = spent;
}

// Draw the bits sent and kept back as parts of the budget. Once it is spent, also the words not sent.
function budget({ budget_bits: most, sent_bits: sent, kept_bits: kept, held_bits: held }, spent) {
  const parts = [
    ["sent", 0, sent, `${fixed(sent)} of ${most} bits sent`],
    ["kept", most - kept, most, `${fixed(kept)} kept back: another recording of the same speech may disclose more`],
    ...(spent && held ? [["held", sent, most, `${fixed(held)} with the next words, which were not sent`]] : []),
  ];
  fill("relay-bar", parts.map(([name, from, to]) => make("span", { class: name, vars: { from: share(from, most), to: share(to, most) } })));
  fill("relay-bits", parts.map(([name, , , words]) => make("li", {}, make("span", { class: `swatch ${name}` }), words)));
}

async function turn() {
  try {
    draw(await ask("POST", `?muted=${muted ? "no" : "yes"}`));
  } catch {
    lost();
  }
}

function lost() {
  text("relay-way", "The monitor does not answer. Your voice may still be sent.");
}

async function poll() {
  try {
    draw(await ask());
  } catch {
    lost();
  }
  setTimeout(poll, MILLISECONDS);
}

// Show the relay and its mute switch from now on.
export function followRelay() {
  if (following) return;
  following = true;
  $("relay-switch").addEventListener("click", turn);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    const alone = event.key === "m" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (alone && !typing && !$("relay-switch").hidden) turn();
  });
  poll();
}
