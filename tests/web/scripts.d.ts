// What the page's scripts find in a browser beside the DOM: plotly, and the scope of an audio worklet.
interface Window { Plotly: any }
declare const sampleRate: number;
declare class AudioWorkletProcessor { readonly port: MessagePort }
declare function registerProcessor(name: string, made: new () => AudioWorkletProcessor): void;
