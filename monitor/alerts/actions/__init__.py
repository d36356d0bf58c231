"""What an alert does in the world: a bell, a command, a POST, a notification."""
