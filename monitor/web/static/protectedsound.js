// The protected voice from the program, to be played and saved.

const HEADER_BYTES = 8;
const MOST_SECONDS = 1800;
const AHEAD_SECONDS = 0.15;
const WAV_HEADER_BYTES = 64; // without the comment

export class ProtectedSound {
  constructor() {
    this.begin(0, null, "");
    this.heard = false;
  }

  /**
   * Start a new voice.
   * @param {number} rate
   * @param {AudioContext | null} context
   * @param {string} method of the anonymiser
   */
  begin(rate, context, method) {
    this.rate = rate;
    this.method = method;
    this.context = context;
    this.next = 0; // playback time of the next samples, on the context's clock
    /** @type {Int16Array<ArrayBuffer>[]} */ this.parts = [];
    this.length = 0;
  }

  /** Seconds that can be saved. */
  get seconds() {
    return this.rate ? this.length / this.rate : 0;
  }

  /** @param {ArrayBuffer} message position of the first sample, then 16-bit samples */
  take(message) {
    if (!this.rate) return;
    const place = Number(new DataView(message).getBigUint64(0, true));
    const samples = new Int16Array(message, HEADER_BYTES);
    if (place + samples.length <= MOST_SECONDS * this.rate) {
      if (place > this.length) this.keep(new Int16Array(place - this.length)); // fill lost samples with silence
      this.keep(samples);
    }
    if (this.heard) this.play(samples);
  }

  /** @param {Int16Array<ArrayBuffer>} samples */
  keep(samples) {
    this.parts.push(samples);
    this.length += samples.length;
  }

  /** @param {Int16Array} samples */
  play(samples) {
    if (!this.context || this.context.state !== "running") return;
    const buffer = this.context.createBuffer(1, samples.length, this.rate);
    const channel = buffer.getChannelData(0);
    for (let i = 0; i < samples.length; i += 1) channel[i] = samples[i] / 32768;
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    this.next = Math.max(this.next, this.context.currentTime + AHEAD_SECONDS);
    source.start(this.next);
    this.next += buffer.duration;
  }

  /** The whole voice as a 16-bit mono WAV. Its comment names the anonymiser. */
  wav() {
    const comment = `Voice anonymised by speaker-disclosure-monitor: ${this.method}\0`;
    const padded = comment.length % 2 ? `${comment}\0` : comment;
    const start = WAV_HEADER_BYTES + padded.length; // byte offset of the samples
    const header = new DataView(new ArrayBuffer(start));
    const size = 2 * this.length;
    const text = (at, word) => [...word].forEach((each, i) => header.setUint8(at + i, each.charCodeAt(0)));
    text(0, "RIFF");
    header.setUint32(4, start - 8 + size, true);
    text(8, "WAVEfmt ");
    header.setUint32(16, 16, true);
    header.setUint16(20, 1, true);
    header.setUint16(22, 1, true);
    header.setUint32(24, this.rate, true);
    header.setUint32(28, 2 * this.rate, true);
    header.setUint16(32, 2, true);
    header.setUint16(34, 16, true);
    text(36, "LIST");
    header.setUint32(40, 12 + padded.length, true);
    text(44, "INFOICMT");
    header.setUint32(52, comment.length, true);
    text(56, padded);
    text(start - 8, "data");
    header.setUint32(start - 4, size, true);
    return new Blob([header, ...this.parts], { type: "audio/wav" });
  }
}
