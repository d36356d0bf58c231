"""Pure mathematics: functions and values, arrays in, arrays out."""
