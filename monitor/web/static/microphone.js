// The browser's microphone, without processing where the browser allows it, and the websocket to the program.

const RAW = {
  echoCancellation: false, noiseSuppression: false, autoGainControl: false, voiceIsolation: false,
};
const AGAIN_MILLISECONDS = 1000;
const ANSWER_MILLISECONDS = 3000;
const REFUSED = 1008, FULL = 1013; // codes of the websocket's close
export const DOWN = "The program does not answer. Is it still running?";
export const LOGGED_OUT = "You must log in again: reload this page.";
const MOST_WAITING_SECONDS = 5;
const HEADER_BYTES = 8;
const PART_BYTES = 60000;
const MOST_PARTS = 16;

/** Names of the browser's own audio processing. @type {Record<string, string>} */
const PROCESSING = {
  echoCancellation: "echo cancellation",
  noiseSuppression: "noise suppression",
  autoGainControl: "automatic gain",
  voiceIsolation: "voice isolation",
};

/** One microphone, in frames of 16-bit samples. */
export class Microphone {
  /**
   * @param {(samples: Int16Array, peak: number) => void} heard called with every frame
   * @param {(seconds: number) => void} changed the device is gone, or back after these seconds
   */
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    /** @type {MediaStream | null} */ this.stream = null;
    /** @type {AudioContext | null} */ this.context = null;
    /** @type {MediaStreamAudioSourceNode | null} */ this.source = null;
    /** @type {AudioWorkletNode | null} */ this.node = null;
    this.wanted = false;
    this.gone = false;
  }

  get rate() {
    return this.context ? this.context.sampleRate : 0;
  }

  /** Whether the microphone is open. */
  get open() {
    return this.stream !== null;
  }

  /** Names of the processing that the browser applies despite the request not to. @returns {string[]} */
  get processed() {
    if (!this.stream) return [];
    const settings = /** @type {Record<string, unknown>} */ (this.stream.getAudioTracks()[0].getSettings());
    return Object.keys(RAW).filter((name) => settings[name] === true).map((name) => PROCESSING[name]);
  }

  /**
   * Open the microphone, unless it is stopped while the browser asks the user. Throws a DOMException without a
   * microphone or permission.
   */
  async start() {
    this.wanted = true;
    if (this.stream) return;
    if (!navigator.mediaDevices) throw new DOMException("no https", "SecurityError");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { ...RAW, channelCount: 1 } });
    if (!this.wanted || this.stream) {
      stream.getTracks().forEach((track) => track.stop());
      return;
    }
    this.stream = stream;
    if (!this.context) {
      this.context = new AudioContext({ latencyHint: "interactive" });
      await this.context.audioWorklet.addModule("/static/recorder.js");
      this.node = new AudioWorkletNode(this.context, "recorder");
      this.node.port.onmessage = ({ data }) => {
        if (this.stream) this.heard(data.samples, data.peak);
      };
      this.node.connect(this.context.destination); // silent output, because an unconnected node is never run
    }
    await this.context.resume();
    if (this.stream !== stream) return;
    this.source = this.context.createMediaStreamSource(this.stream);
    this.source.connect(/** @type {AudioWorkletNode} */ (this.node));
    this.stream.getAudioTracks()[0].addEventListener("ended", () => this.wait());
  }

  /** Release the microphone, so that the browser's recording indicator goes out. */
  stop() {
    this.wanted = this.gone = false;
    if (this.source) this.source.disconnect();
    if (this.stream) this.stream.getTracks().forEach((track) => track.stop());
    this.stream = this.source = null;
    if (this.context) this.context.suspend();
  }

  /** The device is lost. Wait for it to return. */
  async wait() {
    const began = performance.now();
    this.stop();
    this.gone = true;
    this.changed(0);
    while (this.gone) {
      await new Promise((go) => setTimeout(go, AGAIN_MILLISECONDS));
      if (!this.gone) return;
      try {
        await this.start();
        if (!this.stream) return; // stopped meanwhile
        this.gone = false;
        this.changed((performance.now() - began) / 1000);
      } catch {
        // not yet
      }
    }
  }
}

/** The websocket to the program. It reconnects to the same session automatically. */
export class Line {
  /**
   * @param {(message: any) => void} told called with every message of the program
   * @param {() => void} changed called when it opens, is lost or ends
   */
  constructor(told, changed) {
    this.told = told;
    this.changed = changed;
    /** Called with protected audio. @type {(message: ArrayBuffer) => void} */
    this.sounded = () => {};
    this.session = "";
    this.rate = 0;
    this.place = 0;
    /** Frames and requests that wait for the connection. @type {(ArrayBuffer | string)[]} */ this.waiting = [];
    /** Whether the program has answered. */ this.open = false;
    /** Whether a new connection needs an action of the user. */ this.ended = false;
    /** Sentence that explains why it is not open. */ this.trouble = DOWN;
    /** @type {WebSocket | null} */ this.socket = null;
    this.connect();
  }

