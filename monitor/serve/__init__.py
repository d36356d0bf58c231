"""The page that listens: somebody enrols, speaks and sees, with the browser's microphone."""
