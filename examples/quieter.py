"""A program that protects nobody: it makes a voice quieter. WAV on stdin, WAV on stdout."""

import io
import sys

import soundfile

samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()), dtype="float32")
made = io.BytesIO()
soundfile.write(made, samples / 2, rate, format="WAV", subtype="PCM_16")
sys.stdout.buffer.write(made.getvalue())