  connect() {
    this.ended = false;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/microphone?session=${this.session}`);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => {
      if (data instanceof ArrayBuffer) {
        this.sounded(data);
        return;
      }
      const message = JSON.parse(data);
      if (message.type === "ready") {
        const same = message.session === this.session;
        this.session = message.session;
        if (!same) this.waiting = this.waiting.filter((each) => typeof each === "string");
        this.open = true;
        this.changed();
        this.waiting.splice(0).forEach((each) => socket.send(each));
        message.same = same;
      }
      this.told(message);
    });
    socket.addEventListener("close", ({ code, reason }) => this.closed(code, reason));
  }

  /** @param {number} code @param {string} reason */
  async closed(code, reason) {
    this.open = false;
    if (code === REFUSED) return this.end(`The program closed the connection: ${reason}. Reload this page.`);
    if (code === FULL) return this.end("Too many people are using this page. Try again later.");
    this.trouble = DOWN;
    this.changed();
    const signal = AbortSignal.timeout(ANSWER_MILLISECONDS);
    const answer = await fetch("/people", { method: "HEAD", signal }).catch(() => null);
    if (answer && answer.status === 401) return this.end(LOGGED_OUT);
    return setTimeout(() => this.connect(), AGAIN_MILLISECONDS);
  }

  /** @param {string} trouble */
  end(trouble) {
    this.trouble = trouble;
    this.ended = true;
    this.changed();
  }

  /** Connect, within a few seconds. @returns {Promise<boolean>} whether the program has answered */
  async answered() {
    if (this.ended) this.connect();
    const until = performance.now() + ANSWER_MILLISECONDS;
    while (!this.open && !this.ended && performance.now() < until) await new Promise((go) => setTimeout(go, 20));
    return this.open;
  }

  /** Send a request. @param {Record<string, unknown>} wish */
  ask(wish) {
    const text = JSON.stringify(wish);
    if (this.open) /** @type {WebSocket} */ (this.socket).send(text);
    else this.waiting.push(text);
  }

  /**
   * Send files one after the other, as fast as the connection accepts them.
   * @param {File[]} files
   * @param {(share: number) => boolean} sent called with the fraction sent; returns false to stop
   * @returns {Promise<boolean>} whether everything was sent
   */
  async deliver(files, sent) {
    const socket = this.socket;
    const all = files.reduce((sum, file) => sum + file.size, 0);
    let gone = 0;
    for (const file of files) {
      for (let at = 0; at < file.size; at += PART_BYTES) {
        const part = await file.slice(at, at + PART_BYTES).arrayBuffer();
        while (this.open && /** @type {WebSocket} */ (socket).bufferedAmount > MOST_PARTS * PART_BYTES) {
          await new Promise((go) => setTimeout(go, 20));
        }
        if (!this.open || socket !== this.socket) return false;
        gone += part.byteLength;
        if (!sent(gone / all)) return false;
        /** @type {WebSocket} */ (socket).send(part);
      }
    }
    return true;
  }

  /** Audio starts at sample 0. @param {number} rate */
  begin(rate) {
    this.rate = rate;
    this.place = 0;
    this.waiting = [];
  }

  /** Record a gap: this many seconds of audio are missing. @param {number} seconds */
  miss(seconds) {
    this.place += Math.round(seconds * this.rate);
  }

  /**
   * Send a frame. If the connection is too slow, the frame is dropped and leaves a gap.
   * @param {Int16Array} samples
   */
  send(samples) {
    const frame = new ArrayBuffer(HEADER_BYTES + samples.byteLength);
    new DataView(frame).setBigUint64(0, BigInt(this.place), true);
    new Int16Array(frame, HEADER_BYTES).set(samples);
    this.place += samples.length;
    const most = MOST_WAITING_SECONDS * 2 * this.rate;
    const socket = /** @type {WebSocket} */ (this.socket);
    if (this.open) {
      if (socket.bufferedAmount < most) socket.send(frame);
    } else {
      this.waiting.push(frame);
      const frames = this.waiting.filter((each) => typeof each !== "string");
      if (frames.length * frame.byteLength > most) this.waiting.splice(this.waiting.indexOf(frames[0]), 1);
    }
  }
}
