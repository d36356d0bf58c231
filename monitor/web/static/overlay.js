// The newest number and its state, as an overlay for a video.
const MILLISECONDS = 1000;

/** @param {string} state @param {string} words */
function show(state, words) {
  document.body.dataset.state = state;
  const place = document.getElementById("bits");
  if (place) place.textContent = words;
}

async function poll() {
  try {
    const answer = await fetch(`/overlay/bits${location.search}`);
    const { state, words } = await answer.json();
    show(state, words);
  } catch {
    show("lost", "No connection"); // an old number would be wrong
  }
  setTimeout(poll, MILLISECONDS);
}

poll();
