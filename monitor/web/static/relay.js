// The outgoing audio: remaining budget and a mute switch.
import { $, text } from "./dom.js";
import { capital } from "./words.js";

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
  $("relay").hidden = false;
  $("relay").dataset.way = open ? "open" : "muted";
  text("relay-way", relay.way === "clear" ? "Others hear you." : open
    ? `Others hear you through ${relay.way}.` : muted ? "You are muted." : "The budget is spent. Nothing is sent.");
  $("relay-left").hidden = relay.budget_bits === null;
  if (relay.budget_bits !== null) {
    $("relay-bar").max = relay.budget_bits;
    $("relay-bar").value = relay.left_bits;
    text("relay-bits", capital(relay.words));
  }
  const button = $("relay-switch");
  button.setAttribute("aria-pressed", String(!muted));
  button.disabled = !open && !muted;
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
    if (alone && !typing && !$("relay-switch").disabled) turn();
  });
  poll();
}
