"""Identification among more people than were scored: four forms, and the bracket over them.

Measures: IdR and MeanD among M people, from the rates among parts of the N enrolled; each form is
given with limits over speakers, the bracket from the lowest to the highest beside it, and whether N
people support that.

Source: docs/method.md section 10; how well it does is measured in docs/crowd.md.

Misleads: forms that fit equally well among N part on the way to a million. Quote the bracket and
whether it is supported, never one form. Limits are over speakers as good and as bad as these.
"""
