"""Enrolment and calibration: run streams over a corpus, make templates and laws."""
