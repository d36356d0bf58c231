// The search runs in a Worker, which Chromium refuses to pages opened from a folder.
// There it runs in a hidden frame instead: same messages, no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
      this.started = load(inner, url);
      this.inner = inner;
    }

    async postMessage(data) {
      await this.started;
      this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };
}

function load(inner, url) {
  return new Promise((resolve, reject) => {
    const script = inner.document.createElement("script");
    script.src = url;
    script.onload = resolve;
    script.onerror = reject;
    inner.document.body.append(script);
  });
}
