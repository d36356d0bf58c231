"""The page of `monitor serve`, where visitors enrol and measure their voice in a browser."""
