// The newest number, as an overlay for a video.
const MILLISECONDS = 1000;

async function show() {
  try {
    const answer = await fetch(`/overlay/bits${location.search}`);
    const { bits } = await answer.json();
    document.getElementById("bits").textContent = bits === null ? "" : `${bits.toFixed(1)} bits`;
  } catch {
    document.getElementById("bits").textContent = ""; // an old number would be wrong
  }
  setTimeout(show, MILLISECONDS);
}

show();
