"""Features: from blocks of audio to usable frames."""
