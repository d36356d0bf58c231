"""ECAPA-TDNN with its front end as one ONNX graph, from sound to embeddings."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

from monitor.features.ecapa import Encoder

__all__ = ["OPSET", "graph"]

OPSET = 17


def graph(encoder: Encoder) -> bytes:
    """The network as a file: sound (batch, samples) at 16 kHz to embeddings (batch, 192).

    The front end is a convolution with a windowed Fourier basis. Windows of one length need no
    masks, so SpeechBrain's are left out, and the statistics over a whole window, which it repeats
    for every frame, are multiplied once. The widest layer, half of all the work, is multiplied in
    whole numbers: its input at 8 bits, scaled anew in every window, its weights at 7, so that no
    processor's products overflow and all of them say the same. Embeddings have length 1; their
    cosine with those of the `Encoder` is 0.999.

    Args:
        encoder: SpeechBrain's, loaded and checked.

    Raises:
        ImportError: the packages onnx and onnxruntime are not installed.
    """
    import torch
    from torch.nn.functional import conv1d, normalize

    front = encoder._model.mods["compute_features"]
    network = encoder._model.mods["embedding_model"]
    steps, span = front.spectrogram.hop_length, front.spectrogram.win_length
    multiplier, amin, shift, most = front.levels

    class Network(torch.nn.Module):  # type: ignore[misc]  # defined here, where torch is at hand
        def __init__(self) -> None:
            super().__init__()
            bins = torch.arange(span // 2 + 1, dtype=torch.float64)
            turns = 2 * torch.pi / span * (bins[:, None] * torch.arange(span) % span)
            basis = torch.cat([turns.cos(), turns.sin()]) * front.spectrogram.window
            self.register_buffer("basis", basis.float()[:, None])
            self.register_buffer("filters", front.mel.fb.T[:, :, None].clone())
            self.network = network
            widest = network.mfa.conv.conv
            self.register_buffer("widest", widest.weight.detach()[:, :, 0].T.clone())
            self.register_buffer("widest_bias", widest.bias.detach().clone())
            kernel = network.asp.tdnn.conv.conv
            per_frame, mean, deviation = kernel.weight.detach().chunk(3, dim=1)
            self.register_buffer("per_frame", per_frame.clone())
            self.register_buffer("of_all", torch.cat([mean, deviation], dim=1).clone())
            self.register_buffer("bias", kernel.bias.detach().clone())

        def forward(self, sound: Any) -> Any:
            x = self.levels(sound)
            outputs = []
            for block in self.network.blocks:
                x = block(x)
                outputs.append(x)
            x = torch.cat(outputs[1:], dim=1).transpose(1, 2) @ self.widest + self.widest_bias
            x = self.network.mfa.norm(self.network.mfa.activation(x.transpose(1, 2)))
            pooled = self.network.asp_bn(self.pool(x))
            return normalize(self.network.fc(pooled)[:, :, 0], dim=1)

        def levels(self, sound: Any) -> Any:
            """Log mel energies less their mean."""
            waves = conv1d(sound[:, None], self.basis, stride=steps, padding=span // 2)
            real, imaginary = waves.square().chunk(2, dim=1)
            energies = conv1d(real + imaginary, self.filters).clamp(min=amin)
            levels = multiplier * (energies.log10() - shift)
            levels = torch.maximum(levels, levels.amax(dim=(1, 2), keepdim=True) - most)
            return levels - levels.mean(dim=2, keepdim=True)

        def pool(self, x: Any) -> Any:
            """Attentive statistics."""
            pool = self.network.asp
            even = torch.full_like(x[:, :1], 1.0) / x.shape[2]
            attention = conv1d(x, self.per_frame, self.bias)
            attention = attention + conv1d(statistics(x, even, pool.eps), self.of_all)
            attention = pool.tanh(pool.tdnn.norm(pool.tdnn.activation(attention)))
            return statistics(x, pool.conv(attention).softmax(dim=2), pool.eps)

    def statistics(x: Any, weights: Any, least: float) -> Any:
        """Mean and standard deviation over time, (b, 2 c, 1)."""
        mean = (weights * x).sum(dim=2, keepdim=True)
        variance = (weights * (x - mean).square()).sum(dim=2, keepdim=True)
        return torch.cat([mean, variance.clamp(min=least).sqrt()], dim=1)

    made = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the exporter warns of being the older one, at every call
        torch.onnx.export(
            Network().eval(),
            (torch.zeros(2, 3 * front.mel.sample_rate),),
            made,
            dynamo=False,  # the newer one needs packages that are larger than onnxruntime
            opset_version=OPSET,
            input_names=["sound"],
            output_names=["embedding"],
            dynamic_axes={"sound": {0: "batch", 1: "samples"}, "embedding": {0: "batch"}},
        )
    return _in_whole_numbers(made.getvalue())


def _in_whole_numbers(data: bytes) -> bytes:
    """The same network, its matrix product in whole numbers; convolutions stay as they are."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    network = onnx.load_from_string(data)
    # that it was looked through before, or it would be said in every user's log that it was not
    network.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        quantize_dynamic(
            network,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )
        return path.read_bytes()
