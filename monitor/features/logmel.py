"""Log mel energies by torchaudio, equal to those that a SpeechBrain network was trained on."""

from __future__ import annotations

from typing import Any

__all__ = ["log_mel"]


def log_mel(fbank: Any) -> Any:
    """The front end of a network, computed by torchaudio.

    SpeechBrain's own builds its filters anew in every call; these are built once. The filters are
    SpeechBrain's (its triangles are symmetric in Hz, torchaudio's are not), and so are the steps.

    Args:
        fbank: SpeechBrain's ``Fbank``.

    Returns:
        A torch module from sound (b, n) to energies (b, frames, bands) in dB, within 1e-4 dB.
    """
    import torch
    import torchaudio

    stft, bank = fbank.compute_STFT, fbank.compute_fbanks

    class LogMel(torch.nn.Module):  # type: ignore[misc]  # defined here, where torch is at hand
        def __init__(self) -> None:
            super().__init__()
            self.spectrogram = torchaudio.transforms.Spectrogram(
                n_fft=stft.n_fft,
                win_length=stft.win_length,
                hop_length=stft.hop_length,
                window_fn=lambda _: stft.window,
                pad_mode=stft.pad_mode,
            )
            self.mel = torchaudio.transforms.MelScale(
                bank.n_mels, bank.sample_rate, n_stft=bank.n_stft
            )
            decibels, bank.log_mel = bank.log_mel, False
            self.levels = (bank.multiplier, bank.amin, bank.db_multiplier, bank.top_db)
            self.mel.fb.copy_(bank(torch.eye(bank.n_stft)[None])[0])
            bank.log_mel = decibels

        def forward(self, sound: Any) -> Any:
            energies = self.mel(self.spectrogram(sound))
            levels = torchaudio.functional.amplitude_to_DB(
                energies[:, None],  # as channels of their own, each is cut off below its own top
                *self.levels,
            )
            return levels[:, 0].transpose(1, 2)

    return LogMel()
