// The events of one run at a time. The stream reconnects until it is closed.

const AGAIN_MILLISECONDS = 2000;
const LOGGED_OUT = 401;

/** @type {EventSource | null} */ let source = null;
/** @type {number | undefined} */ let again;

/**
 * Open a stream in place of the previous one.
 * @param {string} path
 * @param {() => string} since returns the id of the last event received
 * @param {Record<string, (event: any) => void>} handlers one per kind of event
 * @param {(words: string) => void} lost called with the state of a lost connection, in words
 */
export function openStream(path, since, handlers, lost) {
  closeStream();
  const address = `${path}${path.includes("?") ? "&" : "?"}since=${since()}`;
  const opened = new EventSource(address);
  source = opened;
  for (const [kind, handler] of Object.entries(handlers)) opened.addEventListener(kind, handler);
  opened.addEventListener("error", async () => {
    lost("Reconnecting");
    if (opened.readyState !== EventSource.CLOSED) return; // the browser reconnects
    const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
    if (opened !== source) return;
    if (answer && answer.status === LOGGED_OUT) lost("Reload to log in again");
    else again = setTimeout(() => openStream(path, since, handlers, lost), AGAIN_MILLISECONDS);
  });
}

export function closeStream() {
  clearTimeout(again);
  if (source) source.close();
  source = null;
}
