"""Reports of one system or several: figures chosen, compared, worded, exported and drawn.

`report.Report` is what `monitor.lab.evaluation.evaluate` returns; `comparing` sets several side by
side, `grouping` groups of speakers, `pairwise` all pairs of systems. `catalogue` has every figure
by its short name, `wording` says numbers in words; `page` writes HTML, `exporting` CSV and LaTeX.
"""
