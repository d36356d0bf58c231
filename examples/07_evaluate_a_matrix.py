"""Evaluate a matrix of scores: what an anonymiser still gives away, in five lines.

python examples/07_evaluate_a_matrix.py

On the command line:  monitor evaluate scores.npy --labels speakers.txt --html report.html
"""

import numpy as np

from monitor.lab.evaluation import ScoreMatrix, compare, evaluate

# scores of your own: trials x speakers, higher is more alike, and the column of who really spoke
# (of files: evaluate("scores.npy", labels="speakers.txt"))
generator = np.random.default_rng(7)
speaker = np.repeat(np.arange(50), 8)
own = np.arange(50) == speaker[:, None]
before, after = (generator.normal(size=own.shape) + lead * own for lead in (2.5, 0.8))

# the five lines: what differs significantly
first = evaluate(ScoreMatrix(before, speaker, name="original"))
second = evaluate(ScoreMatrix(after, speaker, name="anonymised"))
for row in compare([first, second]).rows:
    if row.differs[1]:
        print(f"{row.key:36}", *[figure and figure.value for figure in row.figures])

for report in (first, second):
    low, high = report["srd.mean_bits_model"].limits
    print(f"{report.name}: {low:.2f} to {high:.2f} bits of {report.ceiling_bits:.2f}")
