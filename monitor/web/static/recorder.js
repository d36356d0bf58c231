// Runs in the browser's audio thread. It posts the microphone's audio as 16-bit samples.

const FRAME_SECONDS = 0.02;

class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    /** Samples per frame. @type {number} */
    this.length = Math.round(sampleRate * FRAME_SECONDS);
    this.begin();
  }

  begin() {
    this.samples = new Int16Array(this.length);
    this.count = 0;
    this.peak = 0;
  }

  /**
   * Process the next samples of the microphone, mixed to one channel.
   * @param {Float32Array[][]} inputs
   */
  process(inputs) {
    const channels = inputs[0] || [];
    const length = channels.length ? channels[0].length : 0;
    for (let i = 0; i < length; i += 1) {
      let sum = 0;
      for (const channel of channels) sum += channel[i];
      const value = Math.round((sum / channels.length) * 32768);
      this.samples[this.count] = Math.max(-32768, Math.min(32767, value));
      this.peak = Math.max(this.peak, Math.abs(value) / 32768);
      this.count += 1;
      if (this.count === this.length) {
        this.port.postMessage({ samples: this.samples, peak: this.peak }, [this.samples.buffer]);
        this.begin();
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
