"""Writes the TorchScript samples of this folder anew. Needs torch: ``pip install torch && python samples/make_torch.py``."""
import contextlib
import io
import re
import warnings
from pathlib import Path

import torch
from torch import nn

FOLDER = Path(__file__).resolve().parent


def risky_function(x):
    """A branch on data: a trace takes the way of its example, a script keeps both."""
    return x * 2 if x.sum() > 0 else x - 1


class Tagger(nn.Module):
    """Embedding, convolution over the words, batch norm, ReLU in place, attention to one another, a linear head."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.conv = nn.Conv1d(16, 16, 3, padding=1)
        self.norm = nn.BatchNorm1d(16)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        x = self.words(tokens).permute(0, 2, 1).contiguous()
        x = self.relu(self.norm(self.conv(x))).permute(0, 2, 1)
        scores = torch.softmax(x @ x.transpose(1, 2) / x.size(-1) ** 0.5, -1)
        return torch.log_softmax(self.head(scores @ x), -1)


def without_folder(text):
    """Source lines name the file, not the machine."""
    return re.sub(re.escape(f"{FOLDER}/"), "", re.sub(r"/\S*/site-packages/", "", str(text)))


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    traced = torch.jit.trace(risky_function, torch.ones(4))
    scripted = torch.jit.script(risky_function)
    (FOLDER / "risky.traced.txt").write_text(without_folder(traced.graph))
    (FOLDER / "risky.scripted.txt").write_text(without_folder(scripted.graph))

    tagger = Tagger().eval()
    for p in tagger.norm.buffers():
        if p.dtype.is_floating_point:
            p.uniform_(0.5, 1.5)
    tokens = torch.randint(0, 50, (2, 7))
    (FOLDER / "tagger.inlined.txt").write_text(without_folder(torch.jit.trace(tagger, tokens).inlined_graph))
    torch.save(tagger.state_dict(), FOLDER / "tagger.pt")

    # What a script prints: some text, then two graphs.
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("positive:", risky_function(torch.tensor([1.0, 2.0])))
        print("negative:", risky_function(torch.tensor([-1.0, -2.0])))
        print("Traced graph:")
        print(traced.graph)
        print("Scripted graph:")
        print(scripted.graph)
    (FOLDER / "risky.log").write_text(without_folder(out.getvalue()))


if __name__ == "__main__":
    main()
